package server_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/server/redistest"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// longTimeout is appended to the URL of Redis. It sets a read timeout that is long enough for a busy machine.
const longTimeout = "?read_timeout=30s"

// useRedis returns a function that changes the options of a server. A server with these options counts requests in the Redis server r.
func useRedis(t *testing.T, r *redistest.Redis) func(*server.Options) {
	t.Helper()
	return func(o *server.Options) { o.RateStore = newRedisStore(t, r.URL+longTimeout, o.Now, o.Logger) }
}

// newRedisStore creates a RedisRateStore that uses the Redis server at url. The store is closed when the test ends.
func newRedisStore(t *testing.T, url string, now func() time.Time, log *slog.Logger) *server.RedisRateStore {
	t.Helper()
	o, err := redis.ParseURL(url)
	require.NoError(t, err)
	rates := server.NewRedisRateStore(t.Context(), o, now, log)
	t.Cleanup(func() { require.NoError(t, rates.Close()) })
	return rates
}

// startTwoServers starts two ReelTally servers that use the same database and the same Redis server.
func startTwoServers(t *testing.T, r *redistest.Redis) (a, b *app) {
	t.Helper()
	db := newSQLite(t)
	return newApp(t, db, useRedis(t, r)), newApp(t, db, useRedis(t, r))
}

// withServer returns a copy of the caller that sends its requests to the server of the given app.
func (c *caller) withServer(a *app) *caller {
	return &caller{app: a, t: c.t, org: c.org, token: c.token}
}

// countAccepted sends n equal requests and returns the number of responses whose status is not 429. The requests are distributed evenly
// among the callers.
func countAccepted(callers []*caller, n int, method, target string, body any) int {
	ok := 0
	for i := range n {
		if callers[i%len(callers)].send(method, target, body).StatusCode != http.StatusTooManyRequests {
			ok++
		}
	}
	return ok
}

// These texts are in the log lines that a server writes when Redis becomes unavailable (redisUnavailable) or available again (redisAvailable).
const (
	redisUnavailable = "redis is unavailable"
	redisAvailable   = "redis is available again"
)

// requireLogLines requires that each server logged redisUnavailable and redisAvailable the given number of times.
func requireLogLines(t *testing.T, timesUnavailable, timesAvailable int, apps ...*app) {
	t.Helper()
	for _, a := range apps {
		require.Equal(t, timesUnavailable, strings.Count(a.log.String(), redisUnavailable), "%s", a.log)
		require.Equal(t, timesAvailable, strings.Count(a.log.String(), redisAvailable), "%s", a.log)
	}
}

func TestRedisRateStore_twoServersShareTheLimitOfEachOperation(t *testing.T) {
	t.Parallel()
	a, b := startTwoServers(t, redistest.Start(t))
	for _, tier := range store.Tiers {
		c := a.newCaller(t, tier)
		callers := []*caller{c, c.withServer(b)}
		for _, op := range []struct {
			method, target string
			body           any
		}{
			{http.MethodGet, "/videos", nil},
			{http.MethodPost, "/videos", map[string]any{"link": tiktokLink}},
			{http.MethodGet, "/authenticate", nil},
		} {
			limit := specifiedLimits[op.method+" "+op.target].forTier(tier)
			require.Equal(t, limit, countAccepted(callers, limit+6, op.method, op.target, op.body), "number of accepted requests to %s %s in the tier %s", op.method, op.target, tier)
		}
	}
	requireLogLines(t, 0, 0, a, b)
}

func TestRedisRateStore_concurrentServersDoNotExceedTheLimit(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	log := slog.New(slog.DiscardHandler)
	stores := []*server.RedisRateStore{newRedisStore(t, r.URL+longTimeout, storetest.NewClock().Now, log), newRedisStore(t, r.URL+longTimeout, storetest.NewClock().Now, log)}
	var allowed atomic.Int64
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			for range 40 {
				q, err := stores[i%2].Count(t.Context(), "key", 1, 120, time.Minute)
				if err == nil && !q.Exceeded {
					allowed.Add(1)
				}
			}
		})
	}
	calls.Wait()
	require.EqualValues(t, 120, allowed.Load())
}

