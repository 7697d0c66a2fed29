package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"agentsmith/internal/outbox"
	"agentsmith/internal/terminal"
	"agentsmith/workflows"
)

// relayPart measures a relay: from the socket event to the text in the session's terminal,
// beside a bare signal with start and an activity that pastes; from a session's word to
// its post, beside a bare signal and a post; and what a relayed line and an idle hour are
// billed. In the terminals is the real agent CLI.
func relayPart(ctx context.Context, f runFlags) (err error) {
	dir, err := os.MkdirTemp("", "smith-bench-")
	if err != nil {
		return fmt.Errorf("make a place to run: %w", err)
	}
	defer os.RemoveAll(dir)
	with, err := operatorsOn(dir)
	if err != nil {
		return err
	}
	r, err := newRig(ctx, dir, with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	relayed, err := r.session(ctx)
	if err != nil {
		return err
	}
	bare, err := r.session(ctx)
	if err != nil {
		return err
	}
	d, err := r.relay(ctx, relayed)
	if err != nil {
		return err
	}
	samples := min(f.Samples, 30)
	if err := d.keystrokes(ctx, bare, samples); err != nil {
		return fmt.Errorf("keystrokes: %w", err)
	}
	if err := d.words(ctx, samples); err != nil {
		return fmt.Errorf("words: %w", err)
	}
	return d.cost(ctx)
}

// session has a thread ask for work, and returns its operator's session.
func (r *rig) session(ctx context.Context) (terminal.Live, error) {
	since := r.Slack.Log(0).Next
	root, _, err := r.asks(ctx, "ana", "", "kind=work repo=web")
	if err != nil {
		return terminal.Live{}, err
	}
	if err := r.spoken(ctx, since); err != nil {
		return terminal.Live{}, err
	}
	all, err := r.Tmux.Sessions(ctx)
	i := slices.IndexFunc(all, func(l terminal.Live) bool { return l.Thread.Root == root })
	if err != nil || i < 0 {
		return terminal.Live{}, fmt.Errorf("no session works for %s: %w", root, err)
	}
	return all[i], nil
}

// conversation is ana's DM with an open relay.
type conversation struct {
	*rig
	channel string
	to      terminal.Live
	floors  string
}

func (r *rig) relay(ctx context.Context, to terminal.Live) (*conversation, error) {
	channel, err := r.Slack.Person("ana").DM(seat)
	if err != nil {
		return nil, err
	}
	d := &conversation{rig: r, channel: channel, to: to, floors: r.name("floor")}
	since := r.Slack.Log(0).Next
	if _, err := r.Slack.Person("ana").Say(channel, "work on "+to.Slug); err != nil {
		return nil, err
	}
	_, err = r.posted(ctx, since, to.Slug)
	return d, err
}

// types sends a line to the session and returns when it set out and when it stood there.
func (d *conversation) types(ctx context.Context) (sample, string, error) {
	name := d.name("p")
	since := d.Slack.Log(0).Next
	ts, err := d.Slack.Person("ana").Say(d.channel, name)
	if err != nil {
		return sample{}, "", err
	}
	var s sample
	if s.posted, err = d.shown(ctx, d.to, name); err != nil {
		return s, ts, err
	}
	for _, x := range d.Slack.Log(since).Deliveries {
		if x.TS == ts && x.What == "sent" && x.App == seat {
			s.sent = x.At
			break
		}
	}
	return s, ts, nil
}

// shown waits until a text stands in a session's terminal.
func (d *conversation) shown(ctx context.Context, l terminal.Live, text string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		screen, err := d.Tmux.Run(ctx, nil, "capture-pane", "-p", "-t", "="+l.Name+":")
		if err != nil {
			return time.Time{}, fmt.Errorf("look at %s: %w", l.Name, err)
		}
		if strings.Contains(screen, text) {
			return time.Now(), nil
		}
		time.Sleep(2 * time.Millisecond) // tmux serves one at a time
	}
}

// answered waits until the session has said its word to a line and all is quiet.
func (d *conversation) answered(ctx context.Context, since uint64) error {
	if err := d.spoken(ctx, since); err != nil {
		return err
	}
	_, err := d.quiet(ctx, "")
	return err
}

// keystrokes takes lines through the relay and through the floor, in turn.
func (d *conversation) keystrokes(ctx context.Context, bare terminal.Live, samples int) error {
	var product, floor []sample
	const warm = 3
	for i := range samples + warm {
		since := d.Slack.Log(0).Next
		p, _, err := d.types(ctx)
		if err != nil {
			return err
		}
		if err := d.answered(ctx, since); err != nil {
			return err
		}
		name, since := d.name("f"), d.Slack.Log(0).Next
		b := sample{sent: time.Now()}
		if err := d.toFloor(ctx, floorLine{Text: name, Paste: bare.Name}); err != nil {
			return err
		}
		if b.posted, err = d.shown(ctx, bare, name); err != nil {
			return err
		}
		if err := d.answered(ctx, since); err != nil {
			return err
		}
		if i >= warm {
			product, floor = append(product, p), append(floor, b)
		}
	}
	d.reported("relayed-line-to-terminal", product, floor)
	return nil
}

