package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// hostedOperations are the API operations of a hosted service that ReelTally can replace. Programs that customers wrote for this service
// must also work with ReelTally.
var hostedOperations = []string{
	"DELETE /collections/{}", "DELETE /collections/{}/accounts", "DELETE /collections/{}/videos", "DELETE /videos", "DELETE /videos/bulk", "DELETE /videos/{}",
	"GET /accounts/{}/videos", "GET /collections", "GET /collections/{}", "GET /collections/{}/accounts", "GET /collections/{}/videos", "GET /videos", "GET /videos/{}",
	"GET /videos/{}/history", "PATCH /collections/{}", "POST /collections", "POST /collections/{}/accounts", "POST /collections/{}/videos", "POST /videos", "POST /videos/bulk",
}

// pathID matches an id or a percent-encoded link in a path.
var pathID = regexp.MustCompile(`/([0-9a-f-]{36}|https%3A[^/]*)`)

// Requirements in docs/coverage.md: 14.6-04
func TestProgramsForAHostedService_workIfOnlyAddressAndTokenAreReplaced(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for language, command := range map[string][]string{
		"Go":         {"go", "run", "testdata/hosted/program.go"},
		"JavaScript": {"node", "testdata/hosted/program.mjs"},
		"Python":     {"python3", "testdata/hosted/program.py"},
		"curl":       {"bash", "testdata/hosted/program.sh"},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, newSQLite(t))
			c := a.newCaller(t, store.TierPremium)
			target, err := url.Parse(a.http.URL)
			require.NoError(t, err)
			forward := httputil.NewSingleHostReverseProxy(target)
			var mu sync.Mutex
			var called []string
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				called = append(called, r.Method+" "+pathID.ReplaceAllString(r.URL.EscapedPath(), "/{}"))
				mu.Unlock()
				forward.ServeHTTP(w, r)
			}))
			t.Cleanup(proxy.Close)
			require.Equal(t, "done\n", runProgram(t, proxy.URL, c.token, command[0], command[1:]...))
			slices.Sort(called)
			require.Equal(t, hostedOperations, slices.Compact(called))
		})
	}
}
