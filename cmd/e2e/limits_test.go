package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server/redistest"
	"github.com/reeltally/reeltally/store/storetest"
)

// Two servers with one Redis must count an organisation's requests together. If Redis is unreachable, each server must count only its own
// requests.
func TestRateLimits_areSharedByServers(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	env := []string{"REELTALLY_DATABASE_URL=" + storetest.CreateDatabase(t, "postgres"), "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_REDIS_URL=" + r.URL + "?read_timeout=30s"} // set a long timeout for Redis, because the machine may be busy
	first, second := &stack{env: env}, &stack{env: slices.Clone(env)}
	first.startServer(t)
	second.startServer(t)
	both := []*stack{first, second}
	requireLogged := func(away, back int) {
		t.Helper()
		for _, s := range both {
			require.Equal(t, away, strings.Count(s.server.stderr.String(), "redis is unavailable"), s.server.stderr)
			require.Equal(t, back, strings.Count(s.server.stderr.String(), "redis is available again"), s.server.stderr)
		}
	}

	token, other := first.newOrganisation(t), first.newOrganisation(t)
	// For each path, the number is the rate limit of a premium organisation.
	for path, limit := range map[string]int{"/videos": 30, "/videos/01938c32-8f07-7a46-93be-1d2c3b4a5968/history": 120, "/authenticate": 120} {
		require.Equal(t, limit, sendAndCountAccepted(t, both, token, path, limit+20), path)
	}
	require.Equal(t, 30, sendAndCountAccepted(t, both, other, "/videos", 40), "the requests of one organisation must not count for another organisation")
	requireLogged(0, 0)

	r.Kill()
	for _, s := range both {
		require.Equal(t, 30, sendAndCountAccepted(t, []*stack{s}, token, "/videos", 40), "without Redis, each server must count requests separately")
		require.Equal(t, http.StatusOK, requireResponse(t, http.MethodGet, s.base+"/readyz", "", nil).status)
	}
	requireLogged(1, 0)

	r.Start()
	for _, s := range both {
		await(t, waitTimeout, 100*time.Millisecond, func() string {
			requireResponse(t, http.MethodGet, s.base+"/videos", "", nil) // Redis counts requests without a token by their IP address, so this request makes the server use Redis and notice that it works again
			if !strings.Contains(s.server.stderr.String(), "redis is available again") {
				return "the server has not noticed that Redis is back"
			}
			return ""
		})
	}
	require.Equal(t, 30, sendAndCountAccepted(t, both, token, "/videos", 50), "the servers must share the limit again; the new Redis has no counts")
	requireLogged(1, 1)
	for _, s := range both {
		s.server.stop(t, sigterm)
	}
}

// sendAndCountAccepted sends n requests, four at a time, and distributes them over the servers. It returns the number of requests that were
// within the rate limit.
func sendAndCountAccepted(t *testing.T, servers []*stack, token, path string, n int) int {
	t.Helper()
	var mu sync.Mutex
	ok, slowest := 0, time.Duration(0)
	var callers sync.WaitGroup
	for worker := range 4 {
		callers.Go(func() {
			for i := worker; i < n; i += 4 {
				startTime := time.Now()
				a, err := sendJSON(t, http.MethodGet, servers[i/4%len(servers)].base+path, token, nil)
				mu.Lock()
				slowest = max(slowest, time.Since(startTime))
				if err != nil || !slices.Contains([]int{http.StatusOK, http.StatusNotFound, http.StatusTooManyRequests}, a.status) {
					t.Errorf("%s: %d, %v\n%s", path, a.status, err, a.body)
				} else if a.status != http.StatusTooManyRequests {
					ok++
				}
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	t.Logf("GET %s: the rate limit accepted %d of %d requests; the slowest request took %s", path, ok, n, slowest)
	return ok
}
