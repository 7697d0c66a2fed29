package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"agentsmith/internal/config"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/slackbox"
	"agentsmith/internal/telemetry"
	"agentsmith/internal/tools"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// devServer is the real local Temporal server.
func devServer(t *testing.T, attributes bool) *testsuite.DevServer {
	t.Helper()
	bin, err := tools.Temporal()
	require.NoError(t, err)
	args := []string{
		"--dynamic-config-value", "history.transferProcessorMaxPollRPS=2000",
		"--dynamic-config-value", "matching.numTaskqueueReadPartitions=1",
		"--dynamic-config-value", "matching.numTaskqueueWritePartitions=1",
	}
	if attributes {
		for _, k := range workflows.SearchKeys() {
			args = append(args, "--search-attribute", k.GetName()+"="+typeName(k))
		}
	}
	quiet := temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	s, err := testsuite.StartDevServer(t.Context(), testsuite.DevServerOptions{
		ExistingPath: bin, LogLevel: "error", ExtraArgs: args, ClientOptions: &client.Options{Logger: quiet},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

// listener is a brain that only listens.
type listener struct {
	mu  sync.Mutex
	got []workflows.Trigger
	ins []workflows.ReplyInput
	ids []string
}

// Reply has the type name of the real one.
func (l *listener) Reply(ctx workflow.Context, in workflows.ReplyInput) error {
	l.mu.Lock()
	l.ins = append(l.ins, in)
	l.ids = append(l.ids, workflow.GetInfo(ctx).WorkflowExecution.ID)
	l.mu.Unlock()
	signals := workflow.GetSignalChannel(ctx, workflows.SignalAddContext)
	for {
		var t workflows.Trigger
		signals.Receive(ctx, &t)
		l.mu.Lock()
		l.got = append(l.got, t)
		l.mu.Unlock()
	}
}

func (l *listener) triggers() []workflows.Trigger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]workflows.Trigger(nil), l.got...)
}

func (l *listener) inputs() []workflows.ReplyInput {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]workflows.ReplyInput(nil), l.ins...)
}

// listens runs a worker with the listener instead of brains.
func listens(t *testing.T, c client.Client) *listener {
	t.Helper()
	l := &listener{}
	w := worker.New(c, workflows.TaskQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(l.Reply, workflow.RegisterOptions{Name: workflows.ReplyType})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return l
}

// townConfig is the config file of a starter for the local Slack and its environment.
func townConfig(t *testing.T, box *slackbox.Server, temporal string, more string) string {
	t.Helper()
	dir := t.TempDir()
	for _, a := range box.State().Apps {
		if a.Seat {
			t.Setenv(strings.ToUpper(a.Name)+"_BOT_TOKEN", a.BotToken)
			t.Setenv(strings.ToUpper(a.Name)+"_APP_TOKEN", a.AppToken)
		}
	}
	t.Setenv("TEMPORAL_ADDRESS", temporal)
	t.Setenv("TEMPORAL_NAMESPACE", "default")
	path := filepath.Join(dir, "smith.yaml")
	require.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf(`
data_dir: %s
slack: {api_url: %q, request_timeout: 5s}
seats: [{name: smith}, {name: trinity}]
listen: {starter: "", worker: ""}
drain: 10s
log: {level: error, format: text}
%s`, dir, box.URL(), more)), 0o600))
	return path
}

// startsUp runs the real main's run and returns how to stop it.
func startsUp(t *testing.T, path string) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, flags{Config: path}) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() { cancel(); err = <-ended })
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

