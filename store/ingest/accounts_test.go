package ingest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestDiscovery_requestsALongerListForAnOrganisationThatSubscribesDuringAFetch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first, second := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		storetest.Follow(t, first, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		c := storetest.ClaimOne(t, db, link.TikTok, "account")
		require.Equal(t, 30, c.Targets[0].Depth)
		storetest.Follow(t, second, store.TrackLatest200, storetest.ParseLink(t, storetest.AccountURL)) // the second organisation subscribes while the first claim is still open
		videos := storetest.FoundVideos(t, 250, db.Clock.Now())
		answer := func(c queue.Claim, n int) {
			require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], storetest.ListedAccount(videos[:n]))}))
		}
		answer(c, 30)
		require.Equal(t, 30, storetest.TrackedVideos(t, first))
		require.Equal(t, 30, storetest.TrackedVideos(t, second))

		c = storetest.ClaimOne(t, db, link.TikTok, "account")
		require.Equal(t, 200, c.Targets[0].Depth)
		answer(c, 250)
		require.Equal(t, 30, storetest.TrackedVideos(t, first))
		require.Equal(t, 200, storetest.TrackedVideos(t, second))
		require.Empty(t, storetest.Claim(t, db, link.TikTok, "account"))

		db.Clock.Advance(25 * time.Hour)
		require.Zero(t, storetest.ClaimOne(t, db, link.TikTok, "account").Targets[0].Depth, "the next fetch must request only one page")
	})
}

func TestDiscovery_requestsALongerListImmediatelyIfAListIsTooShort(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewFreeOrg(t, db)
		_, err := o.TrackAccounts(t.Context(), store.TrackRequest{Links: []link.Link{storetest.ParseLink(t, storetest.AccountURL)}, Type: store.TrackLatest200})
		require.NoError(t, err) // TrackAccounts saves the account, but does not add it to the queue
		db.Exec(t, "UPDATE organisations SET subscription = ?", store.SubscriptionActive)
		_, err = o.RefreshAccount(t.Context(), store.Ref{Link: storetest.ParseLink(t, storetest.AccountURL)}, nil)
		require.NoError(t, err)
		videos := storetest.FoundVideos(t, 250, db.Clock.Now())
		c := storetest.ClaimOne(t, db, link.TikTok, "account")
		require.Zero(t, c.Targets[0].Depth)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], storetest.ListedAccount(videos[:50]))}))
		c = storetest.ClaimOne(t, db, link.TikTok, "account")
		require.Equal(t, 200, c.Targets[0].Depth)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], storetest.ListedAccount(videos))}))
		require.Equal(t, 200, storetest.TrackedVideos(t, o))
		require.Empty(t, storetest.Claim(t, db, link.TikTok, "account"))
	})
}

func TestDiscovery_requestsALongListOnlyWhenAPrivateAccountBecomesPublic(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Follow(t, o, store.TrackLatest200, storetest.ParseLink(t, storetest.AccountURL))
		storetest.DeliverAccount(t, db, ingest.AccountFacts{ID: new("42"), Username: new("someone"), Private: new(true)})
		a := storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL))
		require.True(t, a.Private)
		require.False(t, a.Empty, "a private account must not be marked as empty, because its videos are unknown")
		require.Nil(t, a.DiscoveredAt)

		db.Clock.Advance(25 * time.Hour)
		c := storetest.ClaimOne(t, db, link.TikTok, "account")
		require.Zero(t, c.Targets[0].Depth, "the collector must not request a long list while the account is private")
		require.Equal(t, "42", c.Targets[0].AccountID)
		facts := storetest.ListedAccount(storetest.FoundVideos(t, 60, db.Clock.Now()))
		facts.Private = new(false)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], facts)}))
		require.False(t, storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).Private)
		c = storetest.ClaimOne(t, db, link.TikTok, "account")
		require.Equal(t, 200, c.Targets[0].Depth, "the long list must be requested immediately if the account is public")
		facts = storetest.ListedAccount(storetest.FoundVideos(t, 90, db.Clock.Now()))
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], facts)}))
		require.Equal(t, 90, storetest.TrackedVideos(t, o))
		require.Empty(t, storetest.Claim(t, db, link.TikTok, "account"))
	})
}

