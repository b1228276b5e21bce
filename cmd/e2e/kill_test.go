package e2e_test

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

const (
	killRounds    = 10
	bulksPerRound = 4
	linksPerBulk  = 25
)

// TestKill_killedServerLosesAndDuplicatesNoLinks kills server and collector during bulk requests. Acknowledged links must be tracked, and no
// request may have tracked only some of its links.
func TestKill_killedServerLosesAndDuplicatesNoLinks(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, engine := range storetest.StoreEngines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := startStack(t, engine)
			all := append(s.publicVideos(t, link.TikTok, killRounds*bulksPerRound*linksPerBulk/2, 3), s.publicVideos(t, link.YouTube, killRounds*bulksPerRound*linksPerBulk/2, 3)...)
			bulks := make([][]video, killRounds*bulksPerRound)
			for i, v := range all { // each bulk request has videos of TikTok and of YouTube
				bulks[i%len(bulks)] = append(bulks[i%len(bulks)], v)
			}
			acknowledged := map[string]bool{}
			for round := range killRounds {
				if round > 0 {
					s.startServer(t)
					s.startCollector(t)
				}
				// Each round kills the processes after a different number of responses, so that the kills hit different stages of requests and
				// fetches.
				for link := range s.killDuringRequests(t, bulks[round*bulksPerRound:(round+1)*bulksPerRound], round%bulksPerRound) {
					acknowledged[link] = true
				}
			}
			require.NotEmpty(t, acknowledged)

			s.startServer(t)
			s.startCollector(t)
			before := s.listVideos(t)
			times := map[string]int{}
			for _, v := range before {
				times[v.Link]++
			}
			for link := range acknowledged {
				require.Equal(t, 1, times[link], link)
			}
			for i, b := range bulks {
				n := 0
				for _, v := range b {
					require.LessOrEqual(t, times[v.Canonical], 1, v.Canonical)
					n += times[v.Canonical]
				}
				require.Contains(t, []int{0, len(b)}, n, "the server must track all or none of the links of request %d", i)
			}
			require.NotEmpty(t, before)
			for _, v := range s.awaitNumbers(t, len(before), 3*time.Minute) {
				require.Positive(t, *v.Views)
			}
			t.Logf("%d links acknowledged in %d requests, %d tracked", len(acknowledged), len(bulks), len(before))
		})
	}
}

// killDuringRequests sends bulk requests concurrently and kills server and collector after the given number of responses. It returns the
// canonical links of the requests that got a successful response.
func (s *stack) killDuringRequests(t *testing.T, bulks [][]video, responses int) map[string]bool {
	t.Helper()
	acknowledged := map[string]bool{}
	var mu sync.Mutex
	var requests sync.WaitGroup
	answered := make(chan struct{}, len(bulks))
	for _, b := range bulks {
		requests.Go(func() {
			a, err := sendJSON(t, http.MethodPost, s.base+"/videos/bulk", s.token, map[string]any{"links": videoLinks(b)})
			if err == nil && a.status == http.StatusOK {
				var result bulkResponse
				if json.Unmarshal(a.body, &result) == nil && result.Success {
					mu.Lock()
					for _, v := range b {
						acknowledged[v.Canonical] = true
					}
					mu.Unlock()
				}
			}
			answered <- struct{}{}
		})
	}
	for range responses {
		<-answered
	}
	s.server.kill()
	s.collector.kill()
	requests.Wait()
	return acknowledged
}
