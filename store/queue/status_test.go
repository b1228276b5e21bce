package queue_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestCollectingState_countsTheTargetsOfTheQueue(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		empty, err := db.CollectingState(t.Context())
		require.NoError(t, err)
		require.Equal(t, queue.CollectingState{At: store.InstantOf(db.Clock.Now()), Pauses: map[string]queue.Pause{}}, empty)

		storetest.Track(t, o, storetest.VideoLink(t, 1), storetest.VideoLink(t, 2), storetest.VideoLink(t, 3))
		trackOnSchedule(t, newOrgInLane(t, db, queue.LaneFree), storetest.VideoLink(t, 4)) // the target of video 4 is not due, because its time in the daily schedule has not come yet
		due := store.InstantOf(db.Clock.Now())
		db.Exec(t, "UPDATE fetch_targets SET requested_at = ? WHERE lane = ?", due.Add(-37*time.Hour), queue.LaneFree)
		db.Exec(t, "UPDATE fetch_targets SET fetched_at = ? WHERE external_id = ?", due.Add(-2*time.Hour), storetest.VideoLink(t, 1).ID)
		db.Exec(t, "UPDATE fetch_targets SET fetched_at = ?, attempts = 2 WHERE external_id = ?", due.Add(-8*24*time.Hour), storetest.VideoLink(t, 2).ID)
		db.Exec(t, "UPDATE fetch_targets SET state = 'gone' WHERE external_id = ?", storetest.VideoLink(t, 3).ID)
		db.Clock.Advance(time.Minute)
		_, err = db.Heartbeat(t.Context(), store.NewID(), time.Minute, nil)
		require.NoError(t, err)
		_, err = db.ReserveUnits(t.Context(), "youtube/common", "2026-02-20", 7, 0)
		require.NoError(t, err)
		pause := queue.Pause{Source: "youtube", Class: "rate_limited", Detail: "slow down", BlockedUntil: due.Add(time.Hour), PausesSinceSuccess: 1}
		require.NoError(t, db.PauseSource(t.Context(), pause))
		pause.Since = new(store.InstantOf(db.Clock.Now()))

		got, err := db.CollectingState(t.Context())
		require.NoError(t, err)
		now := store.InstantOf(db.Clock.Now())
		require.Equal(t, queue.CollectingState{
			At: now,
			Queue: []queue.QueueCounts{
				{Platform: link.TikTok, Kind: "video", Lane: queue.LaneInteractive, State: "active", Targets: 2, Failing: 1, Due: 2, OldestDue: &due,
					Fresh: [8]int64{0, 1, 1, 1, 1, 1, 1, 1}},
				{Platform: link.TikTok, Kind: "video", Lane: queue.LaneInteractive, State: "gone", Targets: 1, Due: 1, OldestDue: &due, NeverFetched: 1},
				{Platform: link.TikTok, Kind: "video", Lane: queue.LaneFree, State: "active", Targets: 1, NeverFetched: 1, Overdue: 1},
			},
			Pauses: map[string]queue.Pause{"youtube": pause}, Quotas: []queue.QuotaUse{{Source: "youtube/common", Window: "2026-02-20", Used: 7}},
			Statuses:   []queue.StatusCount{{Platform: link.TikTok, Kind: queue.KindVideo, Status: queue.FetchPending, Targets: 4}},
			Collectors: []store.Instant{now},
		}, got)
	})
}

func TestLastError_returnsTheErrorIfAFetchFailedOrTheStateIsParked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLink(t, 1))
		why := func(p link.Platform) string {
			detail, err := db.LastError(t.Context(), p)
			require.NoError(t, err)
			return detail
		}
		db.Exec(t, "UPDATE fetch_targets SET detail = 'suspicious, not stored'")
		require.Empty(t, why(link.TikTok), "the error must be empty while no target has failed")
		db.Exec(t, "UPDATE fetch_targets SET attempts = 1")
		require.Equal(t, "suspicious, not stored", why(link.TikTok))
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
		require.WithinDuration(t, time.Now(), *engine.Now, time.Minute, "the time must come from the database's clock")
	})
}

func TestCollectingState_countsATargetAsUnsupportedIfNoSourceCanFetchIt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLink(t, 1))
		db.Exec(t, "UPDATE fetch_targets SET route = ''")
		statuses := func() queue.FetchStatus {
			c, err := db.CollectingState(t.Context())
			require.NoError(t, err)
			require.Len(t, c.Statuses, 1)
			return c.Statuses[0].Status
		}
		require.NoError(t, db.PublishRoutes(t.Context(), []queue.Route{{Platform: link.YouTube, Kind: queue.KindVideo, Route: "youtube"}}, []string{"youtube"}))
		require.Equal(t, queue.FetchUnsupported, statuses(), `the status must be "unsupported" if the collectors have no source for TikTok`)
		listed, err := db.TargetsWithStatus(t.Context(), queue.FetchUnsupported, 10)
		require.NoError(t, err)
		require.Len(t, listed, 1)
	})
}

