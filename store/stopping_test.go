package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// stop stops the videos of links.
func stop(t *testing.T, o *store.Org, links ...link.Link) {
	t.Helper()
	refs := make([]store.VideoRef, len(links))
	for i, l := range links {
		refs[i].Link = l
	}
	unmatched, err := o.StopVideos(t.Context(), refs, true)
	require.NoError(t, err)
	require.Empty(t, unmatched)
}

// Spec: 3-06, 3-07
func TestStop_endsCollectionAndKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		id := track(t, o, l)[0].VideoID
		deliver(t, db, link.TikTok, views(100))
		stop(t, o, l)

		v := video(t, o, l)
		require.True(t, v.Removed)
		require.EqualValues(t, 100, *v.LatestViews)
		points, err := o.History(t.Context(), store.VideoRef{ID: id}, today(db)-30, today(db))
		require.NoError(t, err)
		require.Len(t, points, 1)
		require.Empty(t, list(t, o, store.VideoQuery{}).Videos)
		require.Len(t, list(t, o, store.VideoQuery{IncludeRemoved: true}).Videos, 1)

		db.Clock.Advance(48 * time.Hour)
		require.Zero(t, deliver(t, db, link.TikTok, views(200)), "nothing is fetched any more")
		require.Zero(t, storetest.Column[int64](t, db, "SELECT COUNT(*) FROM fetch_targets")[0], "and the queue forgets the target")
	})
}

func TestStop_matchesByIDAndByLink(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := newOrg(t, db), newOrg(t, db)
		tracked := track(t, o, clips(t, 5)...)
		foreign := track(t, other, clip(t, 8))[0]
		stop(t, o, clip(t, 4))

		refs := []store.VideoRef{
			{ID: store.NewID()},      // unknown
			{ID: tracked[0].VideoID}, //
			{Link: clip(t, 9)},       // unknown
			{Link: clip(t, 1)},       //
			{ID: foreign.VideoID},    // another organisation's
			{Link: clip(t, 8)},       // another organisation's
			{ID: tracked[1].VideoID}, // a second time, by id
			{Link: clip(t, 4)},       // stopped before
			{ID: tracked[4].VideoID}, // stopped before
			{Link: parse(t, "https://www.youtube.com/shorts/dQw4w9WgXcQ")}, // unknown, on another platform
		}
		unmatched, err := o.StopVideos(t.Context(), refs, false)
		require.NoError(t, err)
		require.Equal(t, []store.VideoRef{refs[0], refs[2], refs[4], refs[5], refs[7], refs[8], refs[9]}, unmatched, "in the order given")

		require.True(t, video(t, o, clip(t, 0)).Removed)
		require.True(t, video(t, o, clip(t, 1)).Removed)
		require.EqualValues(t, 2, list(t, o, store.VideoQuery{}).Total)
		require.EqualValues(t, 5, list(t, o, store.VideoQuery{IncludeRemoved: true}).Total)
		require.False(t, video(t, other, clip(t, 8)).Removed)

		unmatched, err = o.StopVideos(t.Context(), nil, true)
		require.NoError(t, err)
		require.Empty(t, unmatched)
	})
}

func TestStop_ofAllOrNothingStopsNothingWhenOneIsUnknown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		track(t, o, clips(t, 2)...)
		refs := []store.VideoRef{{Link: clip(t, 0)}, {Link: clip(t, 1)}, {Link: clip(t, 2)}}
		unmatched, err := o.StopVideos(t.Context(), refs, true)
		require.NoError(t, err)
		require.Equal(t, refs[2:], unmatched)
		require.EqualValues(t, 2, list(t, o, store.VideoQuery{}).Total)
		require.Equal(t, 2, deliver(t, db, link.TikTok, views(1)), "their subscriptions are still there")
	})
}

func TestStop_ofOneOrganisationLeavesTheOthersFetching(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := newOrg(t, db), newOrg(t, db)
		track(t, o, clip(t, 1))
		track(t, other, clip(t, 1))
		stop(t, o, clip(t, 1))
		require.Equal(t, 1, deliver(t, db, link.TikTok, views(5)))
		require.Nil(t, video(t, o, clip(t, 1)).LatestViews)
		require.EqualValues(t, 5, *video(t, other, clip(t, 1)).LatestViews)
	})
}

func TestStop_whileACollectorHoldsTheTargetLetsNoNumberIn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		id := track(t, o, l)[0].VideoID
		c := claimOne(t, db, link.TikTok, "video")
		stop(t, o, l)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []store.Outcome{outcome(db, c.Targets[0], views(7))}))
		require.Nil(t, video(t, o, l).LatestViews)
		points, err := o.History(t.Context(), store.VideoRef{ID: id}, today(db)-30, today(db))
		require.NoError(t, err)
		require.Empty(t, points)
	})
}

func TestStop_whileNumbersAreBeingWrittenIsTheLastWord(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := newOrg(t, db), clip(t, 1)
		track(t, o, l)
		c := claimOne(t, db, link.TikTok, "video")
		// The subscriptions have been read, the video has not.
		finish := meanwhile(t, db, "latest_updated_at IS NULL OR", func(s *store.Store) { stop(t, s.Org(o.ID()), l) })
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []store.Outcome{outcome(db, c.Targets[0], views(7))}))
		finish()
		v := video(t, o, l)
		require.True(t, v.Removed)
		db.Clock.Advance(48 * time.Hour)
		require.Zero(t, deliver(t, db, link.TikTok, views(8)))
	})
}

func TestStop_leavesTheAccountsStatisticsToWhatIsTracked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrg(t, db)
		track(t, o, clips(t, 2)...)
		deliverBy(t, db, link.TikTok, func(target store.Target) store.VideoFacts {
			return views(map[string]int64{clip(t, 0).ID: 100, clip(t, 1).ID: 900}[target.ExternalID])
		})
		someone := parse(t, "https://www.tiktok.com/@someone")
		require.EqualValues(t, 1000, *account(t, o, someone).TotalViews)
		stop(t, o, clip(t, 1))
		a := account(t, o, someone)
		require.EqualValues(t, 1, a.TotalVideosTracked)
		require.EqualValues(t, 100, *a.TotalViews)
		require.InDelta(t, 1, video(t, o, clip(t, 0)).OutlierMultiplier, 1e-9)
	})
}
