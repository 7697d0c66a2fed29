// What a person types, and what Slack is sent for it: names become mentions, and
// what could be read as markup is escaped, as Slack's own clients do.

import { escape, unescape } from './mrkdwn.js';

const quoteForPattern = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');

/**
 * Typed text as Slack is sent it. keep: angle-bracket tokens that were in the message
 * before an edit and stay what they are.
 */
export function encode(text, directory, keep = new Set()) {
  const names = [...directory.people.values()].map((p) => p.name).sort((a, b) => b.length - a.length);
  const channels = [...directory.channels.values()].map((c) => c.name).sort((a, b) => b.length - a.length);
  const either = (list) => (list.length ? list.map(quoteForPattern).join('|') : '(?!)');
  const pattern = new RegExp('(```[\\s\\S]*?```|`[^`\\n]+`)|(<[^<>\\n]+>)|' +
    `(?<![\\p{L}\\p{N}_.@/\\-])(?:@(?:(here|channel|everyone)|(${either(names)}))|#(${either(channels)}))(?![\\p{L}\\p{N}_\\-])`, 'giu');
  let out = '';
  let at = 0;
  for (const m of text.matchAll(pattern)) {
    out += escape(text.slice(at, m.index));
    at = m.index + m[0].length;
    const [, code, token, keyword, name, channel] = m;
    if (code) out += escape(code);
    else if (token) out += keep.has(token) || isKnown(token, directory) ? token : escape(token);
    else if (keyword) out += `<!${keyword.toLowerCase()}>`;
    else if (name) out += `<@${directory.byName(name).id}>`;
    else {
      const c = directory.channelByName(channel);
      out += c ? `<#${c.id}|${escape(c.name)}>` : escape(m[0]);
    }
  }
  return out + escape(text.slice(at));
}

function isKnown(token, directory) {
  const m = /^<@([UW][A-Z0-9]+)>$/.exec(token);
  return Boolean(m && directory.user(m[1]).known);
}

/** A message's text as a person edits it, and the tokens that have no typed form. */
export function decode(text, directory) {
  const keep = new Set();
  const typed = String(text ?? '').replace(/<([^<>\n]+)>|&(?:amp|lt|gt);/g, (whole, inner) => {
    if (inner === undefined) return unescape(whole);
    const [target] = inner.split('|');
    if (target[0] === '@' && directory.user(target.slice(1)).known) return `@${directory.user(target.slice(1)).name}`;
    if (target[0] === '#' && directory.channel(target.slice(1))) return `#${directory.channel(target.slice(1)).name}`;
    if (/^!(here|channel|everyone)$/.test(target)) return `@${target.slice(1)}`;
    if (target === inner && /^https?:\/\/[^\s&]+$/.test(target)) return target;
    keep.add(whole);
    return whole;
  });
  return { typed, keep };
}
