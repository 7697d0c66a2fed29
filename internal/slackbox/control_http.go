package slackbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// command is the body of a control request; each endpoint reads the fields it needs.
type command struct {
	App         string          `json:"app"`
	User        string          `json:"user"`
	Reason      string          `json:"reason"`
	Token       string          `json:"token"`
	Channel     string          `json:"channel"`
	TS          string          `json:"ts"`
	Command     string          `json:"command"`
	Text        string          `json:"text"`
	Advance     string          `json:"advance"`
	Frame       json.RawMessage `json:"frame"`
	Event       json.RawMessage `json:"event"`
	Attachments json.RawMessage `json:"attachments"`
	Actions     json.RawMessage `json:"actions"`
}

// decodeStrict reads one JSON value and refuses fields that nobody reads, so that a
// misspelt fault is an error and not a fault that never comes.
func decodeStrict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("slackbox: reading the request: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("slackbox: reading the request: more than one JSON value")
	}
	return nil
}

func (s *Server) controlRoutes(mux *http.ServeMux) {
	get := func(path string, f func(*http.Request) (any, error)) {
		mux.HandleFunc("GET /_control/"+path, func(w http.ResponseWriter, r *http.Request) {
			out, err := f(r)
			writeControl(w, out, err)
		})
	}
	post := func(path string, f func(command) (any, error)) {
		mux.HandleFunc("POST /_control/"+path, func(w http.ResponseWriter, r *http.Request) {
			var c command
			err := readControl(w, r, &c)
			var out any
			if err == nil {
				out, err = f(c)
			}
			writeControl(w, out, err)
		})
	}
	get("state", func(*http.Request) (any, error) { return s.State(), nil })
	get("statuses", func(*http.Request) (any, error) { return s.Statuses(), nil })
	get("log", s.controlLog)
	get("clock", func(*http.Request) (any, error) { return s.clockView(), nil })
	get("faults", func(*http.Request) (any, error) {
		return obj{"faults": s.Faults(), "counts": s.FaultCounts()}, nil
	})
	get("settings", func(*http.Request) (any, error) { return s.Settings(), nil })
	mux.HandleFunc("POST /_control/faults", s.controlAddFault)
	mux.HandleFunc("DELETE /_control/faults", func(w http.ResponseWriter, r *http.Request) {
		s.RemoveFault(r.URL.Query().Get("id"))
		writeControl(w, nil, nil)
	})
	mux.HandleFunc("POST /_control/settings", s.controlSettings)
	mux.HandleFunc("POST /_control/add", s.controlAdd)
	post("clock", s.controlClock)
	post("disconnect", func(c command) (any, error) { return sockets(s.Disconnect(c.App, c.Reason)) })
	post("cut", func(c command) (any, error) { return sockets(s.Cut(c.App)) })
	post("stop_pings", func(c command) (any, error) { return sockets(s.StopPings(c.App)) })
	post("raw", func(c command) (any, error) {
		var text string
		if json.Unmarshal(c.Frame, &text) == nil {
			return nil, s.SendRaw(c.App, []byte(text)) // a string is sent as its text: any bytes
		}
		return nil, s.SendRaw(c.App, c.Frame)
	})
	post("event", func(c command) (any, error) { return nil, s.SendEvent(c.App, c.Event) })
	post("revoke", func(c command) (any, error) { s.RevokeToken(c.Token); return nil, nil })
	post("restore", func(c command) (any, error) { s.RestoreToken(c.Token); return nil, nil })
	post("delete_hard", func(c command) (any, error) { return nil, s.DeleteHard(c.Channel, c.TS) })
	post("unfurl", func(c command) (any, error) { return nil, s.Unfurl(c.Channel, c.TS, c.Attachments) })
	post("home", func(c command) (any, error) { return nil, s.OpenHome(c.App, c.User) })
	post("command", func(c command) (any, error) {
		return nil, s.Person(c.User).Command(c.Channel, c.Command, c.Text)
	})
	post("interactive", func(c command) (any, error) {
		return nil, s.Person(c.User).Act(c.Channel, c.TS, c.Actions)
	})
}

func sockets(n int, err error) (any, error) { return obj{"sockets": n}, err }

func readControl(w http.ResponseWriter, r *http.Request, into any) error {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return fmt.Errorf("slackbox: reading the request: %w", err)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	return decodeStrict(b, into)
}

// writeControl answers {"ok":true, …} or {"ok":false,"error":…} with 400.
func writeControl(w http.ResponseWriter, out any, err error) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = obj{"ok": false, "error": err.Error()}
	} else if out == nil {
		out = obj{"ok": true}
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (s *Server) controlLog(r *http.Request) (any, error) {
	since := uint64(0)
	if v := r.URL.Query().Get("since"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("slackbox: since: %w", err)
		}
		since = n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := json.Marshal(s.log(since))
	if err != nil {
		return nil, fmt.Errorf("slackbox: writing the log: %w", err)
	}
	return json.RawMessage(b), nil
}

func (s *Server) clockView() obj {
	_, movable := s.clock.(*MovableClock)
	return obj{"now": s.Now(), "movable": movable}
}

func (s *Server) controlClock(c command) (any, error) {
	d, err := time.ParseDuration(c.Advance)
	if err != nil {
		return nil, fmt.Errorf("slackbox: advance: %w", err)
	}
	if err := s.Advance(d); err != nil {
		return nil, err
	}
	return s.clockView(), nil
}

func (s *Server) controlAddFault(w http.ResponseWriter, r *http.Request) {
	var f Fault
	err := readControl(w, r, &f)
	var id string
	if err == nil {
		id, err = s.AddFault(f)
	}
	writeControl(w, obj{"ok": true, "id": id}, err)
}

func (s *Server) controlSettings(w http.ResponseWriter, r *http.Request) {
	v := s.Settings()
	err := readControl(w, r, &v)
	if err == nil {
		s.SetSettings(v)
	}
	writeControl(w, v, err)
}

func (s *Server) controlAdd(w http.ResponseWriter, r *http.Request) {
	var seed Seed
	err := readControl(w, r, &seed)
	if err == nil {
		err = s.Add(seed)
	}
	writeControl(w, nil, err)
}
