package activities_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
)

// The line moves in order, everyone is told, and one who leaves holds nobody up (X6).
func TestPlaces_KeepTheOrderAndTellThePlace(t *testing.T) {
	p := activities.NewPlaces(1)
	ctx := context.Background()
	give, err := p.Take(ctx, func(int) { t.Error("a free place is taken at once") })
	require.NoError(t, err)

	places := make([]atomic.Int32, 3)
	leaving, leave := context.WithCancel(ctx)
	defer leave()
	got := make(chan int, 3)
	gives := make(chan func(), 3)
	for i, c := range []context.Context{ctx, leaving, ctx} {
		queued := make(chan struct{}, 8)
		go func() {
			g, err := p.Take(c, func(place int) { places[i].Store(int32(place)); queued <- struct{}{} })
			if err == nil {
				gives <- g
				got <- i
			} else {
				got <- -1
			}
		}()
		<-queued
		require.EqualValues(t, i+1, places[i].Load())
	}

	leave()
	require.Equal(t, -1, <-got)
	require.EqualValues(t, 2, places[2].Load(), "the third moved up when the second left")

	give()
	require.Equal(t, 0, <-got)
	(<-gives)()
	require.Equal(t, 2, <-got)
	(<-gives)()

	again, err := p.Take(ctx, func(int) { t.Error("every place was given back") })
	require.NoError(t, err)
	again()
}
