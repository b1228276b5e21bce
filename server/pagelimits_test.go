package server_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// exceededRateStore is a RateStore in which one rate limit is exceeded for another 42 seconds. All other calls are allowed.
type exceededRateStore struct {
	server.Unlimited
	limitName atomic.Value // end of the exceeded limit's key, a string
	left      atomic.Int64 // number of calls that the limit allows before it is exceeded
}

func (s *exceededRateStore) Count(ctx context.Context, key string, calls, limit int64, window time.Duration) (server.Quota, error) {
	if name, ok := s.limitName.Load().(string); ok && calls > 0 && strings.HasSuffix(key, ":"+name) && s.left.Add(-1) < 0 {
		return server.Quota{Exceeded: true, Reset: 42 * time.Second}, nil
	}
	return s.Unlimited.Count(ctx, key, calls, limit, window)
}

// newAppWithExceededLimit starts a server and returns the RateStore that it uses.
func newAppWithExceededLimit(t *testing.T) (*app, *exceededRateStore) {
	t.Helper()
	rates := &exceededRateStore{}
	return newApp(t, newSQLite(t), func(o *server.Options) { o.RateStore = rates }), rates
}

func TestPages_sayHowManyRequestsTheRateLimitAllows(t *testing.T) {
	t.Parallel()
	a, rates := newAppWithExceededLimit(t)
	c := a.newCaller(t, store.TierLimited)
	collection, videos := createDashboardData(a, c)
	share := c.shareCollection(collection, "public", nil)
	v := c.newSignedInVisitor(t)
	video, page := "/video/tiktok/"+videos[0].String(), "/collection/"+collection.String()
	const (
		reads = "The pages of your organisation can read the same kind of data at most 600 times a minute. Try again in 42 seconds."
		// Changes have the rate limit of the tier. Requests of pages and of programs count together.
		changes = "Your organisation can do this at most 5 times a minute, on pages and in programs together. Try again in 42 seconds."
	)
	for _, request := range []struct {
		operation, path string
		fields          []string // form fields of a POST request; nil for a GET request
		limit, want     string
	}{
		{"listVideos", "/video", nil, "pages_", reads},
		{"listVideos", "/video?csv=videos", nil, "pages_", reads},
		{"listVideos", "/search?q=launch", nil, "pages_", reads},
		{"getVideoHistory", video, nil, "pages_", reads},
		{"listCollections", "/track", nil, "pages_", reads},
		{"getCollectionStatistics", page, nil, "pages_", reads},
		{"getVideo", "/track/progress", []string{"total", "1", "rounds", "1", "waiting", "video:" + videos[0].String()}, "pages_", reads},
		{"createCollection", "/collection", []string{"name", "Autumn"}, "", changes},
		{"stopVideoById", video + "/stop", []string{}, "", changes},
		{"createReport", page + "/freeze", []string{}, "", changes},
		{"createToken", "/settings/token", []string{"name", "more", "days", "30", "scopes", "read"}, "", changes},
		{"trackVideos", "/track", []string{"links", videoURL(9)}, "", changes + " The links that were not tracked are still in the text field."},
		{"trackAccounts", "/track", []string{"links", "https://www.tiktok.com/@someone"}, "", changes + " The links that were not tracked are still in the text field."},
		{"listCollectionVideos", share, nil, "share_", "The share pages of this organisation can read the same kind of data at most 600 times a minute. Try again in 42 seconds."},
	} {
		rates.limitName.Store(request.limit + request.operation)
		var got response
		if request.fields == nil {
			got = v.visit(request.path)
		} else {
			got = v.post(request.path, request.fields...)
		}
		require.Equal(t, http.StatusTooManyRequests, got.StatusCode, "%s with the exceeded limit %s", request.path, request.operation)
		require.Contains(t, string(got.body), request.want, request.path)
		require.NotContains(t, string(got.body), request.operation, request.path)
		if request.path != "/track" || request.fields == nil { // after POST, the page Track shows the form again, without the header Retry-After
			require.Equal(t, "42", got.Header.Get("Retry-After"), request.path)
		}
	}
}

func TestPages_countChangesOfPagesAndProgramsTogether(t *testing.T) {
	t.Parallel()
	a := newRateLimitedApp(t)
	c := a.newCaller(t, store.TierLimited)
	v := c.newSignedInVisitor(t)
	for _, name := range []string{"one", "two"} {
		c.createNamedCollection(name)
	}
	for _, name := range []string{"three", "four", "five"} {
		v.post("/collection", "name", name).requireStatus(http.StatusSeeOther)
	}
	refused := v.post("/collection", "name", "six").requireStatus(http.StatusTooManyRequests)
	require.Regexp(t, `Your organisation can do this at most 5 times a minute, on pages and in programs together\. Try again in \d+ seconds?\.`, string(refused.body))
	require.Len(t, c.collections("").Data, 1, "the tier shows only the first collection")
	v.visit("/collection").requireStatus(http.StatusOK) // the limit of changes does not refuse reads
}

func TestPages_sayHowManyRequestsAnIPAddressCanSend(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.RateStore = server.NewMemoryRateStore() })
	c := a.newCaller(t, store.TierPremium)
	v := &visitor{app: a, t: t}
	for range 10 {
		v.post("/login", "token", "rt_wrong").requireStatus(http.StatusUnauthorized)
	}
	unknown := strings.Repeat("A", 43)
	for _, refused := range []response{v.post("/login", "token", c.token), v.visit("/login/" + unknown), v.post("/login/" + unknown), v.visit("/setup/" + unknown), v.post("/setup/"+unknown, "name", "Mine")} {
		require.Regexp(t, `Your IP address sent more than 10 sign-in attempts in a minute\. Try again in \d+ seconds?\.`, string(refused.requireStatus(http.StatusTooManyRequests).body))
	}
}
