// Who is who: the people, apps and channels that the boot told of.

import { plainName } from './dom.js';

/** Slack's own direct-message partner or an id that nobody told of gets its id as a name. */
export class Directory {
  constructor(boot, myId) {
    this.myId = myId;
    this.team = boot.team ?? {};
    this.people = new Map();
    this.bots = new Map();
    this.channels = new Map();
    for (const u of boot.users ?? []) this.people.set(u.id, { ...u, name: plainName(u.name || u.id), app: false });
    for (const a of boot.apps ?? []) {
      const id = a.bot_user_id ?? a.bot_user ?? a.user_id ?? a.user ?? a.id;
      this.people.set(id, { ...a, id, name: plainName(a.name || id), kind: 'app', app: true });
      if (a.bot_id) this.bots.set(a.bot_id, id);
      if (a.app_id) this.bots.set(a.app_id, id);
    }
    for (const c of boot.channels ?? []) this.channels.set(c.id, { ...c, name: plainName(c.name || c.id) });
  }

  /** {id, name, kind, app, me, known} for any id. */
  user(id) {
    if (id === 'USLACKBOT') return { id, name: 'Slackbot', kind: 'app', app: true, me: false, known: true };
    const p = this.people.get(id) ?? this.people.get(this.bots.get(id));
    return p ? { ...p, me: p.id === this.myId, known: true } : { id, name: id || 'someone', kind: '', app: false, me: false, known: false };
  }

  channel(id) {
    return this.channels.get(id);
  }

  /** The author of a message, whichever way the message names one. */
  author(m) {
    const p = this.user(m.user ?? m.bot_id ?? m.app_id);
    if (p.known) return { ...p, app: p.app || Boolean(m.bot_id) };
    const name = plainName(m.username ?? m.bot_profile?.name ?? m.user_profile?.display_name ?? m.user ?? m.bot_id ?? 'someone');
    return { ...p, name, app: Boolean(m.bot_id) };
  }

  /** People and apps whose name contains the words; those that begin with them first. */
  find(query) {
    const want = query.toLowerCase();
    const all = [...this.people.values()].filter((p) => p.name.toLowerCase().includes(want));
    const rank = (p) => (p.name.toLowerCase().startsWith(want) ? 0 : 2) + (p.id === this.myId ? 1 : 0);
    return all.sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
  }

  byName(name) {
    const want = String(name).toLowerCase();
    for (const p of this.people.values()) if (p.name.toLowerCase() === want) return p;
    return null;
  }

  channelByName(name) {
    for (const c of this.channels.values()) if (c.name === name) return c;
    return null;
  }
}

/** The picture of someone: initials on a quiet colour of their own. */
export function initials(name) {
  const words = String(name).split(/[\s\-_.]+/).filter(Boolean);
  const pick = words.length > 1 ? words[0][0] + words[1][0] : [...(words[0] ?? '?')].slice(0, 1).join('');
  return pick.toUpperCase();
}

/** One of the twelve avatar colours, the same for one id always. */
export function hue(id) {
  let n = 7;
  for (const c of String(id)) n = (n * 31 + c.codePointAt(0)) % 9973;
  return n % 12;
}
