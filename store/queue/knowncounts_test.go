package queue_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// targetCounts returns the counts of all targets in the queue. An unknown count is -1.
func targetCounts(t *testing.T, d *storetest.DB) []string {
	t.Helper()
	text := db.JoinMetrics("CAST(COALESCE({m}, -1) AS text)", " || ' ' || ")
	return storetest.Column[string](t, d, "SELECT "+text+" FROM fetch_targets")
}

func TestEnqueue_beginsANewTargetWithTheCountsOfTheVideo(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		require.Equal(t, []string{"-1 -1 -1 -1 -1"}, targetCounts(t, db))
		facts := ingest.VideoFacts{Views: new(int64(5)), Likes: new(int64(4)), Comments: new(int64(3)), Shares: new(int64(2)), Bookmarks: new(int64(1))}
		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, facts))

		storetest.StopVideos(t, o, l)
		db.Exec(t, "DELETE FROM fetch_targets")
		storetest.Track(t, o, l)
		require.Equal(t, []string{"5 4 3 2 1"}, targetCounts(t, db))

		db.Exec(t, "UPDATE fetch_targets SET views = 6")
		storetest.StopVideos(t, o, l)
		storetest.Track(t, o, l)
		require.Equal(t, []string{"6 4 3 2 1"}, targetCounts(t, db), "an existing target keeps its counts")

		db.Exec(t, "DELETE FROM fetch_targets")
		storetest.Track(t, storetest.NewOrg(t, db), l)
		require.Equal(t, []string{"-1 -1 -1 -1 -1"}, targetCounts(t, db), "the other organisation has no counts of the video")
	})
}

func TestEnqueue_beginsANewTargetWithTheFollowersOfTheAccount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.ParseLink(t, "https://www.tiktok.com/@some.body")
		storetest.Follow(t, o, store.TrackLatest30, l)
		storetest.DeliverAccount(t, db, ingest.AccountFacts{Followers: new(int64(7_000))})
		storetest.StopAccounts(t, o, l)
		db.Exec(t, "DELETE FROM fetch_targets")
		storetest.Follow(t, o, store.TrackLatest30, l)
		require.Equal(t, []string{"7000 -1 -1 -1 -1"}, targetCounts(t, db))
	})
}
