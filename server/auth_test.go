package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// Requirements in docs/coverage.md: 4-15, 5-04
func TestAuthenticate_returnsTheOrganisationAndTheToken(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		org, err := a.CreateOrganisation(t.Context(), "Größe & Co", store.TierBasic, store.SubscriptionNone)
		require.NoError(t, err)
		token, secret, err := a.CreateToken(t.Context(), org.ID, "reporting", []store.Scope{store.ScopeRead}, time.Hour)
		require.NoError(t, err)
		got := decode[client.Authentication](a.send(t, http.MethodGet, "/authenticate", nil, "Authorization", "Bearer "+secret).requireStatus(http.StatusOK))
		require.Equal(t, client.Organisation{ID: org.ID, Name: "Größe & Co", Tier: "basic", Subscription: "none"}, got.Organisation)
		require.Equal(t, token.ID, got.Token.ID)
		require.Equal(t, []client.Scope{"read"}, got.Token.Scopes)
		require.True(t, got.Token.ExpiresAt.Equal(a.Clock.Now().Add(time.Hour)))

		limits := map[string]int32{}
		operations := 0
		for _, l := range got.RateLimits {
			require.Equal(t, int32(60), l.WindowSeconds)
			limits[l.Group] = l.Limit
			operations += len(l.Operations)
		}
		require.Equal(t, map[string]int32{"authenticate": 60, "read": 15, "write": 15}, limits)
		require.Equal(t, len(sharedContract().operations), operations)
	})
}

func TestAuthorizationHeader_acceptsBearerInUpperOrLowerCase(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	token := a.newCaller(t, store.TierPremium).token
	for _, header := range []string{"Bearer " + token, "bearer " + token, "BEARER   " + token, " Bearer " + token + " "} {
		a.send(t, http.MethodGet, "/authenticate", nil, "Authorization", header, "Content-Type", "application/json").requireStatus(http.StatusOK)
	}
}

// Requirements in docs/coverage.md: 5-01
func TestToken_eachKindOfInvalidTokenHasItsOwnErrorCode(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	other := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium)
	for header, code := range map[string]server.Code{
		"Basic dXNlcjpwYXNz":                      server.CodeTokenMalformed,
		"Bearer":                                  server.CodeTokenMalformed,
		"Bearer ":                                 server.CodeTokenMalformed,
		c.token:                                   server.CodeTokenMalformed,
		"Bearer sk_live_123":                      server.CodeTokenMalformed,
		"Bearer " + c.token[:48]:                  server.CodeTokenMistyped,
		"Bearer " + c.token + "x":                 server.CodeTokenMistyped,
		"Bearer " + c.token + " " + c.token:       server.CodeTokenMistyped,
		"Bearer " + strings.ToLower(c.token):      server.CodeTokenMistyped,
		"Bearer rt_" + strings.Repeat("A", 10000): server.CodeTokenMistyped,
		"Bearer " + other.token:                   server.CodeTokenUnknown,
	} {
		got := a.send(t, http.MethodGet, "/videos", nil, "Authorization", header)
		got.requireProblem(http.StatusUnauthorized, code)
		require.Contains(t, got.Header.Get("WWW-Authenticate"), `error="invalid_token"`)
		require.NotContains(t, string(got.body), c.token[:20])
	}
	t.Run("a request without a token", func(t *testing.T) {
		got := a.send(t, http.MethodGet, "/videos", nil)
		got.requireProblem(http.StatusUnauthorized, server.CodeTokenMissing)
		require.Equal(t, `Bearer realm="ReelTally"`, got.Header.Get("WWW-Authenticate"))
	})
	t.Run("a token in the query", func(t *testing.T) {
		for _, query := range []string{"token=x", "access_token=" + c.token, "whatever=" + c.token} {
			p := a.send(t, http.MethodGet, "/videos?"+query, nil).requireProblem(http.StatusUnauthorized, server.CodeTokenMissing)
			require.Contains(t, p.Detail, "query")
			require.NotContains(t, p.Detail, c.token)
		}
	})
	t.Run("two Authorization headers", func(t *testing.T) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.http.URL+"/videos", nil)
		require.NoError(t, err)
		r.Header["Authorization"] = []string{"Bearer " + c.token, "Bearer " + c.token}
		resp, err := a.newContractCheckingClient().Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	})
}

func TestToken_revokedTokenIsRefusedWithinASecond(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		org := a.newCaller(t, store.TierPremium).org
		revoked, secret, err := a.CreateToken(t.Context(), org.ID, "revoked", []store.Scope{store.ScopeRead}, 0)
		require.NoError(t, err)
		_, expiring, err := a.CreateToken(t.Context(), org.ID, "expiring", []store.Scope{store.ScopeRead}, 100*time.Millisecond)
		require.NoError(t, err)
		authenticate := func(secret string) response {
			return a.send(t, http.MethodGet, "/authenticate", nil, "Authorization", "Bearer "+secret)
		}
		authenticate(secret).requireStatus(http.StatusOK)
		authenticate(expiring).requireStatus(http.StatusOK)

		require.NoError(t, a.RevokeToken(t.Context(), revoked.ID))
		a.Clock.Advance(100 * time.Millisecond)
		authenticate(expiring).requireProblem(http.StatusUnauthorized, server.CodeTokenExpired)
		a.Clock.Advance(900 * time.Millisecond)
		authenticate(secret).requireProblem(http.StatusUnauthorized, server.CodeTokenRevoked)
	})
}

func TestToken_lastUseIsStoredAtMostOnceAMinute(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		lastUsedAt := func() *store.Instant {
			a.server.Close() // Close waits until the time of the token's last use is stored
			tokens, err := a.Tokens(t.Context(), c.org.ID)
			require.NoError(t, err)
			return tokens[0].LastUsedAt
		}
		require.Nil(t, lastUsedAt())
		c.listVideos("")
		first := store.InstantOf(a.Clock.Now())
		require.Equal(t, first, *lastUsedAt())
		a.Clock.Advance(30 * time.Second)
		c.listVideos("")
		require.Equal(t, first, *lastUsedAt(), "the last use must be stored at most once a minute")
		a.Clock.Advance(31 * time.Second)
		c.listVideos("")
		require.Equal(t, store.InstantOf(a.Clock.Now()), *lastUsedAt())
	})
}

func TestLog_containsEachRequestButNoSecrets(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.send(http.MethodGet, "/videos?link=https%3A%2F%2Fwww.tiktok.com%2F%40a%2Fvideo%2F7338812345678901234%3Fsecret%3Dx&q=private%20words", nil,
		"X-Request-Id", "abc.1").requireStatus(http.StatusOK)
	c.send(http.MethodGet, "/videos/https%3A%2F%2Fwww.tiktok.com%2F%40a%2Fvideo%2F7338812345678901234%3Fsecret%3Dx", nil).requireStatus(http.StatusNotFound)
	a.send(t, http.MethodGet, "/videos?token="+c.token, nil).requireStatus(http.StatusUnauthorized)
	log := a.log.String()
	for _, want := range []string{`"request_id":"abc.1"`, `"route":"/videos"`, `"status":200`, c.org.ID.String(), `"route":"/videos/:ad_id"`, `"status":404`, `"status":401`} {
		require.Contains(t, log, want)
	}
	for _, secret := range []string{c.token, c.token[3:20], "secret", "private words", "private%20words"} {
		require.NotContains(t, log, secret)
	}
}
