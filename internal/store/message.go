package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"agentsmith/rules"
)

// message is a line as it is stored, once for all seats (L1).
type message struct {
	line      rules.Line
	present   bool // false: only its deletion is known
	human     bool
	tsUS      int64
	editedUS  int64
	bodies    string // hashes of the bodies seen for editedUS, newest first
	changedUS int64  // editedUS of the newest edit that changed the text
	changedAt int64
	deletedTS string
	createdAt int64
}

const messageColumns = `m.team, m.channel, m.ts, m.ts_us, m.present, m.root, m.channel_type, m.user_id, m.bot_id,
	m.app_id, m.user_team, m.subtype, m.body, m.files, m.raw, m.human, m.edited_ts, m.edited_us, m.edit_bodies,
	m.changed_us, m.changed_at, m.deleted_ts, m.created_at`

func scanMessage(r scanner) (message, error) {
	var m message
	var present, human int64
	var files string
	var raw []byte
	l := &m.line
	err := r.Scan(&l.Team, &l.Channel, &l.TS, &m.tsUS, &present, &l.Root, &l.ChannelType, &l.User, &l.BotID,
		&l.AppID, &l.UserTeam, &l.Subtype, &l.Text, &files, &raw, &human, &l.EditedTS, &m.editedUS, &m.bodies,
		&m.changedUS, &m.changedAt, &m.deletedTS, &m.createdAt)
	if err != nil {
		return message{}, err
	}
	m.present, m.human = present != 0, human != 0
	l.Raw = json.RawMessage(raw)
	l.Files, err = fromJSON[rules.File](files)
	return m, err
}

func getMessage(ctx context.Context, q query, k rules.LineKey) (*message, error) {
	return one(scanMessage(q.row(ctx, `SELECT `+messageColumns+` FROM messages m
		WHERE m.team = $1 AND m.channel = $2 AND m.ts = $3`, k.Team, k.Channel, k.TS)))
}

func putMessage(ctx context.Context, q query, m message) error {
	files, err := jsonText(m.line.Files)
	if err != nil {
		return err
	}
	l := m.line
	_, err = q.exec(ctx, `INSERT INTO messages (team, channel, ts, ts_us, present, root, channel_type, user_id, bot_id,
			app_id, user_team, subtype, body, files, raw, human, edited_ts, edited_us, edit_bodies,
			changed_us, changed_at, deleted_ts, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)
		ON CONFLICT (team, channel, ts) DO UPDATE SET
			present = excluded.present, root = excluded.root, channel_type = excluded.channel_type,
			user_id = excluded.user_id, bot_id = excluded.bot_id, app_id = excluded.app_id,
			user_team = excluded.user_team, subtype = excluded.subtype, body = excluded.body,
			files = excluded.files, raw = excluded.raw, human = excluded.human,
			edited_ts = excluded.edited_ts, edited_us = excluded.edited_us, edit_bodies = excluded.edit_bodies,
			changed_us = excluded.changed_us, changed_at = excluded.changed_at, deleted_ts = excluded.deleted_ts`,
		l.Team, l.Channel, l.TS, m.tsUS, flag(m.present), l.Root, l.ChannelType, l.User, l.BotID,
		l.AppID, l.UserTeam, l.Subtype, l.Text, files, []byte(l.Raw), flag(m.human), l.EditedTS, m.editedUS, m.bodies,
		m.changedUS, m.changedAt, m.deletedTS, m.createdAt)
	return err
}

// merged is what merging a copy into a message did.
type merged struct {
	// stale: the message holds a newer edit than the copy; only gaps were filled.
	stale bool
	// changed: there is something to write.
	changed bool
}

