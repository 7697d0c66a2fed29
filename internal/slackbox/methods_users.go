package slackbox

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// page cuts a list at a cursor; the next cursor is "" at the end.
func page[T any](c *call, all []T, def, most int) ([]T, string, *apiError) {
	limit := c.p.number("limit", def)
	if limit <= 0 || limit > most {
		limit = most
		if c.p["limit"] == "" || c.p["limit"] == "0" {
			limit = def
		}
	}
	at := 0
	if cur := c.p["cursor"]; cur != "" {
		raw, err := base64.StdEncoding.DecodeString(cur)
		if err == nil {
			at, err = strconv.Atoi(strings.TrimPrefix(string(raw), "page:"))
		}
		if err != nil || at < 0 || at > len(all) {
			return nil, "", fail("invalid_cursor")
		}
	}
	end := min(at+limit, len(all))
	next := ""
	if end < len(all) {
		next = base64.StdEncoding.EncodeToString([]byte("page:" + strconv.Itoa(end)))
	}
	return all[at:end], next, nil
}

func cursor(next string) obj { return obj{"next_cursor": next} }

func (s *Server) member(u *user) member {
	p := memberProfile{RealName: u.RealName, DisplayName: u.Name, Team: u.Team}
	m := member{
		ID: u.ID, TeamID: u.Team, Name: u.Name, RealName: u.RealName, TZ: "Etc/UTC", Updated: s.epoch,
		Deleted: u.Kind == Deactivated, IsRestricted: u.Kind == Guest, IsStranger: u.Kind == Outsider,
		IsBot: u.app != nil, IsEmailConfirmed: !u.bot(),
	}
	if u.app != nil {
		p.BotID, p.APIAppID = u.app.BotID, u.app.ID
	}
	m.Profile = p
	return m
}

func userInfo(c *call) (obj, *apiError) {
	if ids := c.p.list("users"); len(ids) > 0 {
		out := []member{}
		for _, id := range ids {
			u := c.s.users[id]
			if u == nil {
				return nil, fail("user_not_found")
			}
			out = append(out, c.s.member(u))
		}
		return obj{"users": out}, nil
	}
	u := c.s.users[c.p["user"]]
	if u == nil {
		return nil, fail("user_not_found")
	}
	return obj{"user": c.s.member(u)}, nil
}

func listUsers(c *call) (obj, *apiError) {
	some, next, bad := page(c, c.s.userOrder, 1000, 1000)
	if bad != nil {
		return nil, bad
	}
	out := []member{}
	for _, u := range some {
		out = append(out, c.s.member(u))
	}
	return obj{"members": out, "cache_ts": c.now.Unix(), "response_metadata": cursor(next)}, nil
}
