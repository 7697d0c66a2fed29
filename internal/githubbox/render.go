package githubbox

import (
	"bytes"
	"embed"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

//go:embed payloads
var payloads embed.FS

// obj is a JSON object.
type obj = map[string]any

// What the payloads are about, which is put in the place of these.
const (
	sampleRepo   = "acme/garden"
	sampleOwner  = "acme"
	sampleName   = "garden"
	sampleRepoID = "700100200"
	sampleBranch = "smith/water-the-roses"
	sampleSHA    = "3f1c9a7be0d24c58a6b1f0e97d3c25418ab06e72"
	sampleTitle  = "Water the roses every morning"
	sampleAuthor = "mira"
	sampleOther  = "noor"
	sampleNumber = "7"
)

// subject is what a payload is to be about.
type subject struct {
	repo    *repository
	branch  string
	sha     string
	title   string
	number  int
	author  string
	other   string
	baseURL string
}

// render reads a payload and makes it one about the subject.
func render(name string, about subject) obj {
	raw, err := payloads.ReadFile("payloads/" + name + ".json")
	if err != nil {
		panic(err) // it is embedded
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var doc obj
	if err := decoder.Decode(&doc); err != nil {
		panic(err)
	}
	about.fill(doc)
	return doc
}

// fill puts the subject into every value.
func (u subject) fill(doc obj) {
	owner, name, _ := strings.Cut(u.repo.fullName, "/")
	orElse := func(text, other string) string {
		if text == "" {
			return other
		}
		return text
	}
	author, other := orElse(u.author, sampleAuthor), orElse(u.other, sampleOther)
	branch, sha, title := orElse(u.branch, sampleBranch), orElse(u.sha, sampleSHA), orElse(u.title, sampleTitle)
	number := sampleNumber
	if u.number != 0 {
		number = strconv.Itoa(u.number)
	}
	whole := map[string]string{sampleOwner: owner, sampleName: name, sampleAuthor: author, sampleOther: other, sampleTitle: title, sampleOwner + ":" + sampleBranch: owner + ":" + branch,
		sampleOwner + ":main": owner + ":main"}
	parts := strings.NewReplacer(
		"https://api.github.com/", u.baseURL+"api/v3/", "https://github.com/", u.baseURL,
		sampleRepo, u.repo.fullName, "/orgs/"+sampleOwner, "/orgs/"+owner, "/users/"+sampleOwner, "/users/"+owner,
		"/users/"+sampleAuthor, "/users/"+author, "/users/"+sampleOther, "/users/"+other,
		"/pulls/"+sampleNumber, "/pulls/"+number, "/pull/"+sampleNumber, "/pull/"+number, "/issues/"+sampleNumber, "/issues/"+number,
		sampleBranch, branch, sampleSHA, sha, sampleSHA[:12], sha[:min(12, len(sha))],
	)
	var walk func(key string, v any) any
	walk = func(key string, v any) any {
		switch v := v.(type) {
		case obj:
			for k, x := range v {
				v[k] = walk(k, x)
			}
		case []any:
			for i, x := range v {
				v[i] = walk(key, x)
			}
		case string:
			if text, ok := whole[v]; ok {
				return text
			}
			return parts.Replace(v)
		case json.Number:
			switch {
			case v == sampleRepoID:
				return u.repo.id
			case v == sampleNumber && key == "number":
				return json.Number(number)
			}
		}
		return v
	}
	walk("", doc)
}

// about is the subject of a pull request's payloads. Called with mu held.
func (s *Server) about(r *repository, p *pull) subject {
	return subject{repo: r, branch: p.Branch, sha: p.SHA, title: p.Title, number: p.number, author: p.Author, baseURL: s.base}
}

// sub returns an object of an object.
func sub(doc obj, key string) obj {
	inner, _ := doc[key].(obj)
	return inner
}

// stamp writes a time as GitHub does, and null for none.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

// user is somebody, made of the payload's own user.
func (s *Server) user(r *repository, login string) obj {
	doc := render("rest/review", subject{repo: r, other: login, baseURL: s.base})
	return sub(doc, "user")
}

// dress gives a pull request's object its state.
func (s *Server) dress(doc obj, r *repository, p *pull) {
	doc["id"] = p.id
	doc["state"] = "open"
	if p.closed {
		doc["state"] = "closed"
	}
	doc["draft"], doc["title"] = p.Draft, p.Title
	doc["created_at"], doc["updated_at"], doc["closed_at"], doc["merged_at"] = stamp(p.openedAt), stamp(p.updatedAt), stamp(p.closedAt), stamp(p.mergedAt)
	if _, full := doc["merged"]; full {
		doc["merged"] = !p.mergedAt.IsZero()
		doc["merged_by"] = nil
		if !p.mergedAt.IsZero() {
			doc["merged_by"] = s.user(r, sampleOther)
		}
	}
	if p.mergedAt.IsZero() {
		doc["merge_commit_sha"] = nil
	}
	asked := []any{}
	for _, login := range p.requested {
		asked = append(asked, s.user(r, login))
	}
	doc["requested_reviewers"] = asked
	if p.Fork {
		_, name, _ := strings.Cut(r.fullName, "/")
		head := sub(doc, "head")
		head["label"] = p.Author + ":" + p.Branch
		fork := sub(head, "repo")
		fork["id"], fork["full_name"], fork["fork"] = p.id, p.Author+"/"+name, true
	}
}