// merge takes a further copy of a line into m (L1, L5). Copies of one line come in any
// order: message, app_mention (which lacks files, subtype and more), edits, history.
// The text is that of the newest edit. Of every other field the copy that has it wins,
// and of two the one that says more: so the fuller copy wins in either order.
func (m *message) merge(in rules.Line, inUS int64, human bool, now int64) merged {
	if !m.present {
		deleted, created := m.deletedTS, m.createdAt
		*m = message{line: in, present: true, human: human, tsUS: m.tsUS, editedUS: inUS,
			bodies: bodyHash(in.Text), deletedTS: deleted, createdAt: created}
		if inUS > 0 {
			m.changedUS, m.changedAt = inUS, now
		}
		return merged{changed: true}
	}
	res := merged{stale: inUS < m.editedUS}
	l := &m.line
	switch sameText := l.Text == in.Text; {
	case inUS > m.editedUS && sameText:
		// A link unfurl looks like this, and may bring an event_ts where an edit of the same
		// second has the whole second: that edit must still be able to follow.
		if floor := inUS - inUS%secondUS; floor > m.editedUS {
			m.editedUS, m.bodies, res.changed = floor, bodyHash(in.Text), true
		}
	case m.newerText(in.Text, inUS):
		l.Text = in.Text
		m.changedUS, m.changedAt = inUS, now
		if inUS > m.editedUS {
			m.bodies = ""
		}
		m.bodies = strings.TrimSuffix(bodyHash(in.Text)+" "+m.bodies, " ")
		l.EditedTS, m.editedUS = in.EditedTS, inUS
		if len(in.Raw) > 0 {
			l.Raw = in.Raw
		}
		res.changed = true
	}
	if !res.stale && inUS == m.editedUS && len(in.Raw) > len(l.Raw) {
		l.Raw, res.changed = in.Raw, true
	}
	if len(in.Files) > 0 && (len(l.Files) == 0 || !res.stale && fuller(in.Files, l.Files)) {
		l.Files, res.changed = in.Files, true
	}
	for _, f := range [...]struct {
		have *string
		in   string
	}{{&l.ChannelType, in.ChannelType}, {&l.User, in.User}, {&l.BotID, in.BotID}, {&l.AppID, in.AppID},
		{&l.UserTeam, in.UserTeam}, {&l.Subtype, in.Subtype}} {
		if *f.have == "" && f.in != "" {
			*f.have, res.changed = f.in, true
		}
	}
	if human && !m.human {
		m.human, res.changed = true, true
	}
	return res
}

const secondUS = 1_000_000

// newerText tells whether a copy's text replaces m's. Slack's edited.ts has whole
// seconds, so two edits may share one: the later arrival wins then, but a text that was
// seen for that very ts before is a redelivery.
func (m *message) newerText(text string, us int64) bool {
	switch {
	case us != m.editedUS:
		return us > m.editedUS
	case text == "" || text == m.line.Text:
		return false
	case m.line.Text == "":
		return true
	case us == 0: // two copies of an unedited line: the first one's text stands
		return false
	}
	return !slices.Contains(strings.Fields(m.bodies), bodyHash(text))
}

// fuller tells whether a says more about a line's files than b.
func fuller(a, b []rules.File) bool {
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return filled(a) > filled(b)
}

func filled(files []rules.File) (n int) {
	for _, f := range files {
		for _, known := range [...]bool{f.Name != "", f.Mimetype != "", f.Size > 0, f.URLPrivate != ""} {
			if known {
				n++
			}
		}
	}
	return n
}

func bodyHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// cleanLine is in with texts as they will be read back, so that they compare equal.
func cleanLine(in rules.Line) rules.Line {
	for _, s := range []*string{&in.Team, &in.Channel, &in.TS, &in.Root, &in.ChannelType, &in.User, &in.BotID,
		&in.AppID, &in.UserTeam, &in.Subtype, &in.Text, &in.EditedTS} {
		*s = clean(*s)
	}
	return in
}

func humanAuthor(a rules.Author) bool { return a == rules.Person || a == rules.Outsider }

// saveLine writes or merges one copy of a line.
func (s *Store) saveLine(ctx context.Context, q query, in rules.Line, human bool) (message, merged, error) {
	in = cleanLine(in)
	us, err := tsMicros(in.TS)
	if err != nil {
		return message{}, merged{}, err
	}
	editUS, err := optionalMicros(in.EditedTS)
	if err != nil {
		return message{}, merged{}, err
	}
	if in.Root == "" {
		in.Root = in.TS
	}
	if _, err := tsMicros(in.Root); err != nil {
		return message{}, merged{}, err
	}
	now := s.micros()
	have, err := getMessage(ctx, q, in.LineKey)
	if err != nil {
		return message{}, merged{}, err
	}
	if have == nil {
		have = &message{tsUS: us, createdAt: now}
	}
	res := have.merge(in, editUS, human, now)
	if res.changed {
		err = putMessage(ctx, q, *have)
	}
	return *have, res, err
}
