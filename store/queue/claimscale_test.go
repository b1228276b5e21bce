package queue_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

var claimTargets = flag.Int("claim.targets", 100_000, "targets of the large queue in TestClaim_doesNotReadMoreTargetsIfTheQueueIsLonger")

// addPremiumTargets adds n TikTok targets to the premium lane, each with one subscriber. The first 2,000 targets are due.
func addPremiumTargets(t *testing.T, db *storetest.DB, n int) {
	t.Helper()
	series := fmt.Sprintf("SELECT n FROM generate_series(1, %d) AS numbers(n)", n)
	if !db.SharedByProcesses() {
		series = fmt.Sprintf("WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) SELECT n FROM numbers", n)
	}
	now := int64(store.InstantOf(db.Clock.Now()))
	id := "CAST(7000000000000000000 + n AS text)"
	db.Exec(t, fmt.Sprintf(`INSERT INTO fetch_targets (bucket, source, kind, external_id, handle, link, lane, base_lane, next_at, requested_at, attempts, state, detail)
SELECT 0, 'tiktok', 'video', %s, '', '', 1, 1, %d + (CAST(n AS bigint) - 2000) * 10000, 0, 0, 'active', '' FROM (%s) AS s`, id, now, series))
	db.Exec(t, fmt.Sprintf(`INSERT INTO fetch_subscriptions (bucket, source, kind, external_id, organisation_id, subject_id)
SELECT 0, 'tiktok', 'video', %s, '01938c2e-7b1f-7c3a-9f6e-2d4b8a1c5e70', '01938c2e-7b1f-7c3a-9f6e-2d4b8a1c5e70' FROM (%s) AS s`, id, series))
	db.Exec(t, "ANALYZE")
}

// medianClaimTime claims 50 targets at a time, 20 times, and returns the median duration of a claim.
func medianClaimTime(t *testing.T, db *storetest.DB) time.Duration {
	t.Helper()
	durations := make([]time.Duration, 20)
	for i := range durations {
		began := time.Now()
		r := storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 50, time.Minute, queue.LanePremium)
		r.Candidates = 50
		c, err := db.Claim(t.Context(), r)
		durations[i] = time.Since(began)
		require.NoError(t, err)
		require.Len(t, c.Targets, 50)
	}
	slices.Sort(durations)
	return durations[len(durations)/2]
}

// A claim must not take longer if the queue is longer. The test checks the query plan. With the
// flag -v, go test shows the durations.
func TestClaim_doesNotReadMoreTargetsIfTheQueueIsLonger(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		small := storetest.New(t, db.Engine)
		addPremiumTargets(t, small, 10_000)
		addPremiumTargets(t, db, *claimTargets)
		few, many := medianClaimTime(t, small), medianClaimTime(t, db)
		t.Logf("%s: claiming 50 of 10,000 targets took %s; claiming 50 of %d took %s, %.2f times as long", db.Engine, few, *claimTargets, many, many.Seconds()/few.Seconds())
		now := int64(store.InstantOf(db.Clock.Now()))
		for _, of := range []*storetest.DB{small, db} {
			statements := of.Guard.Statements()
			at := slices.IndexFunc(statements, func(s string) bool { return strings.Contains(s, "ORDER BY t.next_at LIMIT") })
			require.GreaterOrEqual(t, at, 0)
			plan := queryPlan(t, of, statements[at], 0, "", int(queue.LanePremium), 0, now, "video", 50)
			require.Contains(t, plan, "fetch_targets_due")
			require.NotContains(t, plan, "Seq Scan on fetch_targets")
			require.NotContains(t, plan, "SCAN fetch_targets")
		}
	})
}

// cpuTime returns the CPU time that the processes of PostgreSQL have used for the connections to a database.
func cpuTime(t *testing.T, db *storetest.DB) time.Duration {
	t.Helper()
	const ticksPerSecond = 100 // the unit of utime and stime in /proc/PID/stat on Linux
	total := time.Duration(0)
	for _, pid := range storetest.Column[int](t, db, "SELECT pid FROM pg_stat_activity WHERE datname = current_database()") {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		require.NoError(t, err)
		_, fields, _ := strings.Cut(string(text), ") ") // skip the name of the program: it is in parentheses and can contain blanks
		for _, ticks := range strings.Fields(fields)[11:13] {
			n, err := strconv.Atoi(ticks)
			require.NoError(t, err)
			total += time.Duration(n) * time.Second / ticksPerSecond
		}
	}
	return total
}

// The CPU time of the coordinator limits how many targets a Citus cluster can fetch: see
// docs/decisions/0090-the-queue-stays-on-the-coordinator.md.
func TestClaim_takesLittleCPUTimeOfTheServer(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	const collectors, targets = 8, 20_000
	db := storetest.New(t, "postgres")
	addPremiumTargets(t, db, targets)
	db.Clock.Advance(targets * 10 * time.Millisecond) // a target becomes due every 10 ms
	before := cpuTime(t, db)
	var mu sync.Mutex
	claimed := map[string]int{}
	var working sync.WaitGroup
	for range collectors {
		working.Go(func() {
			for {
				r := storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 50, time.Hour, queue.LanePremium)
				r.Candidates = 50
				c, err := db.Claim(t.Context(), r)
				// Release updates each target once, as the storing of a fetch result does.
				if err != nil || len(c.Targets) == 0 || db.Release(t.Context(), c.Token, c.Targets, db.Clock.Now().Add(24*time.Hour)) != nil {
					if err != nil {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				for _, target := range c.Targets {
					claimed[target.ExternalID]++
				}
				mu.Unlock()
			}
		})
	}
	working.Wait()
	used := cpuTime(t, db) - before
	require.Len(t, claimed, targets)
	for id, times := range claimed {
		require.Equal(t, 1, times, id)
	}
	each := used / time.Duration(targets)
	size := storetest.Column[int](t, db, "SELECT pg_total_relation_size('fetch_targets') + pg_total_relation_size('fetch_subscriptions')")[0]
	t.Logf("%d targets took %s of CPU time of PostgreSQL, %s each; the tables have %d bytes for each", targets, used, each, size/targets)
	require.Positive(t, used)
	require.Less(t, each, time.Millisecond)
}
