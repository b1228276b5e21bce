package queue_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// usedUnits returns how many units of a source are reserved in a window.
func usedUnits(t *testing.T, db *storetest.DB, source, window string) int64 {
	t.Helper()
	n, err := db.ReservedUnits(t.Context(), source, window)
	require.NoError(t, err)
	return n
}

// reserveUnits reserves units of a source in a window, and returns true if the budget had enough units.
func reserveUnits(t *testing.T, db *storetest.DB, source, window string, units, limit int64) bool {
	t.Helper()
	ok, err := db.ReserveUnits(t.Context(), source, window, units, limit)
	require.NoError(t, err)
	return ok
}

func TestReserveUnits_neverOverdrawsTheBudgetWithConcurrentCollectors(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const collectors, calls, units, limit = 8, 25, 7, 1000
		var wg sync.WaitGroup
		var mu sync.Mutex
		granted := 0
		for range collectors {
			s := db.Open(t)
			wg.Go(func() {
				for range calls {
					ok, err := s.Queue.ReserveUnits(t.Context(), "youtube", "2026-01-01", units, limit)
					if err != nil {
						t.Errorf("reserve: %v", err)
						return
					}
					if ok {
						mu.Lock()
						granted++
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, limit/units, granted, "the budget must be used up and not overdrawn")
		require.EqualValues(t, granted*units, usedUnits(t, db, "youtube", "2026-01-01"))
	})
}

func TestQuota_countsReservedAndReturnedUnits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		next := 0
		rapid.Check(t, func(rt *rapid.T) {
			next++
			source := "source" + string(rune('a'+next))
			limit, want := rapid.SampledFrom([]int64{0, 10, 100}).Draw(rt, "limit"), map[string]int64{}
			for range rapid.IntRange(1, 20).Draw(rt, "calls") {
				window := rapid.SampledFrom([]string{"monday", "tuesday"}).Draw(rt, "window")
				units := rapid.Int64Range(1, 40).Draw(rt, "units")
				if back := min(units, want[window]); back > 0 && rapid.Bool().Draw(rt, "return units") {
					require.NoError(rt, db.ReturnUnits(t.Context(), source, window, back))
					want[window] -= back
					continue
				}
				fits := limit == 0 || want[window]+units <= limit
				require.Equal(rt, fits, reserveUnits(t, db, source, window, units, limit))
				if fits {
					want[window] += units
				}
			}
			for window, n := range want {
				require.Equal(rt, n, usedUnits(t, db, source, window))
			}
		})
	})
}

func TestDeleteOldWindows_deletesOlderWindowsOfTheSource(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		require.Zero(t, usedUnits(t, db, "youtube", "2026-01-01"))
		for _, window := range []string{"2026-01-01", "2026-01-02", "2026-01-03"} {
			require.True(t, reserveUnits(t, db, "youtube", window, 5, 5))
			require.True(t, reserveUnits(t, db, "tiktok", window, 5, 5))
		}
		require.NoError(t, db.DeleteOldWindows(t.Context(), "youtube", "2026-01-02"))
		require.Zero(t, usedUnits(t, db, "youtube", "2026-01-01"))
		require.EqualValues(t, 5, usedUnits(t, db, "youtube", "2026-01-02"))
		require.EqualValues(t, 5, usedUnits(t, db, "tiktok", "2026-01-01"))
		require.NoError(t, db.ReturnUnits(t.Context(), "youtube", "2026-01-01", 3))
		require.Empty(t, storetest.Column[int64](t, db, "SELECT used FROM quota_windows WHERE source = 'youtube' AND win = '2026-01-01'"), "returning units to a deleted window must not create it again")
		require.NoError(t, db.ReturnUnits(t.Context(), "tiktok", "2026-01-01", 9))
		require.Zero(t, usedUnits(t, db, "tiktok", "2026-01-01"))
	})
}

func TestPauseSource_appliesToAllProcessesUntilItEnds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		pauses := func() map[string]queue.Pause {
			t.Helper()
			p, err := db.Open(t).Queue.Pauses(t.Context()) // a second process reads the pauses
			require.NoError(t, err)
			return p
		}
		require.Empty(t, pauses())
		now := store.InstantOf(db.Clock.Now())
		short := queue.Pause{Source: "youtube", Class: "rate_limited", Detail: "429", BlockedUntil: now.Add(time.Minute), PausesSinceSuccess: 1}
		long := queue.Pause{Source: "youtube", Class: "quota_spent", Detail: "quotaExceeded", BlockedUntil: now.Add(time.Hour), PausesSinceSuccess: 2}
		other := queue.Pause{Source: "tiktok", Class: "rate_limited", BlockedUntil: now}
		short.Since, long.Since, other.Since = &now, &now, new(now.Add(time.Second))
		for _, p := range []queue.Pause{short, other, long, short} {
			require.NoError(t, db.PauseSource(t.Context(), p))
			db.Clock.Advance(time.Second) // later pauses keep the time of the first pause
		}
		require.Equal(t, map[string]queue.Pause{"youtube": long, "tiktok": other}, pauses(), "a shorter pause must not replace a longer one, and ended pauses must be included")
		resume := func(source string, asOf store.Instant) bool {
			t.Helper()
			resumed, err := db.ResumeSource(t.Context(), source, asOf)
			require.NoError(t, err)
			return resumed
		}
		require.False(t, resume("youtube", long.BlockedUntil.Add(-time.Millisecond)), "a call that began before the end of the pause must not delete the pause")
		require.NoError(t, db.EndBudgetPause(t.Context(), "youtube"))
		require.Equal(t, map[string]queue.Pause{"youtube": long, "tiktok": other}, pauses(), "EndBudgetPause must not delete a pause that began because a call was refused")
		require.True(t, resume("youtube", long.BlockedUntil))
		require.False(t, resume("unknown", now))
		require.Equal(t, map[string]queue.Pause{"tiktok": other}, pauses())

		own := queue.Pause{Source: "youtube/common", Class: "quota_spent", Detail: "the budget is used up", BlockedUntil: now.Add(time.Hour)}
		require.NoError(t, db.PauseSource(t.Context(), own))
		require.NoError(t, db.EndBudgetPause(t.Context(), "youtube/common"))
		require.Equal(t, map[string]queue.Pause{"tiktok": other}, pauses())

		require.NoError(t, db.PauseSource(t.Context(), own))
		db.Clock.Advance(time.Hour)
		failed := queue.Pause{Source: own.Source, Class: "auth_failed", BlockedUntil: now.Add(2 * time.Hour), PausesSinceSuccess: 1, Since: new(store.InstantOf(db.Clock.Now()))}
		require.NoError(t, db.PauseSource(t.Context(), failed))
		require.Equal(t, failed, pauses()[own.Source], "the calls have failed since the second pause, because the first one began when a budget was used up")
		db.Clock.Advance(2 * time.Hour)
		own.BlockedUntil, own.Since = now.Add(5*time.Hour), new(store.InstantOf(db.Clock.Now()))
		require.NoError(t, db.PauseSource(t.Context(), own))
		require.Equal(t, own, pauses()[own.Source], "the pause of a used-up budget must begin now, although refused calls caused the pause before it")
	})
}
