package rules

// Ask goes with a line that mentions the dispatcher: it asks every seat of its channel (A1).
type Ask struct {
	// Dispatcher is the bot user that was mentioned: only its post is the pick (A4).
	Dispatcher string `json:"dispatcher"`
}

// DispatchLine is what the dispatcher says in the metadata of its one post under an ask (A3).
type DispatchLine struct {
	AskTS string `json:"ask_ts"`
	// Asker is the user id of the person who asked, Driver that of the seat that drives.
	Asker  string `json:"asker"`
	Driver string `json:"driver"`
}
