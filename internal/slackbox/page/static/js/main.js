// The page of the local Slack: one person at a time, by that person's own token.

import { h, plainName } from './dom.js';
import { Api } from './api.js';
import { Stream } from './stream.js';
import { Directory } from './directory.js';
import { Store } from './store.js';
import { Sidebar } from './sidebar.js';
import { ChannelPane, ThreadPane } from './panes.js';
import { confirmDelete, pickEmoji, showPicture, showRaw } from './popup.js';
import { encode, decode } from './draft.js';

const $ = (id) => document.getElementById(id);
const pictures = new Map();

class App {
  constructor() {
    this.act = this.actions();
    this.editing = null;
    this.sidebar = new Sidebar($('side'), {
      become: (id) => this.become(id), open: (conv) => this.open(conv.id), openDM: (p) => this.attempt(() => this.openDM(p)) });
    this.channelPane = new ChannelPane($('channel'), this);
    this.threadPane = new ThreadPane($('thread'), this);
    addEventListener('popstate', () => this.follow(new URLSearchParams(location.search)));
    document.addEventListener('click', (e) => {
      const to = e.target.closest?.('.channel-link')?.dataset.channel;
      if (to && this.store.conversations.has(to)) this.open(to);
    });
    document.addEventListener('keydown', (e) => { if (e.key === 'Escape' && !e.defaultPrevented && this.store?.at.thread && !document.querySelector('dialog[open]')) this.closeThread(); });
    document.addEventListener('visibilitychange', () => this.seen());
    // A file dropped beside a pane must not replace the page.
    for (const type of ['dragover', 'drop']) document.addEventListener(type, (e) => e.preventDefault());
    setInterval(() => this.changed(), 60_000);
  }

  // Being someone.

  async start() {
    const where = new URLSearchParams(location.search);
    for (let wait = 250; ; wait = Math.min(5000, wait * 2)) {
      try {
        await this.readBoot();
        break;
      } catch {
        this.down(true);
        await new Promise((done) => setTimeout(done, wait));
      }
    }
    const wanted = this.people.find((p) => p.name === where.get('as') || p.id === where.get('as'));
    this.become((wanted ?? this.people[0]).id, where);
  }

  async readBoot() {
    const answer = await fetch('/_page/boot', { cache: 'no-store' });
    if (!answer.ok) throw new Error(`boot: ${answer.status}`);
    this.boot = await answer.json();
    this.people = this.boot.users.filter((u) => u.token && u.kind !== 'deactivated').map((u) => ({ ...u, name: plainName(u.name) }));
  }

  become(id, where = new URLSearchParams({ channel: this.channelName() })) {
    this.stream?.close();
    this.store?.clearStatuses();
    this.editing = null;
    const me = this.people.find((p) => p.id === id);
    this.api = new Api(me.token);
    this.directory = new Directory(this.boot, me.id);
    const store = new Store(this.api, this.directory, () => this.changed());
    this.store = store;
    this.ready = false;
    this.first = where;
    this.stream = new Stream(me.token, {
      open: () => this.joined(store),
      event: (e) => this.event(store, e),
      down: () => this.down(true),
    });
    this.changed();
  }

  /** The stream is there: whatever was missed meanwhile is read now. */
  async joined(store) {
    try {
      await this.readBoot();
      const me = this.people.find((p) => p.id === this.directory.myId);
      if (me?.token !== this.api.token) { this.become((me ?? this.people[0]).id); return; }
      await this.readConversations(store);
      if (store !== this.store) return;
      store.clearStatuses();
      for (const s of this.boot.statuses ?? []) store.status(s);
      for (const conv of store.conversations.values()) conv.stale = true;
      this.down(false);
      if (!this.ready) {
        this.ready = true;
        this.follow(this.first, true);
      } else {
        this.arrive();
      }
      for (const conv of store.conversations.values()) if (conv !== store.conv) await store.peek(conv).catch(() => {});
    } catch {
      if (store === this.store) this.stream.source?.onerror?.();
    }
  }

  async readConversations(store) {
    let cursor = '';
    const seen = new Set();
    do {
      const answer = await this.api.call('users.conversations', { types: 'public_channel,private_channel,mpim,im', limit: 200, exclude_archived: true, cursor: cursor || null });
      for (const c of answer.channels ?? []) {
        seen.add(c.id);
        const kind = c.is_im ? 'im' : 'channel';
        store.addConversation({ id: c.id, name: plainName(c.name ?? c.id), kind, user: c.user, is_private: c.is_private && !c.is_im, is_ext_shared: c.is_ext_shared });
        if (!c.is_im) this.directory.channels.set(c.id, { id: c.id, name: plainName(c.name ?? c.id) });
      }
      cursor = answer.response_metadata?.next_cursor;
    } while (cursor);
    for (const id of store.conversations.keys()) if (!seen.has(id)) store.conversations.delete(id);
  }

  event(store, e) {
    if (store !== this.store) return;
    const known = store.event(e);
    if (!known && e.channel) this.discover(store);
    if (e.type === 'message') this.seen();
  }

