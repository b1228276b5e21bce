package store_test

import (
	"slices"
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

// eventsAfter returns events of an organisation after the given position, the oldest first. It returns at most "limit" events.
func eventsAfter(t *testing.T, o *store.Org, after *store.Position, limit int) []store.Event {
	t.Helper()
	list, err := o.ListEvents(t.Context(), store.EventQuery{Window: store.Window{Limit: limit, After: after}})
	require.NoError(t, err)
	return list.Rows
}

func eventTypesOf(events []store.Event) []store.EventType {
	types := make([]store.EventType, len(events))
	for i, e := range events {
		types[i] = e.Type
	}
	return types
}

func openFeed(t *testing.T, o *store.Org) {
	t.Helper()
	_, _, err := o.OpenFeed(t.Context())
	require.NoError(t, err)
}

// Requirements in docs/coverage.md: 14.5-07
func TestListEvents_returnsEachEventOnceDuringConcurrentWrites(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const writers, rounds = 6, 25
		o := storetest.NewOrg(t, db)
		hook, err := o.CreateWebhook(t.Context(), store.NewWebhook{URL: "https://hooks.example.com/", Secret: []byte("s")})
		require.NoError(t, err)
		var wg sync.WaitGroup
		made := make([][]uuid.UUID, writers)
		for w := range writers {
			wg.Go(func() {
				for range rounds {
					d, err := o.TestWebhook(t.Context(), hook.ID, uuid.Nil)
					if err != nil {
						t.Error(err)
						return
					}
					made[w] = append(made[w], d.EventID)
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		var seen []store.Event
		var after *store.Position
		for finished := false; ; {
			select {
			case <-done:
				finished = true
			default:
			}
			found := eventsAfter(t, o, after, 3)
			for _, e := range found {
				after = new(store.EventPosition(e.Position, e.ID))
			}
			if seen = append(seen, found...); finished && len(found) == 0 {
				break
			}
		}
		ids, last := make([]uuid.UUID, len(seen)), int64(0)
		for i, e := range seen {
			ids[i] = e.ID
			require.Greater(t, e.Position, last)
			last = e.Position
		}
		require.ElementsMatch(t, slices.Concat(made...), ids)
	})
}

// The last event that the reader got is no longer in the database. This can happen after an older backup was restored.
func TestListEvents_returnsNewEventsToAReaderWhoseLastEventIsNoLongerStored(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		videoLink := storetest.VideoLink(t, 1)
		storetest.Track(t, o, videoLink)
		openFeed(t, o)
		measure := func(views int64) store.Event {
			db.Clock.Advance(time.Hour)
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{videoLink: storetest.Views(views)})
			found := eventsAfter(t, o, nil, 10)
			return found[len(found)-1]
		}
		kept := measure(5)
		lost := measure(6)
		db.Exec(t, "DELETE FROM events WHERE id = ?", lost.ID)
		db.Exec(t, "UPDATE event_feeds SET position = ?", kept.Position)
		after := measure(7)
		require.Equal(t, []store.Event{after}, eventsAfter(t, o, new(store.EventPosition(lost.Position, lost.ID)), 10))
	})
}

func TestEvents_areRecordedOnlyForOrganisationsThatReadThem(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		reader, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		videoLink := storetest.VideoLink(t, 1)
		storetest.Track(t, reader, videoLink)
		storetest.Track(t, other, videoLink)
		openFeed(t, reader)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{videoLink: storetest.Views(5)})
		require.Equal(t, []store.EventType{store.EventVideoMetrics}, eventTypesOf(eventsAfter(t, reader, nil, 10)))
		require.Empty(t, eventsAfter(t, other, nil, 10))
		require.Equal(t, []int64{1}, storetest.Column[int64](t, db, "SELECT COUNT(*) FROM events"))

		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{videoLink: storetest.Views(5)})
		require.Len(t, eventsAfter(t, reader, nil, 10), 1, "storing the same answer again must not add an event")
	})
}

