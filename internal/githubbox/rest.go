package githubbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer is what a read returns: a body, and for lists how many there are.
type answer struct {
	body any
	// items is the whole list that the body is a page of; wrap puts the page into it.
	items []any
	wrap  func(page []any) any
}

// Fault is a failure of the next reads.
type Fault struct {
	// Path is a part of the path of the reads that fail; "" is every one.
	Path   string            `json:"path,omitempty"`
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	// Delay is how long the answer takes; with Status 0 the read then goes on as usual.
	Delay time.Duration `json:"delay,omitempty"`
	// Times is how often; 0 is for ever.
	Times int `json:"times,omitempty"`
	fired int
}

// LimitReached is GitHub's answer when the requests of an hour are used up.
func LimitReached(until time.Time) Fault {
	return Fault{
		Status: http.StatusForbidden, Times: 1,
		Header: map[string]string{"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Used": "5000", "X-RateLimit-Reset": strconv.FormatInt(until.Unix(), 10)},
		Body:   `{"message":"API rate limit exceeded for user ID 4100200.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api","status":"403"}`,
	}
}

// TooFast is GitHub's answer to too much at once (its secondary limit).
func TooFast(status int, wait time.Duration) Fault {
	return Fault{
		Status: status, Times: 1, Header: map[string]string{"Retry-After": strconv.Itoa(int(wait.Seconds()))},
		Body: `{"message":"You have exceeded a secondary rate limit.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits","status":"` + strconv.Itoa(status) + `"}`,
	}
}

// Fail adds a fault.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// Heal takes every fault away.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// SetToken changes the token that is taken, as when one is revoked.
func (s *Server) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Requests are the paths with queries that were read, the oldest first.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// fault takes the next fault for a path. Called with mu held.
func (s *Server) fault(path string) (Fault, bool) {
	for _, f := range s.faults {
		if strings.Contains(path, f.Path) && (f.Times == 0 || f.fired < f.Times) {
			f.fired++
			return *f, true
		}
	}
	return Fault{}, false
}

