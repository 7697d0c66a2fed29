package githubbox

import "strings"

// event is a webhook that is to be sent; without a hook it is made of nothing.
type event struct {
	name string
	body obj
}

func (s *Server) pullEvent(r *repository, p *pull, action string) event {
	if s.hook.URL == "" {
		return event{}
	}
	sample := "pull_request.opened"
	switch action {
	case "synchronize", "closed", "review_requested":
		sample = "pull_request." + action
	}
	body := render(sample, s.about(r, p))
	body["action"] = action
	s.dress(sub(body, "pull_request"), r, p)
	if action == "review_requested" && len(p.requested) > 0 {
		body["requested_reviewer"] = s.user(r, p.requested[len(p.requested)-1])
	}
	return event{"pull_request", body}
}

func (s *Server) reviewEvent(r *repository, p *pull, review Review) event {
	if s.hook.URL == "" {
		return event{}
	}
	about := s.about(r, p)
	about.other = review.User
	body := render("pull_request_review.submitted", about)
	s.dress(sub(body, "pull_request"), r, p)
	inner := sub(body, "review")
	inner["id"], inner["state"], inner["author_association"] = review.id, strings.ToLower(review.State), review.Association
	inner["submitted_at"], inner["updated_at"] = stamp(review.at), stamp(review.at)
	if review.State == "DISMISSED" {
		body["action"] = "dismissed"
	}
	return event{"pull_request_review", body}
}

// ofCommit is the subject of the payloads of a commit, with its branch and the open pull
// requests of it in their short form. Called with mu held.
func (s *Server) ofCommit(r *repository, sha string) (about subject, pulls []*pull) {
	about = subject{repo: r, sha: sha, baseURL: s.base}
	for branch, at := range r.branches {
		if at == sha && (about.branch == "" || branch < about.branch) {
			about.branch = branch
		}
	}
	for _, p := range r.pulls {
		if p.SHA == sha && !p.closed && !p.Fork {
			about.number, about.author = p.number, p.Author
			pulls = append(pulls, p)
		}
	}
	return about, pulls
}

// short is the list of pull requests in a check's payload, made of its sample.
func short(sample any, pulls []*pull) []any {
	list, _ := sample.([]any)
	out := []any{}
	for _, p := range pulls {
		one, _ := list[0].(obj)
		each := obj{}
		for k, v := range one {
			each[k] = v
		}
		each["id"], each["number"] = p.id, p.number
		out = append(out, each)
	}
	return out
}

// ofSuite gives a suite, or a run, its pull requests. A branch that is nowhere here is
// that of a fork, which GitHub does not name.
func ofSuite(doc obj, about subject, pulls []*pull) {
	if doc == nil {
		return
	}
	if _, there := doc["pull_requests"]; there {
		doc["pull_requests"] = short(doc["pull_requests"], pulls)
	}
	if _, there := doc["head_branch"]; there && about.branch == "" {
		doc["head_branch"] = nil
	}
}

func (s *Server) checkRunEvent(r *repository, sha string, run CheckRun) event {
	if s.hook.URL == "" {
		return event{}
	}
	about, pulls := s.ofCommit(r, sha)
	body := render("check_run.completed", about)
	if run.Status != "completed" {
		body["action"] = "created"
	}
	inner := sub(body, "check_run")
	dressRun(inner, run)
	ofSuite(inner, about, pulls)
	ofSuite(sub(inner, "check_suite"), about, pulls)
	return event{"check_run", body}
}

func dressRun(doc obj, run CheckRun) {
	doc["id"], doc["name"], doc["status"], doc["started_at"] = run.id, run.Name, run.Status, stamp(run.at)
	doc["conclusion"], doc["completed_at"] = nil, nil
	if run.Status == "completed" {
		doc["conclusion"], doc["completed_at"] = run.Conclusion, stamp(run.at)
	}
}

func (s *Server) checkSuiteEvent(r *repository, sha string) event {
	if s.hook.URL == "" {
		return event{}
	}
	about, pulls := s.ofCommit(r, sha)
	body := render("check_suite.completed", about)
	inner := sub(body, "check_suite")
	ofSuite(inner, about, pulls)
	inner["conclusion"], inner["latest_check_runs_count"] = "success", len(r.runs[sha])
	for _, run := range r.runs[sha] {
		if run.Conclusion != "success" && run.Conclusion != "neutral" && run.Conclusion != "skipped" {
			inner["conclusion"] = "failure"
		}
	}
	return event{"check_suite", body}
}

func (s *Server) statusEvent(r *repository, sha string, status Status) event {
	if s.hook.URL == "" {
		return event{}
	}
	about, _ := s.ofCommit(r, sha)
	body := render("status", about)
	body["id"], body["state"], body["context"] = status.id, status.State, status.Context
	body["created_at"], body["updated_at"] = stamp(status.at), stamp(status.at)
	if about.branch == "" {
		body["branches"] = []any{}
	}
	return event{"status", body}
}

func (s *Server) pushed(r *repository, branch, before, after string) event {
	if s.hook.URL == "" {
		return event{}
	}
	const none = "0000000000000000000000000000000000000000"
	body := render("push", subject{repo: r, branch: branch, sha: after, baseURL: s.base})
	if before == "" {
		before = none
	}
	body["before"], body["created"], body["deleted"] = before, before == none, after == none
	return event{"push", body}
}
