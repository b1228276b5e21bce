package server_test

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// headerNumber returns the value of a response header as a number. It fails the test if the value is not a number.
func headerNumber(t *testing.T, a response, header string) int {
	t.Helper()
	n, err := strconv.Atoi(a.Header.Get(header))
	require.NoError(t, err, "%s: %q", header, a.Header.Get(header))
	return n
}

// newRateLimitedApp starts a server that enforces rate limits and counts requests in memory.
func newRateLimitedApp(t *testing.T, change ...func(*server.Options)) *app {
	t.Helper()
	return newApp(t, newSQLite(t), append([]func(*server.Options){func(o *server.Options) { o.RateStore = nil }}, change...)...)
}

func TestRateLimit_countsRequestsPerOrganisationAndOperation(t *testing.T) {
	t.Parallel()
	a := newRateLimitedApp(t)
	c := a.newCaller(t, store.TierLimited)
	other := a.newToken(t, c.org, store.ScopeRead)
	for range 5 {
		c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
	}
	t.Run("another token of the organisation", func(t *testing.T) {
		other.send(http.MethodGet, "/videos", nil).requireProblem(http.StatusTooManyRequests, server.CodeRateLimited)
	})
	t.Run("HEAD instead of GET", func(t *testing.T) {
		c.send(http.MethodHead, "/videos", nil).requireStatus(http.StatusTooManyRequests)
	})
	t.Run("another operation", func(t *testing.T) {
		c.send(http.MethodPost, "/videos", map[string]any{"link": tiktokLink}).requireStatus(http.StatusOK)
		c.send(http.MethodGet, "/videos/01938c32-8f07-7a46-93be-1d2c3b4a5968", nil).requireStatus(http.StatusNotFound)
	})
	t.Run("another organisation", func(t *testing.T) {
		a.newCaller(t, store.TierLimited).send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
	})
	t.Run("a change of the tier during the window", func(t *testing.T) {
		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierPremium))
		a.Clock.Advance(time.Second)
		got := c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
		require.Equal(t, 30, headerNumber(t, got, "RateLimit-Limit"))
		require.Equal(t, 22, headerNumber(t, got, "RateLimit-Remaining"))
	})
}

func TestRateLimit_limitsRequestsPerAddressOnlyIfTheyHaveNoToken(t *testing.T) {
	t.Parallel()
	a := newRateLimitedApp(t)
	c := a.newCaller(t, store.TierPremium)
	for range 60 {
		a.send(t, http.MethodGet, "/videos", nil).requireStatus(http.StatusUnauthorized)
	}
	a.send(t, http.MethodGet, "/videos", nil).requireProblem(http.StatusTooManyRequests, server.CodeRateLimited)
	c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
}

func TestMemoryRateStore_allowsRequestsAfterTheWindowEnds(t *testing.T) {
	t.Parallel()
	rates := server.NewMemoryRateStore() // the store is created outside of the synctest bubble, because its cleaning goroutine never ends
	now := time.Now()
	synctest.Test(t, func(t *testing.T) {
		// Set the clock of the bubble to a year after the real time. The goroutine that deletes expired counts uses the real clock, so it deletes no
		// count of the test.
		<-time.After(time.Until(now.AddDate(1, 0, 0)))
		advanceClock := func(d time.Duration) { <-time.After(d) }
		take := func(limit int64) server.Quota {
			q, err := rates.Count(t.Context(), strconv.FormatInt(limit, 10), 1, limit, time.Minute)
			require.NoError(t, err)
			return q
		}
		advanceClock(1234567 * time.Microsecond)
		for _, limit := range []int64{5, 15, 30, 120} {
			for range 3 {
				last := limit
				for range limit {
					q := take(limit)
					require.False(t, q.Exceeded)
					require.Less(t, q.Remaining, last, "the remaining quota must decrease with each request of a window")
					last = q.Remaining
					advanceClock(time.Millisecond)
				}
				require.Zero(t, last)
				q := take(limit)
				require.True(t, q.Exceeded)
				require.Positive(t, q.Reset)
				require.LessOrEqual(t, q.Reset, time.Minute)
				advanceClock(q.Reset - 2*time.Second)
				q = take(limit)
				require.True(t, q.Exceeded, "the limit must stay exceeded until the window ends")
				advanceClock(q.Reset)
			}
		}
	})
}
