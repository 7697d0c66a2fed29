package scenarios

import (
	"context"
	"errors"
	"fmt"

	"agentsmith/internal/githubbox"
	"agentsmith/workflows"
)

// operatorTask are the scenarios of the workflow that follows an operator.
func operatorTask() []Scenario {
	return of(workflows.OperatorTaskType, []Scenario{
		{Name: "merged", Purpose: "Followed from the first look to the merge of its pull request.", Kind: Working, Run: merged},
		{Name: "closed", Purpose: "Its pull request is closed without a merge.", Kind: Working, Run: closed},
		{Name: "words", Purpose: "Lines are typed and words are said, one after the other; then it is stopped.", Kind: Working, Run: wordsAndLines},
		{Name: "stopped", Purpose: "Ended by a stop operator while its agent works.", Kind: Working, Run: stoppedAtWork},
		{Name: "died", Purpose: "The run of a session that was started again: it dies too, and a person stops it.", Kind: Working, Run: died},
		{Name: "next", Purpose: "Another session is adopted while the task ends: it continues as new with that one.", Kind: Working, Run: adoptedAtTheEnd(false)},
		{Name: "gone", Purpose: "The thread is not the session's: it ends without a word.", Kind: Working, Run: adoptedAtTheEnd(true)},
		{Name: "cancelled", Purpose: "The workflow is cancelled from outside.", Kind: Working, Run: taskCancelled},
		{Name: "worker-killed", Purpose: "The worker is killed while the task waits; a word comes in between.", Kind: Working, Run: taskWorkerKilled},
		{Name: "open", Purpose: "Still open while the operator works.", Kind: Working, Open: true, Run: openTask},
		{Name: "blocked", Purpose: "The agent asks a person for a tool; then it is stopped.", Kind: Cautious, Run: blocked},
		{Name: "adopted", Purpose: "The session dies; the one that is started in its place is adopted by the same run.", Kind: Patient, Run: adopted},
		{Name: "continued-as-new", Purpose: "Continues as new between two looks.", Kind: Relaying, Run: relayed(false)},
		{Name: "renewed", Purpose: "The run that such a continuation started.", Kind: Relaying, Run: relayed(true)},
	})
}

func merged(ctx context.Context, w *World) (Execution, error) {
	const slug = "login-page"
	root, op, err := w.hired(ctx, slug, "[[file login.txt fixed]] [[commit Fix the login page]] [[say The login page is fixed.]]")
	if err != nil {
		return Execution{}, err
	}
	if err := w.said(ctx, root, "The login page is fixed."); err != nil {
		return Execution{}, err
	}
	pull, sha, err := w.proposed(ctx, slug, op)
	if err != nil {
		return Execution{}, err
	}
	for _, step := range []struct {
		what string
		do   func() error
		seen func(workflows.TaskView) bool
	}{
		{"a check that runs", func() error {
			return w.GitHub.SetCheck(repo, sha, githubbox.CheckRun{Name: "tests", Status: "in_progress"})
		},
			func(v workflows.TaskView) bool { return v.Facts.Checks == "pending" }},
		{"a check that passed", func() error {
			return w.GitHub.SetCheck(repo, sha, githubbox.CheckRun{Name: "tests", Status: "completed", Conclusion: "success"})
		}, func(v workflows.TaskView) bool { return v.Facts.Checks == "passed" }},
		{"a review", func() error { return w.GitHub.Review(repo, pull, githubbox.Review{State: "APPROVED"}) },
			func(v workflows.TaskView) bool { return v.Facts.Review == "approved" }},
	} {
		if err := errors.Join(step.do(), w.knows(ctx, slug, step.what, step.seen)); err != nil {
			return Execution{}, err
		}
	}
	return follower(slug), w.GitHub.Merge(repo, pull)
}

