package outbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// X2: what is no session's folder is not followed, wherever it leads.
func TestChanges_FollowsNothingElse(t *testing.T) {
	dir := t.TempDir()
	box := Box{Dir: filepath.Join(dir, "outbox")}
	elsewhere, session := filepath.Join(dir, "elsewhere"), filepath.Join(box.Dir, uuid.NewString())
	for _, d := range []string{elsewhere, session, filepath.Join(box.Dir, "not-a-session")} {
		require.NoError(t, os.MkdirAll(filepath.Join(d, words), 0o700))
	}
	link, inner := filepath.Join(box.Dir, uuid.NewString()), filepath.Join(box.Dir, uuid.NewString())
	require.NoError(t, os.Symlink(elsewhere, link))
	require.NoError(t, os.Mkdir(inner, 0o700))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(inner, words)))

	watch, err := fsnotify.NewWatcher()
	require.NoError(t, err)
	defer func() { require.NoError(t, watch.Close()) }()
	c := &changes{box: box, watch: watch, hint: make(chan struct{}, 1)}
	for _, name := range []string{session, link, inner, filepath.Join(box.Dir, "not-a-session"), filepath.Join(box.Dir, "gone")} {
		c.created(name)
	}
	require.ElementsMatch(t, []string{session, filepath.Join(session, words), inner}, watch.WatchList())
}
