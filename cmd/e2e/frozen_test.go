package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// frozenVariable is the environment variable with the time for which the test freezes PostgreSQL. The
// default is 6 seconds.
const frozenVariable = "REELTALLY_TEST_FREEZE"

const (
	readers = 20
	writers = 5
	// maxDelay is the maximum time between the deadline of a request and its response. On an idle machine, one second is enough.
	maxDelay = 6 * time.Second
	// probeTimeout is the maximum duration of requests to /livez, /readyz, /metrics and /status.
	probeTimeout = 2*time.Second + maxDelay
)

// timedResponse has the duration of a request, and its response or its error.
type timedResponse struct {
	name string
	response
	duration time.Duration
	err      error
}

// TestFrozenDatabase_serverRespondsInTimeAndRecovers freezes PostgreSQL, so that queries on open connections get no results. Requests must get
// responses in time. Server and collector must later recover without a restart.
func TestFrozenDatabase_serverRespondsInTimeAndRecovers(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	frozen, deadline := 6*time.Second, 2*time.Second
	if text := os.Getenv(frozenVariable); text != "" {
		var err error
		frozen, err = time.ParseDuration(text)
		require.NoError(t, err, frozenVariable)
		// This is the default request timeout of the server.
		deadline = 30 * time.Second
	}
	postgres := storetest.NewServer(t)
	db := postgres.New(t, "frozen")
	s := &stack{sandboxProcess: startSandbox(t)}
	s.env = append(slices.Clone(s.sandboxProcess.env), "REELTALLY_DATABASE_URL="+db.URL, "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_METRICS_LISTEN=127.0.0.1:0",
		"REELTALLY_RATE_LIMITS=off", "REELTALLY_REQUEST_TIMEOUT="+deadline.String())
	s.token = s.newOrganisation(t)
	s.startServer(t)
	s.startCollector(t)
	metrics := awaitMetricsURL(t, s.server)
	videos := s.publicVideos(t, link.TikTok, 400, 11)
	acknowledged := map[string]bool{}
	for _, v := range videos[:3] {
		require.Equal(t, http.StatusOK, requireResponse(t, http.MethodPost, s.base+"/videos", s.token, map[string]any{"link": v.url}).status)
		acknowledged[v.Canonical] = true
	}
	s.awaitNumbers(t, 3, 3*time.Minute)
	goroutinesBefore := goroutineCount(t, metrics)

	unfreeze := postgres.Freeze(t)
	responses := s.sendLoad(t, metrics, videos[3:len(videos)-1], frozen)
	unfreeze()

	slowest := map[string]time.Duration{}
	statuses := map[string]int{}
	for _, a := range responses {
		require.NoError(t, a.err, a.name)
		name, _, _ := strings.Cut(a.name, " ")
		slowest[name] = max(slowest[name], a.duration)
		statuses[fmt.Sprintf("%s %d", name, a.status)]++
		switch name {
		case "livez":
			require.Equal(t, http.StatusOK, a.status)
			require.Less(t, a.duration, probeTimeout, name)
		case "readyz", "status", "metrics":
			require.Less(t, a.duration, probeTimeout, name)
		default:
			require.Less(t, a.duration, deadline+maxDelay, name)
			require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, a.status, string(a.body))
			if a.status == http.StatusServiceUnavailable {
				require.NotEmpty(t, a.header.Get("Retry-After"))
			}
			if name == "write" && a.status == http.StatusOK {
				acknowledged[strings.TrimPrefix(a.name, "write ")] = true
			}
		}
	}
	t.Logf("frozen for %s, request timeout %s: responses %v, slowest %v", frozen, deadline, statuses, slowest)
	require.Positive(t, statuses["read 503"])
	require.Positive(t, statuses["write 503"])

	startTime := time.Now()
	await(t, waitTimeout, 200*time.Millisecond, func() string {
		if a, err := sendJSON(t, http.MethodGet, s.base+"/videos", s.token, nil); err != nil || a.status != http.StatusOK {
			return fmt.Sprintf("%v %d", err, a.status)
		}
		return ""
	})
	t.Logf("after the end of the freeze, it took %s until a GET request succeeded", time.Since(startTime).Round(time.Millisecond))
	last := videos[len(videos)-1]
	require.Equal(t, http.StatusOK, requireResponse(t, http.MethodPost, s.base+"/videos", s.token, map[string]any{"link": last.url}).status)
	acknowledged[last.Canonical] = true
	times := map[string]int{}
	for _, v := range s.listVideos(t) {
		times[v.Link]++
	}
	for link := range acknowledged {
		require.Equal(t, 1, times[link], "%s was acknowledged, so it must be tracked once", link)
	}
	s.awaitNumbers(t, len(times), 5*time.Minute)

	await(t, waitTimeout, time.Second, func() string {
		busy := storetest.Column[int64](t, db, "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = 'frozen' AND state <> 'idle' AND pid <> pg_backend_pid()")[0]
		after := goroutineCount(t, metrics)
		if busy == 0 && after <= goroutinesBefore+readers+writers { // the server has up to one goroutine for each idle connection of a client
			return ""
		}
		return fmt.Sprintf("%d busy connections, %d goroutines (%d before)", busy, after, goroutinesBefore)
	})
	s.server.stop(t, sigterm)
	s.collector.stop(t, sigterm)
}

