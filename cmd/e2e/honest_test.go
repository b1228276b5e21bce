package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

// honestKinds are the names of the kinds of requests that honest callers send. Honest callers are organisations that send normal requests, while
// another organisation tries to overload the server.
var honestKinds = []string{"one video", "100 videos", "track a video"}

// honestInterval is the time between two requests of the same kind. These requests can come from different honest callers.
const honestInterval = 50 * time.Millisecond

// honestOrganisations is the number of honest callers. With this number, each caller stays below the
// rate limit: 30 lists of videos in a minute.
const honestOrganisations = 48

// honestCallers sends normal requests for many small organisations at a fixed rate, while another organisation tries to overload the server.
type honestCallers struct {
	tokens []string
	videos []string // one video id for each organisation
	links  []string // link of each video in videos
	client *http.Client
}

// newHonestCallers creates the organisations that send normal requests. Each organisation gets 120 videos and a token.
func newHonestCallers(t *testing.T, s *stack) *honestCallers {
	t.Helper()
	h := &honestCallers{client: &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	t.Cleanup(h.client.CloseIdleConnections)
	st, err := store.Open(t.Context(), store.Options{URL: s.databaseURL(), Now: time.Now})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	for _, id := range s.seedOrganisations(t, "--orgs", fmt.Sprint(honestOrganisations), "--videos", "120", "--days", "3") {
		_, token, err := st.CreateToken(t.Context(), id, "Honest", []store.Scope{store.ScopeRead, store.ScopeWrite}, 0)
		require.NoError(t, err)
		page, err := st.Org(id).ListVideos(t.Context(), store.VideoQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 1}})
		require.NoError(t, err)
		require.Len(t, page.Rows, 1)
		h.tokens = append(h.tokens, token)
		h.videos = append(h.videos, page.Rows[0].ID.String())
		h.links = append(h.links, page.Rows[0].Link)
	}
	return h
}

// timing is the duration and the result of one normal request. At the same time, another organisation may try to overload the server.
type timing struct {
	kind     int       // index into honestKinds
	at       time.Time // when the request was sent
	duration time.Duration
	fail     string // error text, or the status if it is not 200; "" if the request succeeded
}

// sendRequests sends requests of all honestKinds until ctx ends, and returns their timings. The rate
// is fixed: a request does not wait for earlier responses.
func (h *honestCallers) sendRequests(ctx context.Context, baseURL string) []timing {
	var mu sync.Mutex
	var all []timing
	var callers sync.WaitGroup
	defer func() { callers.Wait() }()
	ticks := time.NewTicker(honestInterval)
	defer ticks.Stop()
	for round := 0; ; round++ {
		select {
		case <-ctx.Done():
			callers.Wait()
			return all
		case <-ticks.C:
		}
		for kind := range honestKinds {
			callers.Go(func() {
				response := h.sendRequest(context.WithoutCancel(ctx), baseURL, kind, round%len(h.tokens))
				mu.Lock()
				defer mu.Unlock()
				all = append(all, response)
			})
		}
	}
}

// sendRequest sends one request. kindIndex is an index into honestKinds, and organisationIndex is an index into h.tokens.
func (h *honestCallers) sendRequest(ctx context.Context, base string, kindIndex, organisationIndex int) timing {
	method, path, body := http.MethodGet, "/videos/"+h.videos[organisationIndex], []byte(nil)
	switch kindIndex {
	case 1:
		path = "/videos?limit=100"
	case 2:
		method, path, body = http.MethodPost, "/videos", fmt.Appendf(nil, `{"link":%q}`, h.links[organisationIndex])
	}
	out := timing{kind: kindIndex, at: time.Now()}
	r, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		out.fail = err.Error()
		return out
	}
	r.Header.Set("Authorization", "Bearer "+h.tokens[organisationIndex])
	r.Header.Set("Content-Type", "application/json")
	res, err := h.client.Do(r)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	out.duration = time.Since(out.at)
	switch {
	case err != nil:
		out.fail = err.Error()
	case res.StatusCode != http.StatusOK:
		out.fail = res.Status
	}
	return out
}

// countFailures counts the failed requests in timings by the reason of the failure.
func countFailures(timings []timing) map[string]int {
	out := map[string]int{}
	for _, a := range timings {
		if a.fail != "" {
			out[a.fail]++
		}
	}
	return out
}

// percentile returns a percentile of the durations, or 0 if there are none. kindIndex selects one kind
// of requests; -1 selects all requests.
func percentile(timings []timing, kindIndex int, percent float64) time.Duration {
	var duration []time.Duration
	for _, a := range timings {
		if kindIndex < 0 || a.kind == kindIndex {
			duration = append(duration, a.duration)
		}
	}
	if len(duration) == 0 {
		return 0
	}
	slices.Sort(duration)
	return duration[min(len(duration)-1, int(float64(len(duration))*percent/100))]
}

// median returns the middle value of the sorted durations. If there are two middle values, it returns the higher one.
func median(durations []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[len(sorted)/2]
}
