package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// unknownToken returns a token that contains the number n. Its form and checksum are valid, but no organisation has the token.
func unknownToken(n int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	body := fmt.Sprintf("rt_%040d", n)
	sum, left := make([]byte, 6), crc32.ChecksumIEEE([]byte(body))
	for i := len(sum) - 1; i >= 0; i-- {
		sum[i], left = digits[left%62], left/62
	}
	return body + string(sum)
}

// lookUpCounter counts the database queries that look up a token.
type lookUpCounter struct {
	atomic.Int64
	// beforeEach is called before each database query that looks up a token. It can be nil.
	beforeEach func()
}

// newAppWithLookUps starts a server that enforces rate limits. It also returns a counter of the
// database queries that look up a token.
func newAppWithLookUps(t *testing.T, db *storetest.DB, beforeEach func(), change ...func(*server.Options)) (*app, *lookUpCounter) {
	t.Helper()
	lookups := &lookUpCounter{beforeEach: beforeEach}
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: func(statement string, args []any) error {
		if strings.Contains(statement, "hash = ") {
			lookups.Add(1)
			if lookups.beforeEach != nil {
				lookups.beforeEach()
			}
		}
		return storetest.CheckStatement(statement, args...)
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	a := newApp(t, db, append([]func(*server.Options){func(o *server.Options) {
		o.Store, o.RateStore = s, server.NewMemoryRateStore()
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	}}, change...)...)
	return a, lookups
}

// sendAuthenticateRequest calls the HTTP handler directly with GET /authenticate. address is the IP address from which the request appears to
// come. If token is "", the request has no token.
func (a *app) sendAuthenticateRequest(ctx context.Context, address, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/authenticate", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	r.Header.Set("X-Forwarded-For", address)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	a.server.Handler().ServeHTTP(w, r)
	return w
}

// requireCode requires an error response with the given status and error code.
func requireCode(t *testing.T, w *httptest.ResponseRecorder, status int, code server.Code) {
	t.Helper()
	require.Equal(t, status, w.Code, "%s", w.Body)
	var p struct{ Code server.Code }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
	require.Equal(t, code, p.Code)
}

func TestTokens_unknownTokensFromOneAddressCauseAtMost60LookUpsAMinute(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		a, lookups := newAppWithLookUps(t, db, nil)
		c := a.newCaller(t, store.TierPremium)
		require.Equal(t, http.StatusOK, a.sendAuthenticateRequest(t.Context(), "198.51.100.7", c.token).Code)
		lookups.Store(0)
		for n := range 1000 {
			w := a.sendAuthenticateRequest(t.Context(), "198.51.100.7", unknownToken(n))
			if n < 60 {
				requireCode(t, w, http.StatusUnauthorized, server.CodeTokenUnknown)
			} else {
				requireCode(t, w, http.StatusTooManyRequests, server.CodeRateLimited)
				require.NotEmpty(t, w.Header().Get("Retry-After"))
				require.Equal(t, "0", w.Header().Get("RateLimit-Remaining"))
			}
			if n%100 == 0 {
				require.Equal(t, http.StatusOK, a.sendAuthenticateRequest(t.Context(), "198.51.100.7", c.token).Code, "a cached valid token must be accepted although the address exceeded its limit")
			}
		}
		require.LessOrEqual(t, lookups.Load(), int64(60))
		a.Clock.Advance(time.Second) // the cached valid token expires, so the next request looks it up in the database
		require.Equal(t, http.StatusOK, a.sendAuthenticateRequest(t.Context(), "198.51.100.7", c.token).Code)
		fresh := a.newToken(t, c.org, store.ScopeRead)
		require.Equal(t, http.StatusOK, a.sendAuthenticateRequest(t.Context(), "198.51.100.8", fresh.token).Code, "the limit of one address must not affect another address")
	})
}

func TestTokens_refusedTokenIsLookedUpOnceInTenSeconds(t *testing.T) {
	t.Parallel()
	a, lookups := newAppWithLookUps(t, newSQLite(t), nil)
	org := a.newCaller(t, store.TierPremium).org
	revoked, secret, err := a.CreateToken(t.Context(), org.ID, "revoked", []store.Scope{store.ScopeRead}, 0)
	require.NoError(t, err)
	require.NoError(t, a.RevokeToken(t.Context(), revoked.ID))
	_, expired, err := a.CreateToken(t.Context(), org.ID, "expired", []store.Scope{store.ScopeRead}, time.Second)
	require.NoError(t, err)
	a.Clock.Advance(time.Second)
	for token, code := range map[string]server.Code{
		unknownToken(1): server.CodeTokenUnknown,
		secret:          server.CodeTokenRevoked,
		expired:         server.CodeTokenExpired,
	} {
		lookups.Store(0)
		for n := range 1000 { // the requests use 100 client addresses, so that no address reaches its limit
			requireCode(t, a.sendAuthenticateRequest(t.Context(), fmt.Sprintf("198.51.100.%d", n%100), token), http.StatusUnauthorized, code)
			if n == 499 {
				a.Clock.Advance(9 * time.Second)
			}
		}
		require.EqualValues(t, 1, lookups.Load(), code)
		a.Clock.Advance(2 * time.Second)
		a.sendAuthenticateRequest(t.Context(), "203.0.113.1", token)
		require.EqualValues(t, 2, lookups.Load(), "the token must be looked up again after ten seconds")
	}
}

