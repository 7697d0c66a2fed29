package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentsmith/internal/slackapi"
	"agentsmith/rules"
)

const (
	// lookupTry is how long one question about a user may take, lookupAgain the wait
	// until the next one.
	lookupTry   = 10 * time.Second
	lookupAgain = 2 * time.Second
	// lookupFor is how long a line waits for Slack to say who wrote it (X1).
	lookupFor = 2 * time.Minute
)

// userReader tells who a user id is; it keeps what it was told for a while.
type userReader interface {
	User(ctx context.Context, id string) (slackapi.Person, error)
}

// people answers who may talk to a seat (X1) without ever making a thread wait for the
// question about another thread's person.
type people struct {
	access rules.Access
	// spawn says who may cause a spawn (X1).
	spawn rules.Access
	users userReader
	now   func() time.Time
	// answered is called when a question came back, again is the wait after one in vain.
	answered func()
	again    time.Duration

	mu     sync.Mutex
	asking map[string]bool
	vain   map[string]vain
	told   map[string]rules.Profile
	until  map[string]time.Time
}

// vain is since when and until when Slack was asked about a user in vain.
type vain struct{ first, last time.Time }

func newPeople(access, spawn rules.Access, users userReader, now func() time.Time, answered func()) *people {
	return &people{
		access: access, spawn: spawn, users: users, now: now, answered: answered, again: lookupAgain,
		asking: map[string]bool{}, vain: map[string]vain{}, told: map[string]rules.Profile{}, until: map[string]time.Time{},
	}
}

// profileKept is how long a profile is believed without asking again.
const profileKept = 5 * time.Minute

// may tells whether a user may talk, and why not. known is false while Slack has not
// said; then answered is called later. After lookupFor in vain the answer is no. ctx
// bounds the questions that it begins, not the call, which never waits.
func (p *people) may(ctx context.Context, user string) (ok bool, reason rules.Reason, known bool) {
	return p.allowed(ctx, p.access, user)
}

// maySpawn tells in the same way whether a user may cause a spawn.
func (p *people) maySpawn(ctx context.Context, user string) (ok, known bool) {
	ok, _, known = p.allowed(ctx, p.spawn, user)
	return ok, known
}

func (p *people) allowed(ctx context.Context, access rules.Access, user string) (ok bool, reason rules.Reason, known bool) {
	if !access.NeedsProfile(user) {
		ok, reason = access.May(user, nil)
		return ok, reason, true
	}
	if profile, found := p.fresh(user); found {
		ok, reason = access.May(user, &profile)
		return ok, reason, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, ok := p.vain[user]; ok && p.now().Sub(v.first) >= lookupFor && p.now().Sub(v.last) < lookupFor {
		delete(p.vain, user) // the next line asks anew
		return false, rules.ReasonUnknown, true
	}
	if !p.asking[user] {
		p.asking[user] = true
		go p.ask(ctx, user)
	}
	return false, "", false
}

// mayNow is may for a caller that can wait until ctx ends.
func (p *people) mayNow(ctx context.Context, user string) (ok bool, reason rules.Reason, known bool) {
	if !p.access.NeedsProfile(user) {
		ok, reason = p.access.May(user, nil)
		return ok, reason, true
	}
	profile, found := p.fresh(user)
	if !found {
		person, err := p.users.User(ctx, user)
		if err != nil {
			return false, "", false
		}
		profile = p.keep(user, person)
	}
	ok, reason = p.access.May(user, &profile)
	return ok, reason, true
}

func (p *people) fresh(user string) (rules.Profile, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	profile, found := p.told[user]
	return profile, found && p.now().Before(p.until[user])
}

func (p *people) keep(user string, person slackapi.Person) rules.Profile {
	profile := rules.Profile{ID: person.ID, Member: person.Member, Stranger: person.Stranger}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.told) > 10_000 {
		clear(p.told)
		clear(p.until)
	}
	p.told[user], p.until[user] = profile, p.now().Add(profileKept)
	delete(p.vain, user)
	return profile
}

// ask asks once, and remembers since when it asks in vain. A user that Slack does not
// know is nobody, whatever is asked again: such a line does not wait.
func (p *people) ask(ctx context.Context, user string) {
	tryCtx, cancel := context.WithTimeout(ctx, lookupTry)
	person, err := p.users.User(tryCtx, user)
	cancel()
	switch {
	case err == nil:
		p.keep(user, person)
	case errors.Is(err, slackapi.ErrUnknownPerson):
		p.inVain(user, lookupFor)
	default:
		p.inVain(user, 0)
		pause(ctx, p.again)
	}
	p.mu.Lock()
	delete(p.asking, user)
	p.mu.Unlock()
	p.answered()
}

// inVain remembers that a question was in vain, as if it had been asked for already. What
// was in vain long ago, for a line that is gone since, does not count.
func (p *people) inVain(user string, already time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	v, ok := p.vain[user]
	if !ok || now.Sub(v.last) > lookupFor {
		v.first = now
	}
	if began := now.Add(-already); began.Before(v.first) {
		v.first = began
	}
	v.last = now
	p.vain[user] = v
}
