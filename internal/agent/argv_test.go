package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestArgv_SaysAllInOnePlace(t *testing.T) {
	s := Spec{
		SessionID: "id", Model: "opus", SystemPrompt: "-be\nkind", AllowedTools: []string{"Read", "Bash(git log *)"},
		DisallowedTools: []string{"WebFetch"}, AddDirs: []string{"/src/a/"}, PermissionMode: "acceptEdits", Prompt: "--the prompt",
	}
	fixed := []string{"/bin/claude", "--print", "--output-format=stream-json", "--verbose", "--strict-mcp-config", "--setting-sources=user"}
	require.Equal(t, append(fixed[:len(fixed):len(fixed)], "--permission-mode=acceptEdits", "--session-id=id", "--model=opus",
		"--append-system-prompt=-be\nkind", "--allowedTools=Read,Bash(git log *)", "--disallowedTools=WebFetch", "--add-dir=/src/a"),
		argv("/bin/claude", s, false))
	require.Equal(t, append(fixed[:len(fixed):len(fixed)], "--permission-mode=default", "--resume=id"),
		argv("/bin/claude", Spec{SessionID: "id", Prompt: "--the prompt"}, true))
	require.Equal(t, append(fixed[:len(fixed):len(fixed)], "--permission-mode=default", `--json-schema={"type":"object"}`, "--tools=",
		"--disable-slash-commands", "--no-session-persistence", "--model=haiku", "--system-prompt=classify"),
		argv("/bin/claude", Spec{Schema: `{"type":"object"}`, Model: "haiku", SystemPrompt: "classify"}, false))
}

func TestRunEnv_MarksTheRun(t *testing.T) {
	env := []string{"A=a", "SMITH_RUN=old"}
	require.Equal(t, []string{"A=a", "SMITH_RUN=new"}, runEnv(env, Spec{RunID: "new"}))
	require.Equal(t, []string{"A=a", "SMITH_RUN=new", "MAX_THINKING_TOKENS=0"}, runEnv(env, Spec{RunID: "new", Schema: "{}"}))
	require.Equal(t, []string{"A=a", "SMITH_RUN=old"}, env)
}

func TestBuildEnv_KeepsOnlyWhatIsNamed(t *testing.T) {
	environ := []string{"PATH=/bin", "HOME=/home/person", "ANTHROPIC_API_KEY=k", "OTHER=o", "SLACK_BOT_TOKEN=s", "LANG=C", "BAD"}
	require.Equal(t, []string{"PATH=/bin", "ANTHROPIC_API_KEY=k", "LANG=C", "HOME=/home/agent"},
		BuildEnv(environ, []string{"ANTHROPIC_API_KEY", "SLACK_BOT_TOKEN"}, "/home/agent"))
	require.Equal(t, []string{"PATH=/bin", "HOME=/home/person", "LANG=C"}, BuildEnv(environ, nil, ""))
}

func TestBuildEnv_NeverKeepsATokenOfOurs(t *testing.T) {
	for _, kv := range []string{
		"SLACK_X=1", "TEMPORAL_API_KEY=1", "TEMPORAL_TLS_CLIENT_KEY_DATA=1", "SMITH_BOT_TOKEN=1", "TRINITY_APP_TOKEN=1", "X=xoxb-1-a", "X=xapp-1-a", "SMITH_FAILPOINTS=1",
	} {
		name, _, _ := strings.Cut(kv, "=")
		require.Empty(t, BuildEnv([]string{kv}, []string{name}, ""), kv)
	}
}

func TestWithDefaults_TheConfigHasTheLastWord(t *testing.T) {
	env := withDefaults([]string{"CLAUDE_CODE_DISABLE_ATTACHMENTS=0", "HOME=/a"}, "/b")
	require.Equal(t, "0", lookup(env, "CLAUDE_CODE_DISABLE_ATTACHMENTS"))
	require.Equal(t, "1", lookup(env, "DISABLE_AUTOUPDATER"))
	require.Equal(t, "/b", lookup(env, "HOME"))
}

func FuzzCleanPrompt(f *testing.F) {
	for _, seed := range []string{"hello", "/cost", "a\x00b", "\xff", "\x1b[201~", "x\r\ny\tz", "\u0085", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := cleanPrompt(in)
		require.True(t, utf8.ValidString(out))
		require.NotContains(t, out, "\x00")
		require.NotContains(t, out, "\x1b")
		require.Equal(t, out, cleanPrompt(out))
	})
}

func TestResumable_NeedsAMessage(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		want    bool
		aside   bool
	}{
		"empty":          {"", false, true},
		"zeros":          {strings.Repeat("\x00", 300), false, true},
		"queue only":     {`{"type":"queue-operation"}` + "\n" + `{"type":"queue-operation"}` + "\n", false, true},
		"a user's":       {`{"type":"queue-operation"}` + "\n" + `{"type":"user"}` + "\n", true, false},
		"torn after one": {`{"type":"user"}` + "\n" + `{"type":"assis`, true, false},
		"torn in one":    {`{"x":1,"type":"user"`, false, true},
		"a long line":    {strings.Repeat("x", 100<<10) + "\n", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			dir := filepath.Join(home, ".claude", "projects", "-p")
			require.NoError(t, os.MkdirAll(dir, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "id.jsonl"), []byte(tc.content), 0o600))
			got, err := transcripts{home: home}.resumable("id")
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			kept, err := filepath.Glob(filepath.Join(dir, "id.jsonl*"))
			require.NoError(t, err)
			require.Len(t, kept, 1, "nothing is removed")
			require.Equal(t, tc.aside, strings.Contains(kept[0], ".aside-"))
		})
	}
	got, err := transcripts{home: t.TempDir()}.resumable("id")
	require.NoError(t, err)
	require.False(t, got)
}