func closed(ctx context.Context, w *World) (Execution, error) {
	const slug = "dead-end"
	root, op, err := w.hired(ctx, slug, "[[file try.txt tried]] [[commit Try it]] [[say It is tried.]]")
	if err != nil {
		return Execution{}, err
	}
	if err := w.said(ctx, root, "It is tried."); err != nil {
		return Execution{}, err
	}
	pull, _, err := w.proposed(ctx, slug, op)
	if err != nil {
		return Execution{}, err
	}
	return follower(slug), w.GitHub.ClosePull(repo, pull)
}

func wordsAndLines(ctx context.Context, w *World) (Execution, error) {
	const slug = "talking"
	root, _, err := w.hired(ctx, slug, "[[say The first word.]]")
	if err != nil {
		return Execution{}, err
	}
	if err := w.said(ctx, root, "The first word."); err != nil {
		return Execution{}, err
	}
	for _, word := range []string{"The second word.", "The third word."} {
		_, err := w.reply(root, "[[abstain]] [[terminal]] [[say "+word+"]]")
		if err := errors.Join(err, w.said(ctx, root, word)); err != nil {
			return Execution{}, err
		}
	}
	return follower(slug), w.dismissed(ctx, root)
}

func stoppedAtWork(ctx context.Context, w *World) (Execution, error) {
	const slug = "too-long"
	root, _, err := w.hired(ctx, slug, "[[hang]]")
	if err != nil {
		return Execution{}, err
	}
	err = w.knows(ctx, slug, "its session", func(v workflows.TaskView) bool { return v.Facts.Alive })
	return follower(slug), errors.Join(err, w.dismissed(ctx, root))
}

// died kills the session twice. The second time nobody starts it again: a person stops it.
func died(ctx context.Context, w *World) (Execution, error) {
	const slug = "mortal"
	root, _, err := w.hired(ctx, slug, "[[say At work.]]")
	if err != nil {
		return Execution{}, err
	}
	for _, word := range []string{"At work.", "Back at work."} {
		if err := w.said(ctx, root, word); err != nil {
			return Execution{}, err
		}
		op, err := w.operator(ctx, root)
		if err != nil {
			return Execution{}, err
		}
		err = errors.Join(w.Tmux.Kill(ctx, op.ID), w.knows(ctx, slug, "the death", func(v workflows.TaskView) bool { return v.Facts.Dead }))
		if err != nil {
			return Execution{}, err
		}
		if word == "At work." {
			if _, err := w.reply(root, w.bot+work(slug, "[[say Back at work.]]")); err != nil {
				return Execution{}, err
			}
		}
	}
	_, err = w.reply(root, "stop operator")
	return follower(slug), err
}

// adopted kills a session and has a line start it again. The task does not look while that
// one starts, when the thread is nobody's.
func adopted(ctx context.Context, w *World) (Execution, error) {
	const slug = "phoenix"
	root, op, err := w.hired(ctx, slug, "[[say At work.]]")
	if err != nil {
		return Execution{}, err
	}
	x, err := w.pinned(ctx, follower(slug))
	if err := errors.Join(err, w.said(ctx, root, "At work."), w.Tmux.Kill(ctx, op.ID)); err != nil {
		return Execution{}, err
	}
	wake := workflows.TaskTrigger{Kind: workflows.TaskWake}
	if err := w.client.SignalWorkflow(ctx, x.ID, x.Run, workflows.SignalOperatorTask, wake); err != nil {
		return Execution{}, fmt.Errorf("wake the task of %s: %w", slug, err)
	}
	if err := w.knows(ctx, slug, "the death", func(v workflows.TaskView) bool { return v.Facts.Dead }); err != nil {
		return Execution{}, err
	}
	_, err = w.reply(root, w.bot+work(slug, "[[say Back at work.]]"))
	if err := errors.Join(err, w.said(ctx, root, "Back at work.")); err != nil {
		return Execution{}, err
	}
	return x, w.dismissed(ctx, root)
}

