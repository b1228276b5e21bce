package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// stopRequest is a request that stops the tracking of a video or an account.
type stopRequest struct {
	path string
	body any // nil if the operation has no body
}

// stopRequests returns two requests for each operation that stops tracking, by operation id. All videos and accounts of the requests are tracked.
func (c *caller) stopRequests() map[string][2]stopRequest {
	c.t.Helper()
	account := func(n int) string {
		return decode[client.TrackAccountResult](c.send(http.MethodPost, "/accounts", map[string]any{"link": fmt.Sprintf("https://www.tiktok.com/@southwind.%d", n)}).
			requireStatus(http.StatusOK)).AccountID.String()
	}
	video := func(n int) string { return c.track(videoURL(n)).String() }
	video(1)
	video(2)
	return map[string][2]stopRequest{
		"stopVideo":       {{"/videos", map[string]any{"id": videoURL(1)}}, {"/videos", map[string]any{"id": videoURL(2)}}},
		"stopVideoById":   {{"/videos/" + video(3), nil}, {"/videos/" + video(4), nil}},
		"stopVideos":      {{"/videos/bulk", map[string]any{"ids": []string{video(5), video(6)}}}, {"/videos/bulk", map[string]any{"ids": []string{video(7)}}}},
		"stopAccount":     {{"/accounts", map[string]any{"id": account(1)}}, {"/accounts", map[string]any{"id": account(2)}}},
		"stopAccountById": {{"/accounts/" + account(3), nil}, {"/accounts/" + account(4), nil}},
		"stopAccounts":    {{"/accounts/bulk", map[string]any{"ids": []string{account(5), account(6)}}}, {"/accounts/bulk", map[string]any{"ids": []string{account(7)}}}},
	}
}

// idsOfKeyedDELETEOperations returns the ids of all operations in openapi.yaml that have the method DELETE and the header Idempotency-Key.
func idsOfKeyedDELETEOperations() []string {
	var ids []string
	for _, item := range sharedContract().doc.Paths.Map() {
		if item.Delete != nil && item.Delete.Parameters.GetByInAndName("header", "Idempotency-Key") != nil {
			ids = append(ids, item.Delete.OperationID)
		}
	}
	return ids
}

func TestIdempotency_repeatedStopGetsTheFirstResponse(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		requests := c.stopRequests()
		require.ElementsMatch(t, idsOfKeyedDELETEOperations(), slices.Collect(maps.Keys(requests)), "stopRequests must contain each DELETE operation with a key")
		for id, request := range requests {
			send := func(r stopRequest, key string) response {
				return c.send(http.MethodDelete, r.path, r.body, "Idempotency-Key", key)
			}
			first := send(request[0], id).requireStatus(http.StatusOK)
			require.Empty(t, first.Header.Get("Idempotent-Replayed"), id)
			again := send(request[0], id).requireStatus(http.StatusOK)
			require.Equal(t, string(first.body), string(again.body), id)
			require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"), id)
			send(request[1], id).requireProblem(http.StatusUnprocessableEntity, server.CodeIdempotencyKeyReused)
			require.Contains(t, []int{http.StatusNotFound, http.StatusMultiStatus}, send(request[0], "new-"+id).StatusCode, "%s: a request with a new key must find nothing to stop", id)

			// Change the database so that the first request seems to be still running.
			a.Exec(t, "UPDATE idempotency_keys SET status = NULL, started_at = ? WHERE key = ?", store.InstantOf(a.Clock.Now()), id)
			send(request[0], id).requireProblem(http.StatusConflict, server.CodeIdempotencyKeyInUse)
			send(request[1], "other-"+id).requireStatus(http.StatusOK)
		}
	})
}

// startLosingProxy starts a proxy that forwards requests to the app. For each path, it drops the response to the first DELETE. The function `keys`
// returns the Idempotency-Keys of all DELETE requests.
func (a *app) startLosingProxy(t *testing.T) (address string, keys func() []string) {
	t.Helper()
	target, err := url.Parse(a.http.URL)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	var mu sync.Mutex
	seen := map[string]bool{}
	var sent []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		lose := r.Method == http.MethodDelete && !seen[r.URL.Path]
		if r.Method == http.MethodDelete {
			seen[r.URL.Path], sent = true, append(sent, r.Header.Get("Idempotency-Key"))
		}
		mu.Unlock()
		if lose { // the server handles the request, but the proxy drops the response
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return sent
	}
}

// requireSameKeyOfRepetitions checks the keys of three requests, each of which was sent twice. Both attempts of a request must have the same key, and
// each request must have another key than the others.
func requireSameKeyOfRepetitions(t *testing.T, keys []string) {
	t.Helper()
	require.Len(t, keys, 6)
	different := map[string]bool{}
	for i := 0; i < len(keys); i += 2 {
		require.NotEmpty(t, keys[i])
		require.Equal(t, keys[i], keys[i+1])
		different[keys[i]] = true
	}
	require.Len(t, different, 3)
}

func TestSDKs_stopVideosOnceIfAnAnswerIsLost(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, newSQLite(t))
			c := a.newCaller(t, store.TierPremium)
			c.track(videoURL(1))
			address, keys := a.startLosingProxy(t)
			var got struct {
				Success   bool
				Succeeded int
			}
			out := s.runProgram(t, address, c.token, "testdata/sdk/stop"+s.extension, videoURL(1), c.track(videoURL(2)).String(), c.track(videoURL(3)).String(), c.track(videoURL(4)).String())
			require.NoError(t, json.Unmarshal([]byte(out), &got))
			require.True(t, got.Success)
			require.Equal(t, 2, got.Succeeded)
			requireSameKeyOfRepetitions(t, keys())
		})
	}
}

func TestGoSDK_stopsVideosOnceIfAnAnswerIsLost(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.track(videoURL(1))
	address, keys := a.startLosingProxy(t)
	sdk, err := client.New(address, c.token)
	require.NoError(t, err)
	_, err = sdk.StopVideo(t.Context(), client.StopVideoOptions{ID: videoURL(1)})
	require.NoError(t, err)
	_, err = sdk.StopVideoByID(t.Context(), c.track(videoURL(2)), client.StopVideoByIDOptions{})
	require.NoError(t, err)
	stopped, err := sdk.StopVideos(t.Context(), client.StopVideosOptions{Ids: []string{c.track(videoURL(3)).String(), c.track(videoURL(4)).String()}})
	require.NoError(t, err)
	require.True(t, stopped.Success)
	require.EqualValues(t, 2, stopped.Summary.Succeeded)
	requireSameKeyOfRepetitions(t, keys())

	_, err = sdk.StopVideoByID(t.Context(), uuid.New(), client.StopVideoByIDOptions{IdempotencyKey: "own"})
	require.Error(t, err)
	require.Equal(t, "own", keys()[len(keys())-1])
}
