package ingest_test

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// firstDayForDailyPoints returns the first day whose points ApplyRetention must keep as daily
// points.
func firstDayForDailyPoints(db *storetest.DB) store.Date {
	// ApplyRetention replaces only whole weeks by weekly points.
	week := (storetest.Today(db) - storetest.DailyDays).Week()
	if !db.SharedByProcesses() {
		return week
	}
	// On PostgreSQL, ApplyRetention deletes only whole months of daily points.
	at := week.Time()
	return store.DateOf(at.AddDate(0, 0, 1-at.Day()))
}

// randomSeries returns a random history with points up to today. Points that are older than a random age are already weekly points.
func randomSeries(t *rapid.T, today store.Date) storetest.Series {
	s := storetest.Series{Daily: map[store.Date]store.Counts{}, Weekly: map[store.Date]store.Counts{}}
	views, rolledUpBefore := int64(1000), rapid.IntRange(90, 800).Draw(t, "age in days after which points are rolled up")
	weeks := map[store.Date]bool{}
	step := rapid.SampledFrom([]int{1, 1, 2, 5, 30}).Draw(t, "days between points")
	for ago := rapid.IntRange(0, 790).Draw(t, "first"); ago >= 0; ago -= 1 + rapid.IntRange(0, step-1).Draw(t, "gap") {
		views += rapid.Int64Range(-20, 100).Draw(t, "growth")
		day, c := today-store.Date(ago), store.Counts{Views: new(views)}
		if rapid.IntRange(0, 9).Draw(t, "random digit: if it is 0, the point has no views") == 0 {
			c = store.Counts{Likes: new(views)}
		}
		if ago > rolledUpBefore && !weeks[day.Week()] {
			s.Weekly[day], weeks[day.Week()] = c, true
		} else if ago <= rolledUpBefore {
			s.Daily[day] = c
		}
	}
	return s
}

// openStoreWithStatementLimit opens the database as a second process would do. After n statements, every statement fails, as if the process had been
// killed.
func openStoreWithStatementLimit(t *testing.T, db *storetest.DB, n int64) *store.Store {
	t.Helper()
	var left atomic.Int64
	left.Store(1 << 30) // allow all statements while the database is opened
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: func(string, []any) error {
		if left.Add(-1) < 0 {
			return errors.New("killed")
		}
		return nil
	}})
	require.NoError(t, err)
	left.Store(n)
	return s
}

func TestRetention_losesNoPointIfInterruptedAtAnyStatement(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, next := storetest.NewOrg(t, db), 0
		rapid.Check(t, func(rt *rapid.T) {
			db.Clock.Set(time.Date(2025, 12, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 400).Draw(rt, "days on"))) // the history includes 29 February 2024
			opened := db.Open(t)
			other := &storetest.DB{Store: opened, Queue: opened.Queue, Writer: ingest.New(opened), Clock: db.Clock} // a second Store has an empty partition cache, so it creates dropped partitions again
			storetest.CreatePartitions(t, other, 800)
			require.NoError(rt, other.Close())
			now, l := storetest.Today(db), storetest.VideoLink(t, next)
			next++
			id := storetest.Track(t, o, l)[0].ID
			s := randomSeries(rt, now)
			s.Insert(t, db, o, id)
			kept := s.RetainedPart(firstDayForDailyPoints(db), now-storetest.WeeklyDays-14)
			from := now - storetest.WeeklyDays
			read := func(from store.Date) []store.Point {
				got, err := o.History(t.Context(), store.Ref{ID: id}, from, now)
				require.NoError(rt, err)
				return got
			}

			for range 3 {
				killed := openStoreWithStatementLimit(t, db, rapid.Int64Range(0, 60).Draw(rt, "number of statements before the process is killed"))
				_, _ = ingest.New(killed).ApplyRetention(t.Context(), storetest.NeverStop)
				require.NoError(rt, killed.Close())
				byDay := map[store.Date]store.Point{}
				for _, p := range read(from - 7) {
					byDay[p.Day] = p
				}
				for _, want := range kept.ExpectedHistory(from, now) {
					if want.Quality == store.QualityInterpolated { // an interpolated point is missing if no count is known in both neighbours, which can happen before the week is rolled up
						continue
					}
					require.Contains(rt, byDay, want.Day)
					got := byDay[want.Day].Counts
					if _, week := kept.Weekly[want.Day]; week { // if the week is not rolled up yet, its counts are still in its daily points
						for d := want.Day - 1; d >= want.Day.Week(); d-- {
							if byDay[d].Quality != store.QualityInterpolated {
								got = storetest.MergeCounts(got, byDay[d].Counts)
							}
						}
					}
					require.Equal(rt, want.Counts, got, "%s must not be lost", want.Day)
				}
			}
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					if _, err := db.ApplyRetention(t.Context(), storetest.NeverStop); err != nil {
						t.Errorf("%v", err)
					}
				})
			}
			both.Wait()
			require.Equal(rt, kept.ExpectedHistory(from, now), read(from))
			again, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
			require.NoError(rt, err)
			require.Zero(rt, again.Weeks+again.Days+again.Expired)
			require.Empty(rt, again.Months)
		})
	})
}

