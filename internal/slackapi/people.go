package slackapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slack-go/slack"
)

const (
	personTTL  = 5 * time.Minute
	unknownTTL = 30 * time.Second
	maxPeople  = 10_000
)

// ErrUnknownPerson is returned for a user that Slack does not know or does not show.
var ErrUnknownPerson = errors.New("slack does not know this user")

// Person is who a user id is. Doubt about a permission is a no (X1): only Member
// says yes.
type Person struct {
	ID   string
	Team string // the user's own workspace
	Name string // as people see it; hostile text (X2)
	// Member: a full member of the installing workspace, who is no guest and no bot,
	// and is not deactivated.
	Member   bool
	Guest    bool // single-channel and multi-channel guests
	Bot      bool
	Deleted  bool
	Stranger bool // of another workspace (Slack Connect)
}

type cachedPerson struct {
	person Person
	err    error
	until  time.Time
}

// User tells who a user id is. An answer is kept for five minutes, Slack's "unknown"
// (ErrUnknownPerson) for half of one; other errors are not kept. Callers that ask at
// the same time share one request.
func (c *Client) User(ctx context.Context, id string) (Person, error) {
	c.mu.Lock()
	hit, ok := c.people[id]
	c.mu.Unlock()
	if ok && c.now().Before(hit.until) {
		return hit.person, hit.err
	}
	// The request is not the first caller's alone: its end does not end the others'.
	asked := c.asking.DoChan(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*c.timeout)
		defer cancel()
		return c.askUser(ctx, id)
	})
	select {
	case answer := <-asked:
		person, _ := answer.Val.(Person)
		return person, answer.Err
	case <-ctx.Done():
		return Person{}, fmt.Errorf("look up user: %w", ctx.Err())
	}
}

func (c *Client) askUser(ctx context.Context, id string) (Person, error) {
	self, err := c.self(ctx)
	if err != nil {
		return Person{}, fmt.Errorf("look up user: %w", err)
	}
	var user *slack.User
	_, err = c.call(ctx, "users.info", func(ctx context.Context, api *slack.Client) (err error) {
		user, err = api.GetUserInfoContext(ctx, id)
		return err
	})
	if IsRejected(err, "user_not_found", "user_not_visible", "users_not_found") {
		err = fmt.Errorf("%w: %w", ErrUnknownPerson, err)
		c.keep(id, cachedPerson{err: err, until: c.now().Add(unknownTTL)})
		return Person{}, err
	}
	if err == nil && (user == nil || user.ID != id) {
		err = c.ambiguous("users.info", errors.New("the answer is about nobody"))
	}
	if err != nil {
		return Person{}, fmt.Errorf("look up user: %w", err)
	}
	p := person(self, user)
	c.keep(id, cachedPerson{person: p, until: c.now().Add(personTTL)})
	return p, nil
}

func (c *Client) keep(id string, p cachedPerson) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.people) >= maxPeople {
		clear(c.people)
	}
	c.people[id] = p
}

func person(self Identity, u *slack.User) Person {
	p := Person{
		ID: u.ID, Team: u.TeamID, Name: u.Profile.DisplayName,
		Guest:   u.IsRestricted || u.IsUltraRestricted,
		Bot:     u.IsBot || u.ID == "USLACKBOT",
		Deleted: u.Deleted,
	}
	for _, name := range []string{u.Profile.RealName, u.RealName, u.Name} {
		if p.Name == "" {
			p.Name = name
		}
	}
	// In an Enterprise Grid a person is of every workspace that the organisation lists.
	home := u.TeamID == self.Team || slices.Contains(u.Enterprise.Teams, self.Team)
	p.Stranger = u.IsStranger || !home
	p.Member = !p.Guest && !p.Bot && !p.Deleted && !p.Stranger
	return p
}