func TestStarter_TheStoryOfALineThroughTheRealServer(t *testing.T) {
	server := devServer(t, true)
	l := listens(t, server.Client())
	box := slackbox.New(slackbox.Options{})
	require.NoError(t, box.Start(t.Context(), ""))
	t.Cleanup(func() { _ = box.Close() })
	var general, trinityUser string
	for _, c := range box.State().Channels {
		if c.Name == "general" {
			general = c.ID
		}
	}
	for _, a := range box.State().Apps {
		if a.Name == "trinity" {
			trinityUser = a.BotUser
		}
	}
	schedule := fmt.Sprintf(`schedules: [{name: standup, seat: smith, channel: %s, cron: "0 9 * * 1-5", prompt: "Ask what is planned."}]`, general)
	path := townConfig(t, box, server.FrontendHostPort(), schedule)
	stop := startsUp(t, path)
	eventually(t, func() bool { return connected(box, "smith") && connected(box, "trinity") }, "both doors are open")

	ana := box.Person("ana")
	ts, err := ana.Say("general", "@smith hello")
	require.NoError(t, err)
	has := func(kind workflows.Kind, ts string) func() bool {
		return func() bool {
			for _, x := range l.triggers() {
				if x.Kind == kind && (x.Line.TS == ts || x.EventTS == ts) {
					return true
				}
			}
			return false
		}
	}
	eventually(t, has(workflows.KindLine, ts), "the line")
	reply, err := ana.Reply("general", ts, "and more")
	require.NoError(t, err)
	eventually(t, has(workflows.KindLine, reply), "the thread of two")
	end, err := ana.Reply("general", ts, "STOP.")
	require.NoError(t, err)
	eventually(t, has(workflows.KindStop, end), "the stop")
	require.Len(t, l.inputs(), 1, "one brain for the thread")

	in := l.inputs()[0]
	require.Equal(t, "smith", in.Seat)
	require.Equal(t, ts, in.Thread.Root)
	require.Equal(t, in.Trigger, l.triggers()[0], "the input and the signal are the same payload")
	require.Equal(t, "main", in.Settings.Box)
	require.Equal(t, 30*time.Minute, in.Settings.TurnTimeout)

	desc, err := server.Client().DescribeWorkflow(t.Context(), workflows.ReplyID("smith", in.Thread), "")
	require.NoError(t, err)
	attributes := desc.RawResponse.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()
	require.Equal(t, `"smith"`, string(attributes["SmithSeat"].GetData()))
	require.Equal(t, `"`+general+`"`, string(attributes["SmithChannel"].GetData()))
	require.Equal(t, `"`+ts+`"`, string(attributes["SmithThread"].GetData()))
	require.Contains(t, string(desc.RawResponse.GetWorkflowExecutionInfo().GetMemo().GetFields()["link"].GetData()), "/archives/"+general+"/p")

	both, err := ana.Say("general", "<@"+trinityUser+"> and @smith, both of you")
	require.NoError(t, err)
	eventually(t, func() bool {
		seats := map[string]bool{}
		for _, x := range l.inputs() {
			if x.Thread.Root == both {
				seats[x.Seat] = true
			}
		}
		return len(seats) == 2
	}, "each seat has its own brain")

	handle := server.Client().ScheduleClient().GetHandle(t.Context(), "smith-standup")
	require.NoError(t, handle.Trigger(t.Context(), client.ScheduleTriggerOptions{}))
	eventually(t, func() bool {
		for _, x := range l.inputs() {
			if x.Trigger.IsCron {
				return true
			}
		}
		return false
	}, "the schedule")
	for _, x := range l.inputs() {
		if x.Trigger.IsCron {
			require.Equal(t, rules.Schedule, x.Trigger.Author)
			require.Equal(t, "Ask what is planned.", x.Trigger.Prompt)
			require.Equal(t, general, x.Thread.Channel)
			require.Empty(t, x.Thread.Root)
		}
	}

	require.NoError(t, stop())
	missed, err := ana.Say("general", "@smith while you were away")
	require.NoError(t, err)
	startsUp(t, path)
	eventually(t, has(workflows.KindLine, missed), "what was missed")
}

func connected(box *slackbox.Server, app string) bool {
	for _, a := range box.State().Apps {
		if a.Name == app {
			return len(a.Sockets) > 0
		}
	}
	return false
}

func TestBoot_RefusesWithOneLineThatSaysHowToGoOn(t *testing.T) {
	server := devServer(t, false)
	box := slackbox.New(slackbox.Options{})
	require.NoError(t, box.Start(t.Context(), ""))
	t.Cleanup(func() { _ = box.Close() })
	path := townConfig(t, box, server.FrontendHostPort(), "")

	err := run(t.Context(), flags{Config: path})
	require.EqualError(t, err, "the namespace default lacks search attributes; create them with `temporal operator search-attribute create --namespace default --name SmithSeat --type Keyword --name SmithChannel --type Keyword --name SmithThread --type Keyword` and start again")

	t.Setenv("TEMPORAL_NAMESPACE", "elsewhere")
	err = run(t.Context(), flags{Config: path})
	require.ErrorContains(t, err, "temporal operator namespace create --namespace elsewhere")

	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err = run(ctx, flags{Config: path})
	require.ErrorContains(t, err, "TEMPORAL_ADDRESS")

	t.Setenv("SMITH_BOT_TOKEN", "")
	err = run(t.Context(), flags{Config: path})
	require.ErrorContains(t, err, "SMITH_BOT_TOKEN")
}

