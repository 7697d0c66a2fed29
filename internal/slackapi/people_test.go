package slackapi

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUser_KnowsWhoIsAMember(t *testing.T) {
	for name, c := range map[string]struct {
		user string
		want Person
	}{
		"a member":            {`"team_id":"T1","profile":{"display_name":"Ana"}`, Person{Team: "T1", Name: "Ana", Member: true}},
		"by another name":     {`"team_id":"T1","name":"ana","real_name":"Ana A."`, Person{Team: "T1", Name: "Ana A.", Member: true}},
		"a guest":             {`"team_id":"T1","name":"g","is_restricted":true`, Person{Team: "T1", Name: "g", Guest: true}},
		"a one-channel guest": {`"team_id":"T1","name":"g","is_restricted":true,"is_ultra_restricted":true`, Person{Team: "T1", Name: "g", Guest: true}},
		"a bot":               {`"team_id":"T1","name":"b","is_bot":true`, Person{Team: "T1", Name: "b", Bot: true}},
		"one who left":        {`"team_id":"T1","name":"d","deleted":true`, Person{Team: "T1", Name: "d", Deleted: true}},
		"a stranger":          {`"team_id":"T1","name":"s","is_stranger":true`, Person{Team: "T1", Name: "s", Stranger: true}},
		"of another team":     {`"team_id":"T2","name":"o"`, Person{Team: "T2", Name: "o", Stranger: true}},
		"of no team":          {`"name":"o"`, Person{Name: "o", Stranger: true}},
		"of the organisation": {`"team_id":"T2","name":"o","enterprise_user":{"teams":["T2","T1"]}`, Person{Team: "T2", Name: "o", Member: true}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.on("users.info", says(`{"ok":true,"user":{"id":"U1",`+c.user+`}}`))
			got, err := f.client().User(t.Context(), "U1")
			require.NoError(t, err)
			c.want.ID = "U1"
			require.Equal(t, c.want, got)
		})
	}
}

func TestUser_KeepsAnAnswerForAWhile(t *testing.T) {
	f := newFake(t)
	now := time.Unix(1700000000, 0)
	c := f.client(func(o *Options) { o.Now = func() time.Time { return now } })
	f.on("users.info", says(`{"ok":true,"user":{"id":"U1","team_id":"T1"}}`))
	for range 3 {
		_, err := c.User(t.Context(), "U1")
		require.NoError(t, err)
	}
	require.Equal(t, 1, f.count("users.info"))
	now = now.Add(personTTL)
	_, err := c.User(t.Context(), "U1")
	require.NoError(t, err)
	require.Equal(t, 2, f.count("users.info"))
}

func TestUser_ForgetsSoonWhoIsUnknown(t *testing.T) {
	f := newFake(t)
	now := time.Unix(1700000000, 0)
	c := f.client(func(o *Options) { o.Now = func() time.Time { return now } })
	f.on("users.info", says(`{"ok":false,"error":"user_not_found"}`), says(`{"ok":true,"user":{"id":"U1","team_id":"T1"}}`))
	for range 2 {
		_, err := c.User(t.Context(), "U1")
		require.ErrorIs(t, err, ErrUnknownPerson)
	}
	require.Equal(t, 1, f.count("users.info"))
	now = now.Add(unknownTTL)
	_, err := c.User(t.Context(), "U1")
	require.NoError(t, err)
}

func TestUser_KeepsNoTrouble(t *testing.T) {
	f := newFake(t)
	f.on("users.info", fails(500), says(`{"ok":true,"user":{}}`), says(`{"ok":true,"user":{"id":"U1","team_id":"T1"}}`))
	c := f.client()
	for range 2 {
		_, err := c.User(t.Context(), "U1")
		require.ErrorIs(t, err, ErrAmbiguous)
	}
	_, err := c.User(t.Context(), "U1")
	require.NoError(t, err)
}

func TestUser_AsksOnceForMany(t *testing.T) {
	f := newFake(t)
	f.on("users.info", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond) // the others come meanwhile; a late one finds the kept answer
		says(`{"ok":true,"user":{"id":"U1","team_id":"T1"}}`)(w, r)
	})
	c := f.client()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			p, err := c.User(t.Context(), "U1")
			if err != nil || !p.Member {
				t.Errorf("%v %v", p, err)
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, f.count("users.info"))
}
