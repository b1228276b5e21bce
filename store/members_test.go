package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// addVideosFrom adds videos to a collection with the first day whose gains count, and returns how many were not direct members before.
func addVideosFrom(t *testing.T, o *store.Org, collection uuid.UUID, countsFrom store.Date, ids ...uuid.UUID) int64 {
	t.Helper()
	added, err := o.AddVideos(t.Context(), collection, ids, &countsFrom)
	require.NoError(t, err)
	return added
}

// Requirements in docs/coverage.md: 11.5-07
func TestAddVideos_withADayCountsAPastPeriodInFull(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreatePartitions(t, db, 60)
		o := storetest.NewOrg(t, db)
		root := storetest.Collection(t, o, "Root", nil)
		first := storetest.Today(db) - 40
		last := first + 29
		tracked := storetest.Track(t, o, storetest.VideoLinks(t, 2)...)
		early, late := tracked[0].ID, tracked[1].ID
		// The views of the first video are known from two days before the period on. The views of the second video are known only from the sixth day of the
		// period on.
		points := map[store.Date]store.Counts{}
		for day := first - 2; day <= last+3; day++ {
			points[day] = store.Counts{Views: new(1000 + 10*int64(day-first))}
		}
		storetest.Series{Daily: points}.Insert(t, db, o, early)
		storetest.Series{Daily: map[store.Date]store.Counts{first + 5: {Views: new(int64(50))}, last: {Views: new(int64(80))}}}.Insert(t, db, o, late)
		db.Exec(t, "UPDATE videos SET latest_views = 1 WHERE organisation_id = ?", o.ID()) // CollectionTotals only tests whether the latest counts are NULL

		gains := func() map[uuid.UUID]*int64 {
			t.Helper()
			got := map[uuid.UUID]*int64{}
			for _, report := range []bool{false, true} {
				totals, err := o.CollectionTotals(t.Context(), store.CollectionTotalsQuery{Collection: root.ID, From: first, To: last, ForReport: report})
				require.NoError(t, err)
				for _, v := range totals.Videos {
					require.True(t, !report || got[v.ID] != nil && *got[v.ID] == *v.Gained, "a report must have the same gains as the statistics")
					got[v.ID] = v.Gained
				}
			}
			return got
		}
		_, err := o.AddVideos(t.Context(), root.ID, []uuid.UUID{early}, nil)
		require.NoError(t, err)
		require.Empty(t, gains(), "a video that is added today must not count in a past period")

		require.EqualValues(t, 1, addVideosFrom(t, o, root.ID, first, early, late), "only the second video is a new member")
		// The first video gains 10 views on each of 30 days. The second has 50 views on the sixth day and 80 on the last day, so it gains 30.
		require.Equal(t, map[uuid.UUID]*int64{early: new(int64(300)), late: new(int64(30))}, gains())
		totals, err := o.CollectionTotals(t.Context(), store.CollectionTotalsQuery{Collection: root.ID, From: first, To: last})
		require.NoError(t, err)
		starts := map[uuid.UUID]store.Date{}
		for _, v := range totals.Videos {
			starts[v.ID] = *v.StartDay
		}
		require.Equal(t, map[uuid.UUID]store.Date{early: first - 1, late: first + 5}, starts)
		require.Equal(t, new(int64(330)), totals.Gains().Gained)
		require.EqualValues(t, 10, totals.Days[0].ViewsGained, "the gain of the first day must begin with the views at the end of the day before it")

		require.Zero(t, addVideosFrom(t, o, root.ID, first+20, early))
		require.Equal(t, map[uuid.UUID]*int64{early: new(int64(100)), late: new(int64(30))}, gains(), "a later day must replace an earlier one")
		require.Zero(t, addVideosFrom(t, o, root.ID, first+10, early))
		require.Equal(t, map[uuid.UUID]*int64{early: new(int64(200)), late: new(int64(30))}, gains(), "an earlier day must replace a later one")
		added, err := o.AddVideos(t.Context(), root.ID, []uuid.UUID{early, late}, nil)
		require.NoError(t, err)
		require.Zero(t, added)
		require.Equal(t, map[uuid.UUID]*int64{early: new(int64(200)), late: new(int64(30))}, gains(), "without a day, members must keep their time")
	})
}

func TestAddVideos_withADayChangesOnlyTheNamedMemberships(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		root, sibling, foreign := storetest.Collection(t, o, "Root", nil), storetest.Collection(t, o, "Sibling", nil), storetest.Collection(t, other, "Root", nil)
		tracked := storetest.Track(t, o, storetest.VideoLinks(t, 2)...)
		named, unnamed := tracked[0].ID, tracked[1].ID
		theirs := storetest.Track(t, other, storetest.VideoLink(t, 0))[0].ID
		now := store.InstantOf(db.Clock.Now())
		day := storetest.Today(db) - 9
		set := store.InstantOf(day.Time()) - 1
		add := func(o *store.Org, collection uuid.UUID, ids ...uuid.UUID) {
			t.Helper()
			_, err := o.AddVideos(t.Context(), collection, ids, nil)
			require.NoError(t, err)
		}
		times := func(o *store.Org, collection uuid.UUID, ids ...uuid.UUID) map[uuid.UUID]store.Instant {
			t.Helper()
			got, err := o.TimesOfAdding(t.Context(), collection, "video", ids)
			require.NoError(t, err)
			return got
		}
		add(o, root.ID, named, unnamed)
		add(o, sibling.ID, named)
		add(other, foreign.ID, theirs)
		_, err := o.AddVideos(t.Context(), root.ID, []uuid.UUID{named, theirs}, &day)
		var missing *store.NotFoundError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, map[uuid.UUID]store.Instant{named: now}, times(o, root.ID, named), "a request with an unknown id must change no day")

		addVideosFrom(t, o, root.ID, day, named)
		require.Equal(t, map[uuid.UUID]store.Instant{named: set, unnamed: now}, times(o, root.ID, named, unnamed))
		require.Equal(t, day-1, set.Day())
		require.Equal(t, day, (set + 1).Day())
		require.Equal(t, map[uuid.UUID]store.Instant{named: now}, times(o, sibling.ID, named))
		require.Equal(t, map[uuid.UUID]store.Instant{theirs: now}, times(other, foreign.ID, theirs))
	})
}

func TestAddVideos_withADayKeepsAnEarlierTimeOfTheAccount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		root := storetest.Collection(t, o, "Root", nil)
		video := storetest.Track(t, o, storetest.VideoLink(t, 0))[0].ID
		byAccount := store.InstantOf(db.Clock.Now())
		_, err := o.AddAccounts(t.Context(), root.ID, []uuid.UUID{storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).ID})
		require.NoError(t, err)
		today := storetest.Today(db)
		db.Clock.Advance(5 * 24 * time.Hour)
		for countsFrom, want := range map[store.Date]store.Instant{today + 4: byAccount, today - 2: store.InstantOf((today - 2).Time()) - 1} {
			addVideosFrom(t, o, root.ID, countsFrom, video)
			totals, err := o.CollectionTotals(t.Context(), store.CollectionTotalsQuery{Collection: root.ID, From: today, To: today + 5})
			require.NoError(t, err)
			require.Len(t, totals.Videos, 1)
			require.Equal(t, want, totals.Videos[0].AddedAt)
		}
	})
}
