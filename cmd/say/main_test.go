package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/outbox"
)

type result struct {
	code      int
	out, errs string
}

func call(env map[string]string, in string, args ...string) result {
	var out, errs bytes.Buffer
	code := run(args, func(name string) string { return env[name] }, strings.NewReader(in), &out, &errs)
	return result{code, out.String(), errs.String()}
}

func session(t *testing.T) (outbox.Box, map[string]string, func() []outbox.Word) {
	t.Helper()
	box, id := outbox.Box{Dir: t.TempDir()}, uuid.NewString()
	return box, map[string]string{"SMITH_OUTBOX": box.Dir, "SMITH_SESSION": id}, func() []outbox.Word {
		words, err := box.Words(id)
		require.NoError(t, err)
		return words
	}
}

func TestSay_TakesEveryArgumentForText(t *testing.T) {
	for _, tc := range []struct {
		args     []string
		in, want string
	}{
		{args: []string{"tests", "are", "green"}, want: "tests are green"},
		{args: []string{"-1 is wrong"}, want: "-1 is wrong"},
		{args: []string{"--help", "me"}, want: "--help me"},
		{args: []string{"--", "--hook", "stop"}, want: "--hook stop"},
		{args: []string{"-"}, in: "one\ntwo\n", want: "one\ntwo"},
		{args: []string{"-", "item"}, want: "- item"},
	} {
		_, env, words := session(t)
		r := call(env, tc.in, tc.args...)
		require.Zero(t, r.code, r.errs)
		require.Contains(t, r.out, "Said.")
		require.Len(t, words(), 1)
		require.Equal(t, tc.want, words()[0].Text)
		require.Equal(t, outbox.Say, words()[0].Kind)
	}
}

func TestSay_SaysWhyItCannot(t *testing.T) {
	_, env, words := session(t)
	for name, r := range map[string]result{
		"nothing to say":   call(env, ""),
		"empty":            call(env, "", " "),
		"empty input":      call(env, "", "-"),
		"too long":         call(env, strings.Repeat("x", maxInput+1), "-"),
		"no session":       call(map[string]string{"SMITH_OUTBOX": t.TempDir()}, "", "x"),
		"session no UUID":  call(map[string]string{"SMITH_OUTBOX": t.TempDir(), "SMITH_SESSION": "../x"}, "", "x"),
		"folder is a file": call(map[string]string{"SMITH_OUTBOX": "/dev/null", "SMITH_SESSION": env["SMITH_SESSION"]}, "", "x"),
	} {
		require.Equal(t, 1, r.code, name)
		require.NotEmpty(t, r.errs, name)
	}
	require.Empty(t, words())
	r := call(nil, "", "--help")
	require.Zero(t, r.code)
	require.Contains(t, r.out, "--hook")
}

func TestHook_WritesTheWordOrThePrompt(t *testing.T) {
	box, env, words := session(t)
	for kind, in := range map[string]string{
		"stop":         `{"hook_event_name":"Stop","stop_hook_active":true,"last_assistant_message":"done"}`,
		"notification": `{"hook_event_name":"Notification","message":"may I?","notification_type":"permission_prompt"}`,
		"prompt":       `{"hook_event_name":"UserPromptSubmit","prompt":"fix it","transcript_path":"/t.jsonl","session_id":"another"}`,
	} {
		r := call(env, in, "--hook", kind)
		require.Equal(t, result{}, r, "a hook is silent: what a prompt's hook prints is given to the model")
	}
	require.Len(t, words(), 2)
	prompts, err := box.Prompts(env["SMITH_SESSION"], "")
	require.NoError(t, err)
	require.Len(t, prompts, 1)
	require.Equal(t, "fix it", prompts[0].Text)
	require.Equal(t, "/t.jsonl", prompts[0].Transcript)

	require.Equal(t, result{}, call(env, `{"hook_event_name":"Notification","message":"idle","notification_type":"idle_prompt"}`, "--hook", "notification"))
	require.Len(t, words(), 2)
}

func TestHook_NeverExitsWithTheCodeThatBlocks(t *testing.T) {
	_, env, words := session(t)
	for name, r := range map[string]result{
		"no JSON":       call(env, "x", "--hook", "stop"),
		"another event": call(env, `{"hook_event_name":"Stop"}`, "--hook", "prompt"),
		"unknown kind":  call(env, `{"hook_event_name":"Stop"}`, "--hook", "halt"),
		"no kind":       call(env, `{"hook_event_name":"Stop"}`, "--hook"),
	} {
		require.Equal(t, 1, r.code, name)
		require.Empty(t, r.out, name)
		require.NotEmpty(t, r.errs, name)
	}
	require.Empty(t, words())
	require.Equal(t, result{}, call(nil, "x", "--hook", "stop"), "a session that is none of ours is left alone")
}
