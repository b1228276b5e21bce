package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// blockingResolver is a resolver of short links. Each call of Resolve waits until the channel
// "release" is closed. A fifth concurrent call panics.
type blockingResolver struct {
	running atomic.Int64
	started chan struct{} // receives a value when a call of Resolve starts
	release chan struct{} // closing this channel ends all calls of Resolve
}

func (r *blockingResolver) Resolve(ctx context.Context, _ link.Link) (link.Link, error) {
	if r.running.Add(1) > 4 {
		panic("more than four concurrent requests")
	}
	defer r.running.Add(-1)
	r.started <- struct{}{}
	select {
	case <-r.release:
	case <-ctx.Done():
	}
	return link.Link{}, errors.New("blockingResolver resolves no short link")
}

func TestInFlight_limitsConcurrentRequestsPerOrganisation(t *testing.T) {
	t.Parallel()
	const maxConcurrent, requests = 4, 12
	resolver := &blockingResolver{started: make(chan struct{}, requests), release: make(chan struct{})}
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.Resolver = resolver })
	limitedCaller, other := a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)
	var requestsDone sync.WaitGroup
	for i := range requests {
		requestsDone.Go(func() {
			body := map[string]any{"link": fmt.Sprintf("https://vm.tiktok.com/inflight%d/", i)}
			got, err := a.exchange(t, http.MethodPost, "/videos", body, "Authorization", "Bearer "+limitedCaller.token)
			if err != nil || got.StatusCode == http.StatusOK {
				t.Errorf("POST /videos with a short link that cannot be resolved must fail, but got status %d and error %v", got.StatusCode, err)
			}
		})
	}
	for range maxConcurrent {
		<-resolver.started
	}
	other.listVideos("") // another organisation gets a response, although all requests of limitedCaller are waiting
	close(resolver.release)
	requestsDone.Wait()
	require.NotContains(t, a.log.String(), "more than four concurrent requests")
}
