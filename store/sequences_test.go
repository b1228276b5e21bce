package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// createCollectionWithVideos tracks n videos, some with counts, and adds every second video to a
// new collection, Launch. It returns the ids of the collection and its videos.
func createCollectionWithVideos(t *testing.T, db *storetest.DB, o *store.Org, n int) (collection uuid.UUID, members []uuid.UUID) {
	t.Helper()
	collection = storetest.Collection(t, o, "Launch", nil).ID
	for i, tracked := range storetest.Track(t, o, storetest.VideoLinksFrom(t, 0, n)...) {
		if i%2 == 0 {
			members = append(members, tracked.ID)
		}
		db.Exec(t, `UPDATE videos SET latest_views = ?, increase_7d = ? WHERE organisation_id = ? AND id = ?`,
			[]any{nil, 5, 5, 7}[i%4], []any{-1.5, nil, 2.25, 2.25, 1e300}[i%5], o.ID(), tracked.ID)
	}
	_, err := o.AddVideos(t.Context(), collection, members, nil)
	require.NoError(t, err)
	return collection, members
}

// The videos of a collection must have the same order as in the list of all videos. The order comes from the
// cache or, if the collection has too many members for the cache, from the database.
func TestCollectionVideos_haveTheSameOrderAsInTheListOfAllVideos(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		launch, members := createCollectionWithVideos(t, db, o, 30)
		isMember := map[uuid.UUID]bool{}
		for _, id := range members {
			isMember[id] = true
		}
		large := db.Open(t)
		store.SetMaxRowsPerList(large, len(members)-1) // with this limit, the collection has too many members for the cache
		for order := range ordersInBothDirections(store.VideoOrders) {
			all, err := o.ListVideos(t.Context(), store.VideoQuery{Order: order, Window: store.Window{Limit: 30}})
			require.NoError(t, err)
			var want []store.Video
			for _, v := range all.Rows {
				if isMember[v.ID] {
					want = append(want, v)
				}
			}
			require.Len(t, want, len(members))
			for _, query := range []store.VideoQuery{{CollectionID: &launch}, {Collections: []string{"Launch", "unknown"}}, {CollectionID: &launch, Collections: []string{launch.String()}}} {
				for name, reader := range map[string]*store.Org{"the order comes from the cache": o, "the order comes from the database": large.Org(o.ID())} {
					query.Order = order
					var byNumber, byCursor []store.Video
					for offset := 0; offset < len(members); offset += 4 {
						query.Window = store.Window{Offset: offset, Limit: 4}
						page, err := reader.ListVideos(t.Context(), query)
						require.NoError(t, err)
						require.EqualValues(t, len(members), page.Total)
						require.Equal(t, offset+4 < len(members), page.Next() != nil)
						byNumber = append(byNumber, page.Rows...)
					}
					query.Window = store.Window{Limit: 4}
					for {
						page, err := reader.ListVideos(t.Context(), query)
						require.NoError(t, err)
						byCursor = append(byCursor, page.Rows...)
						if page.Next() == nil {
							break
						}
						query.Window.After = page.Next()
					}
					require.Equal(t, want, byNumber, "%s: %+v", name, query)
					require.Equal(t, want, byCursor, "%s: %+v", name, query)
				}
			}
		}
	})
}

