package store

import (
	"context"
	"fmt"

	"agentsmith/rules"
)

// EditResult is what an edit did.
type EditResult struct {
	// Row is the seat's row as it stands.
	Row Row
	// TextChanged: this edit changed the line's text, or brought a line never seen. A
	// redelivery of the newest edit says so again.
	TextChanged bool
	// Stale: a newer edit is on record, or the line is deleted; the text was left alone.
	Stale bool
	// RaisedToOwed: the line was noted and is owed a turn now.
	RaisedToOwed bool
	// Begun: a turn took the line, so the new text is context for the next one (L4).
	Begun bool
}

// RecordEdit writes an edit; line is the line as edited, with EditedTS set. An older
// edit never overwrites a newer one (L1). For a line that seat never saw, and for a
// noted one whose text this edit changed, decide is asked as in Record; prev is the
// line as this store held it before, nil if it did not. (Another seat's delivery of
// the same edit may have come first: what this seat knew is in Facts.Prior.)
func (s *Store) RecordEdit(ctx context.Context, seat string, line rules.Line, author rules.Author,
	decide func(prev *rules.Line, f Facts) Verdict) (EditResult, error) {
	if line.EditedTS == "" {
		return EditResult{}, s.wrap("record edit", fmt.Errorf("%w: an edit without its ts", ErrInvalid))
	}
	var res EditResult
	err := s.write(ctx, "record edit", func(ctx context.Context, q query) error {
		res = EditResult{}
		var prev *rules.Line
		before, err := getMessage(ctx, q, cleanLine(line).LineKey)
		if err != nil {
			return err
		}
		if before != nil && before.present {
			prev = &before.line
		}
		m, did, err := s.saveLine(ctx, q, line, humanAuthor(author))
		if err != nil {
			return err
		}
		editUS, err := tsMicros(line.EditedTS)
		if err != nil {
			return err
		}
		res.Stale = did.stale || m.deletedTS != "" || m.line.Text != clean(line.Text)
		res.TextChanged = !res.Stale && m.changedUS == editUS
		res.Row, res.RaisedToOwed, err = s.judge(ctx, q, seat, m, author, res.TextChanged,
			func(f Facts) Verdict { return decide(prev, f) })
		res.Begun = res.Row.Begun()
		return err
	})
	if err != nil {
		return EditResult{}, err
	}
	return res, nil
}

// DeleteResult is what a deletion did.
type DeleteResult struct {
	// Row is the seat's row as it stands, nil if it has none.
	Row *Row
	// WasOwed: the line waited, and is declined as deleted now. A redelivery says so again.
	WasOwed bool
	// Begun: a turn took the line.
	Begun bool
}

// RecordDelete writes that a line was deleted. A line that waits is declined (L4); one
// that is not here yet will be when it arrives.
func (s *Store) RecordDelete(ctx context.Context, seat string, key rules.LineKey, eventTS string) (DeleteResult, error) {
	us, err := tsMicros(key.TS)
	if err == nil {
		_, err = tsMicros(eventTS)
	}
	if err != nil {
		return DeleteResult{}, s.wrap("record deletion", err)
	}
	var res DeleteResult
	err = s.write(ctx, "record deletion", func(ctx context.Context, q query) error {
		res = DeleteResult{}
		m, err := getMessage(ctx, q, key)
		if err != nil {
			return err
		}
		if m == nil {
			m = &message{line: rules.Line{LineKey: key, Root: key.TS}, tsUS: us, createdAt: s.micros()}
		}
		if m.deletedTS == "" { // there is no undoing a deletion: the first one stands
			m.deletedTS = eventTS
			if err := putMessage(ctx, q, *m); err != nil {
				return err
			}
		}
		r, err := getRow(ctx, q, seat, key)
		if err != nil || r == nil {
			return err
		}
		if r.State == rules.Owed {
			if *r, err = s.moveRow(ctx, q, *r, move{state: rules.Declined, reason: rules.ReasonDeleted}); err != nil {
				return err
			}
		}
		res.Row = r
		res.WasOwed = r.State == rules.Declined && r.Reason == rules.ReasonDeleted
		res.Begun = r.Begun()
		return nil
	})
	if err != nil {
		return DeleteResult{}, err
	}
	return res, nil
}
