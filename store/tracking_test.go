package store_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestTrack_savesAVideoBeforeItsFirstFetch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		l := storetest.ParseLink(t, "https://www.tiktok.com/@Someone/video/7301234567890123456?lang=de")
		tracked := storetest.Track(t, o, l)
		require.Len(t, tracked, 1)
		require.Equal(t, store.Tracked{ID: tracked[0].ID}, tracked[0], "for a new video, Existing and Already must be false")

		v := storetest.VideoOf(t, o, l)
		require.NotNil(t, v.LinkedAccountID, "the account must be known from the link")
		require.Equal(t, store.Video{OrganisationID: o.ID(), ID: tracked[0].ID, Platform: link.TikTok, ExternalID: "7301234567890123456",
			Link: "https://www.tiktok.com/@someone/video/7301234567890123456", Username: "someone", LinkedAccountID: v.LinkedAccountID,
			CreatedAt: store.InstantOf(db.Clock.Now()), Direct: true,
			FetchState: store.FetchState{FetchStatus: queue.FetchPending, NextFetchAt: new(store.InstantOf(db.Clock.Now()))}}, v, "all counts must be null before the first fetch")
		a := storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@someone"))
		require.Equal(t, *v.LinkedAccountID, a.ID)
		require.False(t, a.Tracked, "the account must be linked, not tracked")

		nameless := storetest.ParseLink(t, "https://www.youtube.com/shorts/dQw4w9WgXcQ")
		storetest.Track(t, o, nameless)
		require.Empty(t, storetest.VideoOf(t, o, nameless).Username)
		require.Nil(t, storetest.VideoOf(t, o, nameless).LinkedAccountID)
	})
}

func TestTrack_recognisesAVideoByAnyFormOfItsLink(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		first := storetest.Track(t, o, storetest.ParseLink(t, "https://youtu.be/dQw4w9WgXcQ?si=abc"))[0]
		for _, form := range []string{"https://youtu.be/dQw4w9WgXcQ?si=abc", "https://m.youtube.com/watch?v=dQw4w9WgXcQ&t=3", "https://www.youtube.com/shorts/dQw4w9WgXcQ"} {
			again := storetest.Track(t, o, storetest.ParseLink(t, form))
			require.Equal(t, []store.Tracked{{ID: first.ID, Existing: true, Already: true}}, again, form)
		}
		require.EqualValues(t, 1, storetest.ListVideos(t, o, store.VideoQuery{}).Total)
	})
}

func TestTrack_returnsResultsInTheOrderOfTheLinks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		links := append(storetest.VideoLinks(t, 5), storetest.ParseLink(t, "https://www.youtube.com/shorts/dQw4w9WgXcQ"), storetest.ParseLink(t, "https://www.instagram.com/reel/CabcdefghiJ/"))
		known := storetest.Track(t, o, links[1], links[5])
		rand.Shuffle(len(links), func(i, j int) { links[i], links[j] = links[j], links[i] })
		for i, got := range storetest.Track(t, o, links...) {
			require.Equal(t, storetest.VideoOf(t, o, links[i]).ID, got.ID)
			was := got.ID == known[0].ID || got.ID == known[1].ID
			require.Equal(t, store.Tracked{ID: got.ID, Existing: was, Already: was}, got)
		}
	})
}

func TestTrack_resumesAStoppedVideo(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		first := storetest.Track(t, o, l)[0]
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(100)))
		storetest.StopVideos(t, o, l)
		require.True(t, storetest.VideoOf(t, o, l).Removed)
		db.Clock.Advance(48 * time.Hour)

		require.Equal(t, []store.Tracked{{ID: first.ID, Existing: true}}, storetest.Track(t, o, l), "for a stopped video, Existing must be true and Already must be false")
		v := storetest.VideoOf(t, o, l)
		require.False(t, v.Removed)
		require.EqualValues(t, 100, *v.Latest.Views, "the counts must be kept")
		require.EqualValues(t, 1, storetest.ListVideos(t, o, store.VideoQuery{}).Total)
		require.EqualValues(t, 1, storetest.ListVideos(t, o, store.VideoQuery{IncludeRemoved: true}).Total)

		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(300)), "the video must be fetched again")
		points, err := o.History(t.Context(), store.Ref{ID: first.ID}, storetest.Today(db)-30, storetest.Today(db))
		require.NoError(t, err)
		require.Equal(t, []store.Date{storetest.Today(db), storetest.Today(db) - 1, storetest.Today(db) - 2}, []store.Date{points[0].Day, points[1].Day, points[2].Day}, "the history must also have the points from before the stop")
		require.Equal(t, store.QualityInterpolated, points[1].Quality)
	})
}

