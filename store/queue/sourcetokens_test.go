package queue_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

func TestHoldSourceToken_succeedsForOnlyOneOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const processes = 8
		var wg sync.WaitGroup
		var held atomic.Int64
		for i := range processes {
			s := db.Open(t)
			wg.Go(func() {
				kept, err := s.Queue.KeepSourceToken(t.Context(), "tiktok", "a", []byte(strconv.Itoa(i)))
				if err != nil {
					t.Errorf("KeepSourceToken must return no error: %v", err)
					return
				}
				if _, ok, err := s.Queue.HoldSourceToken(t.Context(), kept, time.Minute); err != nil {
					t.Errorf("HoldSourceToken must return no error: %v", err)
				} else if ok {
					held.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, held.Load())
		first, err := db.KeepSourceToken(t.Context(), "tiktok", "a", []byte("later"))
		require.NoError(t, err)
		require.Contains(t, "01234567", string(first.Sealed), "the first stored token must stay")

		other, err := db.KeepSourceToken(t.Context(), "tiktok", "b", []byte("other"))
		require.NoError(t, err)
		_, ok, err := db.HoldSourceToken(t.Context(), other, time.Minute)
		require.NoError(t, err)
		require.True(t, ok, "the token of another account must be lockable at the same time")
	})
}

func TestReplaceSourceToken_refusesATokenThatWasExchangedMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first, err := db.KeepSourceToken(t.Context(), "tiktok", "a", []byte("one"))
		require.NoError(t, err)
		ended, ok, err := db.HoldSourceToken(t.Context(), first, time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		_, ok, err = db.HoldSourceToken(t.Context(), first, time.Minute)
		require.NoError(t, err)
		require.False(t, ok)

		db.Clock.Advance(time.Minute)
		held, ok, err := db.HoldSourceToken(t.Context(), first, time.Minute)
		require.NoError(t, err)
		require.True(t, ok, "a token must be lockable again after the lock has ended")
		require.NoError(t, db.ReleaseSourceToken(t.Context(), ended))
		_, ok, err = db.HoldSourceToken(t.Context(), first, time.Minute)
		require.NoError(t, err)
		require.False(t, ok, "releasing an ended lock must not release the current lock")

		ok, err = db.ReplaceSourceToken(t.Context(), held, []byte("two"))
		require.NoError(t, err)
		require.True(t, ok)
		ok, err = db.ReplaceSourceToken(t.Context(), ended, []byte("stale"))
		require.NoError(t, err)
		require.False(t, ok)
		second, err := db.KeepSourceToken(t.Context(), "tiktok", "a", []byte("one"))
		require.NoError(t, err)
		require.Equal(t, "two", string(second.Sealed))
		require.Equal(t, first.Version+1, second.Version)
		_, ok, err = db.HoldSourceToken(t.Context(), first, time.Minute)
		require.NoError(t, err)
		require.False(t, ok, "a token that was replaced by a new one must not be lockable")

		held, ok, err = db.HoldSourceToken(t.Context(), second, time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, db.ReleaseSourceToken(t.Context(), held))
		_, ok, err = db.HoldSourceToken(t.Context(), second, time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
	})
}
