package backfill_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/storetest"
)

// For an old week, retention replaces the daily points by one weekly point. The tests in this file check that Seed and Import store the
// same weekly point as retention.

// weekWithoutSundayViews returns the daily points of an old week, and the Sunday of the week. The point of Sunday has likes and no views.
func weekWithoutSundayViews(db *storetest.DB) (sunday store.Date, points []backfill.Point) {
	monday, days := storetest.WeekWhoseSundayLacksViews(db, true)
	for _, day := range slices.Sorted(maps.Keys(days)) {
		points = append(points, backfill.Point{At: store.InstantOf(day.Time()), Counts: days[day]})
	}
	return monday + 6, points
}

// requireOneSundayPoint checks that the week has only one point, on Sunday, with the views of Saturday and the likes of Sunday.
func requireOneSundayPoint(t *testing.T, o *store.Org, ref store.Ref, sunday store.Date) {
	t.Helper()
	got, err := o.History(t.Context(), ref, sunday-6, sunday+7)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, sunday, got[0].Day)
	require.Equal(t, store.Counts{Views: new(int64(1500)), Likes: new(int64(70))}, got[0].Counts)
}

func TestSeed_copiesMissingSundayCountsFromEarlierDays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, b := storetest.NewOrg(t, db), sampleDataset(1).toBatch(db.Clock.Now())
		sunday, points := weekWithoutSundayViews(db)
		// The next point is eight days after that Sunday and has only shares. It must not get the views and
		// likes of the week before.
		b.Accounts[0].Videos[0].Points = append(points, backfill.Point{At: store.InstantOf((sunday + 8).Time()), Counts: store.Counts{Shares: new(int64(1))}})
		require.NoError(t, backfill.Seed(t.Context(), o, b))
		ref := store.Ref{ID: b.Accounts[0].Videos[0].ID}
		got, err := o.History(t.Context(), ref, sunday, sunday+8)
		require.NoError(t, err)
		require.Equal(t, store.Counts{Shares: new(int64(1))}, got[0].Counts)
		require.Equal(t, store.Counts{Views: new(int64(1500)), Likes: new(int64(70))}, got[len(got)-1].Counts)
	})
}

func TestImport_copiesMissingSundayCountsFromEarlierDays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		sunday, points := weekWithoutSundayViews(db)
		for n, cut := range []int{0, 3, 6} { // the number of points in the first import; the second import has the other points
			l := storetest.VideoLink(t, n)
			if cut > 0 {
				importResults(t, o, importOf(l, points[:cut]...))
			}
			importResults(t, o, importOf(l, points[cut:]...))
			requireOneSundayPoint(t, o, store.Ref{Link: l}, sunday)
			once := storetest.StoredRows(t, db, o)
			again := importResults(t, o, importOf(l, points...))
			require.Equal(t, append(slices.Repeat([]backfill.ImportResult{backfill.PointRolledUp}, 6), backfill.PointUnchanged), again)
			require.Equal(t, once, storetest.StoredRows(t, db, o))
			other := viewsPoint(sunday, 1501)
			require.Equal(t, []backfill.ImportResult{backfill.PointConflicts}, importResults(t, o, importOf(l, other)))
		}
	})
}
