// Slack's own text format, read into nodes. The text is hostile: it is only ever
// cut into text nodes and known elements, in time linear in its length.

import { h, link } from './dom.js';
import { emojiChar } from './emoji.js';

/** Undoes Slack's escaping of & < > in one pass. */
export function unescape(text) {
  return text.replace(/&(amp|lt|gt);/g, (_, name) => ({ amp: '&', lt: '<', gt: '>' })[name]);
}

/** Does Slack's escaping of & < >. */
export function escape(text) {
  return text.replace(/[&<>]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]);
}

/**
 * Renders mrkdwn. names: {user(id) -> {name, me}, channel(id) -> {name}} for what
 * stands in angle brackets. Returns a list of nodes.
 */
export function mrkdwn(text, names) {
  const out = [];
  const parts = String(text ?? '').split('```');
  // An odd fence opens nothing: it is shown as it was typed.
  if (parts.length % 2 === 0) parts.splice(-2, 2, parts.slice(-2).join('```'));
  parts.forEach((part, i) => {
    if (i % 2 === 1) {
      out.push(h('pre', { class: 'code-block', dir: 'ltr' }, h('code', null, codeText(part.replace(/^\n|\n$/g, '')))));
    } else {
      out.push(...quotes(part, names, i > 0, i < parts.length - 1));
    }
  });
  return out;
}

/** The text of one angle-bracket-aware code span: brackets stand for what they name. */
function codeText(text) {
  return unescape(text.replace(/<((?:https?:|mailto:)[^<>|\s]*)(?:\|([^<>]*))?>/g, (_, to, label) => label || to));
}

function quotes(text, names, afterBlock, beforeBlock) {
  if (afterBlock) text = text.replace(/^\n/, '');
  if (beforeBlock) text = text.replace(/\n$/, '');
  if (text === '') return [];
  const out = [];
  let plain = [];
  let quoted = [];
  const flush = () => {
    if (plain.length) out.push(paragraph('div', plain, names));
    if (quoted.length) out.push(h('blockquote', null, paragraph('div', quoted, names)));
    plain = [];
    quoted = [];
  };
  const lines = text.split('\n');
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    if (line.startsWith('&gt;&gt;&gt;')) {
      flush();
      quoted = [line.slice(12).replace(/^ /, ''), ...lines.slice(i + 1)];
      break;
    }
    const quote = /^(?:&gt;|>(?!>)) ?/.exec(line);
    if (quote) {
      if (plain.length) flush();
      quoted.push(line.slice(quote[0].length));
    } else {
      if (quoted.length) flush();
      plain.push(line);
    }
  }
  flush();
  return out;
}

function paragraph(tag, lines, names) {
  return h(tag, { class: 'para', dir: 'auto' }, lines.map((line, i) => [i > 0 && h('br'), inline(line, names)]));
}

