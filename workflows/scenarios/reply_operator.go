package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"agentsmith/internal/githubbox"
	"agentsmith/internal/standin"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// replyOperator are the scenarios of a brain that binds operators.
func replyOperator() []Scenario {
	return of(workflows.ReplyType, []Scenario{
		{Name: "question", Purpose: "A person asks a question: no operator.", Kind: Working, Run: turn("[[classify question]] [[say Four.]]")},
		{Name: "unscoped", Purpose: "Work in no known repository.", Kind: Working, Run: turn("[[classify work lost-work -]] [[say Where?]]")},
		{Name: "classifier-away", Purpose: "The classifier does not answer.", Kind: Working, Run: turn("[[classify error 400]] [[say All the same.]]")},
		{Name: "spawned", Purpose: "Work: an operator is started before the turn.", Kind: Working, Run: spawned},
		{Name: "bound", Purpose: "A later run finds the thread's operator.", Kind: Working, Run: bound},
		{Name: "follow-up-bound", Purpose: "A second line in the run that bound the operator: nothing is asked.", Kind: Working, Run: followUpBound},
		{Name: "deposit", Purpose: "The run that a session's word starts.", Kind: Working, Run: deposit},
		{Name: "stop-operator", Purpose: "The thread's operator is stopped.", Kind: Working, Run: stopOperator},
		{Name: "stopped-while-binding", Purpose: "A stop while the classifier is asked: no agent runs.", Kind: Working, Run: stoppedWhileBinding},
		{Name: "killed-while-binding", Purpose: "The worker is killed while the classifier is asked.", Kind: Working, Run: killedWhileBinding},
		{Name: "swept", Purpose: "The retrofit sweep has the thread bind an operator.", Kind: Working, Run: swept},
		{Name: "phases", Purpose: "GitHub tells of a pull request that no task follows any more.", Kind: Working, Run: phases},
		{Name: "bound-open", Purpose: "Still open while the agent runs in a thread with an operator, with lines waiting.", Kind: Working, Open: true, Run: boundOpen},
		{Name: "bound-continued-as-new", Purpose: "Continues as new with its operator.", Kind: Relaying, Run: carried(false)},
		{Name: "bound-renewed", Purpose: "The run that such a continuation started: its operator is carried.", Kind: Relaying, Run: carried(true)},
	})
}

func spawned(ctx context.Context, w *World) (Execution, error) {
	root, err := w.ask(work("spawned", "[[hang]]"))
	if err != nil {
		return Execution{}, err
	}
	return w.pinned(ctx, w.brain(root))
}

// pinned names the run that a workflow has now: later lines and words start others.
func (w *World) pinned(ctx context.Context, x Execution) (Execution, error) {
	var err error
	x.Run, err = w.latestRun(ctx, x)
	return x, err
}

func bound(ctx context.Context, w *World) (Execution, error) {
	root, _, err := w.hired(ctx, "found-again", "[[hang]]")
	if err != nil {
		return Execution{}, err
	}
	x, err := w.pinned(ctx, w.brain(root))
	if err := errors.Join(err, w.Closed(ctx, x)); err != nil {
		return Execution{}, err
	}
	if _, err := w.reply(root, w.bot+"[[say It goes on.]] [[terminal]] [[say Heard.]]"); err != nil {
		return Execution{}, err
	}
	x.Run, err = w.laterRun(ctx, x, x.Run)
	return x, err
}

func followUpBound(ctx context.Context, w *World) (Execution, error) {
	root, err := w.ask(work("followed", "[[hang]]"))
	if err != nil {
		return Execution{}, err
	}
	x, err := w.pinned(ctx, w.brain(root))
	if err := errors.Join(err, w.answered(ctx, root, 1)); err != nil {
		return Execution{}, err
	}
	_, err = w.reply(root, w.bot+"[[say I pass it on.]]")
	return x, err
}

// deposit has an operator speak when the run that bound it is over.
func deposit(ctx context.Context, w *World) (Execution, error) {
	root, err := w.ask(work("slow-words", "[[sleep 15s]] [[say A late word.]]"))
	if err != nil {
		return Execution{}, err
	}
	x, err := w.pinned(ctx, w.brain(root))
	if err := errors.Join(err, w.Closed(ctx, x), w.said(ctx, root, "A late word.")); err != nil {
		return Execution{}, err
	}
	x.Run, err = w.laterRun(ctx, x, x.Run)
	return x, err
}

func stopOperator(ctx context.Context, w *World) (Execution, error) {
	root, _, err := w.hired(ctx, "unwanted", "[[hang]]")
	if err != nil {
		return Execution{}, err
	}
	if err := w.dismissed(ctx, root); err != nil {
		return Execution{}, err
	}
	return w.pinned(ctx, w.brain(root))
}

