package slackbox

import "strings"

// Kind says what a person is to the installing team.
type Kind string

// The kinds of person.
const (
	Member      Kind = "member"
	Guest       Kind = "guest"       // is_restricted
	Outsider    Kind = "outsider"    // of another team, through Slack Connect
	Deactivated Kind = "deactivated" // deleted; the token answers account_inactive
)

// Seed is the world that a local Slack begins with. An id or token that is left
// empty is made from the name, always the same one for the same seed.
type Seed struct {
	Team Team `json:"team"`
	// Other is the team that outsiders belong to.
	Other    Team      `json:"other"`
	Users    []User    `json:"users"`
	Apps     []App     `json:"apps"`
	Channels []Channel `json:"channels"`
	// NoDMs leaves the direct messages between people and seats to conversations.open.
	NoDMs bool `json:"no_dms,omitempty"`
}

// Team is a workspace.
type Team struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Domain string `json:"domain"`
}

// User is a person. Token (xoxp-…) posts as that person.
type User struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	RealName string `json:"real_name,omitempty"`
	Token    string `json:"token"`
	Team     string `json:"team"`
	Kind     Kind   `json:"kind"`
}

// App is a Slack app with its bot user.
type App struct {
	ID       string `json:"app_id"`
	Name     string `json:"name"`
	BotUser  string `json:"bot_user"`
	BotID    string `json:"bot_id"`
	BotToken string `json:"bot_token"`
	AppToken string `json:"app_token"`
	// Scopes are the bot token's; empty means SeatScopes.
	Scopes []string `json:"scopes"`
	// Events are the subscriptions ("message.im", "app_mention", …); empty means SeatEvents.
	Events []string `json:"events"`
	// Commands are the slash commands that belong to the app ("/agents").
	Commands []string `json:"commands,omitempty"`
	// RealName is what people see of its bot user; Name where there is none.
	RealName string `json:"real_name,omitempty"`
	// Seat apps get a direct message with every person.
	Seat bool `json:"seat"`
}

// Channel is a public or private channel. Members are names of users and apps.
type Channel struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Private bool     `json:"is_private"`
	Shared  bool     `json:"is_ext_shared"` // Slack Connect: with the other team
	Members []string `json:"members"`
}

// SeatScopes are the bot scopes of a seat app's manifest.
func SeatScopes() []string {
	return []string{
		"app_mentions:read", "chat:write", "channels:history", "groups:history", "im:history", "mpim:history",
		"channels:read", "groups:read", "im:read", "mpim:read", "im:write", "users:read", "reactions:read",
		"reactions:write", "files:read", "files:write", "metadata.message:read", "assistant:write", "commands",
	}
}

// SeatEvents are the event subscriptions of a seat app's manifest, and
// member_joined_channel.
func SeatEvents() []string {
	return []string{
		"app_mention", "message.channels", "message.groups", "message.im", "message.mpim",
		"reaction_added", "reaction_removed", "app_home_opened", "member_joined_channel",
	}
}

// DispatcherScopes are the bot scopes of the dispatcher app's manifest.
func DispatcherScopes() []string {
	return []string{
		"app_mentions:read", "chat:write", "channels:history", "groups:history", "channels:read", "groups:read",
		"reactions:read", "users:read", "metadata.message:read",
	}
}

// DefaultSeed is the world of the local stack: members ana and ben, guest gil,
// outsider olga, dora who left, the seats smith and trinity, and the dispatcher
// agent-force, all of them in general and random.
func DefaultSeed() Seed {
	everyone := []string{"ana", "ben", "gil", "olga", "smith", "trinity", "agent-force"}
	inside := []string{"ana", "ben", "gil", "smith", "trinity", "agent-force"}
	return Seed{
		Team:  Team{ID: "T0SMITH0001", Name: "Smith", Domain: "smith"},
		Other: Team{ID: "T0OTHER0001", Name: "Other", Domain: "other"},
		Users: []User{
			{Name: "ana", RealName: "Ana"},
			{Name: "ben", RealName: "Ben"},
			{Name: "gil", RealName: "Gil", Kind: Guest},
			{Name: "olga", RealName: "Olga", Kind: Outsider},
			{Name: "dora", RealName: "Dora", Kind: Deactivated},
		},
		Apps: []App{
			{Name: "smith", Seat: true, Commands: []string{"/agents"}},
			{Name: "trinity", Seat: true},
			{Name: "agent-force", RealName: "Agent Force", Scopes: DispatcherScopes(), Events: []string{"app_mention"}},
		},
		Channels: []Channel{
			{Name: "general", Shared: true, Members: everyone},
			{Name: "random", Members: inside},
		},
	}
}

// makeID returns an id that looks like Slack's and says whose it is: U0ANA000001.
// taken tells which ids are in use.
func makeID(prefix, name string, taken func(string) bool) string {
	const width = 8
	letters := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, name)
	if len(letters) > width {
		letters = letters[:width]
	}
	letters += strings.Repeat("0", width-len(letters))
	const digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZ0"
	for n := 0; ; n++ {
		tail := string(digits[n%len(digits)])
		if n >= len(digits) {
			tail = string(digits[n/len(digits)%len(digits)]) + tail
		}
		if id := prefix + "0" + letters + tail; !taken(id) {
			return id
		}
	}
}
