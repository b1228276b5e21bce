package fetch_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "AIzaSy-secret/1"

// newEndpoint returns an endpoint for the test server with the given URL. The endpoint may connect to a private address, like any endpoint
// whose URL the operator configures.
func newEndpoint(t *testing.T, base string, o fetch.Options) *fetch.Endpoint {
	t.Helper()
	c := fetch.New(o)
	t.Cleanup(c.Close)
	e, err := c.Endpoint(base, "")
	require.NoError(t, err)
	return e
}

func startServer(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestClient_sendsRequestAndReturnsAnswer(t *testing.T) {
	t.Parallel()
	t.Run("sends the unchanged URL and the client's User-Agent", func(t *testing.T) {
		t.Parallel()
		seen := make(chan *http.Request, 1)
		base := startServer(t, func(w http.ResponseWriter, r *http.Request) {
			seen <- r
			w.Header().Set("ReelTally-Sandbox", "true")
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(`{}`))
		})
		res, err := newEndpoint(t, base, fetch.Options{}).Do(t.Context(), fetch.Request{
			URL:    base + "/v3/videos:batchGetStats?part=id,snippet&id=a,b&key=K",
			Header: http.Header{"x-api-key": {"K"}},
		})
		require.NoError(t, err)
		require.Equal(t, http.StatusTeapot, res.Status, "an answer with an error status must be returned without an error")
		require.Equal(t, `{}`, string(res.Body))
		require.True(t, res.Sandbox)

		r := <-seen
		require.Equal(t, "/v3/videos:batchGetStats?part=id,snippet&id=a,b&key=K", r.RequestURI)
		require.Equal(t, "ReelTally/dev (+https://github.com/reeltally/reeltally)", r.UserAgent())
		require.Equal(t, "gzip", r.Header.Get("Accept-Encoding"))
		require.Equal(t, "K", r.Header.Get("X-Api-Key"))
		require.Empty(t, r.Header.Get("Content-Type"))
	})
	t.Run("posts a body as JSON", func(t *testing.T) {
		t.Parallel()
		seen := make(chan string, 1)
		base := startServer(t, func(_ http.ResponseWriter, r *http.Request) {
			seen <- r.Method + " " + r.Header.Get("Content-Type")
		})
		_, err := newEndpoint(t, base, fetch.Options{}).Do(t.Context(), fetch.Request{Method: http.MethodPost, URL: base, Body: []byte(`{}`)})
		require.NoError(t, err)
		require.Equal(t, "POST application/json", <-seen)
	})
	t.Run("follows no redirect and keeps no cookie", func(t *testing.T) {
		t.Parallel()
		calls := make(chan string, 4)
		base := startServer(t, func(w http.ResponseWriter, r *http.Request) {
			calls <- r.URL.Path + r.Header.Get("Cookie")
			w.Header().Set("Set-Cookie", "a=b")
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		})
		c := newEndpoint(t, base, fetch.Options{})
		for range 2 {
			res, err := c.Do(t.Context(), fetch.Request{URL: base + "/here"})
			require.NoError(t, err)
			require.Equal(t, http.StatusFound, res.Status)
		}
		close(calls)
		for call := range calls {
			require.Equal(t, "/here", call)
		}
	})
}

