package slackbox

import (
	"slices"
	"strings"
)

// conversation shows a channel to a user.
func (s *Server) conversation(ch *channel, u *user) conversation {
	out := conversation{
		ID: ch.id, Name: ch.name, NameNormalized: ch.name, IsArchived: ch.archived, Created: ch.created, Updated: ch.created,
		Creator: ch.creator, ContextTeamID: s.team.ID, IsChannel: ch.kind == kindChannel, IsGroup: ch.kind == kindGroup,
		IsIM: ch.kind == kindIM, IsMPIM: ch.kind == kindMPIM, IsPrivate: ch.kind != kindChannel, IsMember: ch.has(u.ID),
		IsGeneral: ch.name == "general", IsShared: ch.shared, IsExtShared: ch.shared, Topic: ch.topic, Purpose: ch.purpose,
		NumMembers: len(ch.members), SharedTeamIDs: []string{s.team.ID},
	}
	if ch.shared {
		out.SharedTeamIDs = append(out.SharedTeamIDs, s.other.ID)
		out.ConnectedTeams, out.InternalTeamIDs = []string{s.other.ID}, []string{s.team.ID}
	}
	if ch.kind == kindIM {
		out.User, out.IsOpen, out.IsMember = ch.other(u.ID), ch.open, false
	}
	return out
}

// list returns the conversations of the asked kinds that the caller knows of.
func (c *call) list(of *user) ([]conversation, string, *apiError) {
	types := c.p.list("types")
	if len(types) == 0 {
		types = []string{"public_channel"}
	}
	kinds := map[string]bool{}
	for _, t := range types {
		kind, ok := map[string]string{"public_channel": kindChannel, "private_channel": kindGroup, "im": kindIM, "mpim": kindMPIM}[t]
		if !ok {
			return nil, "", fail("invalid_types")
		}
		if bad := c.needs((&channel{kind: kind}).scope("read")); bad != nil {
			return nil, "", bad
		}
		kinds[kind] = true
	}
	var all []*channel
	for _, ch := range c.s.chanOrder {
		if !kinds[ch.kind] || !c.knows(ch) || of != nil && !ch.has(of.ID) || c.p.flag("exclude_archived") && ch.archived {
			continue
		}
		all = append(all, ch)
	}
	some, next, bad := page(c, all, 100, 1000)
	if bad != nil {
		return nil, "", bad
	}
	out := []conversation{}
	for _, ch := range some {
		out = append(out, c.s.conversation(ch, c.who.user))
	}
	return out, next, nil
}

func listConversations(c *call) (obj, *apiError) {
	out, next, bad := c.list(nil)
	if bad != nil {
		return nil, bad
	}
	return obj{"channels": out, "response_metadata": cursor(next)}, nil
}

func userConversations(c *call) (obj, *apiError) {
	of := c.who.user
	if id := c.p["user"]; id != "" {
		if of = c.s.users[id]; of == nil {
			return nil, fail("user_not_found")
		}
	}
	out, next, bad := c.list(of)
	if bad != nil {
		return nil, bad
	}
	return obj{"channels": out, "response_metadata": cursor(next)}, nil
}

func conversationInfo(c *call) (obj, *apiError) {
	ch, bad := c.channel("", "read")
	if bad != nil {
		return nil, bad
	}
	return obj{"channel": c.s.conversation(ch, c.who.user)}, nil
}

func conversationMembers(c *call) (obj, *apiError) {
	ch, bad := c.channel("", "read")
	if bad != nil {
		return nil, bad
	}
	some, next, bad := page(c, ch.members, 100, 1000)
	if bad != nil {
		return nil, bad
	}
	return obj{"members": slices.Clone(some), "response_metadata": cursor(next)}, nil
}

func openConversation(c *call) (obj, *apiError) {
	if id := c.p["channel"]; id != "" {
		ch := c.s.channels[id]
		if ch == nil || !ch.has(c.who.user.ID) || ch.kind != kindIM && ch.kind != kindMPIM {
			return nil, fail("channel_not_found")
		}
		return c.opened(ch)
	}
	people := []*user{c.who.user}
	for _, id := range c.p.list("users") {
		u := c.s.users[id]
		if u == nil || u.ID == slackbotID {
			return nil, fail("user_not_found")
		}
		if u.Kind == Deactivated {
			return nil, fail("user_disabled")
		}
		if !slices.Contains(people, u) {
			people = append(people, u)
		}
	}
	switch n := len(people); {
	case len(c.p.list("users")) == 0:
		return nil, fail("users_list_not_supplied")
	case n > 9:
		return nil, fail("too_many_users")
	case n == 1:
		return c.opened(c.s.directMessage(c.who.user, c.who.user))
	case n == 2:
		return c.opened(c.s.directMessage(people[1], people[0]))
	}
	if bad := c.needs("mpim:write"); bad != nil {
		return nil, bad
	}
	return c.opened(c.s.groupMessage(people))
}

