package ingest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/storetest"
)

// openStoreWithOffset opens the database with a wrong clock. The clock is ahead of the real time by the given duration, or behind if the duration is
// negative.
func openStoreWithOffset(t *testing.T, db *storetest.DB, by time.Duration) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: func() time.Time { return time.Now().Add(by) }, RealTime: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestRetention_deletesNothingIfTheClockDiffersFromTheDatabaseClock(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	o, now := storetest.NewOrg(t, db), storetest.Today(db)
	storetest.CreatePartitions(t, db, 40)
	storetest.Series{Daily: map[store.Date]store.Counts{now - 35: {Views: new(int64(4))}, now: {Views: new(int64(5))}}}.Insert(t, db, o, storetest.Track(t, o, storetest.VideoLink(t, 1))[0].ID)
	once, months := storetest.StoredRows(t, db, o), partitions(t, db)
	for _, by := range []time.Duration{366 * 24 * time.Hour, 25 * time.Hour, -25 * time.Hour} {
		wrong := openStoreWithOffset(t, db, by)
		_, err := ingest.New(wrong).ApplyRetention(t.Context(), storetest.NeverStop)
		require.ErrorContains(t, err, "set both clocks by NTP")
		require.ErrorContains(t, err, fmt.Sprintf("the clock of this machine says %s", time.Now().Add(by).UTC().Format("2006-01")))
		require.ErrorContains(t, err, fmt.Sprintf("the clock of the database says %s", time.Now().UTC().Format("2006-01")))
		_, ok, err := wrong.Queue.ClaimJob(t.Context(), "tidy", time.Minute)
		require.ErrorContains(t, err, "set both clocks by NTP")
		require.False(t, ok)
		require.Equal(t, once, storetest.StoredRows(t, db, o))
		require.Equal(t, months, partitions(t, db))
	}
	right := openStoreWithOffset(t, db, 5*time.Minute)
	_, ok, err := right.Queue.ClaimJob(t.Context(), "tidy", time.Minute)
	require.NoError(t, err)
	require.True(t, ok, "the process with the wrong clock must not have claimed the job")
	_, err = ingest.New(right).ApplyRetention(t.Context(), storetest.NeverStop)
	require.NoError(t, err)
}

// partitions returns the names of the partitions of snapshots_daily.
func partitions(t *testing.T, db *storetest.DB) []string {
	t.Helper()
	return storetest.Column[string](t, db, "SELECT CAST(inhrelid AS regclass) || '' FROM pg_inherits WHERE inhparent = CAST('snapshots_daily' AS regclass) ORDER BY 1")
}

func TestRetention_runsOnSQLiteWithoutADatabaseClock(t *testing.T) {
	t.Parallel()
	_, err := ingest.New(openStoreWithOffset(t, storetest.New(t, "sqlite"), time.Hour)).ApplyRetention(t.Context(), storetest.NeverStop)
	require.NoError(t, err)
}

// openStoreWithClock returns a Store with a clock that the test can set. The Store treats this
// clock as the real clock of the machine.
func openStoreWithClock(t *testing.T, db *storetest.DB) (*store.Store, *storetest.Clock) {
	t.Helper()
	o := storetest.NewOrg(t, db)
	db.Exec(t, "UPDATE organisations SET created_at = ? WHERE id = ?", store.InstantOf(db.Clock.Now().AddDate(-1, 0, 0)), o.ID())
	clock := storetest.NewClock()
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: clock.Now, RealTime: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, clock
}

func TestRetention_deletesNothingInTheWeekAfterAClockJump(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	s, clock := openStoreWithClock(t, db)
	waitAWeek := func() {
		t.Helper()
		for range 7 {
			requireClockErrors(t, s)
			clock.Advance(24 * time.Hour)
		}
		_, err := ingest.New(s).ApplyRetention(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
	}
	waitAWeek() // the table clock_state is still empty: rows are deleted only after the clock has run without a jump for a week
	o := storetest.NewOrg(t, db)
	id := storetest.Track(t, o, storetest.VideoLink(t, 1))[0].ID
	now := store.DateOf(clock.Now())
	storetest.Series{Daily: map[store.Date]store.Counts{now: {Views: new(int64(5))}}}.Insert(t, db, o, id)
	once := storetest.StoredRows(t, db, o)
	for name, jump := range map[string]time.Duration{"ten years ahead": 3650 * 24 * time.Hour, "32 days ahead": 32 * 24 * time.Hour, "two days behind": -48 * time.Hour} {
		right := clock.Now()
		clock.Advance(jump)
		requireClockErrors(t, s)
		clock.Advance(7*24*time.Hour - time.Second)
		requireClockErrors(t, s)
		clock.Set(right)
		waitAWeek()
		require.Equal(t, once, storetest.StoredRows(t, db, o), name)
	}
	clock.Advance(30 * 24 * time.Hour) // 30 days without a collector are not a clock jump
	_, err := ingest.New(s).ApplyRetention(t.Context(), storetest.NeverStop)
	require.NoError(t, err)
}

// requireClockErrors checks that every job that deletes rows returns a *store.ClockError.
func requireClockErrors(t *testing.T, s *store.Store) {
	t.Helper()
	var wrong *store.ClockError
	_, err := ingest.New(s).ApplyRetention(t.Context(), storetest.NeverStop)
	require.ErrorAs(t, err, &wrong)
	_, err = ingest.New(s).DeleteExpired(t.Context(), storetest.NeverStop)
	require.ErrorAs(t, err, &wrong)
	_, err = s.Queue.DeleteOrphans(t.Context(), storetest.NeverStop)
	require.ErrorAs(t, err, &wrong)
	_, ok, err := s.Queue.ClaimJob(t.Context(), "tidy", time.Minute)
	require.ErrorAs(t, err, &wrong)
	require.False(t, ok)
	require.ErrorContains(t, s.CheckClock(t.Context()), "if the clock is wrong, set it by NTP")
}

func TestRetention_trustsTheClockOfANewInstallation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.NewOrg(t, db)
		s := openStoreWithOffset(t, db, 0)
		_, ok, err := s.Queue.ClaimJob(t.Context(), "tidy", time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		_, err = ingest.New(s).ApplyRetention(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		require.Len(t, storetest.Column[string](t, db, "SELECT name FROM clock_state"), 1)
	})
}

func TestCheckClock_writesNothing(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	s, _ := openStoreWithClock(t, db)
	require.Error(t, s.CheckClock(t.Context()))
	require.Empty(t, storetest.Column[string](t, db, "SELECT name FROM clock_state"))
}