func TestTrack_updatesTheNumberOfVideosImmediately(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		totals := func(tracked, removed int) {
			t.Helper()
			require.EqualValues(t, tracked, storetest.ListVideos(t, o, store.VideoQuery{}).Total)
			require.EqualValues(t, tracked+removed, storetest.ListVideos(t, o, store.VideoQuery{IncludeRemoved: true}).Total)
			require.Len(t, storetest.ListVideos(t, o, store.VideoQuery{}).Rows, tracked)
		}
		totals(0, 0)
		storetest.Track(t, o, storetest.VideoLinks(t, 7)...)
		totals(7, 0)
		storetest.StopVideos(t, o, storetest.VideoLinks(t, 3)...)
		totals(4, 3)
		storetest.Track(t, o, storetest.VideoLinks(t, 9)...) // three of the nine videos are resumed, four are already tracked, two are new
		totals(9, 0)
	})
}

func TestTrack_acceptsARequestWithoutLinks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		tracked, err := storetest.NewOrg(t, db).Track(t.Context(), store.TrackRequest{CollectionNames: []string{"Dogs"}})
		require.NoError(t, err)
		require.Empty(t, tracked)
	})
}

func TestTrack_addsVideosToCollections(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, token := storetest.NewOrg(t, db), store.NewID()
		cats := storetest.Collection(t, o, "Cats", nil)
		dogs := storetest.Collection(t, o, "Dogs", nil)
		storetest.Collection(t, o, "Birds", &cats.ID) // this is not a root collection, and CollectionNames is only for root collections, so Track creates a second "Birds"
		already := storetest.Track(t, o, storetest.VideoLink(t, 0))[0]

		_, err := o.Track(t.Context(), store.TrackRequest{Links: storetest.VideoLinks(t, 2), CollectionIDs: []uuid.UUID{cats.ID, cats.ID},
			CollectionNames: []string{"Dogs", "Birds", "Birds", "dogs"}, CreatedBy: token})
		require.NoError(t, err)

		names := func(v store.Video) (names []string) {
			for _, l := range v.Labels {
				names = append(names, l.Name)
			}
			return names
		}
		for _, v := range storetest.ListVideos(t, o, store.VideoQuery{}).Rows {
			require.Equal(t, []string{"Birds", "Cats", "Dogs", "dogs"}, names(v), "a video that was already tracked must also be added to the collections")
		}
		require.Equal(t, already.ID, storetest.VideoOf(t, o, storetest.VideoLink(t, 0)).ID)

		page, err := o.ListCollections(t.Context(), store.CollectionQuery{Roots: true, Order: store.Order{Column: "name"}, Window: store.Window{Limit: 10}})
		require.NoError(t, err)
		require.Len(t, page.Rows, 4)
		birds, small := page.Rows[0], page.Rows[3]
		require.Equal(t, "dogs", small.Name, "names must be case-sensitive")
		require.Equal(t, store.Collection{OrganisationID: o.ID(), ID: birds.ID, Name: "Birds", Sharing: store.Sharing{Access: store.AccessPrivate}, CreatedBy: token,
			CreatedAt: store.InstantOf(db.Clock.Now()), UpdatedAt: store.InstantOf(db.Clock.Now())}, birds)
		require.Equal(t, dogs.ID, page.Rows[2].ID, "the existing collection must be used")

		_, err = o.Track(t.Context(), store.TrackRequest{Links: storetest.VideoLinks(t, 2), CollectionNames: []string{"Birds"}})
		require.NoError(t, err)
		page, err = o.ListCollections(t.Context(), store.CollectionQuery{Roots: true, Order: store.Order{Column: "name"}, Window: store.Window{Limit: 10}})
		require.NoError(t, err)
		require.Len(t, page.Rows, 4)
	})
}

func TestTrack_tracksNothingIfACollectionIsUnknown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		mine, foreign, unknown := storetest.Collection(t, o, "Mine", nil), storetest.Collection(t, other, "Foreign", nil), store.NewID()

		_, err := o.Track(t.Context(), store.TrackRequest{Links: storetest.VideoLinks(t, 2), CollectionIDs: []uuid.UUID{unknown, mine.ID, foreign.ID},
			CollectionNames: []string{"Fresh"}, Immediate: 2})
		var missing *store.NotFoundError
		require.ErrorAs(t, err, &missing)
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Equal(t, "collection", missing.Kind)
		require.ElementsMatch(t, []string{unknown.String(), foreign.ID.String()}, missing.Names, "a collection of another organisation must count as unknown")

		require.Zero(t, storetest.ListVideos(t, o, store.VideoQuery{IncludeRemoved: true}).Total)
		require.Empty(t, storetest.Claim(t, db, link.TikTok, "video"))
		page, err := o.ListCollections(t.Context(), store.CollectionQuery{Order: store.Order{Column: "name"}, Window: store.Window{Limit: 10}})
		require.NoError(t, err)
		require.Len(t, page.Rows, 1, "no collection may be created")
	})
}

