package slackbox

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func FuzzParseParams(f *testing.F) {
	f.Add("application/x-www-form-urlencoded", "a=b", []byte("token=x&text=%3Chi%3E&blocks=[]"))
	f.Add("application/json; charset=utf-8", "", []byte(`{"channel":"C1","n":1,"blocks":[{"type":"divider"}],"x":null}`))
	f.Add("application/json", "", []byte(`[1]`))
	f.Add("multipart/form-data; boundary=b", "", []byte("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n"))
	f.Add("multipart/form-data", "%zz", []byte("--"))
	f.Add("", "", []byte("\xff\x00=%"))
	f.Fuzz(func(t *testing.T, contentType, query string, body []byte) {
		p, err := parseParams(contentType, query, body)
		if err != nil {
			require.ErrorIs(t, err, errBody)
			return
		}
		for k, v := range p {
			require.True(t, utf8.ValidString(v), "%q", k)
			p.flag(k)
			p.number(k, 0)
			p.list(k)
		}
	})
}

func FuzzControl(f *testing.F) {
	f.Add([]byte(`{"kind":"rate_limited","method":"chat.*","count":2,"probability":0.5}`))
	f.Add([]byte(`{"app":"smith","frame":{"type":"x"},"advance":"1m"}`))
	f.Add([]byte(`{"users":[{"name":"x"}],"channels":[{"name":"y","members":["x"]}]}`))
	f.Add([]byte(`{"kind":1}`))
	f.Add([]byte(`{} {}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := New(Options{Clock: NewFrozenClock(NewClock().Now())})
		defer func() { _ = s.Close() }()
		var fault Fault
		if decodeStrict(body, &fault) == nil {
			if id, err := s.AddFault(fault); err == nil {
				require.NotEmpty(t, id)
				s.RemoveFault(id)
			}
		}
		var seed Seed
		if decodeStrict(body, &seed) == nil {
			_ = s.Add(seed)
		}
		var c command
		if decodeStrict(body, &c) == nil {
			_ = s.SendRaw(c.App, c.Frame)
			_ = s.SendEvent(c.App, c.Event)
		}
		_, err := json.Marshal(s.State())
		require.NoError(t, err)
	})
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"a & b", "<@U1|x>", "<b>", "https://x.y/?a&b", "&amp;&lt;&gt;", "<<>>", "<!date^1^{x}|y>", "x<http://a", "http://&lt;", "http://a&amp;", "http://&lt", "https://a&gt;.b", strings.Repeat("<@U1>", 20)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		in = strings.ToValidUTF8(in, "\uFFFD")
		once := escape(in)
		require.Equal(t, once, escape(once), "what is escaped stays as it is")
		rest := anEntity.ReplaceAllString(once, "")
		require.False(t, strings.ContainsAny(rest, "<>"), "%q", once)
		require.True(t, json.Valid(richText(once, "b")))
		mentions(once, nil)
	})
}

func FuzzBlocks(f *testing.F) {
	f.Add(`[{"type":"section","text":{"type":"mrkdwn","text":"x"}}]`, `{"event_type":"a","event_payload":{"b":1}}`)
	f.Add(`[{"type":"header","text":7},{"type":"context","elements":[{"type":"mrkdwn","text":"x"}]}]`, `{"event_type":"a.b"}`)
	f.Add(`[{"type":"markdown","text":"**x**"},{"type":"rich_text","elements":[{"text":"a"}]}]`, `null`)
	f.Add(`{}`, `[]`)
	f.Add(`[1]`, `{"event_type":"a","event_payload":[]}`)
	f.Fuzz(func(t *testing.T, blocks, metadata string) {
		out, bad := checkBlocks(blocks, func() string { return "id" })
		if bad == nil && out != nil {
			require.True(t, json.Valid(out))
			mentions("", out)
		}
		md, _, bad := checkMetadata(metadata)
		if bad == nil && md != nil {
			require.True(t, json.Valid(md.EventPayload))
		}
	})
}

func FuzzAck(f *testing.F) {
	f.Add([]byte(`{"envelope_id":"a","payload":{"text":"x"}}`))
	f.Add([]byte(`{"envelope_id":7}`))
	f.Add([]byte(`nope`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if id, _, ok := parseAck(b); ok {
			require.NotEmpty(t, id)
		}
	})
}