const stand = '\ufffc';
const atoms = /<[^<>\n]+>|`[^`\n]+`/g;
const marks = { '*': 'strong', _: 'em', '~': 's' };
const word = /[\p{L}\p{N}]/u;

/** One line of mrkdwn as nodes. */
export function inline(line, names) {
  // Brackets and code are taken out first, so that a mark inside them marks nothing.
  const held = new Map();
  let flat = '';
  let from = 0;
  for (const m of line.matchAll(atoms)) {
    flat += line.slice(from, m.index);
    held.set(flat.length, m[0]);
    flat += stand;
    from = m.index + m[0].length;
  }
  flat += line.slice(from);
  return styled(flat, 0, flat.length, held, names, '');
}

function styled(flat, from, to, held, names, open) {
  const out = [];
  const closed = {};
  let start = from;
  const text = (end) => { if (end > start) out.push(...leaf(flat, start, end, held, names)); };
  for (let i = from; i < to; i++) {
    const c = flat[i];
    const tag = marks[c];
    if (!tag || open.includes(c) || closed[c]) continue;
    if (i > from && word.test(flat[i - 1])) continue;
    if (i + 1 >= to || /\s/.test(flat[i + 1]) || flat[i + 1] === c) continue;
    const end = closing(flat, c, i + 2, to);
    if (end < 0) { closed[c] = true; continue; }
    text(i);
    out.push(h(tag, null, styled(flat, i + 1, end, held, names, open + c)));
    i = end;
    start = end + 1;
  }
  text(to);
  return out;
}

function closing(flat, c, from, to) {
  for (let j = flat.indexOf(c, from); j >= 0 && j < to; j = flat.indexOf(c, j + 1)) {
    if (!/\s/.test(flat[j - 1]) && (j + 1 >= to || !word.test(flat[j + 1]))) return j;
  }
  return -1;
}

const special = /:([a-z0-9_+\-']{1,60}):|https?:\/\/[^\s\ufffc]+|\ufffc/g;

function leaf(flat, from, to, held, names) {
  const text = flat.slice(from, to);
  const out = [];
  let at = 0;
  for (const m of text.matchAll(special)) {
    let node = null;
    let length = m[0].length;
    if (m[0] === stand) {
      if (held.has(from + m.index)) node = atom(held.get(from + m.index), names);
    } else if (m[1] !== undefined) {
      const char = emojiChar(m[1]);
      if (char) node = h('span', { class: 'emoji', role: 'img', 'aria-label': m[1], title: `:${m[1]}:` }, char);
    } else {
      const bare = bareAddress(m[0]);
      length = bare.length;
      if (bare.length > 8) node = link(unescape(bare), unescape(bare));
    }
    if (!node) continue;
    if (m.index > at) out.push(unescape(text.slice(at, m.index)));
    out.push(node);
    at = m.index + length;
  }
  if (at < text.length) out.push(unescape(text.slice(at)));
  return out;
}

/** An address as typed, without an escaped bracket behind it and the sentence's own marks. */
export function bareAddress(text) {
  const bracketAt = text.search(/&[lg]t;/);
  let end = bracketAt < 0 ? text.length : bracketAt;
  while (end > 0 && `.,;:!?'")]*_~`.includes(text[end - 1])) end--;
  return text.slice(0, end);
}

function atom(raw, names) {
  if (raw[0] === '`') return h('code', { class: 'code', dir: 'ltr' }, codeText(raw.slice(1, -1)));
  return bracket(raw, names) ?? unescape(raw);
}

/** What stands in angle brackets: a mention, a channel, a keyword or a link; null if none of them. */
export function bracket(raw, names) {
  const bar = raw.indexOf('|');
  const target = raw.slice(1, bar < 0 ? -1 : bar);
  const label = bar < 0 ? '' : unescape(raw.slice(bar + 1, -1));
  if (/^@[UW][A-Z0-9]+$/.test(target)) return mention(target.slice(1), label, names);
  if (/^#[CGD][A-Z0-9]+$/.test(target)) return channel(target.slice(1), label, names);
  if (/^!subteam\^[A-Z0-9]+$/.test(target)) return h('bdi', { class: 'mention' }, label || '@group');
  if (/^!(here|channel|everyone)$/.test(target)) return h('bdi', { class: 'mention to-me' }, `@${target.slice(1)}`);
  if (/^!date\^/.test(target)) return h('bdi', null, label || target);
  if (/^[a-z][a-z0-9+.\-]*:/i.test(target)) return link(unescape(target), label || unescape(target).replace(/^mailto:/, ''));
  return null;
}

/** A mention of a person or app. */
export function mention(id, label, names) {
  const user = names.user(id);
  return h('bdi', { class: user.me ? 'mention to-me' : 'mention', title: id, data: { user: id } },
    `@${user.known ? user.name : label.replace(/^@/, '') || id}`);
}

function channel(id, label, names) {
  const known = names.channel(id);
  const text = `#${known ? known.name : label.replace(/^#/, '') || id}`;
  if (!known) return h('bdi', { class: 'mention' }, text);
  return h('button', { type: 'button', class: 'channel-link', data: { channel: id } }, h('bdi', null, text));
}
