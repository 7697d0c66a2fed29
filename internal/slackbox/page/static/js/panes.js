// The two panes that hold lines: a channel, and a thread beside it.

import { h, iconButton } from './dom.js';
import { Timeline } from './timeline.js';
import { Composer } from './composer.js';
import { TextBox } from './textbox.js';
import { statusNodes } from './message.js';
import { encode, decode } from './draft.js';

/** The editor that stands in a row while its message is edited. */
function editor(m, app) {
  const { typed, keep } = decode(m.text, app.directory);
  const error = h('p', { class: 'error', role: 'alert', hidden: true });
  const done = () => app.act.edit(null);
  const save = async () => {
    const text = encode(box.value, app.directory, keep);
    if (!box.value.trim()) return;
    if (text === m.text || box.value === typed) { done(); return; }
    try {
      await app.api.call('chat.update', { channel: app.store.at.channel, ts: m.ts, text });
      done();
    } catch (e) {
      error.textContent = e.message;
      error.hidden = false;
    }
  };
  const box = new TextBox({ label: 'Edit message', placeholder: '', directory: () => app.directory, enter: save, escape: done });
  box.value = typed;
  requestAnimationFrame(() => { box.grow(); box.focusAtEnd(); });
  return h('div', { class: 'editor' }, h('div', { class: 'composer-frame' }, box.el), error, h('div', { class: 'editor-foot' },
    h('button', { type: 'button', class: 'quiet', on: { click: done } }, 'Cancel'), h('button', { type: 'button', class: 'primary', on: { click: save } }, 'Save')));
}

class Pane {
  constructor(el, app, inThread) {
    this.el = el;
    this.app = app;
    this.inThread = inThread;
    this.timeline = new Timeline({ label: inThread ? 'Messages of the thread' : 'Messages', inThread, act: app.act,
      older: () => app.older() });
    this.composer = new Composer({ id: inThread ? 'thread-composer' : 'composer', label: 'Message', directory: () => app.directory,
      broadcast: inThread, send: (line) => app.send(line), editLast: () => app.editLast(this.lines(), inThread) });
    this.composer.takeDrops(el);
    this.title = h('h1', { id: inThread ? 'thread-title' : 'channel-title' });
    this.sub = h('span', { class: 'aside' });
  }

  state(conv, key) {
    const { app } = this;
    return { key, names: app.directory, editing: app.editing?.inThread === this.inThread ? app.editing.ts : null, editor: (m) => editor(m, app), newSince: '', more: false,
      statuses: (root) => app.store.statusLines(conv.id, root), unreadThread: (root) => conv.newThreads.has(root) };
  }

  drawStatus(lines) {
    const sign = JSON.stringify(lines);
    if (sign === this.statusSign) return;
    this.statusSign = sign;
    this.composer.status.replaceChildren(...lines.map((s) => h('span', { class: 'status-line' }, statusNodes(s))));
  }
}

export class ChannelPane extends Pane {
  constructor(el, app) {
    super(el, app, false);
    el.replaceChildren(h('header', { class: 'pane-head' }, iconButton('back', 'Channels and people', () => app.showSide(), { class: 'icon-button only-phone' }),
      h('div', { class: 'pane-title' }, this.title, this.sub)), this.timeline.el, this.composer.el);
  }

  lines() {
    return this.app.store.conv ? this.app.store.timeline(this.app.store.conv) : [];
  }

  draw() {
    const { store, directory } = this.app;
    const conv = store.conv;
    if (!conv) return;
    const who = conv.kind === 'im' ? directory.user(conv.user) : null;
    const name = who ? who.name : `#${conv.name}`;
    this.title.replaceChildren(h('bdi', null, name));
    this.sub.textContent = who ? (who.app ? 'Direct message with an app' : 'Direct message') : conv.is_ext_shared || conv.shared ? 'Shared with another team' : '';
    this.composer.switchTo(`${directory.myId} ${conv.id}`, `Message ${name}`);
    const lines = this.lines();
    this.timeline.draw(lines, { ...this.state(conv, `${directory.myId} ${conv.id}`), newSince: conv.newSince, more: conv.more, error: lines.length ? '' : conv.error,
      busy: conv.reading > 0 && !conv.loaded, empty: conv.loaded ? (who ? `This is the beginning of your conversation with ${name}.` : `This is the beginning of ${name}.`) : '' });
  }
}

export class ThreadPane extends Pane {
  constructor(el, app) {
    super(el, app, true);
    el.replaceChildren(h('header', { class: 'pane-head' }, iconButton('back', 'Back to the channel', () => app.closeThread(), { class: 'icon-button only-narrow' }),
      h('div', { class: 'pane-title' }, this.title, this.sub), iconButton('close', 'Close the thread', () => app.closeThread(), { class: 'icon-button not-narrow' })),
    this.timeline.el, this.composer.el);
    this.title.textContent = 'Thread';
  }

  lines() {
    const { store } = this.app;
    return store.conv && store.at.thread ? store.threadLines(store.conv, store.at.thread) : [];
  }

  draw() {
    const { store, directory } = this.app;
    const conv = store.conv;
    const root = store.at.thread;
    this.el.hidden = !root;
    if (!conv || !root) return;
    const name = conv.kind === 'im' ? directory.user(conv.user).name : `#${conv.name}`;
    this.sub.replaceChildren(h('bdi', null, name));
    this.composer.switchTo(`${directory.myId} ${conv.id} ${root}`, 'Reply…');
    const thread = conv.threads.get(root);
    const lines = this.lines();
    this.timeline.draw(lines, { ...this.state(conv, `${directory.myId} ${conv.id} ${root}`), error: conv.threadError ?? '', busy: !thread?.loaded && !conv.threadError,
      empty: thread?.loaded && !lines.length ? 'This thread is not there any more.' : '' });
    this.drawStatus(store.statusLines(conv.id, root));
  }
}