func TestRedisRateStore_countsEachOrganisationSeparately(t *testing.T) {
	t.Parallel()
	a, b := startTwoServers(t, redistest.Start(t))
	c := a.newCaller(t, store.TierLimited)
	tokens := []*caller{c, b.newToken(t, c.org, store.ScopeRead), a.newToken(t, c.org, store.ScopeRead)}
	require.Equal(t, 5, countAccepted(tokens, 10, http.MethodGet, "/videos", nil), "all tokens of an organisation must share its limit")
	other := b.newCaller(t, store.TierLimited)
	require.Equal(t, 5, countAccepted([]*caller{other, other.withServer(a)}, 10, http.MethodGet, "/videos", nil), "the requests of one organisation must not count towards the limit of another organisation")
	for range 30 {
		a.send(t, http.MethodGet, "/videos", nil).requireStatus(http.StatusUnauthorized)
		b.send(t, http.MethodGet, "/videos", nil).requireStatus(http.StatusUnauthorized)
	}
	a.send(t, http.MethodGet, "/videos", nil).requireProblem(http.StatusTooManyRequests, server.CodeRateLimited)
	b.send(t, http.MethodGet, "/videos", nil).requireProblem(http.StatusTooManyRequests, server.CodeRateLimited)
}

func TestRedisRateStore_keysHaveAPrefixAndExpireAfterAMinute(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	a, b := startTwoServers(t, r)
	c := a.newCaller(t, store.TierBasic)
	c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
	c.withServer(b).send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
	a.send(t, http.MethodGet, "/videos", nil).requireStatus(http.StatusUnauthorized)
	keys, err := r.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	organisation := "reeltally:limit:org:" + c.org.ID.String() + ":listVideos"
	require.ElementsMatch(t, []string{organisation, "reeltally:limit:unauthenticated:127.0.0.1", "reeltally:limit:unknown_tokens:127.0.0.1"}, keys)
	for _, key := range keys {
		left, err := r.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		require.Positive(t, left)
		require.LessOrEqual(t, left, time.Minute)
	}
	n, err := r.Get(t.Context(), organisation).Int()
	require.NoError(t, err)
	require.Equal(t, 2, n)

	require.Equal(t, 13, countAccepted([]*caller{c}, 16, http.MethodGet, "/videos", nil))
	require.NoError(t, r.PExpire(t.Context(), organisation, time.Millisecond).Err())
	require.Eventually(t, func() bool { return r.Exists(t.Context(), organisation).Val() == 0 }, time.Minute, time.Millisecond)
	got := c.withServer(b).send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
	require.Equal(t, 14, headerNumber(t, got, "RateLimit-Remaining"), "a new window must start after the key expired in Redis")
	unchanged := c.send(http.MethodGet, "/videos", nil, "If-None-Match", got.Header.Get("ETag")).requireStatus(http.StatusNotModified)
	require.Equal(t, 14, headerNumber(t, unchanged, "RateLimit-Remaining"), "a 304 response must not be counted")
}

func TestRedisRateStore_countsInMemoryWhileRedisIsUnavailable(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	a, b := startTwoServers(t, r)
	c := a.newCaller(t, store.TierLimited)
	callers := []*caller{c, c.withServer(b)}
	require.Equal(t, 4, countAccepted(callers, 4, http.MethodGet, "/videos", nil))

	r.Kill()
	require.Equal(t, 5, countAccepted(callers[:1], 8, http.MethodGet, "/videos", nil))
	require.Equal(t, 5, countAccepted(callers[1:], 8, http.MethodGet, "/videos", nil))
	for range 5 { // each server tries Redis once a second, but Redis stays unavailable
		a.Clock.Advance(time.Second)
		require.Equal(t, 2, countAccepted(callers, 2, http.MethodGet, "/authenticate", nil))
	}
	requireLogLines(t, 1, 0, a, b)
	a.send(t, http.MethodGet, "/readyz", nil).requireStatus(http.StatusOK)

	r.Start()
	require.Equal(t, 2, countAccepted(callers, 2, http.MethodGet, "/authenticate", nil))
	requireLogLines(t, 1, 0, a, b) // the servers try Redis at most once a second
	a.Clock.Advance(time.Second)
	require.Equal(t, 2, countAccepted(callers, 2, http.MethodGet, "/authenticate", nil))
	requireLogLines(t, 1, 1, a, b)
	require.Equal(t, 5, countAccepted(callers, 10, http.MethodGet, "/videos", nil), "the two servers must share the rate limit again")
	requireLogLines(t, 1, 1, a, b)
}

