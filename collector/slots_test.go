package collector

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// asking is the context of a call that an organisation waits for.
func asking(ctx context.Context, org uuid.UUID) context.Context {
	return askingFor(ctx, []queue.Target{{Lane: queue.LaneInteractive, Organisation: org}})
}

func TestSlots_keepTheLastForWhoHasNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, burst, other := NewSlots(3), store.NewID(), store.NewID()
		granted := map[uuid.UUID][]func(){}
		var mu sync.Mutex
		ask := func(ctx context.Context, org uuid.UUID) {
			go func() {
				if give, err := s.Take(asking(ctx, org), time.Second); err == nil {
					mu.Lock()
					defer mu.Unlock()
					granted[org] = append(granted[org], give)
				}
			}()
		}
		has := func(org uuid.UUID) int {
			synctest.Wait()
			return len(granted[org])
		}
		patience, lost := context.WithCancel(t.Context())
		for range 5 {
			ask(patience, burst)
		}
		require.Equal(t, 2, has(burst))
		ask(t.Context(), other)
		require.Equal(t, 1, has(other))
		ask(t.Context(), other)
		require.Equal(t, 1, has(other), "each of the three is taken")
		granted[burst][0]()
		require.Equal(t, 2, has(burst), "the last one is kept for others")
		granted[burst][1]()
		require.Equal(t, 3, has(burst), "who has fewest is served first")
		require.Equal(t, 1, has(other))
		lost()
		granted[other][0]()
		require.Equal(t, 2, has(other))
		granted[other][1]()
		granted[burst][2]()
		require.Equal(t, 3, has(burst), "nobody gets what it no longer waits for")
		require.Equal(t, 3, s.free)
		require.Empty(t, s.held)
		require.Empty(t, s.waiting)
	})
}

func TestSlots_giveASingleOneByTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, org := NewSlots(1), store.NewID()
		give, err := s.Take(asking(t.Context(), org), time.Second)
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			again, err := s.Take(asking(t.Context(), org), time.Second)
			if err == nil {
				again()
			}
		}()
		synctest.Wait()
		give()
		<-done
		require.Equal(t, 1, s.free)
	})
}

func TestSlots_leaveEachCallItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		claim, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := NewSlots(1)
		give, err := s.Take(claim, 20*time.Second)
		require.NoError(t, err)
		began := time.Now()
		_, err = s.Take(claim, 20*time.Second)
		require.ErrorIs(t, err, ErrNoTime)
		require.Equal(t, 40*time.Second, time.Since(began), "whoever waits is told as soon as it is too late")
		give()
		_, err = s.Take(claim, 30*time.Second)
		require.ErrorIs(t, err, ErrNoTime, "though there is a slot")
		again, err := s.Take(claim, 10*time.Second)
		require.NoError(t, err)
		again()
		require.Equal(t, 1, s.free)

		stopped, stop := context.WithCancel(claim)
		stop()
		_, err = s.Take(stopped, time.Second)
		require.ErrorIs(t, err, context.Canceled)
	})
}
