package queue_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestPublishRoutes_changesEachTargetAlsoIfATransactionRunsAgain(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres") // SQLite has no deadlocks
	fillQueue(t, db, 5001)             // PublishRoutes changes at most 5,000 targets in one transaction
	deadlocked := false
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: func(statement string, _ []any) error {
		if !deadlocked && strings.Contains(statement, "SET route = ") {
			deadlocked = true
			return &pgconn.PgError{Code: "40P01"}
		}
		return nil
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Queue.PublishRoutes(t.Context(), []queue.Route{{Platform: link.TikTok, Kind: queue.KindVideo, Route: "first"}}, []string{"first"}))
	require.True(t, deadlocked)
	require.Equal(t, []int{5001}, storetest.Column[int](t, db, "SELECT COUNT(*) FROM fetch_targets WHERE route = 'first'"))
}
