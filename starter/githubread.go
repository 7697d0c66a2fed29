package main

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
)

// webhookBytes is the largest webhook that is read. GitHub's own cap is 25 MB; what
// Smith asks for is below 100 KiB, but for a push of very many commits, and whoever
// finds this door may send something. What is larger is seen by the slow poll.
const webhookBytes = 5 << 20

// What becomes of a request, for the counter.
const (
	hookTaken     = "taken"         // a task was woken
	hookReplayed  = "replayed"      // it was handed on before
	hookPing      = "ping"          // GitHub's own test
	hookNotAsked  = "unknown_event" // a kind of webhook that means nothing here
	hookNobody    = "unknown_pull"  // no thread is about it
	hookForged    = "bad_signature" // not GitHub, or another secret
	hookMalformed = "malformed"     // signed, and yet no webhook
	hookRefused   = "refused"       // no POST, too large, another type
	hookFailed    = "failed"        // the store or Temporal did not answer
	hookBusy      = "busy"          // too many at once
)

// refusal is an answer that says what is wrong.
type refusal struct {
	status  int
	outcome string
	text    string
}

// Error is error.
func (r *refusal) Error() string { return r.text }

func unsigned() error {
	return &refusal{http.StatusUnauthorized, hookForged, "The signature is missing or wrong: X-Hub-Signature-256 with the secret of this webhook is needed."}
}

func tooLarge() error {
	return &refusal{http.StatusRequestEntityTooLarge, hookRefused, fmt.Sprintf("A webhook over %d bytes is not read.", webhookBytes)}
}

func readWebhook(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, webhookBytes))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, tooLarge()
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, hookRefused, "The body did not come whole."}
	}
	return body, nil
}

// unwrap returns the JSON in a body, which comes in one of GitHub's two forms.
func unwrap(contentType string, body []byte) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && kind == "application/json":
		return body, nil
	case err == nil && kind == "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil || len(form["payload"]) != 1 {
			return nil, &refusal{http.StatusBadRequest, hookMalformed, "The form has no field named payload."}
		}
		return []byte(form["payload"][0]), nil
	}
	return nil, &refusal{http.StatusUnsupportedMediaType, hookMalformed, "The content type is application/json or application/x-www-form-urlencoded."}
}
