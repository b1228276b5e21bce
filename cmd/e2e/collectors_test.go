package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
)

const sigterm = syscall.SIGTERM

// Two collectors use one PostgreSQL database, in which 5,000 videos are due. Each video must be fetched once, by one of the two collectors.
func TestCollectors_fetchEachVideoOnce(t *testing.T) {
	t.Parallel()
	s := startStack(t, "postgres")
	s.collector.stop(t, sigterm)
	const youtube, tiktok, bulk = 4500, 500, 50
	videos := append(s.publicVideos(t, link.YouTube, youtube, 4), s.publicVideos(t, link.TikTok, tiktok, 4)...)
	for chunk := range slices.Chunk(videos, bulk) {
		a, b := s.trackLinks(t, videoLinks(chunk))
		require.Equal(t, http.StatusOK, a.status, string(a.body))
		require.True(t, b.TrackingEnqueued)
	}
	require.Equal(t, http.StatusNoContent, requireResponse(t, http.MethodDelete, s.control+"calls", "", nil).status)
	first, second := s.startCollector(t), s.startCollector(t)
	s.awaitNumbers(t, youtube+tiktok, 6*time.Minute)

	times := map[string]int{}
	for _, source := range []string{"tiktok", "youtube"} {
		for _, batch := range s.receivedBatches(t, source) {
			for _, id := range batch {
				times[id]++
			}
		}
	}
	for _, v := range videos {
		require.Equal(t, 1, times[v.ID], "the collectors must fetch %s once", v.ID)
	}
	for _, c := range []*process{first, second} {
		require.Positive(t, strings.Count(c.stderr.String(), `"msg":"fetched"`), "both collectors must fetch videos")
		c.stop(t, sigterm)
	}
}
