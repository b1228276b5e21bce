package collector_test

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

func TestUpkeep_rollsUpOldPointsOnceADay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		now := db.Clock.Now()
		long := now.AddDate(0, 0, -150)
		id := w.trackVideos("https://youtu.be/dQw4w9WgXcQ")[0].ID
		for n := range 21 {
			at := store.InstantOf(long.AddDate(0, 0, n))
			require.NoError(t, db.Acknowledge(t.Context(), queue.Claim{}, at, []ingest.Outcome{{Source: store.SandboxSource, State: "active", NextAt: at,
				Target: queue.Target{Platform: link.YouTube, Kind: "video", ExternalID: "dQw4w9WgXcQ"}, Facts: &ingest.VideoFacts{Views: new(int64(1000 + n))}}}))
		}
		old := long.Format(time.DateOnly)
		ok, err := db.ReserveUnits(t.Context(), "youtube/stats", old, 3, 10)
		require.NoError(t, err)
		require.True(t, ok)
		db.Exec(t, "UPDATE quota_windows SET updated_at = ?", store.InstantOf(long))

		w.startCollector()
		w.waitForLog("msg=upkeep", "weeks_written=")
		w.waitUntil("the job must be finished", func() bool {
			next := storetest.Column[int64](t, db, "SELECT next_at FROM jobs WHERE token IS NULL AND name = 'upkeep'")
			return len(next) == 1 && store.Instant(next[0]).Time().Equal(now.Truncate(24*time.Hour).Add(27*time.Hour))
		})
		weeks := storetest.Column[int64](t, db, "SELECT COUNT(*) FROM snapshots_weekly")[0]
		require.GreaterOrEqual(t, weeks, int64(3))
		require.LessOrEqual(t, weeks, int64(4))
		used, err := db.ReservedUnits(t.Context(), "youtube/stats", old)
		require.NoError(t, err)
		require.Zero(t, used, "old quota windows must be deleted")
		last := store.DateOf(long) + 20
		points, err := w.org.History(t.Context(), store.Ref{ID: id}, last-13, last)
		require.NoError(t, err)
		require.Len(t, points, 14)
		for i, p := range points {
			require.EqualValues(t, 1020-i, *p.Views)
		}
	})
}

func TestUpkeep_deletesExpiredRows(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		_, err := w.org.ReserveKey(t.Context(), "TrackVideo", "k", []byte("f"))
		require.NoError(t, err)
		db.Exec(t, "INSERT INTO short_links (platform, code, target, resolved_at) VALUES ('tiktok', 'x', 'y', ?)", store.InstantOf(db.Clock.Now().AddDate(0, 0, -30)))
		db.Clock.Advance(25 * time.Hour)
		w.startCollector()
		w.waitUntil("the expired rows must be deleted", func() bool {
			return storetest.Column[int64](t, db, "SELECT (SELECT COUNT(*) FROM idempotency_keys) + (SELECT COUNT(*) FROM short_links)")[0] == 0
		})
	})
}
