package standin

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const repositories = "## Repositories\n- web\n- api.go\n\n## New lines\n"

func TestScript_ClassifiesByARuleOfItsOwn(t *testing.T) {
	for said, want := range map[string]string{
		"fix the login in web":                        `{"kind":"work","repo":"web","slug":"fix-login-in-web"}`,
		"@smith, please fix the login in `api.go`.":   `{"kind":"work","repo":"api.go","slug":"fix-login-in-api"}`,
		"Hello! Could you write tests for web?":       `{"kind":"work","repo":"web","slug":"write-tests-for-web"}`,
		"work: 日本語 in webs":                           `{"kind":"work","repo":"","slug":"in-webs"}`,
		"some talk\nAdd a button":                     `{"kind":"work","repo":"","slug":"add-button"}`,
		"how do I fix the login in web?":              `{"kind":"question","repo":"","slug":""}`,
		"please":                                      `{"kind":"question","repo":"","slug":""}`,
		"fixed it in web":                             `{"kind":"question","repo":"","slug":""}`,
		"fix this [[say hello]]":                      `{"kind":"question","repo":"","slug":""}`,
		"[[classify work]]":                           `{"kind":"work","repo":"","slug":""}`,
		"why? [[classify work a-b web]] [[say x]]":    `{"kind":"work","repo":"web","slug":"a-b"}`,
		"[[classify work - web]]":                     `{"kind":"work","repo":"web","slug":""}`,
		"fix it [[classify question]]":                `{"kind":"question","repo":"","slug":""}`,
		`[[classify {"kind":"a]]b","slug":"../x"} ]]`: `{"kind":"a]]b","slug":"../x"}`,
	} {
		t.Run(said, func(t *testing.T) {
			r := Script(Directives{})(Request{Form: true, Said: said, User: repositories + "| " + said})
			require.NotNil(t, r.Tool)
			require.Equal(t, FormTool, r.Tool.Name)
			require.JSONEq(t, want, string(r.Tool.Input))
		})
	}
}

func TestScript_TakesTheRepoThatWasMissing(t *testing.T) {
	ask := func(earlier, said string) string {
		r := Script(Directives{})(Request{Form: true, Said: said, User: "## Repositories\n- web\n\n## Asked earlier in this thread\n| " + earlier + "\n\n## New lines\n| " + said + "\n"})
		return string(r.Tool.Input)
	}
	require.JSONEq(t, `{"kind":"work","repo":"web","slug":"fix-footer"}`, ask("fix the footer", "it's in web"))
	require.JSONEq(t, `{"kind":"question","repo":"","slug":""}`, ask("fix the footer", "it's in api"))
	require.JSONEq(t, `{"kind":"question","repo":"","slug":""}`, ask("what a nice footer", "it's in web"))
}

func TestScript_ClassifiesBadlyWhereItIsTold(t *testing.T) {
	for said, want := range map[string]Reply{
		"[[classify say it is work]]":    {Text: "it is work"},
		"[[classify error 529]]":         {Status: 529, Kind: "overloaded_error", Message: "Overloaded"},
		"[[classify hang]]":              {Hang: true},
		"[[classify drop]]":              {Drop: true},
		"[[classify sleep 2s question]]": {Wait: 2 * time.Second, Tool: &ToolUse{FormTool, json.RawMessage(`{"kind":"question","repo":"","slug":""}`)}},
	} {
		require.Equal(t, want, Script(Directives{})(Request{Form: true, Said: said}), said)
	}
}

func TestScript_ATurnKnowsNothingOfTheClassifier(t *testing.T) {
	script := Script(Directives{})
	require.Equal(t, "x", script(Request{Said: "[[classify work a-b web]] [[say x]]"}).Text)
	require.Contains(t, script(Request{Said: "[[classify work a-b web]]"}).Text, "I am a stand-in")
}

func TestScript_OneLineSpeaksToTheTurnAndToTheTerminal(t *testing.T) {
	line := "[[say here]] [[terminal]] [[commit it's done]] [[say there]]"
	script := Script(Directives{})
	require.Equal(t, Reply{Text: "here"}, script(Request{Said: line}))
	require.Equal(t, Reply{Tool: &ToolUse{"Bash", json.RawMessage(`{"command":"git add --all \u0026\u0026 git commit --quiet --message 'it'\\''s done'"}`)}},
		script(Request{Said: line, Terminal: true}))
	require.Equal(t, Reply{Text: "there"}, script(Request{Said: line, Terminal: true, Step: 1}))
	require.Equal(t, Reply{Text: "both"}, script(Request{Said: "[[say both]]", Terminal: true}))
}

func TestParseRequest_TellsATerminalAndAForm(t *testing.T) {
	for entry, terminal := range map[string]bool{"cli": true, "sdk-cli": false} {
		r, err := ParseRequest([]byte(`{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=1; cc_entrypoint=` + entry + `;"}],"tools":[{"name":"Bash"}],"messages":[
		 {"role":"user","content":"Line from ana in Slack: [[say a]]\n| [[say b]]"}]}`))
		require.NoError(t, err)
		require.Equal(t, terminal, r.Terminal, entry)
		require.False(t, r.Form)
		require.Equal(t, "[[say a]]\n[[say b]]", r.Said)
	}
	r, err := ParseRequest([]byte(`{"tools":[{"name":"StructuredOutput"}],"messages":[]}`))
	require.NoError(t, err)
	require.True(t, r.Form)
}

func TestServer_KeepsFormsOutOfTheLogOfTurns(t *testing.T) {
	s := start(t)
	body := `{"model":"m","stream":true,"tools":[{"name":"StructuredOutput"}],"messages":[{"role":"user","content":"fix the login"}]}`
	res, err := http.Post(s.URL()+"/v1/messages", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	_ = res.Body.Close()
	require.Empty(t, s.Log())
	require.Eventually(t, func() bool { return s.Forms()[0].Outcome == Served }, 5*time.Second, time.Millisecond)
	require.JSONEq(t, `{"kind":"work","slug":"fix-login","repo":""}`, s.Forms()[0].Answer)
}
