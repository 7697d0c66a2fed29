package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"agentsmith/rules"
)

func humanTurn() rules.HumanTurnFacts {
	return rules.HumanTurnFacts{Author: rules.Person, Reportable: true}
}

func TestHumanTurn_IsAPersonsLine(t *testing.T) {
	require.True(t, rules.HumanTurn(humanTurn()))
}

// Each conjunct of O1 has its own case. That a schedule and a webhook have other authors
// makes IsCron unreachable in the workflow: it is tested here, and guards nothing there.
func TestHumanTurn_NeedsEveryConjunct(t *testing.T) {
	for name, change := range map[string]func(*rules.HumanTurnFacts){
		"webhook sender": func(f *rules.HumanTurnFacts) { f.Author = rules.Webhook },
		"another seat":   func(f *rules.HumanTurnFacts) { f.Author = rules.Sibling },
		"an outsider":    func(f *rules.HumanTurnFacts) { f.Author = rules.Outsider },
		"cron":           func(f *rules.HumanTurnFacts) { f.IsCron = true },
		"handed on":      func(f *rules.HumanTurnFacts) { f.SiblingHop = 1 },
		"self-driven":    func(f *rules.HumanTurnFacts) { f.SelfDriveHop = 1 },
		"nowhere to say": func(f *rules.HumanTurnFacts) { f.Reportable = false },
		"stood down":     func(f *rules.HumanTurnFacts) { f.StoodDown = true },
	} {
		t.Run(name, func(t *testing.T) {
			f := humanTurn()
			change(&f)
			require.False(t, rules.HumanTurn(f))
		})
	}
}

func TestReadDisposition_SpawnsOnExplicitWorkOnly(t *testing.T) {
	outage := rules.WorkDisposition{Kind: rules.KindQuestion, Unavailable: true}
	for in, want := range map[string]rules.WorkDisposition{
		`{"kind":"work","slug":"fix-login","repo":"web"}`:     {Kind: rules.KindWork, Slug: "fix-login", Repo: "web"},
		`{"kind":"question","slug":"fix-login","repo":"web"}`: {Kind: rules.KindQuestion},
		`{"kind":"work"}`: {Kind: rules.KindWork},
		`{"kind":"work","slug":"../x","repo":"a/../../b"}`:         {Kind: rules.KindWork},
		`{"kind":"work","slug":"-t","repo":"web\u0000"}`:           {Kind: rules.KindWork},
		`{"kind":"work","slug":"` + strings.Repeat("a", 41) + `"}`: {Kind: rules.KindWork},
		`{"kind":"Work"}`:    outage,
		`{"kind":"chatter"}`: outage,
		`{"kind":null}`:      outage,
		`{"kind":7}`:         outage,
		`{}`:                 outage,
		``:                   outage,
		`It is work.`:        outage,
		`["work"]`:           outage,
		`{"kind":"work"`:     outage,
	} {
		require.Equal(t, want, rules.ReadDisposition([]byte(in)), in)
	}
}

