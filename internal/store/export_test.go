package store

import "context"

// Probe reads one value on the writer's connection.
func (s *Store) Probe(ctx context.Context, text string, dest any) error {
	return s.write(ctx, "probe", func(ctx context.Context, q query) error { return q.row(ctx, text).Scan(dest) })
}

// WriteLock is the advisory lock of PostgreSQL's writers.
const WriteLock = int64(writeLock)

// Statements returns the statements that an SQLite store has prepared.
func (s *Store) Statements(ctx context.Context) (all []string, err error) {
	err = s.write(ctx, "list statements", func(_ context.Context, q query) error {
		for text := range q.(*sqliteSession).stmts {
			all = append(all, text)
		}
		return nil
	})
	for text := range s.read.(*readers).stmts {
		all = append(all, text)
	}
	return all, err
}
