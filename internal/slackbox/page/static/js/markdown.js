// Standard Markdown, as an agent writes it into a markdown block: headings, lists,
// fences, quotes, tables, rules and the inline marks. As hostile as any other text.

import { h, link } from './dom.js';
import { bareAddress, bracket, unescape } from './mrkdwn.js';
import { emojiChar } from './emoji.js';

/** Renders Markdown as a list of nodes; names as for mrkdwn. */
export function markdown(text, names) {
  return blocks(String(text ?? '').replace(/\r\n?/g, '\n').split('\n'), names, 0);
}

const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const heading = /^ {0,3}(#{1,6})\s+(.*)$/;
const rule = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const item = /^( *)([-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|$)/;
const quote = /^ {0,3}(?:>|&gt;) ?/;

function blocks(lines, names, depth) {
  const out = [];
  let para = [];
  const flush = () => {
    if (para.length) out.push(h('p', { dir: 'auto' }, para.map((line, i) => [i > 0 && h('br'), spans(line.trim(), names)])));
    para = [];
  };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    let m;
    if ((m = fence.exec(line))) {
      flush();
      const code = [];
      const close = new RegExp(`^ {0,3}${m[1][0]}{${m[1].length},}\\s*$`);
      for (i++; i < lines.length && !close.test(lines[i]); i++) code.push(lines[i]);
      out.push(h('pre', { class: 'code-block', dir: 'ltr' }, h('code', null, code.join('\n'))));
    } else if (line.trim() === '') {
      flush();
    } else if ((m = heading.exec(line))) {
      flush();
      out.push(h('p', { class: `md-heading md-h${m[1].length}`, role: 'heading', 'aria-level': Math.min(6, m[1].length + 2), dir: 'auto' },
        spans(trimHashes(m[2]), names)));
    } else if (rule.test(line)) {
      flush();
      out.push(h('hr'));
    } else if (quote.test(line) && depth < 8) {
      flush();
      const inner = [];
      for (; i < lines.length && quote.test(lines[i]); i++) inner.push(lines[i].replace(quote, ''));
      i--;
      out.push(h('blockquote', null, blocks(inner, names, depth + 1)));
    } else if ((m = item.exec(line)) && depth < 8) {
      flush();
      const [list, next] = listFrom(lines, i, names, depth);
      out.push(list);
      i = next - 1;
    } else if (line.includes('|') && i + 1 < lines.length && isTableRule(lines[i + 1])) {
      flush();
      const rows = [line];
      for (i += 2; i < lines.length && lines[i].includes('|') && lines[i].trim(); i++) rows.push(lines[i]);
      i--;
      out.push(table(rows, names));
    } else {
      para.push(line);
    }
  }
  flush();
  return out;
}

function trimHashes(text) {
  let end = text.trimEnd();
  let cut = end.length;
  while (cut > 0 && end[cut - 1] === '#') cut--;
  return cut < end.length && (cut === 0 || end[cut - 1] === ' ') ? end.slice(0, cut).trimEnd() : end;
}

function listFrom(lines, from, names, depth) {
  const first = item.exec(lines[from]);
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const list = h(ordered ? 'ol' : 'ul', ordered ? { start: parseInt(first[2], 10) } : null);
  let i = from;
  while (i < lines.length) {
    const m = item.exec(lines[i]);
    if (!m || m[1].length !== indent || /\d/.test(m[2]) !== ordered || rule.test(lines[i])) break;
    const inner = [m[3] ?? ''];
    for (i++; i < lines.length; i++) {
      const lead = /^ */.exec(lines[i])[0].length;
      if (lines[i].trim() === '') {
        const after = lines[i + 1];
        if (after === undefined || /^ */.exec(after)[0].length <= indent) break;
        inner.push('');
      } else if (lead > indent) {
        inner.push(lines[i].slice(Math.min(lead, indent + m[2].length + 1)));
      } else {
        break;
      }
    }
    while (i < lines.length && lines[i].trim() === '' && item.test(lines[i + 1] ?? '')) i++;
    list.append(itemOf(inner, names, depth));
  }
  return [list, i];
}

function itemOf(inner, names, depth) {
  const task = /^\[([ xX])\]\s+/.exec(inner[0]);
  if (task) inner[0] = `${task[1] === ' ' ? '☐' : '☑'} ${inner[0].slice(task[0].length)}`;
  const content = blocks(inner, names, depth + 1);
  // A tight item is one line of text, not a paragraph.
  if (content[0]?.tagName === 'P' && !content[0].className) {
    const p = content.shift();
    return h('li', { dir: 'auto' }, [...p.childNodes], content);
  }
  return h('li', { dir: 'auto' }, content);
}

function isTableRule(line) {
  return line.includes('-') && line.includes('|') && line.length < 2000 && /^[\s|:\-]+$/.test(line);
}

function cells(row) {
  const out = [];
  let cell = '';
  let code = false;
  const text = row.trim().replace(/^\|/, '');
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\' && text[i + 1] === '|') { cell += '|'; i++; }
    else if (text[i] === '|' && !code) { out.push(cell.trim()); cell = ''; }
    else { if (text[i] === '`') code = !code; cell += text[i]; }
  }
  if (cell.trim()) out.push(cell.trim());
  return out;
}

