package slackbox

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Slack's limits on what a message may hold, in characters and pieces.
const (
	maxText         = 40000
	maxUpdateText   = 4000
	maxBlocks       = 50
	maxSection      = 3000
	maxHeader       = 150
	maxField        = 2000
	maxFields       = 10
	maxContext      = 10
	maxActions      = 25
	maxBlockID      = 255
	maxMarkdown     = 12000
	maxBlocksText   = 13200
	maxMetadata     = 16 << 10
	maxAttachments  = 100
	maxAckPayload   = 20480
	maxLoadingLines = 10
)

type aBlock struct {
	Type     string            `json:"type"`
	BlockID  string            `json:"block_id"`
	Text     json.RawMessage   `json:"text"`
	Fields   []textObject      `json:"fields"`
	Elements []json.RawMessage `json:"elements"`
	ImageURL string            `json:"image_url"`
	File     json.RawMessage   `json:"slack_file"`
	AltText  string            `json:"alt_text"`
}

type textObject struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// checkBlocks refuses what Slack refuses and names blocks that have no id.
func checkBlocks(raw string, newID func() string) (json.RawMessage, *apiError) {
	if raw == "" || raw == "null" {
		return nil, nil
	}
	var all []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &all); err != nil {
		return nil, fail("invalid_blocks_format")
	}
	if len(all) > maxBlocks {
		return nil, badBlock("no more than %d items allowed [json-pointer:/blocks]", maxBlocks)
	}
	if len(all) == 0 {
		return json.RawMessage("[]"), nil
	}
	ids := map[string]bool{}
	total, markdown := 0, 0
	for i, m := range all {
		one, err := json.Marshal(m)
		if err != nil {
			return nil, fail("invalid_blocks_format")
		}
		var b aBlock
		if err := json.Unmarshal(one, &b); err != nil {
			return nil, badBlock("invalid block [json-pointer:/blocks/%d]", i)
		}
		if bad := checkBlock(i, b); bad != nil {
			return nil, bad
		}
		n := b.length()
		total += n
		if b.Type == "markdown" {
			markdown += n
		}
		if b.BlockID != "" && ids[b.BlockID] {
			return nil, badBlock("block_id already exists [json-pointer:/blocks/%d/block_id]", i)
		}
		ids[b.BlockID] = true
		if b.BlockID == "" {
			m["block_id"], _ = json.Marshal(newID())
		}
	}
	if markdown > maxMarkdown {
		return nil, badBlock("must be less than %d characters [json-pointer:/blocks]", maxMarkdown+1)
	}
	if total > maxBlocksText {
		return nil, fail("msg_blocks_too_long")
	}
	out, err := json.Marshal(all)
	if err != nil {
		return nil, fail("invalid_blocks_format")
	}
	return out, nil
}

func badBlock(format string, args ...any) *apiError {
	return &apiError{code: "invalid_blocks", messages: []string{"[ERROR] " + fmt.Sprintf(format, args...)}}
}

func checkBlock(i int, b aBlock) *apiError {
	if utf8.RuneCountInString(b.BlockID) > maxBlockID {
		return badBlock("must be less than %d characters [json-pointer:/blocks/%d/block_id]", maxBlockID+1, i)
	}
	switch b.Type {
	case "section":
		t, ok := b.textObject()
		if !ok && len(b.Fields) == 0 {
			return badBlock("missing required field: text [json-pointer:/blocks/%d]", i)
		}
		if utf8.RuneCountInString(t.Text) > maxSection {
			return badBlock("must be less than %d characters [json-pointer:/blocks/%d/text/text]", maxSection+1, i)
		}
		if ok && t.Text == "" {
			return badBlock("must be more than 0 characters [json-pointer:/blocks/%d/text/text]", i)
		}
		if len(b.Fields) > maxFields {
			return badBlock("no more than %d items allowed [json-pointer:/blocks/%d/fields]", maxFields, i)
		}
		for j, f := range b.Fields {
			if utf8.RuneCountInString(f.Text) > maxField {
				return badBlock("must be less than %d characters [json-pointer:/blocks/%d/fields/%d/text]", maxField+1, i, j)
			}
		}
	case "header":
		if t, ok := b.textObject(); !ok || t.Type != "plain_text" || utf8.RuneCountInString(t.Text) > maxHeader {
			return badBlock("must be plain_text of less than %d characters [json-pointer:/blocks/%d/text]", maxHeader+1, i)
		}
	case "context":
		if n := len(b.Elements); n == 0 || n > maxContext {
			return badBlock("must provide 1 to %d elements [json-pointer:/blocks/%d/elements]", maxContext, i)
		}
	case "actions":
		if n := len(b.Elements); n == 0 || n > maxActions {
			return badBlock("must provide 1 to %d elements [json-pointer:/blocks/%d/elements]", maxActions, i)
		}
	case "image":
		if b.AltText == "" || b.ImageURL == "" && len(b.File) == 0 {
			return badBlock("missing required field: alt_text or image_url [json-pointer:/blocks/%d]", i)
		}
	case "markdown":
		var s string
		if json.Unmarshal(b.Text, &s) != nil || s == "" {
			return badBlock("missing required field: text [json-pointer:/blocks/%d]", i)
		}
	case "rich_text", "divider", "file", "video", "input", "table", "call", "context_actions", "task_card", "plan":
	default:
		return badBlock("unsupported type: %s [json-pointer:/blocks/%d/type]", b.Type, i)
	}
	return nil
}

func (b aBlock) textObject() (textObject, bool) {
	var t textObject
	if len(b.Text) == 0 || json.Unmarshal(b.Text, &t) != nil {
		return t, false
	}
	return t, t.Type == "mrkdwn" || t.Type == "plain_text"
}

// length counts the characters that a block shows.
func (b aBlock) length() int {
	n := 0
	if t, ok := b.textObject(); ok {
		n += utf8.RuneCountInString(t.Text)
	} else {
		var s string
		if json.Unmarshal(b.Text, &s) == nil {
			n += utf8.RuneCountInString(s)
		}
	}
	for _, f := range b.Fields {
		n += utf8.RuneCountInString(f.Text)
	}
	for _, e := range b.Elements {
		var tree any
		if json.Unmarshal(e, &tree) != nil {
			continue
		}
		walk(tree, func(m map[string]any) {
			if s, ok := m["text"].(string); ok {
				n += utf8.RuneCountInString(s)
			}
		})
	}
	return n
}

// checkMetadata returns the metadata to store, nil for none; a warning where Slack
// drops it and still posts.
func checkMetadata(raw string) (md *Metadata, warning string, bad *apiError) {
	if raw == "" || raw == "null" {
		return nil, "", nil
	}
	var m struct {
		EventType    string          `json:"event_type"`
		EventPayload json.RawMessage `json:"event_payload"`
	}
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		return nil, "", fail("invalid_metadata_format")
	}
	if m.EventType == "" {
		return nil, "", nil
	}
	if len(raw) > maxMetadata {
		return nil, "", fail("metadata_too_large")
	}
	for _, r := range m.EventType {
		ok := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
		if !ok {
			return nil, "invalid_metadata_schema", nil
		}
	}
	var payload map[string]any
	if len(m.EventPayload) == 0 || string(m.EventPayload) == "null" {
		m.EventPayload = json.RawMessage("{}")
	}
	if json.Unmarshal(m.EventPayload, &payload) != nil {
		return nil, "invalid_metadata_schema", nil
	}
	return &Metadata{EventType: m.EventType, EventPayload: m.EventPayload}, "", nil
}
