package page_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox/page"
)

func TestHandler_ServesThePageUnderAPolicyWithoutInlineScript(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
		kind         string
	}{
		{http.MethodGet, "/", http.StatusOK, "text/html; charset=utf-8"},
		{http.MethodHead, "/", http.StatusOK, "text/html; charset=utf-8"},
		{http.MethodGet, "/?as=ana&channel=general", http.StatusOK, "text/html; charset=utf-8"},
		{http.MethodGet, "/page/js/main.js", http.StatusOK, "text/javascript; charset=utf-8"},
		{http.MethodGet, "/page/css/theme.css", http.StatusOK, "text/css; charset=utf-8"},
		{http.MethodGet, "/page/icon.svg", http.StatusOK, "image/svg+xml"},
		{http.MethodGet, "/page/", http.StatusNotFound, ""},
		{http.MethodGet, "/page/js/", http.StatusNotFound, ""},
		{http.MethodGet, "/page/../page.go", http.StatusNotFound, ""},
		{http.MethodGet, "/other", http.StatusNotFound, ""},
		{http.MethodPost, "/", http.StatusMethodNotAllowed, ""},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			w := httptest.NewRecorder()
			page.Handler().ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
			require.Equal(t, c.status, w.Code)
			if c.kind != "" {
				require.Equal(t, c.kind, w.Header().Get("Content-Type"))
			}
			policy := w.Header().Get("Content-Security-Policy")
			require.Contains(t, policy, "default-src 'none'")
			require.Contains(t, policy, "require-trusted-types-for 'script'")
			require.NotContains(t, policy, "unsafe")
			require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		})
	}
}

// The page keeps what the policy promises: nothing is made of a string, nothing is
// fetched from elsewhere, nothing stands inline.
func TestStatic_MakesNothingOfStringsAndFetchesNothingFromElsewhere(t *testing.T) {
	makes := regexp.MustCompile(`\.(innerHTML|outerHTML)\s*\+?=[^=]|insertAdjacentHTML|document\.write|\beval\(|new Function|setTimeout\(\s*['"]|srcdoc`)
	elsewhere := regexp.MustCompile(`(?:src|href)="(?:https?:)?//|@import|url\(\s*['"]?(?:https?:)?//|from ['"]https?:`)
	inline := regexp.MustCompile(`<script(?:\s[^>]*)?>[^<]|<style|\son[a-z]+="|\sstyle="`)
	static := os.DirFS("static")
	require.NoError(t, fs.WalkDir(static, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(static, path)
		if err != nil {
			return err
		}
		require.Empty(t, makes.FindString(string(text)), path)
		require.Empty(t, elsewhere.FindString(string(text)), path)
		require.Empty(t, inline.FindString(string(text)), path)
		return nil
	}))
}
