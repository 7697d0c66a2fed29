package slackbox

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

func (w *world) taken(id string) bool {
	if w.users[id] != nil || w.channels[id] != nil {
		return true
	}
	return slices.ContainsFunc(w.apps, func(a *app) bool { return a.ID == id || a.BotID == id })
}

func (w *world) byName(name string) *user {
	for _, u := range w.userOrder {
		if strings.EqualFold(u.Name, name) {
			return u
		}
	}
	return nil
}

// find takes a user's id or name, or an app's name, app id or bot id.
func (w *world) find(who string) *user {
	if u := w.users[who]; u != nil {
		return u
	}
	if a := w.appOf(who); a != nil {
		return a.user
	}
	return w.byName(who)
}

// appOf takes an app's name, app id, bot id or bot user.
func (w *world) appOf(who string) *app {
	for _, a := range w.apps {
		if a.ID == who || a.Name == who || a.BotID == who || a.BotUser == who {
			return a
		}
	}
	return nil
}

func (w *world) channelByName(name string) *channel {
	for _, c := range w.chanOrder {
		if c.name == name && name != "" {
			return c
		}
	}
	return nil
}

// channelOf takes a channel's id or name ("general" or "#general").
func (w *world) channelOf(s string) *channel {
	if c := w.channels[s]; c != nil {
		return c
	}
	return w.channelByName(strings.TrimPrefix(s, "#"))
}

// nextTS returns a message ts: unique in the workspace and always increasing.
func (w *world) nextTS(now time.Time) string {
	us := max(now.UnixMicro(), w.lastTS+1)
	w.lastTS = us
	return fmt.Sprintf("%d.%06d", us/1e6, us%1e6)
}