func TestBoot_RefusesASeatThatDoesNotKnowItself(t *testing.T) {
	box := slackbox.New(slackbox.Options{})
	require.NoError(t, box.Start(t.Context(), ""))
	t.Cleanup(func() { _ = box.Close() })
	apps := map[string]slackbox.App{}
	for _, a := range box.State().Apps {
		apps[a.Name] = a.App
	}
	clientOf := func(s config.Seat) *slackapi.Client {
		return slackapi.New(slackapi.Options{Token: s.BotToken.Reveal(), APIURL: box.URL()})
	}
	seat := func(name, token string) config.Seat {
		return config.Seat{Name: name, BotTokenEnv: strings.ToUpper(name) + "_BOT_TOKEN", BotToken: config.Secret(token)}
	}
	ids, err := identify(t.Context(), []config.Seat{seat("smith", apps["smith"].BotToken), seat("trinity", apps["trinity"].BotToken)}, clientOf)
	require.NoError(t, err)
	require.Equal(t, apps["smith"].BotUser, ids[0].UserID)

	r := rosterOf(ids[0], ids, &config.Config{
		Seats:      []config.Seat{{Name: "smith"}, {Name: "trinity"}, {Name: "neo", Remote: true, BotUser: "UNEO"}},
		Dispatcher: config.Dispatcher{BotUser: "UFORCE"},
	})
	require.Equal(t, rules.Self, rules.Who(rules.Line{User: apps["smith"].BotUser}, r))
	require.Equal(t, rules.Sibling, rules.Who(rules.Line{BotID: apps["trinity"].BotID}, r))
	require.Equal(t, rules.Sibling, rules.Who(rules.Line{User: "UNEO"}, r))
	require.Equal(t, rules.Dispatcher, rules.Who(rules.Line{User: "UFORCE"}, r))

	_, err = identify(t.Context(), []config.Seat{seat("smith", "xoxb-nobody")}, clientOf)
	require.ErrorContains(t, err, "so the starter does not start")
	require.ErrorContains(t, err, "check the token in SMITH_BOT_TOKEN")
	require.NotContains(t, err.Error(), "xoxb-nobody")
	_, err = identify(t.Context(), []config.Seat{seat("smith", apps["smith"].BotToken), seat("trinity", apps["smith"].BotToken)}, clientOf)
	require.ErrorContains(t, err, "are one Slack app")
	for _, u := range box.State().Users {
		if u.Name == "ana" {
			_, err = identify(t.Context(), []config.Seat{seat("smith", u.Token)}, clientOf)
			require.ErrorContains(t, err, "is no bot's")
		}
	}
}

func TestMissingAttributes_TellsAWrongType(t *testing.T) {
	err := missingAttributes(map[string]enumspb.IndexedValueType{"SmithSeat": enumspb.INDEXED_VALUE_TYPE_TEXT}, "default")
	require.ErrorContains(t, err, "SmithSeat is Text and must be Keyword")
}

