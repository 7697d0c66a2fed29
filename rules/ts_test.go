package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCompareTS_OrdersByTime(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"1700000000.000100", "1700000000.000100", 0},
		{"1700000000.000100", "1700000000.000200", -1},
		{"999999999.000100", "1700000000.000100", -1},
		{"0999999999.000100", "999999999.000100", 0},
		{"", "1.000000", -1},
		{"", "", 0},
		{"nonsense", "0.000000", -1},
		{"nonsense", "other", 0},
	} {
		require.Equal(t, c.want, CompareTS(c.a, c.b), "%q with %q", c.a, c.b)
		require.Equal(t, -c.want, CompareTS(c.b, c.a), "%q with %q", c.b, c.a)
	}
	require.Equal(t, "2.000000", NewerTS("1.000000", "2.000000"))
	require.Equal(t, "2.000000", NewerTS("2.000000", ""))
}

func TestTimeTS_IsTheInverseOfTSTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "a")).UTC()
		b := time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "b")).UTC()
		if !TSTime(TimeTS(a)).Equal(a) {
			t.Fatalf("%v became %v", a, TSTime(TimeTS(a)))
		}
		if CompareTS(TimeTS(a), TimeTS(b)) != a.Compare(b) {
			t.Fatalf("%v and %v are ordered otherwise as ts", a, b)
		}
	})
}

func TestTSTime_OfNoTSIsZero(t *testing.T) {
	require.Zero(t, TSTime("1700000000"))
	require.Equal(t, "0.000000", TimeTS(time.Unix(-5, 0)))
}