func FuzzReadDisposition(f *testing.F) {
	f.Add([]byte(`{"kind":"work","slug":"fix-login","repo":"web"}`))
	f.Add([]byte(`{"kind":"question"}`))
	f.Add([]byte(`{"kind":"work","slug":"../x","repo":"\u001b[31m"}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		d := rules.ReadDisposition(answer)
		require.Contains(t, []string{rules.KindWork, rules.KindQuestion}, d.Kind)
		require.False(t, d.Unavailable && d.Kind == rules.KindWork)
		require.True(t, d.Slug == "" || rules.ValidSlug(d.Slug))
		require.Equal(t, rules.Visible(d.Repo), d.Repo)
		require.NotContains(t, d.Repo, "/")
	})
}

func TestResolveCheckout_IsExact(t *testing.T) {
	set := []rules.Checkout{{Name: "web", Path: "/src/web"}, {Name: "web-api", Path: "/src/web-api"}, {Name: "twice", Path: "/a/twice"}, {Name: "twice", Path: "/b/twice"}}
	got, ok := rules.ResolveCheckout(set, "web")
	require.True(t, ok)
	require.Equal(t, "/src/web", got.Path)
	for _, asked := range []string{"", "we", "WEB", "web-", "web ", "../web", "/src/web", "twice", "other"} {
		_, ok := rules.ResolveCheckout(set, asked)
		require.False(t, ok, "%q", asked)
	}
	_, ok = rules.ResolveCheckout(set[:1], "")
	require.False(t, ok, "one checkout is no default (O4)")
	_, ok = rules.ResolveCheckout([]rules.Checkout{{Path: "/src/nameless"}}, "")
	require.False(t, ok, "a checkout without a name is not what nobody named")
}

func TestSlug_IsAlwaysValid(t *testing.T) {
	require.Equal(t, "fix-the-login-page", rules.SlugFor("<@U1> Fix the login page!"))
	require.Equal(t, "fix-the-login-page", rules.SlugFor("@smith: Hey, could you please fix the login page?"))
	require.Equal(t, "add-a-b-to-c", rules.SlugFor("add a &amp; b to c, and d, and e"))
	require.Equal(t, "is-1-2-see", rules.SlugFor("is 1 < 2? see <https://x.example|this page>"))
	for _, nothing := range []string{"", "修复登录", "please", "a", "!!", "<https://x.example>", strings.Repeat("a", 100)} {
		require.Equal(t, "task", rules.SlugFor(nothing), nothing)
	}
	for _, bad := range []string{"", "ab", "-ab", "ab-", "a--b", "A-b", "op foo", "foo:bar", "foo.bar", "=foo", "foo\n", strings.Repeat("a", 41)} {
		require.False(t, rules.ValidSlug(bad), "%q", bad)
	}
	rapid.Check(t, func(t *rapid.T) {
		slug := rules.SlugFor(rapid.String().Draw(t, "text"))
		require.True(t, rules.ValidSlug(slug), slug)
		slug = rapid.OneOf(rapid.Just(slug), rapid.StringMatching(`[a-z0-9]{1,3}(-[a-z0-9]{1,3}){1,9}`)).Draw(t, "slug")
		ts := rapid.StringMatching(`1[0-9]{9}\.[0-9]{6}`).Draw(t, "root")
		other := rapid.StringMatching(`1[0-9]{9}\.[0-9]{6}`).Draw(t, "another root")
		suffixed := rules.SuffixSlug(slug, ts)
		require.True(t, rules.ValidSlug(suffixed), suffixed)
		require.NotEqual(t, slug, suffixed)
		if ts != other {
			require.NotEqual(t, suffixed, rules.SuffixSlug(slug, other), "two roots, two slugs (O6)")
		}
	})
}

// Every disposition that leaves work undone says so, and no other says anything (O3).
func TestGapLine_SaysEachGap(t *testing.T) {
	for d, says := range map[rules.Disposition]bool{
		rules.DispQuestion: false, rules.DispBound: false, rules.DispSpawned: false, rules.DispDisabled: false,
		rules.DispUnbound: true, rules.DispUnscoped: true, rules.DispUnavailable: true,
	} {
		require.Equal(t, says, rules.GapLine(d, "") != "", d)
	}
	for _, why := range []string{rules.GapLauncher, rules.GapStore, rules.GapTask, rules.GapBusy, rules.GapTaken, rules.GapLimit, rules.GapLost, rules.GapNotAllowed} {
		require.Contains(t, rules.GapLine(rules.DispUnbound, why), "No operator was started: ")
	}
	require.NotContains(t, rules.GapLine(rules.DispUnscoped, "a`b\n<!here>"), "\n")
}

func TestIsStopOperator_IsTheWholeLine(t *testing.T) {
	for text, want := range map[string]bool{
		"stop operator": true, "Stop  Operator!": true, "<@U1> stop operator": true, "`stop operator`.": true,
		"stop": false, "stop the operator": false, "please stop operator": false, "<@U2> stop operator": false, "stop operator now": false,
	} {
		require.Equal(t, want, rules.IsStopOperator(text, "U1"), text)
		if want {
			require.False(t, rules.IsStop(text, "U1"), text)
		}
	}
	require.True(t, rules.IsStop("STOP!", "U1"))
}
