package collector_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// startFastClock advances the clock of the test a hundred times faster than real time, so that the test does not wait for minutes.
func (w *testSystem) startFastClock() {
	w.t.Helper()
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				w.db.Clock.Advance(time.Second)
			}
		}
	}()
	w.t.Cleanup(func() { close(done); <-stopped })
}

func TestCollector_storesOnlyCorrectCountsIfASourceFailsForAWhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault  string
		body   map[string]any
		says   []string
		source string
	}{
		{"rate limit with Retry-After", map[string]any{"fault": "rate_limited", "retry_after": 90}, []string{"source paused", "class=rate_limited", "until="}, "youtube"},
		{"rate limit without Retry-After", map[string]any{"fault": "rate_limited"}, []string{"source paused", "class=rate_limited", "until="}, "youtube"},
		{"quota spent", map[string]any{"fault": "quota_spent"}, []string{"source paused", "class=quota_spent", "until=", "source_says="}, "youtube"},
		{"server error", map[string]any{"fault": "server_error"}, []string{"call failed, source not paused", "class=temporary"}, "youtube"},
		{"truncated answer", map[string]any{"fault": "truncated"}, []string{"call failed, source not paused", "class=temporary"}, "youtube"},
		{"zeros", map[string]any{"fault": "zeros"}, []string{"no numbers stored for the target", "suspicious, not stored", "next_at="}, "youtube"},
		{"hostile answers", map[string]any{"fault": "hostile"}, nil, "youtube"},
		{"vendor's server error", map[string]any{"fault": "server_error"}, []string{"call failed, source not paused", "class=temporary"}, "vendor"},
		{"vendor's zeros", map[string]any{"fault": "zeros"}, []string{"no numbers stored for the target", "suspicious, not stored"}, "vendor"},
		{"Facebook's rate limit", map[string]any{"fault": "rate_limited", "retry_after": 90}, []string{"source paused", "class=rate_limited", "until=", "source_says="}, "facebook"},
		{"Facebook's server error", map[string]any{"fault": "server_error"}, []string{"call failed, source not paused", "class=temporary"}, "facebook"},
		{"Facebook's zeros", map[string]any{"fault": "zeros"}, []string{"no numbers stored for the target", "suspicious, not stored"}, "facebook"},
		{"vendor's quota spent", map[string]any{"fault": "quota_spent"}, []string{"source paused", "class=quota_spent", "until="}, "vendor"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			w := newTestSystem(t, storetest.New(t, "sqlite"))
			w.startFastClock()
			c.body["source"] = c.source
			w.callControlInterface(http.MethodPut, "/_control/faults", c.body)
			w.startCollector("ensembledata", "meta")
			p, prefix := link.YouTube, "https://www.youtube.com/watch?v="
			switch c.source {
			case "vendor":
				p, prefix = link.TikTok, "https://www.tiktok.com/@/video/"
			case "facebook":
				p, prefix = link.Facebook, "https://www.facebook.com/reel/"
			}
			id := w.sandbox.World().Find(p, sandbox.Normal)
			tracked := w.trackVideos(prefix + id)
			if c.says != nil {
				w.waitForLog(c.says...)
				require.NotContains(t, w.log.String(), "source_says=0001", "a time that the source did not give must not be logged")
			}
			w.waitUntil("the source must be called at least three times", func() bool { return w.callCount(c.source) >= 3 })
			if c.fault != "hostile answers" { // the fault "hostile answers" also sends valid answers, whose counts are stored
				require.Nil(t, w.video(tracked[0]).Latest.Views, "counts must not be stored while the source fails")
			}
			w.callControlInterface(http.MethodDelete, "/_control/faults", nil)
			w.waitForCounts(tracked)
			v := w.video(tracked[0])
			correct, ok := w.sandbox.World().Video(p, id, v.LatestUpdatedAt.Time())
			require.True(t, ok)
			require.InEpsilon(t, correct.Views, *v.Latest.Views, 0.01)
			day := v.LatestUpdatedAt.Day()
			points, err := w.org.History(t.Context(), store.Ref{ID: v.ID}, day-3, day)
			require.NoError(t, err)
			for _, p := range points {
				require.InEpsilon(t, correct.Views, *p.Views, 0.01, p.Day)
			}
		})
	}
}

