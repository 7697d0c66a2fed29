// One message as a row.

import { h, icon, plainName } from './dom.js';
import { mrkdwn } from './mrkdwn.js';
import { renderAttachment, renderBlocks, restates } from './blocks.js';
import { emojiText } from './emoji.js';
import { hue, initials } from './directory.js';
import { ago, clockTime, fullTime } from './time.js';

/** The picture of someone. Decoration: the name stands beside it. */
export function avatar(person, size = '') {
  return h('span', { class: `avatar hue-${hue(person.id)} ${person.app ? 'of-app' : ''} ${size}`, 'aria-hidden': 'true' }, initials(person.name));
}

export function badge(person) {
  if (person.app) return h('span', { class: 'badge' }, 'BOT');
  if (person.kind === 'guest') return h('span', { class: 'badge soft' }, 'guest');
  if (person.kind === 'outsider') return h('span', { class: 'badge soft' }, 'other team');
  return null;
}

/**
 * Draws a row. ctx: {names, inThread, compact, act, statuses, unreadThread, editor}.
 * act holds what the row's own buttons do.
 */
export function messageRow(m, ctx) {
  const author = ctx.names.author(m);
  const gone = m.subtype === 'tombstone';
  const row = h('article', {
    class: `row ${ctx.compact ? 'compact' : ''} ${m.ephemeral ? 'note' : ''} ${gone ? 'gone' : ''}`,
    tabindex: '-1', data: { ts: m.ts }, 'aria-label': `${author.name}, ${clockTime(m.ts)}${m.ephemeral ? ', only visible to you' : ''}` });
  const time = h('time', { class: 'time', title: fullTime(m.ts) }, clockTime(m.ts));
  const body = h('div', { class: 'body' });
  if (ctx.compact) {
    row.append(h('span', { class: 'gutter' }, time));
  } else {
    row.append(h('span', { class: 'gutter' }, gone ? h('span', { class: 'avatar gone' }, icon('bin')) : avatar(author)));
    if (!gone) {
      body.append(h('div', { class: 'head' }, h('bdi', { class: 'name', title: author.id }, author.name), badge(author), time,
        m.subtype === 'thread_broadcast' && !ctx.inThread && h('span', { class: 'aside' }, 'replied to a thread')));
    }
  }
  if (m.ephemeral) {
    body.append(h('div', { class: 'only-you' }, 'Only visible to you',
      h('button', { type: 'button', class: 'text-button', on: { click: () => ctx.act.dismiss(m) } }, 'Dismiss')));
  }
  row.append(body);
  if (ctx.editor) {
    body.append(ctx.editor);
    return row;
  }
  body.append(content(m, ctx, gone));
  if (m.files?.length && !gone) body.append(h('div', { class: 'files' }, m.files.map((f) => fileCard(f, ctx.act))));
  if (m.reactions?.length && !gone) body.append(reactions(m, ctx));
  if (!ctx.inThread) body.append(...threadLine(m, ctx));
  return row;
}

function content(m, ctx, gone) {
  const box = h('div', { class: 'content', dir: 'auto' });
  if (gone) {
    box.append('This message was deleted.');
    return box;
  }
  const drawn = restates(m.blocks, m.text) ? [] : renderBlocks(m.blocks, ctx.names, m.ephemeral ? null : (action) => ctx.act.press(m, action));
  box.append(...(drawn.length ? drawn : mrkdwn(m.text, ctx.names)));
  for (const a of m.attachments ?? []) box.append(renderAttachment(a, ctx.names));
  if (m.edited) {
    const mark = h('span', { class: 'edited', title: `Edited ${fullTime(m.edited.ts)}` }, '(edited)');
    const last = box.lastElementChild;
    if (last?.classList.contains('para')) last.append(' ', mark);
    else box.append(mark);
  }
  return longText(m, box);
}

