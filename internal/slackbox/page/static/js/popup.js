// What opens above the page: the emoji picker and the dialogs.

import { h, iconButton } from './dom.js';
import { emojiText, findEmoji, validEmojiName } from './emoji.js';

let picker = null;

/** Opens the emoji picker beside an element; chosen(name) is called once, or never. */
export function pickEmoji(anchor, chosen) {
  picker?.close(false);
  const back = document.activeElement;
  const grid = h('div', { class: 'emoji-grid', role: 'listbox', 'aria-label': 'Emoji' });
  const box = h('input', { type: 'text', class: 'emoji-find', placeholder: 'Find or type a name', 'aria-label': 'Find an emoji', autocomplete: 'off', spellcheck: 'false' });
  const el = h('div', { class: 'popup emoji-picker', role: 'dialog', 'aria-label': 'React with an emoji' }, box, grid);
  const close = (refocus = true) => {
    el.remove();
    removeEventListener('pointerdown', outside, true);
    picker = null;
    if (refocus && back?.isConnected) back.focus({ preventScroll: true });
  };
  const choose = (name) => { close(); chosen(name); };
  const outside = (e) => { if (!el.contains(e.target)) close(false); };
  const fill = () => {
    const typed = box.value.trim().toLowerCase().replace(/^:|:$/g, '');
    const found = findEmoji(typed).slice(0, 48);
    if (typed && !found.includes(typed) && validEmojiName(typed)) found.push(typed);
    grid.replaceChildren(...found.map((name) => h('button', { type: 'button', class: emojiText(name)[0] === ':' ? 'own-name' : '', role: 'option', data: { name },
      title: `:${name}:`, 'aria-label': name, on: { click: () => choose(name) } }, emojiText(name))));
  };
  box.addEventListener('input', fill);
  el.addEventListener('keydown', (e) => {
    const all = [...grid.children];
    const at = all.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 8, ArrowUp: -8 }[e.key];
    if (e.key === 'Escape') { e.stopPropagation(); close(); }
    else if (e.key === 'Enter' && document.activeElement === box && all[0]) {
      e.preventDefault();
      const exact = all.find((b) => b.dataset.name === box.value.trim().toLowerCase().replace(/^:|:$/g, ''));
      choose((exact ?? all[0]).dataset.name);
    }
    else if (step && (at >= 0 || e.key === 'ArrowDown')) {
      e.preventDefault();
      const to = at < 0 ? 0 : at + step;
      if (to < 0) box.focus();
      else all[Math.min(to, all.length - 1)]?.focus();
    }
  });
  fill();
  document.body.append(el);
  place(el, anchor);
  box.focus({ preventScroll: true });
  addEventListener('pointerdown', outside, true);
  picker = { close };
}

function place(el, anchor) {
  const a = anchor.getBoundingClientRect();
  const { offsetWidth: w, offsetHeight: hgt } = el;
  const left = Math.max(8, Math.min(a.right - w, innerWidth - w - 8));
  const below = a.bottom + 6;
  const top = below + hgt < innerHeight - 8 ? below : Math.max(8, a.top - hgt - 6);
  el.style.left = `${left}px`;
  el.style.top = `${top}px`;
}

function dialog(title, children, buttons) {
  const el = h('dialog', { class: 'dialog', 'aria-label': title });
  el.append(h('div', { class: 'dialog-head' }, h('h2', null, title), iconButton('close', 'Close', () => el.close())), ...children,
    buttons.length ? h('div', { class: 'dialog-foot' }, buttons) : '');
  el.addEventListener('close', () => el.remove());
  el.addEventListener('click', (e) => { if (e.target === el) el.close(); });
  document.body.append(el);
  el.showModal();
  return el;
}

/** Asks before something that cannot be undone. */
export function confirmDelete(preview, then) {
  const yes = h('button', { type: 'button', class: 'danger', on: { click: () => { el.close(); then(); } } }, 'Delete');
  const no = h('button', { type: 'button', class: 'quiet', on: { click: () => el.close() } }, 'Keep it');
  const el = dialog('Delete this message?', [h('p', { class: 'dialog-text', dir: 'auto' }, preview)], [no, yes]);
  yes.focus();
}

/** Shows what Slack holds of a message, metadata and all. */
export function showRaw(title, value) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  dialog(title, [h('pre', { class: 'code-block raw', dir: 'ltr', tabindex: '0' }, h('code', null, text))], []);
}

export function showPicture(name, url) {
  dialog(name, [h('img', { class: 'whole-picture', alt: name, src: url })], []);
}
