package terminal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"agentsmith/rules"
)

// UsageError is a request that cannot be meant: nothing was looked at or done.
type UsageError struct{ Reason string }

// Error returns the reason.
func (e *UsageError) Error() string { return e.Reason }

// ExistsError says that an operator runs: for this very thread, which is to be taken up
// again, or for another one (O7).
type ExistsError struct {
	Live       Live
	ThisThread bool
}

// Error says which session it is, and whose.
func (e *ExistsError) Error() string {
	if e.ThisThread {
		return fmt.Sprintf("session %s works for this thread", e.Live.Name)
	}
	return fmt.Sprintf("session %s is another task's", e.Live.Name)
}

var (
	// ErrNoCheckout: the repo is none of the checkouts that agents may write in (O4).
	ErrNoCheckout = errors.New("no such checkout on this box")
	// ErrLimit: as many operators run as may run at once (X6).
	ErrLimit = errors.New("as many operators run as may run on this box")
)

// The exit codes of start-operator.
const (
	ExitStarted    = 0
	ExitUsage      = 2
	ExitExists     = 3
	ExitNoCheckout = 4
	ExitFailed     = 5
	ExitLimit      = 6
)

// ExitCode is the exit code that stands for an error of Start or Check.
func ExitCode(err error) int {
	var usage *UsageError
	var exists *ExistsError
	switch {
	case err == nil:
		return ExitStarted
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &exists):
		return ExitExists
	case errors.Is(err, ErrNoCheckout):
		return ExitNoCheckout
	case errors.Is(err, ErrLimit):
		return ExitLimit
	}
	return ExitFailed
}

var (
	idShape   = regexp.MustCompile(`^[A-Za-z0-9]{1,32}$`)
	tsShape   = regexp.MustCompile(`^[0-9]{1,16}\.[0-9]{1,16}$`)
	seatShape = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
)

func checkThread(t rules.Thread) error {
	switch {
	case !idShape.MatchString(t.Team):
		return &UsageError{fmt.Sprintf("%q is no id of a team", clip(t.Team, 60))}
	case !idShape.MatchString(t.Channel):
		return &UsageError{fmt.Sprintf("%q is no id of a channel", clip(t.Channel, 60))}
	case !tsShape.MatchString(t.Root):
		return &UsageError{fmt.Sprintf("%q is no ts of a thread's root", clip(t.Root, 60))}
	}
	return nil
}

// check refuses a request before anything is touched, and fills in what was left out.
func (req *StartRequest) check() error {
	if err := checkThread(req.Thread); err != nil {
		return err
	}
	switch {
	case !rules.ValidSlug(req.Slug):
		return &UsageError{fmt.Sprintf("%q is no slug: small letters, digits and single dashes, 3 to 40 of them", clip(req.Slug, 60))}
	case !seatShape.MatchString(req.Seat):
		return &UsageError{fmt.Sprintf("%q is no name of a seat", clip(req.Seat, 60))}
	case req.Repo == "":
		return &UsageError{"no repo is named, and there is no default"}
	case req.Asked != "" && !rules.ValidTS(req.Asked):
		return &UsageError{fmt.Sprintf("%q is no ts of a line", clip(req.Asked, 60))}
	case strings.TrimSpace(plain(req.Brief)) == "":
		return &UsageError{"the brief is empty"}
	case len(req.Brief) > MaxBrief:
		return &UsageError{fmt.Sprintf("the brief has %d bytes, %d are possible", len(req.Brief), MaxBrief)}
	}
	for what, path := range map[string]string{"folder": req.Dir, "outbox": req.Outbox} {
		if !filepath.IsAbs(path) {
			return &UsageError{fmt.Sprintf("the operators' %s %q is no absolute path", what, path)}
		}
	}
	if err := req.Agent.check(); err != nil {
		return &UsageError{err.Error()}
	}
	if req.Patience == 0 {
		req.Patience = briefPatience
	}
	for what, path := range map[string]string{"the agent CLI": req.Agent.Command, "say": req.Agent.Say} {
		if err := executable(path); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if req.Self == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		req.Self = self
	}
	return nil
}

func executable(path string) error {
	st, err := os.Stat(path)
	if err == nil && (st.IsDir() || st.Mode()&0o111 == 0) {
		err = fmt.Errorf("%s is no program", path)
	}
	return err
}

func trimLine(s string) string { return strings.TrimRight(s, "\n") }
