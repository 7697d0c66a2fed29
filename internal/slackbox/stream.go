package slackbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// stream is a page that listens, as one person.
type stream struct {
	user  *user
	lines chan []byte
}

// streamRoom is how far a page may fall behind before it is cut and must load anew.
const streamRoom = 1024

// stream tells the pages of a channel's people; called with mu held.
func (s *Server) stream(ch *channel, event []byte) {
	for k := range s.streams {
		if ch.has(k.user.ID) {
			s.streamLine(k, event)
		}
	}
}

func (s *Server) streamTo(userID string, event []byte) {
	for k := range s.streams {
		if k.user.ID == userID {
			s.streamLine(k, event)
		}
	}
}

func (s *Server) streamLine(k *stream, event []byte) {
	select {
	case k.lines <- event:
	default:
		delete(s.streams, k)
		close(k.lines)
	}
}

// person finds whose page asks; only people have one.
func (s *Server) person(r *http.Request) *user {
	token := bearer(r)
	if token == "" {
		token = r.URL.Query().Get("token")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.tokens[token]
	if c == nil || c.level != levelPerson || s.revoked[token] || c.user.Kind == Deactivated {
		return nil
	}
	return c.user
}

// serveStream sends a person's events as server-sent events until the page goes.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	u := s.person(r)
	flusher, ok := w.(http.Flusher)
	if u == nil || !ok {
		http.Error(w, "A person's token is needed.", http.StatusUnauthorized)
		return
	}
	k := &stream{user: u, lines: make(chan []byte, streamRoom)}
	s.mu.Lock()
	s.streams[k] = struct{}{}
	s.touched()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, k)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = fmt.Fprint(w, ": listening\n\n")
	flusher.Flush()
	alive := time.NewTicker(15 * time.Second)
	defer alive.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case line, ok := <-k.lines:
			if !ok {
				return
			}
			if _, err := fmt.Fprintf(w, "data: %s\n\n", line); err != nil {
				return
			}
		case <-alive.C:
			if _, err := fmt.Fprint(w, ": alive\n\n"); err != nil {
				return
			}
		}
		flusher.Flush()
	}
}

// Boot is what the page begins with.
type Boot struct {
	Team     Team      `json:"team"`
	Users    []User    `json:"users"`
	Channels []Channel `json:"channels"`
	Apps     []BootApp `json:"apps"`
	DMs      []BootDM  `json:"dms"`
	Statuses []Status  `json:"statuses"`
}

// BootApp is an app without its tokens.
type BootApp struct {
	Name     string   `json:"name"`
	ID       string   `json:"app_id"`
	BotUser  string   `json:"bot_user"`
	BotID    string   `json:"bot_id"`
	Seat     bool     `json:"seat"`
	Commands []string `json:"commands,omitempty"`
}

// BootDM is a direct message and the ids of the two who talk in it.
type BootDM struct {
	ID    string   `json:"id"`
	Users []string `json:"users"`
}

func (s *Server) serveBoot(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	out, err := json.Marshal(s.boot())
	s.mu.Unlock()
	if err != nil {
		http.Error(w, "The world could not be written down.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(out)
}

func (s *Server) boot() Boot {
	b := Boot{Team: s.team, Users: []User{}, Channels: []Channel{}, Apps: []BootApp{}, DMs: []BootDM{}, Statuses: s.listStatuses()}
	for _, u := range s.userOrder {
		if !u.bot() {
			b.Users = append(b.Users, u.User)
		}
	}
	for _, a := range s.apps {
		b.Apps = append(b.Apps, BootApp{Name: a.Name, ID: a.ID, BotUser: a.BotUser, BotID: a.BotID, Seat: a.Seat, Commands: a.Commands})
	}
	for _, ch := range s.chanOrder {
		switch ch.kind {
		case kindIM:
			b.DMs = append(b.DMs, BootDM{ID: ch.id, Users: append([]string{}, ch.members...)})
		default:
			b.Channels = append(b.Channels, s.channelView(ch))
		}
	}
	return b
}

// channelView is a channel in the terms of a seed; members are user ids.
func (s *Server) channelView(ch *channel) Channel {
	return Channel{ID: ch.id, Name: ch.name, Private: ch.kind != kindChannel, Shared: ch.shared, Members: append([]string{}, ch.members...)}
}