/** A very long text is folded; it is all there, one click away. */
function longText(m, box) {
  const length = (m.text ?? '').length + JSON.stringify(m.blocks ?? '').length;
  if (length < 6000 && ((m.text ?? '').match(/\n/g)?.length ?? 0) < 80) return box;
  box.classList.add('folded');
  const more = h('button', { type: 'button', class: 'text-button more', 'aria-expanded': 'false', on: { click: () => {
    const open = !box.classList.toggle('folded');
    more.setAttribute('aria-expanded', String(open));
    more.textContent = open ? 'Show less' : 'Show all';
  } } }, 'Show all');
  return h('div', null, box, more);
}

function reactions(m, ctx) {
  return h('div', { class: 'reactions' }, m.reactions.map((r) => {
    const mine = r.users?.includes(ctx.names.myId);
    const who = (r.users ?? []).map((u) => ctx.names.user(u).name).join(', ');
    return h('button', { type: 'button', class: `reaction ${mine ? 'mine' : ''}`, 'aria-pressed': String(Boolean(mine)), data: { name: r.name },
      'aria-label': `${r.name}, ${r.count}: ${who}`, title: `${who} reacted with :${r.name}:`,
      on: { click: () => ctx.act.react(m, r.name) } },
    h('bdi', { class: 'emoji' }, emojiText(r.name)), h('span', { class: 'count' }, r.count));
  }), h('button', { type: 'button', class: 'reaction add', 'aria-label': 'Add a reaction', title: 'Add a reaction',
    on: { click: (e) => ctx.act.pick(m, e.currentTarget) } }, icon('smile')));
}

function threadLine(m, ctx) {
  const out = [];
  const doing = ctx.statuses(m.ts);
  if (m.reply_count > 0) {
    const faces = (m.reply_users ?? []).slice(0, 4).map((u) => avatar(ctx.names.user(u), 'tiny'));
    out.push(h('button', { type: 'button', class: `replies ${ctx.unreadThread(m.ts) ? 'new' : ''}`, on: { click: () => ctx.act.openThread(m.ts) } },
      h('span', { class: 'faces' }, faces),
      h('span', { class: 'reply-count' }, m.reply_count === 1 ? '1 reply' : `${m.reply_count} replies`),
      ctx.unreadThread(m.ts) && h('span', { class: 'new-mark' }, 'new'),
      h('span', { class: 'aside' }, m.latest_reply ? ago(m.latest_reply) : '')));
  }
  for (const s of doing) {
    out.push(h('button', { type: 'button', class: 'status-link', on: { click: () => ctx.act.openThread(m.ts) } }, statusNodes(s)));
  }
  return out;
}

/** “smith is thinking…”, with what it says beside it. */
export function statusNodes(s) {
  return [h('span', { class: 'pulse', 'aria-hidden': 'true' }), h('bdi', { class: 'status-name' }, s.name), ' ', h('bdi', null, s.text),
    s.more && h('span', { class: 'aside' }, ' · ', h('bdi', null, s.more))];
}

// Files. Their bytes are fetched with the person's token, so an address alone shows nobody anything.

const pictures = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const previewLimit = 8 << 20;

function fileCard(f, act) {
  const name = plainName(f.name || f.title || f.id);
  if (f.mode === 'tombstone') return h('div', { class: 'file' }, icon('file'), h('span', { class: 'aside' }, 'This file was deleted.'));
  const save = h('button', { type: 'button', class: 'file', title: `Download ${name}`, data: { file: f.id }, on: { click: () => act.download(f, name) } },
    icon('file'), h('span', { class: 'file-text' }, h('bdi', { class: 'file-name' }, name), h('span', { class: 'aside' }, fileSize(f))), icon('get'));
  if (!pictures.has(f.mimetype) || !f.url_private || f.size > previewLimit) return save;
  const img = h('img', { class: 'preview', alt: name, loading: 'lazy' });
  act.picture(f).then((url) => { img.src = url; }, () => img.remove());
  return h('div', { class: 'picture' }, h('button', { type: 'button', class: 'preview-button', 'aria-label': `Open ${name}`,
    on: { click: () => act.view(f, name) } }, img), save);
}

function fileSize(f) {
  const n = Number(f.size) || 0;
  const size = n < 1000 ? `${n} bytes` : n < 1e6 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
  return f.pretty_type ? `${f.pretty_type} · ${size}` : size;
}
