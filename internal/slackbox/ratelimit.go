package slackbox

import (
	"math"
	"time"
)

// rate is what Slack lets through: per minute, with a burst.
type rate struct {
	perMinute float64
	burst     float64
}

// rateOf returns a method's published rate.
func rateOf(method string) rate {
	switch method {
	case "chat.postMessage":
		return rate{60, 5} // a channel
	case "users.list", "conversations.list":
		return rate{20, 20}
	case "chat.postEphemeral", "users.info", "conversations.members":
		return rate{100, 100}
	case "apps.connections.open":
		return rate{100, 100}
	}
	return rate{50, 50}
}

type bucket struct {
	left float64
	at   time.Time
}

// limited counts a call and returns how long the caller must wait, 0 for not at all.
func (s *Server) limited(c *call) time.Duration {
	if !s.settings.RateLimits || c.who == nil || c.who.level == levelPerson {
		return 0
	}
	r := rateOf(c.method)
	key := c.method + " " + c.who.user.ID
	if c.method == "chat.postMessage" {
		key += " " + c.p["channel"]
	}
	b := s.limits[key]
	if b == nil {
		b = &bucket{left: r.burst, at: c.now}
		s.limits[key] = b
	}
	b.left = math.Min(r.burst, b.left+c.now.Sub(b.at).Minutes()*r.perMinute)
	b.at = c.now
	if b.left >= 1 {
		b.left--
		return 0
	}
	s.fired["rate_limit"]++
	return time.Duration((1 - b.left) / r.perMinute * float64(time.Minute))
}
