package backfill_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// The collector compares the first fetch of a target with the target's known counts. An import sets them only for targets that were never fetched and that only
// its organisation tracks.
func TestImport_givesKnownCountsToTargetsThatWereNeverFetched(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		age := 48 * time.Hour // of the imported point
		importCounts := func(o *store.Org, l link.Link, counts store.Counts) {
			t.Helper()
			_, err := backfill.Import(t.Context(), o, []backfill.ImportVideo{{Link: l, Points: []backfill.Point{
				{At: store.InstantOf(db.Clock.Now().Add(-age)), Counts: counts}}}}, false)
			require.NoError(t, err)
		}
		known := func(l link.Link) []*int64 {
			t.Helper()
			row := storetest.Column[*int64](t, db, `SELECT views FROM fetch_targets WHERE external_id = ? UNION ALL SELECT likes FROM fetch_targets WHERE external_id = ?`, l.ID, l.ID)
			require.Len(t, row, 2)
			return row
		}
		unknown, million := []*int64{nil, nil}, []*int64{new(int64(5_000_000)), new(int64(70_000))}
		o, other, free := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.NewFreeOrg(t, db)
		waiting, fetched, shared := storetest.VideoLink(t, 1), storetest.VideoLink(t, 2), storetest.VideoLink(t, 3)
		storetest.Track(t, o, fetched)
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(10)))
		storetest.Track(t, o, waiting)
		require.Equal(t, unknown, known(waiting))

		importCounts(free, waiting, store.Counts{Views: million[0], Likes: million[1]})
		require.Equal(t, unknown, known(waiting), "no fetch serves an organisation without a subscription to the target, so its import does not matter")
		importCounts(o, waiting, store.Counts{Views: million[0], Likes: million[1]})
		require.Equal(t, million, known(waiting))
		importCounts(o, waiting, store.Counts{Views: new(int64(3))})
		require.Equal(t, million, known(waiting), "the second import has no new point")
		age, million[0] = 24*time.Hour, new(int64(6_000_000))
		importCounts(o, waiting, store.Counts{Views: million[0]})
		_, err := o.RefreshVideo(t.Context(), store.Ref{Link: waiting}, nil)
		require.NoError(t, err)
		require.Equal(t, million, known(waiting), "the target must have the last known counts of its only organisation")
		importCounts(o, fetched, store.Counts{Views: million[0], Likes: million[1]})
		require.Equal(t, []*int64{new(int64(10)), nil}, known(fetched), "the counts of a fetch stay")

		c := storetest.ClaimOne(t, db, link.TikTok, queue.KindVideo)
		require.Equal(t, []int64{*million[0], *million[1]}, []int64{*c.Targets[0].Views, *c.Targets[0].Likes})

		storetest.Track(t, o, shared)
		storetest.Track(t, other, shared)
		importCounts(o, shared, store.Counts{Views: million[0], Likes: million[1]})
		require.Equal(t, unknown, known(shared), "an import must not delay the first numbers of another organisation")

		later := storetest.VideoLink(t, 4)
		importCounts(o, later, store.Counts{Views: million[0], Likes: million[1]})
		require.Equal(t, million, known(later))
		storetest.Track(t, other, later)
		require.Nil(t, storetest.VideoOf(t, other, later).Latest.Views, "imported counts do not become numbers of another organisation")
		require.Equal(t, unknown, known(later), "an earlier import must not delay the first numbers of another organisation")
		importCounts(other, later, store.Counts{Views: million[0]})
		require.Equal(t, unknown, known(later))
	})
}
