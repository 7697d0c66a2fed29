package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/standin"
	"agentsmith/rules"
)

// scene is evidence that was made up: one thread of ana's with smith in channel C.
type scene struct{ evidence }

const sceneRoot = "1700000000.000100"

func newScene(lines ...*typed) *scene {
	e := evidence{
		lines: lines, crossed: map[string]bool{}, posts: map[string]*posted{}, files: map[string]int{}, gone: map[string]bool{},
		talked: map[string][]string{"C/" + sceneRoot: {"smith"}}, host: map[string]string{"C/" + sceneRoot: "ana"},
	}
	return &scene{e}
}

func line(ts string, k kind) *typed {
	return &typed{kind: k, shape: crowd, who: "ben", channel: "C", root: sceneRoot, ts: ts, seats: []string{"smith"}, tags: []string{"word"}}
}

// says adds a post with that name, in parts.
func (s *scene) says(id, ts string, texts ...string) *scene {
	for i, text := range texts {
		s.read(slackbox.LoggedMessage{
			Channel: "C", TS: ts[:len(ts)-1] + string(rune('0'+i)), ThreadTS: sceneRoot, App: "smith", Text: text,
			Message: &slackbox.Message{Metadata: &slackbox.Metadata{EventPayload: []byte(
				`{"post_id":"` + id + `","part":` + string(rune('1'+i)) + `,"parts":` + string(rune('0'+len(texts))) + `}`)}},
		})
	}
	return s
}

// runs adds a request to the model about lines.
func (s *scene) runs(answer string, o standin.Outcome, lines ...string) *scene {
	section := ""
	for _, ts := range lines {
		section += "ben (U1) at " + ts + ":\n| words\n"
	}
	s.ran(standin.Entry{Session: "one", User: "You are @smith\n" + section, Section: section, Answer: answer, Outcome: o})
	return s
}

func (s *scene) hit(v victim, ts string) *scene {
	at := rules.TSTime(ts)
	s.struck = append(s.struck, strike{victim: v, at: at, back: at.Add(time.Second)})
	return s
}

