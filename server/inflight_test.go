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

// heldResolver keeps each call until it is let go, and counts them.
type heldResolver struct {
	running atomic.Int64
	started chan struct{} // one entry for each call
	letGo   chan struct{}
}

func (r *heldResolver) Resolve(ctx context.Context, _ link.Link) (link.Link, error) {
	if r.running.Add(1) > 4 {
		panic("more than four requests at once")
	}
	defer r.running.Add(-1)
	r.started <- struct{}{}
	select {
	case <-r.letGo:
	case <-ctx.Done():
	}
	return link.Link{}, errors.New("not resolved")
}

func TestInFlight_limitsEachOrganisationSeparately(t *testing.T) {
	t.Parallel()
	const atOnce, requests = 4, 12
	resolver := &heldResolver{started: make(chan struct{}, requests), letGo: make(chan struct{})}
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.Resolver = resolver })
	busy, other := a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)
	var sent sync.WaitGroup
	for i := range requests {
		sent.Go(func() {
			body := map[string]any{"link": fmt.Sprintf("https://vm.tiktok.com/inflight%d/", i)}
			got, err := a.exchange(t, http.MethodPost, "/videos", body, "Authorization", "Bearer "+busy.token)
			if err != nil || got.StatusCode == http.StatusOK {
				t.Errorf("status %d, error %v", got.StatusCode, err)
			}
		})
	}
	for range atOnce {
		<-resolver.started
	}
	other.list("") // is answered while the other organisation's requests wait
	close(resolver.letGo)
	sent.Wait()
	require.NotContains(t, a.log.String(), "more than four requests at once")
}
