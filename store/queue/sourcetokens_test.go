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

func TestLockSourceToken_succeedsForOnlyOneOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const processes = 8
		var wg sync.WaitGroup
		var locked atomic.Int64
		for i := range processes {
			s := db.Open(t)
			wg.Go(func() {
				stored, err := s.Queue.LoadOrStoreSourceToken(t.Context(), "tiktok", "a", []byte(strconv.Itoa(i)))
				if err != nil {
					t.Errorf("LoadOrStoreSourceToken must return no error: %v", err)
					return
				}
				if _, ok, err := s.Queue.LockSourceToken(t.Context(), stored, time.Minute); err != nil {
					t.Errorf("LockSourceToken must return no error: %v", err)
				} else if ok {
					locked.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, locked.Load())
		first, err := db.LoadOrStoreSourceToken(t.Context(), "tiktok", "a", []byte("later"))
		require.NoError(t, err)
		require.Contains(t, "01234567", string(first.Sealed), "the first stored token must stay")

		other, err := db.LoadOrStoreSourceToken(t.Context(), "tiktok", "b", []byte("other"))
		require.NoError(t, err)
		_, ok, err := db.LockSourceToken(t.Context(), other, time.Minute)
		require.NoError(t, err)
		require.True(t, ok, "the token of another account must be lockable at the same time")
	})
}

func TestReplaceSourceToken_refusesATokenThatWasExchangedMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first, err := db.LoadOrStoreSourceToken(t.Context(), "tiktok", "a", []byte("one"))
		require.NoError(t, err)
		ended, ok, err := db.LockSourceToken(t.Context(), first, time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		_, ok, err = db.LockSourceToken(t.Context(), first, time.Minute)
		require.NoError(t, err)
		require.False(t, ok)

		db.Clock.Advance(time.Minute)
		locked, ok, err := db.LockSourceToken(t.Context(), first, time.Minute)
		require.NoError(t, err)
		require.True(t, ok, "a token must be lockable again after the lock has ended")
		require.NoError(t, db.UnlockSourceToken(t.Context(), ended))
		_, ok, err = db.LockSourceToken(t.Context(), first, time.Minute)
		require.NoError(t, err)
		require.False(t, ok, "unlocking after the lock has ended must not end the current lock")

		ok, err = db.ReplaceSourceToken(t.Context(), locked, []byte("two"))
		require.NoError(t, err)
		require.True(t, ok)
		ok, err = db.ReplaceSourceToken(t.Context(), ended, []byte("stale"))
		require.NoError(t, err)
		require.False(t, ok)
		second, err := db.LoadOrStoreSourceToken(t.Context(), "tiktok", "a", []byte("one"))
		require.NoError(t, err)
		require.Equal(t, "two", string(second.Sealed))
		require.Equal(t, first.Version+1, second.Version)
		_, ok, err = db.LockSourceToken(t.Context(), first, time.Minute)
		require.NoError(t, err)
		require.False(t, ok, "a token that was replaced by a new one must not be lockable")

		locked, ok, err = db.LockSourceToken(t.Context(), second, time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, db.UnlockSourceToken(t.Context(), locked))
		_, ok, err = db.LockSourceToken(t.Context(), second, time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
	})
}
