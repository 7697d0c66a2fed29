// Command inside replays specimens on the workflows that it is built with, and prints a
// line of JSON each. `task replay:rollback` builds it in the tree of an older revision.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"agentsmith/histories"
	"agentsmith/internal/proof"
	"agentsmith/workflows"
)

// result is read by cmd/replay.
type result struct {
	Specimen string
	Verdict  proof.Verdict
	// Unknown is the workflow type that this code does not register.
	Unknown string
	Event   int64
	Command string
	Reason  string
	// Has is what the history has at that event.
	Has string
	// Differences are seen by the strict comparison only: they strand nothing.
	Differences []string
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string) error {
	all, err := histories.Load(dir)
	if err != nil {
		return err
	}
	code, err := proof.New(proof.Code{Register: workflows.Register, DisableRegistrationAliasing: true, Repeat: 3})
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, s := range all {
		differences, o := code.Differences(proof.Specimen{Name: s.File, History: s.History, Commit: s.Commit})
		r := result{Specimen: s.File, Verdict: o.Verdict, Event: o.Event, Command: o.Command, Reason: o.Reason}
		r.Has = at(s, o.Event)
		if o.Err != nil && strings.Contains(o.Err.Error(), "unable to find workflow type") {
			r.Unknown = s.Workflow
		}
		if o.Verdict == proof.Green {
			for _, d := range differences {
				r.Differences = append(r.Differences, strings.TrimPrefix(d.String(), d.Specimen+" "))
			}
		}
		if err := out.Encode(r); err != nil {
			return fmt.Errorf("print the result of %s: %w", s.File, err)
		}
	}
	return nil
}

// at names an event of a history: its kind, and the activity or timer that it is about.
func at(s histories.Specimen, id int64) string {
	for _, e := range s.History.Events {
		if e.GetEventId() != id {
			continue
		}
		said := e.GetEventType().String()
		if name := e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName(); name != "" {
			said += " " + name
		}
		return said
	}
	return ""
}
