package slackbox

import "encoding/json"

// Message is a message as Slack's API and events show it.
type Message struct {
	ClientMsgID  string          `json:"client_msg_id,omitempty"`
	Type         string          `json:"type"`
	Subtype      string          `json:"subtype,omitempty"`
	Hidden       bool            `json:"hidden,omitempty"`
	User         string          `json:"user,omitempty"`
	BotID        string          `json:"bot_id,omitempty"`
	AppID        string          `json:"app_id,omitempty"`
	BotProfile   *BotProfile     `json:"bot_profile,omitempty"`
	Username     string          `json:"username,omitempty"`
	Icons        json.RawMessage `json:"icons,omitempty"`
	Inviter      string          `json:"inviter,omitempty"`
	Text         string          `json:"text"`
	Team         string          `json:"team,omitempty"`
	UserTeam     string          `json:"user_team,omitempty"`
	SourceTeam   string          `json:"source_team,omitempty"`
	TS           string          `json:"ts"`
	ThreadTS     string          `json:"thread_ts,omitempty"`
	ParentUserID string          `json:"parent_user_id,omitempty"`
	ReplyCount   int             `json:"reply_count,omitempty"`
	UsersCount   int             `json:"reply_users_count,omitempty"`
	LatestReply  string          `json:"latest_reply,omitempty"`
	ReplyUsers   []string        `json:"reply_users,omitempty"`
	IsLocked     *bool           `json:"is_locked,omitempty"`
	Subscribed   *bool           `json:"subscribed,omitempty"`
	Blocks       json.RawMessage `json:"blocks,omitempty"`
	Attachments  json.RawMessage `json:"attachments,omitempty"`
	Files        []*File         `json:"files,omitempty"`
	Upload       *bool           `json:"upload,omitempty"`
	DisplayAsBot *bool           `json:"display_as_bot,omitempty"`
	Edited       *Edited         `json:"edited,omitempty"`
	Metadata     *Metadata       `json:"metadata,omitempty"`
	Reactions    []Reaction      `json:"reactions,omitempty"`
	Root         *Message        `json:"root,omitempty"`
}

// Edited says who edited a message and when.
type Edited struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

// Metadata is what an app attached to its message.
type Metadata struct {
	EventType    string          `json:"event_type"`
	EventPayload json.RawMessage `json:"event_payload,omitempty"`
}

// Reaction is one emoji on a message and who put it there.
type Reaction struct {
	Name  string   `json:"name"`
	Users []string `json:"users"`
	Count int      `json:"count"`
}

// BotProfile is the app's face on its messages.
type BotProfile struct {
	ID      string            `json:"id"`
	AppID   string            `json:"app_id"`
	UserID  string            `json:"user_id"`
	Name    string            `json:"name"`
	Icons   map[string]string `json:"icons"`
	Deleted bool              `json:"deleted"`
	Updated int64             `json:"updated"`
	TeamID  string            `json:"team_id"`
}

// File is a file as Slack's API shows it.
type File struct {
	ID                 string                        `json:"id"`
	Created            int64                         `json:"created"`
	Timestamp          int64                         `json:"timestamp"`
	Name               string                        `json:"name"`
	Title              string                        `json:"title"`
	Mimetype           string                        `json:"mimetype"`
	Filetype           string                        `json:"filetype"`
	PrettyType         string                        `json:"pretty_type"`
	User               string                        `json:"user"`
	UserTeam           string                        `json:"user_team,omitempty"`
	Mode               string                        `json:"mode"`
	Editable           bool                          `json:"editable"`
	IsExternal         bool                          `json:"is_external"`
	ExternalType       string                        `json:"external_type"`
	Size               int64                         `json:"size"`
	URLPrivate         string                        `json:"url_private,omitempty"`
	URLPrivateDownload string                        `json:"url_private_download,omitempty"`
	Permalink          string                        `json:"permalink,omitempty"`
	IsPublic           bool                          `json:"is_public"`
	FileAccess         string                        `json:"file_access"`
	Channels           []string                      `json:"channels,omitempty"`
	Groups             []string                      `json:"groups,omitempty"`
	IMs                []string                      `json:"ims,omitempty"`
	Shares             map[string]map[string][]Share `json:"shares,omitempty"`
}

// Share is a message that carries a file.
type Share struct {
	TS          string `json:"ts"`
	ThreadTS    string `json:"thread_ts,omitempty"`
	ChannelName string `json:"channel_name,omitempty"`
	TeamID      string `json:"team_id"`
	ShareUserID string `json:"share_user_id"`
}

// conversation is a channel as Slack's API shows it.
type conversation struct {
	ID              string   `json:"id"`
	Name            string   `json:"name,omitempty"`
	NameNormalized  string   `json:"name_normalized,omitempty"`
	IsChannel       bool     `json:"is_channel"`
	IsGroup         bool     `json:"is_group"`
	IsIM            bool     `json:"is_im"`
	IsMPIM          bool     `json:"is_mpim"`
	IsPrivate       bool     `json:"is_private"`
	IsMember        bool     `json:"is_member,omitempty"`
	IsOpen          bool     `json:"is_open,omitempty"`
	IsArchived      bool     `json:"is_archived"`
	IsGeneral       bool     `json:"is_general,omitempty"`
	IsShared        bool     `json:"is_shared"`
	IsExtShared     bool     `json:"is_ext_shared"`
	IsOrgShared     bool     `json:"is_org_shared"`
	Created         int64    `json:"created"`
	Updated         int64    `json:"updated"`
	Creator         string   `json:"creator,omitempty"`
	User            string   `json:"user,omitempty"`
	ContextTeamID   string   `json:"context_team_id"`
	SharedTeamIDs   []string `json:"shared_team_ids,omitempty"`
	ConnectedTeams  []string `json:"connected_team_ids,omitempty"`
	InternalTeamIDs []string `json:"internal_team_ids,omitempty"`
	NumMembers      int      `json:"num_members,omitempty"`
	Topic           topic    `json:"topic"`
	Purpose         topic    `json:"purpose"`
}

type topic struct {
	Value   string `json:"value"`
	Creator string `json:"creator"`
	LastSet int64  `json:"last_set"`
}

// member is a user as Slack's API shows it.
type member struct {
	ID               string        `json:"id"`
	TeamID           string        `json:"team_id"`
	Name             string        `json:"name"`
	Deleted          bool          `json:"deleted"`
	RealName         string        `json:"real_name,omitempty"`
	TZ               string        `json:"tz,omitempty"`
	Profile          memberProfile `json:"profile"`
	IsAdmin          bool          `json:"is_admin"`
	IsOwner          bool          `json:"is_owner"`
	IsRestricted     bool          `json:"is_restricted"`
	IsUltra          bool          `json:"is_ultra_restricted"`
	IsStranger       bool          `json:"is_stranger,omitempty"`
	IsBot            bool          `json:"is_bot"`
	IsAppUser        bool          `json:"is_app_user"`
	IsEmailConfirmed bool          `json:"is_email_confirmed,omitempty"`
	Updated          int64         `json:"updated"`
}

type memberProfile struct {
	RealName    string `json:"real_name"`
	DisplayName string `json:"display_name"`
	Image72     string `json:"image_72"`
	BotID       string `json:"bot_id,omitempty"`
	APIAppID    string `json:"api_app_id,omitempty"`
	Team        string `json:"team"`
}
