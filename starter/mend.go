package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

func (x *inbox) isDown() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.down
}

func (x *inbox) setDown(err error) {
	x.mu.Lock()
	was := x.down
	x.down = true
	x.mu.Unlock()
	if !was {
		x.loud.Raise("store "+x.name, "The store does not take lines for "+x.name+"; they go around it until it does: "+err.Error())
	}
	x.wakeMend()
}

func (x *inbox) setUp() {
	x.mu.Lock()
	was := x.down
	x.down = false
	x.mu.Unlock()
	if was {
		x.loud.Clear("store "+x.name, "The store takes lines for "+x.name+" again.")
		x.dispatch()
	}
}

func (x *inbox) wakeMend() {
	select {
	case x.spoolRetry <- struct{}{}:
	default:
	}
}

// mend brings back what trouble left behind, until ctx ends: it asks a store that is down
// whether it is back, and hands over in order what the spool keeps, also from before the
// start (L2). It costs nothing while there is no trouble.
func (x *inbox) mend(ctx context.Context) {
	x.wakeMend()
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.spoolRetry:
		}
		for !x.mended(ctx) {
			if !pause(ctx, storeRetry) {
				return
			}
		}
	}
}

// mended tells whether the store is back and the spool is empty.
func (x *inbox) mended(ctx context.Context) bool {
	if x.isDown() {
		pingCtx, cancel := context.WithTimeout(ctx, storeTimeout)
		err := x.ledger.Ping(pingCtx)
		cancel()
		if err != nil {
			return false
		}
		x.setUp()
	}
	if x.spool.empty() {
		return true
	}
	defer x.flush()
	n := 0
	err := x.spool.drain(func(envelope json.RawMessage) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		n++
		return x.handOver(ctx, envelope)
	})
	if err != nil {
		if !errors.Is(err, errStoreDown) && ctx.Err() == nil {
			x.log.Warn("the spool waits", "seat", x.name, "error", err)
		}
		return false
	}
	x.loud.Clear("spool "+x.name, "What waited for the store of "+x.name+" is handed over.")
	x.log.Info("the spool is handed over", "seat", x.name, "envelopes", n)
	return true
}

// stuckTries is how often one envelope of the spool may fail while the store is up, before
// it is kept raw for a person to look at, and no longer holds up those behind it.
const stuckTries = 40

// handOver writes one envelope of the spool to the store. Only mend calls it.
func (x *inbox) handOver(ctx context.Context, envelope json.RawMessage) error {
	in := readEnvelope(x.roster.Team, envelope)
	err := x.storeOnce(ctx, in)
	if err == nil {
		x.stuck = 0
		return nil
	}
	if x.stuck++; x.stuck < stuckTries || errors.Is(err, errStopUnsaid) || ctx.Err() != nil {
		return err
	}
	in.name, in.why = "stuck "+string(in.kind), clip(err.Error())
	if rawErr := x.recordStrange(ctx, in); rawErr != nil {
		return errors.Join(err, rawErr)
	}
	x.stuck = 0
	x.setUp() // it took the raw envelope
	x.loud.Raise("stuck "+x.name, "An envelope for "+x.name+" could not be handled and was kept raw: "+in.why)
	return nil
}

// count says how many, for people.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// backoff is the wait after the n-th failure in a row: from one second, doubled, half a
// minute at most.
func backoff(n int) time.Duration {
	return min(time.Second<<min(n-1, 10), 30*time.Second)
}
