package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/tools"
)

// patience bounds every wait on a condition; it is never slept through.
const patience = time.Minute

// chrome is one headless Chromium with a profile of its own.
type chrome struct {
	t   *testing.T
	ctx context.Context
}

func newChrome(t *testing.T) *chrome {
	t.Helper()
	bin, err := tools.Chromium()
	require.NoError(t, err)
	profile, err := os.MkdirTemp("", "smith-chrome")
	require.NoError(t, err)
	// The browser writes into its profile while it dies, so the folder goes last.
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(bin), chromedp.UserDataDir(profile), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("lang", "en-GB"), chromedp.WindowSize(1280, 800),
		chromedp.WSURLReadTimeout(time.Minute),
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx))
	return &chrome{t: t, ctx: ctx}
}

// tab is one page in the browser. What the page says on its console and what it
// throws is kept, and fails the test at its end.
type tab struct {
	t        *testing.T
	ctx      context.Context
	troubles chan string
}

func (c *chrome) open(t *testing.T, address string) *tab {
	t.Helper()
	p := &tab{t: t, troubles: make(chan string, 100)}
	ctx, cancel := chromedp.NewContext(c.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.listen))
	t.Cleanup(cancel)
	p.ctx = ctx
	require.NoError(t, chromedp.Do(ctx))
	tell(p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"})
	tell(p, cdplog.Enable, cdp.Empty{})
	p.run(chromedp.Navigate(address))
	t.Cleanup(func() { p.requireNoTrouble(t) })
	return p
}

func (p *tab) listen(ev any) {
	said := ""
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		said = fmt.Sprintf("exception: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			said = "console: an error was logged"
			if len(e.Args) > 0 {
				said = "console: " + string(e.Args[0].Value) + e.Args[0].Description
			}
		}
	case *cdplog.EventEntryAdded:
		// Broken connections and refused calls are tested for where they belong.
		if e.Entry.Level == cdplog.EntryLevelError && e.Entry.Source != cdplog.EntrySourceNetwork {
			said = "log: " + e.Entry.Text
		}
	}
	if said != "" {
		select {
		case p.troubles <- said:
		default:
		}
	}
}

func (p *tab) requireNoTrouble(t *testing.T) {
	for {
		select {
		case said := <-p.troubles:
			t.Errorf("the page complained: %s", said)
		default:
			return
		}
	}
}

// tell sends the browser a command of its protocol.
func tell[P, R any](p *tab, cmd cdp.Command[P, R], params P) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, cmd, params); err != nil {
		p.fail(err)
	}
}

func (p *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.fail(err)
	}
}

func (p *tab) fail(err error) {
	p.t.Helper()
	p.shoot("failed-" + strings.NewReplacer("/", "-", " ", "-").Replace(p.t.Name()))
	text, _ := evaluate[string](p, `document.body.innerText.slice(0, 4000)`)
	p.t.Fatalf("%v\nthe page shows:\n%s", err, text)
}

// evaluate asks the page for a value; a promise is waited for.
func evaluate[T any](p *tab, js string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
}

// ask is evaluate that must succeed.
func ask[T any](p *tab, js string) T {
	p.t.Helper()
	out, err := evaluate[T](p, js)
	if err != nil {
		p.fail(fmt.Errorf("%.200s…: %w", js, err))
	}
	return out
}

// until waits for a JavaScript condition.
func (p *tab) until(condition string) {
	p.t.Helper()
	ok, err := evaluate[bool](p, fmt.Sprintf(`new Promise((done) => {
		const end = Date.now() + %d;
		const look = () => {
			let is = false;
			try { is = Boolean(%s); } catch {}
			if (is || Date.now() > end) done(is); else setTimeout(look, 25);
		};
		look();
	})`, (patience-10*time.Second).Milliseconds(), condition))
	if err == nil && !ok {
		err = fmt.Errorf("never became true: %s", condition)
	}
	if err != nil {
		p.fail(err)
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// shows waits until the first element of the selector contains the text.
func (p *tab) shows(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.textContent.includes(%s))`, quote(selector), quote(text)))
}

// lacks waits until no element of the selector contains the text.
func (p *tab) lacks(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`![...document.querySelectorAll(%s)].some((e) => e.textContent.includes(%s))`, quote(selector), quote(text)))
}

func (p *tab) click(selector string) {
	p.t.Helper()
	p.run(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// typeIn types into what the selector names, key by key.
func (p *tab) typeIn(selector, text string) {
	p.t.Helper()
	p.run(chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible))
}

const shift = 8 // the protocol's bit for a held Shift

// press presses one key as a keyboard does: the browser itself makes the character of
// the key, and drops it where the page took the key.
func (p *tab) press(name string, modifiers int64) {
	p.t.Helper()
	key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: name, Text: name, Modifiers: modifiers}
	if name == "Enter" {
		key.Text, key.WindowsVirtualKeyCode = "\r", 13
	}
	tell(p, input.DispatchKeyEvent, key)
	key.Type, key.Text = input.DispatchKeyEventTypeKeyUp, ""
	tell(p, input.DispatchKeyEvent, key)
}

// say types a line and sends it.
func (p *tab) say(selector, text string) {
	p.t.Helper()
	p.typeIn(selector, text)
	p.press("Enter", 0)
	p.until(fmt.Sprintf(`document.querySelector(%s).value === ""`, quote(selector)))
}

// row is the selector of the row that says the text, in the pane.
func (p *tab) row(pane, text string) string {
	p.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll(%s)].find((r) => r.querySelector('.content')?.textContent.includes(%s))`, quote(pane+" .row"), quote(text))
	p.until(find)
	ts := ask[string](p, find+".dataset.ts")
	return fmt.Sprintf(`%s .row[data-ts="%s"]`, pane, ts)
}

// tool points at a row and presses one of the actions that then appear. A row may move
// while it is aimed at, as a list does that still grows: then it is aimed at again.
func (p *tab) tool(row, label string) {
	p.t.Helper()
	button := fmt.Sprintf(`%s .tools [aria-label="%s"]`, row, label)
	p.until(fmt.Sprintf(`document.querySelector(%s)`, quote(row)))
	for try := range 20 {
		at := ask[[]float64](p, fmt.Sprintf(`(() => { const e = document.querySelector(%s); e.scrollIntoView({block: "nearest"}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`, quote(row)))
		p.run(chromedp.MouseEvent(chromedp.MouseMoved, at[0]+float64(try%2), at[1]))
		if ask[bool](p, fmt.Sprintf(`new Promise((done) => {
			const end = Date.now() + 1000;
			const look = () => document.querySelector(%s) ? done(true) : Date.now() > end ? done(false) : setTimeout(look, 20);
			look();
		})`, quote(button))) {
			break
		}
	}
	p.click(button)
}

// size makes the window that of a desktop or of a phone.
func (p *tab) size(width, height int64, phone bool) {
	p.t.Helper()
	scale := 1.0
	if phone {
		scale = 2
	}
	tell(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: scale, Mobile: phone})
}

func (p *tab) scheme(name string) {
	p.t.Helper()
	tell(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// shoot keeps a picture of the window below testoutput/ at the project's root.
func (p *tab) shoot(name string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Logf("no picture of %s: %v", name, err)
		return
	}
	dir := filepath.Join(projectRoot(p.t), "testoutput")
	require.NoError(p.t, os.MkdirAll(dir, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, "page-"+name+".png"), png, 0o644))
}

func projectRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		require.NotEqual(t, dir, up, "no go.mod above the test")
		dir = up
	}
}
