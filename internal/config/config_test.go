package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// goodEnv has what one seat named smith needs.
func goodEnv(name string) string {
	return map[string]string{
		"HOME":            "/srv/somebody",
		"SMITH_BOT_TOKEN": "xoxb-1-bot", "SMITH_APP_TOKEN": "xapp-1-app",
		"TRINITY_BOT_TOKEN": "xoxb-2-bot", "TRINITY_APP_TOKEN": "xapp-2-app",
	}[name]
}

func load(t *testing.T, text string, opts ...Option) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "smith.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return Load(path, goodEnv, opts...)
}

// problemsOf returns the problems as "line: text".
func problemsOf(t *testing.T, err error) []string {
	t.Helper()
	var all Problems
	require.True(t, errors.As(err, &all), "want Problems, got %v", err)
	var out []string
	for _, p := range all {
		out = append(out, fmt.Sprintf("%d: %s", p.Line, p.Text))
	}
	return out
}

func TestLoad_FillsInTheDefaults(t *testing.T) {
	c, err := load(t, "seats: [{name: smith}]\n")
	require.NoError(t, err)
	require.Equal(t, "/srv/somebody/.local/share/smith", c.DataDir)
	require.Equal(t, "/srv/somebody/.local/share/smith/smith.db", c.DatabaseURL.Reveal())
	require.Equal(t, "https://slack.com/api/", c.Slack.APIURL)
	require.Equal(t, 30*time.Minute, c.Limits.TurnTimeout)
	require.Equal(t, int64(8<<20), c.Limits.TurnOutputBytes)
	require.True(t, c.Access.Talk.Members)
	require.Empty(t, c.Access.Owners)
	require.Equal(t, "127.0.0.1:9470", c.Listen.Starter)
	seat, ok := c.Seat("smith")
	require.True(t, ok)
	require.Equal(t, "default", seat.PermissionMode)
	require.Equal(t, []string{"Read", "Grep", "Glob"}, seat.AllowedTools)
	require.Equal(t, "main", seat.Box)
	require.Equal(t, "xoxb-1-bot", seat.BotToken.Reveal())
	require.Equal(t, "xapp-1-app", seat.AppToken.Reveal())
}

func TestLoad_ReadsTheExampleAndItShowsTheDefaults(t *testing.T) {
	example, err := Load("../../smith.example.yaml", goodEnv)
	require.NoError(t, err)
	bare, err := load(t, "seats: [{name: smith}]\n")
	require.NoError(t, err)
	example.File, bare.File = "", ""
	// [] and an absent list mean the same.
	example.WritableRoots, example.Access.Owners, example.Schedules, example.Seats[0].DisallowedTools = nil, nil, nil, nil
	example.Seats[0].Area, example.Seats[0].Stickers = nil, nil
	require.Equal(t, bare, example)
}

func TestLoad_TheExampleNamesEveryField(t *testing.T) {
	text, err := os.ReadFile("../../smith.example.yaml")
	require.NoError(t, err)
	for _, name := range fieldNames() {
		require.True(t, strings.Contains(string(text), name+":"), "smith.example.yaml does not show %s", name)
	}
}

func TestLoad_PrintsFiveMistakesWithFileAndLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "smith.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`data_dir: /var/lib/smith
seets:
  - name: smith
seats:
  - name: smith
    permission_mode: bypassPermissions
limits:
  turn_timeout: 30
listen:
  starter: ":9470"
ops_channel: general
`), 0o600))
	_, err := Load(path, goodEnv)
	require.EqualError(t, err, strings.ReplaceAll(`FILE:2: unknown field "seets" at the top level; did you mean seats?
FILE:6: seats[0].permission_mode: bypassPermissions is refused: what a stranger writes would then run unasked; list the tools it may use in allowed_tools
FILE:8: limits.turn_timeout must be a duration with its unit, such as 30s, 5m or 1h30m, not the number "30"
FILE:10: listen.starter: ":9470" would listen on every interface; write 127.0.0.1:9470, or 0.0.0.0:9470 where that is meant
FILE:11: ops_channel must be the id of a channel, such as C0123456789, not "general" (Slack shows the id at the end of a channel's details)`, "FILE", path))
}