// rest makes a handler of a read.
func (s *Server) rest(read func(*repository, *http.Request) (answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.URL.RequestURI())
		f, broken := s.fault(r.URL.Path)
		token := s.token
		s.mu.Unlock()
		if broken && f.Delay > 0 {
			select {
			case <-time.After(f.Delay):
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		if broken && f.Status != 0 {
			for k, v := range f.Header {
				w.Header().Set(k, v)
			}
			w.WriteHeader(f.Status)
			_, _ = w.Write([]byte(f.Body))
			return
		}
		given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case token != "" && bearer && given != token:
			refuse(w, http.StatusUnauthorized, "Bad credentials")
			return
		case token != "" && !bearer: // a private repository is none to the public
			refuse(w, http.StatusNotFound, "Not Found")
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		repo := s.repos[strings.ToLower(r.PathValue("owner")+"/"+r.PathValue("name"))]
		if repo == nil {
			refuse(w, http.StatusNotFound, "Not Found")
			return
		}
		a, err := read(repo, r)
		if err != nil {
			refuse(w, http.StatusNotFound, "Not Found")
			return
		}
		a.write(w, r, s.base, s.opt.Now())
	}
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(obj{"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status)})
}

// write writes an answer, and of a list the page that is asked for, with its links.
func (a answer) write(w http.ResponseWriter, r *http.Request, base string, now time.Time) {
	w.Header().Set("X-GitHub-Media-Type", "github.v3; format=json")
	w.Header().Set("X-RateLimit-Limit", "5000")
	w.Header().Set("X-RateLimit-Remaining", "4990")
	w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(now.Add(time.Hour).Unix(), 10))
	w.Header().Set("X-RateLimit-Resource", "core")
	if a.body == nil {
		q := r.URL.Query()
		number := func(key string, least, otherwise, most int) int {
			n, err := strconv.Atoi(q.Get(key))
			if err != nil || n < least {
				return otherwise
			}
			return min(n, most)
		}
		size, page := number("per_page", 1, 30, 100), number("page", 1, 1, 1<<20)
		last := max(1, (len(a.items)+size-1)/size)
		link := func(n int, rel string) string {
			q.Set("page", strconv.Itoa(n))
			return fmt.Sprintf("<%s%s?%s>; rel=%q", strings.TrimSuffix(base, "/"), r.URL.Path, q.Encode(), rel)
		}
		if page < last {
			w.Header().Set("Link", link(page+1, "next")+", "+link(last, "last"))
		}
		from := min((page-1)*size, len(a.items))
		part := slices.Concat([]any{}, a.items[from:min(from+size, len(a.items))])
		a.body = part
		if a.wrap != nil {
			a.body = a.wrap(part)
		}
	}
	_ = json.NewEncoder(w).Encode(a.body)
}

func (s *Server) listPulls(repo *repository, r *http.Request) (answer, error) {
	q := r.URL.Query()
	owner, _, _ := strings.Cut(repo.fullName, "/")
	list := []any{}
	for _, p := range slices.Backward(repo.pulls) { // the newest first
		head := owner + ":" + p.Branch
		if p.Fork {
			head = p.Author + ":" + p.Branch
		}
		state := "open"
		if p.closed {
			state = "closed"
		}
		want, asked := cmp.Or(q.Get("state"), "open"), q.Get("head")
		// As on GitHub, a head that is not user:branch filters nothing.
		if (want != "all" && want != state) || (strings.Contains(asked, ":") && !strings.EqualFold(asked, head)) {
			continue
		}
		doc := render("rest/pull_listed", s.about(repo, p))
		s.dress(doc, repo, p)
		list = append(list, doc)
	}
	return answer{items: list}, nil
}

func (s *Server) pullOf(repo *repository, r *http.Request) (*pull, error) {
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil {
		return nil, errNotFound
	}
	return repo.pull(n)
}

func (s *Server) getPull(repo *repository, r *http.Request) (answer, error) {
	p, err := s.pullOf(repo, r)
	if err != nil {
		return answer{}, err
	}
	doc := render("rest/pull", s.about(repo, p))
	s.dress(doc, repo, p)
	return answer{body: doc}, nil
}

func (s *Server) listReviews(repo *repository, r *http.Request) (answer, error) {
	p, err := s.pullOf(repo, r)
	if err != nil {
		return answer{}, err
	}
	list := []any{}
	for _, review := range p.reviews {
		about := s.about(repo, p)
		about.other = review.User
		doc := render("rest/review", about)
		doc["id"], doc["state"], doc["author_association"], doc["submitted_at"] = review.id, review.State, review.Association, stamp(review.at)
		list = append(list, doc)
	}
	return answer{items: list}, nil
}

func (s *Server) getStatus(repo *repository, r *http.Request) (answer, error) {
	sha := r.PathValue("ref")
	doc := render("rest/status", subject{repo: repo, sha: sha, baseURL: s.base})
	samples, _ := doc["statuses"].([]any)
	list := []any{}
	state := "success"
	for _, status := range repo.statuses[sha] {
		each := obj{}
		for k, v := range samples[0].(obj) {
			each[k] = v
		}
		each["id"], each["state"], each["context"] = status.id, status.State, status.Context
		each["created_at"], each["updated_at"] = stamp(status.at), stamp(status.at)
		list = append(list, each)
		switch {
		case status.State == "failure" || status.State == "error":
			state = "failure"
		case status.State == "pending" && state != "failure":
			state = "pending"
		}
	}
	if len(list) == 0 {
		state = "pending" // GitHub says so of a commit without any
	}
	return answer{items: list, wrap: func(page []any) any {
		doc["state"], doc["statuses"], doc["total_count"] = state, page, len(list)
		return doc
	}}, nil
}

func (s *Server) listCheckRuns(repo *repository, r *http.Request) (answer, error) {
	sha := r.PathValue("ref")
	about, pulls := s.ofCommit(repo, sha)
	list := []any{}
	for _, run := range repo.runs[sha] {
		doc := render("rest/check_run", about)
		dressRun(doc, run)
		ofSuite(doc, about, pulls)
		doc["check_suite"] = obj{"id": sub(doc, "check_suite")["id"]} // all that a read gives of it
		list = append(list, doc)
	}
	return answer{items: list, wrap: func(page []any) any { return obj{"total_count": len(list), "check_runs": page} }}, nil
}

// page is what a person sees who follows the link of a pull request.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repo := s.repos[strings.ToLower(r.PathValue("owner")+"/"+r.PathValue("name"))]
	if repo == nil {
		http.NotFound(w, r)
		return
	}
	p, err := s.pullOf(repo, r)
	if errors.Is(err, errNotFound) {
		http.NotFound(w, r)
		return
	}
	state := "open"
	switch {
	case !p.mergedAt.IsZero():
		state = "merged"
	case p.closed:
		state = "closed"
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	_, _ = fmt.Fprintf(w, "<!doctype html><title>%[1]s</title><h1>%[1]s <small>#%[2]d</small></h1><p>%[3]s, from <code>%[4]s</code> in %[5]s. This is a local GitHub.</p>",
		html.EscapeString(p.Title), p.number, state, html.EscapeString(p.Branch), html.EscapeString(repo.fullName))
}
