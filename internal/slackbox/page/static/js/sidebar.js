// The left column: who I am, the channels, the direct messages.

import { h, icon } from './dom.js';
import { avatar, badge } from './message.js';

const kinds = { guest: ' (guest)', outsider: ' (other team)', deactivated: ' (left)' };

export class Sidebar {
  /** act: {become(id), open(conv), openDM(person)}. */
  constructor(el, act) {
    this.el = el;
    this.act = act;
    this.select = h('select', { id: 'me', on: { change: () => act.become(this.select.value) } });
    this.face = h('span', { class: 'me-face' });
    this.channels = h('ul');
    this.dms = h('ul');
    this.apps = h('ul');
    this.team = h('bdi', { class: 'team-name' });
    el.replaceChildren(
      h('div', { class: 'side-head' }, this.team, h('span', { class: 'aside' }, 'local')),
      h('label', { class: 'me', for: 'me' }, this.face, h('span', { class: 'me-text' }, h('span', { class: 'aside' }, 'You are'), this.select), icon('down')),
      h('div', { class: 'side-list' },
        h('h2', null, 'Channels'), this.channels, h('h2', null, 'Apps'), this.apps, h('h2', null, 'People'), this.dms));
  }

  draw(store, people, channels) {
    const { directory } = store;
    this.team.textContent = directory.team.name || 'Local Slack';
    const me = directory.user(directory.myId);
    const options = people.map((p) => `${p.id} ${p.name} ${p.kind}`).join();
    if (options !== this.options) {
      this.options = options;
      this.select.replaceChildren(...people.map((p) => h('option', { value: p.id }, p.name + (kinds[p.kind] ?? ''))));
    }
    this.select.value = directory.myId;
    if (this.faceOf !== me.id) {
      this.faceOf = me.id;
      this.face.replaceChildren(avatar(me));
    }
    this.fill(this.channels, channels.map((c) => ({ id: c.id, conv: c, name: c.name, mark: h('span', { class: 'hash' }, c.is_private ? '◆' : '#') })), store);
    const dm = (p) => ({ id: `dm ${p.id}`, person: p, conv: [...store.conversations.values()].find((c) => c.kind === 'im' && c.user === p.id),
      name: p.name, mark: avatar(p, 'tiny'), badge: p.app ? null : badge(p) });
    const others = [...directory.people.values()].filter((p) => p.kind !== 'deactivated');
    this.fill(this.apps, others.filter((p) => p.app).map(dm), store);
    this.fill(this.dms, others.filter((p) => !p.app && p.id !== me.id).map(dm), store);
  }

  fill(list, items, store) {
    const sign = JSON.stringify(items.map((i) => [i.id, i.name, i.conv?.id, i.conv && store.unread(i.conv), i.conv?.id === store.at.channel, store.directory.myId]));
    if (list.dataset.sign === sign) return;
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    list.dataset.sign = sign;
    list.replaceChildren(...items.map((i) => {
      const here = Boolean(i.conv) && i.conv.id === store.at.channel;
      const unread = Boolean(i.conv) && !here && store.unread(i.conv);
      return h('li', null, h('button', { type: 'button', class: `conv ${unread ? 'unread' : ''}`, 'aria-current': here ? 'page' : null, data: { id: i.id, name: i.name },
        'aria-label': unread ? `${i.name}, unread` : null, on: { click: () => (i.conv ? this.act.open(i.conv) : this.act.openDM(i.person)) } },
      i.mark, h('bdi', { class: 'conv-name' }, i.name), i.badge, unread && h('span', { class: 'dot', 'aria-hidden': 'true' })));
    }));
    if (focused) list.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }
}
