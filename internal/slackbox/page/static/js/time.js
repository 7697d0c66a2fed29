// Times of messages. A ts is seconds and microseconds as text; it is compared as
// text and never turned into a float that would lose digits.

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en', { weekday: 'long', day: 'numeric', month: 'long' });
const dayYear = new Intl.DateTimeFormat('en', { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
const whole = new Intl.DateTimeFormat('en', { dateStyle: 'full', timeStyle: 'medium' });

/** Orders two ts; an absent one is the oldest. */
export function compareTS(a, b) {
  if (a === b) return 0;
  const [as, af = ''] = String(a || '0').split('.');
  const [bs, bf = ''] = String(b || '0').split('.');
  if (as.length !== bs.length) return as.length - bs.length;
  if (as !== bs) return as < bs ? -1 : 1;
  return af < bf ? -1 : af > bf ? 1 : 0;
}

/** The later of two ts. */
export function laterTS(a, b) {
  return compareTS(a, b) >= 0 ? a : b;
}

export function dateOf(ts) {
  return new Date(Math.floor(Number(ts) * 1000));
}

export function clockTime(ts) {
  return clock.format(dateOf(ts));
}

export function fullTime(ts) {
  return whole.format(dateOf(ts));
}

/** A key that is the same for all moments of one local day. */
export function dayKey(ts) {
  const d = dateOf(ts);
  return `${d.getFullYear()}-${d.getMonth()}-${d.getDate()}`;
}

export function dayName(ts, now = new Date()) {
  const d = dateOf(ts);
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate());
  const days = Math.round((midnight - new Date(d.getFullYear(), d.getMonth(), d.getDate())) / 86400000);
  if (days === 0) return 'Today';
  if (days === 1) return 'Yesterday';
  return (d.getFullYear() === now.getFullYear() ? day : dayYear).format(d);
}

/** How long ago, in words: for the line under a thread's root. */
export function ago(ts, now = Date.now()) {
  const minutes = Math.floor((now - dateOf(ts).getTime()) / 60000);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ago`;
  return dayName(ts);
}