func TestClient_spendsOneBudgetUnitPerRequest(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	base := startServer(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	e := newEndpoint(t, base, fetch.Options{})
	budget := source.NewCallBudget([]source.Call{{Budget: "calls", Units: 2}})
	request := fetch.Request{URL: base, Budget: budget}
	for range 2 {
		_, err := e.Do(t.Context(), request)
		require.NoError(t, err)
	}
	_, err := e.Do(t.Context(), request)
	require.ErrorIs(t, err, source.ErrNoUnits)
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.Temporary, f.Class)
	require.Equal(t, int32(2), calls.Load(), "a request must not be sent if the budget has no unit left")
	require.Equal(t, []source.Call{{Budget: "calls", Units: 2}}, budget.Spent())

	_, err = e.Do(t.Context(), fetch.Request{URL: base})
	require.NoError(t, err, "a request without a budget must not spend units")

	budget = source.NewCallBudget([]source.Call{{Budget: "calls", Units: 2}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = e.Do(ctx, fetch.Request{URL: base, Budget: budget})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []source.Call{{Budget: "calls", Units: 0}}, budget.Spent(), "a request that is not sent must not spend units")
}

func TestClient_limitsDurationAndBodySizeOfAnswers(t *testing.T) {
	t.Parallel()
	requireFailure := func(t *testing.T, err, cause error) string {
		t.Helper()
		var f *source.Failure
		require.ErrorAs(t, err, &f)
		require.ErrorIs(t, err, cause)
		require.Equal(t, source.Temporary, f.Class)
		return f.Detail
	}
	t.Run("refuses a body that is too large after decompression", func(t *testing.T) {
		t.Parallel()
		var bomb bytes.Buffer
		z := gzip.NewWriter(&bomb)
		_, _ = z.Write(make([]byte, 10<<20))
		_ = z.Close()
		base := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		})
		_, err := newEndpoint(t, base, fetch.Options{}).Do(t.Context(), fetch.Request{URL: base})
		require.Equal(t, "the answer is larger than 8388608 bytes", requireFailure(t, err, fetch.ErrTooLarge))
	})
	t.Run("accepts a body of exactly the maximum size and refuses a body with one byte more", func(t *testing.T) {
		t.Parallel()
		base := startServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("0123456789")) })
		_, err := newEndpoint(t, base, fetch.Options{MaxBody: 10}).Do(t.Context(), fetch.Request{URL: base})
		require.NoError(t, err)
		_, err = newEndpoint(t, base, fetch.Options{MaxBody: 9}).Do(t.Context(), fetch.Request{URL: base})
		requireFailure(t, err, fetch.ErrTooLarge)
	})
	t.Run("reports the client's timeout", func(t *testing.T) {
		t.Parallel()
		base := startServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		_, err := newEndpoint(t, base, fetch.Options{Timeout: 20 * time.Millisecond}).Do(t.Context(), fetch.Request{URL: base})
		require.Equal(t, "no complete answer within 20ms", requireFailure(t, err, fetch.ErrTimeout))
	})
	t.Run("applies the timeout of a request to the body as well", func(t *testing.T) {
		t.Parallel()
		base := startServer(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		_, err := newEndpoint(t, base, fetch.Options{}).Do(t.Context(), fetch.Request{URL: base, Timeout: 20 * time.Millisecond})
		requireFailure(t, err, fetch.ErrTimeout)
	})
	t.Run("reports the caller's deadline as a timeout", func(t *testing.T) {
		t.Parallel()
		base := startServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := newEndpoint(t, base, fetch.Options{}).Do(ctx, fetch.Request{URL: base})
		require.Equal(t, "no complete answer before the caller's deadline", requireFailure(t, err, fetch.ErrTimeout))
	})
	t.Run("returns context.Canceled, not a Failure, if the caller cancels", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		base := startServer(t, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
		_, err := newEndpoint(t, base, fetch.Options{}).Do(ctx, fetch.Request{URL: base})
		require.ErrorIs(t, err, context.Canceled)
		var f *source.Failure
		require.NotErrorAs(t, err, &f)
	})
	t.Run("refuses an answer whose body is cut off", func(t *testing.T) {
		t.Parallel()
		base := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		})
		_, err := newEndpoint(t, base, fetch.Options{}).Do(t.Context(), fetch.Request{URL: base})
		requireFailure(t, err, fetch.ErrUnreachable)
	})
}

func TestClient_removesCredentialsFromErrorsAndLogs(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := fetch.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	send := func(e *fetch.Endpoint, base string) error {
		_, err := e.Do(t.Context(), fetch.Request{
			URL:     base + "/?key=" + url.QueryEscape(secret) + "&token=" + url.QueryEscape(secret),
			Header:  http.Header{"Authorization": {"Bearer " + secret}},
			Secrets: []string{secret},
		})
		return err
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	echo := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte("HTTP/9.9 " + r.RequestURI + secret + "\r\n\r\n"))
			_ = conn.Close()
		}
	})
	ok := startServer(t, func(http.ResponseWriter, *http.Request) {})

	good := newEndpoint(t, ok, o)
	for _, err := range []error{
		send(newEndpoint(t, gone.URL, o), gone.URL), send(newEndpoint(t, echo, o), echo),
		send(good, "http://bad host/"), send(good, "://"), send(good, echo), send(good, "http://"+url.QueryEscape(secret)+"@"+strings.TrimPrefix(ok, "http://")),
	} {
		require.Error(t, err)
		require.NotContains(t, err.Error(), secret)
		require.NotContains(t, err.Error(), url.QueryEscape(secret))
	}
	require.NoError(t, send(good, ok))
	require.Contains(t, log.String(), "got an answer from a source")
	require.NotContains(t, log.String(), secret)
	require.NotContains(t, log.String(), url.QueryEscape(secret))
	require.Contains(t, log.String(), "path=/ ", "the log must not contain the query of a URL")
}
