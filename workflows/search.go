package workflows

import (
	"go.temporal.io/sdk/temporal"

	"agentsmith/rules"
)

// The typed search attributes of every brain (T2): what `temporal workflow list` can be
// asked for. The starter checks at boot that the namespace has them.
var (
	// SearchSeat is the seat's name.
	SearchSeat = temporal.NewSearchAttributeKeyKeyword("SmithSeat")
	// SearchChannel is the Slack channel's id.
	SearchChannel = temporal.NewSearchAttributeKeyKeyword("SmithChannel")
	// SearchThread is the ts of the thread's root; "" for a scheduled run, which has none yet.
	SearchThread = temporal.NewSearchAttributeKeyKeyword("SmithThread")
)

// SearchKeys are all search attributes that Smith writes, in the order in which they
// are created.
func SearchKeys() []temporal.SearchAttributeKey {
	return []temporal.SearchAttributeKey{SearchSeat, SearchChannel, SearchThread}
}

// SearchAttributes are those of a seat's brain for one thread.
func SearchAttributes(seat string, t rules.Thread) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		SearchSeat.ValueSet(seat),
		SearchChannel.ValueSet(t.Channel),
		SearchThread.ValueSet(t.Root),
	)
}

// SearchSpecs are the search attributes as name=type, as the Temporal CLI takes them.
func SearchSpecs() []string {
	var out []string
	for _, key := range SearchKeys() {
		out = append(out, key.GetName()+"="+key.GetValueType().String())
	}
	return out
}
