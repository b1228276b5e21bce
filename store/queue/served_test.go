package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// isDueOrInteractive returns true if a target of the given kind is due or in the interactive lane.
func isDueOrInteractive(t *testing.T, db *storetest.DB, kind queue.Kind) bool {
	t.Helper()
	now := int64(store.InstantOf(db.Clock.Now()))
	return len(storetest.Column[string](t, db, "SELECT external_id FROM fetch_targets WHERE kind = ? AND (lane = 0 OR next_at <= ?)", kind, now)) > 0
}

// One fetch of a target serves all organisations. If an organisation stops a target and tracks it again shortly after a fetch, the target
// is not fetched again immediately.
func TestTrackAgain_causesNoImmediateFetchAfterARecentFetch(t *testing.T) {
	t.Parallel()
	for name, another := range map[string]bool{"a video of one organisation": false, "a video of two organisations": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
				storetest.Track(t, o, l)
				if another {
					storetest.Track(t, storetest.NewOrg(t, db), l)
				}
				require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(1)))
				stopAndTrack := func(form link.Link) {
					storetest.StopVideos(t, o, l)
					storetest.Track(t, o, form)
				}
				for range 3 {
					db.Clock.Advance(time.Hour)
					stopAndTrack(l)
					require.False(t, isDueOrInteractive(t, db, "video"))
					stopAndTrack(storetest.ParseLink(t, "https://m.tiktok.com/v/"+l.ID+".html"))
					require.False(t, isDueOrInteractive(t, db, "video"))
				}
				require.EqualValues(t, 1, *storetest.VideoOf(t, o, l).Latest.Views)
				db.Clock.Advance(time.Hour)
				stopAndTrack(l)
				require.True(t, isDueOrInteractive(t, db, "video"), "the target must be due when the refresh pause is over")
			})
		})
	}
}

func TestTrack_causesAnImmediateFetchForANewOrganisation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		l := storetest.VideoLink(t, 1)
		storetest.Track(t, storetest.NewOrg(t, db), l)
		storetest.Deliver(t, db, link.TikTok, storetest.Views(1))
		db.Clock.Advance(time.Hour)
		second := storetest.NewOrg(t, db)
		storetest.Track(t, second, l)
		require.True(t, isDueOrInteractive(t, db, "video"))
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(2)))
		require.EqualValues(t, 2, *storetest.VideoOf(t, second, l).Latest.Views)
	})
}

// An organisation tracks a video, stops it before its fetch, and tracks it again. The next fetch must then wait
// until the time queue.RefreshPause is over.
func TestTrackAgain_waitsForTheRefreshPauseAfterAStop(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		l, o := storetest.VideoLink(t, 1), storetest.NewOrg(t, db)
		storetest.Track(t, storetest.NewOrg(t, db), l)
		storetest.Deliver(t, db, link.TikTok, storetest.Views(1))
		db.Clock.Advance(time.Hour)
		storetest.Track(t, o, l)
		storetest.StopVideos(t, o, l)
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(2)))
		for range 5 {
			db.Clock.Advance(time.Minute)
			storetest.Track(t, o, l)
			require.False(t, isDueOrInteractive(t, db, "video"))
			storetest.StopVideos(t, o, l)
		}
		storetest.Track(t, o, l)
		db.Clock.Advance(queue.RefreshPause)
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(3)))
		require.EqualValues(t, 3, *storetest.VideoOf(t, o, l).Latest.Views)
	})
}

// While a video is fetched, an organisation that already has its counts stops the video and tracks it again.
// This must not cause an additional fetch.
func TestTrackAgain_causesNoFetchIfTheTargetIsBeingFetched(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		storetest.Deliver(t, db, link.TikTok, storetest.Views(1))
		db.Clock.Advance(time.Hour)
		storetest.Track(t, storetest.NewOrg(t, db), l)
		held := storetest.ClaimOne(t, db, link.TikTok, "video")
		storetest.StopVideos(t, o, l)
		storetest.Track(t, o, l)
		require.NoError(t, db.Acknowledge(t.Context(), held, held.At, []ingest.Outcome{storetest.Outcome(db, held.Targets[0], storetest.Views(2))}))
		require.False(t, isDueOrInteractive(t, db, "video"))
	})
}

func TestTrackAgain_causesNoFetchOfAnAccountDuringTheRefreshPause(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		storetest.Follow(t, o, store.TrackAll, l)
		storetest.DeliverAccount(t, db, storetest.ListedAccount(storetest.FoundVideos(t, 4, db.Clock.Now())))
		require.Equal(t, 4, storetest.Deliver(t, db, link.TikTok, storetest.Views(1)))
		for _, kind := range []store.TrackingType{store.TrackAll, store.TrackLatest200, store.TrackNewOnly, store.TrackLatest30} {
			db.Clock.Advance(30 * time.Minute)
			storetest.StopAccounts(t, o, l)
			storetest.Follow(t, o, kind, l)
			require.False(t, isDueOrInteractive(t, db, "account"), kind)
		}
		second := storetest.NewOrg(t, db)
		storetest.Follow(t, second, store.TrackLatest30, l)
		require.True(t, isDueOrInteractive(t, db, "account"), "the account must be due, because the second organisation has no videos of the account yet")
		storetest.DeliverAccount(t, db, storetest.ListedAccount(storetest.FoundVideos(t, 4, db.Clock.Now())))
		require.Equal(t, 4, storetest.TrackedVideos(t, second))
		require.Equal(t, 4, storetest.Deliver(t, db, link.TikTok, storetest.Views(2)), "the second organisation must cause a fetch")
		require.Equal(t, 4, storetest.TrackedVideos(t, o), "the stopped videos must be tracked again immediately")
	})
}