func TestLoad_RefusesOneMistakeWithOneLine(t *testing.T) {
	checkout := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(checkout, ".git"), 0o700))
	named := map[string]string{}
	for _, path := range []string{"a/app", "b/app", "inbox", "outbox"} {
		named[path] = filepath.Join(t.TempDir(), path)
		require.NoError(t, os.MkdirAll(filepath.Join(named[path], ".git"), 0o700))
	}
	seat := "seats: [{name: smith}]\n"
	for name, tc := range map[string]struct{ text, want string }{
		"empty":               {"", "1: the file is empty"},
		"only a comment":      {"# nothing\n", "1: the file is empty"},
		"no YAML":             {seat + "a: [\n", "not readable as YAML"},
		"no mapping":          {"- a\n", "1: the config must be a group of fields"},
		"nothing at all":      {"~\n", "1: the config must be a group of fields, one a line, not nothing"},
		"two documents":       {seat + "---\nbox: b\n", "a second YAML document"},
		"unknown field":       {seat + "colour: red\n", `2: unknown field "colour" at the top level; the fields there are access, agent`},
		"unknown inner":       {"seats: [{name: smith}]\nlimits:\n  daily_cost: 5\n", `3: unknown field "daily_cost" in limits`},
		"field twice":         {seat + "box: a\nbox: b\n", "3: box stands here a second time (first on line 2)"},
		"alias":               {"box: &b main\n" + seat, "1: box: anchors and aliases"},
		"merge key":           {seat + "<<: {box: a}\n", `2: unknown field "<<"`},
		"list as text":        {"seats: smith\n", "1: seats must be a list"},
		"text as number":      {seat + "box: 7\n", `2: box must be text, not the number "7"`},
		"number as text":      {seat + "limits: {concurrent_turns: many}\n", "2: limits.concurrent_turns must be a whole number"},
		"fraction of a turn":  {seat + "limits: {concurrent_turns: 1.5}\n", "2: limits.concurrent_turns must be a whole number"},
		"huge number":         {seat + "limits: {turn_output_bytes: 99999999999999999999}\n", "2: limits.turn_output_bytes must be a whole number"},
		"bool":                {"seats:\n- name: smith\n  remote: perhaps\n", "3: seats[0].remote must be true or false"},
		"control character":   {seat + "box: \"a\\x1b[2J\"\n", "2: box holds the control character"},
		"token in the file":   {"seats: [{name: smith, bot_token_env: xoxb-12-secret}]\n", "1: seats[0].bot_token_env holds a token"},
		"no seat":             {"box: main\n", "1: there is no seat"},
		"empty seat":          {"seats: [~]\n", "1: seats[0] has no name"},
		"seat without a name": {"seats:\n- model: opus\n", "2: seats[0] has no name"},
		"seat's name":         {"seats: [{name: Agent Smith}]\n", `1: seats[0].name "Agent Smith" is no name`},
		"seat twice":          {"seats:\n- name: smith\n- name: smith\n  bot_token_env: TRINITY_BOT_TOKEN\n  app_token_env: TRINITY_APP_TOKEN\n", `3: seat "smith" is there twice`},
		"no token":            {"seats: [{name: smith, app_token_env: NO_SUCH}]\n", "1: the environment has no NO_SUCH; set it to the token that begins with xapp-"},
		"tokens swapped":      {"seats: [{name: smith, app_token_env: TRINITY_BOT_TOKEN}]\n", "1: TRINITY_BOT_TOKEN does not hold the token"},
		"same app twice":      {"seats:\n- name: smith\n- name: trinity\n  bot_token_env: SMITH_BOT_TOKEN\n", "4: SMITH_BOT_TOKEN holds the same token as seat \"smith\""},
		"remote, no uid":      {"seats:\n- name: smith\n- name: trinity\n  remote: true\n", "3: seats[1] runs elsewhere"},
		"uid of our own":      {"seats:\n- name: smith\n  bot_user: U012\n", "3: seats[0].bot_user is for a seat that runs elsewhere"},
		"bad uid":             {"seats:\n- name: smith\n- {name: trinity, remote: true, bot_user: trinity}\n", "3: seats[1].bot_user must be the id of a user"},
		"dispatcher a seat":   {"dispatcher: {bot_user: U099}\nseats:\n- name: smith\n- {name: trinity, remote: true, bot_user: U099}\n", "4: seats[1].bot_user is the dispatcher's"},
		"permissions skipped": {"seats:\n- name: smith\n  permission_mode: BypassPermissions\n", "3: seats[0].permission_mode: bypassPermissions is refused"},
		"permission mode":     {"seats:\n- name: smith\n  permission_mode: acceptEdit\n", "did you mean acceptEdits?"},
		"flag as tool":        {"seats:\n- name: smith\n  allowed_tools: [--dangerously-skip-permissions]\n", "3: seats[0].allowed_tools[0] \"--dangerously-skip-permissions\" is no name of a tool"},
		"flag as model":       {"seats:\n- name: smith\n  model: --print\n", "3: seats[0].model"},
		"flag as command":     {seat + "agent: {command: -x}\n", "2: agent.command"},
		"talk":                {seat + "access: {talk: everybody}\n", "2: access.talk must be members, or a list of user ids"},
		"talk, a name":        {seat + "access: {talk: [ana]}\n", "2: access.talk[0] must be the id of a user"},
		"owner":               {seat + "access: {owners: [U1]}\n", "2: access.owners[0] must be the id of a user"},
		"spawn":               {seat + "access: {spawn_allowed: everybody}\n", "2: access.spawn_allowed must be members, nobody, or a list of user ids"},
		"spawn, a name":       {seat + "access: {spawn_allowed: [ana]}\n", "2: access.spawn_allowed[0] must be the id of a user"},
		"tmux, a flag":        {seat + "operators: {tmux: -V}\n", "2: operators.tmux"},
		"launcher, a flag":    {seat + "operators: {command: -x}\n", "2: operators.command"},
		"socket, a flag":      {seat + "operators: {socket: -x}\n", "2: operators.socket must be a plain name"},
		"socket, relative":    {seat + "operators: {socket: a/b}\n", "2: operators.socket must be a plain name"},
		"operators' model":    {seat + "operators: {model: --print}\n", "2: operators.model"},
		"no operators":        {seat + "operators: {limit: 0}\n", "2: operators.limit must be between 1 and 100, not 0"},
		"cleanup":             {seat + "operators: {cleanup: keeps}\n", "2: operators.cleanup must be one of worktree, keep, not \"keeps\"; did you mean keep?"},
		"operators' home":     {seat + "operators: {home: here}\n", "2: operators.home must be an absolute path"},
		"skip, a word":        {seat + "operators: {skip_permissions: \"yes\"}\n", "2: operators.skip_permissions must be true or false"},
		"no classifier":       {seat + "classifier: {model: \"\"}\n", "2: classifier.model \"\" is no name of a model"},
		"classifier's time":   {seat + "classifier: {timeout: 1h}\n", "2: classifier.timeout must be between 1s and 10m0s"},
		"GitHub in the clear": {seat + "github: {api_url: \"http://example.org/\"}\n", "2: github.api_url would send tokens unencrypted"},
		"GitHub's end":        {seat + "github: {api_url: \"https://example.org/api/v3\"}\n", "2: github.api_url must end with \"/\""},
		"GitHub's poll":       {seat + "github: {poll: 1ms}\n", "2: github.poll must be between 1s and 24h0m0s"},
		"webhooks, no secret": {seat + "github: {listen: \"127.0.0.1:9472\"}\n", "2: github.listen needs the webhook's secret"},
		"no turns":            {seat + "limits: {concurrent_turns: 0}\n", "2: limits.concurrent_turns must be between 1 and 1000, not 0"},
		"no money":            {seat + "limits: {daily_cost_usd: 0}\n", "2: limits.daily_cost_usd must be more than 0"},
		"endless money":       {seat + "limits: {daily_cost_usd: .inf}\n", "2: limits.daily_cost_usd must be a number"},
		"negative hops":       {seat + "limits: {sibling_hops: -1}\n", "2: limits.sibling_hops must be between 0 and 100"},
		"negative time":       {seat + "idle_after: -5m\n", "2: idle_after must be between 1s and"},
		"unit missing":        {seat + "drain: 60\n", `2: drain must be a duration with its unit, such as 30s, 5m or 1h30m, not the number "60"`},
		"relative data_dir":   {seat + "data_dir: data\n", "2: data_dir must be an absolute path"},
		"password in the URL": {seat + "database_url: postgres://u:p@h/db\n", "2: database_url holds a password"},
		"root that is not":    {seat + "writable_roots:\n- /no/such/checkout\n", "3: writable_roots[0] is no git checkout on this box"},
		"relative root":       {seat + "writable_roots: [src]\n", "2: writable_roots[0] must be an absolute path"},
		"roots of one name":   {seat + "writable_roots:\n- " + named["a/app"] + "\n- " + named["b/app"] + "\n", `4: writable_roots[1] has the same last name, "app", as writable_roots[0]`},
		"root named inbox":    {seat + "writable_roots:\n- " + named["inbox"] + "\n", "3: writable_roots[0] is named inbox, as the directory of a thread's files is; rename the checkout"},
		"root named outbox":   {seat + "writable_roots:\n- " + named["outbox"] + "\n", "3: writable_roots[0] is named outbox"},
		"root twice":          {seat + "writable_roots:\n- " + checkout + "\n- " + checkout + "/.\n", "4: writable_roots[1] is the same checkout as writable_roots[0]"},
		"Slack token inherited": {seat + "agent: {pass_env: [SMITH_BOT_TOKEN]}\n",
			"2: agent.pass_env[0]: an agent is never given SMITH_BOT_TOKEN"},
		"Temporal key inherited": {seat + "agent: {pass_env: [PATH, TEMPORAL_API_KEY]}\n", "2: agent.pass_env[1]: an agent is never given TEMPORAL_API_KEY"},
		"own name inherited": {"seats: [{name: smith, bot_token_env: TRINITY_BOT_TOKEN}]\nagent: {pass_env: [TRINITY_BOT_TOKEN]}\n",
			"2: agent.pass_env[0]: an agent is never given TRINITY_BOT_TOKEN"},
		"value inherited": {seat + "agent: {pass_env: [A=b]}\n", "2: agent.pass_env[0] must be the name of a variable"},
		"every interface": {seat + "listen: {worker: \":80\"}\n", "2: listen.worker: \":80\" would listen on every interface"},
		"host name":       {seat + "listen: {worker: \"example.org:80\"}\n", "2: listen.worker: the host must be written as an IP address"},
		"no port":         {seat + "listen: {worker: 127.0.0.1}\n", "2: listen.worker must be an address and a port"},
		"port twice":      {seat + "listen: {worker: \"127.0.0.1:9470\"}\n", "2: listen.worker is the address of listen.starter"},
		"plain http":      {seat + "slack: {api_url: \"http://slack.com/api/\"}\n", "2: slack.api_url would send tokens unencrypted"},
		"api_url's end":   {seat + "slack: {api_url: \"https://slack.com/api\"}\n", `2: slack.api_url must end with "/": write "https://slack.com/api/"`},
		"level":           {seat + "log: {level: warning}\n", "2: log.level must be one of debug, info, warn, error"},
		"schedule's seat": {seat + schedule("seat: smith", "seat: neo"), "4: schedules[0].seat \"neo\" is no seat"},
		"schedule's cron": {seat + schedule(`cron: "0 9 * * 1-5"`, `cron: "0 25 * * *"`), "6: schedules[0].cron \"0 25 * * *\" is no schedule"},
		"cron by descriptor": {seat + schedule(`cron: "0 9 * * 1-5"`, `cron: "@daily"`),
			"6: schedules[0].cron \"@daily\" is no schedule: it does not have five fields"},
		"schedule's zone":    {seat + schedule("timezone: UTC", "timezone: Mars/Base"), "7: schedules[0].timezone \"Mars/Base\" is unknown"},
		"schedule's channel": {seat + schedule("channel: C012", "channel: \"#general\""), "5: schedules[0].channel must be the id of a channel"},
		"schedule's prompt":  {seat + schedule("prompt: Hello", "prompt: \" \""), "schedules[0] has no prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, tc.text)
			require.Error(t, err)
			got := problemsOf(t, err)
			require.Len(t, got, 1, "%v", got)
			require.Contains(t, got[0], tc.want)
			require.NotContains(t, err.Error(), "xoxb-", "a token was printed")
		})
	}
}

