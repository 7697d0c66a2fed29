package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"agentsmith/rules"
)

// view is one look at the pane that the agent CLI runs in.
type view struct {
	pane string // tmux's own id of it
	// held is why nothing can be typed now, "" when the input box is there.
	held string
	inputBox
	outside string // glyphs of the screen around the box
}

var (
	paneID    = regexp.MustCompile(`^%[0-9]+$`)
	bufferRow = regexp.MustCompile(`^smith-[0-9a-f]{24}$`)
)

// look finds the pane of the session in which the agent CLI is in the foreground, makes
// it leave copy mode, and reads its input box. The error is ErrGone, or what tmux said.
func (y *typer) look(ctx context.Context) (view, error) {
	who, err := y.tmux.Run(ctx, nil, "show-environment", "-t", "="+y.target.Session, EnvSession)
	if noServer(err) || noSession(err) || err == nil && strings.TrimSpace(who) != EnvSession+"="+y.target.ID {
		return view{}, fmt.Errorf("type into %s: %w", y.target.Session, ErrGone)
	}
	if err != nil {
		return view{}, fmt.Errorf("type into %s: %w", y.target.Session, err)
	}
	pane, held, err := y.pane(ctx)
	if err != nil || held != "" {
		return view{held: held}, err
	}
	state, err := y.tmux.Run(ctx, nil, "display-message", "-p", "-t", pane, "#{pane_in_mode} #{cursor_y}")
	if err != nil {
		return view{}, y.lost(err)
	}
	mode, cursor, ok := twoNumbers(state)
	if !ok {
		return view{}, fmt.Errorf("type into %s: tmux told of a pane in no known form", y.target.Session)
	}
	if mode > 0 {
		// A person who scrolls there is put back to the end: keys would scroll on.
		if _, err := y.tmux.Run(ctx, nil, "copy-mode", "-q", "-t", pane); err != nil {
			return view{}, y.lost(err)
		}
	}
	screen, err := y.tmux.Run(ctx, nil, "capture-pane", "-p", "-e", "-t", pane)
	if err != nil {
		return view{}, y.lost(err)
	}
	box, ok := findBox(screen, cursor)
	if !ok {
		return view{pane: pane, held: reasonDialog}, nil
	}
	return view{pane: pane, inputBox: box, outside: outside(screen, box)}, nil
}

// pane returns the one pane of the session that the CLI is in the foreground of, or why
// there is none.
func (y *typer) pane(ctx context.Context) (pane, held string, err error) {
	out, err := y.tmux.Run(ctx, nil, "list-panes", "-s", "-t", "="+y.target.Session, "-F", "#{pane_id} #{pane_pid}")
	if err != nil {
		return "", "", y.lost(err)
	}
	var found, others []string
	for row := range strings.Lines(out) {
		id, pid, _ := strings.Cut(strings.TrimSpace(row), " ")
		n, err := strconv.Atoi(pid)
		if err != nil || !paneID.MatchString(id) {
			continue // a dead pane
		}
		if name, ok := foreground(n, y.target.Command); ok {
			found = append(found, id)
		} else if name != "" {
			others = append(others, rules.Visible(name))
		}
	}
	switch {
	case len(found) == 1:
		return found[0], "", nil
	case len(found) > 1:
		return "", "the agent CLI runs in several panes of the session", nil
	}
	return "", fmt.Sprintf("the agent CLI is not in the foreground there (but %s)", strings.Join(others, ", ")), nil
}

// lost makes ErrGone of what tmux says of a session or pane that ended meanwhile.
func (y *typer) lost(err error) error {
	if noServer(err) || said(err, "can't find ") || noSession(err) {
		err = errors.Join(ErrGone, err)
	}
	return fmt.Errorf("type into %s: %w", y.target.Session, err)
}

// busy tells whether a turn runs there.
func (v view) busy() bool { return strings.Contains(v.outside, "esctointerrupt") }

