package slackbox_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
)

// fullScopes is a world whose smith may do everything.
func fullScopes() *slackbox.Seed {
	seed := slackbox.DefaultSeed()
	seed.Apps[0].Scopes = append(slackbox.SeatScopes(), "channels:join", "channels:manage", "groups:write", "mpim:write", "team:read")
	return &seed
}

func TestAuth_EveryTokenSaysWhoItIs(t *testing.T) {
	s := start(t, slackbox.Options{})
	me, err := bot(s, "smith").AuthTest()
	require.NoError(t, err)
	require.Equal(t, []string{smithID, "B0SMITH0001", "T0SMITH0001"}, []string{me.UserID, me.BotID, me.TeamID})
	require.NotEmpty(t, me.Header.Get("X-OAuth-Scopes"))
	me, err = person(s, "olga").AuthTest()
	require.NoError(t, err)
	require.Equal(t, []string{"U0OLGA00001", "", "T0OTHER0001"}, []string{me.UserID, me.BotID, me.TeamID})
	s.RevokeToken("xoxb-local-smith")
	_, err = bot(s, "smith").AuthTest()
	require.EqualError(t, err, "token_revoked")
	s.RestoreToken("xoxb-local-smith")
	_, err = bot(s, "smith").AuthTest()
	require.NoError(t, err)
}

func TestScopes_AMissingOneIsNamed(t *testing.T) {
	s := start(t, slackbox.Options{})
	_, err := bot(s, "smith").GetTeamInfo()
	var e slack.SlackErrorResponse
	require.ErrorAs(t, err, &e)
	require.Equal(t, "missing_scope", e.Err)
	require.Equal(t, "team:read", e.Needed)
	dm, err := s.Person("ana").DM("agent-force")
	require.NoError(t, err)
	_, err = bot(s, "agent-force").GetConversationHistory(&slack.GetConversationHistoryParameters{ChannelID: dm})
	require.EqualError(t, err, "missing_scope")
}

func TestUsers_KindsAndPages(t *testing.T) {
	s := start(t, slackbox.Options{})
	api := bot(s, "smith")
	gil, err := api.GetUserInfo("U0GIL000001")
	require.NoError(t, err)
	require.True(t, gil.IsRestricted)
	olga, err := api.GetUserInfo("U0OLGA00001")
	require.NoError(t, err)
	require.True(t, olga.IsStranger)
	require.Equal(t, "T0OTHER0001", olga.TeamID)
	dora, err := api.GetUserInfo("U0DORA00001")
	require.NoError(t, err)
	require.True(t, dora.Deleted)
	_, err = api.GetUserInfo("U0")
	require.EqualError(t, err, "user_not_found")
	two, err := api.GetUsersInfo(anaID, "U0BEN000001")
	require.NoError(t, err)
	require.Len(t, *two, 2)
	all, err := api.GetUsers(slack.GetUsersOptionLimit(2))
	require.NoError(t, err)
	require.Len(t, all, 9, "five people, three bot users and Slackbot, in pages of two")
	b, err := api.GetBotInfo(slack.GetBotInfoParameters{Bot: "B0TRINITY01"})
	require.NoError(t, err)
	require.Equal(t, "U0TRINITY01", b.UserID)
}

func TestHistory_WindowsAndPages(t *testing.T) {
	s := start(t, slackbox.Options{})
	var ts []string
	for i := range 7 {
		one, err := s.Person("ana").Say("general", fmt.Sprint(i))
		require.NoError(t, err)
		ts = append(ts, one)
	}
	api := bot(s, "smith")
	read := func(p slack.GetConversationHistoryParameters) (out []string) {
		p.ChannelID = general
		for {
			h, err := api.GetConversationHistory(&p)
			require.NoError(t, err)
			for _, m := range h.Messages {
				out = append(out, m.Text)
			}
			if p.Cursor = h.ResponseMetaData.NextCursor; p.Cursor == "" {
				require.False(t, h.HasMore)
				return out
			}
			require.True(t, h.HasMore)
		}
	}
	require.Equal(t, []string{"6", "5", "4", "3", "2", "1", "0"}, read(slack.GetConversationHistoryParameters{Limit: 3}))
	require.Equal(t, []string{"4", "3"}, read(slack.GetConversationHistoryParameters{Oldest: ts[2], Latest: ts[5]}))
	require.Equal(t, []string{"5", "4", "3", "2"}, read(slack.GetConversationHistoryParameters{Oldest: ts[2], Latest: ts[5], Inclusive: true, Limit: 2}))
	require.Equal(t, []string{"6"}, read(slack.GetConversationHistoryParameters{Oldest: ts[5]}))
	for want, p := range map[string]slack.GetConversationHistoryParameters{
		"invalid_ts_oldest": {ChannelID: general, Oldest: "x"}, "invalid_ts_latest": {ChannelID: general, Latest: "x"},
		"invalid_cursor": {ChannelID: general, Cursor: "x"}, "channel_not_found": {ChannelID: "C0"},
	} {
		_, err := api.GetConversationHistory(&p)
		require.EqualError(t, err, want)
	}
}

