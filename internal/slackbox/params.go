package slackbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strconv"
	"strings"
)

// maxBody is how much of a Web API request is read, in bytes; Slack's own limit is
// not published, and no method here takes more than a 40,000-character text and its blocks.
const maxBody = 4 << 20

// params are a method's arguments, however they came: a form, a query, JSON or
// multipart. Values that are not strings in JSON are kept as JSON text.
type params map[string]string

var errBody = errors.New("unreadable request body")

// parseParams reads the arguments of a Web API call. Body wins over query.
func parseParams(contentType, query string, body []byte) (params, error) {
	p := params{}
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("%w: query: %w", errBody, err)
	}
	p.addValues(q)
	kind, attrs, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = ""
	}
	switch {
	case kind == "application/json":
		err = p.addJSON(body)
	case kind == "multipart/form-data":
		err = p.addMultipart(body, attrs["boundary"])
	case kind == "application/x-www-form-urlencoded" || kind == "" && len(body) > 0:
		var v url.Values
		if v, err = url.ParseQuery(string(body)); err == nil {
			p.addValues(v)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBody, err)
	}
	for k, v := range p {
		p[k] = strings.ToValidUTF8(v, "\uFFFD")
	}
	return p, nil
}

func (p params) addValues(v url.Values) {
	for k, all := range v {
		if len(all) > 0 {
			p[k] = all[0]
		}
	}
}

func (p params) addJSON(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(body, &m); err != nil {
		return err
	}
	for k, raw := range m {
		var s string
		switch {
		case string(raw) == "null":
		case raw[0] == '"':
			if err := json.Unmarshal(raw, &s); err != nil {
				return err
			}
			p[k] = s
		default:
			p[k] = string(raw)
		}
	}
	return nil
}

func (p params) addMultipart(body []byte, boundary string) error {
	if boundary == "" {
		return errors.New("multipart without a boundary")
	}
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		b, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		if name := part.FormName(); name != "" {
			p[name] = string(b)
		}
	}
}

// flag reads a boolean: Slack's clients send 1, true and "true".
func (p params) flag(name string) bool {
	switch strings.ToLower(p[name]) {
	case "1", "true", "yes":
		return true
	}
	return false
}

// number reads a whole number; def where it is absent or no number.
func (p params) number(name string, def int) int {
	n, err := strconv.Atoi(strings.TrimSpace(p[name]))
	if err != nil {
		return def
	}
	return n
}

// list reads a comma-separated or JSON list of strings.
func (p params) list(name string) []string {
	v := strings.TrimSpace(p[name])
	if strings.HasPrefix(v, "[") {
		var l []string
		if json.Unmarshal([]byte(v), &l) == nil {
			return l
		}
	}
	var l []string
	for s := range strings.SplitSeq(v, ",") {
		if s = strings.TrimSpace(s); s != "" {
			l = append(l, s)
		}
	}
	return l
}