func TestEvents_announceEachThresholdOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		videoLinks := storetest.VideoLinks(t, 3)
		storetest.Track(t, o, videoLinks...)
		openFeed(t, o)
		measure := func(views ...int64) []store.EventType {
			db.Clock.Advance(24 * time.Hour)
			before := len(eventsAfter(t, o, nil, 1000))
			facts := map[link.Link]ingest.VideoFacts{}
			for i, n := range views {
				facts[videoLinks[i]] = ingest.VideoFacts{Views: &n, Username: new("someone")}
			}
			storetest.Measure(t, db, db.Clock.Now(), facts)
			return slices.DeleteFunc(eventTypesOf(eventsAfter(t, o, nil, 1000)[before:]), func(kind store.EventType) bool { return kind == store.EventVideoMetrics })
		}
		require.Empty(t, measure(5_000_000, 5_000_000, 5_000_000), "the first count of a video must not announce a threshold, because the time at which the video reached it is unknown")
		require.Equal(t, []store.EventType{store.EventVideoViewsFell}, measure(4_000_000))
		require.Equal(t, []store.EventType{store.EventVideoMilestone}, measure(10_000_000))
		require.Equal(t, []store.EventType{store.EventVideoViewsFell}, measure(9_999_999))
		require.Empty(t, measure(10_000_001), "a threshold must not be announced again")
		require.Equal(t, []store.EventType{store.EventVideoOutlier}, measure(50_000_000))
		require.Equal(t, []store.EventType{store.EventVideoViewsFell}, measure(49_000_000))
		require.Empty(t, measure(51_000_000))
		require.Equal(t, []store.EventType{store.EventVideoMilestone, store.EventVideoMilestone, store.EventVideoOutlier}, slices.Sorted(slices.Values(measure(2_000_000_000))))
	})
}

func TestEvents_reportStoppedVideosButNotUnknownIDs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		videoLink := storetest.VideoLink(t, 1)
		storetest.Track(t, o, videoLink)
		openFeed(t, o)
		_, err := o.StopVideos(t.Context(), []uuid.UUID{store.NewID()})
		require.NoError(t, err)
		require.Empty(t, eventsAfter(t, o, nil, 10))
		storetest.StopVideos(t, o, videoLink)
		events := eventsAfter(t, o, nil, 10)
		require.Equal(t, []store.EventType{store.EventVideoRemoved}, eventTypesOf(events))
		require.True(t, events[0].Data.Video.Removed)
	})
}

func TestEvents_reportAccountsAndTheirVideos(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		openFeed(t, o)
		storetest.Follow(t, o, store.TrackAll, storetest.ParseLink(t, "https://www.tiktok.com/@someone"))
		videoLink := storetest.VideoLink(t, 1)
		storetest.DeliverAccount(t, db, ingest.AccountFacts{Followers: new(int64(7)), Listed: true, Videos: []ingest.FoundVideo{{ID: videoLink.ID, Link: videoLink.Canonical}}})
		events := eventsAfter(t, o, nil, 10)
		require.Equal(t, []store.EventType{store.EventVideoDiscovered, store.EventAccountMetrics}, eventTypesOf(events))
		require.Equal(t, videoLink.Canonical, events[0].Data.Video.Link)
		require.Nil(t, events[0].Data.Video.Views)
		require.Equal(t, store.FetchStatus("ok"), events[0].Data.Account.Status, "the fetch that found the video has succeeded")
		require.EqualValues(t, 7, *events[0].Data.Account.Followers)
		require.Nil(t, events[1].Data.Account.Previous.Followers)
		require.EqualValues(t, 7, *events[1].Data.Account.Followers)
	})
}

func TestEvents_aDiscoveredVideoThatIsTrackedAgainIsPendingAndNotRemoved(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		videos := storetest.FoundVideos(t, 1, db.Clock.Now())
		openFeed(t, o)
		for round := range 2 {
			storetest.Follow(t, o, store.TrackAll, l)
			storetest.DeliverAccount(t, db, storetest.ListedAccount(videos))
			discovered := slices.DeleteFunc(eventsAfter(t, o, nil, 100), func(e store.Event) bool { return e.Type != store.EventVideoDiscovered })
			require.Len(t, discovered, round+1)
			require.False(t, discovered[round].Data.Video.Removed)
			require.Equal(t, store.FetchStatus("pending"), discovered[round].Data.Video.Status)
			require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(7)))

			storetest.StopAccounts(t, o, l)
			db.Clock.Advance(queue.RefreshPause)
		}
	})
}

