package main

import (
	"fmt"
	"io"

	"agentsmith/activities/classifier"
	"agentsmith/rules"
)

// report is what came of all lines.
type report []answer

// kind is what was answered: work, question, or unavailable.
func (a answer) kind() string {
	if a.got.Unavailable {
		return "unavailable"
	}
	return a.got.Kind
}

// right tells whether the kind is the one that a person gave.
func (a answer) right() bool { return a.kind() == a.line.Kind() }

func (r report) count(f func(answer) bool) (n int) {
	for _, a := range r {
		if f(a) {
			n++
		}
	}
	return n
}

func (r report) unavailable() int { return r.count(func(a answer) bool { return a.got.Unavailable }) }

// accuracy is the share of lines whose kind is right; no answer is wrong.
func (r report) accuracy() float64 {
	if len(r) == 0 {
		return 0
	}
	return float64(r.count(answer.right)) / float64(len(r))
}

func (r report) print(w io.Writer) {
	kinds := []string{rules.KindWork, rules.KindQuestion, "unavailable"}
	fmt.Fprintf(w, "%-10s %6s %9s   taken for:%6s %9s %12s\n", "label", "lines", "accuracy", kinds[0], kinds[1], kinds[2])
	for _, label := range []classifier.Label{classifier.Work, classifier.Ambiguous, classifier.Question, classifier.Chatter} {
		var of report
		for _, a := range r {
			if a.line.Label == label {
				of = append(of, a)
			}
		}
		fmt.Fprintf(w, "%-10s %6d %9s             ", label, len(of), percent(of.count(answer.right), len(of)))
		for i, kind := range kinds {
			fmt.Fprintf(w, "%*d", []int{6, 10, 13}[i], of.count(func(a answer) bool { return a.kind() == kind }))
		}
		fmt.Fprintln(w)
	}
	right := r.count(answer.right)
	fmt.Fprintf(w, "%-10s %6d %9s\n", "all", len(r), percent(right, len(r)))

	named := func(a answer) bool { return a.line.Kind() == rules.KindWork && a.kind() == rules.KindWork }
	fmt.Fprintf(w, "\nrepo, of the work that was taken for work: %s\n",
		percent(r.count(func(a answer) bool { return named(a) && a.got.Repo == a.line.Repo }), r.count(named)))

	if right < len(r) {
		fmt.Fprintln(w, "\nnot as a person labelled it:")
	}
	for _, a := range r {
		if !a.right() {
			fmt.Fprintf(w, "  %-9s taken for %-11s %s: %s\n", a.line.Label, a.kind(), a.line.Lang, rules.Visible(a.line.Text))
		}
	}
}

func percent(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}
