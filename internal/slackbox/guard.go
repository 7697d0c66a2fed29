package slackbox

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// guard refuses what a page of another site could send through the browser of
// whoever runs this: a foreign Host (DNS rebinding) or a foreign Origin. Socket Mode
// alone keeps its origin free, as slack-go dials with https://api.slack.com; its
// tickets cannot be guessed.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopbackHost(r.Host) {
			http.Error(w, "This server answers only to 127.0.0.1 and localhost.", http.StatusForbidden)
			return
		}
		origin := r.Header.Get("Origin")
		if origin != "" && !strings.HasPrefix(r.URL.Path, "/link/") && !sameOrigin(origin, r.Host) {
			http.Error(w, "Requests from another origin are refused.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func loopbackHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && strings.EqualFold(u.Host, host)
}