func TestDiscovery_tracksStoppedVideosAgainIfTheirAccountIsTrackedAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		videos := storetest.FoundVideos(t, 5, db.Clock.Now())
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos))
		require.Equal(t, 5, storetest.TrackedVideos(t, o))

		storetest.StopVideos(t, o, storetest.ParseLink(t, videos[0].Link))
		db.Clock.Advance(25 * time.Hour)
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos))
		require.Equal(t, 4, storetest.TrackedVideos(t, o), "a video that was stopped individually must stay stopped after the next fetch of its account")

		storetest.StopAccounts(t, o, storetest.ParseLink(t, storetest.AccountURL))
		require.Zero(t, storetest.TrackedVideos(t, o))
		db.Clock.Advance(queue.RefreshPause)
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos))
		require.Equal(t, 5, storetest.TrackedVideos(t, o), "tracking the account again must include all its videos")
		require.Equal(t, 5, storetest.Deliver(t, db, link.TikTok, storetest.Views(7)))
		storetest.RequireConsistent(t, db, o)
	})
}

func TestTrackAccounts_resumesTheVideosOfARecentlyFetchedAccountImmediately(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		videos := storetest.FoundVideos(t, 40, db.Clock.Now())
		storetest.Follow(t, o, store.TrackAll, l)
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos))
		require.Equal(t, 40, storetest.Deliver(t, db, link.TikTok, storetest.Views(7)))
		for _, c := range []struct {
			kind store.TrackingType
			want int
		}{{store.TrackAll, 40}, {store.TrackLatest30, 30}, {store.TrackNewOnly, 0}} {
			storetest.StopAccounts(t, o, l)
			today := organisationPointOfToday(t, db, o)
			require.Equal(t, []int64{0, 0}, []int64{today.Accounts, today.Videos}, "today's point must not count stopped accounts and videos")

			storetest.Follow(t, o, c.kind, l)
			require.Equal(t, c.want, storetest.TrackedVideos(t, o))
			a := storetest.AccountByLink(t, o, l)
			require.EqualValues(t, c.want, a.TotalVideosTracked)
			if c.want > 0 {
				require.EqualValues(t, 7*c.want, *a.Total.Views)
			}
			today = organisationPointOfToday(t, db, o)
			require.Equal(t, []int64{1, int64(c.want)}, []int64{today.Accounts, today.Videos})
			storetest.RequireConsistent(t, db, o)
			require.Empty(t, storetest.Claim(t, db, link.TikTok, "account"), "tracking the account again must not cause a fetch")
			require.Empty(t, storetest.Claim(t, db, link.TikTok, "video"), "tracking the account again must not cause a fetch")
		}
	})
}

func TestTrackAccounts_resumesNoVideosWithoutASubscription(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, storetest.AccountURL)
		storetest.Follow(t, o, store.TrackAll, l)
		storetest.DeliverAccount(t, db, storetest.ListedAccount(storetest.FoundVideos(t, 5, db.Clock.Now())))
		storetest.StopAccounts(t, o, l)
		require.NoError(t, db.SetSubscription(t.Context(), o.ID(), store.SubscriptionNone))
		storetest.Follow(t, o, store.TrackAll, l)
		require.Zero(t, storetest.TrackedVideos(t, o), "the next fetch of the account must choose the videos")
	})
}

func TestTrack_updatesTheSumsImmediatelyIfAStoppedVideoIsTrackedAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		videos := storetest.FoundVideos(t, 3, db.Clock.Now())
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos))
		require.Equal(t, 3, storetest.Deliver(t, db, link.TikTok, storetest.Views(7)))
		one := storetest.ParseLink(t, videos[0].Link)
		requireSums := func(tracked int64) {
			t.Helper()
			a := storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL))
			require.Equal(t, []int64{tracked, 7 * tracked, tracked}, []int64{a.TotalVideosTracked, *a.Total.Views, organisationPointOfToday(t, db, o).Videos})
			storetest.RequireConsistent(t, db, o)
		}
		storetest.StopVideos(t, o, one)
		requireSums(2)
		storetest.Track(t, o, one)
		requireSums(3)
	})
}