// schedule is a good schedule, with one part replaced by another.
func schedule(old, other string) string {
	good := "schedules:\n- name: standup\n  seat: smith\n  channel: C012\n  cron: \"0 9 * * 1-5\"\n  timezone: UTC\n  prompt: Hello\n"
	return strings.Replace(good, old, other, 1)
}

func TestLoad_TakesAnOpenListenerThatIsWrittenInFull(t *testing.T) {
	c, err := load(t, "seats: [{name: smith}]\nlisten: {starter: \"0.0.0.0:80\", worker: \"\"}\n")
	require.NoError(t, err)
	require.Equal(t, Listen{Starter: "0.0.0.0:80"}, c.Listen)
}

func TestLoad_TakesAListOfTalkers(t *testing.T) {
	c, err := load(t, "seats: [{name: smith}]\naccess: {talk: [U012, W345]}\n")
	require.NoError(t, err)
	require.Equal(t, Talk{Users: []string{"U012", "W345"}}, c.Access.Talk)
}

func TestLoad_AnEmptyListOfTalkersLetsNobodyTalk(t *testing.T) {
	c, err := load(t, "seats: [{name: smith}]\naccess: {talk: []}\n")
	require.NoError(t, err)
	require.Equal(t, Talk{Users: []string{}}, c.Access.Talk)
}

