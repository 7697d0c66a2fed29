package store

import (
	"context"

	"agentsmith/rules"
)

// Process names an agent's process group so that no other is ever taken for it (X5):
// a pid is used again, its start time on one boot is not.
type Process struct {
	// RunID is the one run of the agent; its processes carry it in their environment.
	RunID string
	PID   int
	PGID  int
	// Start is the process's start time in clock ticks since boot.
	Start  uint64
	BootID string
}

// TurnProcess is a process with the turn that it works for.
type TurnProcess struct {
	TurnID string
	Seat   string
	rules.Thread
	Process
	// FirstTS is the oldest line that the turn took, "" for a turn without lines.
	FirstTS string
}

// SetProcess records the agent's process of a turn, as not known to be dead. ErrNotFound
// without TakeLines.
func (s *Store) SetProcess(ctx context.Context, turnID string, p Process) error {
	return s.write(ctx, "record process", func(ctx context.Context, q query) error {
		t, err := getTurn(ctx, q, turnID)
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO processes (run_id, turn_id, seat, team, channel, root, box, pid, pgid,
				start_ticks, boot_id, created_at, dead_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0)
			ON CONFLICT (run_id) DO UPDATE SET pid = excluded.pid, pgid = excluded.pgid,
				start_ticks = excluded.start_ticks, boot_id = excluded.boot_id`,
			p.RunID, t.ID, t.Seat, t.Team, t.Channel, t.Root, t.Box, p.PID, p.PGID, int64(p.Start), p.BootID, s.micros())
		return err
	})
}

// LiveProcesses returns the processes of a box that are not marked dead, oldest first:
// what a worker looks at when it starts (B3).
func (s *Store) LiveProcesses(ctx context.Context, box string) ([]TurnProcess, error) {
	var all []TurnProcess
	err := s.view(ctx, "read processes", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT `+processColumns+` FROM processes p
			WHERE p.box = $1 AND p.dead_at = 0 ORDER BY p.created_at`, box)
		all, err = collect(rows, err, scanProcess)
		return err
	})
	return all, err
}

// ThreadProcesses returns those of one thread: they must be dead before the next run.
func (s *Store) ThreadProcesses(ctx context.Context, seat string, t rules.Thread) ([]TurnProcess, error) {
	var all []TurnProcess
	err := s.view(ctx, "read the thread's processes", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT `+processColumns+` FROM processes p
			WHERE p.seat = $1 AND p.team = $2 AND p.channel = $3 AND p.root = $4 AND p.dead_at = 0
			ORDER BY p.created_at`, seat, t.Team, t.Channel, t.Root)
		all, err = collect(rows, err, scanProcess)
		return err
	})
	return all, err
}

// ProcessDead marks a run's process group dead. A run that is not on record is no error.
func (s *Store) ProcessDead(ctx context.Context, runID string) error {
	return s.write(ctx, "mark process dead", func(ctx context.Context, q query) error {
		_, err := q.exec(ctx, `UPDATE processes SET dead_at = $1 WHERE run_id = $2 AND dead_at = 0`, s.micros(), runID)
		return err
	})
}

const processColumns = `p.turn_id, p.seat, p.team, p.channel, p.root, p.run_id, p.pid, p.pgid, p.start_ticks, p.boot_id,
	(SELECT COALESCE(MIN(l.ts), '') FROM ledger l WHERE l.team = p.team AND l.channel = p.channel
		AND l.root = p.root AND l.seat = p.seat AND l.turn = p.turn_id)`

func scanProcess(r scanner) (TurnProcess, error) {
	var p TurnProcess
	var start int64
	err := r.Scan(&p.TurnID, &p.Seat, &p.Team, &p.Channel, &p.Root, &p.RunID, &p.PID, &p.PGID, &start, &p.BootID, &p.FirstTS)
	p.Start = uint64(start)
	return p, err
}