func TestDiscovery_updatesTheRequestedAccountIfTheAnswerHasNoIDAndNoHandle(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		storetest.DeliverAccount(t, db, ingest.AccountFacts{Name: new("Some One"), Followers: new(int64(7))})
		page, err := o.ListAccounts(t.Context(), store.AccountQuery{IncludeLinked: true, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 10}})
		require.NoError(t, err)
		require.Len(t, page.Rows, 1, "an answer without a handle must not create another record")
		require.EqualValues(t, 7, *page.Rows[0].LatestFollowersCount)
		require.Equal(t, "Some One", *page.Rows[0].Name)
	})
}

func TestAcknowledge_keepsANewerProfileIfAnOldAnswerArrives(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		db.Clock.Advance(storetest.Today(db).Time().Add(24*time.Hour - 10*time.Second).Sub(db.Clock.Now()))
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		slow := storetest.ClaimOne(t, db, link.TikTok, "account") // the outcome of this claim is acknowledged last
		videos := storetest.FoundVideos(t, 3, db.Clock.Now())
		facts := func(followers int64, videos []ingest.FoundVideo) ingest.AccountFacts {
			f := storetest.ListedAccount(videos)
			f.Followers, f.Following, f.Name, f.Bio, f.Private = &followers, new(followers/10), new(fmt.Sprint("Named at ", followers)), new(fmt.Sprint(followers)), new(followers == 1000)
			return f
		}
		db.Clock.Advance(2 * time.Minute)
		storetest.DeliverAccount(t, db, facts(1010, videos[:2]))
		before, point := storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)), organisationPointOfToday(t, db, o)
		days := func() []store.AccountPoint {
			points, err := o.AccountHistory(t.Context(), store.Ref{ID: before.ID}, storetest.Today(db)-1, storetest.Today(db))
			require.NoError(t, err)
			return points
		}
		history := days()

		late := storetest.AccountOutcome(db, slow.Targets[0], facts(1000, videos[:2]))
		late.Private = new(true)
		require.NoError(t, db.Acknowledge(t.Context(), slow, slow.At, []ingest.Outcome{late}))
		require.Equal(t, before, storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)))
		require.Equal(t, history, days())
		require.Equal(t, point, organisationPointOfToday(t, db, o))

		lost := storetest.AccountOutcome(db, queue.Target{Platform: link.TikTok, Kind: "account", ExternalID: "42", Handle: "someone"}, ingest.AccountFacts{})
		lost.Account, lost.HandleLost = nil, true
		require.NoError(t, db.Acknowledge(t.Context(), slow, slow.At, []ingest.Outcome{lost}))
		require.Equal(t, before, storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)))
	})
}

func TestDiscovery_tracksEachVideoOnceIfAnOldListArrives(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Follow(t, o, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
		videos := storetest.FoundVideos(t, 5, db.Clock.Now())
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos[2:]))
		db.Clock.Advance(25 * time.Hour)
		slow := storetest.ClaimOne(t, db, link.TikTok, "account")
		db.Clock.Advance(2 * time.Minute)
		videos[0].UploadedAt, videos[1].UploadedAt = &slow.At, &slow.At
		storetest.DeliverAccount(t, db, storetest.ListedAccount(videos[1:])) // this list lacks the newest video, which was deleted meanwhile
		discovered := storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).DiscoveredAt
		require.NoError(t, db.Acknowledge(t.Context(), slow, slow.At, []ingest.Outcome{storetest.AccountOutcome(db, slow.Targets[0], storetest.ListedAccount(videos))}))
		require.Equal(t, 5, storetest.TrackedVideos(t, o))
		require.Equal(t, discovered, storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).DiscoveredAt)
		storetest.RequireConsistent(t, db, o)
	})
}

// organisationPointOfToday returns the organisation's point of today, which contains its totals.
func organisationPointOfToday(t *testing.T, db *storetest.DB, o *store.Org) store.OrganisationPoint {
	t.Helper()
	points, err := o.OrganisationHistory(t.Context(), storetest.Today(db), storetest.Today(db))
	require.NoError(t, err)
	require.Len(t, points, 1)
	return points[0]
}
