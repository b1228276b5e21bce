package ingest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestRepairFutureTimes_correctsAccounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.Follow(t, storetest.NewOrg(t, db), store.TrackNewOnly, storetest.ParseLink(t, storetest.AccountURL))
		now := store.InstantOf(db.Clock.Now())
		repair := func() map[string]int64 {
			t.Helper()
			repaired, err := ingest.New(db.Store).RepairFutureTimes(t.Context(), time.Hour)
			require.NoError(t, err)
			return repaired
		}
		const times = "SELECT checked_at FROM accounts UNION ALL SELECT discovered_at FROM accounts"
		set := func(at store.Instant) { db.Exec(t, "UPDATE accounts SET checked_at = ?, discovered_at = ?", at, at) }
		for _, at := range []store.Instant{now.Add(-time.Hour), now.Add(15 * time.Minute)} {
			set(at)
			require.Zero(t, repair()["accounts"])
			require.Equal(t, []store.Instant{at, at}, storetest.Column[store.Instant](t, db, times))
		}
		set(now.Add(16 * time.Minute))
		require.EqualValues(t, 1, repair()["accounts"])
		require.Equal(t, []store.Instant{now, now}, storetest.Column[store.Instant](t, db, times))
	})
}
