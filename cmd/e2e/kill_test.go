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
	killRounds  = 10
	bulksAtOnce = 4
	linksABulk  = 25
)

// A bulk request that was answered is tracked, whatever dies then; one that was not is tracked as a whole or not at all.
// The number of answers after which everything is killed changes by the round, so that requests die at every stage, as
// do fetches of the rounds before.
func TestKill_losesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := startStack(t, engine)
			all := append(s.videos(t, link.TikTok, killRounds*bulksAtOnce*linksABulk/2, 3), s.videos(t, link.YouTube, killRounds*bulksAtOnce*linksABulk/2, 3)...)
			bulks := make([][]video, killRounds*bulksAtOnce)
			for i, v := range all { // mixed: every bulk has both platforms
				bulks[i%len(bulks)] = append(bulks[i%len(bulks)], v)
			}
			acknowledged := map[string]bool{}
			for round := range killRounds {
				if round > 0 {
					s.startServer(t)
					s.startCollector(t)
				}
				for link := range s.killAmid(t, bulks[round*bulksAtOnce:(round+1)*bulksAtOnce], round%bulksAtOnce) {
					acknowledged[link] = true
				}
			}
			require.NotEmpty(t, acknowledged)

			s.startServer(t)
			s.startCollector(t)
			before := s.list(t)
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
				require.Contains(t, []int{0, len(b)}, n, "request %d was tracked in part", i)
			}
			require.NotEmpty(t, before)
			for _, v := range s.awaitNumbers(t, len(before), time.Minute) {
				require.Positive(t, *v.Views)
			}
			t.Logf("%d links acknowledged in %d requests, %d tracked", len(acknowledged), len(bulks), len(before))
		})
	}
}

// killAmid sends bulk requests all at once and kills server and collector when so many were answered. It returns the
// canonical links of the requests that were.
func (s *stack) killAmid(t *testing.T, bulks [][]video, answers int) map[string]bool {
	t.Helper()
	acknowledged := map[string]bool{}
	var mu sync.Mutex
	var requests sync.WaitGroup
	answered := make(chan struct{}, len(bulks))
	for _, b := range bulks {
		requests.Go(func() {
			a, err := try(t, http.MethodPost, s.base+"/videos/bulk", s.token, map[string]any{"links": urls(b)})
			if err == nil && a.status == http.StatusOK {
				var result bulkAnswer
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
	for range answers {
		<-answered
	}
	s.server.kill()
	s.collector.kill()
	requests.Wait()
	return acknowledged
}
