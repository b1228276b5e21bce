package queue_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestLastFetches_countsTargetsBySourceAndResult(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		now, ids := store.InstantOf(db.Clock.Now()), 0
		add := func(targets int, platform, route string, status queue.FetchStatus, attempts int, age time.Duration, detail string) {
			for range targets {
				ids++
				db.Exec(t, `INSERT INTO fetch_targets (bucket, source, kind, external_id, handle, link, lane, base_lane, next_at, requested_at, attempts, state, detail, fetched_at, route, status)
VALUES (0, ?, 'video', ?, '', '', 1, 1, ?, ?, ?, 'active', ?, ?, ?, ?)`, platform, strconv.Itoa(ids), now, now, attempts, detail, now.Add(-age), route, status)
			}
		}
		add(3, "youtube", "youtube", queue.FetchOK, 0, 23*time.Hour, "")
		add(1, "youtube", "youtube", queue.FetchOK, 0, 25*time.Hour, "")
		add(2, "tiktok", "vendor:a", queue.FetchFailing, 3, time.Hour, "HTTP 500")
		add(3, "tiktok", "vendor:a", queue.FetchOK, 1, time.Hour, "the answer is no JSON")
		add(4, "tiktok", "vendor:a", queue.FetchPrivate, 1, time.Hour, "private")
		add(5, "tiktok", "vendor:b", queue.FetchOK, 0, time.Hour, "")
		add(1, "tiktok", "vendor:b", queue.FetchFailing, 2, time.Hour, "")
		add(6, "facebook", "", queue.FetchUnsupported, 1, time.Hour, "no source")
		add(7, "facebook", "graph", queue.FetchGone, 1, time.Hour, "gone")
		db.Guard.Statements()
		fetches, err := db.LastFetches(t.Context())
		require.NoError(t, err)
		require.Equal(t, []queue.LastFetches{
			{Platform: "tiktok", Source: "vendor:a", Failed: 5, Reason: "the answer is no JSON", ReasonTargets: 3},
			{Platform: "tiktok", Source: "vendor:b", Succeeded: 5, Failed: 1},
			{Platform: "youtube", Source: "youtube", Succeeded: 3},
		}, fetches)
		statements := db.Guard.Statements()
		require.Len(t, statements, 2)
		if db.Engine == "sqlite" {
			rows, err := db.Raw(t).QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statements[0], make([]any, strings.Count(statements[0], "?"))...)
			require.NoError(t, err)
			defer func() { require.NoError(t, rows.Close()) }()
			var plan strings.Builder
			for rows.Next() {
				var id, parent, unused int
				var step string
				require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
				plan.WriteString(step + "\n")
			}
			require.NoError(t, rows.Err())
			require.Contains(t, plan.String(), "USING COVERING INDEX fetch_targets_counts")
		}
		db.Exec(t, "DELETE FROM fetch_targets WHERE attempts > 0")
		db.Guard.Statements()
		_, err = db.LastFetches(t.Context())
		require.NoError(t, err)
		require.Len(t, db.Guard.Statements(), 1, "without failed targets, the reasons need not be read")
	})
}