func TestSchedules_MatchTheConfigAndTouchNoOther(t *testing.T) {
	server := devServer(t, true)
	sc := server.Client().ScheduleClient()
	foreign := func(id string) {
		_, err := sc.Create(t.Context(), client.ScheduleOptions{
			ID: id, Spec: client.ScheduleSpec{CronExpressions: []string{"0 0 1 1 *"}},
			Action: &client.ScheduleWorkflowAction{ID: "x", Workflow: "Other", TaskQueue: "other"},
		})
		require.NoError(t, err)
	}
	foreign("backup")
	foreign("smith-taken")
	s := &schedules{client: sc, team: team, log: slog.New(slog.DiscardHandler), settings: map[string]workflows.Settings{"smith": {Box: "main"}}}
	standup := config.Schedule{Name: "standup", Seat: "smith", Channel: "C1", Cron: "0 9 * * 1-5", Timezone: "UTC", Prompt: "a"}
	weekly := config.Schedule{Name: "weekly", Seat: "smith", Channel: "C1", Cron: "0 9 * * 1", Timezone: "UTC", Prompt: "b"}
	others := config.Schedule{Name: "others", Seat: "trinity", Channel: "C1", Cron: "0 9 * * 1", Timezone: "UTC", Prompt: "c"}
	require.NoError(t, s.sync(t.Context(), []config.Schedule{standup, weekly, others}))
	exists := func(id string) bool {
		_, err := sc.GetHandle(t.Context(), id).Describe(t.Context())
		return err == nil
	}
	require.True(t, exists("smith-standup"))
	require.True(t, exists("smith-weekly"))
	require.False(t, exists("smith-others"), "the seat of another starter")

	handle := sc.GetHandle(t.Context(), "smith-standup")
	require.NoError(t, handle.Pause(t.Context(), client.SchedulePauseOptions{Note: "on holiday"}))
	standup.Prompt, standup.Cron = "another", "30 8 * * 1-5"
	// The list of schedules is a little behind the schedules themselves.
	eventually(t, func() bool {
		require.NoError(t, s.sync(t.Context(), []config.Schedule{standup}))
		return !exists("smith-weekly")
	}, "what the config no longer has is deleted")
	desc, err := handle.Describe(t.Context())
	require.NoError(t, err)
	require.True(t, desc.Schedule.State.Paused, "what a person changed stays")
	action := desc.Schedule.Action.(*client.ScheduleWorkflowAction)
	require.Len(t, action.Args, 1)
	require.Contains(t, fmt.Sprint(action.Args[0]), "another")
	require.NotEmpty(t, desc.Schedule.Spec.Calendars, "the cron became a calendar")
	require.Equal(t, 30, desc.Schedule.Spec.Calendars[0].Minute[0].Start)
	require.True(t, exists("backup"))

	taken := standup
	taken.Name = "taken"
	require.ErrorContains(t, s.sync(t.Context(), []config.Schedule{standup, taken}), "it is left alone")
	require.True(t, exists("smith-taken"))
}

func TestBrains_TellsAndWakesTheRealServer(t *testing.T) {
	server := devServer(t, true)
	b := &seatBrains{client: server.Client(), seat: "smith"}
	thread := rules.Thread{Team: team, Channel: "C1", Root: ts1}
	line := rules.Line{LineKey: rules.LineKey{Team: team, Channel: "C1", TS: ts1}, Root: ts1, Text: "hi"}
	require.ErrorIs(t, b.tell(t.Context(), thread, workflows.Trigger{Kind: workflows.KindEdit, Line: line}), errNoBrain)
	require.NoError(t, b.wake(t.Context(), thread, workflows.Trigger{Kind: workflows.KindLine, Line: line}))
	require.NoError(t, b.tell(t.Context(), thread, workflows.Trigger{Kind: workflows.KindEdit, Line: line}))
	long := thread
	long.Root = strings.Repeat("9", 2000)
	require.ErrorIs(t, b.wake(t.Context(), long, workflows.Trigger{Kind: workflows.KindLine, Line: line}), errPoison)

	broken := signalled("signal with start", thread, serviceerror.NewUnavailable("away"))
	require.NotErrorIs(t, broken, errPoison)
	require.NotErrorIs(t, broken, errNoBrain)
	require.NotErrorIs(t, signalled("signal with start", thread, serviceerror.NewNotFound("namespace")), errNoBrain)
}

func TestAlarms_AreSaidInTheOpsChannel(t *testing.T) {
	box := slackbox.New(slackbox.Options{})
	require.NoError(t, box.Start(t.Context(), ""))
	t.Cleanup(func() { _ = box.Close() })
	var general string
	for _, c := range box.State().Channels {
		if c.Name == "general" {
			general = c.ID
		}
	}
	var seats []identity
	for _, a := range box.State().Apps {
		if a.Name == "smith" {
			seats = append(seats, identity{Seat: config.Seat{Name: a.Name}, client: slackapi.New(slackapi.Options{Token: a.BotToken, APIURL: box.URL()})})
		}
	}
	health := &telemetry.Health{}
	l := &telemetry.Loud{Log: slog.New(slog.DiscardHandler), Health: health, Say: slackapi.SayTo(general, speakers(seats))}
	a := alarms{l}
	a.Raise("store smith", "The store is full of <@U1>.")
	a.Raise("store smith", "The store is full of <@U1>.")
	l.Wait()
	require.False(t, health.Report(t.Context()).OK)
	a.Clear("store smith", "It has room again.")
	l.Wait()
	require.True(t, health.Report(t.Context()).OK)
	said := box.Log(0).Messages
	require.Len(t, said, 2)
	require.NotContains(t, said[0].Text, "<@U1>")
	require.Nil(t, slackapi.SayTo("", speakers(seats)))
}