// foreground returns the name of what has the terminal of a process, and whether that is
// the command: by its own name, or as the script that an interpreter runs.
func foreground(pid int, command string) (string, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return "", false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 6 {
		return "", false
	}
	group, err := strconv.Atoi(fields[5])
	if err != nil || group <= 0 {
		return "", false
	}
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", group))
	if err != nil || len(cmdline) == 0 {
		return "", false
	}
	args := strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00")
	name, want := filepath.Base(args[0]), filepath.Base(command)
	if name == "node" && len(args) > 1 {
		name = filepath.Base(args[1])
	}
	return name, name == want
}

// The conditions under which tmux itself pastes or presses Enter: no mode, and the input
// box where it was seen. tmux looks in the same moment, so that a dialog which opens
// after our look is hardly ever hit.
func still(v view) string {
	return fmt.Sprintf("#{&&:#{==:#{pane_in_mode},0},#{==:#{C/r:^%s},%d}}", promptMark, v.row+1)
}

// doneWord is what tmux prints when the condition held.
const doneWord = "done"

// when runs a tmux command, with PANE for the pane, if the condition holds.
func (t Tmux) when(ctx context.Context, v view, do string) (bool, error) {
	if !paneID.MatchString(v.pane) {
		return false, fmt.Errorf("type into a session: %q is no pane", v.pane)
	}
	do = strings.ReplaceAll(do, "PANE", v.pane) + " ; display-message -p " + doneWord
	out, err := t.Run(ctx, nil, "if-shell", "-F", "-t", v.pane, still(v), do, "display-message -p held")
	if err != nil {
		return false, fmt.Errorf("type into a session: %w", err)
	}
	return strings.TrimSpace(out) == doneWord, nil
}

// paste pastes a buffer and deletes it. The paste is bracketed, so that the CLI knows it
// for text whatever stands in it, and its rows end as they are (-r): where brackets are
// not understood, the other end of a row would be an Enter.
func (t Tmux) paste(ctx context.Context, v view, buffer string) (bool, error) {
	if !bufferRow.MatchString(buffer) {
		return false, fmt.Errorf("type into a session: %q is no buffer", buffer)
	}
	return t.when(ctx, v, "paste-buffer -p -r -d -t PANE -b "+buffer)
}

func (t Tmux) enter(ctx context.Context, v view) (bool, error) {
	return t.when(ctx, v, "send-keys -t PANE Enter")
}

// clear empties the input box: each of the keys deletes a row before the cursor, or the
// row's end before it.
func (t Tmux) clear(ctx context.Context, v view) (bool, error) {
	return t.when(ctx, v, fmt.Sprintf("send-keys -t PANE -N %d C-u", 2*(v.end-v.row)+1))
}

// load puts a text into a buffer. The space at its end closes the CLI's list of files or
// commands, where Enter would take what is suggested.
func (t Tmux) load(ctx context.Context, buffer, text string) error {
	if _, err := t.Run(ctx, []byte(text+" "), "load-buffer", "-b", buffer, "-"); err != nil {
		return fmt.Errorf("type into a session: %w", err)
	}
	return nil
}

// loaded tells whether a buffer is there, that is, not pasted.
func (t Tmux) loaded(ctx context.Context, buffer string) (bool, error) {
	out, err := t.Run(ctx, nil, "list-buffers", "-F", "#{buffer_name}")
	if err != nil {
		return false, fmt.Errorf("type into a session: %w", err)
	}
	for row := range strings.Lines(out) {
		if strings.TrimSpace(row) == buffer {
			return true, nil
		}
	}
	return false, nil
}

func (t Tmux) unload(ctx context.Context, buffer string) {
	_, _ = t.Run(ctx, nil, "delete-buffer", "-b", buffer) // one that stays is overwritten
}

func twoNumbers(s string) (a, b int, ok bool) {
	first, second, found := strings.Cut(strings.TrimSpace(s), " ")
	a, err1 := strconv.Atoi(first)
	b, err2 := strconv.Atoi(second)
	return a, b, found && err1 == nil && err2 == nil
}
