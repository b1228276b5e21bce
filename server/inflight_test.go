package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// blockingResolver is a resolver of short links. Each call of Resolve waits until the channel
// "release" is closed or the context of the call ends. A fifth concurrent call panics.
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

func TestInFlight_sharePagesHaveTheirOwnLimit(t *testing.T) {
	t.Parallel()
	resolver := &blockingResolver{started: make(chan struct{}, 4), release: make(chan struct{})}
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.Resolver = resolver })
	c := a.newCaller(t, store.TierPremium)
	path := c.shareCollection(c.createNamedCollection("Launch"), "public", nil)
	visitor := &visitor{app: a, t: t}

	var releases []func()
	for range 2 {
		release, err := a.server.AcquireShareSlot(t.Context(), c.org.ID)
		require.NoError(t, err)
		releases = append(releases, release)
	}
	c.listVideos("") // the programs of the organisation get responses, although its share pages use all their slots
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.http.URL+path, http.NoBody)
	require.NoError(t, err)
	response, err := a.http.Client().Do(r)
	if err == nil {
		require.NoError(t, response.Body.Close())
	}
	require.ErrorIs(t, err, context.DeadlineExceeded, "a third request of share pages must wait")
	for _, release := range releases {
		release()
	}

	var requestsDone sync.WaitGroup
	for i := range 4 {
		requestsDone.Go(func() {
			_, err := c.exchange(http.MethodPost, "/videos", map[string]any{"link": fmt.Sprintf("https://vm.tiktok.com/inflight%d/", i)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 4 {
		<-resolver.started
	}
	visitor.visit(path).requireStatus(http.StatusOK) // the share page opens, although the programs of the organisation use all their slots
	close(resolver.release)
	requestsDone.Wait()
}

// TestInFlight_oneOrganisationCannotUseAllConnectionsForReads holds as many connections as all concurrent requests of one organisation need. A
// request of another organisation must get a connection.
func TestInFlight_oneOrganisationCannotUseAllConnectionsForReads(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		other := a.newCaller(t, store.TierPremium)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for range server.MaxConcurrentRequests {
			rows, err := a.server.Store().DB().Read(ctx).Raw("SELECT 1").Rows() // the rows hold a connection until they are closed
			require.NoError(t, err)
			defer func() { require.NoError(t, errors.Join(rows.Err(), rows.Close())) }()
		}
		got, err := a.exchange(t, http.MethodGet, "/videos", nil, "Authorization", "Bearer "+other.token)
		require.NoError(t, err)
		got.requireStatus(http.StatusOK)
	})
}

// TestInFlight_pagesTakeOneSlotAtATimeForTheirReads requires that a page takes a slot when it reads from the store without the API. The page must not
// hold this slot while its API requests wait for slots.
func TestInFlight_pagesTakeOneSlotAtATimeForTheirReads(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Launch")
		c.addVideos(collection, c.track(videoURL(1)))
		c.shareCollection(collection, "public", nil)
		v := c.newSignedInVisitor(t)
		for range 3 { // one of the four slots stays free
			release, err := a.server.AcquireSlot(t.Context(), c.org.ID)
			require.NoError(t, err)
			defer release()
		}
		for path, statement := range map[string]string{
			"/collection":                        "latest_views", // the sums of all collections
			"/collection/" + collection.String(): "share_pages",  // the last visit of the share page
		} {
			used := 0
			a.Guard.BeforeStatement(statement, func() { used = a.server.UsedSlots(c.org.ID) })
			v.visit(path).requireStatus(http.StatusOK)
			require.Equal(t, 4, used, path)
		}
	})
}

// blockingWriter is the http.ResponseWriter of a caller who does not read the response: Write waits until the channel release is closed.
type blockingWriter struct {
	*httptest.ResponseRecorder
	writing chan<- struct{} // receives a value when a call of Write starts
	release <-chan struct{}
}

func (w blockingWriter) Write(b []byte) (int, error) {
	w.writing <- struct{}{}
	<-w.release
	return w.ResponseRecorder.Write(b)
}

func TestInFlight_slowCallersDelayNoOtherRequestsOfTheOrganisation(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	const maxWorking, maxOpen = 4, 12
	writing, release := make(chan struct{}, maxOpen), make(chan struct{})
	var requestsDone sync.WaitGroup
	serve := func(w http.ResponseWriter, method string, body io.Reader) {
		r := httptest.NewRequestWithContext(t.Context(), method, "/videos", body)
		r.Header.Set("Authorization", "Bearer "+c.token)
		requestsDone.Go(func() { a.server.Handler().ServeHTTP(w, r) })
	}
	for range maxWorking {
		serve(blockingWriter{httptest.NewRecorder(), writing, release}, http.MethodGet, http.NoBody)
		<-writing
	}
	c.listVideos("") // gets a response, although four callers do not read theirs
	var bodies []*io.PipeWriter
	for range maxOpen - maxWorking {
		body, sender := io.Pipe()
		serve(httptest.NewRecorder(), http.MethodPost, body)
		_, err := sender.Write([]byte("{")) // returns after the server has read the byte
		require.NoError(t, err)
		if bodies = append(bodies, sender); len(bodies) == maxWorking {
			c.listVideos("") // gets a response, although four callers have sent only a part of their body
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.http.URL+"/videos", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+c.token)
	response, err := a.http.Client().Do(r)
	if err == nil {
		require.NoError(t, response.Body.Close())
	}
	require.ErrorIs(t, err, context.DeadlineExceeded, "a thirteenth open request must wait")
	for _, sender := range bodies {
		require.NoError(t, sender.Close())
	}
	close(release)
	requestsDone.Wait()
	c.listVideos("")
}
