package slackbox

import "slices"

// methodTable is every Web API method that is answered. The scopes are Slack's; a
// method on a channel asks for the scope of its kind itself (call.channel).
func methodTable() map[string]method {
	return map[string]method{
		"api.test":              {run: apiTest},
		"auth.test":             {run: authTest},
		"apps.connections.open": {run: openConnection, app: true, scopes: []string{"connections:write"}},

		"chat.postMessage":   {run: postMessage, write: true, scopes: []string{"chat:write"}},
		"chat.postEphemeral": {run: postEphemeral, write: true, scopes: []string{"chat:write"}},
		"chat.meMessage":     {run: meMessage, write: true, scopes: []string{"chat:write"}},
		"chat.update":        {run: updateMessage, write: true, scopes: []string{"chat:write"}},
		"chat.delete":        {run: deleteMessage, write: true, scopes: []string{"chat:write"}},
		"chat.getPermalink":  {run: getPermalink},
		"chat.command":       {run: runCommand, write: true, scopes: []string{"client"}},
		"blocks.actions":     {run: runActions, write: true, scopes: []string{"client"}},

		"conversations.list":    {run: listConversations, scopes: []string{"channels:read", "groups:read", "im:read", "mpim:read"}},
		"conversations.info":    {run: conversationInfo},
		"conversations.members": {run: conversationMembers},
		"conversations.history": {run: history},
		"conversations.replies": {run: replies},
		"conversations.open":    {run: openConversation, write: true, scopes: []string{"im:write", "mpim:write"}},
		"conversations.close":   {run: closeConversation, write: true, scopes: []string{"im:write", "mpim:write"}},
		"conversations.mark":    {run: markConversation},
		"conversations.create":  {run: createConversation, write: true, scopes: []string{"channels:manage", "groups:write"}},
		"conversations.join":    {run: joinConversation, write: true, scopes: []string{"channels:join"}},
		"conversations.invite":  {run: inviteConversation, write: true, scopes: []string{"channels:manage", "groups:write", "channels:write.invites"}},
		"conversations.leave":   {run: leaveConversation, write: true, scopes: []string{"channels:manage", "groups:write"}},
		"users.conversations":   {run: userConversations, scopes: []string{"channels:read", "groups:read", "im:read", "mpim:read"}},

		"users.info": {run: userInfo, scopes: []string{"users:read"}},
		"users.list": {run: listUsers, scopes: []string{"users:read"}},
		"bots.info":  {run: botInfo, scopes: []string{"users:read"}},
		"team.info":  {run: teamInfo, scopes: []string{"team:read"}},

		"reactions.add":    {run: addReaction, write: true, scopes: []string{"reactions:write"}},
		"reactions.remove": {run: removeReaction, write: true, scopes: []string{"reactions:write"}},
		"reactions.get":    {run: getReactions, scopes: []string{"reactions:read"}},

		"files.getUploadURLExternal":   {run: getUploadURL, write: true, scopes: []string{"files:write"}},
		"files.completeUploadExternal": {run: completeUpload, write: true, scopes: []string{"files:write"}},
		"files.info":                   {run: fileInfo, scopes: []string{"files:read"}},
		"files.delete":                 {run: deleteFile, write: true, scopes: []string{"files:write"}},

		"assistant.threads.setStatus":           {run: setStatus, write: true, scopes: []string{"assistant:write", "chat:write"}},
		"assistant.threads.setTitle":            {run: accept, scopes: []string{"assistant:write"}},
		"assistant.threads.setSuggestedPrompts": {run: accept, scopes: []string{"assistant:write"}},
		"views.publish":                         {run: publishView, write: true},
	}
}

func apiTest(c *call) (obj, *apiError) {
	if e := c.p["error"]; e != "" {
		return nil, fail(e)
	}
	return obj{"args": c.p}, nil
}

func accept(*call) (obj, *apiError) { return nil, nil }

func authTest(c *call) (obj, *apiError) {
	body := obj{
		"url": c.s.base + "/", "team": c.s.team.Name, "team_id": c.s.team.ID,
		"user": c.who.user.Name, "user_id": c.who.user.ID, "is_enterprise_install": false,
	}
	if c.who.app != nil {
		body["bot_id"], body["app_id"] = c.who.app.BotID, c.who.app.ID
	} else if c.who.user.Team != c.s.team.ID {
		body["team"], body["team_id"] = c.s.other.Name, c.who.user.Team
	}
	return body, nil
}

func teamInfo(c *call) (obj, *apiError) {
	t := c.s.team
	if id := c.p["team"]; id != "" && id != t.ID {
		if id != c.s.other.ID {
			return nil, fail("team_not_found")
		}
		t = c.s.other
	}
	return obj{"team": obj{"id": t.ID, "name": t.Name, "domain": t.Domain, "email_domain": "", "icon": obj{}}}, nil
}

func botInfo(c *call) (obj, *apiError) {
	i := slices.IndexFunc(c.s.apps, func(a *app) bool { return a.BotID == c.p["bot"] })
	if i < 0 {
		return nil, fail("bot_not_found")
	}
	a := c.s.apps[i]
	return obj{"bot": obj{
		"id": a.BotID, "name": a.Name, "app_id": a.ID, "user_id": a.BotUser, "deleted": false, "updated": c.s.epoch, "icons": obj{},
	}}, nil
}

func publishView(c *call) (obj, *apiError) {
	u := c.s.users[c.p["user_id"]]
	if u == nil {
		return nil, fail("invalid_arguments")
	}
	if c.p["view"] == "" || c.who.app == nil {
		return nil, fail("invalid_arguments")
	}
	return obj{"view": obj{
		"id": c.s.newID("V"), "type": "home", "team_id": c.s.team.ID, "app_id": c.who.app.ID, "bot_id": c.who.app.BotID,
		"blocks": []any{}, "hash": "1.local", "private_metadata": "", "callback_id": "", "external_id": "",
	}}, nil
}
