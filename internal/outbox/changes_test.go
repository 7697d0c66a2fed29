package outbox_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/outbox"
)

// heard waits until a hint comes after which done holds. It looks only when a hint came.
func heard(t *testing.T, hints <-chan struct{}, done func() bool) {
	t.Helper()
	late := time.After(30 * time.Second)
	for !done() {
		select {
		case <-hints:
		case <-late:
			require.FailNow(t, "no hint came")
		}
	}
}

// R11: a word is told of at once: of a new session, of one that was there, and of one whose
// words are read meanwhile.
func TestChanges_TellsOfEveryWord(t *testing.T) {
	box := outbox.Box{Dir: filepath.Join(t.TempDir(), "outbox")}
	old := uuid.NewString()
	require.NoError(t, box.Put(t.Context(), outbox.Word{Session: old, Kind: outbox.Say, Text: "before"}))
	ctx, cancel := context.WithCancel(t.Context())
	hints, err := box.Changes(ctx)
	require.NoError(t, err)
	for _, session := range []string{old, uuid.NewString(), uuid.NewString()} {
		for range 3 {
			require.NoError(t, box.Put(ctx, outbox.Word{Session: session, Kind: outbox.Say, Text: "word"}))
			heard(t, hints, func() bool {
				all, err := box.Words(session)
				require.NoError(t, err)
				for _, w := range all {
					require.NoError(t, box.Remove(session, w.ID))
				}
				return len(all) > 0
			})
		}
	}
	cancel()
	for range hints {
	}
}