// TestCollectionVideos_showEveryChange makes changes through one store. Another store has the order of the list in memory, and its next
// result must show each change.
func TestCollectionVideos_showEveryChange(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		ctx, writer := t.Context(), storetest.NewOrg(t, db)
		reader := db.Open(t).Org(writer.ID())
		launch := storetest.Collection(t, writer, "Launch", nil).ID
		videos := storetest.Track(t, writer, storetest.VideoLinks(t, 3)...)
		require.Equal(t, 3, storetest.Deliver(t, db, link.TikTok, storetest.Views(5)))
		first, second := videos[0].ID, videos[1].ID
		author := *storetest.VideoOf(t, writer, storetest.VideoLink(t, 0)).LinkedAccountID
		changed := func(_ int64, err error) error { return err }
		for _, step := range []struct {
			name string
			do   func() error
			want []uuid.UUID
		}{
			{"add a video", func() error { return changed(writer.AddVideos(ctx, launch, []uuid.UUID{first}, nil)) }, []uuid.UUID{first}},
			{"add another video", func() error { return changed(writer.AddVideos(ctx, launch, []uuid.UUID{second}, nil)) }, []uuid.UUID{second, first}},
			{"store counts", func() error {
				db.Clock.Advance(48 * time.Hour)
				require.Equal(t, 3, storetest.Deliver(t, db, link.TikTok, storetest.Views(9)))
				return nil
			}, []uuid.UUID{second, first}},
			{"stop a video", func() error { storetest.StopVideos(t, writer, storetest.VideoLink(t, 1)); return nil }, []uuid.UUID{first}},
			{"add the account", func() error { return changed(writer.AddAccounts(ctx, launch, []uuid.UUID{author})) }, []uuid.UUID{videos[2].ID, first}},
			{"remove the video", func() error { return changed(writer.RemoveVideos(ctx, launch, []uuid.UUID{first, second})) }, []uuid.UUID{videos[2].ID, first}},
			{"remove the account", func() error { return changed(writer.RemoveAccounts(ctx, launch, []uuid.UUID{author})) }, nil},
		} {
			require.NoError(t, step.do(), step.name)
			for range 2 { // the second result comes from the cache
				page, err := reader.ListVideos(ctx, store.VideoQuery{CollectionID: &launch, Order: store.Order{Column: "latest_views", Descending: true}, Window: store.Window{Limit: 10}})
				require.NoError(t, err, step.name)
				var got []uuid.UUID
				for _, v := range page.Rows {
					got = append(got, v.ID)
				}
				require.Equal(t, step.want, got, step.name)
				require.EqualValues(t, len(step.want), page.Total, step.name)
			}
		}
		require.NoError(t, writer.DeleteCollection(ctx, launch, nil))
		_, err := reader.ListVideos(ctx, store.VideoQuery{CollectionID: &launch, Order: store.Order{Column: "latest_views"}, Window: store.Window{Limit: 10}})
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

// If the order of a list is in memory, a page needs two statements. One reads the version, and one reads the rows of the page by their ids. The test
// counts them.
func TestListsOfMembers_readNoRowsOutsideThePage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		launch, members := createCollectionWithVideos(t, db, o, 600)
		account := storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, "https://www.tiktok.com/@followed"))[0].ID
		_, err := o.AddAccounts(t.Context(), launch, []uuid.UUID{account})
		require.NoError(t, err)
		db.Exec(t, "ANALYZE")
		for name, read := range map[string]func(window store.Window) (total int64, rows int, err error){
			"videos": func(window store.Window) (int64, int, error) {
				page, err := o.ListVideos(t.Context(), store.VideoQuery{Collections: []string{"Launch"}, Order: store.Order{Column: "latest_views", Descending: true}, Window: window})
				return page.Total, len(page.Rows), err
			},
			"accounts": func(window store.Window) (int64, int, error) {
				page, err := o.ListAccounts(t.Context(), store.AccountQuery{Collections: []string{"Launch"}, Order: store.Order{Column: "username"}, Window: window})
				return page.Total, len(page.Rows), err
			},
		} {
			total := map[string]int{"videos": len(members), "accounts": 1}[name]
			for range 3 { // after these calls, all labels and the order of the list are in memory
				_, _, err := read(store.Window{Limit: 3})
				require.NoError(t, err)
			}
			for _, window := range []store.Window{{Limit: 3}, {Limit: 100, Offset: 200}, {Limit: 3, Offset: total - 1}} {
				db.Guard.Statements()
				found, rows, err := read(window)
				require.NoError(t, err)
				require.EqualValues(t, total, found)
				require.Equal(t, max(0, min(window.Limit, total-window.Offset)), rows)
				statements := db.Guard.Statements()
				require.Contains(t, statements[0], "organisation_totals")
				if rows == 0 {
					require.Len(t, statements, 1)
					continue
				}
				require.Len(t, statements, 2, "%s: %q", name, statements)
				require.NotContains(t, statements[1], "collection_", name)
				require.NotContains(t, statements[1], "ORDER BY", name)
				if name == "videos" { // accounts are not checked: there is only one, so the database may read the whole table
					require.Regexp(t, `videos_pkey|\(organisation_id=\? AND id=\?\)`, queryPlan(t, db, statements[1]))
				}
			}
		}
	})
}