func TestReplies_NeedTheRootAndPage(t *testing.T) {
	s := start(t, slackbox.Options{})
	root, err := s.Person("ana").Say("general", "root")
	require.NoError(t, err)
	var last string
	for i := range 5 {
		last, err = s.Person("ben").Reply("general", root, fmt.Sprint(i))
		require.NoError(t, err)
	}
	api := bot(s, "smith")
	p := slack.GetConversationRepliesParameters{ChannelID: general, Timestamp: root, Limit: 2}
	var got []string
	for {
		msgs, more, next, err := api.GetConversationReplies(&p)
		require.NoError(t, err)
		require.Equal(t, "root", msgs[0].Text, "the root stands on top of every page")
		require.Equal(t, 5, msgs[0].ReplyCount)
		for _, m := range msgs[1:] {
			got = append(got, m.Text)
			require.Equal(t, anaID, m.ParentUserId)
		}
		if p.Cursor = next; !more {
			break
		}
	}
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, got)
	alone, _, _, err := api.GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: general, Timestamp: last})
	require.NoError(t, err)
	require.Len(t, alone, 1)
	require.Equal(t, root, alone[0].ThreadTimestamp)
	_, _, _, err = api.GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: general, Timestamp: "1.000000"})
	require.EqualError(t, err, "thread_not_found")
}

func TestMetadata_NeedsTheScopeAndItsPayloadTheAsking(t *testing.T) {
	seed := slackbox.DefaultSeed()
	for i, a := range seed.Apps {
		if a.Name == "agent-force" {
			seed.Apps[i].Scopes = slices.DeleteFunc(a.Scopes, func(scope string) bool { return scope == "metadata.message:read" })
		}
	}
	s := start(t, slackbox.Options{Seed: &seed})
	_, _, err := bot(s, "smith").PostMessage(general, textOption("x"),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "a", EventPayload: map[string]any{"b": "c"}}))
	require.NoError(t, err)
	for app, want := range map[string]bool{"smith": true, "trinity": true, "agent-force": false} {
		for _, asks := range []bool{true, false} {
			h, err := bot(s, app).GetConversationHistory(&slack.GetConversationHistoryParameters{ChannelID: general, IncludeAllMetadata: asks})
			require.NoError(t, err)
			require.Equal(t, want, h.Messages[0].Metadata.EventType == "a", "%s, asks: %v", app, asks)
			require.Equal(t, want && asks, h.Messages[0].Metadata.EventPayload["b"] == "c", "%s, asks: %v", app, asks)
		}
	}
}

func TestConversations_ListOpenJoinInvite(t *testing.T) {
	s := start(t, slackbox.Options{Seed: fullScopes()})
	require.NoError(t, s.Add(slackbox.Seed{Channels: []slackbox.Channel{
		{Name: "open", Members: []string{"ana", "trinity"}}, {Name: "closed", Private: true, Members: []string{"ana", "smith"}}}}))
	api := bot(s, "smith")
	events := listen(t, s, "trinity", true)
	names := func(cs []slack.Channel, _ string, err error) (out []string) {
		require.NoError(t, err)
		for _, c := range cs {
			out = append(out, c.Name)
		}
		return out
	}
	require.Equal(t, []string{"general", "random", "open"}, names(api.GetConversations(&slack.GetConversationsParameters{})))
	require.Equal(t, []string{"closed"}, names(api.GetConversations(&slack.GetConversationsParameters{Types: []string{"private_channel"}})))
	require.Empty(t, names(bot(s, "trinity").GetConversations(&slack.GetConversationsParameters{Types: []string{"private_channel"}})))
	require.Equal(t, []string{"general", "random"}, names(api.GetConversationsForUser(&slack.GetConversationsForUserParameters{})))
	dms, next, err := api.GetConversations(&slack.GetConversationsParameters{Types: []string{"im"}, Limit: 3})
	require.NoError(t, err)
	require.Len(t, dms, 3)
	require.NotEmpty(t, next)
	require.Equal(t, anaID, dms[0].User)

	dm, noOp, _, err := api.OpenConversation(&slack.OpenConversationParameters{Users: []string{anaID}, ReturnIM: true})
	require.NoError(t, err)
	require.False(t, noOp)
	require.Equal(t, dms[0].ID, dm.ID)
	_, noOp, already, err := api.OpenConversation(&slack.OpenConversationParameters{ChannelID: dm.ID})
	require.NoError(t, err)
	require.True(t, noOp && already)
	group, _, _, err := api.OpenConversation(&slack.OpenConversationParameters{Users: []string{anaID, "U0BEN000001"}, ReturnIM: true})
	require.NoError(t, err)
	require.True(t, group.IsMpIM)
	_, _, _, err = api.OpenConversation(&slack.OpenConversationParameters{Users: []string{"U0"}})
	require.EqualError(t, err, "user_not_found")

	ch, _, warnings, err := api.JoinConversation("C0OPEN00001")
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, 3, ch.NumMembers)
	joined, _ := inner[*slackevents.MemberJoinedChannelEvent](t, events)
	require.Equal(t, smithID, joined.User)
	_, _, warnings, err = api.JoinConversation("C0OPEN00001")
	require.NoError(t, err)
	require.Equal(t, []string{"already_in_channel"}, warnings)
	_, err = api.InviteUsersToConversation("C0OPEN00001", anaID)
	require.EqualError(t, err, "already_in_channel")
	_, err = api.InviteUsersToConversation("C0OPEN00001", "U0BEN000001")
	require.NoError(t, err)
	joined, _ = inner[*slackevents.MemberJoinedChannelEvent](t, events)
	require.Equal(t, smithID, joined.Inviter)
	members, _, err := api.GetUsersInConversation(&slack.GetUsersInConversationParameters{ChannelID: "C0OPEN00001"})
	require.NoError(t, err)
	require.Len(t, members, 4)
	info, err := api.GetConversationInfo(&slack.GetConversationInfoInput{ChannelID: general})
	require.NoError(t, err)
	require.True(t, info.IsExtShared && info.IsGeneral && info.IsMember)
	_, err = api.GetConversationInfo(&slack.GetConversationInfoInput{ChannelID: "C0CLOSED002"})
	require.EqualError(t, err, "channel_not_found")
	team, err := api.GetTeamInfo()
	require.NoError(t, err)
	require.Equal(t, "T0SMITH0001", team.ID)
	made, err := api.CreateConversation(slack.CreateConversationParams{ChannelName: "made"})
	require.NoError(t, err)
	require.Equal(t, "C0MADE00001", made.ID)
}