func TestLoad_ForWorkerTakesOnlyTheBotTokensOfItsBox(t *testing.T) {
	c, err := load(t, "seats:\n- name: smith\n  app_token_env: NO_SUCH\n- name: trinity\n  box: other\n", ForWorker())
	require.NoError(t, err)
	require.Equal(t, "xoxb-1-bot", c.Seats[0].BotToken.Reveal())
	require.Empty(t, c.Seats[0].AppToken)
	require.Empty(t, c.Seats[1].BotToken)
	require.Empty(t, c.Seats[1].AppToken)
}

func TestLoad_ARemoteSeatNeedsNoToken(t *testing.T) {
	c, err := load(t, "seats:\n- name: smith\n- {name: neo, remote: true, bot_user: U042}\n")
	require.NoError(t, err)
	require.Len(t, c.Local(), 1)
}

func TestLoad_SaysWhichFileIsMissing(t *testing.T) {
	_, err := Load("/no/such/smith.yaml", goodEnv)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "/no/such/smith.yaml")
	require.ErrorContains(t, err, "smith.example.yaml")
}

func TestLoad_TakesTheDatabaseFromTheEnvironment(t *testing.T) {
	env := func(name string) string {
		if name == "SMITH_DATABASE_URL" {
			return "postgres://u:pw@h/db"
		}
		return goodEnv(name)
	}
	c, err := parseConfig("f", []byte("seats: [{name: smith}]\ndatabase_url: other.db\n"), env)
	require.NoError(t, err)
	require.Equal(t, "postgres://u:pw@h/db", c.DatabaseURL.Reveal())
}