func TestRetention_keepsDailyPointsFor90DaysAndWeeklyPointsAfterThat(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreatePartitions(t, db, 800)
		o, now := storetest.NewOrg(t, db), storetest.Today(db)
		id := storetest.Track(t, o, storetest.VideoLink(t, 1))[0].ID
		s := storetest.Series{Daily: map[store.Date]store.Counts{}}
		for ago := range store.Date(800) {
			s.Daily[now-ago] = store.Counts{Views: new(int64(100_000 - ago))}
		}
		s.Insert(t, db, o, id)
		done, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		weeks := s.RetainedPart(firstDayForDailyPoints(db), now-storetest.WeeklyDays-14).Weekly
		require.EqualValues(t, len(weeks), storetest.Column[int64](t, db, "SELECT COUNT(*) FROM snapshots_weekly")[0])
		require.InDelta(t, 92, len(weeks), 3)
		daily := storetest.Column[int64](t, db, "SELECT COUNT(*) FROM snapshots_daily")[0]
		require.GreaterOrEqual(t, daily, int64(91))
		require.LessOrEqual(t, daily, int64(91+7+31))
		require.Equal(t, db.SharedByProcesses(), len(done.Months) > 20, "PostgreSQL must drop the partitions of old months, and SQLite must drop nothing, because it has no partitions: %v", done.Months)
		require.Equal(t, db.SharedByProcesses(), done.Days == 0)
		points, err := o.History(t.Context(), store.Ref{ID: id}, now-storetest.WeeklyDays, now)
		require.NoError(t, err)
		require.Len(t, points, storetest.WeeklyDays+1)
		for ago, p := range points {
			require.EqualValues(t, 100_000-ago, *p.Views, "interpolated points must be exact, because the growth is constant")
			require.Equal(t, now-store.Date(ago), p.Day)
			if ago <= storetest.DailyDays {
				require.Equal(t, store.QualityMeasured, p.Quality)
			}
		}
	})
}

// Requirements in docs/coverage.md: 11.8-08
func TestRetention_keepsPointsForTheConfiguredDays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreatePartitions(t, db, 400)
		configured, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: db.Guard.Inspect, Retention: store.Retention{Daily: 150, Weekly: 200}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, configured.Close()) })
		o, now := storetest.NewOrg(t, db), storetest.Today(db)
		id := storetest.Track(t, o, storetest.VideoLink(t, 1))[0].ID
		s := storetest.Series{Daily: map[store.Date]store.Counts{}}
		for ago := range store.Date(400) {
			s.Daily[now-ago] = store.Counts{Views: new(int64(100_000 - ago))}
		}
		s.Insert(t, db, o, id)
		_, err = ingest.New(configured).ApplyRetention(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		daily := storetest.Column[int64](t, db, "SELECT COUNT(*) FROM snapshots_daily")[0]
		require.GreaterOrEqual(t, daily, int64(151))
		require.LessOrEqual(t, daily, int64(151+7+31))
		weekly := storetest.Column[int64](t, db, "SELECT COUNT(*) FROM snapshots_weekly")[0]
		require.InDelta(t, (200+14-150)/7, weekly, 5, "retention must keep the weekly points from 150 to 214 days ago, and delete older ones")
	})
}