// adoptedAtTheEnd tells a task at once that it ends and whom to follow next. The next one
// has no claim, so that its own run ends as gone.
func adoptedAtTheEnd(gone bool) func(context.Context, *World) (Execution, error) {
	return func(ctx context.Context, w *World) (Execution, error) {
		slug := "handover"
		if gone {
			slug = "nobodys"
		}
		root, op, err := w.hired(ctx, slug, "[[say At work.]]")
		if err != nil {
			return Execution{}, err
		}
		if err := w.said(ctx, root, "At work."); err != nil {
			return Execution{}, err
		}
		x := follower(slug)
		if x.Run, err = w.latestRun(ctx, x); err != nil {
			return Execution{}, err
		}
		h, err := w.History(ctx, x)
		if err != nil {
			return Execution{}, err
		}
		in, err := inputOf[workflows.TaskInput](h)
		if err != nil {
			return Execution{}, err
		}
		next := in.Operator
		next.Session = "00000000-0000-4000-8000-000000000000"
		for _, t := range []workflows.TaskTrigger{
			{Kind: workflows.TaskStop, Operator: in.Operator}, {Kind: workflows.TaskAdopt, Operator: next},
		} {
			if err := w.client.SignalWorkflow(ctx, x.ID, x.Run, workflows.SignalOperatorTask, t); err != nil {
				return Execution{}, fmt.Errorf("signal the task of %s: %w", op.Name, err)
			}
		}
		if gone {
			x.Run, err = w.laterRun(ctx, x, x.Run)
		}
		return x, err
	}
}

func taskCancelled(ctx context.Context, w *World) (Execution, error) {
	const slug = "called-off"
	root, _, err := w.hired(ctx, slug, "[[say At work.]]")
	if err != nil {
		return Execution{}, err
	}
	x := follower(slug)
	return x, errors.Join(w.said(ctx, root, "At work."), w.client.CancelWorkflow(ctx, x.ID, ""))
}

func taskWorkerKilled(ctx context.Context, w *World) (Execution, error) {
	const slug = "survivor"
	root, _, err := w.hired(ctx, slug, "[[say At work.]]")
	if err != nil {
		return Execution{}, err
	}
	if err := w.said(ctx, root, "At work."); err != nil {
		return Execution{}, err
	}
	w.Worker.Kill()
	_, err = w.reply(root, "[[abstain]] [[terminal]] [[say Still at work.]]")
	if err := errors.Join(err, w.StartWorker(ctx), w.said(ctx, root, "Still at work.")); err != nil {
		return Execution{}, err
	}
	return follower(slug), w.dismissed(ctx, root)
}

func openTask(ctx context.Context, w *World) (Execution, error) {
	const slug = "at-work"
	root, _, err := w.hired(ctx, slug, "[[say A word.]]")
	if err != nil {
		return Execution{}, err
	}
	_, err = w.reply(root, "[[abstain]] [[terminal]] [[say Another word.]]")
	return follower(slug), errors.Join(err, w.said(ctx, root, "Another word."))
}

func blocked(ctx context.Context, w *World) (Execution, error) {
	const slug = "asking"
	root, _, err := w.hired(ctx, slug, `[[tool Bash {"command":"mkdir made && rmdir made"}]] [[say Done.]]`)
	if err != nil {
		return Execution{}, err
	}
	err = w.knows(ctx, slug, "its question", func(v workflows.TaskView) bool { return v.Facts.Blocked })
	return follower(slug), errors.Join(err, w.dismissed(ctx, root))
}

// relayed keeps an operator busy until its task continues as new.
func relayed(next bool) func(context.Context, *World) (Execution, error) {
	return func(ctx context.Context, w *World) (Execution, error) {
		slug := "long-story"
		if next {
			slug = "longer-story"
		}
		root, _, err := w.hired(ctx, slug, "[[say A word.]]")
		if err != nil {
			return Execution{}, err
		}
		if err := w.said(ctx, root, "A word."); err != nil {
			return Execution{}, err
		}
		x := follower(slug)
		first, err := w.firstRun(ctx, x)
		if err != nil {
			return Execution{}, err
		}
		later, err := w.laterRun(ctx, x, first)
		if err != nil {
			return Execution{}, err
		}
		if x.Run = first; next {
			x.Run = later
		}
		return x, w.dismissed(ctx, root)
	}
}