func TestTrack_tracksAVideoOnceIfEqualRequestsRunConcurrently(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const requests = 64
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		tracked, errs := make([]store.Tracked, requests), make([]error, requests)
		var wg sync.WaitGroup
		for i := range requests {
			wg.Go(func() {
				var out []store.Tracked
				out, errs[i] = o.Track(t.Context(), store.TrackRequest{Links: []link.Link{l}, CollectionNames: []string{"Dogs"}, Immediate: 1})
				if len(out) == 1 {
					tracked[i] = out[0]
				}
			})
		}
		wg.Wait()
		fresh := 0
		for i, tr := range tracked {
			require.NoError(t, errs[i])
			require.Equal(t, tracked[0].ID, tr.ID)
			require.Equal(t, tr.Existing, tr.Already)
			if !tr.Already {
				fresh++
			}
		}
		require.Equal(t, 1, fresh, "exactly one request must start to track the video")
		page := storetest.ListVideos(t, o, store.VideoQuery{})
		require.EqualValues(t, 1, page.Total)
		require.Len(t, page.Rows, 1)
		require.Len(t, page.Rows[0].Labels, 1, "the collection must be created once")
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(1)))
	})
}

func TestTrack_tracksEachVideoOnceIfOverlappingRequestsRunConcurrently(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const requests, size, pool = 8, 60, 100
		o := storetest.NewOrg(t, db)
		var wg sync.WaitGroup
		fresh, errs := make([]int, requests), make([]error, requests)
		for i := range requests {
			links := storetest.VideoLinks(t, pool)
			rand.Shuffle(pool, func(a, b int) { links[a], links[b] = links[b], links[a] })
			if i == 0 {
				links = storetest.VideoLinks(t, pool)
			} else {
				links = links[:size]
			}
			wg.Go(func() {
				var out []store.Tracked
				out, errs[i] = o.Track(t.Context(), store.TrackRequest{Links: links, Immediate: len(links)})
				for _, tr := range out {
					if !tr.Already {
						fresh[i]++
					}
				}
			})
		}
		wg.Wait()
		sum := 0
		for i := range requests {
			require.NoError(t, errs[i])
			sum += fresh[i]
		}
		require.Equal(t, pool, sum)
		require.EqualValues(t, pool, storetest.ListVideos(t, o, store.VideoQuery{}).Total)
		require.Len(t, storetest.ListVideos(t, o, store.VideoQuery{}).Rows, pool)
	})
}

// TestTrack_runsTheSameStatementsForAnyNumberOfVideos counts the statements in the transactions that
// track and stop videos.
func TestTrack_runsTheSameStatementsForAnyNumberOfVideos(t *testing.T) {
	t.Parallel()
	// On PostgreSQL, one statement inserts all new rows. To stop videos, Citus needs an additional statement,
	// which reads which organisations track the targets.
	most := map[string]map[string]int{
		"postgres": {"new": 4, "tracked already": 2, "stop": 13, "again": 12},
		"sqlite":   {"new": 9, "tracked already": 2, "stop": 12, "again": 15},
		"citus":    {"new": 9, "tracked already": 2, "stop": 14, "again": 15},
	}
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first := 0
		for _, n := range []int{1, 50, 500} {
			o := storetest.NewOrg(t, db)
			r := store.TrackRequest{Links: storetest.VideoLinksFrom(t, first, n)}
			first += n
			count := func(what string, f func() error) {
				db.Guard.Statements()
				require.NoError(t, f())
				statements := db.Guard.Statements()
				require.Len(t, statements, most[db.Engine][what], "%s: %d videos: %q", what, n, statements)
			}
			track := func() error {
				_, err := o.Track(t.Context(), r)
				return err
			}
			count("new", track)
			count("tracked already", track)
			ids, err := o.TrackedVideoIDs(t.Context(), r.Links)
			require.NoError(t, err)
			count("stop", func() error {
				untracked, err := o.StopVideos(t.Context(), ids)
				require.Empty(t, untracked)
				return err
			})
			count("again", track)
		}
	})
}

