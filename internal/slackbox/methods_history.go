package slackbox

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// window is the stretch of time that a read asks for.
type window struct {
	oldest, latest int64 // microseconds; latest 0: no end
	inclusive      bool
	limit          int
	from           int64 // where the cursor stands; 0 for none
}

// micros reads a ts in microseconds; "0", "1712.5" and "1712" are taken too.
func micros(ts string) (int64, bool) {
	sec, frac, _ := strings.Cut(ts, ".")
	if sec == "" || len(frac) > 6 || len(sec) > 12 {
		return 0, false
	}
	n, err := strconv.ParseInt(sec+frac+strings.Repeat("0", 6-len(frac)), 10, 64)
	return n, err == nil && n >= 0
}

func (c *call) window() (window, *apiError) {
	w := window{inclusive: c.p.flag("inclusive"), limit: c.p.number("limit", 100)}
	if w.limit <= 0 {
		w.limit = 100
	}
	w.limit = min(w.limit, 1000)
	ok := true
	if v := c.p["oldest"]; v != "" {
		if w.oldest, ok = micros(v); !ok {
			return w, fail("invalid_ts_oldest")
		}
	}
	if v := c.p["latest"]; v != "" && v != "now" {
		if w.latest, ok = micros(v); !ok {
			return w, fail("invalid_ts_latest")
		}
	}
	if v := c.p["cursor"]; v != "" {
		raw, err := base64.StdEncoding.DecodeString(v)
		if err == nil {
			w.from, err = strconv.ParseInt(strings.TrimPrefix(string(raw), "next_ts:"), 10, 64)
		}
		if err != nil || w.from <= 0 {
			return w, fail("invalid_cursor")
		}
	}
	return w, nil
}

func (w window) has(us int64) bool {
	if w.inclusive {
		return us >= w.oldest && (w.latest == 0 || us <= w.latest)
	}
	return us > w.oldest && (w.latest == 0 || us < w.latest)
}

func tsCursor(us int64) obj {
	return cursor(base64.StdEncoding.EncodeToString([]byte("next_ts:" + strconv.FormatInt(us, 10))))
}

// view is what the caller sees: of metadata nothing without the scope, and the
// payload only when it asks for it.
func (c *call) view() view {
	v := view{asOf: c.asOf}
	if c.needs("metadata.message:read") == nil {
		v.metadata = c.p.flag("include_all_metadata")
		v.kind = !v.metadata
	}
	return v
}

func (c *call) readable() (*channel, *apiError) {
	ch, bad := c.channel("", "history")
	if bad != nil {
		return nil, bad
	}
	if c.who.app != nil && !ch.has(c.who.user.ID) {
		return nil, fail("not_in_channel")
	}
	return ch, nil
}

// history answers newest first: what stands in the channel itself.
func history(c *call) (obj, *apiError) {
	ch, bad := c.readable()
	if bad != nil {
		return nil, bad
	}
	w, bad := c.window()
	if bad != nil {
		return nil, bad
	}
	v := c.view()
	out := []*Message{}
	body := obj{"pin_count": 0, "channel_actions_ts": nil, "channel_actions_count": 0, "has_more": false}
	if c.p["latest"] != "" {
		body["latest"] = c.p["latest"]
	}
	for i := len(ch.msgs) - 1; i >= 0; i-- {
		m := ch.msgs[i]
		us, _ := micros(m.ts)
		if us < w.oldest {
			break
		}
		if w.from != 0 && us > w.from || !w.has(us) || !v.seen(m) || m.parent != nil && !m.broadcast {
			continue
		}
		if len(out) == w.limit {
			body["has_more"], body["response_metadata"] = true, tsCursor(us)
			break
		}
		out = append(out, c.s.render(m, v))
	}
	body["messages"] = out
	return body, nil
}

// replies answers oldest first, the root on top of every page; asked for a reply's
// ts it returns that reply alone.
func replies(c *call) (obj, *apiError) {
	ch, bad := c.readable()
	if bad != nil {
		return nil, bad
	}
	w, bad := c.window()
	if bad != nil {
		return nil, bad
	}
	v := c.view()
	m := ch.byTS[c.p["ts"]]
	if m == nil || !v.seen(m) {
		return nil, fail("thread_not_found")
	}
	out := []*Message{c.s.render(m, v)}
	body := obj{"has_more": false}
	for _, r := range m.replies {
		us, _ := micros(r.ts)
		if w.from != 0 && us < w.from || !w.has(us) || !v.seen(r) {
			continue
		}
		if len(out) > w.limit {
			body["has_more"], body["response_metadata"] = true, tsCursor(us)
			break
		}
		out = append(out, c.s.render(r, v))
	}
	body["messages"] = out
	return body, nil
}
