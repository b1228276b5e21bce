package monitor

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/queue"
)

// The two reads of a request share one timeout. The test uses a fake clock, because the result of the first request is cached for five seconds.
func TestMonitor_respondsInTimeIfTheDatabaseHangsAfterTheFirstRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := false
		read := func(ctx context.Context) error {
			if hangs {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		m := &Monitor{logger: slog.New(slog.DiscardHandler)}
		m.status.read = func(ctx context.Context) (Status, error) { return Status{Collectors: 3}, read(ctx) }
		m.fetches.read = func(ctx context.Context) ([]queue.LastFetches, error) { return nil, read(ctx) }
		get := func() (duration time.Duration) {
			start := time.Now()
			response := httptest.NewRecorder()
			m.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/status", nil))
			require.Equal(t, http.StatusOK, response.Code)
			require.Contains(t, response.Body.String(), `"collectors": 3`)
			return time.Since(start)
		}
		require.Zero(t, get())
		hangs = true
		<-time.After(minCacheTime)
		require.Equal(t, responseTimeout, get())
		<-time.After(readTimeout) // until the reads have ended
	})
}

// A read takes longer than a client waits, or longer than the server waits.
func TestMonitor_saysThatTheFirstReadTakesLongUnlessTheClientHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := &Monitor{logger: slog.New(slog.NewTextHandler(&log, nil))}
		m.status.read = func(ctx context.Context) (Status, error) { <-ctx.Done(); return Status{}, ctx.Err() }
		m.fetches.read = func(context.Context) ([]queue.LastFetches, error) { return nil, nil }
		get := func(ctx context.Context) *httptest.ResponseRecorder {
			response := httptest.NewRecorder()
			m.ServeHTTP(response, httptest.NewRequestWithContext(ctx, http.MethodGet, "/status", nil))
			return response
		}
		impatient, leave := context.WithTimeout(t.Context(), responseTimeout/2)
		defer leave()
		require.Empty(t, get(impatient).Body.String())
		require.Empty(t, log.String(), "a client that has left is no error")

		response := get(t.Context())
		require.Equal(t, http.StatusServiceUnavailable, response.Code)
		require.Equal(t, "the state of the queue is still being read for the first time, or the database does not answer; try again in a few seconds\n", response.Body.String())
		require.Contains(t, log.String(), "level=ERROR")
		<-time.After(readTimeout) // until the reads have ended
	})
}
