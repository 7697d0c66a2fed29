package e2e_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
	"agentsmith/rules"
)

// X1: with a list, only those on it are worked for; the others get one honest line.
func TestX1_OnlyThoseOnTheListAreWorkedFor(t *testing.T) {
	t.Parallel()
	ana := ""
	for _, u := range home(t).Slack.State().Users {
		if u.Name == "ana" {
			ana = u.ID
		}
	}
	s := start(t, withSeats("smith"), withConfig(map[string]any{"access": map[string]any{"talk": []string{ana}}}))
	r := s.room(t)
	require.Contains(t, r.answer("smith", r.say("ana", "@smith [[say yes]]")).Text, "yes")
	ts := r.say("ben", "@smith [[say no]]")
	require.Contains(t, r.answer("smith", ts).Text, told(rules.ReasonNotMember))
	require.Empty(t, r.runs(ts))
}

// X1: for permission doubt is no, but a passing doubt is not an answer: the line waits
// until Slack says who it is.
func TestX1_ALineWaitsUntilSlackSaysWhoItIs(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	heal := s.fault(t, slackbox.Fault{Kind: slackbox.ServerError, Method: "users.info"})
	ts := r.say("ana", "@smith [[say known]]")
	wait(t, "for a question in vain", func() (bool, string) {
		for _, c := range s.Slack.Log(0).Calls {
			if c.Method == "users.info" && !c.OK || c.Status == 500 {
				return true, ""
			}
		}
		return false, ""
	})
	require.Empty(t, r.runs(ts))
	heal()
	require.Contains(t, r.answer("smith", ts).Text, "known")
}

// X2: no post of ours mentions a channel or a person because an agent wrote so. That no
// mention is left is what every case is audited for.
func TestX2_NoPostMentionsBecauseAnAgentWroteSo(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	ben := r.person("ben")
	for _, text := range []string{
		"<!channel> <!here> <!everyone> look",
		"<@" + ben + "> <@" + ben + "|ben> hello",
		"<!subteam^S0123456|@all> and @channel @here @everyone",
		"```<!channel>``` `<@" + ben + ">` <\u200b!here>",
		"&lt;!channel&gt; &lt;@" + ben + "&gt;",
	} {
		r.answer("smith", r.say("ana", "@smith [[say "+text+"]]"))
	}
}

// X2: what a stranger writes breaks no line of our logs.
func TestX2_HostileTextReachesNoLogUnescaped(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	ts := r.say("ana", "@smith \x1b[31mred\x1b]0;title\x07 \u202Ereversed\nlevel=ERROR msg=forged [[say fine]]")
	r.answer("smith", ts)
	for _, name := range []string{"starter", "worker"} {
		log := r.log(name)
		require.NotContains(t, log, "\x1b")
		require.NotContains(t, log, "\u202E")
		require.NotRegexp(t, regexp.MustCompile(`(?m)^level=ERROR msg=forged`), log)
	}
}

// X4: skipped permissions are refused by the config, with a line that says why.
func TestX4_SkippedPermissionsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	require.NoError(t, s.Starter.Stop(20*time.Second))
	text, err := os.ReadFile(s.ConfigPath)
	require.NoError(t, err)
	bad := strings.Replace(string(text), "name: smith", "name: smith\n      permission_mode: bypassPermissions", 1)
	require.NoError(t, os.WriteFile(s.ConfigPath, []byte(bad), 0o600))
	require.Error(t, s.StartStarter(t.Context()))
	require.Regexp(t, `smith\.yaml:\d+: .*bypassPermissions`, s.log("starter"))
	require.NoError(t, os.WriteFile(s.ConfigPath, text, 0o600))
	s.restartStarter(t)
}

// X4: every listener of ours is on loopback.
func TestX4_EveryListenerIsOnLoopback(t *testing.T) {
	t.Parallel()
	s := home(t)
	for _, pid := range []int{s.Worker.PID(), s.Starter.PID(), s.Stack.Temporal.PID()} {
		addrs := listening(t, pid)
		require.NotEmpty(t, addrs, "pid %d listens", pid)
		for _, a := range addrs {
			require.True(t, a.IsLoopback(), "pid %d listens on %s", pid, a)
		}
	}
}

