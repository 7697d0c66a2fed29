// The stream of events, joined again whenever it breaks.

/**
 * Follows the events of one person. on.event(event), on.open() each time the stream
 * is (re)joined: what came before must then be read again; on.down() when it broke.
 */
export class Stream {
  constructor(token, on) {
    this.token = token;
    this.on = on;
    this.failures = 0;
    this.again = () => { if (this.timer && document.visibilityState === 'visible') this.join(); };
    addEventListener('online', this.again);
    document.addEventListener('visibilitychange', this.again);
    this.join();
  }

  join() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.source?.close();
    const source = new EventSource(`/_page/stream?token=${encodeURIComponent(this.token)}`);
    this.source = source;
    source.onopen = () => {
      this.failures = 0;
      this.on.open();
    };
    source.onmessage = (m) => {
      let event;
      try {
        event = JSON.parse(m.data);
      } catch {
        return;
      }
      this.on.event(event);
    };
    source.onerror = () => {
      if (this.source !== source) return;
      source.close();
      this.on.down();
      this.failures++;
      this.timer = setTimeout(() => this.join(), Math.min(5000, 250 * 2 ** Math.min(this.failures, 5)));
    };
  }

  close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
    removeEventListener('online', this.again);
    document.removeEventListener('visibilitychange', this.again);
  }
}
