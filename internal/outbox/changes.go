package outbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// Changes tells of words that were put, within milliseconds: after a receive from the
// channel one may wait. It is a hint, and holds one at most: whoever relies on words looks
// now and then all the same. It ends with ctx, which closes the channel.
func (b Box) Changes(ctx context.Context) (<-chan struct{}, error) {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the outbox: %w", err)
	}
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch the outbox: %w", err)
	}
	if err := watch.Add(b.Dir); err != nil {
		_ = watch.Close()
		return nil, fmt.Errorf("watch the outbox: %w", err)
	}
	c := &changes{box: b, watch: watch, hint: make(chan struct{}, 1)}
	if entries, err := os.ReadDir(b.Dir); err == nil {
		for _, e := range entries {
			c.follow(filepath.Join(b.Dir, e.Name()))
		}
	}
	go c.run(ctx)
	return c.hint, nil
}

// changes watches the outbox, its sessions and their words.
type changes struct {
	box   Box
	watch *fsnotify.Watcher
	hint  chan struct{}
}

func (c *changes) run(ctx context.Context) {
	defer close(c.hint)
	defer func() { _ = c.watch.Close() }()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-c.watch.Events:
			if !ok {
				return
			}
			if e.Has(fsnotify.Create) {
				c.created(e.Name)
			}
		case err, ok := <-c.watch.Errors:
			if !ok {
				return
			}
			// Events were lost, perhaps those of a word.
			c.box.log().Warn("outbox: what is new may be seen late", "error", err)
			c.ring()
		}
	}
}

// created looks at what is new: a session, its folder of words, or a word.
func (c *changes) created(name string) {
	parent := filepath.Dir(name)
	switch {
	case parent == filepath.Clean(c.box.Dir):
		c.follow(name)
	case filepath.Dir(parent) == filepath.Clean(c.box.Dir) && filepath.Base(name) == words:
		c.follow(parent)
	case filepath.Base(parent) == words:
		c.ring()
	}
}

// follow watches a session's folder, and that of its words where there is one. A word may
// have come before the watch.
func (c *changes) follow(session string) {
	if checkSession(filepath.Base(session)) != nil {
		return
	}
	for _, dir := range []string{session, filepath.Join(session, words)} {
		// A link leads elsewhere: what it names is nothing of ours.
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return
		}
		if err := c.watch.Add(dir); err != nil {
			c.box.log().Warn("outbox: a session's words may be seen late", "session", filepath.Base(session), "error", err)
			return
		}
	}
	c.ring()
}

func (c *changes) ring() {
	select {
	case c.hint <- struct{}{}:
	default:
	}
}
