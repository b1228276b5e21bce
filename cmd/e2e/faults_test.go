package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// recovered is how long it may take until a source that works again is used again: of a quota that was spent the
// collector only finds out now and then that it was not, after 20 seconds at first.
const recovered = 45 * time.Second

// While a source is broken nothing false is written, the collector's log says what is wrong and until when the source is
// left alone, and once it works again so does everything, by itself.
func TestFaults_writeNothingFalse(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := startStack(t, engine)
			for i, c := range []struct {
				fault      string
				retryAfter int
				platform   link.Platform
				says       []string // in one line of the collector's log
			}{
				{"rate_limited", 2, link.YouTube, []string{`"source":"youtube"`, `"source failed"`, `"class":"rate_limited"`, `"until"`, `"source_says"`}},
				{"rate_limited", 0, link.TikTok, []string{`"source":"vendor:sandbox"`, `"source failed"`, `"class":"rate_limited"`, `"until"`}},
				{"server_error", 0, link.YouTube, []string{`"source":"youtube"`, `"source failed for a target"`, `"class":"temporary"`, `"id"`}},
				{"truncated", 0, link.TikTok, []string{`"source":"vendor:sandbox"`, `"source failed for a target"`, `"class":"temporary"`, `"id"`}},
				{"zeros", 0, link.YouTube, []string{`"no number written"`, "no views though the video is not new", `"next_at"`}},
				{"zeros", 0, link.TikTok, []string{`"no number written"`, "no views though the video is not new", `"next_at"`}},
				{"quota_spent", 0, link.YouTube, []string{`"source":"youtube"`, `"source failed"`, `"class":"quota_spent"`, `"until"`}},
			} {
				name := c.fault + " of " + string(c.platform)
				v := s.videos(t, c.platform, 1, uint64(100+i))[0]
				logged := len(s.collector.stderr.String())
				s.fault(t, "*", c.fault, c.retryAfter) // of every source: else another one that has the platform steps in
				require.Equal(t, http.StatusOK, call(t, http.MethodPost, s.base+"/videos", s.token, map[string]any{"link": v.url}).status, name)
				await(t, soon, 50*time.Millisecond, func() string {
					for line := range strings.Lines(s.collector.stderr.String()[logged:]) {
						if holds(line, c.says) {
							return ""
						}
					}
					return name + ": the collector does not say so: " + tail(s.collector.stderr.String())
				})
				require.Empty(t, s.history(t, v), "%s: nothing is written", name)
				s.lift(t)
				await(t, recovered, time.Second, func() string {
					if points := s.history(t, v); len(points) == 1 && points[0].Views != nil && *points[0].Views > 0 {
						return ""
					}
					return name + ": it does not recover: " + tail(s.collector.stderr.String())
				})
			}
			s.server.stop(t, sigterm)
			s.collector.stop(t, sigterm)
			s.collector.stderr.Await(t, soon, "stopped collecting")
		})
	}
}

func holds(line string, parts []string) bool {
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

// history returns a video's points. Its limit is 120 a minute.
func (s *stack) history(t *testing.T, v video) []point {
	t.Helper()
	var points []point
	a := call(t, http.MethodGet, s.base+"/videos/"+url.PathEscape(v.url)+"/history", s.token, nil)
	require.Equal(t, http.StatusOK, a.status, string(a.body))
	a.into(t, &points)
	return points
}
