package rules

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// CompareTS orders two Slack timestamps by time: negative when a is the older. A ts
// that is none ("" above all) is older than every proper one, so that "nothing yet"
// never wins over something.
func CompareTS(a, b string) int {
	va, vb := ValidTS(a), ValidTS(b)
	if !va || !vb {
		return cmp.Compare(rank(va), rank(vb))
	}
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}

func rank(valid bool) int {
	if valid {
		return 1
	}
	return 0
}

// NewerTS returns the newer of two timestamps.
func NewerTS(a, b string) string {
	if CompareTS(a, b) < 0 {
		return b
	}
	return a
}

// TSTime is the moment that a timestamp names; the zero time for one that is none.
func TSTime(ts string) time.Time {
	if !ValidTS(ts) {
		return time.Time{}
	}
	dot := strings.IndexByte(ts, '.')
	sec, err := strconv.ParseInt(ts[:dot], 10, 64)
	if err != nil {
		return time.Time{}
	}
	micro, err := strconv.ParseInt(ts[dot+1:], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(sec, micro*1000).UTC()
}

// TimeTS is the timestamp of a moment, to the microsecond. A moment before 1970 is
// the oldest timestamp there is.
func TimeTS(t time.Time) string {
	micro := max(t.UnixMicro(), 0)
	return fmt.Sprintf("%d.%06d", micro/1e6, micro%1e6)
}
