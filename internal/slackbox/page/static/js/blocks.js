// Block Kit, as far as a reader needs it. What is not known is said, not dropped.

import { h, link } from './dom.js';
import { mrkdwn, inline, mention, bracket, unescape } from './mrkdwn.js';
import { markdown } from './markdown.js';
import { emojiText } from './emoji.js';

/**
 * The nodes of a message's blocks, or an empty list when there is nothing to show.
 * press(action) is called for a button; without it buttons are only shown.
 */
export function renderBlocks(blocks, names, press) {
  if (!Array.isArray(blocks)) return [];
  return blocks.map((b) => one(b ?? {}, names, press)).filter(Boolean);
}

/**
 * Whether the blocks are only Slack's own restatement of the text: one rich text
 * without any style. The text then says more, as its *marks* are drawn.
 */
export function restates(blocks, text) {
  if (!Array.isArray(blocks) || blocks.length !== 1 || blocks[0]?.type !== 'rich_text') return false;
  let said = '';
  for (const part of blocks[0].elements ?? []) {
    if (part.type !== 'rich_text_section') return false;
    for (const e of part.elements ?? []) {
      if (e.style) return false;
      if (e.type === 'text') said += e.text ?? '';
      else if (e.type === 'user') said += `<@${e.user_id}>`;
      else if (e.type === 'channel') said += `<#${e.channel_id}>`;
      else if (e.type === 'broadcast') said += `<!${e.range}>`;
      else if (e.type === 'link') said += e.text || e.url;
      else if (e.type === 'emoji') said += `:${e.name}:`;
      else return false;
    }
  }
  return said === unescape(String(text ?? '').replace(/<([^<>]+)>/g, (whole, inner) => {
    const [target, label] = inner.split('|');
    return '@#!'.includes(target[0]) ? `<${target}>` : label || target;
  }));
}

function one(b, names, press) {
  switch (b.type) {
    case 'markdown': return h('div', { class: 'block md' }, markdown(b.text, names));
    case 'section': return section(b, names, press);
    case 'header': return h('p', { class: 'block md-heading md-h1', dir: 'auto' }, plain(b.text, names));
    case 'divider': return h('hr');
    case 'context': return h('div', { class: 'block context' }, (b.elements ?? []).map((e) =>
      h('span', { class: 'context-part', dir: 'auto' }, e.type === 'image' ? e.alt_text ?? 'image' : object(e, names))));
    case 'rich_text': return h('div', { class: 'block' }, (b.elements ?? []).map((e) => rich(e, names)));
    case 'image': return h('p', { class: 'block context', dir: 'auto' }, 'Image: ',
      b.image_url ? link(b.image_url, b.alt_text || b.image_url) : b.alt_text ?? '');
    case 'actions': return h('div', { class: 'block actions' }, (b.elements ?? []).map((e) => element(e, b, names, press)));
    default: return h('p', { class: 'block context' }, `A block of type “${String(b.type).slice(0, 60)}” that this page does not draw.`);
  }
}

function element(e, b, names, press) {
  if (e.url) return link(e.url, plain(e.text, names));
  const can = press && e.type === 'button';
  return h('button', { type: 'button', class: 'quiet', disabled: !can, title: can ? null : 'This page only knows buttons.', on: { click: () => can && press({
    type: 'button', action_id: e.action_id, block_id: b.block_id, value: e.value, text: e.text }) } }, e.text ? plain(e.text, names) : e.type);
}

function section(b, names, press) {
  return h('div', { class: 'block' }, b.text && object(b.text, names),
    b.fields && h('div', { class: 'fields' }, b.fields.map((f) => h('div', { dir: 'auto' }, object(f, names)))),
    b.accessory && b.accessory.type !== 'image' && element(b.accessory, b, names, press));
}

function object(o, names) {
  return o?.type === 'plain_text' ? plain(o, names) : mrkdwn(o?.text, names);
}

function plain(o, names) {
  const text = String(o?.text ?? '');
  return text.split(/(:[a-z0-9_+\-']+:)/).map((part, i) => (i % 2 ? emojiText(part.slice(1, -1)) : part));
}

function rich(e, names) {
  const inner = () => (e.elements ?? []).map((x) => richText(x, names));
  switch (e.type) {
    case 'rich_text_preformatted': return h('pre', { class: 'code-block', dir: 'ltr' }, h('code', null, inner()));
    case 'rich_text_quote': return h('blockquote', { dir: 'auto' }, inner());
    case 'rich_text_list': return h(e.style === 'ordered' ? 'ol' : 'ul', null,
      (e.elements ?? []).map((x) => h('li', { dir: 'auto' }, (x.elements ?? []).map((y) => richText(y, names)))));
    default: return h('div', { class: 'para pre', dir: 'auto' }, inner());
  }
}

function richText(x, names) {
  let node;
  switch (x.type) {
    case 'text': node = String(x.text ?? ''); break;
    case 'user': return mention(String(x.user_id), '', names);
    case 'channel': return bracket(`<#${x.channel_id}>`, names) ?? `#${x.channel_id}`;
    case 'broadcast': return h('bdi', { class: 'mention to-me' }, `@${x.range}`);
    case 'usergroup': return h('bdi', { class: 'mention' }, '@group');
    case 'link': node = link(x.url, x.text || x.url); break;
    case 'emoji': return h('span', { class: 'emoji', title: `:${x.name}:` }, emojiText(x.name));
    default: node = String(x.text ?? '');
  }
  const style = x.style ?? {};
  if (style.code) node = h('code', { class: 'code', dir: 'ltr' }, node);
  if (style.bold) node = h('strong', null, node);
  if (style.italic) node = h('em', null, node);
  if (style.strike) node = h('s', null, node);
  return node;
}

/** The nodes of an old-style attachment. */
export function renderAttachment(a, names) {
  return h('div', { class: 'attachment', dir: 'auto' },
    a.pretext && inline(String(a.pretext), names),
    a.title && h('p', { class: 'attachment-title' }, a.title_link ? link(a.title_link, a.title) : a.title),
    a.blocks ? renderBlocks(a.blocks, names) : mrkdwn(a.text ?? a.fallback ?? '', names));
}