// countingRateStore is a RateStore that counts how often a new call is counted.
type countingRateStore struct {
	server.RateStore
	newCalls atomic.Int64
}

func (c *countingRateStore) Count(ctx context.Context, key string, calls, limit int64, window time.Duration) (server.Quota, error) {
	if calls > 0 {
		c.newCalls.Add(1)
	}
	return c.RateStore.Count(ctx, key, calls, limit, window)
}

func TestTokens_requestsWithoutATokenAreRefusedWithoutALookUp(t *testing.T) {
	t.Parallel()
	rates := &countingRateStore{RateStore: server.NewMemoryRateStore()}
	a, lookups := newAppWithLookUps(t, newSQLite(t), nil, func(o *server.Options) { o.RateStore = rates })
	c := a.newCaller(t, store.TierPremium)
	for n := range 200 {
		w := a.sendAuthenticateRequest(t.Context(), "198.51.100.7", "")
		require.Equal(t, n >= 60, w.Code == http.StatusTooManyRequests, "the status must be 429 after 60 requests, but request %d (counted from 0) got status %d", n, w.Code)
	}
	require.Zero(t, lookups.Load())
	require.EqualValues(t, 61, rates.newCalls.Load(), "after 61 counted calls, the address must be refused without a further call of the rate store")
	require.Equal(t, http.StatusOK, a.sendAuthenticateRequest(t.Context(), "198.51.100.7", c.token).Code, "a valid token must be accepted although the address exceeded its limit")
}

func TestTokens_eachAddressCanSendAtMost60UnknownTokensAMinute(t *testing.T) {
	t.Parallel()
	a, lookups := newAppWithLookUps(t, newSQLite(t), nil)
	c := a.newCaller(t, store.TierPremium)
	require.Equal(t, http.StatusOK, a.sendAuthenticateRequest(t.Context(), "198.51.100.1", c.token).Code)
	lookups.Store(0)
	n := 0
	for address := range 200 {
		for i := range 62 {
			n++
			w := a.sendAuthenticateRequest(t.Context(), fmt.Sprintf("203.0.113.%d", address), unknownToken(n))
			require.Equal(t, i >= 60, w.Code == http.StatusTooManyRequests, "the status must be 429 after 60 requests of an address, but request %d (counted from 0) of address %d got status %d", i, address, w.Code)
		}
	}
	require.EqualValues(t, 200*60, lookups.Load())
	require.Equal(t, http.StatusOK, a.sendAuthenticateRequest(t.Context(), "198.51.100.1", c.token).Code)
	require.EqualValues(t, 200*60, lookups.Load(), "the valid token must stay cached, without a second look-up")
}

func TestTokens_concurrentRequestsWithTheSameTokenCauseOneLookUp(t *testing.T) {
	t.Parallel()
	lookUpStarted, release := make(chan struct{}, 100), make(chan struct{})
	a, lookups := newAppWithLookUps(t, newSQLite(t), func() {
		lookUpStarted <- struct{}{}
		<-release
	})
	c := a.newCaller(t, store.TierPremium)
	var calls sync.WaitGroup
	var ok atomic.Int64
	for range 20 {
		calls.Go(func() {
			if a.sendAuthenticateRequest(t.Context(), "198.51.100.7", c.token).Code == http.StatusOK {
				ok.Add(1)
			}
		})
	}
	<-lookUpStarted
	close(release)
	calls.Wait()
	require.EqualValues(t, 20, ok.Load())
	require.EqualValues(t, 1, lookups.Load())
}

func TestTokens_lookUpContinuesIfTheCallerDisconnects(t *testing.T) {
	t.Parallel()
	a, lookups := newAppWithLookUps(t, newSQLite(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	lookups.beforeEach = cancel
	a.sendAuthenticateRequest(ctx, "198.51.100.7", unknownToken(0))
	lookups.beforeEach = nil
	requireCode(t, a.sendAuthenticateRequest(t.Context(), "198.51.100.7", unknownToken(0)), http.StatusUnauthorized, server.CodeTokenUnknown)
	require.EqualValues(t, 1, lookups.Load(), "the look-up of the disconnected caller must continue, and its result must be used")
}

func TestTokens_failedLookUpIsNotCached(t *testing.T) {
	t.Parallel()
	a := newRateLimitedApp(t)
	c := a.newCaller(t, store.TierPremium)
	broken := errors.New("the database is broken")
	a.databaseError.Store(&broken)
	for range 70 {
		c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusInternalServerError)
	}
	a.databaseError.Store(nil)
	c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
}