var inode = regexp.MustCompile(`socket:\[(\d+)\]`)

// listening are the addresses that a process listens on.
func listening(t *testing.T, pid int) (out []net.IP) {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	own := map[string]bool{}
	for _, fd := range fds {
		link, _ := os.Readlink(fd)
		if m := inode.FindStringSubmatch(link); m != nil {
			own[m[1]] = true
		}
	}
	for _, file := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, file))
		require.NoError(t, err)
		for line := range strings.SplitSeq(string(text), "\n") {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" || !own[f[9]] {
				continue
			}
			out = append(out, hexIP(t, strings.Split(f[1], ":")[0]))
		}
	}
	return out
}

// hexIP reads an address of /proc/net/tcp: words of four bytes, each in host order.
func hexIP(t *testing.T, hex string) net.IP {
	t.Helper()
	var ip net.IP
	for i := 0; i+8 <= len(hex); i += 8 {
		var b [4]byte
		for j := range b {
			_, err := fmt.Sscanf(hex[i+2*j:i+2*j+2], "%02X", &b[3-j])
			require.NoError(t, err)
		}
		ip = append(ip, b[:]...)
	}
	return ip
}

// X6: turns at once are capped, and a line that waits is told its place.
func TestX6_ALineThatWaitsForAFreeAgentIsToldItsPlace(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"), withConfig(map[string]any{"limits": map[string]any{"concurrent_turns": 1}}))
	r := s.room(t)
	busy := r.say("ana", "@smith [[hang]]")
	r.running(busy)
	next := r.say("ana", "@smith [[say next]]")
	r.status(next, "next in line")
	third := r.say("ben", "@smith [[say third]]")
	r.status(third, "number 2 in line")
	require.Len(t, r.agentsOf(r.id, busy), len(s.agents()), "only one runs")
	stop := r.reply("ana", busy, "stop")
	r.post("smith/" + r.id + "/" + stop + "/stop")
	require.Contains(t, r.answer("smith", next).Text, "next")
	require.Contains(t, r.answer("smith", third).Text, "third")
}

// status waits until a thread's status holds text.
func (r *room) status(root, text string) {
	r.t.Helper()
	wait(r.t, "for the status "+text, func() (bool, string) {
		seen := ""
		for _, st := range r.Slack.Log(0).Statuses {
			if st.Channel == r.id && st.ThreadTS == root {
				seen += st.Status + "; "
			}
		}
		return strings.Contains(seen, text), seen
	})
}

// X6: the day's cost is capped; over it one honest line.
func TestX6_ADaysBudgetIsKept(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"), withConfig(map[string]any{"limits": map[string]any{"daily_cost_usd": 0.000001}}))
	r := s.room(t)
	require.Contains(t, r.answer("smith", r.say("ana", "@smith [[say the last one]]")).Text, "the last one")
	ts := r.say("ana", "@smith [[say too much]]")
	require.Contains(t, r.answer("smith", ts).Text, told(rules.ReasonBudget))
	require.Empty(t, r.runs(ts))
}

// X6: time and output of a turn are capped, each with its own honest line.
func TestX6_ATurnsTimeAndOutputAreCapped(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"), withConfig(map[string]any{
		"limits": map[string]any{"turn_timeout": "20s", "turn_output_bytes": 300000},
	}))
	r := s.room(t)
	slow := r.say("ana", "@smith [[hang]]")
	much := r.say("ana", "@smith [[long 400000]]")
	require.Contains(t, r.answer("smith", much).Text, told(rules.ReasonAgentOutput))
	require.Contains(t, r.answer("smith", slow).Text, told(rules.ReasonAgentTimeout))
	require.Empty(t, s.agents())
}

func (s *system) person(name string) string {
	for _, u := range s.Slack.State().Users {
		if u.Name == name {
			return u.ID
		}
	}
	return ""
}
