package slackbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// The kinds of channel, as an event's channel_type names them.
const (
	kindChannel = "channel"
	kindGroup   = "group"
	kindIM      = "im"
	kindMPIM    = "mpim"
)

const slackbotID = "USLACKBOT"

// user is a person or a bot user (app set).
type user struct {
	User
	app *app
}

func (u *user) bot() bool { return u.app != nil || u.ID == slackbotID }

// app is an app, its bot user and its sockets.
type app struct {
	App
	user *user
	hub  hub
}

type channel struct {
	id, name, kind string
	shared         bool
	archived       bool
	created        int64
	creator        string
	topic, purpose topic
	members        []string // user ids, in the order they joined
	open           bool     // a DM that someone opened
	msgs           []*message
	byTS           map[string]*message
}

func (c *channel) has(userID string) bool { return slices.Contains(c.members, userID) }

// other returns the other side of a direct message.
func (c *channel) other(userID string) string {
	for _, m := range c.members {
		if m != userID {
			return m
		}
	}
	return userID
}

type message struct {
	ch          *channel
	ts          string
	author      *user
	subtype     string
	inviter     string
	username    string
	icons       json.RawMessage
	clientMsgID string
	storedAt    time.Time
	version     // what it says now
	old         []version
	parent      *message
	replies     []*message
	broadcast   bool
	reactions   []Reaction
	files       []*file
	deletedAt   time.Time
	tombstone   bool
	askedThread string // the thread_ts of the post, also where its root was gone
	deletedBy   string
}

// version is one text of a message; an edit makes a new one.
type version struct {
	at          time.Time
	text        string
	blocks      json.RawMessage
	autoBlocks  bool // made by Slack from the text
	attachments json.RawMessage
	metadata    *Metadata
	edited      *Edited
}

func (m *message) gone() bool { return !m.deletedAt.IsZero() && !m.tombstone }

// root is the thread's first message: m itself unless m is a reply.
func (m *message) root() *message {
	if m.parent != nil {
		return m.parent
	}
	return m
}

// threadTS is the thread_ts to show: none on a message nobody replied to.
func (m *message) threadTS() string {
	switch {
	case m.parent != nil:
		return m.parent.ts
	case len(m.replies) > 0 || m.tombstone:
		return m.ts
	}
	return ""
}

// world is the workspace; everything in it is guarded by Server.mu.
type world struct {
	team, other Team
	users       map[string]*user
	userOrder   []*user
	apps        []*app
	channels    map[string]*channel
	chanOrder   []*channel
	files       map[string]*file
	uploads     map[string]*file // by upload key
	tokens      map[string]*caller
	revoked     map[string]bool
	statuses    map[statusKey]*status
	epoch       int64
	lastTS      int64 // microseconds
	seq         uint64
}

// caller is who a token belongs to.
type caller struct {
	user  *user
	app   *app // of a bot or app-level token
	level string
	scope map[string]bool // nil: everything (a person)
}

// The levels of a token.
const (
	levelPerson = "person"
	levelBot    = "bot"
	levelApp    = "app"
)

func (w *world) init(seed Seed, now time.Time) error {
	w.team, w.other, w.epoch = seed.Team, seed.Other, now.Unix()
	if w.team.ID == "" {
		w.team = DefaultSeed().Team
	}
	if w.other.ID == "" {
		w.other = DefaultSeed().Other
	}
	w.users, w.channels, w.files = map[string]*user{}, map[string]*channel{}, map[string]*file{}
	w.uploads, w.tokens, w.revoked = map[string]*file{}, map[string]*caller{}, map[string]bool{}
	w.statuses = map[statusKey]*status{}
	slackbot := &user{User: User{ID: slackbotID, Name: "slackbot", RealName: "Slackbot", Team: w.team.ID, Kind: Member}}
	w.users[slackbotID] = slackbot
	w.userOrder = append(w.userOrder, slackbot)
	return w.grow(seed)
}

// grow adds what a seed names to the world.
func (w *world) grow(seed Seed) error {
	for _, u := range seed.Users {
		if err := w.addUser(u); err != nil {
			return err
		}
	}
	for _, a := range seed.Apps {
		if err := w.addApp(a); err != nil {
			return err
		}
	}
	for _, c := range seed.Channels {
		if err := w.addChannel(c); err != nil {
			return err
		}
	}
	if seed.NoDMs {
		return nil
	}
	for _, a := range w.apps {
		for _, u := range w.userOrder {
			if a.Seat && !u.bot() && u.Kind != Deactivated {
				w.directMessage(u, a.user)
			}
		}
	}
	return nil
}

