package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// recoveryTimeout is the maximum time until the collector uses a recovered source again.
const recoveryTimeout = 2 * time.Minute

// While a source fails, the collector must store no false numbers. When the source has recovered, the
// collector must fetch numbers without a restart.
func TestFaults_collectorStoresNoFalseNumbersWhileSourceFails(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.StoreEngines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := startStack(t, engine)
			for i, c := range []struct {
				fault      string
				retryAfter int
				platform   link.Platform
				logged     []string // texts that one line of the collector's log must contain
			}{
				{"rate_limited", 2, link.YouTube, []string{`"source":"youtube"`, `"source paused"`, `"class":"rate_limited"`, `"until"`, `"source_says"`}},
				{"rate_limited", 0, link.TikTok, []string{`"source":"vendor:sandbox"`, `"source paused"`, `"class":"rate_limited"`, `"until"`}},
				{"server_error", 0, link.YouTube, []string{`"source":"youtube"`, `"call failed, source not paused"`, `"class":"temporary"`, `"id"`}},
				{"truncated", 0, link.TikTok, []string{`"source":"vendor:sandbox"`, `"call failed, source not paused"`, `"class":"temporary"`, `"id"`}},
				{"zeros", 0, link.YouTube, []string{`"no numbers stored for the target"`, "no views though the video is not new", `"next_at"`}},
				{"zeros", 0, link.TikTok, []string{`"no numbers stored for the target"`, "no views though the video is not new", `"next_at"`}},
				// After a spent quota, the collector waits 20 seconds and then tests the source with
				// one call.
				{"quota_spent", 0, link.YouTube, []string{`"source":"youtube"`, `"source paused"`, `"class":"quota_spent"`, `"until"`}},
			} {
				name := c.fault + " of " + string(c.platform)
				v := s.publicVideos(t, c.platform, 1, uint64(100+i))[0]
				logLength := len(s.collector.stderr.String())
				s.setFault(t, "*", c.fault, c.retryAfter) // all sources must fail, so that the collector cannot use another source for the platform
				require.Equal(t, http.StatusOK, requireResponse(t, http.MethodPost, s.base+"/videos", s.token, map[string]any{"link": v.url}).status, name)
				await(t, waitTimeout, 50*time.Millisecond, func() string {
					for line := range strings.Lines(s.collector.stderr.String()[logLength:]) {
						if containsAll(line, c.logged) {
							return ""
						}
					}
					return fmt.Sprintf("%s: the collector has not logged the failure: %s", name, lastBytes(s.collector.stderr.String()))
				})
				require.Empty(t, s.requestHistory(t, v), "%s: the collector must not store a point", name)
				s.clearFaults(t)
				await(t, recoveryTimeout, time.Second, func() string {
					if points := s.requestHistory(t, v); len(points) == 1 && points[0].Views != nil && *points[0].Views > 0 {
						return ""
					}
					return fmt.Sprintf("%s: the collector does not use the recovered source: %s", name, lastBytes(s.collector.stderr.String()))
				})
			}
			s.server.stop(t, sigterm)
			s.collector.stop(t, sigterm)
			s.collector.stderr.Await(t, waitTimeout, "stopped collecting")
		})
	}
}

func containsAll(line string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(line, p) {
			return false
		}
	}
	return true
}

type point struct {
	Date  string
	Views *int64
}

// requestHistory returns the points of a video's history. The API allows 120 such requests a minute, so tests may call requestHistory often.
func (s *stack) requestHistory(t *testing.T, v video) []point {
	t.Helper()
	var points []point
	a := requireResponse(t, http.MethodGet, s.base+"/videos/"+url.PathEscape(v.url)+"/history", s.token, nil)
	require.Equal(t, http.StatusOK, a.status, string(a.body))
	a.decode(t, &points)
	return points
}
