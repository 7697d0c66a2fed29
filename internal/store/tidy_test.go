package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTidy_LeavesNoFormOfThePasswordAndKeepsWhatTheErrorIs(t *testing.T) {
	const secret = "hunter2/ä ?#"
	for _, form := range []string{secret, "hunter2%2F%C3%A4+%3F%23", "hunter2%2F%C3%A4%20%3F%23"} {
		err := tidy(fmt.Errorf("open postgres://smith:%s@db/smith: %w", form, context.DeadlineExceeded), secret)
		require.EqualError(t, err, "open postgres://smith:[hidden]@db/smith: context deadline exceeded")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	plain := fmt.Errorf("read: %w", ErrNotFound)
	require.Same(t, plain, tidy(plain, secret))
	require.EqualError(t, tidy(fmt.Errorf("connect:\n\ta\n\tb"), ""), "connect: a; b")
}