// binding starts a thread whose classifier takes its time, and waits until it is asked.
func (w *World) binding(ctx context.Context, slug string) (root string, err error) {
	root, err = w.ask(fmt.Sprintf("[[classify sleep 30s work %s %s]] [[say It is handed on.]]", slug, checkout))
	if err != nil {
		return "", err
	}
	return root, w.until(ctx, "the classifier to be asked", func() (bool, error) {
		return slices.ContainsFunc(w.Model.Forms(), func(e standin.Entry) bool { return strings.Contains(e.User, slug) }), nil
	})
}

func stoppedWhileBinding(ctx context.Context, w *World) (Execution, error) {
	root, err := w.binding(ctx, "thought-better")
	if err != nil {
		return Execution{}, err
	}
	_, err = w.reply(root, "stop")
	return w.brain(root), err
}

func killedWhileBinding(ctx context.Context, w *World) (Execution, error) {
	root, err := w.binding(ctx, "cut-short")
	if err != nil {
		return Execution{}, err
	}
	w.Worker.Kill()
	return w.brain(root), w.StartWorker(ctx)
}

// swept signals a brain as the retrofit sweep does, for a thread whose work named no
// repository.
func swept(ctx context.Context, w *World) (Execution, error) {
	root, err := w.ask("[[classify work retrofit -]] [[say Where?]] [[terminal]] [[hang]]")
	if err != nil {
		return Execution{}, err
	}
	x, err := w.pinned(ctx, w.brain(root))
	if err := errors.Join(err, w.Closed(ctx, x)); err != nil {
		return Execution{}, err
	}
	h, err := w.History(ctx, x)
	if err != nil {
		return Execution{}, err
	}
	in, err := inputOf[workflows.ReplyInput](h)
	if err != nil {
		return Execution{}, err
	}
	in.Trigger.Kind, in.Trigger.EventTS, in.Trigger.MaySpawn = workflows.KindBind, rules.TimeTS(time.Now()), true
	in.Trigger.Asked = &rules.WorkDisposition{Kind: rules.KindWork, Slug: "retrofit", Repo: checkout}
	run, err := w.client.SignalWithStartWorkflow(ctx, x.ID, workflows.SignalAddContext, in.Trigger, w.options(x.ID), workflows.ReplyType, in)
	if err != nil {
		return Execution{}, fmt.Errorf("have the thread %s bind: %w", root, err)
	}
	return Execution{ID: x.ID, Run: run.GetRunID()}, nil
}

// phases has a check pass when the operator whose pull request it is about is stopped.
func phases(ctx context.Context, w *World) (Execution, error) {
	const slug = "left-behind"
	root, op, err := w.hired(ctx, slug, "[[file left.txt behind]] [[commit Leave it behind]] [[say It is committed.]]")
	if err != nil {
		return Execution{}, err
	}
	if err := w.said(ctx, root, "It is committed."); err != nil {
		return Execution{}, err
	}
	_, sha, err := w.proposed(ctx, slug, op)
	if err := errors.Join(err, w.dismissed(ctx, root), w.Closed(ctx, follower(slug))); err != nil {
		return Execution{}, err
	}
	x, err := w.pinned(ctx, w.brain(root))
	if err := errors.Join(err, w.Closed(ctx, x)); err != nil {
		return Execution{}, err
	}
	err = w.GitHub.SetCheck(repo, sha, githubbox.CheckRun{Name: "tests", Status: "completed", Conclusion: "success"})
	if err != nil {
		return Execution{}, err
	}
	x.Run, err = w.laterRun(ctx, x, x.Run)
	return x, err
}

func boundOpen(ctx context.Context, w *World) (Execution, error) {
	root, err := w.started(ctx, "[[classify work left-open "+checkout+"]] [[hang]]")
	if err != nil {
		return Execution{}, err
	}
	for _, text := range []string{"[[say One.]]", "[[say Two.]]"} {
		if _, err := w.reply(root, w.bot+text); err != nil {
			return Execution{}, err
		}
	}
	x := w.brain(root)
	return x, w.waiting(ctx, x, 2)
}

// carried has a brain continue as new when it has bound an operator, and answer a line then.
func carried(next bool) func(context.Context, *World) (Execution, error) {
	return func(ctx context.Context, w *World) (Execution, error) {
		slug := "carried"
		if next {
			slug = "carried-on"
		}
		root, err := w.ask(work(slug, "[[hang]]"))
		if err != nil {
			return Execution{}, err
		}
		x := w.brain(root)
		first, err := w.firstRun(ctx, x)
		if err != nil {
			return Execution{}, err
		}
		later, err := w.laterRun(ctx, x, first)
		if err != nil {
			return Execution{}, err
		}
		if _, err := w.reply(root, w.bot+"[[say I pass it on.]]"); err != nil {
			return Execution{}, err
		}
		if x.Run = first; next {
			x.Run = later
		}
		return x, nil
	}
}

// inputOf is what a run was started with.
func inputOf[In workflows.ReplyInput | workflows.TaskInput](h *historypb.History) (in In, err error) {
	a := h.Events[0].GetWorkflowExecutionStartedEventAttributes()
	if err := converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &in); err != nil {
		return in, fmt.Errorf("read the input of a run: %w", err)
	}
	return in, nil
}
