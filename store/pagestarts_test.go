package store_test

import (
	"testing"
	"time"

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
			whole := idsOf(storetest.ListVideos(t, o, store.VideoQuery{Order: order, Window: store.Window{Limit: 5000}}).Rows)
			read := func(offset int) (ids []uuid.UUID, statements int) {
				t.Helper()
				db.Guard.Statements()
				page, err := o.ListVideos(t.Context(), store.VideoQuery{Order: order, Window: store.Window{Offset: offset, Limit: 50}})
				require.NoError(t, err)
				return idsOf(page.Rows), len(db.Guard.Statements())
			}
			for _, offset := range []int{300, 350, 300, len(whole) - 60, len(whole) - 10} {
				ids, _ := read(offset)
				require.Equal(t, whole[offset:min(offset+50, len(whole))], ids, "order %v: wrong videos on the page that begins at row %d", order, offset)
			}
			if order.Column == "created_at" || order.Column == "latest_views" { // every video has a value in these columns
				_, first := read(500)
				_, again := read(500)
				_, next := read(550)
				require.Less(t, again, first, "order %v: a repeated request for a page must need fewer statements than the first request", order)
				require.Equal(t, again, next, "order %v: the next page must need as few statements as the repeated page", order)
			}

			if order.Column == "created_at" {
				_, again := read(500)
				db.Clock.Advance(48 * time.Hour)
				require.Positive(t, storetest.Deliver(t, db, link.TikTok, storetest.Views(5)))
				_, afterDelivery := read(500)
				require.Equal(t, again, afterDelivery, "order %v: new numbers of videos must not make the server forget where pages begin", order)
			}

			requirePage := func(after string) {
				t.Helper()
				whole := idsOf(storetest.ListVideos(t, o, store.VideoQuery{Order: order, Window: store.Window{Limit: 5000}}).Rows)
				ids, _ := read(500)
				require.Equal(t, whole[500:550], ids, "order %v: wrong videos on the page that begins at row 500, after %s", order, after)
			}
			oldest, newest := links[0], links[len(links)-1]
			storetest.StopVideos(t, o, oldest) // now the rows that follow this video in the list are one place nearer to the beginning
			requirePage("the oldest video was stopped")
			storetest.StopVideos(t, o, newest)
			storetest.Track(t, o, oldest) // the number of videos is the same as before, but they are other videos
			requirePage("the newest video was stopped and the oldest was tracked again")
			storetest.Track(t, o, newest)
			requirePage("the newest video was tracked again")
		}
	})
}
