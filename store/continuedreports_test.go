package store_test

import (
	"io"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// Requirements in docs/coverage.md: 11.5-06
func TestCreateReport_beginsWithTheViewsAtTheEndOfTheContinuedReport(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreatePartitions(t, db, 40)
		o := storetest.NewOrg(t, db)
		root := storetest.Collection(t, o, "Root", nil)
		first := storetest.Today(db) - 9 // first day of the period; the days in the fields "points", "added" and "want" below are counted from this day
		type gain struct {
			start, end               *int64
			startDay, endDay, gained int64 // gained is `unknown` if the gain is not known
		}
		const unknown = -1 << 40
		views := func(n int64) store.Counts { return store.Counts{Views: &n} }
		cases := []struct {
			name   string
			points map[store.Date]store.Counts
			added  store.Date
			frozen *int64
			want   gain
			first  int64 // gain of the first day of the period
		}{
			// A report that continues none would begin with 13,000 views.
			{"a later count", map[store.Date]store.Counts{-4: views(10_000), 2: views(16_000)}, -9, new(int64(10_000)), gain{new(int64(10_000)), new(int64(16_000)), -1, 2, 6000}, 4000},
			{"a later count of the last day", map[store.Date]store.Counts{-1: views(9000)}, -9, new(int64(8000)), gain{new(int64(8000)), new(int64(9000)), -1, -1, 1000}, 1000},
			{"no later count", map[store.Date]store.Counts{-1: views(8000)}, -9, new(int64(8000)), gain{new(int64(8000)), new(int64(8000)), -1, -1, unknown}, 0},
			{"added after the continued report", map[store.Date]store.Counts{0: views(9000), 3: views(9500)}, 0, new(int64(8000)), gain{new(int64(9000)), new(int64(9500)), 0, 3, 500}, 0},
			{"added after the continued report, with one count", map[store.Date]store.Counts{0: views(9000)}, 0, new(int64(8000)), gain{new(int64(9000)), new(int64(9000)), 0, 0, unknown}, 0},
			{"added on the last day of the continued report", map[store.Date]store.Counts{-1: views(6000), 1: views(7000)}, -1, new(int64(5000)), gain{new(int64(5000)), new(int64(7000)), -1, 1, 2000}, 1500},
			{"unknown in the continued report", map[store.Date]store.Counts{-1: views(100), 1: views(150)}, -9, nil, gain{new(int64(100)), new(int64(150)), -1, 1, 50}, 25},
			{"a correction downwards", map[store.Date]store.Counts{-1: views(9500), 0: views(9600), 1: views(9800)}, -9, new(int64(10_000)), gain{new(int64(10_000)), new(int64(9800)), -1, 1, -200}, -400},
			{"a later count without views", map[store.Date]store.Counts{-1: views(9000), 1: {Likes: new(int64(5))}}, -9, new(int64(8000)), gain{new(int64(8000)), new(int64(9000)), -1, -1, 1000}, 1000},
			{"earlier points were deleted", map[store.Date]store.Counts{1: views(700)}, -9, new(int64(400)), gain{new(int64(400)), new(int64(700)), -1, 1, 300}, 0},
			{"all points were deleted", nil, -9, new(int64(400)), gain{new(int64(400)), new(int64(400)), -1, -1, unknown}, 0},
		}
		ids, frozen := map[uuid.UUID]int{}, map[uuid.UUID]store.FrozenViews{}
		var gained, firstDay int64
		for n, tracked := range storetest.Track(t, o, storetest.VideoLinks(t, len(cases))...) {
			ids[tracked.ID] = n
			if c := cases[n]; c.frozen != nil {
				frozen[tracked.ID] = store.FrozenViews{Views: *c.frozen, Day: first - 1}
			}
			if got := cases[n].want.gained; got != unknown {
				gained += got
			}
			firstDay += cases[n].first
			db.Exec(t, "INSERT INTO collection_videos (organisation_id, collection_id, video_id, added_at) VALUES (?, ?, ?, ?)", o.ID(), root.ID, tracked.ID,
				store.InstantOf((first + cases[n].added).Time()))
			points := storetest.Series{Daily: map[store.Date]store.Counts{}}
			for day, counts := range cases[n].points {
				points.Daily[first+day] = counts
			}
			points.Insert(t, db, o, tracked.ID)
		}
		// The fetches of the points would have stored latest counts. CreateReport only tests whether they are NULL.
		db.Exec(t, "UPDATE videos SET latest_views = 1, latest_likes = 1 WHERE organisation_id = ?", o.ID())
		earlier := store.NewID()
		var totals store.CollectionTotals
		made, err := o.CreateReport(t.Context(), store.NewReport{CollectionID: root.ID, From: first, To: first + 9, CreatedBy: store.NewID(), ContinuesReportID: &earlier, FrozenViews: frozen,
			Document: func(_ io.Writer, _ store.Report, c store.CollectionTotals) error {
				totals = c
				return nil
			}})
		require.NoError(t, err)
		require.Len(t, totals.Videos, len(cases))
		for _, v := range totals.Videos {
			c := cases[ids[v.ID]]
			got := gain{v.StartViews, v.EndViews, int64(*v.StartDay - first), int64(*v.EndDay - first), unknown}
			if v.Gained != nil {
				got.gained = *v.Gained
			}
			require.Equal(t, c.want, got, c.name)
		}
		sums := totals.Gains()
		require.Equal(t, gained, *sums.Gained)
		require.EqualValues(t, 3, sums.Unknown)
		require.EqualValues(t, -400, sums.Corrected)
		require.Equal(t, firstDay, totals.Days[0].ViewsGained)
		var ofDays int64
		for n, d := range totals.Days {
			ofDays += d.ViewsGained
			if n > 0 {
				require.Equal(t, d.Views, totals.Days[n-1].Views+d.ViewsGained+d.ViewsFromAdded+d.ViewsFromKnown, "day %d", n)
			}
			require.Zero(t, d.ViewsFromKnown, "day %d", n)
		}
		require.Equal(t, gained, ofDays, "the gains of the days must add up to the gain of the period")

		read, err := o.Report(t.Context(), made.ID)
		require.NoError(t, err)
		list, err := o.ListReports(t.Context(), store.ReportQuery{CollectionID: root.ID, Order: store.Order{Column: "number"}, Window: store.Window{Limit: 5}})
		require.NoError(t, err)
		for _, r := range []store.Report{made, read, list.Rows[0]} {
			require.Equal(t, &earlier, r.ContinuesReportID)
		}
	})
}
