package queue_test

import (
	"net/url"
	"slices"
	"strings"
	"sync"
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

// claimAll lets several workers claim targets until no target is due. It returns the external ids
// of the targets of each claim.
func claimAll(t *testing.T, db *storetest.DB, workers, limit int) [][]string {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var claims [][]string
	for range workers {
		s := db.Open(t) // each worker has its own connection
		wg.Go(func() {
			for {
				r := storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", limit, time.Minute, queue.LanePremium)
				r.Candidates = limit // the claim reads only as many due targets as it leases
				c, err := s.Queue.Claim(t.Context(), r)
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				if len(c.Targets) == 0 {
					return
				}
				mu.Lock()
				claims = append(claims, storetest.TargetIDs(c))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return claims
}

// requireEachClaimedOnce checks that each of the given number of targets was claimed exactly once, and that no claim has more targets than limit.
func requireEachClaimedOnce(t *testing.T, claims [][]string, targets, limit int) {
	t.Helper()
	seen := map[string]int{}
	for _, ids := range claims {
		require.LessOrEqual(t, len(ids), limit, "a claim must not have more targets than the limit")
		require.True(t, slices.IsSorted(ids))
		for _, id := range ids {
			seen[id]++
		}
	}
	for id, n := range seen {
		require.Equal(t, 1, n, "%s must be claimed once, but was claimed %d times", id, n)
	}
	require.Len(t, seen, targets, "all targets must be claimed")
}

func TestClaim_givesEachTargetToOneWorker(t *testing.T) {
	t.Parallel()
	const workers, targets, limit = 8, 5000, 100
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		fillQueue(t, db, targets)
		requireEachClaimedOnce(t, claimAll(t, db, workers, limit), targets, limit)
	})
}

// Claim must not select targets with IN (SELECT … FOR UPDATE SKIP LOCKED). In a nested loop,
// PostgreSQL can run this subquery several times, and claim too many targets.
func TestClaim_respectsTheLimitWithEveryQueryPlan(t *testing.T) {
	t.Parallel()
	const workers, targets, limit = 4, 1000, 50
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		if db.SharedByProcesses() {
			u, err := url.Parse(db.URL)
			require.NoError(t, err)
			name := strings.TrimPrefix(u.Path, "/")
			// PostgreSQL chooses a nested loop if it has no statistics, or if other joins are
			// disabled.
			db.Exec(t, "ALTER TABLE fetch_targets SET (autovacuum_enabled = false)")
			for _, off := range []string{"enable_hashjoin", "enable_mergejoin", "enable_material", "enable_memoize"} {
				db.Exec(t, "ALTER DATABASE "+name+" SET "+off+" = off") // this setting applies to new connections
			}
		}
		fillQueue(t, db, targets)
		requireEachClaimedOnce(t, claimAll(t, db, workers, limit), targets, limit)
	})
}

func TestClaim_returnsTargetsInTheOrderOfTheirDueTimes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		for _, n := range []int{3, 1, 2} {
			storetest.Track(t, o, storetest.VideoLink(t, n))
			db.Clock.Advance(time.Second)
		}
		for _, n := range []int{3, 1, 2} {
			c, err := db.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 1, time.Minute, queue.LaneInteractive))
			require.NoError(t, err)
			require.Equal(t, []string{storetest.VideoLink(t, n).ID}, storetest.TargetIDs(c))
		}
	})
}

func TestClaim_returnsATargetAgainAfterItsLeaseHasEnded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLink(t, 1))
		first := storetest.ClaimOne(t, db, link.TikTok, "video")
		require.Equal(t, store.InstantOf(db.Clock.Now()), first.At)
		db.Clock.Advance(time.Minute - time.Microsecond)
		require.Empty(t, storetest.Claim(t, db, link.TikTok, "video"))
		db.Clock.Advance(time.Microsecond)
		second := storetest.ClaimOne(t, db, link.TikTok, "video")
		require.Zero(t, second.Targets[0].Attempts, "an expired lease must not count as a failed fetch")
		require.NotEqual(t, first.Token, second.Token)
	})
}

func TestAcknowledge_keepsTheNewLeaseIfAnotherCollectorHasClaimedTheTarget(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, l := storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		storetest.Track(t, o, l)
		stale := storetest.ClaimOne(t, db, link.TikTok, "video")
		db.Clock.Advance(time.Minute)
		holder := storetest.ClaimOne(t, db, link.TikTok, "video")

		require.NoError(t, db.Acknowledge(t.Context(), stale, stale.At, []ingest.Outcome{storetest.Outcome(db, stale.Targets[0], storetest.Views(10))}))
		require.EqualValues(t, 10, *storetest.VideoOf(t, o, l).Latest.Views, "the counts must be written although the lease is lost")
		require.NoError(t, db.Release(t.Context(), stale.Token, stale.Targets, db.Clock.Now()))
		require.Empty(t, storetest.Claim(t, db, link.TikTok, "video"), "the second claim must still have the target")

		require.NoError(t, db.Acknowledge(t.Context(), holder, holder.At, []ingest.Outcome{storetest.Outcome(db, holder.Targets[0], storetest.Views(20))}))
		require.NoError(t, db.Acknowledge(t.Context(), stale, stale.At, []ingest.Outcome{storetest.Outcome(db, stale.Targets[0], storetest.Views(11))}))
		require.EqualValues(t, 20, *storetest.VideoOf(t, o, l).Latest.Views, "older counts must not replace newer ones")
		db.Clock.Advance(24*time.Hour - time.Microsecond)
		require.Empty(t, storetest.Claim(t, db, link.TikTok, "video"))
		db.Clock.Advance(time.Microsecond)
		storetest.ClaimOne(t, db, link.TikTok, "video")
	})
}

