// A list of rows: days, a line where the unread begins, grouping, and a scroll
// position that stays where the reader put it. Rows that did not change are kept.

import { h, icon, iconButton, setChildren } from './dom.js';
import { messageRow } from './message.js';
import { compareTS, dateOf, dayKey, dayName } from './time.js';

const groupSeconds = 300;

export class Timeline {
  /** what: {label, inThread, act, older()}. */
  constructor(what) {
    this.what = what;
    this.rows = new Map();
    this.list = h('div', { class: 'rows', role: 'log', 'aria-label': what.label, 'aria-live': 'polite', 'aria-relevant': 'additions' });
    this.top = h('div', { class: 'top-of-list' });
    this.jump = h('button', { type: 'button', class: 'jump', hidden: true, on: { click: () => this.toEnd() } }, icon('down'), 'Newest');
    this.scroll = h('div', { class: 'scroll' }, this.top, this.list);
    this.el = h('div', { class: 'timeline' }, this.scroll, this.jump);
    this.atEnd = true;
    this.lastTop = 0;
    this.toolbar = this.makeToolbar();
    this.scroll.addEventListener('scroll', () => this.scrolled(), { passive: true });
    new ResizeObserver(() => { if (this.atEnd) this.toEnd(); }).observe(this.list);
    new ResizeObserver(() => { if (this.atEnd) this.toEnd(); }).observe(this.scroll);
    this.list.addEventListener('pointerover', (e) => this.offer(e.target.closest?.('.row'), false));
    this.list.addEventListener('focusin', (e) => this.offer(e.target.closest?.('.row'), true));
    this.list.addEventListener('pointerleave', () => { if (!this.list.contains(document.activeElement)) this.toolbar.remove(); });
    this.list.addEventListener('keydown', (e) => this.key(e));
  }

  /** Draws lines. state: {key, names, editing, editor, statuses, unreadThread, newSince, more, empty, busy}. */
  draw(lines, state) {
    if (this.key0 !== state.key) {
      this.key0 = state.key;
      this.rows.clear();
      this.list.replaceChildren();
      this.atEnd = true;
    }
    const anchor = this.atEnd ? null : this.firstInSight();
    const kept = new Map();
    const nodes = [];
    let last = null;
    let lastDay = '';
    let marked = !state.newSince;
    for (const m of lines) {
      const day = dayKey(m.ts);
      if (day !== lastDay) {
        nodes.push(this.keep(kept, `day ${day}`, dayName(m.ts), () => h('div', { class: 'day' }, h('span', null, dayName(m.ts)))));
        last = null;
        lastDay = day;
      }
      if (!marked && compareTS(m.ts, state.newSince) > 0 && m.user !== state.names.myId) {
        marked = true;
        nodes.push(this.keep(kept, 'new', '', () => h('div', { class: 'new-line' }, h('span', null, 'New'))));
        last = null;
      }
      const compact = Boolean(last && this.follows(last, m));
      const editing = state.editing === m.ts;
      const unread = state.unreadThread(m.ts);
      // While a row is edited nothing that happens to its message takes the text away.
      const sign = editing ? 'editing' : JSON.stringify([m, compact, unread, state.statuses(m.ts)]);
      nodes.push(this.keep(kept, m.ts, sign, () => messageRow(m, { names: state.names, inThread: this.what.inThread, compact, act: this.what.act,
        statuses: state.statuses, unreadThread: state.unreadThread, editor: editing ? state.editor(m) : null })));
      last = m;
      if (this.what.inThread && m.ts === lines[0].ts && lines.length > 1) {
        const count = lines.filter((l) => !l.ephemeral).length - 1;
        if (count > 0) nodes.push(this.keep(kept, 'count', String(count), () => h('div', { class: 'thread-rule' }, h('span', null, count === 1 ? '1 reply' : `${count} replies`))));
        last = null;
      }
    }
    const focused = this.list.contains(document.activeElement) ? document.activeElement.closest('.row')?.dataset.ts : null;
    this.rows = kept;
    this.lines = new Map(lines.map((m) => [m.ts, m]));
    setChildren(this.list, nodes);
    this.setTop(state);
    if (focused && !this.list.contains(document.activeElement)) this.rows.get(focused)?.node.focus({ preventScroll: true });
    const lastRow = [...this.list.querySelectorAll('.row')].at(-1);
    if (lastRow && !this.list.querySelector('.row[tabindex="0"]')) lastRow.tabIndex = 0;
    if (this.atEnd) this.toEnd();
    else if (anchor && this.rows.has(anchor.key)) {
      this.scroll.scrollTop += this.rows.get(anchor.key).node.getBoundingClientRect().top - anchor.top;
      this.lastTop = this.scroll.scrollTop;
    }
    this.jump.hidden = this.atEnd;
  }

  /** The row that the reader's eye is held by while others come above it. */
  firstInSight() {
    const edge = this.scroll.getBoundingClientRect().top;
    for (const [key, { node }] of this.rows) {
      const r = node.getBoundingClientRect();
      if (node.dataset.ts && r.bottom > edge) return { key, top: r.top };
    }
    return null;
  }

