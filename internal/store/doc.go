// Package store is Smith's one SQL store: what was accepted from Slack and what
// became of it (L1 to L5), the stops (D4), turns and their answers (B3), posts (B5),
// running activities, and operators: claims (O6), sessions with the lines on their way
// in (R10) and the words on their way out (R11), pull requests and phase tables (P2,
// P3). It is SQLite or PostgreSQL: the statements are the common part of both, what
// differs stands in sqlite.go and postgres.go, and package storetest holds the tests
// that both must pass (T3).
//
// A method that writes returns nil only when the write is on disk. Every state change
// is a compare-and-set inside one transaction, so the starter and the worker, two
// processes, use one database at once. A repeated call with the same facts changes
// nothing and answers as the first one did: callers crash between a write and what
// they do about it, and Slack and Temporal deliver again.
//
// Every ts is a Slack ts ("1712345678.123456", checked) and is compared by its
// microseconds. Text is cleaned of what PostgreSQL refuses (NUL, invalid UTF-8); raw
// events keep their bytes.
package store
