// Block Kit, as far as a reader needs it. What is not known is said, not dropped.

import { h, link } from './dom.js';
import { mrkdwn, inline, mention, bracket } from './mrkdwn.js';
import { markdown } from './markdown.js';
import { emojiText } from './emoji.js';

/** The nodes of a message's blocks, or an empty list when there is nothing to show. */
export function renderBlocks(blocks, names) {
  if (!Array.isArray(blocks)) return [];
  return blocks.map((b) => one(b ?? {}, names)).filter(Boolean);
}

function one(b, names) {
  switch (b.type) {
    case 'markdown': return h('div', { class: 'block md' }, markdown(b.text, names));
    case 'section': return section(b, names);
    case 'header': return h('p', { class: 'block md-heading md-h1', dir: 'auto' }, plain(b.text, names));
    case 'divider': return h('hr');
    case 'context': return h('div', { class: 'block context' }, (b.elements ?? []).map((e) =>
      h('span', { class: 'context-part', dir: 'auto' }, e.type === 'image' ? e.alt_text ?? 'image' : object(e, names))));
    case 'rich_text': return h('div', { class: 'block' }, (b.elements ?? []).map((e) => rich(e, names)));
    case 'image': return h('p', { class: 'block context', dir: 'auto' }, 'Image: ',
      b.image_url ? link(b.image_url, b.alt_text || b.image_url) : b.alt_text ?? '');
    case 'actions': return h('div', { class: 'block actions' }, (b.elements ?? []).map((e) => (
      e.url ? link(e.url, plain(e.text, names)) : h('button', { type: 'button', class: 'quiet', disabled: true }, plain(e.text, names) || e.type))));
    default: return h('p', { class: 'block context' }, `A block of type “${String(b.type).slice(0, 60)}” that this page does not draw.`);
  }
}

function section(b, names) {
  return h('div', { class: 'block' }, b.text && object(b.text, names),
    b.fields && h('div', { class: 'fields' }, b.fields.map((f) => h('div', { dir: 'auto' }, object(f, names)))));
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