function table(rows, names) {
  const row = (tag, line) => h('tr', null, cells(line).map((c) => h(tag, { dir: 'auto' }, spans(c, names))));
  return h('div', { class: 'table-box', tabindex: '0', role: 'group', 'aria-label': 'Table' },
    h('table', null, h('thead', null, row('th', rows[0])), h('tbody', null, rows.slice(1).map((r) => row('td', r)))));
}

// Inline: one pass from left to right; what opens is looked for once a kind, so a
// text of unclosed marks costs no more than its length.
const token = /\\([\\`*_{}\[\]()#+\-.!~|<>])|(`+)|!?\[|<[^<>\n]+>|https?:\/\/[^\s<>]+|:([a-z0-9_+\-']{1,60}):|(\*\*\*|___|\*\*|__|~~|\*|_|~)/g;
const wordChar = /[\p{L}\p{N}]/u;

function spans(text, names, open = '') {
  const out = [];
  let plain = '';
  let at = 0;
  const unclosed = new Set();
  const put = (node) => {
    if (plain) out.push(unescape(plain));
    plain = '';
    out.push(node);
  };
  const finder = new RegExp(token.source, 'g');
  for (let m = finder.exec(text); m; m = finder.exec(text)) {
    plain += text.slice(at, m.index);
    let end = m.index + m[0].length;
    let node = null;
    if (m[1] !== undefined) {
      plain += m[1];
    } else if (m[2]) {
      const close = unclosed.has(m[2]) ? -1 : closeTicks(text, m[2], end);
      if (close < 0) { unclosed.add(m[2]); plain += m[0]; }
      else {
        node = h('code', { class: 'code', dir: 'ltr' }, text.slice(end, close).replace(/^ (.+) $/s, '$1'));
        end = close + m[2].length;
      }
    } else if (m[0].endsWith('[')) {
      const l = unclosed.has('[') ? null : linkAt(text, end, unclosed);
      if (l) {
        node = link(l.address, open.includes('[') ? l.label : spans(l.label, names, `${open}[`));
        end = l.end;
      } else plain += m[0];
    } else if (m[0][0] === '<') {
      node = bracket(m[0], names);
      if (!node) plain += m[0];
    } else if (m[0].startsWith('http')) {
      const bare = bareAddress(m[0]);
      if (open.includes('[') || bare.length <= 8) plain += m[0];
      else { node = link(unescape(bare), unescape(bare)); end = m.index + bare.length; }
    } else if (m[3]) {
      const char = emojiChar(m[3]);
      if (char) node = h('span', { class: 'emoji', role: 'img', 'aria-label': m[3] }, char);
      else plain += m[0];
    } else {
      const mark = m[4];
      const opens = !open.includes(mark) && !unclosed.has(mark) && end < text.length && !/\s/.test(text[end]) &&
        !(mark[0] !== '*' && m.index > 0 && wordChar.test(text[m.index - 1]));
      const close = opens ? closeMark(text, mark, end) : -1;
      if (close < 0) { if (opens) unclosed.add(mark); plain += mark; }
      else {
        const tag = mark.length === 2 && mark !== '~~' ? 'strong' : mark[0] === '~' ? 's' : 'em';
        node = h(tag, null, spans(text.slice(end, close), names, `${open} ${mark} `));
        if (mark.length === 3) node = h('strong', null, node);
        end = close + mark.length;
      }
    }
    if (node) put(node);
    at = end;
    finder.lastIndex = end;
  }
  plain += text.slice(at);
  if (plain) out.push(unescape(plain));
  return out;
}

function closeTicks(text, ticks, from) {
  for (let j = text.indexOf(ticks, from); j >= 0; j = text.indexOf(ticks, j)) {
    let end = j;
    while (text[end] === '`') end++;
    if (end - j === ticks.length) return j;
    j = end;
  }
  return -1;
}

function closeMark(text, mark, from) {
  const c = mark[0];
  for (let j = text.indexOf(mark, from + 1); j >= 0; j = text.indexOf(mark, j + 1)) {
    if (/\s/.test(text[j - 1]) || text[j - 1] === '\\') continue;
    if (mark.length === 1 && (text[j + 1] === c || text[j - 1] === c)) continue;
    if (mark.length > 1 && text[j + mark.length] === c) continue;
    if (c !== '*' && wordChar.test(text[j + mark.length] ?? '')) continue;
    return j;
  }
  return -1;
}

function linkAt(text, from, unclosed) {
  let depth = 1;
  let j = from;
  for (; j < text.length && depth; j++) {
    if (text[j] === '\\') j++;
    else if (text[j] === '[') depth++;
    else if (text[j] === ']') depth--;
  }
  if (depth) { unclosed.add('['); return null; }
  if (text[j] !== '(') return null;
  const m = /^\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]{0,500}")?\s*\)/.exec(text.slice(j, j + 4096));
  return m ? { label: text.slice(from, j - 1), address: unescape(m[1]), end: j + m[0].length } : null;
}
