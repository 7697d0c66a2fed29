package config

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a schedule's timezone is known on every box

	"github.com/robfig/cron"
)

var (
	wordShape    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	channelShape = regexp.MustCompile(`^[CDG][A-Z0-9]{2,31}$`)
	userShape    = regexp.MustCompile(`^[UW][A-Z0-9]{2,31}$`)
	stickerShape = regexp.MustCompile(`^[a-z0-9_+'-]{1,100}$`)
	envShape     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	modelShape   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*$`)
	cronShape    = regexp.MustCompile(`^[A-Za-z0-9*,/?-]+( +[A-Za-z0-9*,/?-]+){4}$`)
)

func (l *loader) check(c *Config) {
	l.checkPlaces(c)
	l.checkSlack(c)
	l.checkSeats(c)
	l.checkAccess(c)
	l.checkLimits(c)
	l.checkAgent(c)
	l.checkOperators(c)
	l.checkClassifier(c)
	l.checkGitHub(c)
	l.checkListen(c)
	l.checkSchedules(c)
	oneOf(&l.finding, "log.level", c.Log.Level, "debug", "info", "warn", "error")
	oneOf(&l.finding, "log.format", c.Log.Format, "json", "text")
}

func (l *loader) checkPlaces(c *Config) {
	home := l.env("HOME")
	var ok bool
	if c.DataDir, ok = absolute(c.DataDir, home); !ok {
		l.add("data_dir", "data_dir must be an absolute path, not %s; write it out, or begin it with ~/ where HOME is set", short(c.DataDir))
	}
	if !wordShape.MatchString(c.Box) {
		l.add("box", "box %s is no name; write small letters, digits and dashes, such as main", short(c.Box))
	}
	l.checkDatabase(c)
	for i, root := range c.WritableRoots {
		l.checkRoot(c, i, root, home)
	}
}

func (l *loader) checkDatabase(c *Config) {
	if u, err := url.Parse(c.DatabaseURL.Reveal()); err == nil && u.User != nil {
		if _, set := u.User.Password(); set {
			l.add("database_url", "database_url holds a password; put the URL into the environment as SMITH_DATABASE_URL and remove it here")
		}
	}
	if fromEnv := l.env("SMITH_DATABASE_URL"); fromEnv != "" {
		c.DatabaseURL = Secret(fromEnv)
	}
	if c.DatabaseURL == "" {
		c.DatabaseURL = Secret(filepath.Join(c.DataDir, "smith.db"))
	}
}

func (l *loader) checkRoot(c *Config, i int, root, home string) {
	at := fmt.Sprintf("writable_roots[%d]", i)
	clean, ok := absolute(root, home)
	if !ok {
		l.add(at, "%s must be an absolute path, not %s", at, short(root))
		return
	}
	if real, err := filepath.EvalSymlinks(clean); err == nil {
		clean = real
	}
	if _, err := os.Stat(filepath.Join(clean, ".git")); err != nil {
		l.add(at, "%s is no git checkout on this box: %s; clone it there, or remove the line", at, short(root))
	}
	// Each thread has a worktree of it under this name, beside its inbox and its outbox (B9).
	name := filepath.Base(clean)
	sameName := func(other string) bool { return filepath.Base(other) == name }
	if j := slices.Index(c.WritableRoots[:i], clean); j >= 0 {
		l.add(at, "%s is the same checkout as writable_roots[%d]; keep one", at, j)
	} else if j := slices.IndexFunc(c.WritableRoots[:i], sameName); j >= 0 {
		l.add(at, "%s has the same last name, %s, as writable_roots[%d], and a thread's directory holds both; rename one of the checkouts", at, short(name), j)
	}
	if name == "inbox" || name == "outbox" {
		l.add(at, "%s is named %s, as the directory of a thread's files is; rename the checkout", at, name)
	}
	c.WritableRoots[i] = clean
}

func (l *loader) checkSlack(c *Config) {
	l.apiURL("slack.api_url", c.Slack.APIURL, "https://slack.com/api/")
	l.between("slack.request_timeout", c.Slack.RequestTimeout, time.Second, time.Minute)
	l.channel("ops_channel", c.OpsChannel)
	l.checkDispatcher(c)
}

// checkDispatcher takes what the environment says of the dispatcher. A token that is not
// there, or not one, is no problem of the config: the dispatcher says so, and tries again.
func (l *loader) checkDispatcher(c *Config) {
	d := &c.Dispatcher
	if id := strings.TrimSpace(l.env("AGENT_FORCE_USER_ID")); id != "" {
		if !userShape.MatchString(id) {
			l.add("dispatcher", "AGENT_FORCE_USER_ID %s is no id of a bot user; write one such as U0123456789", short(id))
		}
		d.BotUser = id
	}
	l.user("dispatcher.bot_user", d.BotUser)
	if d.Box == "" {
		d.Box = c.Box
	}
	if !wordShape.MatchString(d.Box) {
		l.add("dispatcher.box", "dispatcher.box %s is no name of a box; write small letters, digits and dashes", short(d.Box))
	}
	if strings.TrimSpace(d.Name) == "" {
		l.add("dispatcher.name", "dispatcher.name is empty; write the name of its app in Slack, such as Agent Force")
	}
	for path, name := range map[string]string{"dispatcher.bot_token_env": d.BotTokenEnv, "dispatcher.app_token_env": d.AppTokenEnv} {
		if !envShape.MatchString(name) {
			l.add(path, "%s must be the name of a variable, such as AGENT_FORCE_BOT_TOKEN; a token never stands in the config", path)
		}
	}
}

// apiURL refuses an address that would send a token in the clear, or anywhere odd.
func (l *loader) apiURL(path, value, example string) {
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		l.add(path, "%s must be a plain http(s) address, such as %s", path, example)
	} else if !strings.HasSuffix(value, "/") {
		l.add(path, `%s must end with "/": write %q`, path, value+"/")
	} else if u.Scheme == "http" && !loopback(u.Hostname()) {
		l.add(path, "%s would send tokens unencrypted to %s; write https://", path, short(u.Host))
	}
}

func (l *loader) checkAccess(c *Config) {
	for i, u := range c.Access.Talk.Users {
		l.mustUser(fmt.Sprintf("access.talk[%d]", i), u)
	}
	for i, u := range c.Access.SpawnAllowed.Users {
		l.mustUser(fmt.Sprintf("access.spawn_allowed[%d]", i), u)
	}
	for i, u := range c.Access.Owners {
		l.mustUser(fmt.Sprintf("access.owners[%d]", i), u)
	}
}

func (l *loader) checkLimits(c *Config) {
	lim := &c.Limits
	if lim.ConcurrentTurns < 1 || lim.ConcurrentTurns > 1000 {
		l.add("limits.concurrent_turns", "limits.concurrent_turns must be between 1 and 1000, not %d", lim.ConcurrentTurns)
	}
	if !(lim.DailyCostUSD > 0) || math.IsInf(lim.DailyCostUSD, 0) {
		l.add("limits.daily_cost_usd", "limits.daily_cost_usd must be more than 0, in dollars, such as 50")
	}
	l.between("limits.turn_timeout", lim.TurnTimeout, time.Second, 24*time.Hour)
	if lim.TurnOutputBytes < 4096 || lim.TurnOutputBytes > 1<<30 {
		l.add("limits.turn_output_bytes", "limits.turn_output_bytes must be between 4096 and %d, not %d", 1<<30, lim.TurnOutputBytes)
	}
	for _, hops := range []struct {
		path string
		n    int
	}{{"limits.sibling_hops", lim.SiblingHops}, {"limits.self_drive_hops", lim.SelfDriveHops}, {"limits.thread_hand_offs", lim.ThreadHandOffs}} {
		if hops.n < 0 || hops.n > 100 {
			l.add(hops.path, "%s must be between 0 and 100, not %d", hops.path, hops.n)
		}
	}
	l.between("idle_after", c.IdleAfter, time.Second, 7*24*time.Hour)
	l.between("owed_too_long", c.OwedTooLong, time.Second, 24*time.Hour)
	l.between("drain", c.Drain, 0, time.Hour)
}

func (l *loader) checkAgent(c *Config) {
	if c.Agent.Command == "" || strings.HasPrefix(c.Agent.Command, "-") {
		l.add("agent.command", "agent.command must be the name or the path of the agent CLI, such as claude")
	}
	if c.Agent.Home != "" {
		var ok bool
		if c.Agent.Home, ok = absolute(c.Agent.Home, l.env("HOME")); !ok {
			l.add("agent.home", "agent.home must be an absolute path, not %s", short(c.Agent.Home))
		}
	}
	for i, name := range c.Agent.PassEnv {
		at := fmt.Sprintf("agent.pass_env[%d]", i)
		switch {
		case !envShape.MatchString(name):
			l.add(at, "%s must be the name of a variable, not %s", at, short(name))
		case c.private(name):
			l.add(at, "%s: an agent is never given %s: it is a secret of Slack, Temporal or Smith; remove it", at, name)
		}
	}
}

// private tells whether a variable belongs to Smith, Slack or Temporal, so that no
// agent may inherit it (X3).
func (c *Config) private(name string) bool {
	upper := strings.ToUpper(name)
	for _, prefix := range []string{"SLACK_", "TEMPORAL_", "SMITH_"} {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	if name == c.Dispatcher.BotTokenEnv || name == c.Dispatcher.AppTokenEnv {
		return true
	}
	for _, s := range c.Seats {
		if name == s.BotTokenEnv || name == s.AppTokenEnv {
			return true
		}
	}
	upper = strings.TrimSuffix(upper, "_FILE")
	return strings.HasSuffix(upper, "_BOT_TOKEN") || strings.HasSuffix(upper, "_APP_TOKEN")
}

func (l *loader) checkListen(c *Config) {
	l.address("listen.starter", c.Listen.Starter)
	l.address("listen.worker", c.Listen.Worker)
	l.address("github.listen", c.GitHub.Listen)
	if c.Listen.Starter != "" && c.Listen.Starter == c.Listen.Worker && !strings.HasSuffix(c.Listen.Starter, ":0") {
		l.add("listen.worker", "listen.worker is the address of listen.starter; give it a port of its own")
	}
	if a := c.GitHub.Listen; a != "" && !strings.HasSuffix(a, ":0") && (a == c.Listen.Starter || a == c.Listen.Worker) {
		l.add("github.listen", "github.listen is an address under listen: already; give it a port of its own")
	}
}

// address takes loopback, or any other address that is written in full (X4).
func (l *loader) address(path, addr string) {
	if addr == "" {
		return
	}
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		l.add(path, "%s must be an address and a port, such as 127.0.0.1:9470, not %s", path, short(addr))
		return
	}
	if host == "" {
		l.add(path, "%s: %s would listen on every interface; write 127.0.0.1:%s, or 0.0.0.0:%s where that is meant", path, short(addr), port, port)
		return
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" {
		l.add(path, "%s: the host must be written as an IP address, such as 127.0.0.1, not %s", path, short(host))
	}
}

func (l *loader) checkSchedules(c *Config) {
	for i, s := range c.Schedules {
		at := fmt.Sprintf("schedules[%d]", i)
		switch {
		case s.Name == "":
			l.add(at, "%s has no name", at)
		case !wordShape.MatchString(s.Name):
			l.add(at+".name", "%s.name %s is no name; write small letters, digits and dashes", at, short(s.Name))
		case slices.ContainsFunc(c.Schedules[:i], func(o Schedule) bool { return o.Name == s.Name }):
			l.add(at+".name", "schedule %s is there twice; give each its own name", short(s.Name))
		}
		if seat, ok := c.Seat(s.Seat); !ok {
			l.add(at+".seat", "%s.seat %s is no seat of this config", at, short(s.Seat))
		} else if seat.Remote {
			l.add(at+".seat", "%s.seat %s runs elsewhere; its schedules belong into the config there", at, s.Seat)
		}
		if s.Channel == "" {
			l.add(at+".channel", "%s has no channel; write the id of one, such as C0123456789", at)
		}
		l.channel(at+".channel", s.Channel)
		if err := parseCron(s.Cron); err != nil {
			l.add(at+".cron", "%s.cron %s is no schedule: %v; write minute hour day month weekday, such as \"0 9 * * 1-5\"", at, short(s.Cron), err)
		}
		if _, err := time.LoadLocation(s.Timezone); err != nil || s.Timezone == "Local" {
			l.add(at+".timezone", "%s.timezone %s is unknown; write one such as UTC or Europe/Berlin", at, short(s.Timezone))
		}
		if strings.TrimSpace(s.Prompt) == "" {
			l.add(at+".prompt", "%s has no prompt; write what is to be asked", at)
		}
	}
}

// parseCron takes the five fields that cron and Temporal read alike, and nothing more.
func parseCron(spec string) error {
	if !cronShape.MatchString(spec) {
		return fmt.Errorf("it does not have five fields")
	}
	_, err := cron.ParseStandard(spec)
	return err
}

func (l *loader) between(path string, d, least, most time.Duration) {
	if d < least || d > most {
		l.add(path, "%s must be between %s and %s, not %s", path, least, most, d)
	}
}

func (l *loader) channel(path, id string) {
	if id != "" && !channelShape.MatchString(id) {
		l.add(path, "%s must be the id of a channel, such as C0123456789, not %s (Slack shows the id at the end of a channel's details)", path, short(id))
	}
}

func (l *loader) user(path, id string) {
	if id != "" {
		l.mustUser(path, id)
	}
}

func (l *loader) mustUser(path, id string) {
	if !userShape.MatchString(id) {
		l.add(path, "%s must be the id of a user, such as U0123456789, not %s", path, short(id))
	}
}

func oneOf(f *finding, path, got string, known ...string) {
	if slices.Contains(known, got) {
		return
	}
	hint := ""
	if near := nearest(got, known); near != "" {
		hint = "; did you mean " + near + "?"
	}
	f.add(path, "%s must be one of %s, not %s%s", path, strings.Join(known, ", "), short(got), hint)
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