func TestAcknowledge_keepsTheLeasesOfTheOtherTargetsOfAClaim(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLinks(t, 3)...)
		c := storetest.Claim(t, db, link.TikTok, "video")[0]
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.Outcome(db, c.Targets[1], storetest.Views(1))}))
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, nil))
		require.Empty(t, storetest.Claim(t, db, link.TikTok, "video"))
		db.Clock.Advance(time.Minute)
		require.Equal(t, []string{storetest.VideoLink(t, 0).ID, storetest.VideoLink(t, 2).ID}, storetest.TargetIDs(storetest.Claim(t, db, link.TikTok, "video")[0]))
	})
}

func TestRelease_makesTargetsDueAtTheGivenTime(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinks(t, 3)...)
		c := storetest.Claim(t, db, link.TikTok, "video")[0]
		at := db.Clock.Now().Add(10 * time.Second)
		require.NoError(t, db.Release(t.Context(), c.Token, c.Targets[:2], at))
		require.Empty(t, storetest.Claim(t, db, link.TikTok, "video"))
		db.Clock.Set(at)
		again := storetest.Claim(t, db, link.TikTok, "video")[0]
		require.Equal(t, []string{storetest.VideoLink(t, 0).ID, storetest.VideoLink(t, 1).ID}, storetest.TargetIDs(again), "the third target must still be claimed")
		require.Zero(t, again.Targets[0].Attempts)
	})
}

func TestHeartbeat_freesTheTargetsOfADeadCollector(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const deadAfter = 10 * time.Second
		o := storetest.NewOrg(t, db)
		heartbeat := func(id uuid.UUID) int64 {
			t.Helper()
			freed, err := db.Heartbeat(t.Context(), id, deadAfter, nil)
			require.NoError(t, err)
			return freed
		}
		claim := func(id uuid.UUID, n int) queue.Claim {
			t.Helper()
			c, err := db.Claim(t.Context(), storetest.NewClaimRequest(id, link.TikTok, "video", n, time.Hour, queue.LaneInteractive))
			require.NoError(t, err)
			require.Len(t, c.Targets, n)
			return c
		}
		storetest.Track(t, o, storetest.VideoLinks(t, 5)...)
		dead, alive := store.NewID(), store.NewID()
		require.Zero(t, heartbeat(dead))
		lost := claim(dead, 3)
		db.Clock.Advance(deadAfter)
		require.Zero(t, heartbeat(alive), "a collector must not count as dead before deadAfter has passed")
		claim(alive, 2)
		db.Clock.Advance(time.Microsecond)
		require.EqualValues(t, 3, heartbeat(alive))
		require.Zero(t, heartbeat(alive), "the targets must not be freed twice")
		reclaimed := claim(alive, 3)
		require.Equal(t, storetest.TargetIDs(lost), storetest.TargetIDs(reclaimed))

		require.NoError(t, db.Acknowledge(t.Context(), lost, lost.At, []ingest.Outcome{storetest.Outcome(db, lost.Targets[0], storetest.Views(1))}))
		require.Equal(t, []string{alive.String()}, slices.Compact(storetest.Column[string](t, db, "SELECT CAST(claimed_by AS text) FROM fetch_targets")),
			"an acknowledgement after the lease has ended must not change the new lease")
		require.Zero(t, heartbeat(dead), "a collector that was declared dead must be able to start again")
	})
}

func TestRemoveCollector_freesTheTargetsOfTheStoppedCollector(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, leaving, staying := storetest.NewOrg(t, db), store.NewID(), store.NewID()
		storetest.Track(t, o, storetest.VideoLinks(t, 2)...)
		for _, id := range []uuid.UUID{leaving, staying} {
			_, err := db.Heartbeat(t.Context(), id, time.Minute, nil)
			require.NoError(t, err)
			_, err = db.Claim(t.Context(), storetest.NewClaimRequest(id, link.TikTok, "video", 1, time.Hour, queue.LaneInteractive))
			require.NoError(t, err)
		}
		require.NoError(t, db.RemoveCollector(t.Context(), leaving))
		require.Len(t, storetest.ClaimOne(t, db, link.TikTok, "video").Targets, 1, "the target of the other collector must still be claimed")
		require.Equal(t, []string{staying.String()}, storetest.Column[string](t, db, "SELECT CAST(id AS text) FROM collectors"))
		require.NoError(t, db.RemoveCollector(t.Context(), leaving), "removing a collector twice must be no error")
	})
}

func TestClaim_deletesOrphansAndReturnsTheNextTrackedTarget(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		orphans := storetest.VideoLinks(t, 60)
		storetest.Track(t, o, orphans...)
		storetest.StopVideos(t, o, orphans...)
		db.Clock.Advance(time.Second)
		storetest.Track(t, o, storetest.VideoLink(t, 99))
		c, err := db.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 25, time.Minute, queue.LaneInteractive))
		require.NoError(t, err)
		require.Equal(t, []string{storetest.VideoLink(t, 99).ID}, storetest.TargetIDs(c), "a claim must not be empty while a target is due")
		require.Equal(t, []string{storetest.VideoLink(t, 99).ID}, storetest.Column[string](t, db, "SELECT external_id FROM fetch_targets"))
	})
}
