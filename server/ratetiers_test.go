package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// limitPerTier contains the rate limit of an operation for each tier, in requests per minute.
type limitPerTier struct{ limited, basic, premium int }

// forTier returns the rate limit for a tier, in requests per minute.
func (m limitPerTier) forTier(t store.Tier) int {
	return map[store.Tier]int{store.TierLimited: m.limited, store.TierBasic: m.basic, store.TierPremium: m.premium}[t]
}

// specifiedLimits contains the expected rate limits, by method and path. The limits are not read
// from openapi.yaml, so that the tests find errors in openapi.yaml.
var specifiedLimits = map[string]limitPerTier{
	// The following limits are in the first row of the table in section 8 of the specification.
	"GET /collections":                             {5, 15, 30},
	"POST /collections":                            {5, 15, 30},
	"GET /collections/{collection_id}":             {5, 15, 30},
	"PATCH /collections/{collection_id}":           {5, 15, 30},
	"DELETE /collections/{collection_id}":          {5, 15, 30},
	"GET /collections/{collection_id}/videos":      {5, 15, 30},
	"POST /collections/{collection_id}/videos":     {5, 15, 30},
	"DELETE /collections/{collection_id}/videos":   {5, 15, 30},
	"GET /collections/{collection_id}/accounts":    {5, 15, 30},
	"POST /collections/{collection_id}/accounts":   {5, 15, 30},
	"DELETE /collections/{collection_id}/accounts": {5, 15, 30},
	"GET /videos":                       {5, 15, 30},
	"GET /videos/{ad_id}":               {5, 15, 30},
	"GET /accounts/{account_id}/videos": {5, 15, 30},

	// The following limits are in the second row of the table in section 8 of the specification.
	"POST /videos":                {5, 15, 120},
	"DELETE /videos":              {5, 15, 120},
	"POST /videos/bulk":           {5, 15, 120},
	"DELETE /videos/bulk":         {5, 15, 120},
	"DELETE /videos/{ad_id}":      {5, 15, 120},
	"GET /videos/{ad_id}/history": {5, 15, 120},

	// The following operations are additions to the specification.
	"GET /accounts":                      {5, 15, 30},
	"GET /accounts/{account_id}":         {5, 15, 30},
	"GET /statistics/videos":             {5, 15, 30},
	"GET /statistics/accounts":           {5, 15, 30},
	"POST /refresh/videos":               {5, 15, 30},
	"POST /refresh/accounts":             {5, 15, 30},
	"POST /accounts":                     {5, 15, 120},
	"DELETE /accounts":                   {5, 15, 120},
	"DELETE /accounts/{account_id}":      {5, 15, 120},
	"POST /accounts/bulk":                {5, 15, 120},
	"DELETE /accounts/bulk":              {5, 15, 120},
	"GET /accounts/{account_id}/history": {5, 15, 120},
	"GET /organisation/history":          {5, 15, 120},
	"GET /history/export":                {5, 15, 120},
	"GET /authenticate":                  {60, 60, 120},

	// The following operations of collections are also additions to the specification. They have the same limits as the other operations of
	// collections.
	"GET /collections/{collection_id}/history":    {5, 15, 30},
	"GET /collections/{collection_id}/statistics": {5, 15, 30},
	"GET /collections/{collection_id}/reports":    {5, 15, 30},
	"POST /collections/{collection_id}/reports":   {5, 15, 30},
	"GET /reports/{report_id}":                    {5, 15, 30},
	"PATCH /reports/{report_id}":                  {5, 15, 30},

	// The following operations are not in the specification either. GET operations have the same limits as GET /accounts. All other
	// operations have the same limits as POST /accounts.
	"GET /tokens":               {5, 15, 30},
	"POST /tokens":              {5, 15, 120},
	"DELETE /tokens/{token_id}": {5, 15, 120},

	"GET /events":                                                 {5, 15, 30},
	"GET /webhooks":                                               {5, 15, 30},
	"POST /webhooks":                                              {5, 15, 120},
	"GET /webhooks/{webhook_id}":                                  {5, 15, 30},
	"PATCH /webhooks/{webhook_id}":                                {5, 15, 120},
	"DELETE /webhooks/{webhook_id}":                               {5, 15, 120},
	"POST /webhooks/{webhook_id}/test":                            {5, 15, 120},
	"POST /webhooks/{webhook_id}/rotate-secret":                   {5, 15, 120},
	"GET /webhooks/{webhook_id}/deliveries":                       {5, 15, 30},
	"POST /webhooks/{webhook_id}/deliveries/{delivery_id}/replay": {5, 15, 120},
}

