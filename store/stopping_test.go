package store_test

import (
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

// TestStopVideos_endsFetchesAndKeepsTheData checks that a stopped video is not fetched again and keeps its counts and history.
// Requirements in docs/coverage.md: 3-06, 3-07
func TestStopVideos_endsFetchesAndKeepsTheData(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		id := storetest.Track(t, o, l)[0].ID
		storetest.Deliver(t, db, link.TikTok, storetest.Views(100))
		storetest.StopVideos(t, o, l)

		v := storetest.VideoOf(t, o, l)
		require.True(t, v.Removed)
		require.EqualValues(t, 100, *v.Latest.Views)
		points, err := o.History(t.Context(), store.Ref{ID: id}, storetest.Today(db)-30, storetest.Today(db))
		require.NoError(t, err)
		require.Len(t, points, 1)
		require.Empty(t, storetest.ListVideos(t, o, store.VideoQuery{}).Rows)
		require.Len(t, storetest.ListVideos(t, o, store.VideoQuery{IncludeRemoved: true}).Rows, 1)

		db.Clock.Advance(48 * time.Hour)
		require.Zero(t, storetest.Deliver(t, db, link.TikTok, storetest.Views(200)), "a stopped video must not be fetched")
		require.Zero(t, storetest.Column[int64](t, db, "SELECT COUNT(*) FROM fetch_targets")[0], "the target must be deleted from the queue")
	})
}

func TestStopVideos_returnsTheIDsOfUntrackedVideosInOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		tracked := storetest.Track(t, o, storetest.VideoLinks(t, 5)...)
		foreign := storetest.Track(t, other, storetest.VideoLink(t, 8))[0]
		storetest.StopVideos(t, o, storetest.VideoLink(t, 4))

		unknown := store.NewID()
		ids := []uuid.UUID{unknown, tracked[1].ID, foreign.ID, tracked[0].ID, uuid.Nil, tracked[1].ID, tracked[4].ID}
		untracked, err := o.StopVideos(t.Context(), ids)
		require.NoError(t, err)
		require.Equal(t, []uuid.UUID{unknown, foreign.ID, uuid.Nil, tracked[4].ID}, untracked)

		require.True(t, storetest.VideoOf(t, o, storetest.VideoLink(t, 0)).Removed)
		require.True(t, storetest.VideoOf(t, o, storetest.VideoLink(t, 1)).Removed)
		require.EqualValues(t, 2, storetest.ListVideos(t, o, store.VideoQuery{}).Total)
		require.EqualValues(t, 5, storetest.ListVideos(t, o, store.VideoQuery{IncludeRemoved: true}).Total)
		require.False(t, storetest.VideoOf(t, other, storetest.VideoLink(t, 8)).Removed)

		untracked, err = o.StopVideos(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, untracked)
	})
}

func TestStopVideos_keepsTheFetchesForOtherOrganisations(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLink(t, 1))
		storetest.Track(t, other, storetest.VideoLink(t, 1))
		storetest.StopVideos(t, o, storetest.VideoLink(t, 1))
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(5)))
		require.Nil(t, storetest.VideoOf(t, o, storetest.VideoLink(t, 1)).Latest.Views)
		require.EqualValues(t, 5, *storetest.VideoOf(t, other, storetest.VideoLink(t, 1)).Latest.Views)
	})
}

func TestStopVideos_discardsTheCountsOfAFetchThatIsRunning(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		id := storetest.Track(t, o, l)[0].ID
		c := storetest.ClaimOne(t, db, link.TikTok, "video")
		storetest.StopVideos(t, o, l)
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.Outcome(db, c.Targets[0], storetest.Views(7))}))
		require.Nil(t, storetest.VideoOf(t, o, l).Latest.Views)
		points, err := o.History(t.Context(), store.Ref{ID: id}, storetest.Today(db)-30, storetest.Today(db))
		require.NoError(t, err)
		require.Empty(t, points)
	})
}

func TestStopVideos_keepsTheVideoStoppedIfAcknowledgeRunsConcurrently(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		c := storetest.ClaimOne(t, db, link.TikTok, "video")
		// The video is stopped after Acknowledge has read the subscriptions, and before Acknowledge reads the video.
		finish := storetest.RunBeforeStatement(t, db, "latest_updated_at IS NULL OR", func(s *store.Store) { storetest.StopVideos(t, s.Org(o.ID()), l) })
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.Outcome(db, c.Targets[0], storetest.Views(7))}))
		finish()
		v := storetest.VideoOf(t, o, l)
		require.True(t, v.Removed)
		db.Clock.Advance(48 * time.Hour)
		require.Zero(t, storetest.Deliver(t, db, link.TikTok, storetest.Views(8)))
	})
}

func TestStopVideos_removesTheVideoFromTheAccountStatistics(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinks(t, 2)...)
		storetest.SaveFactsForDueVideos(t, db, link.TikTok, func(target queue.Target) ingest.VideoFacts {
			return storetest.Views(map[string]int64{storetest.VideoLink(t, 0).ID: 100, storetest.VideoLink(t, 1).ID: 900}[target.ExternalID])
		})
		someone := storetest.ParseLink(t, "https://www.tiktok.com/@someone")
		require.EqualValues(t, 1000, *storetest.AccountByLink(t, o, someone).Total.Views)
		storetest.StopVideos(t, o, storetest.VideoLink(t, 1))
		a := storetest.AccountByLink(t, o, someone)
		require.EqualValues(t, 1, a.TotalVideosTracked)
		require.EqualValues(t, 100, *a.Total.Views)
		require.InDelta(t, 1, *storetest.VideoOf(t, o, storetest.VideoLink(t, 0)).OutlierMultiplier, 1e-9)
	})
}
