// What is known of the conversations of one person: read by history, kept fresh by
// events. No drawing here. While a conversation is being read its events wait, and
// are applied after it: every event may be applied twice, none is lost.

import { compareTS, laterTS } from './time.js';

const page = 60;

export class Store {
  constructor(api, directory, changed) {
    this.api = api;
    this.directory = directory;
    this.changed = changed;
    this.conversations = new Map();
    this.statuses = new Map();
    this.at = { channel: '', thread: '' };
    this.readKey = `local-slack-read/${directory.team.id ?? ''}/${directory.myId}`;
    try {
      this.read = JSON.parse(localStorage.getItem(this.readKey)) ?? {};
    } catch {
      this.read = {};
    }
  }

  /** Adds a conversation, or brings what the boot says of it up to date. */
  addConversation(c) {
    const old = this.conversations.get(c.id);
    if (old) return Object.assign(old, c);
    const conv = { ...c, messages: new Map(), threads: new Map(), notes: [], newThreads: new Set(),
      loaded: false, stale: true, more: false, cursor: '', latest: '', newSince: '', reading: 0, waiting: [], error: '' };
    this.conversations.set(c.id, conv);
    return conv;
  }

  get conv() {
    return this.conversations.get(this.at.channel);
  }

  /** The lines of the channel in order: roots, broadcasts and notes only this person sees. */
  timeline(conv) {
    const lines = [...conv.messages.values(), ...conv.notes.filter((n) => !n.thread_ts)];
    return lines.sort((a, b) => compareTS(a.ts, b.ts));
  }

  threadLines(conv, root) {
    const thread = conv.threads.get(root);
    const lines = [...(thread?.messages.values() ?? []), ...conv.notes.filter((n) => n.thread_ts === root)];
    return lines.sort((a, b) => compareTS(a.ts, b.ts));
  }

  find(conv, ts) {
    const found = conv.messages.get(ts);
    if (found) return found;
    for (const t of conv.threads.values()) if (t.messages.has(ts)) return t.messages.get(ts);
    return null;
  }

  // Reading.

  async reading(conv, work) {
    conv.reading++;
    try {
      await work();
    } finally {
      if (--conv.reading === 0) {
        const waiting = conv.waiting;
        conv.waiting = [];
        for (const event of waiting) this.take(conv, event);
      }
      this.changed();
    }
  }

  /** Reads the newest page; what is shown but no longer there goes. */
  async load(conv) {
    const again = conv.stale;
    conv.stale = false;
    try {
      await this.reading(conv, async () => {
        const answer = await this.api.call('conversations.history', { channel: conv.id, limit: page });
        const fresh = new Map(answer.messages.map((m) => [m.ts, m]));
        const oldest = answer.has_more ? answer.messages.at(-1)?.ts : '0';
        const gap = conv.loaded && answer.has_more && ![...fresh.keys()].some((ts) => conv.messages.has(ts));
        if (gap) conv.messages.clear();
        for (const ts of conv.messages.keys()) if (compareTS(ts, oldest) >= 0 && !fresh.has(ts)) conv.messages.delete(ts);
        const first = conv.messages.size === 0;
        for (const m of fresh.values()) conv.messages.set(m.ts, m);
        if (first) this.older(conv, answer);
        conv.latest = laterTS(conv.latest, answer.messages[0]?.ts ?? '');
        conv.loaded = true;
        conv.error = '';
      });
    } catch (e) {
      conv.stale = again;
      conv.error = e.message;
      this.changed();
      throw e;
    }
  }

  older(conv, answer) {
    conv.cursor = answer.response_metadata?.next_cursor ?? '';
    conv.more = Boolean(answer.has_more && conv.cursor);
  }

  /** Reads one page further back. */
  async loadOlder(conv) {
    if (!conv.more || conv.readingOlder) return;
    conv.readingOlder = true;
    try {
      await this.reading(conv, async () => {
        const answer = await this.api.call('conversations.history', { channel: conv.id, limit: page, cursor: conv.cursor });
        for (const m of answer.messages) conv.messages.set(m.ts, m);
        this.older(conv, answer);
      });
    } finally {
      conv.readingOlder = false;
    }
  }

