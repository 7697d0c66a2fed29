package config

import (
	"fmt"
	"slices"
	"strings"
)

func (l *loader) checkSeats(c *Config) {
	if len(c.Seats) == 0 && !l.said("seats") {
		l.add("seats", "there is no seat; name at least one under seats:")
	}
	for i := range c.Seats {
		at := fmt.Sprintf("seats[%d]", i)
		s := &c.Seats[i]
		if s.Box == "" {
			s.Box = c.Box
		}
		l.checkSeat(c, i, at)
		l.checkAgentOf(s, at)
		l.checkTokens(c, i, at)
		l.checkPick(c, i, at)
	}
}

// checkPick looks at what a pick goes by (A2). What stands for two seats stands for none.
func (l *loader) checkPick(c *Config, i int, at string) {
	s := c.Seats[i]
	for j, u := range s.Area {
		l.mustUser(fmt.Sprintf("%s.area[%d]", at, j), u)
	}
	for j, name := range s.Stickers {
		path := fmt.Sprintf("%s.stickers[%d]", at, j)
		if !stickerShape.MatchString(name) {
			l.add(path, "%s %s is no name of a reaction; write it without colons, such as hammer_and_wrench", path, short(name))
		}
		for _, o := range c.Seats[:i] {
			if slices.Contains(o.Stickers, name) {
				l.add(path, "%s %s stands for seat %s already; one reaction stands for one seat", path, short(name), short(o.Name))
			}
		}
	}
}

func (l *loader) checkSeat(c *Config, i int, at string) {
	s := c.Seats[i]
	switch {
	case s.Name == "":
		l.add(at, "%s has no name", at)
	case !wordShape.MatchString(s.Name):
		l.add(at+".name", "%s.name %s is no name of a seat; write small letters, digits and dashes, a letter first, 32 at most", at, short(s.Name))
	case slices.ContainsFunc(c.Seats[:i], func(o Seat) bool { return o.Name == s.Name }):
		l.add(at+".name", "seat %s is there twice; give each its own name", short(s.Name))
	}
	if !wordShape.MatchString(s.Box) {
		l.add(at+".box", "%s.box %s is no name of a box; write small letters, digits and dashes", at, short(s.Box))
	}
	switch {
	case s.Remote && s.BotUser == "":
		l.add(at, "%s runs elsewhere (remote: true), so it needs the id of its bot_user", at)
	case !s.Remote && s.BotUser != "":
		l.add(at+".bot_user", "%s.bot_user is for a seat that runs elsewhere; remove it (Slack tells a seat its own id), or add remote: true", at)
	}
	l.user(at+".bot_user", s.BotUser)
	if s.BotUser != "" && slices.ContainsFunc(c.Seats[:i], func(o Seat) bool { return o.BotUser == s.BotUser }) {
		l.add(at+".bot_user", "%s.bot_user %s is another seat's already", at, s.BotUser)
	}
	if s.BotUser != "" && s.BotUser == c.Dispatcher.BotUser {
		l.add(at+".bot_user", "%s.bot_user is the dispatcher's; the dispatcher is never a seat", at)
	}
}

// checkAgentOf holds back what would skip permissions (X4) or pass for a flag of the agent CLI.
func (l *loader) checkAgentOf(s *Seat, at string) {
	if strings.EqualFold(s.PermissionMode, "bypassPermissions") {
		l.add(at+".permission_mode", "%s.permission_mode: bypassPermissions is refused: what a stranger writes would then run unasked; list the tools it may use in allowed_tools", at)
	} else {
		oneOf(&l.finding, at+".permission_mode", s.PermissionMode, "default", "acceptEdits", "plan", "dontAsk")
	}
	if s.Model != "" && !modelShape.MatchString(s.Model) {
		l.add(at+".model", "%s.model %s is no name of a model", at, short(s.Model))
	}
	l.checkTools(at+".allowed_tools", s.AllowedTools)
	l.checkTools(at+".disallowed_tools", s.DisallowedTools)
}

func (l *loader) checkTools(at string, tools []string) {
	for i, tool := range tools {
		if tool == "" || strings.HasPrefix(tool, "-") || strings.ContainsAny(tool, "\n\t") {
			path := fmt.Sprintf("%s[%d]", at, i)
			l.add(path, "%s %s is no name of a tool; write one such as Read or Bash(git log:*)", path, short(tool))
		}
	}
}

// checkTokens takes the seat's tokens from the environment. No message holds one.
func (l *loader) checkTokens(c *Config, i int, at string) {
	s := &c.Seats[i]
	for _, t := range []struct {
		field, suffix, begins string
		name                  *string
		value                 *Secret
		needed                bool
	}{
		{"bot_token_env", "_BOT_TOKEN", "xoxb-", &s.BotTokenEnv, &s.BotToken, !l.launcher && (!l.worker || s.Box == c.Box)},
		{"app_token_env", "_APP_TOKEN", "xapp-", &s.AppTokenEnv, &s.AppToken, !l.launcher && !l.worker},
	} {
		path := at + "." + t.field
		if s.Remote {
			if *t.name != "" {
				l.add(path, "%s: a seat that runs elsewhere has no token here; remove it", path)
			}
			continue
		}
		if *t.name == "" {
			if !wordShape.MatchString(s.Name) {
				continue // said already
			}
			*t.name = envName(s.Name) + t.suffix
		}
		if !envShape.MatchString(*t.name) {
			// The likeliest mistake is the token itself: it is not repeated.
			l.add(path, "%s must be the name of a variable, such as SMITH%s; a token never stands in the config", path, t.suffix)
			continue
		}
		if !t.needed {
			continue
		}
		l.takeToken(c.Seats[:i], *t.name, t.begins, path, at, t.value)
	}
}

func (l *loader) takeToken(before []Seat, name, begins, path, at string, into *Secret) {
	line := path
	if _, said := l.lines[path]; !said {
		line = at + ".name"
	}
	value := strings.TrimSpace(l.env(name))
	switch {
	case value == "":
		l.add(line, "the environment has no %s; set it to the token that begins with %s", name, begins)
		return
	case !strings.HasPrefix(value, begins):
		l.add(line, "%s does not hold the token that is needed here: that one begins with %s", name, begins)
		return
	case strings.ContainsAny(value, " \t\r\n"):
		l.add(line, "%s holds white space inside the token; copy the token again", name)
		return
	}
	for _, o := range before {
		if o.BotToken.Reveal() == value || o.AppToken.Reveal() == value {
			l.add(line, "%s holds the same token as seat %s has; each seat is a Slack app of its own", name, short(o.Name))
		}
	}
	*into = Secret(value)
}
