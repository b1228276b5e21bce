package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// TestVersion_risesWithEveryWrite makes each known kind of change to an organisation's data. In all tests that
// set Options.Inspect, the store also refuses a write if the transaction has not raised the version.
func TestVersion_risesWithEveryWrite(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		ctx, o, other := t.Context(), storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		version := func(o *store.Org) int64 {
			v, err := o.Version(ctx)
			require.NoError(t, err)
			return v.Version
		}
		require.Positive(t, version(o), "a new organisation must have a version")
		var collection store.Collection
		var videoID, accountID uuid.UUID
		profile := storetest.ParseLink(t, "https://www.tiktok.com/@someone")
		steps := []struct {
			name string
			do   func() error
		}{
			{"track videos", func() error { videoID = storetest.Track(t, o, storetest.VideoLink(t, 1))[0].ID; return nil }},
			{"collect videos", func() error {
				require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(5)))
				return nil
			}},
			{"track accounts", func() error { accountID = storetest.Follow(t, o, store.TrackAll, profile)[0].ID; return nil }},
			{"collect accounts", func() error {
				storetest.DeliverAccount(t, db, ingest.AccountFacts{Followers: new(int64(7))})
				return nil
			}},
			{"create a collection", func() (err error) {
				collection, err = o.CreateCollection(ctx, store.NewCollection{Name: "Launch", Access: store.AccessPrivate})
				return err
			}},
			{"update a collection", func() error {
				_, err := o.UpdateCollection(ctx, collection.ID, store.CollectionPatch{Name: new("Start")})
				return err
			}},
			{"add videos", func() error { _, err := o.AddVideos(ctx, collection.ID, []uuid.UUID{videoID}, nil); return err }},
			{"change the day from which videos count", func() error {
				_, err := o.AddVideos(ctx, collection.ID, []uuid.UUID{videoID}, new(storetest.Today(db)))
				return err
			}},
			{"remove videos", func() error { _, err := o.RemoveVideos(ctx, collection.ID, []uuid.UUID{videoID}); return err }},
			{"add accounts", func() error { _, err := o.AddAccounts(ctx, collection.ID, []uuid.UUID{accountID}); return err }},
			{"remove accounts", func() error { _, err := o.RemoveAccounts(ctx, collection.ID, []uuid.UUID{accountID}); return err }},
			{"delete a collection", func() error { return o.DeleteCollection(ctx, collection.ID, nil) }},
			{"refresh a video", func() error {
				db.Clock.Advance(5 * time.Hour)
				_, err := o.RefreshVideo(ctx, store.Ref{ID: videoID}, nil)
				return err
			}},
			{"refresh an account", func() error { _, err := o.RefreshAccount(ctx, store.Ref{ID: accountID}, nil); return err }},
			{"stop videos", func() error {
				_, err := o.StopVideos(ctx, []uuid.UUID{videoID})
				return err
			}},
			{"stop accounts", func() error {
				_, err := o.StopAccounts(ctx, []uuid.UUID{accountID})
				return err
			}},
			{"change the tier", func() error { return db.SetTier(ctx, o.ID(), store.TierBasic) }},
			{"change the subscription", func() error { return db.SetSubscription(ctx, o.ID(), store.SubscriptionNone) }},
			{"import", func() error {
				_, err := backfill.Import(ctx, o, []backfill.ImportVideo{{Link: storetest.VideoLink(t, 9)}}, false)
				return err
			}},
			{"load", func() error {
				return backfill.Seed(ctx, o, backfill.SeedBatch{Collections: []backfill.SeedCollection{{ID: store.NewID(), Name: "Loaded", CreatedAt: store.InstantOf(db.Clock.Now())}}})
			}},
			{"retention", func() error {
				db.Clock.Advance(24 * time.Hour)
				day := storetest.Today(db) - 800
				db.Exec(t, `INSERT INTO organisation_days (organisation_id, day, videos, views, likes, comments, shares, bookmarks) VALUES (?, ?, 0, 0, 0, 0, 0, 0)`, o.ID(), day)
				_, err := db.ApplyRetention(ctx, func() error { return nil })
				return err
			}},
		}
		for _, step := range steps {
			before, others := version(o), version(other)
			require.NoError(t, step.do(), step.name)
			require.Greater(t, version(o), before, step.name)
			if step.name != "retention" {
				require.Equal(t, others, version(other), "%s: the version of the other organisation must not change", step.name)
			}
		}
	})
}

// TestCollections_neverExceedTheLimit creates collections concurrently, with CreateCollection and with Track. Track creates a collection if a request
// contains the name of a new collection.
func TestCollections_neverExceedTheLimit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const limit = 7
		s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: db.Guard.Inspect, MaxCollections: limit})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		o := s.Org(storetest.NewOrg(t, db).ID())
		links := storetest.VideoLinks(t, 64)
		var made atomic.Int64
		var all sync.WaitGroup
		for i := range links {
			all.Go(func() {
				var err error
				if i%2 == 0 {
					_, err = o.CreateCollection(t.Context(), store.NewCollection{Name: fmt.Sprint(i), Access: store.AccessPrivate})
				} else {
					_, err = o.Track(t.Context(), store.TrackRequest{Links: links[i : i+1], CollectionNames: []string{fmt.Sprint(i)}})
				}
				refused, ok := errors.AsType[*store.LimitError](err)
				switch {
				case err == nil:
					made.Add(1)
				case !ok || refused.Kind != store.LimitCollections:
					t.Errorf("it must be possible to create collection %d: %v", i, err)
				}
			})
		}
		all.Wait()
		require.Equal(t, int64(limit), made.Load())
		page, err := o.ListCollections(t.Context(), store.CollectionQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 100}})
		require.NoError(t, err)
		require.Len(t, page.Rows, limit)

		err = backfill.Seed(t.Context(), o, backfill.SeedBatch{Collections: []backfill.SeedCollection{{ID: store.NewID(), Name: "One more"}}})
		require.ErrorContains(t, err, "the organisation has 7 collections, and this request makes 1 more; at most 7 are allowed")
		_, err = o.Track(t.Context(), store.TrackRequest{Links: links[:1], CollectionNames: []string{page.Rows[0].Name}})
		require.NoError(t, err, "an existing collection must not count as new")
		videos, err := o.ListVideos(t.Context(), store.VideoQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 100}})
		require.NoError(t, err)
		require.LessOrEqual(t, videos.Total, int64(limit+1), "a refused request must track nothing")
	})
}
