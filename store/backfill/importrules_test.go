package backfill_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// TestImport_recordsNoEvents imports a stopped video of an account with three other videos. After Import has added the video, the median of the
// account is 50.5 views. After Import has stopped the video, the median is 1 again, and a video with 100 views reaches the outlier thresholds.
func TestImport_recordsNoEvents(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, links := storetest.NewOrg(t, db), storetest.VideoLinks(t, 4)
		storetest.Track(t, o, links[:3]...)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{
			links[0]: storetest.Views(1), links[1]: storetest.Views(1), links[2]: storetest.Views(100)})
		_, _, err := o.OpenFeed(t.Context())
		require.NoError(t, err)

		in := importOf(links[3], viewsPoint(storetest.Today(db)-1, 100))
		in[0].Stopped = true
		importResults(t, o, in)
		require.True(t, storetest.VideoOf(t, o, links[3]).Removed)
		require.InDelta(t, 100, *storetest.VideoOf(t, o, links[2]).OutlierMultiplier, 0)
		list, err := o.ListEvents(t.Context(), store.EventQuery{Window: store.Window{Limit: 10}})
		require.NoError(t, err)
		require.Empty(t, list.Rows)
	})
}
