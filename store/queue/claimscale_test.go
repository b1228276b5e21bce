package queue_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

var claimTargets = flag.Int("claim.targets", 100_000, "targets of the large queue in TestClaim_costsTheSameInALargeQueue")

// fillQueueTo puts so many targets with a subscriber each into the queue of TikTok's premium lane, of which the first 2,000 are due.
func fillQueueTo(t *testing.T, db *storetest.DB, n int) {
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

// claims takes 50 targets twenty times over and returns the median of what that took.
func claims(t *testing.T, db *storetest.DB) time.Duration {
	t.Helper()
	took := make([]time.Duration, 20)
	for i := range took {
		began := time.Now()
		c, err := db.Claim(t.Context(), queue.ClaimRequest{Collector: store.NewID(), Platform: link.TikTok, Kind: "video",
			Lanes: []queue.Lane{queue.LanePremium}, Limit: 50, Lease: time.Minute})
		took[i] = time.Since(began)
		require.NoError(t, err)
		require.Len(t, c.Targets, 50)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// What a claim costs depends on what it takes and not on how much waits: its plan is the same, and by -claim.targets=10000000 and
// -v its time can be seen to be.
func TestClaim_costsTheSameInALargeQueue(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		small := storetest.New(t, db.Engine)
		fillQueueTo(t, small, 10_000)
		fillQueueTo(t, db, *claimTargets)
		few, many := claims(t, small), claims(t, db)
		t.Logf("%s: a claim of 50 took %s of 10,000 targets, %s of %d: %.2f times as long", db.Engine, few, many, *claimTargets, many.Seconds()/few.Seconds())
		now := int64(store.InstantOf(db.Clock.Now()))
		for _, of := range []*storetest.DB{small, db} {
			statements := of.Guard.Statements()
			at := slices.IndexFunc(statements, func(s string) bool { return strings.Contains(s, "WITH due AS MATERIALIZED") })
			require.GreaterOrEqual(t, at, 0)
			plan := explain(t, of, statements[at], 0, "tiktok", "video", int(queue.LanePremium), now, now, 50, now, store.NewID(), store.NewID(), 0)
			require.Contains(t, plan, "fetch_targets_due")
			require.NotContains(t, plan, "Seq Scan on fetch_targets")
			require.NotContains(t, plan, "SCAN fetch_targets")
		}
	})
}
