package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// The cases here begin one transaction between two statements of another, at the worst moment. They hold whether the one
// runs through there or has to wait for the other.

// short has no author in its link, so that tracking it touches no account.
const short = "https://www.youtube.com/shorts/dQw4w9WgXcQ"

// consistent says that each video that is tracked, and no other, has a subscription, and that the totals count them.
func consistent(t *testing.T, db *storetest.DB, o *store.Org) {
	t.Helper()
	all := list(t, o, store.VideoQuery{IncludeRemoved: true})
	require.EqualValues(t, len(all.Videos), all.Total)
	page := list(t, o, store.VideoQuery{})
	require.EqualValues(t, len(page.Videos), page.Total)
	var fetched []string
	for _, v := range page.Videos {
		if !v.Pending {
			fetched = append(fetched, v.ID.String())
		}
	}
	require.ElementsMatch(t, fetched, storetest.Column[string](t, db, "SELECT CAST(subject_id AS text) FROM fetch_subscriptions WHERE organisation_id = ? AND kind = 'video'", o.ID()))
}

func TestTrack_ofAVideoThatIsTrackedAndStoppedInBetween(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), parse(t, short)
		// It was looked up, and was not there.
		finish := meanwhile(t, db, "title_folded", func(s *store.Store) {
			track(t, s.Org(o.ID()), l)
			stop(t, s.Org(o.ID()), l)
		})
		track(t, o, l)
		finish()
		consistent(t, db, o)
	})
}

func TestTrack_withoutFetchingAVideoThatIsTrackedInBetween(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), parse(t, short)
		finish := meanwhile(t, db, "title_folded", func(s *store.Store) { track(t, s.Org(o.ID()), l) })
		_, err := o.Track(t.Context(), store.TrackRequest{Links: []link.Link{l}}) // beyond the preview allowance
		require.NoError(t, err)
		finish()
		consistent(t, db, o)
	})
}

func TestSetSubscription_whileAVideoIsSavedWithoutOne(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		org, err := db.CreateOrganisation(t.Context(), "Free", store.TierBasic, store.SubscriptionNone)
		require.NoError(t, err)
		o := db.Org(org.ID)
		_, err = o.Track(t.Context(), store.TrackRequest{Links: []link.Link{clip(t, 1)}})
		require.NoError(t, err)
		finish := meanwhile(t, db, "SELECT subject_id FROM fetch_subscriptions", func(s *store.Store) {
			_, err := s.Org(org.ID).Track(t.Context(), store.TrackRequest{Links: []link.Link{parse(t, short)}})
			require.NoError(t, err)
		})
		require.NoError(t, db.SetSubscription(t.Context(), org.ID, store.SubscriptionActive))
		finish()
		require.False(t, video(t, o, clip(t, 1)).Pending)
		consistent(t, db, o)
	})
}

func TestTrack_ofATargetThatACollectorHoldsFetchesItAgainAtOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, late, l := newOrg(t, db), newOrg(t, db), parse(t, short)
		track(t, o, l)
		c := claimOne(t, db, link.YouTube, "video")
		track(t, late, l) // the clock has not moved since the claim
		require.Empty(t, claim(t, db, link.YouTube, "video"), "the collector has it")
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []store.Outcome{outcome(db, c.Targets[0], views(1))}))
		require.EqualValues(t, 1, *video(t, late, l).LatestViews, "they came in time for the writing")

		again := claimOne(t, db, link.YouTube, "video")
		require.Equal(t, store.LaneInteractive, again.Targets[0].Lane)
		require.NoError(t, db.Acknowledge(t.Context(), again, again.At, []store.Outcome{outcome(db, again.Targets[0], views(2))}))
		require.Empty(t, claim(t, db, link.YouTube, "video"), "and not a third time")
	})
}

// A request may have read the clock before a claim and join the target after it: comparing the two times would lose it.
func TestTrack_thatBeganBeforeAClaimAndJoinsAfterItIsServed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, late, l := newOrg(t, db), newOrg(t, db), parse(t, short)
		track(t, o, l)
		finish := func() {}
		db.Guard.Before("fetch_targets", func() { // the late one's, whose time is read
			if !db.SharedByProcesses() {
				return
			}
			db.Clock.Advance(time.Second)
			c := claimOne(t, db, link.YouTube, "video")
			finish = meanwhile(t, db, "fetch_subscriptions", func(s *store.Store) { // its target is saved
				require.NoError(t, store.NewWriter(s).Acknowledge(context.WithoutCancel(t.Context()), c, c.At, []store.Outcome{outcome(db, c.Targets[0], views(1))}))
			})
		})
		track(t, late, l)
		finish()
		deliver(t, db, link.YouTube, views(2))
		require.NotNil(t, video(t, late, l).LatestViews, "it would have waited for a day")
	})
}

func TestClaim_thatDropsAnOrphanWhileSomebodySubscribes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other, l := newOrg(t, db), newOrg(t, db), parse(t, short)
		track(t, o, l)
		stop(t, o, l)
		finish := meanwhile(t, db, "DELETE FROM fetch_targets", func(s *store.Store) { track(t, s.Org(other.ID()), l) })
		require.Empty(t, claim(t, db, link.YouTube, "video"))
		finish()
		require.Equal(t, 1, deliver(t, db, link.YouTube, views(1)))
		require.NotNil(t, video(t, other, l).LatestViews)
	})
}

func TestRefresh_ofWhatIsStoppedInBetweenDoesNotFetchItForever(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l, someone := newOrg(t, db), parse(t, short), parse(t, "https://www.tiktok.com/@someone")
		track(t, o, l)
		deliver(t, db, link.YouTube, views(1))
		follow(t, o, store.TrackNewOnly, someone)
		db.Clock.Advance(store.RefreshPause)

		// It was seen to be tracked, and nothing is locked yet.
		db.Guard.Before("organisations", func() { stop(t, o, l) })
		_, err := o.RefreshVideo(t.Context(), store.VideoRef{Link: l})
		require.ErrorIs(t, err, store.ErrNotFound)
		db.Guard.Before("organisations", func() {
			_, err := o.StopAccounts(t.Context(), []store.AccountRef{{Link: someone}}, true)
			require.NoError(t, err)
		})
		_, err = o.RefreshAccount(t.Context(), store.AccountRef{Link: someone})
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Empty(t, storetest.Column[string](t, db, "SELECT external_id FROM fetch_subscriptions"))
	})
}

func TestIdempotencyKey_thatIsReleasedInBetweenCanBeUsed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		_, err := o.BeginKey(t.Context(), "TrackVideo", "k", []byte("f"))
		require.NoError(t, err)
		finish := meanwhile(t, db, "operation = ", func(s *store.Store) {
			require.NoError(t, s.Org(o.ID()).ReleaseKey(context.WithoutCancel(t.Context()), "TrackVideo", "k"))
		})
		k, err := o.BeginKey(t.Context(), "TrackVideo", "k", []byte("f"))
		finish()
		require.NoError(t, err)
		if db.SharedByProcesses() {
			require.Equal(t, store.KeyFresh, k.State)
		} else {
			require.Equal(t, store.KeyRunning, k.State)
		}
	})
}