// TestCollectingState_countsEachTargetInOneGroupAndOneStatus compares the counts with counts that the test computes from the rows.
func TestCollectingState_countsEachTargetInOneGroupAndOneStatus(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		require.NoError(t, db.PublishRoutes(t.Context(), []queue.Route{{Platform: link.YouTube, Kind: queue.KindVideo, Route: "youtube"}}, []string{"youtube"}))
		now := store.InstantOf(db.Clock.Now())
		random := rand.New(rand.NewPCG(1, 2)) // the seed is fixed, so the numbers are the same in each run
		groups, statuses := map[[4]string]*queue.QueueCounts{}, map[queue.StatusCount]int64{}
		for i := range 400 {
			platform := []link.Platform{link.TikTok, link.YouTube}[random.IntN(2)]
			lane, state := queue.Lanes[random.IntN(2)], []string{queue.StateActive, queue.StateGone, queue.StateParked}[random.IntN(3)]
			stored := []queue.FetchStatus{queue.FetchPending, queue.FetchOK, queue.FetchFailing, queue.FetchUnsupported}[random.IntN(4)]
			route, attempts := []string{"", "youtube"}[random.IntN(2)], random.IntN(2)
			next := now.Add(time.Duration(random.IntN(40)-30) * time.Hour)
			requested := now.Add(-time.Duration(random.IntN(60)) * time.Hour)
			var fetched *store.Instant
			if random.IntN(3) > 0 {
				fetched = new(now.Add(-time.Duration(random.IntN(200)) * time.Hour))
			}
			db.Exec(t, `INSERT INTO fetch_targets (bucket, source, kind, external_id, handle, link, lane, base_lane, next_at, requested_at, attempts, state, detail, fetched_at, route, status)
VALUES (0, ?, 'video', ?, '', '', ?, 1, ?, ?, ?, ?, '', ?, ?, ?)`, platform, strconv.Itoa(i), lane, next, requested, attempts, state, fetched, route, stored)

			key := [4]string{string(platform), "video", lane.String(), state}
			if groups[key] == nil {
				groups[key] = &queue.QueueCounts{Platform: platform, Kind: "video", Lane: lane, State: state}
			}
			g := groups[key]
			g.Targets++
			if state == queue.StateActive {
				g.Failing += int64(attempts)
			}
			if next <= now {
				g.Due++
				if g.OldestDue == nil || next < *g.OldestDue {
					g.OldestDue = &next
				}
			}
			if next > now && next <= now.Add(queue.CatchUpWindow) {
				g.DueSoon++
			}
			if fetched == nil {
				g.NeverFetched++
				if now.Sub(requested) > queue.FirstFetchLimit {
					g.Overdue++
				}
			}
			for n, age := range queue.FreshWithin {
				if fetched != nil && now.Sub(*fetched) <= age {
					g.Fresh[n]++
				}
			}
			shown := queue.StatusOf(stored, &next, now)
			if stored == queue.FetchPending && route == "" {
				shown = queue.FetchUnsupported
			}
			statuses[queue.StatusCount{Platform: platform, Kind: queue.KindVideo, Status: shown}]++
		}
		c, err := db.CollectingState(t.Context())
		require.NoError(t, err)
		require.Len(t, c.Queue, len(groups))
		for _, q := range c.Queue {
			require.Equal(t, groups[[4]string{string(q.Platform), string(q.Kind), q.Lane.String(), q.State}], &q)
		}
		require.Len(t, c.Statuses, len(statuses))
		for _, s := range c.Statuses {
			n := s.Targets
			s.Targets = 0
			require.Equal(t, statuses[s], n, "%+v", s)
		}
	})
}

func TestCollectingStateAndLastFetches_readOneIndexWithoutSortingOnSQLite(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	fillQueue(t, db, 20_000)
	for _, statistics := range []string{"without statistics", "with statistics"} {
		if statistics == "with statistics" {
			db.Exec(t, "ANALYZE")
		}
		db.Guard.Statements()
		_, err := db.CollectingState(t.Context())
		require.NoError(t, err)
		_, err = db.LastFetches(t.Context())
		require.NoError(t, err)
		reads := slices.DeleteFunc(db.Guard.Statements(), func(s string) bool {
			return !strings.Contains(s, "FROM fetch_targets") || strings.Contains(s, "reason_targets") // the reasons are not in the index
		})
		require.Len(t, reads, 2)
		for _, read := range reads {
			args := make([]any, strings.Count(read, "?"))
			for i := range args {
				args[i] = 0
			}
			plan := queryPlan(t, db, read, args...)
			require.Contains(t, plan, "USING COVERING INDEX fetch_targets_counts", statistics)
			require.NotContains(t, plan, "TEMP B-TREE", statistics)
		}
	}
}
