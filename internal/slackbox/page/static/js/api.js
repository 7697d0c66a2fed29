// The Web API, called as any Slack client calls it: a form post with the person's
// token. A 429 is waited out; everything else that is not ok becomes one error.

/** An error of the API. `code` is Slack's, or `no_answer` when it is not known what happened. */
export class ApiError extends Error {
  constructor(method, code) {
    super(kindLine(code));
    this.method = method;
    this.code = code;
  }
}

const lines = {
  no_answer: 'No answer came, so this may or may not have happened. Please look before you try again.',
  not_in_channel: 'You are not in this channel.',
  channel_not_found: 'This channel is not there any more, or you are not in it.',
  is_archived: 'This channel is archived.',
  msg_too_long: 'This message is too long. Please split it.',
  no_text: 'There is nothing to send yet.',
  cant_update_message: 'Only your own messages can be edited.',
  edit_window_closed: 'This message can no longer be edited.',
  cant_delete_message: 'Only your own messages can be deleted.',
  message_not_found: 'This message is not there any more.',
  thread_not_found: 'This thread is not there any more.',
  already_reacted: 'You have already reacted with this.',
  no_reaction: 'This reaction is already gone.',
  invalid_name: 'There is no emoji with this name.',
  too_many_reactions: 'This message has all the reactions it can take.',
  too_many_emoji: 'This message has all the reactions it can take.',
  invalid_auth: 'This person is no longer signed in. Please reload the page.',
  not_authed: 'This person is not signed in. Please reload the page.',
  restricted_action: 'You may not do this here.',
  ratelimited: 'That was a bit fast. Please try again in a moment.',
  file_too_large: 'This file is too large for the local Slack.',
  internal_error: 'The local Slack had an error of its own. Please look before you try again.',
};

/** One kind line for a code; the code is said when there is no better word. */
export function kindLine(code) {
  return lines[code] ?? `This did not work (${code}).`;
}

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

async function post(method, url, body, tries = 4) {
  for (;;) {
    let answer;
    try {
      answer = await fetch(url, { method: 'POST', body, signal: AbortSignal.timeout(30_000) });
    } catch {
      throw new ApiError(method, 'no_answer');
    }
    if (answer.status === 429 && --tries > 0) {
      await wait(1000 * Math.min(30, Number(answer.headers.get('Retry-After')) || 1));
      continue;
    }
    if (answer.status === 429) throw new ApiError(method, 'ratelimited');
    if (answer.status >= 500) throw new ApiError(method, 'internal_error');
    return answer;
  }
}

export class Api {
  constructor(token) {
    this.token = token;
  }

  /** Calls a method; objects are sent as JSON, booleans as 0 and 1, as Slack's clients do. */
  async call(method, args = {}) {
    const form = new URLSearchParams({ token: this.token });
    for (const [key, value] of Object.entries(args)) {
      if (value == null) continue;
      form.set(key, typeof value === 'boolean' ? String(Number(value)) : typeof value === 'object' ? JSON.stringify(value) : String(value));
    }
    const answer = await post(method, `/api/${method}`, form);
    let body;
    try {
      body = await answer.json();
    } catch {
      throw new ApiError(method, 'no_answer');
    }
    if (!body.ok) throw new ApiError(method, body.error || 'no_answer');
    return body;
  }

  /** Uploads files and shares them as one message. The three steps are Slack's. */
  async upload(files, { channel, thread, comment }) {
    const done = [];
    for (const file of files) {
      const name = file.name || 'file';
      const place = await this.call('files.getUploadURLExternal', { filename: name, length: file.size });
      const form = new FormData();
      form.set('file', file, name);
      const answer = await post('upload', here(place.upload_url), form);
      if (!answer.ok) throw new ApiError('upload', answer.status === 413 ? 'file_too_large' : 'no_answer');
      done.push({ id: place.file_id, title: name });
    }
    await this.call('files.completeUploadExternal', { files: done, channel_id: channel, thread_ts: thread, initial_comment: comment });
  }

  /** The bytes of a file that only this person may read. */
  async download(url) {
    let answer;
    try {
      answer = await fetch(here(url), { headers: { Authorization: `Bearer ${this.token}` } });
    } catch {
      throw new ApiError('download', 'no_answer');
    }
    if (!answer.ok) throw new ApiError('download', answer.status === 404 ? 'file_not_found' : `status ${answer.status}`);
    return answer.blob();
  }
}

/**
 * The same path on this page's own origin: the local Slack knows itself by an address
 * that need not be the one the page was opened with, and a token goes nowhere else.
 */
function here(url) {
  const { pathname, search } = new URL(url, location.origin);
  return pathname + search;
}
