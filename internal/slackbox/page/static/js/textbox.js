// A text box that grows with its text, completes @names, and sends on Enter.

import { h } from './dom.js';
import { avatar, badge } from './message.js';

let count = 0;

export class TextBox {
  /** what: {label, placeholder, directory(), enter()} and, if wanted, {escape(), editLast(), changed(), typed()}. */
  constructor(what) {
    this.what = what;
    this.listId = `names-${++count}`;
    this.area = h('textarea', { rows: '1', class: 'text', dir: 'auto', 'aria-label': what.label, placeholder: what.placeholder, autocomplete: 'off',
      role: 'combobox', 'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': this.listId, spellcheck: 'true' });
    this.list = h('div', { class: 'popup names', id: this.listId, role: 'listbox', 'aria-label': 'People and apps', hidden: true });
    this.el = h('div', { class: 'text-box' }, this.list, this.area);
    this.area.addEventListener('input', () => { this.grow(); this.complete(); this.what.typed?.(); });
    this.area.addEventListener('click', () => this.complete());
    this.area.addEventListener('blur', () => this.closeList());
    this.area.addEventListener('keydown', (e) => this.key(e));
  }

  get value() {
    return this.area.value;
  }

  set value(text) {
    this.area.value = text;
    this.grow();
    this.closeList();
  }

  grow() {
    this.area.style.height = 'auto';
    this.area.style.height = `${Math.min(this.area.scrollHeight, innerHeight * 0.4)}px`;
    this.what.changed?.();
  }

  focusAtEnd() {
    this.area.focus({ preventScroll: true });
    this.area.setSelectionRange(this.value.length, this.value.length);
  }

  complete() {
    const { selectionStart: at, selectionEnd: end } = this.area;
    const m = at === end && /(?:^|[\s([{"'*_~])@([\p{L}\p{N}_.\-]{0,40})$/u.exec(this.value.slice(Math.max(0, at - 60), at));
    const found = m ? this.what.directory().find(m[1]).filter((p) => p.kind !== 'deactivated').slice(0, 8) : [];
    if (!found.length) { this.closeList(); return; }
    this.from = at - m[1].length - 1;
    this.found = found;
    this.picked = 0;
    this.list.replaceChildren(...found.map((p, i) => h('div', { class: 'name-option', role: 'option', id: `${this.listId}-${i}`, data: { user: p.id },
      on: { pointerdown: (e) => { e.preventDefault(); this.accept(i); } } }, avatar(p, 'tiny'), h('bdi', null, p.name), badge(p))));
    this.list.hidden = false;
    this.area.setAttribute('aria-expanded', 'true');
    this.mark();
  }

  mark() {
    [...this.list.children].forEach((el, i) => el.setAttribute('aria-selected', String(i === this.picked)));
    this.list.children[this.picked]?.scrollIntoView({ block: 'nearest' });
    this.area.setAttribute('aria-activedescendant', `${this.listId}-${this.picked}`);
  }

  accept(i) {
    const before = this.value.slice(0, this.from);
    const after = this.value.slice(this.area.selectionEnd);
    const name = `@${this.found[i].name}${/^\s/.test(after) ? '' : ' '}`;
    this.value = before + name + after;
    const at = before.length + name.length;
    this.area.setSelectionRange(at, at);
    this.area.focus({ preventScroll: true });
  }

  closeList() {
    if (this.list.hidden) return;
    this.list.hidden = true;
    this.area.setAttribute('aria-expanded', 'false');
    this.area.removeAttribute('aria-activedescendant');
  }

  key(e) {
    if (e.isComposing) return;
    const plain = !e.shiftKey && !e.ctrlKey && !e.metaKey && !e.altKey;
    if (!this.list.hidden && plain) {
      const n = this.found.length;
      const does = {
        ArrowDown: () => { this.picked = (this.picked + 1) % n; this.mark(); },
        ArrowUp: () => { this.picked = (this.picked + n - 1) % n; this.mark(); },
        Enter: () => this.accept(this.picked),
        Tab: () => this.accept(this.picked),
        Escape: () => this.closeList(),
      }[e.key];
      if (does) { e.preventDefault(); e.stopPropagation(); does(); return; }
    }
    if (e.key === 'Enter' && !e.shiftKey && !e.altKey) { e.preventDefault(); this.what.enter(); }
    else if (e.key === 'Escape' && this.what.escape) { e.preventDefault(); e.stopPropagation(); this.what.escape(); }
    else if (e.key === 'ArrowUp' && plain && this.value === '' && this.what.editLast) { if (this.what.editLast()) e.preventDefault(); }
  }
}
