// Package page is the page of the local Slack: plain HTML, CSS and ES modules in
// the binary, with no build step and nothing fetched from elsewhere. It acts as a
// person does, by the ordinary Web API with that person's token, so that what is
// clicked here reaches Smith exactly as a line typed into Slack would (T5).
//
// Tests in a browser may hold on to these: #me (who one is), #side .conv[data-name],
// #channel and #thread with their .row[data-ts] (.name, .content, .reaction[data-name],
// .replies, .status-link, .note), #composer and #thread-composer, .status (what an app
// is doing), .error, and #line, which is hidden while the stream is there.
package page

import (
	"embed"
	"io/fs"
	"net/http"
	"strings"
)

//go:embed static
var static embed.FS

// policy lets the page load its own files and nothing else. No script or style may
// stand inside the markup, and trusted types turn any assignment of text as HTML
// into an error: every message is hostile (X2).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; " +
	"img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Handler serves the page at / and its parts below /page/. Everything else is not
// found; only GET and HEAD are answered. It holds no state and is safe to share.
func Handler() http.Handler {
	parts, err := fs.Sub(static, "static")
	if err != nil {
		panic("page: the embedded folder is not there: " + err.Error())
	}
	files := http.StripPrefix("/page/", http.FileServerFS(parts))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cache-Control", "no-cache")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			head.Set("Allow", "GET, HEAD")
			http.Error(w, "The page is read with GET.", http.StatusMethodNotAllowed)
			return
		}
		switch {
		case r.URL.Path == "/":
			http.ServeFileFS(w, r, parts, "start.html")
		case strings.HasPrefix(r.URL.Path, "/page/") && !strings.HasSuffix(r.URL.Path, "/"):
			files.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}
