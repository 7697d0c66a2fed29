// The one place that makes elements. Text becomes text nodes, never markup, and
// an address is dropped unless it is one a person may follow.

const schemes = new Set(['http:', 'https:', 'mailto:']);

/** The address when it is http, https or mailto and absolute; otherwise null. */
export function safeAddress(text) {
  try {
    const url = new URL(text);
    return schemes.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/**
 * Makes an element. Props: `class`, `on` ({event: handler}), `data` ({name: value}),
 * booleans as attributes, everything else setAttribute. Children: nodes, text, nested
 * lists; null and false are left out. `href` only passes safeAddress or an own anchor.
 */
export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  // Children first: an element with dir=auto looks at all of them again for each that comes.
  add(el, children);
  for (const [name, value] of Object.entries(props || {})) {
    if (value == null || value === false) continue;
    if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) el.addEventListener(event, handler);
    } else if (name === 'data') {
      for (const [key, v] of Object.entries(value)) if (v != null) el.dataset[key] = v;
    } else if (name === 'href') {
      const safe = safeAddress(value);
      if (safe) el.setAttribute('href', safe);
    } else {
      el.setAttribute(name, value === true ? '' : String(value));
    }
  }
  return el;
}

/** Appends children as h does. */
export function add(el, children) {
  for (const child of Array.isArray(children) ? children : [children]) {
    if (child == null || child === false) continue;
    if (Array.isArray(child)) add(el, child);
    else el.append(child);
  }
  return el;
}

/** A link that leaves the page, or plain text when the address is not safe. */
export function link(address, label) {
  const href = safeAddress(address);
  if (!href) return h('span', { class: 'dead-link', title: 'This address is not a web link.' }, label);
  return h('a', { href, rel: 'noopener noreferrer', target: '_blank', title: href }, label);
}

const paths = {
  hash: 'M9 4 7 20M17 4l-2 16M4 9h16M3.500 15h16',
  reply: 'M4 5h16v11H11l-4.500 4v-4H4z',
  smile: 'M12 3a9 9 0 1 0 .01 0M8.500 14.500c1.800 2.300 5.200 2.300 7 0M9 9.500v.01M15 9.500v.01',
  edit: 'M4 20l1-4.500L16.500 4l3.500 3.500L8.500 19zM14 6.500l3.500 3.500',
  bin: 'M5 7h14M10 7V4.500h4V7M7 7l1 13h8l1-13M10.500 11v5M13.500 11v5',
  info: 'M12 3a9 9 0 1 0 .01 0M12 11v5.500M12 7.800v.01',
  close: 'M6 6l12 12M18 6 6 18',
  back: 'M14.500 5 8 12l6.500 7',
  clip: 'M19 11.500l-7.500 7.500a4.500 4.500 0 0 1-6.500-6.500l8-8a3 3 0 0 1 4.500 4.300l-8 8a1.500 1.500 0 0 1-2.200-2.100l7-7',
  send: 'M4 12 20 4l-5 16-3.500-6.500zM11.500 13.500 20 4',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  down: 'M6 10l6 6 6-6',
  get: 'M12 4v11M7 11l5 5 5-5M5 20h14',
};

/** A small line drawing; decoration only, so it is hidden from readers. */
export function icon(name) {
  const ns = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(ns, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  svg.setAttribute('focusable', 'false');
  const path = document.createElementNS(ns, 'path');
  path.setAttribute('d', paths[name]);
  svg.append(path);
  return svg;
}

/** A button with a drawing; the label is its name and its tip. */
export function iconButton(name, label, onclick, props) {
  return h('button', { type: 'button', class: 'icon-button', 'aria-label': label, title: label,
    on: { click: onclick }, ...props }, icon(name));
}

/** Replaces the children of an element only when they differ, by identity and order. */
export function setChildren(el, nodes) {
  let at = el.firstChild;
  for (const node of nodes) {
    if (node === at) { at = at.nextSibling; continue; }
    el.insertBefore(node, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** Makes the direction marks and controls of a name visible: a file may not pose as another. */
export function plainName(name) {
  return String(name ?? '').replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, '\ufffd');
}
