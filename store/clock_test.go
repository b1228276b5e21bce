package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// off is a process whose clock is so far from the real time.
func off(t *testing.T, db *storetest.DB, by time.Duration) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: func() time.Time { return time.Now().Add(by) }, RealTime: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestRetention_believesNoClockThatIsWrong(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	o, now := newOrg(t, db), today(db)
	room(t, db, 40)
	series{daily: map[store.Date]store.Counts{now - 35: {Views: new(int64(4))}, now: {Views: new(int64(5))}}}.keep(t, db, o, track(t, o, clip(t, 1))[0].VideoID)
	once, months := stored(t, db, o), partitions(t, db)
	for _, by := range []time.Duration{366 * 24 * time.Hour, 25 * time.Hour, -25 * time.Hour} {
		wrong := off(t, db, by)
		_, err := wrong.ApplyRetention(t.Context(), goOn)
		require.ErrorContains(t, err, "set both by NTP")
		require.ErrorContains(t, err, "clock of this machine says "+time.Now().Add(by).UTC().Format("2006-01"))
		require.ErrorContains(t, err, "that of the database "+time.Now().UTC().Format("2006-01"))
		_, ok, err := wrong.ClaimJob(t.Context(), "tidy", time.Minute)
		require.ErrorContains(t, err, "set both by NTP")
		require.False(t, ok)
		require.Equal(t, once, stored(t, db, o))
		require.Equal(t, months, partitions(t, db))
	}
	right := off(t, db, 5*time.Minute)
	_, ok, err := right.ClaimJob(t.Context(), "tidy", time.Minute)
	require.NoError(t, err)
	require.True(t, ok, "nobody holds it in a time to come")
	_, err = right.ApplyRetention(t.Context(), goOn)
	require.NoError(t, err)
}

func partitions(t *testing.T, db *storetest.DB) []string {
	t.Helper()
	return storetest.Column[string](t, db, "SELECT CAST(inhrelid AS regclass) || '' FROM pg_inherits WHERE inhparent = CAST('snapshots_daily' AS regclass) ORDER BY 1")
}

// The clock of SQLite's machine is the store's own.
func TestRetention_ofOneMachineGoesByItsClock(t *testing.T) {
	t.Parallel()
	_, err := off(t, storetest.New(t, "sqlite"), time.Hour).ApplyRetention(t.Context(), goOn)
	require.NoError(t, err)
}