func TestRetention_copiesMissingSundayCountsFromEarlierDays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, n := storetest.NewOrg(t, db), 0
		for _, cut := range []bool{false, true} {
			monday, days := storetest.WeekWhoseSundayLacksViews(db, cut)
			sunday := monday + 6
			early, late := map[store.Date]store.Counts{}, map[store.Date]store.Counts{}
			for day, c := range days {
				if day.Time().Day() > 20 {
					early[day] = c
				} else {
					late[day] = c
				}
			}
			lastDay := map[store.Date]store.Counts{sunday: days[sunday]}
			rolledUp := func(daily map[store.Date]store.Counts) map[store.Date]store.Counts {
				return storetest.Series{Daily: daily}.RetainedPart(sunday+1, 0).Weekly
			}
			for name, s := range map[string]storetest.Series{
				"daily points only": {Daily: days},
				"a weekly point with the counts of the last day only":                                            {Daily: days, Weekly: lastDay},
				"a week across two months, with only the days of the second month rolled up":                     {Daily: early, Weekly: rolledUp(late)},
				"a week across two months, with only the last day rolled up":                                     {Daily: early, Weekly: lastDay},
				"a week across two months, with only the days of the first month rolled up":                      {Daily: late, Weekly: rolledUp(early)},
				"a week across two months, with a weekly point for the first month and a daily point for Sunday": {Daily: lastDay, Weekly: rolledUp(early)},
			} {
				want := rolledUp(s.Points())[sunday]
				require.EqualValues(t, 70, *want.Likes)
				require.NotNil(t, want.Views)
				storetest.CreatePartitions(t, db, 250) // the previous iteration has dropped old months
				id := storetest.Track(t, o, storetest.VideoLink(t, n))[0].ID
				n++
				s.Insert(t, db, o, id)
				for _, table := range []string{"snapshots_daily", "snapshots_weekly"} {
					db.Exec(t, "UPDATE "+table+" SET fetched_at = 7, source = 'other' WHERE organisation_id = ? AND day = ?", o.ID(), sunday)
				}
				_, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
				require.NoError(t, err)
				got, err := o.History(t.Context(), store.Ref{ID: id}, sunday, sunday)
				require.NoError(t, err)
				require.Equal(t, []store.Point{{Day: sunday, Counts: want,
					Provenance: store.Provenance{Quality: store.QualityMeasured, Source: new("other"), FetchedAt: new(store.Instant(7))}}}, got, name)
				again, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
				require.NoError(t, err)
				require.Zero(t, again.Weeks)
			}
		}
		require.Zero(t, storetest.Column[int64](t, db, "SELECT COUNT(*) FROM snapshots_daily")[0])
	})
}

// If a count is written after the weekly points of its month were written, ApplyRetention does not
// drop the month. The next call adds the count to the weekly point.
func TestRetention_keepsAMonthIfItsWeeklyPointsLackACount(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	storetest.CreatePartitions(t, db, 250)
	o := storetest.NewOrg(t, db)
	_, days := storetest.WeekWhoseSundayLacksViews(db, false)
	storetest.Series{Daily: days}.Insert(t, db, o, storetest.Track(t, o, storetest.VideoLink(t, 1))[0].ID)
	db.Guard.BeforeStatement("LOCK TABLE "+oldestPartition(days), func() {
		db.Exec(t, "UPDATE snapshots_daily SET shares = 5 WHERE organisation_id = ?", o.ID())
	})
	done, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
	require.NoError(t, err)
	require.Len(t, done.Busy, 1)
	again, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
	require.NoError(t, err)
	require.Equal(t, done.Busy, again.Months)
	require.Equal(t, []int64{5}, storetest.Column[int64](t, db, "SELECT shares FROM snapshots_weekly WHERE organisation_id = ?", o.ID()))
}

// oldestPartition returns the name of a partition of the table snapshots_daily: the one for the month of the earliest day in the map.
func oldestPartition(days map[store.Date]store.Counts) string {
	return "snapshots_daily_" + slices.Min(slices.Collect(maps.Keys(days))).Time().Format("200601")
}

