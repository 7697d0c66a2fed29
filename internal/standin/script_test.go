package standin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestScript_CarriesOutDirectives(t *testing.T) {
	for name, tc := range map[string]struct {
		section string
		step    int
		results []string
		want    Reply
	}{
		"none":         {section: "how are  you?\n", want: Reply{Text: "I am a stand-in for the model: nobody is signed in to claude here. You said: how are you?"}},
		"say":          {section: "please [[say hello there]] now", want: Reply{Text: "hello there"}},
		"two texts":    {section: "[[say a]][[say b]]", want: Reply{Text: "a b"}},
		"abstain":      {section: "[[abstain]]", want: Reply{Text: DefaultAbstain}},
		"sleep":        {section: "[[sleep 2s]] [[say x]]", want: Reply{Text: "x", Wait: 2 * time.Second}},
		"error":        {section: "[[error 529]]", want: Reply{Status: 529, Kind: "overloaded_error", Message: "Overloaded"}},
		"rate limit":   {section: "[[ratelimit]]", want: Reply{Status: 429, Kind: "rate_limit_error", Message: "This request would exceed your rate limit.", RetryAfter: time.Second}},
		"hang":         {section: "[[hang]]", want: Reply{Hang: true}},
		"mid-stream":   {section: "[[say half]] [[hang]]", want: Reply{Text: "half", Hang: true}},
		"drop":         {section: "[[drop]]", want: Reply{Drop: true}},
		"unknown":      {section: "[[dance]] [[say x]]", want: Reply{Text: "x"}},
		"not closed":   {section: "[[say x", want: Reply{Text: "I am a stand-in for the model: nobody is signed in to claude here. You said: [[say x"}},
		"escaped":      {section: "[[say a &lt;b&gt; &amp;lt;]]", want: Reply{Text: "a <b> &lt;"}},
		"tool":         {section: `[[tool Bash {"command":"test [[ a ]]"}]] [[say done]]`, want: Reply{Tool: &ToolUse{"Bash", json.RawMessage(`{"command":"test [[ a ]]"}`)}}},
		"after a tool": {section: `[[say first]] [[tool Bash {}]] [[sleep 1s]] [[result]]`, step: 1, results: []string{"it"}, want: Reply{Text: "it", Wait: time.Second}},
		"second tool":  {section: `[[tool A {}]] [[tool B {"x":1}]] [[say done]]`, step: 1, want: Reply{Tool: &ToolUse{"B", json.RawMessage(`{"x":1}`)}}},
		"bad JSON":     {section: `[[tool A {]] [[say x]]`, want: Reply{Tool: &ToolUse{"A", json.RawMessage(`{}`)}}},
		"file":         {section: `[[file out/a.txt two words]]`, want: Reply{Tool: &ToolUse{"Write", json.RawMessage(`{"content":"two words","file_path":"/threads/one/out/a.txt"}`)}}},
		"after a file": {section: `[[file a x]]`, step: 1, want: Reply{Text: "Done, says the stand-in."}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Script(Directives{})(Request{Said: tc.section, Step: tc.step, Results: tc.results, Dir: "/threads/one"})
			require.Equal(t, tc.want, got)
		})
	}
}

func TestScript_LongIsAsLongAsAsked(t *testing.T) {
	for _, n := range []string{"1", "90000", "0", "x", "-4"} {
		r := Script(Directives{})(Request{Said: "[[long " + n + "]]"})
		if n == "90000" {
			require.Len(t, r.Text, 90000)
		}
	}
}

func TestScript_KnowsTheAbstainSentinelOfTheSystem(t *testing.T) {
	require.Equal(t, "NONE", Script(Directives{Abstain: "NONE"})(Request{Said: "[[abstain]]"}).Text)
}

func TestScript_SaysBackOnlyTheBeginningOfALongLine(t *testing.T) {
	text := Script(Directives{})(Request{Said: strings.Repeat("é", 5000)}).Text
	require.Less(t, len([]rune(text)), 600)
}

func TestParseRequest_OnlyTheNewestPromptCounts(t *testing.T) {
	r, err := ParseRequest([]byte(`{"model":"m","stream":true,"tools":[{"name":"Bash"}],
	 "metadata":{"user_id":"{\"session_id\":\"the-session\"}"},
	 "system":[{"type":"text","text":"x\n - Primary working directory: /threads/one\n - y"}],
	 "messages":[
	  {"role":"user","content":[{"type":"text","text":"<system-reminder>no</system-reminder>"},{"type":"text","text":"[[say old]]"}]},
	  {"role":"system","content":"a list"},
	  {"role":"assistant","content":[{"type":"tool_use","name":"Bash","input":{}}]},
	  {"role":"user","content":[{"type":"tool_result","content":"old result"}]},
	  {"role":"assistant","content":"ok"},
	  {"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"},{"type":"text","text":"## Earlier\n[[say quoted]]\n## New lines\nana at 1700000000.000100:\n| [[say new]]\n| and more\nfile: [[say name]]\n"}]},
	  {"role":"assistant","content":[{"type":"tool_use","name":"Bash","input":{}}]},
	  {"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"new result"}]},{"type":"text","text":"<system-reminder>x</system-reminder>"},
	   {"type":"text","text":"[structured-output-enforce] You MUST call it"},{"type":"text","text":"[Your previous response had no visible output. Go on.]"}]}
	 ]}`))
	require.NoError(t, err)
	require.Equal(t, "[[say new]]\nand more", r.Said)
	require.Equal(t, []string{"1700000000.000100"}, lineTS(r.Section))
	require.Equal(t, []string{"[[say old]]", r.Said}, r.History)
	require.Equal(t, 2, r.Prompts)
	require.Equal(t, 1, r.Step)
	require.Equal(t, []string{"new result"}, r.Results)
	require.Equal(t, "the-session", r.Session)
	require.Equal(t, "/threads/one", r.Dir)
	require.Equal(t, []string{"Bash"}, r.Tools)
	require.False(t, r.Background)
	require.Equal(t, "new", Script(Directives{})(Request{Said: r.Said}).Text)
}

func TestParseRequest_ATitleIsNoTurn(t *testing.T) {
	title := `{"model":"m","tools":[],"output_config":{"format":{"type":"json_schema"}},"messages":[{"role":"user","content":"<session>x</session>"}]}`
	r, err := ParseRequest([]byte(title))
	require.NoError(t, err)
	require.True(t, r.Background)
	for _, turn := range []string{
		`{"model":"m","tools":[{"name":"StructuredOutput"}],"output_config":{"format":{"type":"json_schema"}},"messages":[]}`,
		`{"model":"m","tools":[],"output_config":{"effort":"high"},"messages":[]}`,
	} {
		r, err = ParseRequest([]byte(turn))
		require.NoError(t, err)
		require.False(t, r.Background, turn)
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"messages":[{"role":"user","content":"hello"}]}`, `{"messages":[{"role":"user","content":[{"type":"tool_result","content":5}]}]}`,
		`{"system":"x","messages":null,"metadata":{"user_id":"{"}}`, `{"messages":[{"role":"user","content":"## \n## "}]}`, `[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := ParseRequest(in)
		if err != nil {
			return
		}
		require.Len(t, r.History, r.Prompts)
		_ = Script(Directives{})(r)
	})
}

func FuzzParseDirectives(f *testing.F) {
	for _, seed := range []string{"[[say x]]", `[[tool Bash {"a":"]]"}]]`, "[[tool]]", "[[[[say]]", "[[file]]", "[[long 99]]", "[[sleep -1s]]", "[[error x]]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, d := range parseDirectives(in) {
			require.True(t, known[d.name])
		}
	})
}
