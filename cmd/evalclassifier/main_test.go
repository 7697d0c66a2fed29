package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities/classifier"
	"agentsmith/internal/agent"
	"agentsmith/rules"
)

func TestMain(m *testing.M) {
	agent.MaybeSupervise()
	os.Exit(m.Run())
}

// The plumbing only: the real CLI against the stand-in, a few lines.
func TestRun_AsksTheStandInAndSaysSo(t *testing.T) {
	var out bytes.Buffer
	f := flags{Agent: "stand-in", Model: "haiku", Timeout: time.Minute, Limit: 4, AtOnce: 2, Min: 1}
	require.NoError(t, run(t.Context(), f, []string{"PATH=" + os.Getenv("PATH")}, &out, io.Discard))
	require.Contains(t, out.String(), "the stand-in, since claude is not signed in here.")
	require.Contains(t, out.String(), "the accuracy says nothing about the classifier")
	require.Regexp(t, `(?m)^all +4 `, out.String())
}

func TestRun_FailsWhereNobodyAnswers(t *testing.T) {
	command := t.TempDir() + "/claude"
	require.NoError(t, os.WriteFile(command, []byte("#!/bin/sh\nexit 3\n"), 0o700))
	var out bytes.Buffer
	f := flags{Agent: "stand-in", Command: command, Model: "haiku", Timeout: time.Minute, Limit: 3, AtOnce: 2}
	require.ErrorContains(t, run(t.Context(), f, nil, &out, io.Discard), "3 of 3 lines got no answer")
	f.Agent = "claude"
	require.ErrorContains(t, run(t.Context(), f, nil, &out, io.Discard), "claude is not signed in")
}

func TestReport_CountsWhatWasTakenForWhat(t *testing.T) {
	work, question := rules.WorkDisposition{Kind: "work", Repo: "web"}, rules.WorkDisposition{Kind: "question"}
	r := report{
		{classifier.Line{Label: classifier.Work, Lang: "en", Text: "a", Repo: "web"}, work},
		{classifier.Line{Label: classifier.Work, Lang: "en", Text: "b\n\x1b[31m"}, question},
		{classifier.Line{Label: classifier.Ambiguous, Text: "c"}, work},
		{classifier.Line{Label: classifier.Question, Text: "d"}, question},
		{classifier.Line{Label: classifier.Chatter, Lang: "de", Text: "e"}, rules.NoDisposition()},
	}
	require.InDelta(t, 0.6, r.accuracy(), 1e-9)
	require.Equal(t, 1, r.unavailable())
	var out bytes.Buffer
	r.print(&out)
	rows := strings.Split(out.String(), "\n")
	require.Equal(t, []string{"work", "2", "50.0", "%", "1", "1", "0"}, strings.Fields(rows[1]))
	require.Equal(t, []string{"ambiguous", "1", "100.0", "%", "1", "0", "0"}, strings.Fields(rows[2]))
	require.Equal(t, []string{"chatter", "1", "0.0", "%", "0", "0", "1"}, strings.Fields(rows[4]))
	require.Equal(t, []string{"all", "5", "60.0", "%"}, strings.Fields(rows[5]))
	require.Contains(t, out.String(), "repo, of the work that was taken for work: 50.0 %")
	require.Contains(t, out.String(), "work      taken for question    en: b [31m\n")
	require.Contains(t, out.String(), "chatter   taken for unavailable de: e\n")
	require.Zero(t, report{}.accuracy())
}

func TestSpread_TakesSomeOfEverything(t *testing.T) {
	set, _, err := classifier.Lines()
	require.NoError(t, err)
	require.Len(t, spread(set, 0), len(set))
	labels := map[classifier.Label]bool{}
	for _, l := range spread(set, 8) {
		labels[l.Label] = true
	}
	require.Len(t, labels, 4)
}
