package store

import "context"

// Probe reads one value on the writer's connection.
func (s *Store) Probe(ctx context.Context, text string, dest any) error {
	return s.write(ctx, "probe", func(ctx context.Context, q query) error { return q.row(ctx, text).Scan(dest) })
}
