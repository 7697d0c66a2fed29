package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsmith/rules"
)

// end is what became of a line, as a reader of the thread and the model saw it.
type end string

const (
	endAnswered end = "answered"
	endFailed   end = "failed"
	endDeclined end = "declined" // the agent had nothing to add
	endStopped  end = "stopped"
	endDeleted  end = "deleted"
	endNoted    end = "noted"
	endLost     end = "lost"
	endDoubled  end = "doubled"
)

// duty is what a line is to a seat.
type duty int

const (
	never duty = iota // it must be left alone
	may               // it may engage, by what arrived first
	must              // it must end in a word
)

// duty tells by what was typed alone whether a line is owed one by a seat (D3).
func (e *evidence) duty(l *typed, seat string) duty {
	switch {
	case slices.Contains(l.seats, seat):
		return must
	case l.shape == crowd && e.host[l.channel+"/"+l.root] == l.who && slices.Contains(e.talked[l.channel+"/"+l.root], seat):
		// The thread's first author, with no mention of this seat: as long as the seat has
		// seen nobody else there, the thread is a thread of two.
		return may
	}
	return never
}

// verdict is what became of a line for one seat, and what is wrong with that.
type verdict struct {
	end      end
	cause    rules.Reason // of a failure
	problems []string
}

func (v *verdict) wrong(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// judge is the whole of what may become of a line. Whatever is not allowed here is a
// failure of the storm:
//
//   - a line among people is left alone: no run, no post about it
//   - a line to a seat stands in one run of the agent at most, and in one post at most:
//     either that run's answer (complete, each part once, in order, with its file), or an
//     honest line that says why there is none, and that has a reason
//   - it may end without a post of its own where the agent abstained; where it was deleted,
//     and so was every line that was with it in the run; where a stop that was typed later
//     ended it, or ended the run that it was in, and the stop's own line says so
//   - or where no run ever saw it, and the honest line of the turn that it was in stands in
//     the thread (a turn that failed before the agent began speaks for all of its lines)
//
// So a line that a stop or a deletion hit about the time of its answer has several ends:
// answered, if the answer was faster; stopped or deleted, if not. It never has two.
func (e *evidence) judge(l *typed, seat string) verdict {
	runs, posts, duty := e.runsOf(seat, l), e.covering(seat, l), e.duty(l, seat)
	var v verdict
	switch {
	case duty == never:
		v.end = endNoted
		if len(runs)+len(posts) > 0 {
			v.wrong("it engages nobody, and has %d runs and the posts %v", len(runs), posts)
		}
		return v
	case len(runs) > 1 || len(posts) > 1:
		v.end = endDoubled
		v.wrong("%d runs of the agent, and the posts %v", len(runs), posts)
		return v
	case l.kind == stopWord && duty == must:
		return e.judgeStop(l, seat)
	}
	var run *agentRun
	if len(runs) > 0 {
		run = runs[0]
	}
	switch {
	case len(posts) == 1:
		e.judgePost(&v, l, seat, e.posts[posts[0]], run)
	case run != nil && run.abstained():
		v.end = endDeclined
	case e.stoppedBy(seat, l, run) != nil:
		v.end = endStopped
	case e.gone[l.ts] && e.allGone(run):
		v.end = endDeleted
	case run == nil && duty == may:
		v.end = endNoted
	case run == nil && e.spokenFor(seat, l) != nil:
		v.end = endFailed
		e.judgeCause(&v, l, e.spokenFor(seat, l), nil)
	default:
		v.end = endLost
		v.wrong("no word about it: %d runs, no post, no stop, no honest line", len(runs))
	}
	return v
}

// covering names the posts of turns that are about a line: the one that bears its name,
// and the one of the run that it was part of.
func (e *evidence) covering(seat string, l *typed) (out []string) {
	ids := []string{rules.TurnID(seat, l.channel, l.ts)}
	for _, r := range e.runsOf(seat, l) {
		for _, ts := range r.lines {
			ids = append(ids, rules.TurnID(seat, l.channel, ts))
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if e.posts[id] != nil {
			out = append(out, id)
		}
	}
	return out
}

// judgePost judges the one post about a line.
func (e *evidence) judgePost(v *verdict, l *typed, seat string, p *posted, run *agentRun) {
	if honest(p.first().Text) {
		v.end = endFailed
		if len(p.parts) > 1 {
			v.end = endDoubled
			v.wrong("the honest line stands %d times", len(p.parts))
		}
		e.judgeCause(v, l, p, run)
		return
	}
	v.end = endAnswered
	switch {
	case run == nil:
		v.wrong("an answer that no run gave: %.80q", p.first().Text)
		return
	case !run.served():
		v.wrong("an answer of a run that came to no end (%s): %.80q", run.last().Outcome, p.first().Text)
		return
	}
	text := ""
	for i, m := range p.parts {
		text += m.Text + "\n"
		if i > 0 && postPart(m) == postPart(p.parts[i-1]) {
			v.end = endDoubled
		}
		if parts, _ := payload(m)["parts"].(float64); postPart(m) != i+1 || int(parts) != len(p.parts) {
			v.wrong("part %d of %v stands as number %d of %d", postPart(m), parts, i+1, len(p.parts))
		}
	}
	if squeeze(rules.Unescape(text)) != squeeze(run.last().Answer) {
		v.wrong("the posted text is not the answer: %.200q and %.200q", text, run.last().Answer)
	}
	said := l.kind == abstains || slices.ContainsFunc(l.tags, func(tag string) bool { return strings.Contains(run.words(), tag) })
	if !said && !e.gone[l.ts] && l.kind != stopWord {
		v.wrong("the answer does not say any of %v: %.200q", l.tags, text)
	}
	if n := e.files[l.channel+"/"+l.root+"/"+l.file]; l.file != "" && n != 1 {
		v.wrong("its file stands %d times in the thread", n)
	}
}

// squeeze leaves white space out: splitting may move it.
func squeeze(text string) string { return strings.Join(strings.Fields(text), "") }

// judgeCause tells whether an honest line has a cause that the storm knows of: a system
// that fails everything would be honest as well.
func (e *evidence) judgeCause(v *verdict, l *typed, p *posted, run *agentRun) {
	text, said := p.first().Text, rules.TSTime(p.first().TS)
	is := func(r rules.Reason) bool { return text == rules.EscapeText(rules.FailureText(r)) }
	struck := func(victims ...victim) bool {
		return slices.ContainsFunc(e.struck, func(s strike) bool {
			return slices.Contains(victims, s.victim) && (s.thread == "" || s.thread == l.channel+"/"+l.root) && s.mayBeWhy(l, said)
		})
	}
	switch {
	case is(rules.ReasonAgentAPI) && run != nil && run.refused():
		v.cause = rules.ReasonAgentAPI
	case is(rules.ReasonAgentExit) && struck(theAgent):
		v.cause = rules.ReasonAgentExit
	case is(rules.ReasonWorkerDied) && struck(theWorker):
		v.cause = rules.ReasonWorkerDied
	case is(rules.ReasonWorkerDied) && struck(theTemporal):
		// The server forgot what it had handed out, or was away for longer than a heartbeat.
		v.cause = rules.ReasonWorkerDied + "_by_temporal"
	default:
		v.wrong("failed, and the storm knows of no cause: %.120q", text)
	}
}

// stops are a seat's standing words about stops that cover a thread: those of the thread,
// and those of its whole DM.
func (e *evidence) stops(seat, channel, root string) (out []*posted) {
	for _, p := range e.posts {
		if !p.stop || p.seat != seat || p.channel != channel {
			continue
		}
		wide := slices.ContainsFunc(e.lines, func(l *typed) bool { return l.wide && l.ts == p.of })
		if p.root == root || wide {
			out = append(out, p)
		}
	}
	return out
}

// idleStop is what a stop says that found nothing; it speaks for a line only that was on
// its way when the stop was typed.
const idleStop = "Nothing was running here."

// stoppedBy is the stop that ended a line: one typed later, or one that was typed later
// than another line of its run.
func (e *evidence) stoppedBy(seat string, l *typed, run *agentRun) *posted {
	with := []string{l.ts}
	if run != nil {
		with = run.lines
	}
	for _, p := range e.stops(seat, l.channel, l.root) {
		for _, ts := range with {
			if rules.CompareTS(ts, p.of) >= 0 {
				continue
			}
			near := rules.TSTime(p.of).Sub(rules.TSTime(ts)) < 90*time.Second
			if run != nil || p.first().Text != rules.EscapeText(idleStop) || near {
				return p
			}
		}
		// A line without a run, younger than the stop, in a turn that the stop ended: the
		// turn also had an older line, and the stop's word came after both.
		if run == nil && rules.CompareTS(p.first().TS, l.ts) > 0 && e.olderWithoutRun(seat, l, p) {
			return p
		}
	}
	return nil
}

func (e *evidence) olderWithoutRun(seat string, l *typed, p *posted) bool {
	return slices.ContainsFunc(e.lines, func(x *typed) bool {
		return x.channel == l.channel && x.root == l.root && slices.Contains(x.seats, seat) &&
			rules.CompareTS(x.ts, p.of) < 0 && len(e.runsOf(seat, x)) == 0 && len(e.covering(seat, x)) == 0
	})
}

// allGone tells whether every line of a run was deleted; no run has none.
func (e *evidence) allGone(run *agentRun) bool {
	return run == nil || !slices.ContainsFunc(run.lines, func(ts string) bool { return !e.gone[ts] })
}

// spokenFor is the honest line of the turn that a line without a run was in: the latest
// turn that began at or before it, if that one failed before its agent began.
func (e *evidence) spokenFor(seat string, l *typed) *posted {
	var best *posted
	for _, p := range e.posts {
		if p.stop || p.seat != seat || p.channel != l.channel || p.root != l.root || rules.CompareTS(p.of, l.ts) > 0 {
			continue
		}
		if rules.CompareTS(p.first().TS, l.ts) > 0 && honest(p.first().Text) && (best == nil || rules.CompareTS(p.of, best.of) > 0) {
			best = p
		}
	}
	return best
}

// judgeStop judges a stop word: it is answered by one line that says what was done, or,
// where a newer stop was seen first, by that one's.
func (e *evidence) judgeStop(l *typed, seat string) verdict {
	v := verdict{end: endAnswered}
	if p := e.posts[rules.StopID(seat, l.channel, l.ts)]; p != nil {
		if len(p.parts) > 1 {
			v.end = endDoubled
			v.wrong("what the stop did stands %d times", len(p.parts))
		}
		return v
	}
	for _, p := range e.stops(seat, l.channel, l.root) {
		if rules.CompareTS(p.of, l.ts) > 0 {
			v.end = endStopped
			return v
		}
	}
	v.end = endLost
	v.wrong("nobody says what the stop did")
	return v
}