func (c *call) opened(ch *channel) (obj, *apiError) {
	was := ch.open
	ch.open = true
	var shown any = obj{"id": ch.id}
	if c.p.flag("return_im") {
		shown = c.s.conversation(ch, c.who.user)
	}
	body := obj{"channel": shown}
	if was {
		body["no_op"], body["already_open"] = true, true
	}
	return body, nil
}

// groupMessage returns the DM of several people, made if there was none.
func (s *Server) groupMessage(people []*user) *channel {
	ids, names := []string{}, []string{}
	for _, u := range people {
		ids, names = append(ids, u.ID), append(names, u.Name)
	}
	slices.Sort(ids)
	slices.Sort(names)
	for _, ch := range s.chanOrder {
		if ch.kind == kindMPIM && slices.Equal(ch.members, ids) {
			return ch
		}
	}
	name := "mpdm-" + strings.Join(names, "--") + "-1"
	ch := s.newChannel(makeID("G", name, s.taken), name, kindMPIM)
	ch.members, ch.creator = ids, people[0].ID
	return ch
}

func closeConversation(c *call) (obj, *apiError) {
	ch, bad := c.channel("", "")
	if bad != nil {
		return nil, bad
	}
	if ch.kind != kindIM && ch.kind != kindMPIM {
		return nil, fail("method_not_supported_for_channel_type")
	}
	was := ch.open
	ch.open = false
	return obj{"no_op": !was, "already_closed": !was}, nil
}

func markConversation(c *call) (obj, *apiError) {
	_, bad := c.channel("", "")
	return nil, bad
}

func createConversation(c *call) (obj, *apiError) {
	name := strings.ToLower(c.p["name"])
	switch {
	case name == "":
		return nil, fail("invalid_name_required")
	case len(name) > 80:
		return nil, fail("invalid_name_maxlength")
	case strings.ContainsAny(name, " #@<>&/"):
		return nil, fail("invalid_name_specials")
	case c.s.channelByName(name) != nil:
		return nil, fail("name_taken")
	case c.who.user.Kind != Member:
		return nil, fail("user_is_restricted")
	}
	kind := kindChannel
	if c.p.flag("is_private") {
		kind = kindGroup
	}
	ch := c.s.newChannel(makeID("C", name, c.s.taken), name, kind)
	ch.created, ch.creator = c.now.Unix(), c.who.user.ID
	ch.members = []string{c.who.user.ID}
	return obj{"channel": c.s.conversation(ch, c.who.user)}, nil
}

func joinConversation(c *call) (obj, *apiError) {
	ch, bad := c.channel("", "")
	if bad != nil {
		return nil, bad
	}
	if ch.kind != kindChannel {
		return nil, fail("method_not_supported_for_channel_type")
	}
	if ch.has(c.who.user.ID) {
		c.warn("already_in_channel")
		return obj{"channel": c.s.conversation(ch, c.who.user)}, nil
	}
	c.join(ch, c.who.user, "")
	return obj{"channel": c.s.conversation(ch, c.who.user)}, nil
}

func inviteConversation(c *call) (obj, *apiError) {
	ch, bad := c.channel("", "")
	if bad != nil {
		return nil, bad
	}
	if ch.kind == kindIM || ch.kind == kindMPIM {
		return nil, fail("method_not_supported_for_channel_type")
	}
	if !ch.has(c.who.user.ID) {
		return nil, fail("not_in_channel")
	}
	ids := c.p.list("users")
	if len(ids) == 0 {
		return nil, fail("no_user")
	}
	var joining []*user
	for _, id := range ids {
		u := c.s.users[id]
		switch {
		case u == nil || u.Kind == Deactivated:
			return nil, fail("user_not_found")
		case u == c.who.user:
			return nil, fail("cant_invite_self")
		case ch.has(id):
			return nil, fail("already_in_channel")
		}
		joining = append(joining, u)
	}
	for _, u := range joining {
		c.join(ch, u, c.who.user.ID)
	}
	return obj{"channel": c.s.conversation(ch, c.who.user)}, nil
}

// join makes u a member, says so in the channel and raises member_joined_channel.
func (c *call) join(ch *channel, u *user, inviter string) {
	ch.members = append(ch.members, u.ID)
	c.s.raiseJoined(ch, u, inviter)
	m := &message{ch: ch, author: u, subtype: "channel_join", inviter: inviter}
	m.text = "<@" + u.ID + "> has joined the channel"
	c.store(m)
}

func leaveConversation(c *call) (obj, *apiError) {
	ch, bad := c.channel("", "")
	if bad != nil {
		return nil, bad
	}
	if ch.kind == kindIM || ch.kind == kindMPIM {
		return nil, fail("method_not_supported_for_channel_type")
	}
	if !ch.has(c.who.user.ID) {
		return obj{"not_in_channel": true}, nil
	}
	ch.members = slices.DeleteFunc(ch.members, func(id string) bool { return id == c.who.user.ID })
	return nil, nil
}
