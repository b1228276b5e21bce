package store_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestListVideos_rememberWherePagesBegin(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		links := storetest.VideoLinksFrom(t, 0, 700)
		storetest.Track(t, o, links...)
		storetest.Deliver(t, db, link.TikTok, storetest.Views(5))
		for order := range ordersInBothDirections(store.VideoOrders) {
			whole := idsOf(storetest.ListVideos(t, o, store.VideoQuery{Order: order, Window: store.Window{Limit: 5000}}).Videos)
			read := func(offset int) (ids []uuid.UUID, statements int) {
				t.Helper()
				db.Guard.Statements()
				page, err := o.Videos(t.Context(), store.VideoQuery{Order: order, Window: store.Window{Offset: offset, Limit: 50}})
				require.NoError(t, err)
				return idsOf(page.Videos), len(db.Guard.Statements())
			}
			for _, offset := range []int{300, 350, 300, len(whole) - 60, len(whole) - 10} {
				ids, _ := read(offset)
				require.Equal(t, whole[offset:min(offset+50, len(whole))], ids, "%v, page from row %d", order, offset)
			}
			if order.Column == "created_at" || order.Column == "latest_views" { // every video has a value in these columns
				_, first := read(500)
				_, again := read(500)
				_, next := read(550)
				require.Less(t, again, first, "%v: the same page needs no search", order)
				require.Equal(t, again, next, "%v: the next page needs no search", order)
			}

			storetest.StopVideos(t, o, links[0]) // the change moves the rows after this video
			links = links[1:]
			whole = idsOf(storetest.ListVideos(t, o, store.VideoQuery{Order: order, Window: store.Window{Limit: 5000}}).Videos)
			ids, _ := read(500)
			require.Equal(t, whole[500:550], ids, "%v, after a change", order)
		}
	})
}
