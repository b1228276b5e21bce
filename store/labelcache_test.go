package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func labelNames(labels []*store.Label) []string {
	names := make([]string, len(labels))
	for i, l := range labels {
		names[i] = l.Name
	}
	return names
}

// TestLabels_showEveryChangeThatAnotherProcessHasCommitted makes changes through one Store. A
// second Store has cached the labels, but its next result must show each change.
func TestLabels_showEveryChangeThatAnotherProcessHasCommitted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		ctx, writer := t.Context(), storetest.NewOrg(t, db)
		reader := db.Open(t).Org(writer.ID())
		profile := storetest.ParseLink(t, "https://www.tiktok.com/@someone")
		video, other := storetest.Track(t, writer, storetest.VideoLink(t, 1))[0].ID, storetest.Track(t, writer, storetest.VideoLink(t, 2))[0].ID
		account := storetest.Follow(t, writer, store.TrackAll, profile)[0].ID
		require.Equal(t, 2, storetest.Deliver(t, db, link.TikTok, storetest.FactsWithAuthor("77", "somebody")))
		author := *storetest.VideoOf(t, writer, storetest.VideoLink(t, 1)).LinkedAccountID
		launch := storetest.Collection(t, writer, "Launch", nil).ID
		update := func(p store.CollectionPatch) error {
			_, err := writer.UpdateCollection(ctx, launch, p)
			return err
		}
		changed := func(_ int64, err error) error { return err }
		for _, step := range []struct {
			name                  string
			do                    func() error
			video, other, account []string // the labels, by name, that the video, the other video and the account must have after the step
		}{
			{"add a video", func() error { return changed(writer.AddVideos(ctx, launch, []uuid.UUID{video}, nil)) }, []string{"Launch"}, nil, nil},
			{"rename", func() error { return update(store.CollectionPatch{Name: new("Start")}) }, []string{"Start"}, nil, nil},
			{"remove a video", func() error { return changed(writer.RemoveVideos(ctx, launch, []uuid.UUID{video})) }, nil, nil, nil},
			{"add an account", func() error { return changed(writer.AddAccounts(ctx, launch, []uuid.UUID{account})) }, nil, nil, []string{"Start"}},
			{"add the videos' account", func() error { return changed(writer.AddAccounts(ctx, launch, []uuid.UUID{author})) },
				[]string{"Start"}, []string{"Start"}, []string{"Start"}},
			{"remove the accounts", func() error { return changed(writer.RemoveAccounts(ctx, launch, []uuid.UUID{account, author})) }, nil, nil, nil},
			{"add a hashtag", func() error { return update(store.CollectionPatch{Hashtags: &[]string{"harbour"}}) }, nil, nil, nil},
			{"fetch a caption", func() error {
				db.Clock.Advance(48 * time.Hour)
				facts := storetest.FactsWithAuthor("77", "somebody")
				facts.Title = new("#harbour")
				require.Equal(t, 2, storetest.Deliver(t, db, link.TikTok, facts))
				return nil
			}, []string{"Start"}, []string{"Start"}, nil},
			{"remove the hashtag", func() error { return update(store.CollectionPatch{Hashtags: &[]string{}}) }, nil, nil, nil},
			{"track a video and add it to a collection", func() error {
				_, err := writer.Track(ctx, store.TrackRequest{Links: []link.Link{storetest.VideoLink(t, 2)}, CollectionIDs: []uuid.UUID{launch}})
				return err
			}, nil, []string{"Start"}, nil},
			{"import a collection", func() error {
				return backfill.Seed(ctx, writer, backfill.SeedBatch{Source: "youtube", Collections: []backfill.SeedCollection{{ID: store.NewID(), Name: "Imported", Hashtags: []string{"harbour"}}}})
			}, []string{"Imported"}, []string{"Imported", "Start"}, nil},
			{"delete", func() error { return writer.DeleteCollection(ctx, launch, nil) }, []string{"Imported"}, []string{"Imported"}, nil},
		} {
			require.NoError(t, step.do(), step.name)
			// The first request for a list reads the members on the page, the second request reads all members, and later requests use the cache.
			for range 3 {
				got := map[uuid.UUID][]string{}
				for _, v := range storetest.ListVideos(t, reader, storetest.OrderedBy("created_at", true)).Rows {
					got[v.ID] = labelNames(v.Labels)
				}
				accounts, err := reader.ListAccounts(ctx, store.AccountQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 10}, IncludeLinked: true})
				require.NoError(t, err)
				for _, a := range accounts.Rows {
					got[a.ID] = labelNames(a.Labels)
				}
				for id, want := range map[uuid.UUID][]string{video: step.video, other: step.other, account: step.account} {
					require.ElementsMatch(t, want, got[id], step.name)
				}
				one, err := reader.Video(ctx, store.Ref{ID: other})
				require.NoError(t, err)
				require.ElementsMatch(t, step.other, labelNames(one.Labels), step.name)
			}
		}
	})
}

func TestLabels_areReadAgainOnlyAfterAChangeOfCollections(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinks(t, 2)...)
		launch := storetest.Collection(t, o, "Launch", nil).ID
		statements := func() int {
			db.Guard.Statements()
			storetest.ListVideos(t, o, storetest.OrderedBy("created_at", true))
			return len(db.Guard.Statements())
		}
		// Each list runs two statements: one reads the version, and one reads the rows. If the cache lacks the labels, a third statement reads
		// members of collections.
		require.Equal(t, 3, statements(), "the first request for a list must read the labels of the videos on its page")
		require.Equal(t, 3, statements(), "the second request for a list must read all labels of the organisation for the cache")
		require.Equal(t, 2, statements())
		require.Equal(t, 2, storetest.Deliver(t, db, link.TikTok, storetest.Views(5)))
		require.Equal(t, 2, statements(), "new counts must not cause a read of labels")
		_, err := o.UpdateCollection(t.Context(), launch, store.CollectionPatch{Name: new("Start")})
		require.NoError(t, err)
		require.Equal(t, 3, statements())
	})
}

func TestLabels_areReadForEachPageIfCollectionsHaveVeryManyMembers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		for first := 0; first < 1000; first += 500 {
			storetest.Track(t, o, storetest.VideoLinksFrom(t, first, 500)...)
		}
		const collections = 51 // each collection has 1000 videos, so the organisation has more members than the cache can hold
		for i := range collections {
			storetest.Collection(t, o, fmt.Sprint("Collection ", i), nil)
		}
		db.Exec(t, `INSERT INTO collection_videos (organisation_id, collection_id, video_id, added_at)
SELECT c.organisation_id, c.id, v.id, 0 FROM collections c JOIN videos v ON v.organisation_id = c.organisation_id`)
		for range 4 {
			db.Guard.Statements()
			page, err := o.ListVideos(t.Context(), store.VideoQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 10}})
			require.NoError(t, err)
			require.Len(t, page.Rows, 10)
			for _, v := range page.Rows {
				require.Len(t, v.Labels, collections)
			}
		}
		statements := db.Guard.Statements()
		require.Len(t, statements, 3)
		require.NotContains(t, statements[2], "TRUE")
	})
}