func TestEvents_areNoLongerRecordedIfTheFeedIsNotRead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		videoLink := storetest.VideoLink(t, 1)
		storetest.Track(t, o, videoLink)
		openFeed(t, o)
		measure := func(views int64) {
			storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{videoLink: storetest.Views(views)})
		}
		measure(1)
		first := eventsAfter(t, o, nil, 10)[0]
		db.Clock.Advance(8 * 24 * time.Hour)
		_, err := db.DeleteExpired(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		measure(2)
		require.Empty(t, eventsAfter(t, o, nil, 10))
		missing, _, err := o.OpenFeed(t.Context())
		require.NoError(t, err)
		require.Equal(t, first.Position, missing)
		db.Clock.Advance(time.Hour)
		measure(3)
		require.Len(t, eventsAfter(t, o, nil, 10), 1)
	})
}

// If the delivery of an event cannot be stored, neither the event nor the change that caused it may
// be stored.
//
// Requirements in docs/coverage.md: 14.5-06
func TestEvents_areStoredInTheTransactionOfTheirChange(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		videoLink := storetest.VideoLink(t, 1)
		storetest.Track(t, o, videoLink)
		ref := store.Ref{ID: storetest.VideoOf(t, o, videoLink).ID}
		_, err := o.CreateWebhook(t.Context(), store.NewWebhook{URL: "https://hooks.example.com/", Secret: []byte("s")})
		require.NoError(t, err)
		db.Exec(t, "ALTER TABLE webhook_deliveries RENAME TO missing")
		target := queue.Target{Platform: videoLink.Platform, Kind: "video", ExternalID: videoLink.ID}
		fetch := func() error {
			return db.Acknowledge(t.Context(), queue.Claim{}, store.InstantOf(db.Clock.Now()), []ingest.Outcome{storetest.Outcome(db, target, storetest.Views(5))})
		}
		require.Error(t, fetch())
		_, err = o.StopVideos(t.Context(), []uuid.UUID{ref.ID})
		require.Error(t, err)
		v, err := o.Video(t.Context(), ref)
		require.NoError(t, err)
		require.Nil(t, v.Latest.Views)
		require.False(t, v.Removed)
		require.Empty(t, eventsAfter(t, o, nil, 10))

		db.Exec(t, "ALTER TABLE missing RENAME TO webhook_deliveries")
		require.NoError(t, fetch())
		_, err = o.StopVideos(t.Context(), []uuid.UUID{ref.ID})
		require.NoError(t, err)
		require.Equal(t, []store.EventType{store.EventVideoMetrics, store.EventVideoRemoved}, eventTypesOf(eventsAfter(t, o, nil, 10)))
		require.Equal(t, []int64{2}, storetest.Column[int64](t, db, "SELECT COUNT(*) FROM webhook_deliveries"))
	})
}

func TestDeleteExpiredEvents_keepsEventsAfterAnEventThatIsKept(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		hook, err := o.CreateWebhook(t.Context(), store.NewWebhook{URL: "https://hooks.example.com/", Secret: []byte("s")})
		require.NoError(t, err)
		record := func() {
			_, err := o.TestWebhook(t.Context(), hook.ID, uuid.Nil)
			require.NoError(t, err)
		}
		// The second event has an earlier time than the first one. This happens if the clock goes back, or if the transaction of the second event begins
		// first and ends last.
		db.Clock.Advance(time.Hour)
		record()
		db.Clock.Advance(-time.Hour)
		record()
		db.Clock.Advance(7*24*time.Hour + time.Minute)
		deleted, err := o.DeleteExpiredEvents(t.Context())
		require.NoError(t, err)
		require.Zero(t, deleted)
		missing, _, err := o.OpenFeed(t.Context())
		require.NoError(t, err)
		require.Zero(t, missing, "no event is missing")
		require.Len(t, eventsAfter(t, o, nil, 10), 2)
		db.Clock.Advance(time.Hour)
		deleted, err = o.DeleteExpiredEvents(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, deleted)
		require.Empty(t, eventsAfter(t, o, nil, 10))
	})
}