// The judge of the storm must see what it is there to see: each of these was made up.
func TestJudge_KnowsTheEndsOfALineAndSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	const one, two, later = "1700000001.000100", "1700000002.000100", "1700000009.000100"
	id := func(ts string) string { return rules.TurnID("smith", "C", ts) }
	died := rules.FailureText(rules.ReasonWorkerDied)
	lost := rules.FailureText(rules.ReasonLost)
	ln := func(k kind) *typed { return line(one, k) }
	among := &typed{kind: chatter, shape: crowd, who: "ben", channel: "C", root: sceneRoot, ts: one}
	others := &typed{kind: stopWord, shape: crowd, who: "ana", channel: "C", root: sceneRoot, ts: one, seats: []string{"trinity"}}
	wrote := ln(fileOut)
	wrote.file = "word.txt"
	for name, c := range map[string]struct {
		scene *scene
		line  *typed
		end   end
		wrong bool
	}{
		"answered":                      {newScene(ln(ask)).runs("the word", standin.Served, one).says(id(one), later, "the word"), ln(ask), endAnswered, false},
		"answered with another":         {newScene(ln(ask)).runs("the word", standin.Served, sceneRoot, one).says(id(sceneRoot), later, "the word"), ln(ask), endAnswered, false},
		"answered in parts":             {newScene(ln(long)).runs("the word\nand more", standin.Served, one).says(id(one), later, "the word", "and more"), ln(long), endAnswered, false},
		"a part is missing":             {newScene(ln(long)).runs("the word\nand more", standin.Served, one).says(id(one), later, "the word"), ln(long), endAnswered, true},
		"parts in the wrong order":      {newScene(ln(long)).runs("the word\nand more", standin.Served, one).says(id(one), later, "and more", "the word"), ln(long), endAnswered, true},
		"another's answer":              {newScene(ln(ask)).runs("something", standin.Served, one).says(id(one), later, "something"), ln(ask), endAnswered, true},
		"an answer from nowhere":        {newScene(ln(ask)).says(id(one), later, "the word"), ln(ask), endAnswered, true},
		"an answer of a broken run":     {newScene(ln(ask)).runs("the word", standin.Aborted, one).says(id(one), later, "the word"), ln(ask), endAnswered, true},
		"its file is missing":           {newScene(wrote).runs("the word", standin.Served, one).says(id(one), later, "the word"), wrote, endAnswered, true},
		"silence":                       {newScene(ln(ask)), ln(ask), endLost, true},
		"run and not posted":            {newScene(ln(ask)).runs("the word", standin.Served, one), ln(ask), endLost, true},
		"posted under two names":        {newScene(ln(ask)).runs("the word", standin.Served, sceneRoot, one).says(id(one), later, "the word").says(id(sceneRoot), later, "the word"), ln(ask), endDoubled, true},
		"posted twice":                  {newScene(ln(ask)).runs("the word", standin.Served, one).says(id(one), two, "the word").says(id(one), later, "the word"), ln(ask), endDoubled, true},
		"the stop is told of twice":     {newScene(ln(stopWord)).says(id(one)+"/stop", two, "Stopped.").says(id(one)+"/stop", later, "Stopped."), ln(stopWord), endDoubled, true},
		"failed twice":                  {newScene(ln(ask)).hit(theWorker, two).says(id(one), two, died).says(id(one), later, died), ln(ask), endDoubled, true},
		"run twice":                     {newScene(ln(ask)).runs("the word", standin.Served, one).runs("the word", standin.Served, one).says(id(one), later, "the word"), ln(ask), endDoubled, true},
		"refused and repeated":          {newScene(ln(ask)).runs("", standin.Refused, one).runs("the word", standin.Served, one).says(id(one), later, "the word"), ln(ask), endAnswered, false},
		"abstained":                     {newScene(ln(abstains)).runs(rules.Abstain, standin.Served, one), ln(abstains), endDeclined, false},
		"failed, the worker was killed": {newScene(ln(ask)).hit(theWorker, two).says(id(one), later, died), ln(ask), endFailed, false},
		"failed for no reason":          {newScene(ln(ask)).says(id(one), later, died), ln(ask), endFailed, true},
		"lost, though said":             {newScene(ln(ask)).hit(theWorker, two).says(id(one), later, lost), ln(ask), endFailed, true},
		"failed with an earlier line":   {newScene(ln(ask)).hit(theWorker, two).says(id(sceneRoot), later, died), ln(ask), endFailed, false},
		"an earlier line was answered":  {newScene(ln(ask)).runs("the word", standin.Served, sceneRoot).says(id(sceneRoot), later, "the word"), ln(ask), endLost, true},
		"deleted":                       {newScene(ln(deleted)).deletes(one), ln(deleted), endDeleted, false},
		"deleted, and kept with it":     {newScene(ln(deleted)).deletes(one).runs("x", standin.Aborted, one, two), ln(deleted), endLost, true},
		"stopped":                       {newScene(ln(ask)).runs("", standin.Aborted, one).says(id(two)+"/stop", later, "Stopped."), ln(ask), endStopped, false},
		"an earlier stop":               {newScene(line(two, ask)).runs("", standin.Aborted, two).says(id(one)+"/stop", later, "Stopped."), line(two, ask), endLost, true},
		"stopped with an older line":    {newScene(ln(ask)).runs("", standin.Aborted, sceneRoot, two).says(id(one)+"/stop", later, "Stopped."), line(two, ask), endStopped, false},
		"the stop is told of":           {newScene(ln(stopWord)).says(id(one)+"/stop", later, "Stopped."), ln(stopWord), endAnswered, false},
		"the stop is not told of":       {newScene(ln(stopWord)), ln(stopWord), endLost, true},
		"a newer stop tells of both":    {newScene(ln(stopWord)).says(id(two)+"/stop", later, "Stopped."), ln(stopWord), endStopped, false},
		"another seat's stop":           {newScene(others), others, endNoted, false},
		"among people":                  {newScene(among), among, endNoted, false},
		"among people, and answered":    {newScene(among).runs("x", standin.Served, one), among, endNoted, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.scene.judge(c.line, "smith")
			require.Equal(t, c.end, v.end, "%v", v.problems)
			require.Equal(t, c.wrong, len(v.problems) > 0, "%v", v.problems)
		})
	}
}

func (s *scene) deletes(ts string) *scene {
	at := rules.TSTime(ts)
	s.read(slackbox.LoggedMessage{Channel: "C", TS: ts, DeletedAt: &at})
	return s
}

// A post that stands twice, in the channel, or about nothing is seen whatever line it is about.
func TestJudge_SeesStrayPosts(t *testing.T) {
	t.Parallel()
	id := rules.TurnID("smith", "C", sceneRoot)
	root := line(sceneRoot, ask)
	require.Empty(t, newScene(root).says(id, "1700000009.000100", "the word").strays())
	require.NotEmpty(t, newScene(root).says(id, "1700000009.000100", "the word").says(id, "1700000019.000100", "the word").strays(), "twice")
	require.NotEmpty(t, newScene().says(id, "1700000009.000100", "the word").strays(), "about nothing")
	up := newScene(root)
	up.read(slackbox.LoggedMessage{Channel: "C", TS: "1700000009.000100", App: "smith", Text: "the word",
		Message: &slackbox.Message{Metadata: &slackbox.Metadata{EventPayload: []byte(`{"post_id":"` + id + `","part":1,"parts":1}`)}}})
	require.NotEmpty(t, up.strays(), "in the channel")
}