func TestRedisRateStore_serverStartsIfRedisIsUnavailable(t *testing.T) {
	t.Parallel()
	r := redistest.New(t)
	a, b := startTwoServers(t, r)
	requireLogLines(t, 1, 0, a, b)
	c := a.newCaller(t, store.TierLimited)
	callers := []*caller{c, c.withServer(b)}
	require.Equal(t, 10, countAccepted(callers, 14, http.MethodGet, "/videos", nil), "without Redis, each server must allow the whole limit")
	a.send(t, http.MethodGet, "/readyz", nil).requireStatus(http.StatusOK)
	r.Start()
	a.Clock.Advance(time.Second)
	require.Equal(t, 5, countAccepted(callers, 10, http.MethodGet, "/videos", nil))
	requireLogLines(t, 1, 1, a, b)
}

// TestRedisRateStore_delaysOnlyOneRequestPerSecondWhileRedisDoesNotRespond uses a Redis server that does not respond to commands. In each
// second, only one request can wait for Redis, and only until the read timeout.
func TestRedisRateStore_delaysOnlyOneRequestPerSecondWhileRedisDoesNotRespond(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	clock, log := storetest.NewClock(), &storetest.Log{}
	rates := newRedisStore(t, r.URL+"?read_timeout=1s", clock.Now, slog.New(slog.NewJSONHandler(log, nil)))
	take := func() time.Duration {
		start := time.Now()
		_, err := rates.Count(t.Context(), "key", 1, 1000, time.Minute)
		require.NoError(t, err)
		return time.Since(start)
	}
	take()
	r.Freeze()
	for range 3 {
		slow := 0
		for range 100 {
			if take() > 900*time.Millisecond {
				slow++
			}
		}
		require.LessOrEqual(t, slow, 3, "at most three requests may be slow: one that waits for Redis, and two that a busy machine delays")
		clock.Advance(time.Second)
	}
	r.Thaw()
	require.Eventually(t, func() bool {
		clock.Advance(time.Second)
		take()
		return strings.Contains(log.String(), redisAvailable)
	}, time.Minute, time.Millisecond)
	require.Equal(t, 1, strings.Count(log.String(), redisUnavailable), "%s", log)
}

func TestRedisRateStore_countsRequestsOfDisconnectedCallers(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	log := &storetest.Log{}
	rates := newRedisStore(t, r.URL+longTimeout, storetest.NewClock().Now, slog.New(slog.NewJSONHandler(log, nil)))
	cancelledContext, cancel := context.WithCancel(t.Context())
	cancel()
	for left := int64(4); left >= 0; left-- {
		q, err := rates.Count(cancelledContext, "key", 1, 5, time.Minute)
		require.NoError(t, err)
		require.Equal(t, server.Quota{Remaining: left, Reset: q.Reset}, q)
	}
	n, err := r.Get(t.Context(), "reeltally:limit:key").Int()
	require.NoError(t, err)
	require.Equal(t, 5, n)
	require.Empty(t, log.String(), "a disconnected caller must not be logged as an error of Redis")
}

func TestRedisRateStore_countsInMemoryIfRedisReturnsAnError(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	require.NoError(t, r.ConfigSet(t.Context(), "requirepass", "right").Err())
	log := &storetest.Log{}
	rates := newRedisStore(t, strings.Replace(r.URL, "unix://", "unix://:wr0ngsecret@", 1), storetest.NewClock().Now, slog.New(slog.NewJSONHandler(log, nil)))
	q, err := rates.Count(t.Context(), "key", 1, 5, time.Minute)
	require.NoError(t, err)
	require.EqualValues(t, 4, q.Remaining)
	require.Contains(t, log.String(), "WRONGPASS")
	require.Contains(t, log.String(), "each server counts rate limits in its own memory", "the log message must explain the consequence")
	require.NotContains(t, log.String(), "wr0ngsecret")
	require.Equal(t, 1, bytes.Count([]byte(log.String()), []byte("\n")))
}
