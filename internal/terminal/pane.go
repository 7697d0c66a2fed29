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

// maxModes is how often one look has a pane leave a mode that a person put it into.
const maxModes = 3

// look finds the pane of the session in which the agent CLI is in the foreground, makes
// it leave copy mode, and reads its input box. The error is ErrGone, or what tmux said.
func (y *typer) look(ctx context.Context) (view, error) {
	for range maxModes {
		p, screen, held, err := y.peek(ctx)
		if err != nil || held != "" {
			return view{held: held}, err
		}
		if p.modes > 0 {
			// A person who scrolls there is put back to the end: keys would scroll on.
			if _, err := y.tmux.Run(ctx, nil, "copy-mode", "-q", "-t", p.id); err != nil {
				return view{}, y.lost(err)
			}
			continue
		}
		box, ok := findBox(screen, p.cursor)
		if !ok {
			return view{pane: p.id, held: reasonDialog}, nil
		}
		if twice(screen, box) {
			return view{pane: p.id, held: reasonTwice}, nil
		}
		return view{pane: p.id, inputBox: box, outside: outside(screen, box)}, nil
	}
	return view{held: reasonMode}, nil
}

// peek reads the pane of the agent CLI and its screen, or why there is none, and changes nothing.
func (y *typer) peek(ctx context.Context) (p pane, screen, held string, err error) {
	session := "=" + y.target.Session
	all, err := y.tmux.RunAll(ctx, []string{"show-environment", "-t", session, EnvSession},
		[]string{"list-panes", "-s", "-t", session, "-F", paneFormat}, []string{"capture-pane", "-p", "-e", "-t", session + ":"})
	if err != nil {
		return p, "", "", y.lost(err)
	}
	if strings.TrimSpace(all[0]) != EnvSession+"="+y.target.ID {
		return p, "", "", fmt.Errorf("type into %s: %w", y.target.Session, ErrGone)
	}
	if p, held = y.pane(all[1]); held != "" || p.shown {
		return p, all[2], held, nil
	}
	if screen, err = y.tmux.Run(ctx, nil, "capture-pane", "-p", "-e", "-t", p.id); err != nil {
		return p, "", "", y.lost(err)
	}
	return p, screen, "", nil
}

// pane is a pane as paneFormat tells of it.
type pane struct {
	id                 string
	pid, modes, cursor int
	// shown: it is the one that a capture of the session takes.
	shown bool
}

const paneFormat = "#{pane_id} #{pane_pid} #{pane_in_mode} #{cursor_y} #{window_active}#{pane_active}"

func parsePane(row string) (p pane, ok bool) {
	f := strings.Fields(row)
	if len(f) != 5 || !paneID.MatchString(f[0]) {
		return p, false // a dead pane
	}
	var errs [3]error
	p.id, p.shown = f[0], f[4] == "11"
	p.pid, errs[0] = strconv.Atoi(f[1])
	p.modes, errs[1] = strconv.Atoi(f[2])
	p.cursor, errs[2] = strconv.Atoi(f[3])
	return p, errors.Join(errs[:]...) == nil
}

// pane returns the one pane of the session that the CLI is in the foreground of, or why
// there is none.
func (y *typer) pane(rows string) (found pane, held string) {
	var others []string
	n := 0
	for row := range strings.Lines(rows) {
		p, ok := parsePane(row)
		if !ok {
			continue
		}
		if name, ok := foreground(p.pid, y.target.Command); ok {
			found = p
			n++
		} else if name != "" {
			others = append(others, rules.Visible(name))
		}
	}
	switch {
	case n == 1:
		return found, ""
	case n > 1:
		return found, "the agent CLI runs in several panes of the session"
	}
	return found, fmt.Sprintf("the agent CLI is not in the foreground there (but %s)", strings.Join(others, ", "))
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

// clear empties the input box: row for row what stands from the cursor's row on, then row
// for row what stands before. A text that the CLI puts back into the box by itself may have
// the cursor anywhere. A Home or End stands before and behind each other key: a CLI that is
// busy reads all keys at once, and takes control characters in a run for text.
func (t Tmux) clear(ctx context.Context, v view) (bool, error) {
	n := 2*(v.end-v.row) + 1
	return t.when(ctx, v, fmt.Sprintf("send-keys -t PANE -N %d Home C-k ; send-keys -t PANE -N %d End C-u ; send-keys -t PANE End", n, n))
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