func TestSecret_IsNeverPrinted(t *testing.T) {
	const value = "xoxb-very-secret"
	c, err := load(t, "seats: [{name: smith}]\n")
	require.NoError(t, err)
	c.Seats[0].BotToken, c.DatabaseURL = value, value
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
		fmt.Fprintf(&out, verb, c.Seats[0].BotToken)
		fmt.Fprintf(&out, verb, c)
		fmt.Fprintf(&out, verb, *c)
	}
	fmt.Fprint(&out, c.Seats, fmt.Errorf("sign in with %s: %w", c.Seats[0].BotToken, os.ErrInvalid))
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		b, err := marshal(c)
		require.NoError(t, err)
		out.Write(b)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "token", c.Seats[0].BotToken, "config", c)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "token", c.Seats[0].BotToken, "config", c)
	require.False(t, strings.Contains(out.String(), "very-secret"))
	require.NotContains(t, out.String(), fmt.Sprintf("%x", value))
	require.Contains(t, out.String(), "[secret]")
}

func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile("../../smith.example.yaml")
	require.NoError(f, err)
	for _, seed := range []string{
		string(example), "", "seats: [{name: smith}]", "seats: &a [*a]", "a: [", "- - -", "? {a: b}\n: c", "<<: {}", "\x00", "\ufeffseats: []",
		"seats: [{name: smith}]\nidle_after: 1e99\n", "seats: [{name: smith}]\n---\n---\n", "!!binary aGk=: x", "seats: [{name: smith}]\n" + schedule("0 9 * * 1-5", "TZ= * * * *"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseConfig("smith.yaml", text, goodEnv)
		if err == nil {
			require.NotEmpty(t, c.Seats)
			require.NotEmpty(t, c.Box)
			return
		}
		var all Problems
		require.True(t, errors.As(err, &all))
		lines := strings.Count(string(text), "\n") + 1
		for _, p := range all {
			require.True(t, p.Line >= 1 && p.Line <= lines, "line %d of %d: %s", p.Line, lines, p.Text)
			require.False(t, strings.ContainsFunc(p.Text, func(r rune) bool { return r < ' ' || r == 0x7f }), "%q", p.Text)
		}
	})
}
