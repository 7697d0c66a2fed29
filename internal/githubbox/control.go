package githubbox

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// command is the body of a control request; each endpoint reads the fields it needs.
type command struct {
	Pull
	Number   int      `json:"number"`
	User     string   `json:"user"`
	Review   Review   `json:"review"`
	Status   Status   `json:"status"`
	Check    CheckRun `json:"check"`
	Hook     Hook     `json:"hook"`
	Delivery string   `json:"delivery"`
	Token    string   `json:"token"`
	Fault    Fault    `json:"fault"`
}

// controlRoutes are for programs that are not this process: POST /_control/WHAT with a
// command as JSON, and GET /_control/deliveries and /_control/requests.
func (s *Server) controlRoutes(mux *http.ServeMux) {
	post := func(what string, do func(c command) (any, error)) {
		mux.HandleFunc("POST /_control/"+what, func(w http.ResponseWriter, r *http.Request) {
			var c command
			dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
			dec.DisallowUnknownFields()
			err := dec.Decode(&c)
			var out any
			if err == nil {
				out, err = do(c)
			}
			reply(w, out, err)
		})
	}
	nothing := func(err error) (any, error) { return obj{}, err }
	post("push", func(c command) (any, error) { return nothing(s.Push(c.Repo, c.Branch, c.SHA)) })
	post("pull", func(c command) (any, error) {
		n, err := s.OpenPull(c.Pull)
		return obj{"number": n}, err
	})
	post("merge", func(c command) (any, error) { return nothing(s.Merge(c.Repo, c.Number)) })
	post("close", func(c command) (any, error) { return nothing(s.ClosePull(c.Repo, c.Number)) })
	post("draft", func(c command) (any, error) { return nothing(s.SetDraft(c.Repo, c.Number, c.Draft)) })
	post("request", func(c command) (any, error) { return nothing(s.RequestReview(c.Repo, c.Number, c.User)) })
	post("review", func(c command) (any, error) { return nothing(s.Review(c.Repo, c.Number, c.Review)) })
	post("status", func(c command) (any, error) { return nothing(s.SetStatus(c.Repo, c.SHA, c.Status)) })
	post("check", func(c command) (any, error) { return nothing(s.SetCheck(c.Repo, c.SHA, c.Check)) })
	post("ping", func(c command) (any, error) { return nothing(s.Ping(c.Repo)) })
	post("redeliver", func(c command) (any, error) { return nothing(s.Redeliver(c.Delivery)) })
	post("hook", func(c command) (any, error) { s.SetHook(c.Hook); return obj{}, nil })
	post("token", func(c command) (any, error) { s.SetToken(c.Token); return obj{}, nil })
	post("fault", func(c command) (any, error) { s.Fail(c.Fault); return obj{}, nil })
	post("heal", func(command) (any, error) { s.Heal(); return obj{}, nil })
	mux.HandleFunc("GET /_control/deliveries", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.Deliveries(), nil) })
	mux.HandleFunc("GET /_control/requests", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.Requests(), nil) })
}

func reply(w http.ResponseWriter, out any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = obj{"error": fmt.Sprint(err)}
	}
	_ = json.NewEncoder(w).Encode(out)
}