  /** A line came in a conversation that is not known: a new channel or a first direct message. */
  async discover(store) {
    if (this.discovering) return;
    this.discovering = true;
    try {
      const before = new Set(store.conversations.keys());
      await this.readConversations(store);
      for (const conv of store.conversations.values()) {
        if (before.has(conv.id)) continue;
        store.read[conv.id] = '0';
        await store.peek(conv);
      }
    } catch {
      // The next line or the next joining brings it.
    } finally {
      this.discovering = false;
      this.changed();
    }
  }

  down(is) {
    if (is) $('line').textContent = 'Reconnecting…';
    $('line').hidden = !is;
    document.body.classList.toggle('is-down', is);
  }

  // Going somewhere.

  channelName() {
    const conv = this.store?.conv;
    if (!conv) return '';
    return conv.kind === 'im' ? `@${this.directory.user(conv.user).name}` : conv.name;
  }

  /** Goes where an address says: ?as=ana&channel=general&thread=<ts>. */
  follow(where, replace = false) {
    const as = where.get('as');
    const me = as && this.people.find((p) => p.name === as || p.id === as);
    if (me && me.id !== this.directory.myId) { this.become(me.id, where); return; }
    const name = where.get('channel') ?? '';
    const all = [...this.store.conversations.values()];
    const thread = /^\d+\.\d{6}$/.test(where.get('thread') ?? '') ? where.get('thread') : '';
    const person = name.startsWith('@') ? this.directory.byName(name.slice(1)) : null;
    const conv = all.find((c) => c.id === name || (c.kind === 'channel' && c.name === name.replace(/^#/, '')) || (person && c.kind === 'im' && c.user === person.id));
    if (!conv && person) { this.attempt(() => this.openDM(person)); return; }
    const to = conv ?? all.find((c) => c.name === 'general') ?? all.find((c) => c.kind === 'channel') ?? all[0];
    if (!to) { this.pane('side'); return; }
    this.go(to.id, conv ? thread : '', replace ? 'replace' : 'none', conv || !replace ? undefined : 'side');
  }

  open(channel) {
    this.go(channel, '', 'push');
    if (matchMedia('(min-width: 481px)').matches) this.channelPane.composer.box.focusAtEnd();
  }

  async openDM(person) {
    const answer = await this.api.call('conversations.open', { users: person.id });
    this.store.addConversation({ id: answer.channel.id, name: answer.channel.id, kind: 'im', user: person.id });
    this.open(answer.channel.id);
  }

  openThread(ts) {
    this.go(this.store.at.channel, ts, 'push');
    if (matchMedia('(min-width: 481px)').matches) this.threadPane.composer.box.focusAtEnd();
  }

  closeThread() {
    const root = this.store.at.thread;
    this.go(this.store.at.channel, '', 'push');
    this.channelPane.timeline.rows.get(root)?.node.focus({ preventScroll: true });
  }

  showSide() {
    this.pane('side');
    $('side').querySelector('[aria-current]')?.focus();
  }

  pane(name) {
    $('app').dataset.pane = name;
  }

  go(channel, thread, how, pane) {
    const { store } = this;
    const changedChannel = store.at.channel !== channel;
    if (this.editing) this.editing = null;
    if (changedChannel && store.conv) store.conv.newSince = '';
    store.at = { channel, thread };
    const conv = store.conv;
    if (changedChannel) conv.newSince = store.unread(conv) ? store.read[conv.id] ?? '' : '';
    this.pane(pane ?? (thread ? 'thread' : 'channel'));
    $('app').dataset.thread = thread ? 'yes' : 'no';
    const where = new URLSearchParams({ as: this.directory.user(this.directory.myId).name, channel: this.channelName() });
    if (thread) where.set('thread', thread);
    const address = `/?${where.toString().replace(/%40/g, '@')}`;
    if (how === 'push' && address !== location.pathname + location.search) history.pushState(null, '', address);
    else if (how !== 'none') history.replaceState(null, '', address);
    // At once, as the caller gives the focus to what is only now shown.
    this.draw();
    this.arrive();
  }

  /** Reads what is open, where it has to be read. */
  arrive() {
    const { store } = this;
    const conv = store.conv;
    const { thread } = store.at;
    if (!conv) return;
    if (conv.stale) {
      for (const [root, t] of conv.threads) if (root !== thread) t.loaded = false;
      store.load(conv).then(() => this.seen(), () => {});
    }
    if (thread) {
      conv.newThreads.delete(thread);
      conv.threadError = '';
      store.loadThread(conv, thread).catch((e) => { conv.threadError = e.message; this.changed(); });
    }
    this.seen();
  }

  seen() {
    const conv = this.store?.conv;
    if (!conv || document.visibilityState !== 'visible') return;
    if (this.store.at.thread) conv.newThreads.delete(this.store.at.thread);
    this.store.markRead(conv);
    this.changed();
  }

  older() {
    this.attempt(() => this.store.loadOlder(this.store.conv));
  }

  // Doing something.

  async send({ key, text, files, broadcast }) {
    const [me, channel, thread] = key.split(' ');
    if (me !== this.directory.myId) throw new Error('You have changed who you are, so this was not sent.');
    const command = /^\/([a-z0-9_\-]+)(?:\s+([\s\S]*))?$/i.exec(text.trim());
    if (command && !files.length) {
      const known = this.boot.apps.flatMap((a) => a.commands ?? []);
      if (!known.includes(`/${command[1]}`)) throw new Error(`There is no command /${command[1]} here. Known: ${known.join(', ') || 'none'}.`);
      await this.api.call('chat.command', { channel, command: `/${command[1]}`, text: encode(command[2] ?? '', this.directory) });
      return;
    }
    const line = encode(text.trim(), this.directory);
    if (files.length) await this.api.upload(files, { channel, thread, comment: line || null });
    else await this.api.call('chat.postMessage', { channel, thread_ts: thread, text: line, reply_broadcast: broadcast || null });
  }

  editLast(lines, inThread) {
    const mine = lines.filter((m) => m.user === this.directory.myId && !m.bot_id && !m.ephemeral && m.subtype !== 'tombstone').at(-1);
    if (mine) this.act.edit(mine, inThread);
    return Boolean(mine);
  }

  /** Runs what may fail; the error is shown by the composer of the pane in use. */
  async attempt(work) {
    try {
      await work();
    } catch (e) {
      const pane = this.store.at.thread && document.activeElement?.closest('#thread') ? this.threadPane : this.channelPane;
      pane.composer.say(e.message);
    }
  }

  actions() {
    const at = () => this.store.at.channel;
    const react = (m, name) => this.attempt(async () => {
      const mine = m.reactions?.find((r) => r.name === name)?.users?.includes(this.directory.myId);
      try {
        await this.api.call(mine ? 'reactions.remove' : 'reactions.add', { channel: at(), timestamp: m.ts, name });
      } catch (e) {
        if (e.code !== 'already_reacted' && e.code !== 'no_reaction') throw e;
      }
    });
    return {
      myId: () => this.directory.myId,
      react,
      pick: (m, anchor) => pickEmoji(anchor, (name) => react(m, name)),
      openThread: (ts) => this.openThread(ts),
      edit: (m, inThread) => {
        const was = this.editing;
        this.editing = m ? { ts: m.ts, inThread } : null;
        this.changed();
        if (!m && was) (was.inThread ? this.threadPane : this.channelPane).composer.box.focusAtEnd();
      },
      remove: (m) => confirmDelete(decode(m.text, this.directory).typed.slice(0, 300) || 'A message without text.', () =>
        this.attempt(() => this.api.call('chat.delete', { channel: at(), ts: m.ts }))),
      press: (m, action) => this.attempt(() => this.api.call('blocks.actions', { channel: at(), message_ts: m.ts, actions: [action] })),
      dismiss: (m) => this.store.dismiss(this.store.conv, m.ts),
      metadata: (m) => this.attempt(async () => {
        const args = { channel: at(), include_all_metadata: true, latest: m.ts, oldest: m.ts, inclusive: true, limit: 10 };
        const reply = m.thread_ts && m.thread_ts !== m.ts;
        const answer = await (reply ? this.api.call('conversations.replies', { ...args, ts: m.thread_ts }) : this.api.call('conversations.history', args));
        const found = answer.messages.find((x) => x.ts === m.ts);
        showRaw(found?.metadata ? 'Message and its metadata' : 'Message (it has no metadata)', found ?? 'This message is not there any more.');
      }),
      picture: (f) => this.picture(f),
      view: (f, name) => this.attempt(async () => showPicture(name, await this.picture(f))),
      download: (f, name) => this.attempt(async () => {
        const url = URL.createObjectURL(await this.api.download(f.url_private_download || f.url_private));
        const a = h('a', { download: name });
        a.href = url;
        a.click();
        setTimeout(() => URL.revokeObjectURL(url), 60_000);
      }),
    };
  }

  picture(f) {
    if (!pictures.has(f.id)) {
      pictures.set(f.id, this.api.download(f.url_private).then((b) => URL.createObjectURL(b.slice(0, b.size, f.mimetype))));
      pictures.get(f.id).catch(() => pictures.delete(f.id));
    }
    return pictures.get(f.id);
  }

  // Drawing: once a frame, however much changed.

  changed() {
    if (this.drawing) return;
    this.drawing = true;
    const draw = () => {
      this.drawing = false;
      this.draw();
    };
    if (document.visibilityState === 'visible') requestAnimationFrame(draw);
    else setTimeout(draw, 100);
  }

  draw() {
    if (!this.store) return;
    const channels = [...this.store.conversations.values()].filter((c) => c.kind !== 'im').sort((a, b) => a.name.localeCompare(b.name));
    this.sidebar.draw(this.store, this.people, channels);
    this.channelPane.draw();
    this.threadPane.draw();
    const unread = [...this.store.conversations.values()].filter((c) => c !== this.store.conv && this.store.unread(c)).length;
    const name = this.store.conv ? (this.store.conv.kind === 'im' ? this.channelName() : `#${this.channelName()}`) : '';
    document.title = `${unread ? `(${unread}) ` : ''}${name ? `${name} · ` : ''}Local Slack`;
  }
}

const app = new App();
app.start();
