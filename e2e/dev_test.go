package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/tools"
)

// T5: the local stack starts with no account anywhere, answers a person who writes by a
// token, refuses a second start beside it, and stops leaving nothing.
func TestT5_TheLocalStackAnswersAndStopsLeavingNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(inCommon.dir, "dev")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "agentsmith/cmd/dev").CombinedOutput()
	require.NoError(t, err, string(out))
	flags := []string{"--headless", "--agent", "stand-in", "--dir", dir}
	dev := exec.CommandContext(t.Context(), program, flags...)
	var said bytes.Buffer
	dev.Stdout, dev.Stderr = &said, &said
	dev.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, dev.Start())
	ended := make(chan error, 1)
	go func() { ended <- dev.Wait() }()
	t.Cleanup(func() { _ = dev.Process.Signal(syscall.SIGTERM) })

	var ready struct {
		API      string            `json:"slack_api_url"`
		Channels map[string]string `json:"channels"`
		Users    map[string]struct{ ID, Token string }
		Apps     map[string]struct {
			BotUser string `json:"bot_user"`
		}
		Page     string `json:"page_url"`
		Tmux     string `json:"tmux_socket"`
		Checkout string `json:"checkout"`
	}
	wait(t, "for ready.json", func() (bool, string) {
		text, err := os.ReadFile(filepath.Join(dir, "ready.json"))
		return err == nil && json.Unmarshal(text, &ready) == nil, fmt.Sprint(err)
	})
	second, err := exec.CommandContext(t.Context(), program, flags...).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(second), "already running")

	ana := slack.New(ready.Users["ana"].Token, slack.OptionAPIURL(ready.API))
	_, ts, err := ana.PostMessageContext(t.Context(), ready.Channels["general"],
		slack.MsgOptionText("<@"+ready.Apps["smith"].BotUser+"> hello", false))
	require.NoError(t, err)
	wait(t, "for the answer", func() (bool, string) {
		replies, _, _, err := ana.GetConversationRepliesContext(t.Context(), &slack.GetConversationRepliesParameters{
			ChannelID: ready.Channels["general"], Timestamp: ts,
		})
		if err != nil || len(replies) < 2 {
			return false, fmt.Sprint(err)
		}
		return strings.Contains(replies[1].Text, "stand-in"), replies[1].Text
	})
	require.Equal(t, filepath.Join(dir, "checkouts", "demo"), ready.Checkout)
	_, ts, err = ana.PostMessageContext(t.Context(), ready.Channels["general"],
		slack.MsgOptionText("<@"+ready.Apps["smith"].BotUser+"> please fix the README in demo", false))
	require.NoError(t, err)
	wait(t, "for the operator, its words and its phases", func() (bool, string) {
		replies, _, _, err := ana.GetConversationRepliesContext(t.Context(), &slack.GetConversationRepliesParameters{
			ChannelID: ready.Channels["general"], Timestamp: ts,
		})
		var all string
		for _, m := range replies {
			all += m.Text + "\n"
		}
		return err == nil && strings.Contains(all, "Operator #1 op-fix-readme-in-demo was started for this in demo.") &&
			strings.Contains(all, "tmux -S "+ready.Tmux) && strings.Contains(all, "● branch: `smith/fix-readme-in-demo`") &&
			strings.Count(all, "I am a stand-in") == 2, all
	})
	picture(t, ready.Page+"?as=ana&channel=general&thread="+ts, "op-fix-readme-in-demo was started for this in demo", "dev-operator.png")

	require.NoError(t, dev.Process.Signal(syscall.SIGINT))
	wait(t, "for its end", func() (bool, string) {
		select {
		case err := <-ended:
			require.NoError(t, err)
			return true, ""
		default:
			return false, "it runs"
		}
	})
	require.NoFileExists(t, filepath.Join(dir, "ready.json"))
	wait(t, "until nothing is left", func() (bool, string) { left := processesOf(dir); return len(left) == 0, fmt.Sprint(left) })
	require.Contains(t, said.String(), "Stopped.")
	require.NoDirExists(t, filepath.Dir(ready.Tmux))
}

// picture waits until a page shows a text, and leaves a picture of it among the tests' output.
func picture(t *testing.T, url, text, name string) {
	t.Helper()
	bin, err := tools.Chromium()
	require.NoError(t, err)
	profile, err := os.MkdirTemp("", "smith-chrome")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(profile) }) // the browser writes there while it ends
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ctx, stop = chromedp.NewExecAllocator(ctx, chromedp.ExecPath(bin), chromedp.UserDataDir(profile), chromedp.Headless, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.WindowSize(1280, 1000), chromedp.WSURLReadTimeout(time.Minute))
	defer stop()
	ctx, stop = chromedp.NewContext(ctx)
	defer stop()
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(url)))
	shown := fmt.Sprintf(`new Promise(done => { const look = () => document.body.innerText.includes(%q) ? done(true) : setTimeout(look, 50); look(); })`, text)
	_, err = chromedp.Run(ctx, chromedp.Evaluate[bool](shown, chromedp.EvalAwaitPromise))
	require.NoError(t, err, "the page does not show %q", text)
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	dir := filepath.Join("..", "testoutput")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), png, 0o644))
}
