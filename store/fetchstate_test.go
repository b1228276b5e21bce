package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// finishDueFetches claims the TikTok videos that are due. For each video, it stores a fetch with "change" but without numbers. finishDueFetches
// returns how many videos it claimed.
func finishDueFetches(t *testing.T, db *storetest.DB, change queue.FetchChange, next time.Duration) int {
	t.Helper()
	db.Clock.Advance(time.Second)
	stored := 0
	for _, lane := range queue.Lanes {
		c, err := db.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, queue.KindVideo, 100, time.Minute, lane))
		require.NoError(t, err)
		outcomes := make([]ingest.Outcome, len(c.Targets))
		for i, target := range c.Targets {
			outcomes[i] = ingest.Outcome{Target: target, Source: "test", State: queue.StateActive, NextAt: store.InstantOf(db.Clock.Now().Add(next)), Fetch: &change}
		}
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
		stored += len(outcomes)
	}
	return stored
}

// videosWithStatus returns the ids of the organisation's videos that have the given fetch status.
func videosWithStatus(t *testing.T, o *store.Org, status store.FetchStatus) []string {
	t.Helper()
	q := storetest.OrderedBy("created_at", true)
	q.Status = &status
	page, err := o.ListVideos(t.Context(), q)
	require.NoError(t, err)
	ids := []string{}
	for _, v := range page.Rows {
		require.Equal(t, status, v.FetchStatus)
		ids = append(ids, v.ID.String())
	}
	require.Len(t, ids, int(page.Total))
	return ids
}

// A video becomes delayed if its fetch has been due for an hour. The version must change then, although no data changes.
//
// Requirements in docs/coverage.md: 11.1-06
func TestFetchState_becomesDelayedAfterAnHourAndChangesTheVersion(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		id := storetest.Track(t, o, storetest.VideoLink(t, 1))[0].ID
		version := func() store.Version {
			v, err := o.Version(t.Context())
			require.NoError(t, err)
			return v
		}
		planned := version()
		db.Clock.Advance(time.Second)
		before := version()
		require.NotEqual(t, planned, before, "the version must change when the first fetch becomes due, because the sentence about the status changes then")
		require.Equal(t, []string{id.String()}, videosWithStatus(t, o, queue.FetchPending))
		db.Clock.Advance(queue.DelayedAfter - time.Minute)
		require.Equal(t, before, version())
		require.Empty(t, videosWithStatus(t, o, queue.FetchDelayed))
		db.Clock.Advance(2 * time.Minute)
		require.NotEqual(t, before, version(), "the version must change when a fetch becomes late, because lists change then")
		require.Equal(t, []string{id.String()}, videosWithStatus(t, o, queue.FetchDelayed))
		require.Empty(t, videosWithStatus(t, o, queue.FetchPending))
		counts, err := o.VideoStatistics(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[store.FetchStatus]int64{queue.FetchDelayed: 1}, counts.ByStatus)

		require.Equal(t, 1, storetest.Deliver(t, db, link.TikTok, storetest.Views(5)))
		require.Equal(t, []string{id.String()}, videosWithStatus(t, o, queue.FetchOK))
	})
}

// Requirements in docs/coverage.md: 11.1-06, 11.1-07
func TestFetchState_showsOnlyAttemptsSinceTrackingBegan(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first, second := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		clip := storetest.VideoLink(t, 1)
		id := storetest.Track(t, first, clip)[0].ID
		before, err := first.Version(t.Context())
		require.NoError(t, err)
		failing := queue.FetchChange{Status: queue.FetchFailing, Reason: "The last 2 attempts failed", Attempted: true}
		require.Equal(t, 1, finishDueFetches(t, db, failing, time.Minute))
		after, err := first.Version(t.Context())
		require.NoError(t, err)
		require.Greater(t, after.Version, before.Version)
		v, err := first.Video(t.Context(), store.Ref{ID: id})
		require.NoError(t, err)
		require.Equal(t, queue.FetchFailing, v.FetchStatus)
		require.NotNil(t, v.LastAttemptAt)
		require.Equal(t, "The last 2 attempts failed; the next fetch is due from "+v.NextFetchAt.Time().Format("2006-01-02 15:04")+" UTC on.", *v.FetchDetail("video", false))

		other := storetest.Track(t, second, clip)[0].ID
		v, err = second.Video(t.Context(), store.Ref{ID: other})
		require.NoError(t, err)
		require.Equal(t, queue.FetchPending, v.FetchStatus)
		require.Nil(t, v.LastAttemptAt, "an attempt that was made for another organisation must not be shown")

		// An answer that is written late does not replace the state of a newer attempt.
		state := store.FetchState{FetchStatus: queue.FetchOK, LastAttemptAt: new(store.Instant(20))}
		state.ApplyChange(failing, true, 10, 30)
		require.Equal(t, queue.FetchOK, state.FetchStatus)
		state.ApplyChange(queue.FetchChange{Status: queue.FetchDelayed, Reason: "paused"}, true, 20, 30)
		require.Equal(t, queue.FetchDelayed, state.FetchStatus)
		state.ApplyChange(queue.FetchChange{Attempted: true, Reason: "The last attempt failed"}, true, 30, 40)
		require.Equal(t, store.FetchState{FetchStatus: queue.FetchOK, FetchReason: "The last attempt failed", LastAttemptAt: new(store.Instant(30)),
			NextFetchAt: new(store.Instant(40))}, state)
	})
}

func TestFetchDetailWithoutTime_leavesOutTheTimeOfTheNextFetch(t *testing.T) {
	t.Parallel()
	next := store.InstantOf(time.Date(2026, time.February, 22, 10, 15, 0, 0, time.UTC))
	for _, status := range queue.FetchStatuses {
		for _, reason := range []string{"", "The platform gave no answer"} {
			state := store.FetchState{FetchStatus: status, FetchReason: reason, NextFetchAt: &next}
			detail, withoutTime := state.FetchDetail("video", false), state.FetchDetailWithoutTime("video", false)
			if status == queue.FetchOK && reason == "" {
				require.Nil(t, detail)
				require.Nil(t, withoutTime)
				continue
			}
			require.Contains(t, *detail, "2026-02-22 10:15 UTC", status)
			beginning, _, _ := strings.Cut(*detail, ";")
			require.Equal(t, beginning+".", *withoutTime, status)
			state.NextFetchAt = nil
			require.Equal(t, state.FetchDetail("video", false), state.FetchDetailWithoutTime("video", false), "without a planned fetch, both sentences must be the same")
		}
	}
	pending := store.FetchState{FetchStatus: queue.FetchPending, NextFetchAt: &next}
	require.Equal(t, "The video has not been fetched since tracking began.", *pending.FetchDetailWithoutTime("video", false))
	require.Equal(t, "The video has not been fetched since tracking began, and no collector is running.", *pending.FetchDetailWithoutTime("video", true))
}
