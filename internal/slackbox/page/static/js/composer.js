// The box that a line is written in. What is sent goes in the order it was sent; what
// could not be sent comes back into the box with one line that says why.

import { h, icon, iconButton, plainName } from './dom.js';
import { TextBox } from './textbox.js';

export class Composer {
  /** what: {id, label, directory(), send({text, files, key}), editLast(), broadcast}. */
  constructor(what) {
    this.what = what;
    this.drafts = new Map();
    this.queue = [];
    this.files = [];
    this.key = '';
    this.box = new TextBox({ label: what.label, placeholder: what.label, directory: what.directory, enter: () => this.submit(),
      editLast: what.editLast, changed: () => this.refresh(), typed: () => this.say('') });
    this.box.area.id = what.id;
    this.chips = h('div', { class: 'chips' });
    this.error = h('p', { class: 'error', role: 'alert', hidden: true });
    this.status = h('div', { class: 'status', role: 'status', 'aria-live': 'polite' });
    this.input = h('input', { type: 'file', multiple: true, hidden: true, tabindex: '-1', 'aria-hidden': 'true', on: { change: () => { this.addFiles(this.input.files); this.input.value = ''; } } });
    this.sendButton = iconButton('send', 'Send', () => this.submit(), { class: 'icon-button send' });
    this.also = what.broadcast ? h('input', { type: 'checkbox' }) : null;
    this.frame = h('div', { class: 'composer-frame' }, this.chips, this.box.el,
      h('div', { class: 'composer-foot' }, iconButton('clip', 'Attach a file', () => this.input.click()), this.input,
        this.also && h('label', { class: 'also' }, this.also, 'Also send to the channel'),
        h('span', { class: 'hint' }, h('kbd', null, 'Enter'), ' sends, ', h('kbd', null, 'Shift'), '+', h('kbd', null, 'Enter'), ' new line'), this.sendButton));
    this.el = h('div', { class: 'composer' }, this.error, this.frame, this.status);
    this.box.area.addEventListener('paste', (e) => { if (e.clipboardData?.files.length) { e.preventDefault(); this.addFiles(e.clipboardData.files); } });
    this.refresh();
  }

  /** Takes files dropped anywhere on a pane. */
  takeDrops(pane) {
    let depth = 0;
    const has = (e) => [...(e.dataTransfer?.types ?? [])].includes('Files');
    const set = (n) => { depth = n; pane.classList.toggle('dropping', n > 0); };
    pane.addEventListener('dragenter', (e) => { if (has(e)) { e.preventDefault(); set(depth + 1); } });
    pane.addEventListener('dragover', (e) => { if (has(e)) e.preventDefault(); });
    pane.addEventListener('dragleave', (e) => { if (has(e)) set(Math.max(0, depth - 1)); });
    pane.addEventListener('drop', (e) => {
      if (!has(e)) return;
      e.preventDefault();
      set(0);
      this.addFiles(e.dataTransfer.files);
      this.box.focusAtEnd();
    });
  }

  /** Shows the draft of another conversation. */
  switchTo(key, label) {
    this.box.area.placeholder = label;
    this.box.area.setAttribute('aria-label', label);
    if (key === this.key) return;
    const now = { text: this.box.value, files: this.files };
    if (this.key) this.drafts.set(this.key, now);
    // What was typed before there was anywhere to send it stays in the box.
    const draft = this.key ? this.drafts.get(key) ?? { text: '', files: [] } : now;
    this.key = key;
    this.files = draft.files;
    this.box.value = draft.text;
    this.say('');
    if (this.also) this.also.checked = false;
    this.refresh();
  }

  addFiles(list) {
    this.files = [...this.files, ...list];
    this.refresh();
  }

  refresh() {
    if (!this.chips) return;
    this.chips.replaceChildren(...this.files.map((f) => h('span', { class: 'chip' }, icon('file'), h('bdi', null, plainName(f.name)),
      iconButton('close', `Remove ${plainName(f.name)}`, () => { this.files = this.files.filter((x) => x !== f); this.refresh(); this.box.area.focus(); }))));
    this.sendButton.disabled = !this.box.value.trim() && !this.files.length;
  }

  say(text) {
    this.error.textContent = text;
    this.error.hidden = !text;
  }

  submit() {
    const text = this.box.value;
    if (!this.key || (!text.trim() && !this.files.length)) return;
    this.queue.push({ key: this.key, text, files: this.files, broadcast: Boolean(this.also?.checked) });
    this.files = [];
    this.box.value = '';
    if (this.also) this.also.checked = false;
    this.say('');
    this.refresh();
    if (!this.running) this.run();
  }

  async run() {
    this.running = true;
    this.el.classList.add('sending');
    while (this.queue.length) {
      try {
        await this.what.send(this.queue[0]);
        this.queue.shift();
      } catch (e) {
        this.giveBack(e.message || 'This did not work.');
      }
    }
    this.running = false;
    this.el.classList.remove('sending');
  }

  /** Puts everything that was not sent back where it was written, in order. */
  giveBack(why) {
    const unsent = this.queue;
    this.queue = [];
    for (const key of new Set(unsent.map((u) => u.key))) {
      const mine = unsent.filter((u) => u.key === key);
      const now = key === this.key ? { text: this.box.value, files: this.files } : this.drafts.get(key) ?? { text: '', files: [] };
      const text = [...mine.map((u) => u.text), now.text].filter((t) => t.trim()).join('\n');
      const files = [...mine.flatMap((u) => u.files), ...now.files];
      if (key === this.key) {
        this.files = files;
        this.box.value = text;
        this.say(why);
        this.refresh();
      } else {
        this.drafts.set(key, { text, files });
      }
    }
  }
}
