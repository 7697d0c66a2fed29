package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

func TestNewLogger_EscapesWhatAStrangerWrites(t *testing.T) {
	hostile := map[string]string{
		"terminal sequence": "\x1b[2J\x1b]0;title\x07",
		"C1 sequence":       "\u009b2J",
		"carriage return":   "ok\rlevel=ERROR",
		"newline":           "a\nlevel=ERROR msg=forged",
		"backspace, delete": "a\b\x7f",
		"text direction":    "\u202egpj.exe",
		"invalid UTF-8":     "a\xff\xc3",
		"NUL":               "a\x00b",
		"line separator":    "a\u2028b",
		"tag":               "\U000e0041",
	}
	for _, format := range []string{"json", "text"} {
		for name, value := range hostile {
			t.Run(format+"/"+name, func(t *testing.T) {
				var out bytes.Buffer
				log, err := NewLogger(&out, "info", format)
				require.NoError(t, err)
				log.Info("said "+value, KeyLine, value, value, 1, KeyError, errors.New(value))
				log.With(KeySeat, value).WithGroup(value).Info("x", "k", []byte(value))
				require.Equal(t, 2, strings.Count(out.String(), "\n"), "%q", out.String())
				for _, r := range strings.ReplaceAll(out.String(), "\n", "") {
					require.True(t, unicode.IsPrint(r), "%q in %q", r, out.String())
				}
				if format == "json" {
					for line := range strings.Lines(out.String()) {
						require.True(t, json.Valid([]byte(line)), line)
					}
				}
			})
		}
	}
}

func TestNewLogger_JSONKeepsWhatItEscapes(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, "info", "json")
	require.NoError(t, err)
	const value = "a\u009b\x7f\u202e\U000e0041é😀"
	log.Info("x", KeyLine, value)
	var record map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &record))
	require.Equal(t, value, record[KeyLine])
}

func TestNewLogger_HidesTokens(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log, err := NewLogger(&out, "info", format)
		require.NoError(t, err)
		log.Info("dial wss://host/link?ticket=very-secret&app_id=1", "a", "xoxb-1-very-secret", "b", errors.New("token=xapp-1-very-secret."), "c", "sk-ant-very-secret",
			"d", "ghp_verySecret0123456789abcdef", "e", "github_pat_very_secret_0123456789", "f", "a right_thing")
		require.NotContains(t, out.String(), "very-secret")
		require.NotRegexp(t, "very_?[sS]ecret", out.String())
		require.Contains(t, out.String(), "app_id=1")
		require.Contains(t, out.String(), "a right_thing")
	}
}

func TestNewLogger_RefusesWhatItDoesNotKnow(t *testing.T) {
	_, err := NewLogger(nil, "loud", "json")
	require.ErrorContains(t, err, `"loud"`)
	_, err = NewLogger(nil, "info", "xml")
	require.ErrorContains(t, err, `"xml"`)
}

func TestNewLogger_KeepsToTheLevel(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, "warn", "text")
	require.NoError(t, err)
	log.Info("quiet")
	require.Empty(t, out.String())
	log.Warn("aloud")
	require.Contains(t, out.String(), "aloud")
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "plain\n", "\x1b[2J", "\u009b", "xoxb-1", "?ticket=a&b", "\xff\xfe", "\U0010ffff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, r := range string(Clean(line)) {
			require.True(t, r == '\n' || unicode.IsPrint(r), "%q", r)
		}
		value, err := json.Marshal(string(line))
		require.NoError(t, err)
		if !tokenShape.Match(value) {
			require.True(t, json.Valid(Clean(value)))
		}
	})
}
