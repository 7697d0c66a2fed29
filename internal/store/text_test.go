package store

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTSMicros_SortsAsTime(t *testing.T) {
	for _, c := range []struct{ older, newer string }{
		{"999999999.999999", "1000000000.000000"},
		{"1712345678.000001", "1712345678.000002"},
		{"1712345678.999999", "1712345679.000000"},
		{"0.000000", "0.000001"},
	} {
		a, err := tsMicros(c.older)
		require.NoError(t, err)
		b, err := tsMicros(c.newer)
		require.NoError(t, err)
		require.Less(t, a, b)
	}
}

func FuzzTSMicros(f *testing.F) {
	for _, s := range []string{"1712345678.123456", "", ".", "1.2", "+1.000000", "99999999999999.000000", "１.000000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		us, err := tsMicros(s)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			require.Less(t, len(err.Error()), 300)
			return
		}
		require.GreaterOrEqual(t, us, int64(0))
		sec, frac, _ := strings.Cut(s, ".")
		require.Len(t, frac, 6)
		require.NotEmpty(t, sec)
	})
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "a\x00b", "\xff\xfe", "ä😀", "\xed\xa0\x80", "\xf4\x90\x80\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		require.True(t, utf8.ValidString(got))
		require.NotContains(t, got, "\x00")
		require.Equal(t, got, clean(got), "once is enough")
		if utf8.ValidString(s) && !strings.Contains(s, "\x00") {
			require.Equal(t, s, got)
		}
	})
}
