package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestCollecting_countsTheTargetsOfTheQueue(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		empty, err := db.Collecting(t.Context())
		require.NoError(t, err)
		require.Equal(t, queue.Collecting{At: store.InstantOf(db.Clock.Now()), Pauses: map[string]queue.Pause{}}, empty)

		storetest.Track(t, o, storetest.Clip(t, 1), storetest.Clip(t, 2), storetest.Clip(t, 3))
		trackAtSlot(t, o, queue.LaneFree, storetest.Clip(t, 4)) // the target of Clip 4 is not due, because its time in the daily schedule has not come yet
		due := store.InstantOf(db.Clock.Now())
		db.Exec(t, "UPDATE fetch_targets SET requested_at = ? WHERE lane = ?", due.Add(-37*time.Hour), queue.LaneFree)
		db.Exec(t, "UPDATE fetch_targets SET fetched_at = ? WHERE external_id = ?", due.Add(-2*time.Hour), storetest.Clip(t, 1).ID)
		db.Exec(t, "UPDATE fetch_targets SET fetched_at = ?, attempts = 2 WHERE external_id = ?", due.Add(-8*24*time.Hour), storetest.Clip(t, 2).ID)
		db.Exec(t, "UPDATE fetch_targets SET state = 'gone' WHERE external_id = ?", storetest.Clip(t, 3).ID)
		db.Clock.Advance(time.Minute)
		_, err = db.Heartbeat(t.Context(), store.NewID(), time.Minute, nil)
		require.NoError(t, err)
		_, err = db.ReserveQuota(t.Context(), "youtube/common", "2026-02-20", 7, 0)
		require.NoError(t, err)
		pause := queue.Pause{Source: "youtube", Class: "rate_limited", Detail: "slow down", BlockedUntil: due.Add(time.Hour), Strikes: 1}
		require.NoError(t, db.PauseSource(t.Context(), pause))

		got, err := db.Collecting(t.Context())
		require.NoError(t, err)
		now := store.InstantOf(db.Clock.Now())
		require.Equal(t, queue.Collecting{
			At: now,
			Queue: []queue.QueueCounts{
				{Platform: link.TikTok, Kind: "video", Lane: queue.LaneInteractive, State: "active", Targets: 2, Failing: 1, Due: 2, OldestDue: &due,
					Fresh: [8]int64{0, 1, 1, 1, 1, 1, 1, 1}},
				{Platform: link.TikTok, Kind: "video", Lane: queue.LaneInteractive, State: "gone", Targets: 1, Due: 1, OldestDue: &due, Never: 1},
				{Platform: link.TikTok, Kind: "video", Lane: queue.LaneFree, State: "active", Targets: 1, Never: 1, Overdue: 1},
			},
			Pauses: map[string]queue.Pause{"youtube": pause}, Quotas: []queue.QuotaUse{{Source: "youtube/common", Window: "2026-02-20", Used: 7}},
			Statuses:   []queue.StatusCount{{Platform: link.TikTok, Kind: queue.KindVideo, Status: queue.FetchPending, Targets: 4}},
			Collectors: []store.Instant{now},
		}, got)
	})
}

func TestWhyFailing_returnsTheErrorOfAParkedOrFailedTarget(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.Track(t, storetest.NewOrg(t, db), storetest.Clip(t, 1))
		why := func(p link.Platform) string {
			detail, err := db.WhyFailing(t.Context(), p)
			require.NoError(t, err)
			return detail
		}
		db.Exec(t, "UPDATE fetch_targets SET detail = 'held back'")
		require.Empty(t, why(link.TikTok), "no target has failed")
		db.Exec(t, "UPDATE fetch_targets SET attempts = 1")
		require.Equal(t, "held back", why(link.TikTok))
		require.Empty(t, why(link.YouTube))
		db.Exec(t, "UPDATE fetch_targets SET attempts = 0, state = 'parked', detail = 'code 10'")
		require.Equal(t, "code 10", why(link.TikTok))
	})
}

func TestEngine_returnsTheNameVersionAndTimeOfTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		engine, err := db.Store.Engine(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]string{"sqlite": "sqlite", "postgres": "postgres", "citus": "postgres"}[db.Engine], engine.Name)
		require.Regexp(t, `^\d+\.\d`, engine.Version)
		if !db.SharedByProcesses() {
			require.Nil(t, engine.Now)
			return
		}
		require.WithinDuration(t, time.Now(), *engine.Now, time.Minute, "the database's clock")
	})
}

func TestCollecting_countsTargetsThatNoSourceServesAsUnsupported(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.Track(t, storetest.NewOrg(t, db), storetest.Clip(t, 1))
		db.Exec(t, "UPDATE fetch_targets SET route = ''")
		statuses := func() queue.FetchStatus {
			c, err := db.Collecting(t.Context())
			require.NoError(t, err)
			require.Len(t, c.Statuses, 1)
			return c.Statuses[0].Status
		}
		require.NoError(t, db.PublishRoutes(t.Context(), []queue.Route{{Platform: link.YouTube, Kind: queue.KindVideo, Route: "youtube"}}, []string{"youtube"}))
		require.Equal(t, queue.FetchUnsupported, statuses(), "the collectors have no source for TikTok")
		listed, err := db.TargetsWithStatus(t.Context(), queue.FetchUnsupported, 10)
		require.NoError(t, err)
		require.Len(t, listed, 1)
	})
}