func TestReactions_AddRemoveGet(t *testing.T) {
	s := start(t, slackbox.Options{})
	events := listen(t, s, "smith", true)
	ts, err := s.Person("ana").Say("general", "x")
	require.NoError(t, err)
	api, ref := bot(s, "smith"), slack.NewRefToMessage(general, ts)
	require.NoError(t, api.AddReaction("eyes", ref))
	require.EqualError(t, api.AddReaction("eyes", ref), "already_reacted")
	added, _ := inner[*slackevents.ReactionAddedEvent](t, events)
	require.Equal(t, []string{smithID, "eyes", anaID, ts}, []string{added.User, added.Reaction, added.ItemUser, added.Item.Timestamp})
	require.NoError(t, s.Person("ben").React("general", ts, "eyes"))
	item, err := api.GetReactions(ref, slack.GetReactionsParameters{Full: true})
	require.NoError(t, err)
	require.Equal(t, 2, item.Reactions[0].Count)
	require.NoError(t, api.RemoveReaction("eyes", ref))
	removed, _ := inner[*slackevents.ReactionRemovedEvent](t, events)
	require.Equal(t, "eyes", removed.Reaction)
	require.EqualError(t, api.RemoveReaction("eyes", ref), "no_reaction")
	require.EqualError(t, api.AddReaction("no such", ref), "invalid_name")
	require.EqualError(t, api.AddReaction("eyes", slack.NewRefToMessage(general, "1.000000")), "message_not_found")
	require.EqualError(t, api.AddReaction("eyes", slack.ItemRef{}), "no_item_specified")
}

func TestConversations_LeaveCloseMarkAndTheRest(t *testing.T) {
	s := start(t, slackbox.Options{Seed: fullScopes()})
	api := bot(s, "smith")
	require.NoError(t, api.MarkConversation(general, "1.000000"))
	not, err := api.LeaveConversation("C0RANDOM001")
	require.NoError(t, err)
	require.False(t, not)
	not, err = api.LeaveConversation("C0RANDOM001")
	require.NoError(t, err)
	require.True(t, not)
	dm, _, _, err := api.OpenConversation(&slack.OpenConversationParameters{Users: []string{anaID}})
	require.NoError(t, err)
	noOp, already, err := api.CloseConversation(dm.ID)
	require.NoError(t, err)
	require.False(t, noOp || already)
	_, _, err = api.CloseConversation(general)
	require.EqualError(t, err, "method_not_supported_for_channel_type")
	require.NoError(t, api.SetAssistantThreadsTitle(slack.AssistantThreadsSetTitleParameters{ChannelID: dm.ID, ThreadTS: "1.000000", Title: "x"}))
	answer := raw(t, s, "no.such", url.Values{"token": {"xoxb-local-smith"}})
	require.Equal(t, []any{"unknown_method", "no.such"}, []any{answer["error"], answer["req_method"]})
	require.Equal(t, true, raw(t, s, "api.test", url.Values{})["ok"])
}