// sendLoad repeatedly reads videos and statistics, tracks videos, and requests /livez, /readyz,
// /metrics and /status. After the given duration, it returns all responses.
func (s *stack) sendLoad(t *testing.T, metrics string, videos []video, duration time.Duration) []timedResponse {
	t.Helper()
	var (
		mu        sync.Mutex
		responses []timedResponse
		wg        sync.WaitGroup
		next      int
	)
	timeUp := time.After(duration)
	ended := make(chan struct{})
	loop := func(n int, request func() (name, method, url string, body any)) {
		for range n {
			wg.Go(func() {
				for {
					mu.Lock()
					name, method, url, body := request()
					mu.Unlock()
					startTime := time.Now()
					a, err := sendJSON(t, method, url, s.token, body)
					mu.Lock()
					responses = append(responses, timedResponse{name, a, time.Since(startTime), err})
					mu.Unlock()
					select {
					case <-ended:
						return
					case <-time.After(100 * time.Millisecond):
					}
				}
			})
		}
	}
	get := func(name, url string) func() (string, string, string, any) {
		return func() (string, string, string, any) { return name, http.MethodGet, url, nil }
	}
	loop(readers/2, get("read list", s.base+"/videos"))
	loop(readers/2, get("read statistics", s.base+"/statistics/videos"))
	loop(writers, func() (string, string, string, any) {
		v := videos[next%len(videos)]
		next++
		return "write " + v.Canonical, http.MethodPost, s.base + "/videos", map[string]any{"link": v.url}
	})
	loop(1, get("livez", s.base+"/livez"))
	loop(1, get("readyz", s.base+"/readyz"))
	loop(1, get("metrics", metrics))
	loop(1, get("status", strings.TrimSuffix(metrics, "/metrics")+"/status"))
	<-timeUp
	close(ended)
	wg.Wait()
	return responses
}

// awaitMetricsURL waits until a process logs the URL of its metrics. It returns this URL.
func awaitMetricsURL(t *testing.T, p *process) string {
	t.Helper()
	var line struct{ Address string }
	require.NoError(t, json.Unmarshal([]byte(p.stderr.Await(t, waitTimeout, `"msg":"serving metrics"`)), &line))
	return line.Address
}

var goroutines = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

// goroutineCount reads the number of goroutines of a process from the metrics at metricsURL.
func goroutineCount(t *testing.T, metricsURL string) int {
	t.Helper()
	found := goroutines.FindSubmatch(requireResponse(t, http.MethodGet, metricsURL, "", nil).body)
	require.NotNil(t, found)
	n, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return n
}
