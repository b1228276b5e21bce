package collector_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// newCollector returns a collector that fetches only when the test calls ClaimAndFetch.
func (w *testSystem) newCollector(s *store.Store, now func() time.Time) *collector.Collector {
	w.t.Helper()
	c, err := collector.New(collector.Options{Store: s, Sources: w.newSources(), Now: now, Logger: slog.New(slog.NewTextHandler(w.log, nil))})
	require.NoError(w.t, err)
	require.NoError(w.t, c.Start(w.t.Context()))
	return c
}

func TestCollector_fetchesAgainAfterItsClockWasAhead(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"a day": 24 * time.Hour, "400 days": 400 * 24 * time.Hour} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarts %t", name, restarts), func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, db *storetest.DB) {
					w := newTestSystem(t, db)
					tracked := w.trackVideos("https://youtu.be/" + w.sandbox.World().Find(link.YouTube, sandbox.Normal))
					ref := store.Ref{ID: tracked[0].ID}
					c := w.newCollector(db.Store, db.Clock.Now)
					fetch := func(want bool) {
						t.Helper()
						busy, err := c.ClaimAndFetch(t.Context())
						require.NoError(t, err)
						require.Equal(t, want, busy)
					}
					db.Clock.Advance(ahead)
					fetch(true)
					wrong := *w.video(tracked[0]).LatestUpdatedAt
					require.NoError(t, db.PauseSource(t.Context(), queue.Pause{Source: "youtube", Class: "rate_limited", PausesSinceSuccess: 1, BlockedUntil: store.InstantOf(db.Clock.Now().Add(time.Minute))}))
					db.Exec(t, "UPDATE org_turns SET turn = ?", store.InstantOf(db.Clock.Now())) // a request of the organisation would set the same turn now
					db.Exec(t, "INSERT INTO jobs (name, next_at) VALUES ('upkeep', ?)", store.InstantOf(db.Clock.Now().Add(27*time.Hour)))

					db.Clock.Advance(-ahead)
					if restarts {
						c = w.newCollector(db.Store, db.Clock.Now)
					}
					fetch(false)
					require.NoError(t, c.RepairTimes(t.Context()))
					require.Equal(t, wrong, *w.video(tracked[0]).LatestUpdatedAt, "the clock can still be corrected again")
					db.Clock.Advance(10 * time.Minute)
					require.NoError(t, c.RepairTimes(t.Context()))
					now := store.InstantOf(db.Clock.Now())
					require.Equal(t, now, *w.video(tracked[0]).LatestUpdatedAt)
					require.LessOrEqual(t, storetest.Column[store.Instant](t, db, "SELECT MAX(next_at) FROM jobs")[0], now.Add(48*time.Hour))
					require.LessOrEqual(t, storetest.Column[store.Instant](t, db, "SELECT MAX(turn) FROM (SELECT turn FROM org_turns UNION ALL SELECT turn FROM fetch_targets) AS t")[0], now)
					if restarts && ahead < 25*time.Hour {
						require.Len(t, storetest.Column[string](t, db, "SELECT source FROM source_pauses"), 1, "the pause may have begun with a right clock")
						db.Exec(t, "DELETE FROM source_pauses")
					}
					fetch(true)
					require.Empty(t, storetest.Column[string](t, db, "SELECT source FROM source_pauses"))
					require.Less(t, storetest.Column[store.Instant](t, db, "SELECT next_at FROM fetch_targets")[0], now.Add(48*time.Hour))
					db.Clock.Advance(queue.RefreshPause)
					r, err := w.org.RefreshVideo(t.Context(), ref, nil)
					require.NoError(t, err)
					require.True(t, r.Scheduled)
					for _, table := range []string{"videos", "snapshots_daily", "fetch_targets", "source_pauses", "jobs", "org_turns"} {
						if table != "source_pauses" || !restarts || ahead > 25*time.Hour {
							require.Regexp(t, `repaired times of a wrong clock" table=`+table+" ", w.log.String())
						}
					}
				})
			})
		}
	}
}

func TestCollector_repairsNothingIfTheClockIsSteady(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		tracked := w.trackVideos("https://youtu.be/" + w.sandbox.World().Find(link.YouTube, sandbox.Normal))
		c := w.newCollector(db.Store, db.Clock.Now)
		_, err := c.ClaimAndFetch(t.Context())
		require.NoError(t, err)
		require.NoError(t, db.PauseSource(t.Context(), queue.Pause{Source: "youtube", Class: "rate_limited", PausesSinceSuccess: 1, BlockedUntil: store.InstantOf(db.Clock.Now().Add(24 * time.Hour))}))
		const rows = "SELECT next_at FROM fetch_targets UNION ALL SELECT blocked_until FROM source_pauses UNION ALL SELECT turn FROM org_turns"
		before, updated := storetest.Column[int64](t, db, rows), *w.video(tracked[0]).LatestUpdatedAt
		db.Clock.Advance(10 * time.Minute)
		require.NoError(t, c.RepairTimes(t.Context()))
		require.ElementsMatch(t, before, storetest.Column[int64](t, db, rows))
		require.Equal(t, updated, *w.video(tracked[0]).LatestUpdatedAt)
		require.NotContains(t, w.log.String(), "repaired times")
	})
}

func TestCollector_claimsNothingIfItsClockDiffersFromTheDatabaseClock(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	db.Clock.Set(time.Now().Add(-time.Hour)) // the video is due for every clock of this test
	w := newTestSystem(t, db)
	w.trackVideos("https://youtu.be/" + w.sandbox.World().Find(link.YouTube, sandbox.Normal))
	collect := func(by time.Duration) (busy bool) {
		now := func() time.Time { return time.Now().Add(by) }
		s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: now, RealTime: true})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		busy, err = w.newCollector(s, now).ClaimAndFetch(t.Context())
		require.NoError(t, err)
		return busy
	}
	for _, by := range []time.Duration{6 * time.Minute, 90 * time.Second, -90 * time.Second, -6 * time.Minute} {
		require.False(t, collect(by))
		require.Regexp(t, "nothing is fetched now: the clock is wrong.*set both clocks by NTP", w.log.String())
	}
	require.True(t, collect(-30*time.Second))
}
