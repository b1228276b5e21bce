package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

const (
	shortTimeout = 500 * time.Millisecond // request timeout of the server in these tests
	maxWait      = 8 * time.Second        // maximum response time; a test fails if a response takes longer
)

// newAppWithShortTimeout starts a server whose request timeout is shortTimeout.
func newAppWithShortTimeout(t *testing.T, engine string) *app {
	t.Helper()
	return newApp(t, storetest.New(t, engine), func(o *server.Options) { o.RequestTimeout = shortTimeout })
}

// blockDatabase makes database statements wait until the test ends or release is called. On SQLite,
// only writes wait. On PostgreSQL, only statements that use the table videos wait.
func (a *app) blockDatabase(t *testing.T) (release func()) {
	t.Helper()
	tx, err := a.Raw(t).BeginTx(t.Context(), nil) // on SQLite, the statement BEGIN already takes the write lock
	require.NoError(t, err)
	if a.Engine == "postgres" {
		_, err = tx.ExecContext(t.Context(), "LOCK TABLE videos IN ACCESS EXCLUSIVE MODE")
		require.NoError(t, err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return func() { require.NoError(t, tx.Rollback()) }
}

// sendWithinMaxWait sends a request and returns the response. If the response takes longer than maxWait, it fails the test.
func (c *caller) sendWithinMaxWait(method, target string, body any, headers ...string) response {
	c.t.Helper()
	done := make(chan response, 1)
	failed := make(chan error, 1)
	go func() {
		got, err := c.exchange(method, target, body, headers...)
		if err != nil {
			failed <- err
			return
		}
		done <- got
	}()
	select {
	case got := <-done:
		return got
	case err := <-failed:
		require.NoError(c.t, err)
	case <-time.After(maxWait):
		require.Fail(c.t, "no response", "%s %s got no response within %s", method, target, maxWait)
	}
	return response{}
}

func TestDeadline_requestGets503IfTheDatabaseIsBlocked(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			a := newAppWithShortTimeout(t, engine)
			c := a.newCaller(t, store.TierPremium)
			c.track(tiktokLink)
			release := a.blockDatabase(t)
			got := c.sendWithinMaxWait(http.MethodPost, "/videos", map[string]any{"link": videoURL(2)})
			got.requireProblem(http.StatusServiceUnavailable, server.CodeUnavailable)
			require.Equal(t, "5", got.Header.Get("Retry-After"))
			c.sendWithinMaxWait(http.MethodPost, "/videos", map[string]any{"link": videoURL(2)}, "Idempotency-Key", "k").
				requireProblem(http.StatusServiceUnavailable, server.CodeUnavailable)
			if engine == "postgres" {
				c.sendWithinMaxWait(http.MethodGet, "/videos", nil).requireProblem(http.StatusServiceUnavailable, server.CodeUnavailable)
			}
			release()
			c.sendWithinMaxWait(http.MethodPost, "/videos", map[string]any{"link": videoURL(2)}, "Idempotency-Key", "k").requireStatus(http.StatusOK)
			require.Len(t, c.listVideos("").Data, 2)
		})
	}
}

// TestDeadline_requestGets503IfNoDatabaseConnectionIsFree uses a pool with one database connection. While one request uses the connection,
// a second request must get 503 within maxWait.
func TestDeadline_requestGets503IfNoDatabaseConnectionIsFree(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	single, err := store.Open(t.Context(), store.Options{URL: db.URL + "&pool_max_conns=1", Now: db.Clock.Now, Timeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, single.Close()) })
	a := newApp(t, db, func(o *server.Options) { o.Store = single })
	c := a.newCaller(t, store.TierPremium)
	c.listVideos("")
	release := a.blockDatabase(t)
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		_, _ = c.exchange(http.MethodGet, "/videos", nil)
	}()
	require.Eventually(t, func() bool {
		return storetest.Column[int64](t, db, "SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE NOT granted AND datname = current_database()")[0] > 0
	}, maxWait, 5*time.Millisecond)
	c.sendWithinMaxWait(http.MethodGet, "/collections", nil).requireProblem(http.StatusServiceUnavailable, server.CodeUnavailable)
	release()
	<-blocked
}

func TestDeadline_disconnectedCallerIsNotLoggedAsAnError(t *testing.T) {
	t.Parallel()
	a := newApp(t, storetest.New(t, "postgres"))
	c := a.newCaller(t, store.TierPremium)
	c.listVideos("")
	a.blockDatabase(t)
	ctx, cancel := context.WithCancel(t.Context())
	a.Guard.BeforeStatement("FROM", cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.http.URL+"/videos", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+c.token)
	_, err = a.newContractCheckingClient().Do(r)
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool { return strings.Count(a.log.String(), `"route":"/videos"`) == 2 }, maxWait, 5*time.Millisecond)
	require.NotContains(t, a.log.String(), `"level":"ERROR"`)
}

// TestReadyz_doesNotWaitForTheWriteConnection sends GET /readyz while a transaction holds the only write connection of SQLite. The response
// must not wait until the transaction ends.
func TestReadyz_doesNotWaitForTheWriteConnection(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.listVideos("")
	var during response
	a.Guard.BeforeStatement("INSERT", func() { during = a.send(t, http.MethodGet, "/readyz", nil) }) // the function runs during the write transaction, before the first INSERT
	c.track(tiktokLink)
	during.requireStatus(http.StatusOK)
}
