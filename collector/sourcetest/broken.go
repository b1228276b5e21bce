package sourcetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// testBrokenAnswers requires a temporary failure for each broken answer. Otherwise, the collector could
// treat a video as deleted or private.
func (h Harness) testBrokenAnswers(t *testing.T) {
	ok := h.Answers[OK].Body
	page := "<!DOCTYPE html><html><title>Sign in</title><p>" + ok + "</html>"
	write := func(status int, body string) http.HandlerFunc {
		return Answer{Status: status, Body: body}.newHandler(nil)
	}
	for name, handler := range map[string]http.HandlerFunc{
		"garbage":                           write(0, "\x00\xff\x1f\x8b garbage"),
		"an empty body":                     write(0, ""),
		"an empty object":                   write(0, "{}"),
		"null":                              write(0, "null"),
		"a number":                          write(0, "9007199254740993"),
		"an answer cut in the middle":       write(0, ok[:len(ok)/2]),
		"an answer cut near its end":        write(0, strings.TrimRight(ok, " \n}]")),
		"a body that has the answer twice":  write(0, ok+ok),
		"very deep nesting":                 write(0, strings.Repeat(`{"items":[`, 1<<19)),
		"status 200 with a page of HTML":    write(0, page),
		"status 403 with a page of HTML":    write(http.StatusForbidden, page),
		"status 502 with a page of HTML":    write(http.StatusBadGateway, page),
		"10 MB of spaces before the answer": write(0, strings.Repeat(" ", 10<<20)+ok),
		"a body that is shorter than Content-Length": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			write(0, ok)(w, r)
		},
		"a connection that is closed before the answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.requireTemporary(t, h.fetch(t, handler, fetch.Options{}))
		})
	}
	// For this answer, the expected class can differ from Temporary (see NotFoundClass).
	t.Run("status 404 with a page of HTML", func(t *testing.T) {
		t.Parallel()
		got := h.fetch(t, write(http.StatusNotFound, page), fetch.Options{})
		if h.NotFoundClass == "" {
			h.requireTemporary(t, got)
			return
		}
		require.NotNil(t, got.failure)
		require.Equal(t, h.NotFoundClass, got.failure.Class, got.failure.Detail)
	})
	t.Run("a redirect", func(t *testing.T) {
		t.Parallel()
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			t.Error("the source must not follow the redirect")
		}))
		defer other.Close()
		for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect} {
			h.requireTemporary(t, h.fetch(t, http.RedirectHandler(other.URL, status).ServeHTTP, fetch.Options{}))
		}
	})
	t.Run("an address without a server", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.NotFoundHandler())
		server.Close()
		h.requireTemporary(t, h.fetchFrom(t, server.URL, fetch.Options{}))
	})
	t.Run("an answer of a sandbox", func(t *testing.T) {
		t.Parallel()
		got := h.fetch(t, h.Answers[OK].newHandler(http.Header{reeltally.SandboxHeader: {"true"}}), fetch.Options{})
		require.NoError(t, got.err)
		for _, r := range got.results {
			require.True(t, r.Sandbox, "Sandbox must be true in the result")
		}
	})
}

// requireTemporary requires that Fetch returned a temporary failure, or the class source.Temporary for every target.
func (h Harness) requireTemporary(t *testing.T, got outcome) {
	t.Helper()
	if got.failure != nil {
		require.Equal(t, source.Temporary, got.failure.Class, got.failure.Detail)
		return
	}
	require.NoError(t, got.err)
	for _, r := range got.results {
		require.Equal(t, source.Temporary, r.Class, r.Detail)
	}
}

// testSlowServers calls Fetch with servers that never finish an answer, and with a context that is cancelled during the call.
func (h Harness) testSlowServers(t *testing.T) {
	t.Run("an answer that never begins", func(t *testing.T) {
		t.Parallel()
		got := h.fetch(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, fetch.Options{Timeout: 50 * time.Millisecond})
		h.requireTemporary(t, got)
		require.ErrorIs(t, got.err, fetch.ErrTimeout)
	})
	t.Run("a body that never ends", func(t *testing.T) {
		t.Parallel()
		got := h.fetch(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(h.Answers[OK].Body[:1]))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, fetch.Options{Timeout: 50 * time.Millisecond})
		h.requireTemporary(t, got)
		require.ErrorIs(t, got.err, fetch.ErrTimeout)
	})
	t.Run("a cancelled call", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		server := httptest.NewServer(h.routeRequests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		})))
		defer server.Close()
		client := fetch.New(fetch.Options{})
		defer client.Close()
		src := h.New(t, server.URL, client)
		results, err := src.Fetch(ctx, h.Targets, source.NewCallBudget(src.Plan(h.Targets)[h.Plan]))
		require.ErrorIs(t, err, context.Canceled)
		var f *source.Failure
		require.NotErrorAs(t, err, &f, "a cancelled call must not return a Failure")
		h.checkOutcome(t, outcome{results: results, err: err})
	})
}
