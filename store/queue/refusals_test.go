package queue_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestRecordRefusal_countsCallsAndDifferentTargets(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		note := func(source, class, target string) queue.Refusals {
			r, err := db.RecordRefusal(t.Context(), source, class, target)
			require.NoError(t, err)
			return r
		}
		require.Equal(t, queue.Refusals{Source: "youtube", Class: "auth_failed", Targets: 1, Calls: 1}, note("youtube", "auth_failed", "a"))
		require.Equal(t, queue.Refusals{Source: "youtube", Class: "auth_failed", Targets: 1, Calls: 2}, note("youtube", "auth_failed", "a"), "two refused calls for the same target must count as one target")
		require.Equal(t, 1, note("youtube", "temporary", "b").Targets, "refused calls must be counted separately for each error class")
		require.Equal(t, 1, note("facebook", "auth_failed", "b").Targets, "refused calls must be counted separately for each source")
		require.Equal(t, queue.Refusals{Source: "youtube", Class: "auth_failed", Targets: 2, Calls: 3}, note("youtube", "auth_failed", "b"))
		require.Equal(t, 2, note("youtube", "auth_failed", "a").Targets, "refused calls for two different targets must count as two targets")

		require.NoError(t, db.DeleteRefusals(t.Context(), "youtube"))
		left, err := db.Refusals(t.Context())
		require.NoError(t, err)
		require.Equal(t, []queue.Refusals{{Source: "facebook", Class: "auth_failed", Targets: 1, Calls: 1}}, left)
	})
}
