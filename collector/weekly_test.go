package collector_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// callCountForVideo returns how many calls to the API of a source have requested the video with the given id. The sandbox records the calls.
func (w *testSystem) callCountForVideo(source, id string) (calls int) {
	w.t.Helper()
	var log map[string]struct {
		Batches [][]string `json:"batches"`
	}
	require.NoError(w.t, json.NewDecoder(w.callControlInterface(http.MethodGet, "/_control/calls", nil).Body).Decode(&log))
	for _, ids := range log[source].Batches {
		if slices.Contains(ids, id) {
			calls++
		}
	}
	return calls
}

func TestRoute_retriesSkippedSourceOnceAWeek(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		c := newHandleTest(t, db, link.TikTok, func(w *testSystem) []source.Source {
			return append([]source.Source{w.displayAPISource()}, w.newSources("ensembledata")...)
		})
		id := c.sandbox.World().Find(link.TikTok, sandbox.Normal)
		video := c.newTenant("https://www.tiktok.com/@/video/" + id) // a video of an account that has not authorized the Display API, so only the vendor returns it
		start := db.Clock.Now()
		for db.Clock.Now().Sub(start) < 28*24*time.Hour {
			next := storetest.Column[store.Instant](t, db, "SELECT MIN(next_at) FROM fetch_targets WHERE kind = 'video'")[0].Time()
			if next.After(db.Clock.Now()) {
				db.Clock.Set(next)
			}
			_, err := c.collector.ClaimAndFetch(t.Context())
			require.NoError(t, err)
		}
		require.NotNil(t, c.video(video).Latest.Views)
		require.GreaterOrEqual(t, c.callCountForVideo("vendor", id), 28, "the vendor must be asked every day")
		require.LessOrEqual(t, c.callCountForVideo("tiktok_display", id), 5, "the Display API must be asked at most once a week")
		require.GreaterOrEqual(t, c.callCountForVideo("tiktok_display", id), 4, "the Display API must be asked every week, because it may return the video later")
	})
}
