package storetest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// NewClaimRequest returns a request for up to "limit" due targets of one platform and kind. It
// requests only targets whose next source is not set.
func NewClaimRequest(collector uuid.UUID, p link.Platform, kind queue.Kind, limit int, lease time.Duration, lanes ...queue.Lane) queue.ClaimRequest {
	// In tests, no target has a source until the test calls PublishRoutes.
	return queue.ClaimRequest{Collector: collector, Kinds: []queue.Kind{kind}, Lanes: lanes, Candidates: 1000,
		Pick: func(due []queue.Target) ([]queue.Target, time.Duration) {
			var batch []queue.Target
			for _, t := range due {
				if t.Platform == p && len(batch) < limit {
					batch = append(batch, t)
				}
			}
			return batch, lease
		}}
}

// Claim claims all due targets of a platform and kind, and returns one claim for each lane with due targets.
func Claim(t *testing.T, db *DB, p link.Platform, kind queue.Kind) []queue.Claim {
	t.Helper()
	var claims []queue.Claim
	for _, lane := range queue.Lanes {
		c, err := db.Claim(t.Context(), NewClaimRequest(store.NewID(), p, kind, 1000, time.Minute, lane))
		require.NoError(t, err)
		if len(c.Targets) > 0 {
			claims = append(claims, c)
		}
	}
	return claims
}

// ClaimOne claims the only due target of a platform and kind. It fails the test if there is not exactly one.
func ClaimOne(t *testing.T, db *DB, p link.Platform, kind queue.Kind) queue.Claim {
	t.Helper()
	claims := Claim(t, db, p, kind)
	require.Len(t, claims, 1)
	require.Len(t, claims[0].Targets, 1)
	return claims[0]
}

// TargetIDs returns the external ids of a claim's targets.
func TargetIDs(c queue.Claim) []string {
	ids := make([]string, len(c.Targets))
	for i, target := range c.Targets {
		ids[i] = target.ExternalID
	}
	return ids
}

// DueTargets returns the external ids of the TikTok videos that a collector could claim now.
func DueTargets(t *testing.T, db *DB) []string {
	t.Helper()
	return Column[string](t, db, "SELECT external_id FROM fetch_targets WHERE source = ? AND kind = 'video' AND next_at <= ?",
		string(link.TikTok), int64(store.InstantOf(db.Clock.Now())))
}

// RunBeforeStatement starts f before the next statement that contains the fragment. On PostgreSQL, this statement waits
// until f has returned, or until f waits for a lock. On SQLite, it does not wait. The caller must call finish.
func RunBeforeStatement(t *testing.T, db *DB, fragment string, f func(s *store.Store)) (finish func()) {
	t.Helper()
	// The function f gets a second Store, as if f ran in another process.
	other, done := db.Open(t), make(chan struct{})
	db.Guard.BeforeStatement(fragment, func() {
		go func() {
			defer close(done)
			f(other)
		}()
		for !IsWaitingForLock(t, db) {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	// finish waits until f has returned.
	return func() { <-done }
}

// IsWaitingForLock returns true if any transaction of the database waits for a lock. On SQLite, it always returns true.
func IsWaitingForLock(t *testing.T, db *DB) bool {
	t.Helper()
	return !db.SharedByProcesses() ||
		Column[int64](t, db, "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")[0] > 0
}