  /** Reads a whole thread. */
  async loadThread(conv, root) {
    const thread = conv.threads.get(root) ?? { messages: new Map(), loaded: false };
    conv.threads.set(root, thread);
    await this.reading(conv, async () => {
      const fresh = new Map();
      let cursor = '';
      do {
        const answer = await this.api.call('conversations.replies', { channel: conv.id, ts: root, limit: 200, cursor: cursor || null });
        for (const m of answer.messages) fresh.set(m.ts, m);
        cursor = answer.has_more ? answer.response_metadata?.next_cursor : '';
      } while (cursor);
      thread.messages = fresh;
      thread.loaded = true;
      const top = fresh.get(root);
      if (top && conv.messages.has(root)) conv.messages.set(root, top);
    });
  }

  /** Reads the newest ts of a conversation that is not open, for its unread dot. */
  async peek(conv) {
    const answer = await this.api.call('conversations.history', { channel: conv.id, limit: 1 });
    const newest = answer.messages[0];
    if (newest) conv.latest = laterTS(conv.latest, newest.ts);
    if (!(conv.id in this.read)) this.markRead(conv);
    this.changed();
  }

  /** Reads the root of a thread again: its count of replies is Slack's to say. */
  async refreshRoot(conv, root) {
    if (conv.refreshing?.has(root)) return;
    conv.refreshing = (conv.refreshing ?? new Set()).add(root);
    try {
      await this.reading(conv, async () => {
        const answer = await this.api.call('conversations.replies', { channel: conv.id, ts: root, limit: 1 });
        const top = answer.messages.find((m) => m.ts === root);
        if (top && conv.messages.has(root)) conv.messages.set(root, top);
        if (top) conv.threads.get(root)?.messages.set(root, top);
      });
    } catch (e) {
      // Otherwise the count stays as it was counted here; the next reading brings it right.
      if (e.code === 'thread_not_found') this.forget(conv, root);
    } finally {
      conv.refreshing.delete(root);
    }
  }

  // What has been seen.

  unread(conv) {
    return conv.newThreads.size > 0 || compareTS(conv.latest, this.read[conv.id] ?? conv.latest) > 0;
  }

  markRead(conv) {
    if (conv.id in this.read && compareTS(this.read[conv.id], conv.latest || '0') >= 0) return;
    this.read[conv.id] = conv.latest || '0';
    try {
      localStorage.setItem(this.readKey, JSON.stringify(this.read));
    } catch {
      // A full or closed store costs only the dots of the next visit.
    }
  }

  // Events.

  event(event) {
    if (event.type === 'assistant_status') this.status(event);
    else {
      const conv = this.conversations.get(event.channel ?? event.item?.channel);
      if (!conv) return false;
      if (conv.reading > 0) conv.waiting.push(event);
      else this.take(conv, event);
    }
    this.changed();
    return true;
  }

  take(conv, e) {
    if (e.type === 'ephemeral') this.note(conv, e);
    else if (e.type === 'reaction_added' || e.type === 'reaction_removed') this.react(conv, e);
    else if (e.type !== 'message') return;
    else if (e.subtype === 'message_changed') this.change(conv, e.message ?? {});
    else if (e.subtype === 'message_deleted') this.remove(conv, e.deleted_ts ?? e.previous_message?.ts, e.previous_message);
    else if (e.subtype === 'message_replied') this.refreshRoot(conv, e.message?.ts ?? e.thread_ts);
    else this.message(conv, e);
  }

  message(conv, m) {
    const reply = m.thread_ts && m.thread_ts !== m.ts;
    if (!reply || m.subtype === 'thread_broadcast') {
      conv.messages.set(m.ts, { ...conv.messages.get(m.ts), ...m });
      conv.latest = laterTS(conv.latest, m.ts);
    }
    if (reply) this.reply(conv, m);
    else conv.threads.get(m.ts)?.messages.set(m.ts, { ...conv.threads.get(m.ts).messages.get(m.ts), ...m });
    if (m.bot_id) this.clearStatus(conv.id, m.thread_ts || m.ts, this.directory.user(m.user ?? m.bot_id).id);
  }