// callCount returns how many calls to the API of a source the sandbox has received.
func (w *testSystem) callCount(source string) int {
	w.t.Helper()
	var calls map[string]struct {
		Calls int `json:"calls"`
	}
	require.NoError(w.t, json.NewDecoder(w.callControlInterface(http.MethodGet, "/_control/calls", nil).Body).Decode(&calls))
	return calls[source].Calls
}

func TestCollector_doesNotStoreZeroViewsOfAVideoThatHadViews(t *testing.T) {
	t.Parallel()
	w := newTestSystem(t, storetest.New(t, "sqlite"))
	w.startCollector()
	id := w.sandbox.World().Find(link.YouTube, sandbox.Normal)
	tracked := w.trackVideos("https://youtu.be/" + id)
	w.waitForCounts(tracked)
	before := *w.video(tracked[0]).Latest.Views
	require.Positive(t, before)

	w.callControlInterface(http.MethodPut, "/_control/faults", map[string]any{"source": "youtube", "fault": "zeros"})
	w.db.Clock.Advance(36 * time.Hour)
	w.waitForLog("suspicious, not stored", "hundredth")
	require.Equal(t, before, *w.video(tracked[0]).Latest.Views)
	w.callControlInterface(http.MethodDelete, "/_control/faults", nil)
	w.startFastClock()
	w.waitUntil("the stored views must grow", func() bool { return *w.video(tracked[0]).Latest.Views > before })
}

func TestCollector_keepsTheStoredCountsOfADeletedVideo(t *testing.T) {
	t.Parallel()
	w := newTestSystem(t, storetest.New(t, "sqlite"))
	w.startCollector()
	deleted := w.sandbox.World().Find(link.YouTube, sandbox.BecomesDeleted)
	tracked := w.trackVideos("https://youtu.be/" + deleted)
	correct, ok := w.sandbox.World().Video(link.YouTube, deleted, w.db.Clock.Now())
	require.True(t, ok)
	if correct.State == sandbox.Deleted {
		w.waitForLog("no numbers stored for the target", deleted, "class=gone")
		require.Nil(t, w.video(tracked[0]).Latest.Views)
		return
	}
	w.waitForCounts(tracked)
	before := *w.video(tracked[0]).Latest.Views
	w.db.Clock.Set(correct.ChangesAt.Add(48 * time.Hour))
	w.waitForLog("no numbers stored for the target", deleted, "class=gone")
	require.Equal(t, before, *w.video(tracked[0]).Latest.Views)
}

func TestTwoCollectors_fetchEachVideoOnlyOnce(t *testing.T) {
	t.Parallel()
	w := newTestSystem(t, storetest.New(t, "postgres"))
	const videos = 300
	links := make([]string, videos)
	for i := range links {
		links[i] = fmt.Sprintf("https://www.youtube.com/watch?v=shared%04dA", i)
	}
	tracked := w.trackVideos(links...)
	w.startCollector()
	w.startCollector()
	w.waitUntil("every video must be claimed", func() bool {
		lanes, err := w.db.DueLanes(t.Context(), "youtube")
		require.NoError(t, err)
		return len(lanes) == 0
	})
	w.waitUntil("every video must have counts or an error", func() bool {
		held := 0
		for _, tr := range tracked {
			if v := w.video(tr); v.Latest.Views == nil && !strings.Contains(w.log.String(), v.ExternalID) {
				held++
			}
		}
		return held == 0
	})
	var calls map[string]struct {
		Batches  [][]string     `json:"batches"`
		ByMethod map[string]int `json:"by_method"`
	}
	require.NoError(t, json.NewDecoder(w.callControlInterface(http.MethodGet, "/_control/calls", nil).Body).Decode(&calls))
	asked := map[string]int{}
	for _, b := range calls["youtube"].Batches {
		for _, id := range b {
			asked[id]++
		}
	}
	for _, tr := range tracked {
		require.Equal(t, 1, asked[w.video(tr).ExternalID], "each video must be fetched once")
	}
}
