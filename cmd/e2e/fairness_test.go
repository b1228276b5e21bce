package e2e_test

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// A burst of 500 links of one organisation must not delay the single link of another organisation. The
// single link must have numbers within a few seconds.
func TestFairness_burstOfOneOrganisationDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, engine := range storetest.StoreEngines() {
		t.Run(engine+", with a vendor as the only source", func(t *testing.T) {
			t.Parallel()
			testBurstOfLinks(t, 5*time.Second, engine, "REELTALLY_INSTAGRAM_ACCESS_TOKEN", "REELTALLY_INSTAGRAM_ACCOUNT_ID", "REELTALLY_INSTAGRAM_APP_SECRET")
		})
		t.Run(engine+", with the Graph API and a vendor as sources", func(t *testing.T) {
			t.Parallel()
			// The limit is higher here, because the Graph API needs two more calls for a link.
			testBurstOfLinks(t, 7*time.Second, engine)
		})
	}
}

// testBurstOfLinks adds 500 links for one organisation, and then one link for a second organisation.
// The last link must have numbers before timeout has passed.
func testBurstOfLinks(t *testing.T, timeout time.Duration, engine string, omittedSettings ...string) {
	t.Helper()
	s := startStack(t, engine, omittedSettings...)
	s.setFault(t, "instagram", "slow", 1)
	single := &stack{sandboxProcess: s.sandboxProcess, env: s.env, base: s.base}
	single.token = single.newOrganisation(t)
	videos := s.publicVideos(t, link.Instagram, 501, 3)
	// The collector needs half a minute to fetch these 500 links.
	for n := range 10 {
		a, b := s.trackLinks(t, videoLinks(videos[50*n:50*n+50]))
		require.Equal(t, http.StatusOK, a.status, string(a.body))
		require.True(t, b.TrackingEnqueued)
	}
	v := videos[500]
	require.Equal(t, http.StatusOK, requireResponse(t, http.MethodPost, s.base+"/videos", single.token, map[string]any{"link": v.url}).status)
	await(t, timeout, 500*time.Millisecond, func() string {
		if len(single.requestHistory(t, v)) == 1 {
			return ""
		}
		return "no numbers yet: " + lastBytes(s.collector.stderr.String())
	})
	waiting := 0
	for _, v := range s.listVideos(t) {
		if v.Views == nil {
			waiting++
		}
	}
	require.Greater(t, waiting, 100, "the collector must still have links of the burst to fetch; otherwise the test shows nothing")
}

// bulkRequests is the number of requests that TestBulk_largeRequestsAreFetchedSoon sends. Each request has 500 links.
var bulkRequests = flag.Int("bulk.requests", 2, "number of requests of 500 links in TestBulk_largeRequestsAreFetchedSoon")

// Requirements in docs/coverage.md: 11.4-01, 11.4-02
func TestBulk_largeRequestsAreFetchedSoon(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, engine := range storetest.StoreEngines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := startStack(t, engine)
			other := &stack{sandboxProcess: s.sandboxProcess, env: s.env, base: s.base}
			other.token = other.newOrganisation(t)
			var links []string
			for i, p := range link.Platforms {
				links = append(links, videoLinks(s.publicVideos(t, p, 500**bulkRequests/len(link.Platforms)+1, uint64(i)))[1:]...)
			}
			rand.Shuffle(len(links), func(i, j int) { links[i], links[j] = links[j], links[i] })
			for batch := range slices.Chunk(links, 500) {
				a, b := s.trackLinks(t, batch)
				require.Equal(t, http.StatusOK, a.status, string(a.body))
				require.False(t, b.TrackingEnqueued)
			}
			sent := time.Now()
			single := s.publicVideos(t, link.TikTok, 1, 99)[0]
			require.Equal(t, http.StatusOK, requireResponse(t, http.MethodPost, s.base+"/videos", other.token, map[string]any{"link": single.url}).status)
			await(t, 30*time.Second, 250*time.Millisecond, func() string {
				if len(other.requestHistory(t, single)) == 1 {
					return ""
				}
				return "no numbers yet: " + lastBytes(s.collector.stderr.String())
			})
			s.awaitNumbers(t, len(links), 5*time.Minute)
			t.Logf("after %s, all %d links had numbers", time.Since(sent).Round(time.Second), len(links))
		})
	}
}
