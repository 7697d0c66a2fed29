// Package slackbox is a local Slack: the Web API, Socket Mode and the events of a
// workspace with people, apps and channels, faithful enough that the unmodified
// slack-go client and Slack's own JavaScript framework (bolt) cannot tell. It needs
// no account, listens on loopback only, and fails on demand.
//
//	s := slackbox.New(slackbox.Options{})
//	err := s.Start(ctx, "")                       // 127.0.0.1, any port
//	api := slack.New("xoxb-local-smith", slack.OptionAPIURL(s.URL()), slack.OptionAppLevelToken("xapp-local-smith"))
//	ts, err := s.Person("ana").Say("general", "@smith hello")
//
// # The world
//
// DefaultSeed has members ana and ben, guest gil, outsider olga (Slack Connect),
// dora who left, the seats smith and trinity, the dispatcher agent-force, channels
// general and random, and a direct message between each person and each seat. Tokens
// are xoxp-local-<person>, xoxb-local-<app> and xapp-local-<app>. Options.Seed takes
// another world, Add (POST /_control/add) lets it grow.
//
// # Web API
//
//	auth.test api.test apps.connections.open team.info bots.info users.info users.list users.conversations
//	chat.postMessage chat.update chat.delete chat.postEphemeral chat.meMessage chat.getPermalink
//	conversations.list info members history replies open close mark create join invite leave
//	reactions.add remove get
//	files.getUploadURLExternal completeUploadExternal info delete, the upload and the private download URLs
//	assistant.threads.setStatus setTitle setSuggestedPrompts, views.publish
//	chat.command and blocks.actions (the page's person types a command, uses a button)
//
// Error strings, limits and scopes are Slack's. A person's token posts as that
// person. Files that may not be read redirect to a sign-in page, as on Slack.
//
// # Events
//
// To every app in the channel that subscribes: message (file_share, message_changed,
// message_deleted, thread_broadcast, me_message, bot_message, channel_join),
// app_mention, reaction_added, reaction_removed, member_joined_channel,
// app_home_opened; and slash_commands and interactive. The two copies of a mention
// come in an order of chance; a root with replies that is deleted becomes a
// tombstone (message_changed); each envelope takes one socket of chance; an ack is
// due within 3 s, else the envelope comes again at once, after 1 min and after
// 5 min; what no socket can take waits for one.
//
// # Faults
//
// AddFault (POST /_control/faults) with a FaultKind, what it matches, and how often
// (Skip, Count, Probability with Seed):
//
//	rate_limited server_error api_error timeout drop_request slow commit_late lag_reads
//	parent_deleted token_revoked response_lost
//	stall duplicate reorder drop_ack drop_frame disconnect cut_socket stop_pings forget unreadable
//
// # Control
//
// JSON in and out below /_control/; each endpoint has a Go method of the same sense.
//
//	GET  state, statuses, log?since=N (the oracle), clock, faults, settings
//	POST clock {"advance":"1m"}
//	POST faults {"kind":"response_lost","method":"chat.postMessage","count":1}    DELETE faults[?id=…]
//	POST settings {"rate_limits":true, …}    POST add (a Seed)
//	POST disconnect {"app","reason"}, cut {"app"}, stop_pings {"app"}
//	POST raw {"app","frame"} (a string is sent as its text), event {"app","event"}
//	POST revoke {"token"}, restore {"token"}
//	POST delete_hard {"channel","ts"}, unfurl {"channel","ts","attachments"}
//	POST home {"app","user"}, command {"user","channel","command","text"}, interactive {"user","channel","ts","actions"}
//
// # Page
//
// Options.Page is served at /. GET /_page/boot tells it the world; GET
// /_page/stream?token=xoxp-… sends one person's events: the inner events above,
// {"type":"assistant_status",…} and {"type":"ephemeral",…}.
package slackbox
