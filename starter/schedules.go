package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"agentsmith/internal/config"
	"agentsmith/rules"
	"agentsmith/workflows"
)

const (
	// memoSchedule marks a Temporal Schedule as ours: its value is the seat's name. One
	// without it is never touched.
	memoSchedule = "smith_schedule"
	// memoConfig is a hash of what a schedule was made from.
	memoConfig = "smith_config"
	// catchUp is how late a scheduled turn may still begin after an outage.
	catchUp = time.Hour
)

// scheduleID is the id of a configured schedule's Temporal Schedule (D1).
func scheduleID(name string) string { return "smith-" + name }

// schedules makes Temporal's Schedules match the config (D1): it creates and updates
// those that are configured, and deletes those of its own seats that no longer are.
type schedules struct {
	client   client.ScheduleClient
	team     string
	settings map[string]workflows.Settings // by seat, the seats of this starter
	log      *slog.Logger
}

// sync carries the config over. It goes on after an error, and returns all of them.
func (s *schedules) sync(ctx context.Context, wanted []config.Schedule) error {
	var errs []error
	keep := map[string]bool{}
	for _, w := range wanted {
		if _, ours := s.settings[w.Seat]; !ours {
			continue
		}
		keep[scheduleID(w.Name)] = true
		if err := s.put(ctx, w); err != nil {
			errs = append(errs, fmt.Errorf("schedule %s: %w", w.Name, err))
		}
	}
	return errors.Join(append(errs, s.prune(ctx, keep))...)
}

// put creates a schedule, or brings the one that is there up to date. What a person
// changed about it, such as a pause, stays.
func (s *schedules) put(ctx context.Context, w config.Schedule) error {
	id := scheduleID(w.Name)
	action, err := s.action(w)
	if err != nil {
		return err
	}
	spec := client.ScheduleSpec{CronExpressions: []string{w.Cron}, TimeZoneName: w.Timezone}
	_, err = s.client.Create(ctx, client.ScheduleOptions{
		ID: id, Spec: spec, Action: action,
		Overlap:       enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE,
		CatchupWindow: catchUp,
		Memo:          map[string]any{memoSchedule: w.Seat},
	})
	if err == nil {
		s.log.Info("schedule created", "schedule", id, "seat", w.Seat, "cron", w.Cron)
		return nil
	}
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) && !isAlreadyExists(err) {
		return fmt.Errorf("create: %w", err)
	}
	handle := s.client.GetHandle(ctx, id)
	there, err := handle.Describe(ctx)
	if err != nil {
		return fmt.Errorf("describe: %w", err)
	}
	if owner := memoText(there.Memo.GetFields(), memoSchedule); owner != w.Seat {
		return fmt.Errorf("a schedule named %s exists and is not this seat's (it is marked %q); it is left alone: rename one of them", id, owner)
	}
	if old, ok := there.Schedule.Action.(*client.ScheduleWorkflowAction); ok && sameConfig(old.Memo, action.Memo) {
		return nil
	}
	err = handle.Update(ctx, client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		next := in.Description.Schedule
		next.Spec, next.Action = &spec, action
		return &client.ScheduleUpdate{Schedule: &next}, nil
	}})
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	s.log.Info("schedule updated", "schedule", id, "seat", w.Seat, "cron", w.Cron)
	return nil
}

// action starts a brain that has no thread yet: its turn begins one.
func (s *schedules) action(w config.Schedule) (*client.ScheduleWorkflowAction, error) {
	thread := rules.Thread{Team: s.team, Channel: w.Channel}
	in := workflows.ReplyInput{
		Seat: w.Seat, Thread: thread, Settings: s.settings[w.Seat],
		Trigger: workflows.Trigger{
			Kind: workflows.KindLine, Author: rules.Schedule, IsCron: true, Prompt: w.Prompt,
			Line: rules.Line{LineKey: rules.LineKey{Team: s.team, Channel: w.Channel}},
		},
	}
	raw, err := json.Marshal(struct {
		In   workflows.ReplyInput
		Cron string
		Zone string
	}{in, w.Cron, w.Timezone})
	if err != nil {
		return nil, fmt.Errorf("describe the schedule: %w", err)
	}
	sum := sha256.Sum256(raw)
	return &client.ScheduleWorkflowAction{
		ID: w.Seat + "-cron-" + w.Name, Workflow: workflows.ReplyType, Args: []any{in}, TaskQueue: workflows.TaskQueue,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			workflows.SearchSeat.ValueSet(w.Seat), workflows.SearchChannel.ValueSet(w.Channel)),
		Memo: map[string]any{
			"seat": w.Seat, "channel": w.Channel, "thread": "", "link": "",
			memoConfig: hex.EncodeToString(sum[:]),
		},
		StaticSummary: w.Seat + " in " + w.Channel + ", schedule " + w.Name,
	}, nil
}

// prune deletes the schedules of this starter's seats that the config no longer has.
func (s *schedules) prune(ctx context.Context, keep map[string]bool) error {
	list, err := s.client.List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return fmt.Errorf("list schedules: %w", err)
	}
	var errs []error
	for list.HasNext() {
		entry, err := list.Next()
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("list schedules: %w", err))...)
		}
		owner := memoText(entry.Memo.GetFields(), memoSchedule)
		if _, ours := s.settings[owner]; !ours || keep[entry.ID] {
			continue
		}
		if err := s.client.GetHandle(ctx, entry.ID).Delete(ctx); err != nil && !isNotFound(err) {
			errs = append(errs, fmt.Errorf("delete schedule %s: %w", entry.ID, err))
			continue
		}
		s.log.Info("schedule deleted", "schedule", entry.ID, "seat", owner)
	}
	return errors.Join(errs...)
}

// sameConfig compares the hashes of what a schedule is and what it should be.
func sameConfig(there, wanted map[string]any) bool {
	p, ok := there[memoConfig].(*commonpb.Payload)
	if !ok {
		return false
	}
	return memoText(map[string]*commonpb.Payload{memoConfig: p}, memoConfig) == wanted[memoConfig]
}

func memoText(fields map[string]*commonpb.Payload, name string) string {
	var s string
	if p := fields[name]; p == nil || converter.GetDefaultDataConverter().FromPayload(p, &s) != nil {
		return ""
	}
	return s
}

func isAlreadyExists(err error) bool {
	var e *serviceerror.AlreadyExists
	return errors.As(err, &e)
}

func isNotFound(err error) bool {
	var e *serviceerror.NotFound
	return errors.As(err, &e)
}