// An account is fetched, and is then at once tracked again with a type that includes older videos. No fetch has listed these videos yet, so the account
// must be fetched once more without waiting for queue.RefreshPause. Further changes between the two types must cause no fetch.
func TestTrackAgain_fetchesOlderVideosDuringTheRefreshPauseOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		videos := storetest.FoundVideos(t, 60, db.Clock.Now())
		storetest.Follow(t, o, store.TrackLatest30, l)
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos[:30]))
		trackAgain := func(kind store.TrackingType) store.Tracked {
			db.Clock.Advance(time.Minute)
			storetest.StopAccounts(t, o, l)
			return storetest.Follow(t, o, kind, l)[0]
		}
		require.True(t, trackAgain(store.TrackNewOnly).Deferred)
		require.True(t, trackAgain(store.TrackLatest30).Deferred)
		require.False(t, isDueOrInteractive(t, db, "account"))
		for range 2 { // the second call comes before the fetch that the first call causes
			require.False(t, trackAgain(store.TrackLatest200).Deferred)
			require.True(t, isDueOrInteractive(t, db, "account"))
		}
		c := storetest.ClaimOne(t, db, link.TikTok, "account")
		require.Equal(t, queue.LaneInteractive, c.Targets[0].Lane)
		require.Equal(t, 200, c.Targets[0].Depth)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], storetest.ListedAccount(videos))}))
		require.Equal(t, 60, storetest.TrackedVideos(t, o))

		for range 2 {
			for _, kind := range []store.TrackingType{store.TrackLatest200, store.TrackNewOnly, store.TrackLatest30, store.TrackLatest200, store.TrackNewOnly} {
				require.True(t, trackAgain(kind).Deferred, kind)
				require.False(t, isDueOrInteractive(t, db, "account"), kind)
			}
			db.Clock.Advance(48 * time.Hour)
			storetest.DeliverAccount(t, db, storetest.ListedAccount(videos)) // a fetch for the type new_only does not reduce what earlier fetches cover
		}
	})
}

// If an account is stopped, its videos are stopped too. If the organisation tracks the account again, and its
// list contains the same videos, they are not fetched immediately.
func TestDiscovery_doesNotFetchStoppedVideosAgainImmediately(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		videos := storetest.FoundVideos(t, 4, db.Clock.Now())
		storetest.Follow(t, o, store.TrackLatest30, l)
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos))
		db.Clock.Advance(queue.RefreshPause - time.Minute)
		require.Equal(t, 4, storetest.Deliver(t, db, link.TikTok, storetest.Views(1)))
		db.Clock.Advance(2 * time.Minute)
		storetest.StopAccounts(t, o, l)
		storetest.Follow(t, o, store.TrackLatest30, l)
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos))
		require.Equal(t, 4, storetest.TrackedVideos(t, o))
		require.False(t, isDueOrInteractive(t, db, "video"))
	})
}

func TestDiscovery_fetchesOnlyThePreviewIfTheOrganisationDoesNotPay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewFreeOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		trackAll := func() {
			_, err := o.TrackAccounts(t.Context(), store.TrackRequest{Links: []link.Link{l}, Type: store.TrackAll, Immediate: 1, Allowance: 1, Preview: 3})
			require.NoError(t, err)
		}
		pending := func() int64 {
			return storetest.Column[int64](t, db, "SELECT COUNT(*) FROM videos WHERE organisation_id = ? AND pending", o.ID())[0]
		}
		trackAll()
		videos := storetest.FoundVideos(t, 40, db.Clock.Now())
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos))
		require.Equal(t, 40, storetest.TrackedVideos(t, o), "all videos must be saved")
		require.EqualValues(t, 37, pending())
		require.Equal(t, 3, storetest.Deliver(t, db, link.TikTok, storetest.Views(1)))
		for _, v := range videos[:3] {
			require.NotNil(t, storetest.VideoOf(t, o, storetest.ParseLink(t, v.Link)).Latest.Views, "the newest videos must be fetched")
		}
		for range 3 {
			db.Clock.Advance(25 * time.Hour)
			storetest.StopAccounts(t, o, l)
			trackAll()
			storetest.DeliverAccount(t, db, storetest.ListedAccount(videos))
			require.EqualValues(t, 37, pending())
			require.LessOrEqual(t, storetest.Deliver(t, db, link.TikTok, storetest.Views(2)), 3)
		}
		require.NoError(t, db.SetSubscription(t.Context(), o.ID(), store.SubscriptionActive))
		require.Zero(t, pending())
		storetest.RequireConsistent(t, db, o)
	})
}
