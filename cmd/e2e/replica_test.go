package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// metricValue returns the value of a metric in the text of /metrics, or "" if the text does not have the metric.
func metricValue(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// TestReplica_readsNeverMissAnAcknowledgedWrite tracks videos while the replica pauses and resumes its replay. Lists must contain each
// acknowledged video, even after the replica was stopped.
func TestReplica_readsNeverMissAnAcknowledgedWrite(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	const callers, writes = 3, 60
	primary, replica := storetest.NewServerWithReplica(t)
	primary.New(t, "reels")
	s := &stack{sandboxProcess: &sandboxProcess{}, env: []string{"REELTALLY_DATABASE_URL=" + primary.Database("reels"), "REELTALLY_DATABASE_READ_URL=" + replica.Database("reels"),
		"REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_METRICS_LISTEN=127.0.0.1:0", "REELTALLY_RATE_LIMITS=off"}}
	tokens := make([]string, callers)
	for i := range tokens {
		tokens[i] = s.newOrganisation(t)
	}
	replica.Await(t)
	s.startServer(t)
	metrics := func() string {
		return string(requireResponse(t, http.MethodGet, loggedAddress(t, s.server, "serving metrics"), "", nil).body)
	}

	// areListsComplete returns true if the organisation's list has n videos, both as JSON and as CSV.
	areListsComplete := func(token string, n int) bool {
		a, err := sendJSON(t, http.MethodGet, s.base+"/videos?limit=200", token, nil)
		if err != nil || a.status != http.StatusOK || a.header.Get("ETag") == "" {
			return false
		}
		csv, err := sendJSONWithHeaders(t, http.MethodGet, s.base+"/videos?limit=200", token, nil, map[string]string{"Accept": "text/csv"})
		return err == nil && strings.Count(string(a.body), `"ad_id":`) == n && strings.Count(string(csv.body), "\n") == n+1
	}
	var stale atomic.Int64
	acknowledged := make(chan struct{}, callers*writes)
	var running sync.WaitGroup
	for i, token := range tokens {
		running.Go(func() {
			for n := range writes {
				link := fmt.Sprintf("https://www.tiktok.com/@someone/video/7%03d%015d", i, n)
				a, err := sendJSON(t, http.MethodPost, s.base+"/videos", token, map[string]string{"link": link})
				acknowledged <- struct{}{}
				if err != nil || a.status != http.StatusOK || !areListsComplete(token, n+1) {
					stale.Add(1)
				}
			}
		})
	}
	for n := range callers * writes { // after every five writes, pause or resume the replay
		<-acknowledged
		switch n % 10 {
		case 0:
			replica.Pause(t)
		case 5:
			replica.Resume(t)
		}
	}
	running.Wait()
	require.Zero(t, stale.Load(), "each list must have all videos whose tracking was acknowledged before the list was requested")
	replica.Resume(t)
	text := metrics()
	for _, result := range []string{"answered", "behind"} {
		n, err := strconv.Atoi(metricValue(text, `reeltally_replica_reads_total{result="`+result+`"}`))
		require.NoError(t, err, text)
		require.Positive(t, n, result)
		t.Logf("%d reads: %s", n, result)
	}
	require.Equal(t, "0", metricValue(text, `reeltally_replica_reads_total{result="failed"}`))
	require.Equal(t, "1", metricValue(text, "reeltally_replica_up"))
	require.NotEmpty(t, metricValue(text, "reeltally_replica_lag_seconds"))

	replica.Stop(t)
	for _, token := range tokens {
		require.True(t, areListsComplete(token, writes), "reads must succeed after the replica was stopped")
	}
	s.server.stderr.Await(t, waitTimeout, "the replica cannot be used")
	text = metrics()
	require.Equal(t, "0", metricValue(text, "reeltally_replica_up"))
	require.Empty(t, metricValue(text, "reeltally_replica_lag_seconds"))
}