func TestRetention_deletesTheOldestPointsOfAccountsAndOrganisations(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.CreateOrgWithData(t, db)
		account := storetest.Column[string](t, db, "SELECT CAST(id AS text) FROM accounts WHERE tracked")[0]
		now := storetest.Today(db)
		for _, ago := range []store.Date{1, storetest.WeeklyDays, storetest.WeeklyDays + 14, storetest.WeeklyDays + 15} {
			db.Exec(t, "INSERT INTO account_days (organisation_id, account_id, day, videos) VALUES (?, ?, ?, 1)", o.ID(), account, now-ago)
			db.Exec(t, "INSERT INTO organisation_days (organisation_id, day, videos, views, likes, comments, shares, bookmarks) VALUES (?, ?, 1, 1, 1, 1, 1, 1)", o.ID(), now-ago)
		}
		done, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		require.EqualValues(t, 2, done.Expired)
		for _, table := range []string{"account_days", "organisation_days"} {
			require.EqualValues(t, 3, storetest.Column[int64](t, db, "SELECT COUNT(*) FROM "+table+" WHERE day < ?", now)[0], table)
		}
	})
}

func TestRetention_doesNotWaitForTransactionsThatRead(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	storetest.CreatePartitions(t, db, 200)
	o, now := storetest.NewOrg(t, db), storetest.Today(db)
	id := storetest.Track(t, o, storetest.VideoLink(t, 1))[0].ID
	storetest.Series{Daily: map[store.Date]store.Counts{now - 190: {Views: new(int64(5))}}}.Insert(t, db, o, id)
	reader, err := db.Raw(t).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = reader.ExecContext(t.Context(), "SELECT 1 FROM snapshots_daily LIMIT 1")
	require.NoError(t, err)
	done, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
	require.NoError(t, err)
	require.NotEmpty(t, done.Busy)
	require.Empty(t, done.Months)
	require.EqualValues(t, 1, done.Weeks, "the point must be rolled up although the month is not dropped")
	require.NoError(t, reader.Rollback())
	again, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
	require.NoError(t, err)
	require.Equal(t, done.Busy, again.Months)
	points, err := o.History(t.Context(), store.Ref{ID: id}, now-200, now)
	require.NoError(t, err)
	require.Len(t, points, 1)
}

func TestRetention_stopsIfTheLeaseOfTheJobIsLost(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLink(t, 1))
		_, err := db.ApplyRetention(t.Context(), func() error { return queue.ErrLeaseLost })
		require.ErrorIs(t, err, queue.ErrLeaseLost)
	})
}

func TestClaimJob_givesAJobToOneProcessAtATime(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		var wg sync.WaitGroup
		held := make(chan queue.JobLease, 8)
		for range cap(held) {
			s := db.Open(t)
			wg.Go(func() {
				lease, ok, err := s.Queue.ClaimJob(t.Context(), "tidy", time.Minute)
				if err != nil {
					t.Errorf("%v", err)
				}
				if ok {
					held <- lease
				}
			})
		}
		wg.Wait()
		require.Len(t, held, 1)
		first := <-held

		db.Clock.Advance(50 * time.Second)
		require.NoError(t, first.Extend(t.Context()))
		db.Clock.Advance(50 * time.Second)
		_, ok, err := db.ClaimJob(t.Context(), "tidy", time.Minute)
		require.NoError(t, err)
		require.False(t, ok, "no other process may get the job before the extended lease has ended")
		db.Clock.Advance(10 * time.Second)
		second, ok, err := db.ClaimJob(t.Context(), "tidy", time.Minute)
		require.NoError(t, err)
		require.True(t, ok, "another process must get the job when the lease of the first process has ended")
		require.ErrorIs(t, first.Extend(t.Context()), queue.ErrLeaseLost)
		require.ErrorIs(t, first.Finish(t.Context(), db.Clock.Now()), queue.ErrLeaseLost)

		require.NoError(t, second.Finish(t.Context(), db.Clock.Now().Add(time.Hour)))
		_, ok, err = db.ClaimJob(t.Context(), "tidy", time.Minute)
		require.NoError(t, err)
		require.False(t, ok)
		db.Clock.Advance(time.Hour)
		_, ok, err = db.ClaimJob(t.Context(), "tidy", time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
	})
}