func TestEvents_announceAnOutlierWhenTheMedianOfItsAccountChanges(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		videoLinks := storetest.VideoLinks(t, 3)
		storetest.Track(t, o, videoLinks...)
		openFeed(t, o)
		facts := func(views int64) ingest.VideoFacts {
			return ingest.VideoFacts{Views: &views, Username: new("someone")}
		}
		outliers := func() (found []store.Event) {
			for _, e := range eventsAfter(t, o, nil, 1000) {
				if e.Type == store.EventVideoOutlier {
					found = append(found, e)
				}
			}
			return found
		}
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{videoLinks[0]: facts(500_000)})
		require.Empty(t, outliers())
		db.Clock.Advance(time.Minute)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{videoLinks[1]: facts(20_000), videoLinks[2]: facts(40_000)})
		found := outliers()
		require.Len(t, found, 1, "500,000 views are 12.5 times the median of 40,000")
		require.Equal(t, videoLinks[0].Canonical, found[0].Data.Video.Link)
		require.Equal(t, &store.Threshold{Member: "outlier_multiplier", Value: 10}, found[0].Data.Threshold)
		require.InDelta(t, 12.5, *found[0].Data.Video.OutlierMultiplier, 1e-9)
		require.InDelta(t, 1, *found[0].Data.Video.Previous.OutlierMultiplier, 1e-9)
		storetest.StopVideos(t, o, videoLinks[2])
		require.Len(t, outliers(), 1, "500,000 views are 1.9 times the median of 260,000")
	})
}

func TestEvents_announceAnOutlierWhenAnotherVideoIsStopped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		videoLinks := storetest.VideoLinks(t, 4)
		storetest.Track(t, o, videoLinks...)
		openFeed(t, o)
		facts := map[link.Link]ingest.VideoFacts{}
		for i, views := range []int64{1_000_000, 900_000, 10_000, 10_000} {
			facts[videoLinks[i]] = ingest.VideoFacts{Views: &views, Username: new("someone")}
		}
		storetest.Measure(t, db, db.Clock.Now(), facts)
		before := len(eventsAfter(t, o, nil, 100))
		storetest.StopVideos(t, o, videoLinks[1])
		added := eventsAfter(t, o, nil, 100)[before:]
		require.Equal(t, []store.EventType{store.EventVideoRemoved, store.EventVideoOutlier, store.EventVideoOutlier}, eventTypesOf(added), "the median falls from 455,000 to 10,000")
		require.Equal(t, videoLinks[0].Canonical, added[1].Data.Video.Link)
	})
}

func TestPauseUnusedFeed_waitsSevenDaysAfterTheLastWebhookWasDisabledOrDeleted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		isRecording := func(o *store.Org) bool {
			return storetest.Column[bool](t, db, "SELECT enabled FROM event_feeds WHERE organisation_id = '"+o.ID().String()+"'")[0]
		}
		for name, end := range map[string]func(o *store.Org, hook store.Webhook) error{
			"disabled": func(o *store.Org, hook store.Webhook) error {
				_, err := o.UpdateWebhook(t.Context(), hook.ID, store.WebhookChange{Enabled: new(false)})
				return err
			},
			"deleted": func(o *store.Org, hook store.Webhook) error { return o.DeleteWebhook(t.Context(), hook.ID) },
		} {
			o := storetest.NewOrg(t, db)
			hook, err := o.CreateWebhook(t.Context(), store.NewWebhook{URL: "https://hooks.example.com/", Secret: []byte("s")})
			require.NoError(t, err)
			db.Clock.Advance(30 * 24 * time.Hour)
			require.NoError(t, o.PauseUnusedFeed(t.Context()))
			require.True(t, isRecording(o), "the webhook is enabled")
			require.NoError(t, end(o, hook), name)
			db.Clock.Advance(7*24*time.Hour - time.Minute)
			require.NoError(t, o.PauseUnusedFeed(t.Context()))
			require.True(t, isRecording(o), "the webhook was %s less than seven days ago", name)
			db.Clock.Advance(2 * time.Minute)
			require.NoError(t, o.PauseUnusedFeed(t.Context()))
			require.False(t, isRecording(o), name)
		}
	})
}