  keep(kept, key, sign, make) {
    const old = this.rows.get(key);
    const entry = old && old.sign === sign ? old : { sign, node: make() };
    if (old && entry !== old && this.toolbar.parentNode === old.node) entry.node.append(this.toolbar);
    kept.set(key, entry);
    return entry.node;
  }

  follows(a, b) {
    return !a.ephemeral && !b.ephemeral && a.subtype !== 'tombstone' && b.subtype !== 'tombstone' && b.subtype !== 'thread_broadcast' &&
      (a.user ?? a.bot_id) === (b.user ?? b.bot_id) && dateOf(b.ts) - dateOf(a.ts) < groupSeconds * 1000;
  }

  setTop(state) {
    const kind = state.error ? `error ${state.error}` : state.busy ? 'busy' : state.more ? 'more' : state.empty ?? '';
    if (this.topKind === kind && this.topKey === state.key) return;
    this.topKind = kind;
    this.topKey = state.key;
    if (state.error) this.top.replaceChildren(h('p', { class: 'aside', role: 'alert' }, state.error));
    else if (state.busy) this.top.replaceChildren(h('p', { class: 'aside' }, 'Loading…'));
    else if (state.more) this.top.replaceChildren(h('button', { type: 'button', class: 'quiet', on: { click: () => this.what.older() } }, 'Show older messages'));
    else this.top.replaceChildren(...(state.empty ? [h('p', { class: 'beginning' }, state.empty)] : []));
  }

  scrolled() {
    const s = this.scroll;
    if (s.clientHeight === 0) return;
    // Only the reader's own way up leaves the end; what grows below does not.
    const up = s.scrollTop < this.lastTop - 1;
    this.lastTop = s.scrollTop;
    if (s.scrollHeight - s.scrollTop - s.clientHeight < 60) this.atEnd = true;
    else if (up) this.atEnd = false;
    this.jump.hidden = this.atEnd;
    if (s.scrollTop < 120 && this.topKind === 'more') this.what.older();
  }

  toEnd() {
    this.scroll.scrollTop = this.scroll.scrollHeight;
    this.lastTop = this.scroll.scrollTop;
    this.atEnd = true;
    this.jump.hidden = true;
  }

  // The actions of a row stand in the one row that is pointed at or focused.

  makeToolbar() {
    const act = this.what.act;
    const run = (what) => (e) => { const m = this.current(); if (m) what(m, e.currentTarget); };
    const bar = h('div', { class: 'tools', role: 'toolbar', 'aria-label': 'Message actions' });
    this.tools = {
      react: iconButton('smile', 'React', run((m, b) => act.pick(m, b))),
      reply: iconButton('reply', 'Reply in thread', run((m) => act.openThread(m.thread_ts || m.ts))),
      edit: iconButton('edit', 'Edit', run((m) => act.edit(m, this.what.inThread))),
      bin: iconButton('bin', 'Delete', run((m) => act.remove(m))),
      info: iconButton('info', 'Show metadata', run((m) => act.metadata(m))),
    };
    return bar;
  }

  current() {
    return this.lines.get(this.toolbar.closest('.row')?.dataset.ts);
  }

  offer(row, byFocus) {
    if (!row || row === this.toolbar.parentNode || row.contains(this.toolbar)) return;
    if (!byFocus && this.toolbar.contains(document.activeElement)) this.toolbar.parentNode.focus({ preventScroll: true });
    const m = this.lines?.get(row.dataset.ts);
    if (!m || m.ephemeral || row.querySelector('.editor')) { this.toolbar.remove(); return; }
    const mine = m.user === this.what.act.myId() && !m.bot_id;
    const gone = m.subtype === 'tombstone';
    const t = this.tools;
    this.toolbar.replaceChildren(...[!gone && t.react, !this.what.inThread && t.reply, mine && !gone && t.edit, mine && !gone && t.bin, t.info].filter(Boolean));
    row.append(this.toolbar);
  }

  key(e) {
    const row = e.target.closest('.row');
    if (!row || e.target !== row || e.ctrlKey || e.metaKey || e.altKey) return;
    const m = this.lines.get(row.dataset.ts);
    const rows = [...this.list.querySelectorAll('.row')];
    const go = (to) => { if (!to) return; row.tabIndex = -1; to.tabIndex = 0; to.focus(); };
    const act = this.what.act;
    const mine = m && m.user === act.myId() && !m.bot_id && !m.ephemeral;
    const keys = {
      ArrowUp: () => go(rows[rows.indexOf(row) - 1]),
      ArrowDown: () => go(rows[rows.indexOf(row) + 1]),
      Home: () => go(rows[0]),
      End: () => go(rows.at(-1)),
      r: () => !m.ephemeral && act.pick(m, row),
      t: () => !m.ephemeral && act.openThread(m.thread_ts || m.ts),
      e: () => mine && act.edit(m, this.what.inThread),
      Delete: () => mine && act.remove(m),
    };
    if (!m || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  }
}