// words puts words into the session's outbox as say does, and posts by the floor, in turn.
func (d *conversation) words(ctx context.Context, samples int) error {
	box := outbox.Box{Dir: filepath.Join(d.Dir, "data", "outbox")}
	root, err := d.Slack.Person("ana").Say("general", "a thread of the floor")
	if err != nil {
		return err
	}
	var product, floor []sample
	const warm = 3
	for i := range samples + warm {
		name, since := d.name("w"), d.Slack.Log(0).Next
		p := sample{sent: time.Now()}
		if err := box.Put(ctx, outbox.Word{Session: d.to.ID, Kind: outbox.Say, Text: name}); err != nil {
			return err
		}
		if p.posted, err = d.posted(ctx, since, name); err != nil {
			return err
		}
		if _, err := d.quiet(ctx, ""); err != nil {
			return err
		}
		name, since = d.name("f"), d.Slack.Log(0).Next
		b := sample{sent: time.Now()}
		if err := d.toFloor(ctx, floorLine{Channel: "general", Root: root, Text: name, Said: true}); err != nil {
			return err
		}
		if b.posted, err = d.posted(ctx, since, name); err != nil {
			return err
		}
		if i >= warm {
			product, floor = append(product, p), append(floor, b)
		}
	}
	d.reported("word-to-post", product, floor)
	return nil
}

func (d *conversation) reported(name string, product, floor []sample) {
	whole := func(s sample) time.Duration { return s.posted.Sub(s.sent) }
	report(name+"-p50-ms", percentile(each(product, whole), 0.5), percentile(each(floor, whole), 0.5))
}

func (d *conversation) toFloor(ctx context.Context, l floorLine) error {
	_, err := d.client.SignalWithStartWorkflow(ctx, d.floors, "line", l,
		client.StartWorkflowOptions{ID: d.floors, TaskQueue: floorQueue}, floorThread)
	if err != nil {
		return fmt.Errorf("signal the floor: %w", err)
	}
	return nil
}

// cost counts the actions of a relayed line with its word back, beside the floor's two
// turns, and of an hour with an open relay and nothing under way.
func (d *conversation) cost(ctx context.Context) error {
	before, err := billed(ctx, d.Temporal.Metrics)
	if err != nil {
		return err
	}
	relayed, err := d.spent(ctx, func() (string, error) {
		since := d.Slack.Log(0).Next
		if _, _, err := d.types(ctx); err != nil {
			return "", err
		}
		return "", d.answered(ctx, since)
	})
	if err != nil {
		return err
	}
	after, err := billed(ctx, d.Temporal.Metrics)
	if err != nil {
		return err
	}
	reportNamed("relayed-line-and-word-actions-named", before, after)
	under, err := d.root()
	if err != nil {
		return err
	}
	bare, err := d.spent(ctx, func() (string, error) {
		since := d.Slack.Log(0).Next
		name := d.name("f")
		if err := d.toFloor(ctx, floorLine{Channel: "general", Root: under, Text: name, Said: true}); err != nil {
			return "", err
		}
		_, err := d.posted(ctx, since, name)
		return "", err
	})
	if err != nil {
		return err
	}
	report("relayed-line-and-word-actions", relayed.actions, bare.actions)
	perTick, err := d.tickCost(ctx)
	if err != nil {
		return err
	}
	report("idle-relay-hour-actions", perTick*float64(time.Hour/workflows.SlowTick), 0)
	return nil
}

// tickCost is what one slow tick of an open relay is billed: it lets many of them go by, as
// fast as they come.
func (d *conversation) tickCost(ctx context.Context) (float64, error) {
	id := workflows.RelayTickID(seat, d.channel)
	if err := d.client.TerminateWorkflow(ctx, id, "", "bench"); err != nil {
		return 0, fmt.Errorf("end the tick: %w", err)
	}
	const ticks = 20
	in := workflows.TickStart{
		Seat: seat, Team: d.Slack.State().Team.ID, Channel: d.channel, Boxes: []string{"main"},
		Settings: workflows.TickSettings{Fast: workflows.FastTick, Slow: 100 * time.Millisecond},
	}
	run, err := d.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue}, workflows.RelayTickType, in)
	if err != nil {
		return 0, fmt.Errorf("start a fast tick: %w", err)
	}
	looks, spent := 0, 0
	iter := d.client.GetWorkflowHistory(ctx, id, run.GetRunID(), true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for looks < ticks && iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return 0, fmt.Errorf("read the tick's history: %w", err)
		}
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			looks++
			spent++
		case enumspb.EVENT_TYPE_TIMER_STARTED, enumspb.EVENT_TYPE_MARKER_RECORDED, enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
			spent++
		}
	}
	if err := d.client.TerminateWorkflow(ctx, id, "", "bench"); err != nil {
		return 0, fmt.Errorf("end the fast tick: %w", err)
	}
	return float64(spent) / float64(looks), nil
}