func TestTrack_doesNotChangeTheVersionOfTheLabelsIfNoCollectionIsGiven(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		version := func() (version, labels int64) {
			require.NoError(t, db.Raw(t).QueryRowContext(t.Context(), "SELECT version, labels_version FROM organisation_totals").Scan(&version, &labels))
			return version, labels
		}
		track := func(r store.TrackRequest) {
			_, err := o.Track(t.Context(), r)
			require.NoError(t, err)
		}
		track(store.TrackRequest{Links: storetest.VideoLinks(t, 1), CollectionNames: []string{"Launch"}})
		before, labels := version()
		track(store.TrackRequest{Links: storetest.VideoLinksFrom(t, 1, 1)})
		after, same := version()
		require.Greater(t, after, before)
		require.Equal(t, labels, same)
		track(store.TrackRequest{Links: storetest.VideoLinksFrom(t, 2, 1), CollectionNames: []string{"Launch"}})
		_, raised := version()
		require.Greater(t, raised, labels)
	})
}

func TestTrack_makesTheFirstVideosDueImmediatelyAndSavesTheOthersAsPending(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewFreeOrg(t, db)
		links := storetest.VideoLinks(t, 9)
		_, err := o.Track(t.Context(), store.TrackRequest{Links: links, Immediate: 2, Allowance: 6})
		require.NoError(t, err)
		for i, l := range links {
			require.Equal(t, i >= 6, storetest.VideoOf(t, o, l).Pending, i)
		}

		at := storetest.Claim(t, db, link.TikTok, "video")
		require.Len(t, at, 2)
		require.Equal(t, []string{links[2].ID, links[3].ID, links[4].ID, links[5].ID}, storetest.TargetIDs(at[1]))
		require.Equal(t, queue.LaneFree, at[1].Targets[0].Lane)
		require.Equal(t, []string{links[0].ID, links[1].ID}, storetest.TargetIDs(at[0]))
		require.Equal(t, queue.LaneInteractive, at[0].Targets[0].Lane)
		require.NoError(t, db.Acknowledge(t.Context(), at[0], at[0].At, []ingest.Outcome{storetest.Outcome(db, at[0].Targets[0], storetest.Views(1)), storetest.Outcome(db, at[0].Targets[1], storetest.Views(1))}))
		db.Clock.Advance(72 * time.Hour)
		require.Len(t, storetest.DueTargets(t, db), 6, "a pending video must never be due")
	})
}

func TestSetSubscription_schedulesPendingVideos(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewFreeOrg(t, db)
		_, err := o.Track(t.Context(), store.TrackRequest{Links: storetest.VideoLinks(t, 8), Immediate: 5, Allowance: 5})
		require.NoError(t, err)
		require.Equal(t, 5, storetest.Deliver(t, db, link.TikTok, storetest.Views(1)))
		storetest.StopVideos(t, o, storetest.VideoLink(t, 7)) // this pending video is stopped, so it must not be scheduled

		require.NoError(t, db.SetSubscription(t.Context(), o.ID(), store.SubscriptionActive))
		for _, v := range storetest.ListVideos(t, o, store.VideoQuery{}).Rows {
			require.False(t, v.Pending)
		}
		db.Clock.Advance(24 * time.Hour)
		require.Len(t, storetest.DueTargets(t, db), 7)
		db.Clock.Advance(24 * time.Hour)
		require.Equal(t, 7, storetest.Deliver(t, db, link.TikTok, storetest.Views(2)))
		require.EqualValues(t, 2, *storetest.VideoOf(t, o, storetest.VideoLink(t, 6)).Latest.Views)
		require.Nil(t, storetest.VideoOf(t, o, storetest.VideoLink(t, 7)).Latest.Views)

		require.NoError(t, db.SetSubscription(t.Context(), o.ID(), store.SubscriptionActive), "the second call must change nothing")
	})
}

func TestSlotOf_spreadsTheFetchesOfTargetsEvenlyOverTheDay(t *testing.T) {
	t.Parallel()
	const targets = 24_000
	hours := map[int]int{}
	for i := range targets {
		slot := queue.SlotOf(link.YouTube, uuid.NewSHA1(uuid.Nil, []byte{byte(i), byte(i >> 8)}).String())
		require.GreaterOrEqual(t, slot, time.Duration(0))
		require.Less(t, slot, 24*time.Hour)
		hours[int(slot.Hours())]++
	}
	for h := range 24 {
		require.InDelta(t, targets/24, hours[h], targets/24*0.2, "hour %d", h)
	}
	require.NotEqual(t, queue.SlotOf(link.TikTok, "1"), queue.SlotOf(link.YouTube, "1"))
}
