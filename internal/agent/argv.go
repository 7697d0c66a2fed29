package agent

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// MaxSystemPrompt bounds Spec.SystemPrompt in bytes: it is an argument, and Linux
// refuses one of 128 KiB.
const MaxSystemPrompt = 100 << 10

// RunMarker is the environment variable that every process of a run carries.
const RunMarker = "SMITH_RUN"

// argv is how the CLI is called. The prompt is not in it: it may begin with "-", may
// be longer than an argument can be, and arguments are readable by every user.
//
// Values stand behind "=", so that none is taken for a flag. MCP servers and the
// settings of the directory are left out: an agent that may write there must not be
// able to give itself permissions or hooks for its next turn (X4).
func argv(path string, s Spec, resume bool) []string {
	a := []string{path, "--print", "--output-format=stream-json", "--verbose",
		"--strict-mcp-config", "--setting-sources=user", "--permission-mode=" + mode(s.PermissionMode)}
	if s.Schema != "" {
		a = append(a, "--json-schema="+s.Schema, "--tools=", "--disable-slash-commands", "--no-session-persistence")
	}
	switch {
	case resume:
		a = append(a, "--resume="+s.SessionID)
	case s.SessionID != "":
		a = append(a, "--session-id="+s.SessionID)
	}
	if s.Model != "" { // without it a resumed session keeps the model it had
		a = append(a, "--model="+s.Model)
	}
	switch {
	case s.SystemPrompt == "":
	case s.Schema != "":
		a = append(a, "--system-prompt="+s.SystemPrompt)
	default:
		a = append(a, "--append-system-prompt="+s.SystemPrompt)
	}
	if len(s.AllowedTools) > 0 {
		a = append(a, "--allowedTools="+strings.Join(s.AllowedTools, ","))
	}
	if len(s.DisallowedTools) > 0 {
		a = append(a, "--disallowedTools="+strings.Join(s.DisallowedTools, ","))
	}
	for _, d := range s.AddDirs {
		a = append(a, "--add-dir="+filepath.Clean(d))
	}
	return a
}

func mode(m string) string {
	if m == "" {
		return "default"
	}
	return m
}

// checkMode refuses a mode that skips permissions, and any that this code does not
// know (X4).
func checkMode(m string) error {
	if slices.Contains([]string{"default", "acceptEdits", "plan", "dontAsk", "auto"}, mode(m)) {
		return nil
	}
	return fmt.Errorf("run an agent: permission mode %q is not allowed here", m)
}

// defaults are set in the agent's environment where the config does not set them.
func defaults() [][2]string {
	return [][2]string{
		{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
		{"DISABLE_TELEMETRY", "1"},
		{"DISABLE_ERROR_REPORTING", "1"},
		{"DISABLE_AUTOUPDATER", "1"},
		// Else "@/any/path" in a person's line is read into the conversation with no
		// question of permission, by the CLI itself and with no tool allowed (X2).
		{"CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"},
	}
}

func withDefaults(env []string, home string) []string {
	env = slices.Clone(env)
	if home != "" {
		env = set(env, "HOME", home)
	}
	for _, d := range defaults() {
		if lookup(env, d[0]) == "" {
			env = set(env, d[0], d[1])
		}
	}
	return env
}

// runEnv is the environment of one run. Where a form is asked for, thinking aloud first
// would only take time.
func runEnv(env []string, s Spec) []string {
	env = set(slices.Clone(env), RunMarker, s.RunID)
	if s.Schema != "" {
		env = set(env, "MAX_THINKING_TOKENS", "0")
	}
	return env
}

// basics are passed on to an agent whatever the config says.
func basics() []string {
	return []string{"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
}

// BuildEnv makes an agent's environment (X3): of environ, a process's own, it keeps
// only basics and the names in pass, and HOME is home where that is set. Whatever
// pass says, a Slack or Temporal credential is never kept: not by its name, and not
// by a value that looks like a Slack token.
func BuildEnv(environ, pass []string, home string) []string {
	want := append(basics(), pass...)
	if home == "" {
		want = append(want, "HOME")
	}
	var env []string
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if ok && slices.Contains(want, name) && !forbidden(name, value) {
			env = set(env, name, value)
		}
	}
	if home != "" {
		env = set(env, "HOME", home)
	}
	return env
}

func forbidden(name, value string) bool {
	n := strings.ToUpper(name)
	for _, part := range []string{"SLACK", "TEMPORAL", "_BOT_TOKEN", "_APP_TOKEN", "SMITH_"} {
		if strings.Contains(n, part) {
			return true
		}
	}
	return slackToken.MatchString(value)
}

// lookup returns the value of name in env, "" when it is not there.
func lookup(env []string, name string) string {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// set returns env with name as value, once.
func set(env []string, name, value string) []string {
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	return append(env, name+"="+value)
}

// hold is given to the CLI at once, before the prompt. Without a first byte it
// proceeds after 3 s with no prompt at all, however long the start takes to be
// recorded; and a prompt that begins with "/" would be a command of the CLI's own
// and reach no model, which one in the second row is not.
const hold = "\n"

// cleanPrompt makes a prompt that the CLI takes as it is.
func cleanPrompt(p string) string {
	p = strings.ToValidUTF8(p, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, p)
}