func TestRateLimit_isSpecifiedForEveryOperation(t *testing.T) {
	t.Parallel()
	var declared, decided []string
	for _, op := range sharedContract().operations {
		declared = append(declared, op.Method+" "+op.Path)
	}
	for name := range specifiedLimits {
		decided = append(decided, name)
	}
	require.ElementsMatch(t, decided, declared)
}

// pipeListener is a net.Listener whose connections are pipes in memory. If they were real sockets,
// the clock of a synctest bubble would not advance.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (w *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *pipeListener) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

func (w *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// dial returns a connection to the listener. It ignores the network and the address.
func (w *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	clientConn, serverConn := net.Pipe()
	select {
	case w.conns <- serverConn:
		return clientConn, nil
	case <-w.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inSynctestBubble calls runTest in a synctest bubble, with a server that counts requests in memory. runTest gets a function that advances
// the clock of the bubble without real waiting.
func inSynctestBubble(t *testing.T, runTest func(t *testing.T, a *app, wait func(time.Duration))) {
	t.Helper()
	rates := server.NewMemoryRateStore() // the store is created outside of the synctest bubble, because its cleaning goroutine never ends
	now := time.Now()
	synctest.Test(t, func(t *testing.T) {
		// Set the clock of the bubble to a year after the real time. The goroutine that deletes expired counts uses the real clock, so it deletes no
		// count of the test.
		<-time.After(time.Until(now.AddDate(1, 0, 0)))
		a := buildApp(t, newSQLite(t), "http://127.0.0.1:1", func(o *server.Options) { o.RateStore = rates })
		w := newPipeListener()
		s := &httptest.Server{Listener: w, Config: &http.Server{Handler: a.server.Handler(), ReadHeaderTimeout: time.Hour}}
		a.serve(s)
		s.Client().Transport = &http.Transport{DialContext: w.dial}
		t.Cleanup(s.Client().CloseIdleConnections)
		runTest(t, a, func(d time.Duration) { <-time.After(d) })
	})
}

// TestEveryOperation_returns429AfterTheLimitOfTheTier sends as many requests to each operation as the tier allows in a minute. The next
// request must get 429.
//
// Requirements in docs/coverage.md: 4-02, 5-02, 8-01, 8-02, 8-13
func TestEveryOperation_returns429AfterTheLimitOfTheTier(t *testing.T) {
	t.Parallel()
	for _, op := range sharedContract().operations {
		t.Run(op.id, func(t *testing.T) {
			t.Parallel()
			target, body := exampleRequest(t, op)
			inSynctestBubble(t, func(t *testing.T, a *app, wait func(time.Duration)) {
				for _, tier := range store.Tiers {
					c, limit := a.newCaller(t, tier), specifiedLimits[op.Method+" "+op.Path].forTier(tier)
					require.Positive(t, limit)
					for left := limit - 1; left >= 0; left-- {
						got := c.send(op.Method, target, body)
						require.NotEqual(t, http.StatusTooManyRequests, got.StatusCode, "the status must not be 429 in tier %s while %d of %d requests remain", tier, left, limit)
						requireRateLimitHeaders(t, got, op.id, limit, left)
						if left == limit/2 {
							wait(20 * time.Second)
						}
					}
					last := c.send(op.Method, target, body)
					p := last.requireProblem(http.StatusTooManyRequests, server.CodeRateLimited)
					require.Contains(t, p.Detail, fmt.Sprintf("%s may be called %d times a minute", op.id, limit))
					requireRateLimitHeaders(t, last, op.id, limit, 0)
					retry := headerNumber(t, last, "Retry-After")
					require.Equal(t, headerNumber(t, last, "RateLimit-Reset"), retry)
					require.InDelta(t, 40, retry, 1, "Retry-After must be about 40, because the window of 60 seconds started 20 seconds ago")

					wait(time.Duration(retry-2) * time.Second)
					c.send(op.Method, target, body).requireProblem(http.StatusTooManyRequests, server.CodeRateLimited)
					wait(2 * time.Second)
					again := c.send(op.Method, target, body)
					require.NotEqual(t, http.StatusTooManyRequests, again.StatusCode)
					requireRateLimitHeaders(t, again, op.id, limit, limit-1)
					require.Equal(t, 60, headerNumber(t, again, "RateLimit-Reset"))
				}
			})
		})
	}
}

// requireRateLimitHeaders requires that the response has the RateLimit headers. These headers must
// contain the values of the parameters operation, limit and remaining.
func requireRateLimitHeaders(t *testing.T, a response, operation string, limit, remaining int) {
	t.Helper()
	reset := headerNumber(t, a, "RateLimit-Reset")
	require.GreaterOrEqual(t, reset, 1)
	require.LessOrEqual(t, reset, 60)
	require.Equal(t, limit, headerNumber(t, a, "RateLimit-Limit"))
	require.Equal(t, remaining, headerNumber(t, a, "RateLimit-Remaining"))
	require.Equal(t, fmt.Sprintf("%q;r=%d;t=%d", operation, remaining, reset), a.Header.Get("RateLimit"))
	require.Equal(t, fmt.Sprintf("%q;q=%d;w=60", operation, limit), a.Header.Get("RateLimit-Policy"))
	require.Equal(t, a.StatusCode == http.StatusTooManyRequests, a.Header.Get("Retry-After") != "")
}

// TestRateLimit_countsEveryResponseExcept304 sends valid and invalid requests with a token. Each
// response must have RateLimit headers, and must count unless its status is 304.
func TestRateLimit_countsEveryResponseExcept304(t *testing.T) {
	t.Parallel()
	inSynctestBubble(t, func(t *testing.T, a *app, _ func(time.Duration)) {
		c := a.newCaller(t, store.TierBasic)
		writer := a.newToken(t, c.org, store.ScopeWrite)
		tag := c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
		requireRateLimitHeaders(t, tag, "listVideos", 15, 14)
		left := 14
		counted := func(got response, status int) {
			t.Helper()
			left--
			requireRateLimitHeaders(t, got.requireStatus(status), "listVideos", 15, left)
		}
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodGet} { // responses with status 304 do not count towards the limit
			unchanged := c.send(method, "/videos", nil, "If-None-Match", tag.Header.Get("ETag"))
			requireRateLimitHeaders(t, unchanged.requireStatus(http.StatusNotModified), "listVideos", 15, left)
		}
		for range 4*15 - 3 {
			c.send(http.MethodGet, "/videos", nil, "If-None-Match", tag.Header.Get("ETag")).requireStatus(http.StatusNotModified)
		}
		refused := c.send(http.MethodGet, "/videos", nil, "If-None-Match", tag.Header.Get("ETag")).requireStatus(http.StatusTooManyRequests)
		requireRateLimitHeaders(t, refused, "listVideos_304", 4*15, 0) // the headers describe the exceeded limit, and the request does not count towards the other limit
		counted(c.send(http.MethodHead, "/videos", nil), http.StatusOK)
		counted(c.send(http.MethodGet, "/videos?limit=0", nil), http.StatusBadRequest)
		counted(c.send(http.MethodGet, "/videos?colour=red", nil), http.StatusBadRequest)
		counted(c.send(http.MethodGet, "/videos?cursor=nonsense", nil), http.StatusBadRequest)
		counted(writer.send(http.MethodGet, "/videos", nil), http.StatusForbidden)
		broken := errors.New("the database is broken")
		a.databaseError.Store(&broken) // the token is cached, so the server can still authenticate the request
		counted(c.send(http.MethodGet, "/videos", nil), http.StatusInternalServerError)
		a.databaseError.Store(nil)
		// A request without a token does not count towards the limit of an organisation, and its response has no rate limit headers.
		anonymous := a.send(t, http.MethodGet, "/videos", nil).requireStatus(http.StatusUnauthorized)
		require.Empty(t, anonymous.Header.Get("RateLimit-Remaining"))
		for left > 0 {
			counted(c.send(http.MethodGet, "/videos", nil), http.StatusOK)
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			requireRateLimitHeaders(t, c.send(method, "/videos", nil, "If-None-Match", tag.Header.Get("ETag")).requireStatus(http.StatusTooManyRequests), "listVideos", 15, 0)
		}
	})
	inSynctestBubble(t, func(t *testing.T, a *app, _ func(time.Duration)) {
		c := a.newCaller(t, store.TierLimited)
		track := func(body any, status, left int, headers ...string) {
			t.Helper()
			requireRateLimitHeaders(t, c.send(http.MethodPost, "/videos", body, headers...).requireStatus(status), "trackVideo", 5, left)
		}
		tiktok := map[string]any{"link": tiktokLink}
		track(`{"link": `, http.StatusBadRequest, 4)
		track(tiktok, http.StatusUnsupportedMediaType, 3, "Content-Type", "text/plain")
		track(strings.Repeat(" ", 2<<20)+"{}", http.StatusRequestEntityTooLarge, 2)
		track(tiktok, http.StatusOK, 1)
		track(tiktok, http.StatusOK, 0) // the request counts towards the limit, although the video is already tracked
		track(tiktok, http.StatusTooManyRequests, 0)
		// The operation getVideo has its own count. A request with an unknown id increases this count.
		got := c.send(http.MethodGet, "/videos/01938c32-8f07-7a46-93be-1d2c3b4a5968", nil)
		requireRateLimitHeaders(t, got.requireStatus(http.StatusNotFound), "getVideo", 5, 4)
	})
}