  reply(conv, m) {
    const thread = conv.threads.get(m.thread_ts);
    const known = thread?.messages.has(m.ts);
    thread?.messages.set(m.ts, { ...thread.messages.get(m.ts), ...m });
    const open = this.at.channel === conv.id && this.at.thread === m.thread_ts;
    if (!known && !open && m.user !== this.directory.myId) conv.newThreads.add(m.thread_ts);
    const root = conv.messages.get(m.thread_ts);
    if (!root || known) return;
    if (compareTS(m.ts, root.latest_reply ?? '') <= 0) { this.refreshRoot(conv, m.thread_ts); return; }
    const users = root.reply_users ?? [];
    const who = m.user ?? m.bot_id;
    conv.messages.set(root.ts, { ...root, thread_ts: root.ts, reply_count: (root.reply_count ?? 0) + 1, latest_reply: m.ts,
      reply_users: users.includes(who) ? users : [...users, who] });
  }

  change(conv, m) {
    for (const map of [conv.messages, ...[...conv.threads.values()].map((t) => t.messages)]) {
      const old = map.get(m.ts);
      if (!old) continue;
      // An edit says what the message now holds; what only the thread's root knows stays.
      const { reply_count, reply_users, reply_users_count, latest_reply, reactions, thread_ts } = old;
      const kept = Object.fromEntries(Object.entries({ reply_count, reply_users, reply_users_count, latest_reply, reactions, thread_ts })
        .filter(([, v]) => v !== undefined));
      map.set(m.ts, { ...kept, ...m });
    }
  }

  remove(conv, ts, previous) {
    const root = previous?.thread_ts ?? this.find(conv, ts)?.thread_ts;
    this.forget(conv, ts);
    if (root && root !== ts) this.refreshRoot(conv, root);
  }

  forget(conv, ts) {
    conv.messages.delete(ts);
    for (const t of conv.threads.values()) t.messages.delete(ts);
  }

  react(conv, e) {
    const { ts } = e.item ?? {};
    for (const map of [conv.messages, ...[...conv.threads.values()].map((t) => t.messages)]) {
      const m = map.get(ts);
      if (!m) continue;
      const reactions = (m.reactions ?? []).map((r) => ({ ...r, users: (r.users ?? []).filter((u) => r.name !== e.reaction || u !== e.user) }));
      let mine = reactions.find((r) => r.name === e.reaction);
      if (e.type === 'reaction_added') {
        if (!mine) reactions.push(mine = { name: e.reaction, users: [] });
        mine.users.push(e.user);
      }
      map.set(ts, { ...m, reactions: reactions.map((r) => ({ ...r, count: r.users.length })).filter((r) => r.count > 0) });
    }
  }

  note(conv, e) {
    const ts = e.ts ?? e.message_ts ?? `${(Date.now() / 1000).toFixed(3)}000`;
    if (conv.notes.some((n) => n.ts === ts)) return;
    conv.notes.push({ ...e, ts, ephemeral: true });
    if (e.thread_ts && this.at.thread !== e.thread_ts) conv.newThreads.add(e.thread_ts);
  }

  dismiss(conv, ts) {
    conv.notes = conv.notes.filter((n) => n.ts !== ts);
    this.changed();
  }

  // What an app says it is doing. Slack drops a status after two minutes.

  status(e) {
    const key = `${e.channel}/${e.thread_ts}`;
    const app = (this.directory.byName(e.app) ?? this.directory.user(e.app)).id;
    clearTimeout(this.statuses.get(key)?.get(app)?.timer);
    if (!e.status) { this.clearStatus(e.channel, e.thread_ts, app); return; }
    const timer = setTimeout(() => { this.clearStatus(e.channel, e.thread_ts, app); this.changed(); }, 120_000);
    if (!this.statuses.has(key)) this.statuses.set(key, new Map());
    this.statuses.get(key).set(app, { text: e.status, loading: e.loading_messages ?? [], timer });
  }

  clearStatus(channel, thread, app) {
    const apps = this.statuses.get(`${channel}/${thread}`);
    clearTimeout(apps?.get(app)?.timer);
    apps?.delete(app);
  }

  clearStatuses() {
    for (const apps of this.statuses.values()) for (const s of apps.values()) clearTimeout(s.timer);
    this.statuses.clear();
  }

  /** The lines that say what apps are doing in a thread: “smith is thinking…”. */
  statusLines(channel, thread) {
    return [...(this.statuses.get(`${channel}/${thread}`) ?? [])].map(([app, s]) => {
      const text = String(s.text).trim();
      const more = s.loading.map((t) => String(t).trim()).filter((t) => t && t !== text);
      return { name: this.directory.user(app).name, text, more: more.slice(0, 3).join(' · ') };
    });
  }
}
