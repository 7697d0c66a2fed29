package slackbox

import (
	"regexp"
	"slices"
)

// emojiName is a reaction's name, also with a skin tone ("wave::skin-tone-2").
var emojiName = regexp.MustCompile(`^[a-z0-9_+'\-]+(?:::skin-tone-[2-6])?$`)

// reacted finds the message that a reaction is about.
func (c *call) reacted(reading bool) (*message, *apiError) {
	if c.p["channel"] == "" || c.p["timestamp"] == "" {
		return nil, fail("no_item_specified")
	}
	ch, bad := c.channel("", "")
	if bad != nil {
		return nil, bad
	}
	if !validTS(c.p["timestamp"]) {
		return nil, fail("bad_timestamp")
	}
	if !reading && !ch.has(c.who.user.ID) {
		return nil, fail("not_in_channel")
	}
	m := ch.byTS[c.p["timestamp"]]
	if m == nil || !m.deletedAt.IsZero() {
		return nil, fail("message_not_found")
	}
	return m, nil
}

func addReaction(c *call) (obj, *apiError) {
	name := c.p["name"]
	if !emojiName.MatchString(name) {
		return nil, fail("invalid_name")
	}
	m, bad := c.reacted(false)
	if bad != nil {
		return nil, bad
	}
	me := c.who.user.ID
	i := slices.IndexFunc(m.reactions, func(r Reaction) bool { return r.Name == name })
	switch {
	case i < 0:
		m.reactions = append(m.reactions, Reaction{Name: name, Users: []string{me}})
	case slices.Contains(m.reactions[i].Users, me):
		return nil, fail("already_reacted")
	default:
		m.reactions[i].Users = append(m.reactions[i].Users, me)
	}
	c.s.raiseReaction("reaction_added", m, c.who.user, name)
	return nil, nil
}

func removeReaction(c *call) (obj, *apiError) {
	name := c.p["name"]
	if !emojiName.MatchString(name) {
		return nil, fail("invalid_name")
	}
	m, bad := c.reacted(false)
	if bad != nil {
		return nil, bad
	}
	me := c.who.user.ID
	i := slices.IndexFunc(m.reactions, func(r Reaction) bool { return r.Name == name })
	if i < 0 || !slices.Contains(m.reactions[i].Users, me) {
		return nil, fail("no_reaction")
	}
	m.reactions[i].Users = slices.DeleteFunc(m.reactions[i].Users, func(id string) bool { return id == me })
	if len(m.reactions[i].Users) == 0 {
		m.reactions = slices.Delete(m.reactions, i, i+1)
	}
	c.s.raiseReaction("reaction_removed", m, c.who.user, name)
	return nil, nil
}

func getReactions(c *call) (obj, *apiError) {
	m, bad := c.reacted(true)
	if bad != nil {
		return nil, bad
	}
	shown := c.s.render(m, view{})
	return obj{"type": "message", "channel": m.ch.id, "message": shown}, nil
}

func (s *Server) raiseReaction(typ string, m *message, by *user, name string) {
	s.oracle.touch(s, m)
	s.raiseSimple(m.ch, typ, m.ts, obj{
		"type": typ, "user": by.ID, "reaction": name, "item_user": m.author.ID,
		"item":     obj{"type": "message", "channel": m.ch.id, "ts": m.ts},
		"event_ts": s.nextTS(s.clock.Now()),
	})
}
