package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

const oneSeat = "seats: [{name: smith}]\n"

// loadWith loads a config in an environment that has more.
func loadWith(t *testing.T, more map[string]string, text string, opts ...Option) (*Config, error) {
	t.Helper()
	return parseConfig("smith.yaml", []byte(text), func(name string) string {
		if v, ok := more[name]; ok {
			return v
		}
		return goodEnv(name)
	}, opts...)
}

func TestLoad_OperatorsAreCarefulByDefault(t *testing.T) {
	c, err := load(t, oneSeat)
	require.NoError(t, err)
	require.False(t, c.Operators.SkipPermissions, "X4")
	require.False(t, c.Operators.Off, "O5: unset means on")
	require.Equal(t, 8, c.Operators.Limit)
	require.Equal(t, "smith", c.Operators.Socket)
	require.Equal(t, CleanupWorktree, c.Operators.Cleanup)
	require.Equal(t, c.DataDir+"/operators/home", c.Operators.Home)
	require.Equal(t, Classifier{Model: "haiku", Timeout: 45 * time.Second}, c.Classifier)
	require.True(t, c.Access.SpawnAllowed.Members)
}

func TestLoad_AutoOperatorIsSwitchedOffByTheEnvironment(t *testing.T) {
	for value, off := range map[string]bool{"": false, "on": false, "ON": false, "off": true, "OFF": true} {
		c, err := loadWith(t, map[string]string{"SMITH_AUTO_OPERATOR": value}, oneSeat)
		require.NoError(t, err, value)
		require.Equal(t, off, c.Operators.Off, value)
	}
	_, err := loadWith(t, map[string]string{"SMITH_AUTO_OPERATOR": "false"}, oneSeat)
	require.ErrorContains(t, err, `SMITH_AUTO_OPERATOR in the environment must be on or off, not "false"`)
}

func TestLoad_SpawnAllowedKnowsMembersAListAndNobody(t *testing.T) {
	for text, want := range map[string]Spawn{
		"members":     {Members: true},
		"nobody":      {},
		"[]":          {Users: []string{}},
		"[U012,W345]": {Users: []string{"U012", "W345"}},
	} {
		c, err := load(t, oneSeat+"access: {spawn_allowed: "+text+"}\n")
		require.NoError(t, err, text)
		require.Equal(t, want, c.Access.SpawnAllowed, text)
	}
}

// Each process is given the secret that it needs, and no other (X3).
func TestLoad_GivesGitHubsSecretsToWhoNeedsThem(t *testing.T) {
	env := map[string]string{"SMITH_GITHUB_TOKEN": "ghp_0123456789", "SMITH_GITHUB_WEBHOOK_SECRET": "0123456789abcdef"}
	const text = oneSeat + "github: {listen: \"127.0.0.1:9472\"}\n"
	for name, tc := range map[string]struct {
		opts           []Option
		token, webhook string
	}{
		"starter":  {nil, "", "0123456789abcdef"},
		"worker":   {[]Option{ForWorker()}, "ghp_0123456789", ""},
		"launcher": {[]Option{ForLauncher()}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := loadWith(t, env, text, tc.opts...)
			require.NoError(t, err)
			require.Equal(t, tc.token, c.GitHub.Token.Reveal())
			require.Equal(t, tc.webhook, c.GitHub.WebhookSecret.Reveal())
		})
	}
}

func TestLoad_TheWebhooksDoorHasAPortOfItsOwn(t *testing.T) {
	_, err := loadWith(t, map[string]string{"SMITH_GITHUB_WEBHOOK_SECRET": "0123456789abcdef"}, oneSeat+"github: {listen: \"127.0.0.1:9470\"}\n")
	require.Equal(t, []string{"2: github.listen is an address under listen: already; give it a port of its own"}, problemsOf(t, err))
}

func TestLoad_ForLauncherNeedsNoSecret(t *testing.T) {
	c, err := parseConfig("smith.yaml", []byte("data_dir: /d\nseats: [{name: neo}]\ngithub: {listen: \"127.0.0.1:9472\"}\n"), func(string) string { return "" }, ForLauncher())
	require.NoError(t, err)
	require.Empty(t, c.Seats[0].BotToken)
	require.Equal(t, "/d/operators/home", c.Operators.Home)
}

// What is gone since the config was read is no checkout any more (O4).
func TestCheckouts_AreTheWritableRootsThatExist(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"shop", "gone"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name, ".git"), 0o700))
	}
	c, err := load(t, oneSeat+"writable_roots: ["+dir+"/shop, "+dir+"/gone]\n")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "gone")))
	require.Equal(t, []rules.Checkout{{Name: "shop", Path: c.WritableRoots[0]}}, c.Checkouts())
}
