package githubbox

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// deliveryTimeout is how long GitHub waits for the answer to a webhook.
const deliveryTimeout = 10 * time.Second

// Hook is a webhook as it is set up.
type Hook struct {
	URL    string `json:"url"`
	Secret string `json:"secret"`
	// Form sends application/x-www-form-urlencoded, GitHub's default, and not JSON.
	Form bool `json:"form,omitempty"`
	// Events are those that are sent; none means all.
	Events []string `json:"events,omitempty"`
}

// Delivery is a webhook that was sent, and what came back.
type Delivery struct {
	ID    string `json:"id"`
	Event string `json:"event"`
	// Status is what the receiver answered; 0 when there was no answer, and Err says why.
	Status int    `json:"status"`
	Err    string `json:"err,omitempty"`
	body   []byte
}

// SetHook sets where webhooks go from now on.
func (s *Server) SetHook(h Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = h
}

// Deliveries are the webhooks that were sent, the oldest first.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deliveries)
}

// Ping sends what GitHub sends when a webhook is set up.
func (s *Server) Ping(repo string) error {
	return s.change(repo, func(r *repository) ([]event, error) {
		return []event{{"ping", render("ping", subject{repo: r, baseURL: s.base})}}, nil
	})
}

// Star sends a webhook that nobody here asked for.
func (s *Server) Star(repo string) error {
	return s.change(repo, func(r *repository) ([]event, error) {
		return []event{{"star", render("star.created", subject{repo: r, baseURL: s.base})}}, nil
	})
}

// Redeliver sends a webhook once more, with its id, as the button on GitHub does.
func (s *Server) Redeliver(id string) error {
	s.mu.Lock()
	i := slices.IndexFunc(s.deliveries, func(d Delivery) bool { return d.ID == id })
	var again Delivery
	if i >= 0 {
		again = s.deliveries[i]
	}
	hook := s.hook
	s.mu.Unlock()
	if i < 0 {
		return errors.New("githubbox: no such delivery")
	}
	again.Status, again.Err = 0, ""
	s.deliver(hook, again)
	return nil
}

// send sends an event to the hook, if it takes it, and waits for the answer.
func (s *Server) send(e event) {
	s.mu.Lock()
	hook := s.hook
	s.mu.Unlock()
	if hook.URL == "" || (len(hook.Events) > 0 && e.name != "ping" && !slices.Contains(hook.Events, e.name)) {
		return
	}
	body, err := json.Marshal(e.body)
	if err != nil {
		s.opt.Log.Error("a webhook could not be written", "error", err)
		return
	}
	s.deliver(hook, Delivery{ID: guid(), Event: e.name, body: body})
}

func (s *Server) deliver(hook Hook, d Delivery) {
	status, err := Post(context.Background(), hook, d.Event, d.ID, d.body)
	d.Status = status
	if err != nil {
		d.Err = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliveries = append(s.deliveries, d)
}

// Post sends one webhook as GitHub does, signed, and returns the status of the answer.
// Tests send with it what GitHub would not.
func Post(ctx context.Context, hook Hook, event, delivery string, body []byte) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	contentType := "application/json"
	if hook.Form {
		contentType = "application/x-www-form-urlencoded"
		body = []byte(url.Values{"payload": {string(body)}}.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("githubbox: make a webhook: %w", err)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "*/*")
	req.Header.Set("User-Agent", "GitHub-Hookshot/0a1b2c3")
	req.Header.Set("X-GitHub-Delivery", delivery)
	req.Header.Set("X-GitHub-Event", event)
	req.Header.Set("X-GitHub-Hook-ID", "770900")
	req.Header.Set("X-GitHub-Hook-Installation-Target-Type", "repository")
	if hook.Secret != "" {
		req.Header.Set("X-Hub-Signature", "sha1="+sign(sha1hash, hook.Secret, body))
		req.Header.Set("X-Hub-Signature-256", "sha256="+sign(sha256hash, hook.Secret, body))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("githubbox: send a webhook: %w", err)
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, err
}

const (
	sha1hash = iota
	sha256hash
)

func sign(hash int, secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	if hash == sha1hash {
		mac = hmac.New(sha1.New, []byte(secret))
	}
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// guid is a random id of a delivery, as GitHub writes them.
func guid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