func TestListVideos_limitsCollectionPagesToMaxBytes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		launch, members := createCollectionWithVideos(t, db, o, 30)
		db.Exec(t, "UPDATE videos SET title = ? WHERE organisation_id = ?", strings.Repeat("a", 1000), o.ID())
		query := store.VideoQuery{CollectionID: &launch, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 30}}
		all, err := o.ListVideos(t.Context(), query)
		require.NoError(t, err)
		require.Len(t, all.Rows, len(members))
		var got []store.Video
		for query.Window.MaxBytes = 5000; ; {
			page, err := o.ListVideos(t.Context(), query)
			require.NoError(t, err)
			require.NotEmpty(t, page.Rows)
			require.Less(t, len(page.Rows), 5)
			got = append(got, page.Rows...)
			if page.Next() == nil {
				break
			}
			query.Window.After = page.Next()
		}
		require.Equal(t, all.Rows, got)
	})
}

// TestCollectionVideos_omitAVideoThatIsRemovedAfterTheOrderIsCached removes a video after the server has read the order of the list. A concurrent
// request can also remove a video between the read of the order and the read of the rows.
func TestCollectionVideos_omitAVideoThatIsRemovedAfterTheOrderIsCached(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		launch, members := createCollectionWithVideos(t, db, o, 6)
		query := store.VideoQuery{CollectionID: &launch, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 10}}
		page, err := o.ListVideos(t.Context(), query)
		require.NoError(t, err)
		require.Len(t, page.Rows, len(members))
		db.Exec(t, "UPDATE videos SET removed = true WHERE organisation_id = ? AND id = ?", o.ID(), page.Rows[1].ID)
		later, err := o.ListVideos(t.Context(), query)
		require.NoError(t, err)
		require.Equal(t, []uuid.UUID{page.Rows[0].ID, page.Rows[2].ID}, []uuid.UUID{later.Rows[0].ID, later.Rows[1].ID})
		require.Len(t, later.Rows, 2)
	})
}

// If all videos of a page were removed after the order was read, the page must have the next videos. A caller would take an
// empty page for the end of the list.
func TestCollectionVideos_pageIsNotEmptyBeforeTheEndOfTheList(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		launch, members := createCollectionWithVideos(t, db, o, 16)
		query := store.VideoQuery{CollectionID: &launch, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 2}}
		all, err := o.ListVideos(t.Context(), store.VideoQuery{CollectionID: &launch, Order: query.Order, Window: store.Window{Limit: 10}})
		require.NoError(t, err)
		require.Len(t, all.Rows, len(members))
		for _, removed := range all.Rows[:5] {
			db.Exec(t, "UPDATE videos SET removed = true WHERE organisation_id = ? AND id = ?", o.ID(), removed.ID)
		}
		first, err := o.ListVideos(t.Context(), query)
		require.NoError(t, err)
		require.Equal(t, all.Rows[5:6], first.Rows, "the pages with videos 0 to 3 have no videos any more, and the next page has lost video 4")
		query.Window.After = first.Next()
		second, err := o.ListVideos(t.Context(), query)
		require.NoError(t, err)
		require.Equal(t, all.Rows[6:], second.Rows)
		require.Nil(t, second.Next())
	})
}

func TestSequenceCache_keepsOnlyTheNewestLists(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		launch, members := createCollectionWithVideos(t, db, o, 10)
		store.SetMaxCachedRows(db.Store, int64(2*len(members)))
		for _, column := range []string{"created_at", "latest_views", "latest_likes", "uploaded_at"} {
			page, err := o.ListVideos(t.Context(), store.VideoQuery{CollectionID: &launch, Order: store.Order{Column: column}, Window: store.Window{Limit: 3}})
			require.NoError(t, err)
			require.EqualValues(t, len(members), page.Total)
		}
		require.EqualValues(t, 2*len(members), store.CountCachedRows(db.Store))
	})
}