func (w *world) addUser(u User) error {
	if u.Name == "" || w.byName(u.Name) != nil {
		return fmt.Errorf("slackbox: seed: a user needs a name of its own, not %q", u.Name)
	}
	if u.Kind == "" {
		u.Kind = Member
	}
	if u.ID == "" {
		u.ID = makeID("U", u.Name, w.taken)
	}
	if u.Token == "" {
		u.Token = "xoxp-local-" + u.Name
	}
	if u.RealName == "" {
		u.RealName = u.Name
	}
	if u.Team == "" {
		u.Team = w.team.ID
		if u.Kind == Outsider {
			u.Team = w.other.ID
		}
	}
	if w.taken(u.ID) || w.tokens[u.Token] != nil {
		return fmt.Errorf("slackbox: seed: user %s: its id or token is in use", u.Name)
	}
	x := &user{User: u}
	w.users[u.ID] = x
	w.userOrder = append(w.userOrder, x)
	w.tokens[u.Token] = &caller{user: x, level: levelPerson}
	return nil
}

func (w *world) addApp(a App) error {
	if a.Name == "" || w.byName(a.Name) != nil {
		return fmt.Errorf("slackbox: seed: an app needs a name of its own, not %q", a.Name)
	}
	for _, f := range []struct {
		id     *string
		prefix string
	}{{&a.ID, "A"}, {&a.BotUser, "U"}, {&a.BotID, "B"}} {
		if *f.id == "" {
			*f.id = makeID(f.prefix, a.Name, w.taken)
		}
	}
	if a.BotToken == "" {
		a.BotToken = "xoxb-local-" + a.Name
	}
	if a.AppToken == "" {
		a.AppToken = "xapp-local-" + a.Name
	}
	if len(a.Scopes) == 0 {
		a.Scopes = SeatScopes()
	}
	if len(a.Events) == 0 {
		a.Events = SeatEvents()
	}
	if w.taken(a.ID) || w.taken(a.BotUser) || w.taken(a.BotID) || w.tokens[a.BotToken] != nil || w.tokens[a.AppToken] != nil {
		return fmt.Errorf("slackbox: seed: app %s: one of its ids or tokens is in use", a.Name)
	}
	x := &app{App: a}
	x.user = &user{User: User{ID: a.BotUser, Name: a.Name, RealName: cmp.Or(a.RealName, a.Name), Team: w.team.ID, Kind: Member}, app: x}
	x.hub = hub{app: x, inflight: map[string]*envelope{}}
	scope := map[string]bool{}
	for _, s := range a.Scopes {
		scope[s] = true
	}
	w.apps = append(w.apps, x)
	w.users[a.BotUser] = x.user
	w.userOrder = append(w.userOrder, x.user)
	w.tokens[a.BotToken] = &caller{user: x.user, app: x, level: levelBot, scope: scope}
	w.tokens[a.AppToken] = &caller{user: x.user, app: x, level: levelApp, scope: map[string]bool{"connections:write": true}}
	return nil
}

func (w *world) addChannel(c Channel) error {
	if c.Name == "" || w.channelByName(c.Name) != nil {
		return fmt.Errorf("slackbox: seed: a channel needs a name of its own, not %q", c.Name)
	}
	if c.ID == "" {
		c.ID = makeID("C", c.Name, w.taken)
	}
	if w.taken(c.ID) {
		return fmt.Errorf("slackbox: seed: channel %s: its id is in use", c.Name)
	}
	kind := kindChannel
	if c.Private {
		kind = kindGroup
	}
	ch := w.newChannel(c.ID, c.Name, kind)
	ch.shared = c.Shared
	for _, name := range c.Members {
		u := w.find(name)
		if u == nil {
			return fmt.Errorf("slackbox: seed: channel %s: there is no %q to be a member", c.Name, name)
		}
		ch.members = append(ch.members, u.ID)
		if ch.creator == "" {
			ch.creator = u.ID
		}
	}
	return nil
}

func (w *world) newChannel(id, name, kind string) *channel {
	ch := &channel{id: id, name: name, kind: kind, created: w.epoch, byTS: map[string]*message{}}
	w.channels[id] = ch
	w.chanOrder = append(w.chanOrder, ch)
	return ch
}

// directMessage returns the DM of two users, made if there was none.
func (w *world) directMessage(a, b *user) *channel {
	for _, c := range w.chanOrder {
		if c.kind == kindIM && c.has(a.ID) && c.has(b.ID) && (a != b || len(c.members) == 1) {
			return c
		}
	}
	ch := w.newChannel(makeID("D", a.Name+b.Name, w.taken), "", kindIM)
	ch.members = []string{a.ID}
	if a != b {
		ch.members = append(ch.members, b.ID)
	}
	ch.shared = a.Team != b.Team
	return ch
}
