package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// createToken sends POST /tokens and returns the new token, which has the scope "read".
func (c *caller) createToken(name string) client.CreatedToken {
	c.t.Helper()
	return decode[client.CreatedToken](c.send(http.MethodPost, "/tokens", map[string]any{"name": name, "scopes": []string{"read"}}).requireStatus(http.StatusCreated))
}

// withToken returns a caller of the same organisation that uses the token with the given secret.
func (c *caller) withToken(secret string) *caller {
	other := *c
	other.token = secret
	return &other
}

func TestTokens_areCreatedListedAndRevoked(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		made := decode[client.CreatedToken](c.send(http.MethodPost, "/tokens", map[string]any{"name": " Report script ", "scopes": []string{"read", "read"}, "expires_in_days": 90}).
			requireStatus(http.StatusCreated))
		require.Equal(t, "Report script", made.Name)
		require.Equal(t, client.Scopes{client.ScopeRead}, made.Scopes)
		require.Equal(t, a.Clock.Now().Add(90*24*time.Hour).UTC(), made.ExpiresAt.UTC())

		script := c.withToken(*made.Secret)
		script.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
		script.send(http.MethodPost, "/videos", map[string]any{"link": tiktokLink}).requireProblem(http.StatusForbidden, server.CodeScopeMissing)
		script.send(http.MethodGet, "/tokens", nil).requireProblem(http.StatusForbidden, server.CodeScopeMissing)

		listed := c.send(http.MethodGet, "/tokens", nil).requireStatus(http.StatusOK)
		require.NotContains(t, string(listed.body), *made.Secret)
		tokens := decode[client.TokenList](listed).Data
		require.Len(t, tokens, 2)
		require.Equal(t, made.ID, tokens[0].ID, "the newest token must come first")
		require.Equal(t, client.TokenStateValid, tokens[0].State)
		require.False(t, tokens[0].Current)
		require.True(t, tokens[1].Current)

		for range 2 {
			c.send(http.MethodDelete, "/tokens/"+made.ID.String(), nil).requireStatus(http.StatusNoContent)
		}
		a.Clock.Advance(time.Second) // wait longer than the half second for which the server caches a valid token
		script.send(http.MethodGet, "/videos", nil).requireProblem(http.StatusUnauthorized, server.CodeTokenRevoked)
		revoked := decode[client.TokenList](c.send(http.MethodGet, "/tokens", nil).requireStatus(http.StatusOK)).Data[0]
		require.Equal(t, client.TokenStateRevoked, revoked.State)
		require.NotNil(t, revoked.RevokedAt)

		short := decode[client.CreatedToken](c.send(http.MethodPost, "/tokens", map[string]any{"name": "short", "scopes": []string{"read"}, "expires_in_days": 1}).requireStatus(http.StatusCreated))
		a.Clock.Advance(24 * time.Hour)
		c.withToken(*short.Secret).send(http.MethodGet, "/videos", nil).requireProblem(http.StatusUnauthorized, server.CodeTokenExpired)
		require.Equal(t, client.TokenStateExpired, decode[client.TokenList](c.send(http.MethodGet, "/tokens", nil).requireStatus(http.StatusOK)).Data[0].State)
		require.NotContains(t, a.log.String(), *made.Secret)
	})
}

func TestCreateToken_storesNoSecretForARepeatedRequest(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		create := func() client.CreatedToken {
			return decode[client.CreatedToken](c.send(http.MethodPost, "/tokens", map[string]any{"name": "x", "scopes": []string{"write"}}, "Idempotency-Key", "once").requireStatus(http.StatusCreated))
		}
		first, second := create(), create()
		require.NotNil(t, first.Secret)
		require.Nil(t, second.Secret)
		require.Equal(t, first.ID, second.ID)
		require.Len(t, decode[client.TokenList](c.send(http.MethodGet, "/tokens", nil).requireStatus(http.StatusOK)).Data, 2)
	})
}

// TestCreateToken_returnsANewSecretIfTheRequestIsRepeatedAfterACrash creates a token twice with the same id. This happens if a request is repeated
// after the server crashed before it sent the first response. Only the second secret must work.
func TestCreateToken_returnsANewSecretIfTheRequestIsRepeatedAfterACrash(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		request := store.NewToken{ID: store.NewID(), Name: "x", Scopes: []store.Scope{store.ScopeRead}}
		_, lost, err := a.Org(c.org.ID).CreateToken(t.Context(), request)
		require.NoError(t, err)
		_, secret, err := a.Org(c.org.ID).CreateToken(t.Context(), request)
		require.NoError(t, err)
		c.withToken(secret).send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
		c.withToken(lost).send(http.MethodGet, "/videos", nil).requireProblem(http.StatusUnauthorized, server.CodeTokenUnknown)
		require.Len(t, decode[client.TokenList](c.send(http.MethodGet, "/tokens", nil).requireStatus(http.StatusOK)).Data, 2)
	})
}

func TestCreateToken_refusesInvalidTokens(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for _, body := range []string{
		`{"name": "", "scopes": ["read"]}`, `{"name": "  ", "scopes": ["read"]}`, `{"name": "x", "scopes": []}`, `{"name": "x"}`, `{"scopes": ["read"]}`,
		`{"name": "x", "scopes": ["owner"]}`, `{"name": "x", "scopes": ["read"], "expires_in_days": 0}`,
		`{"name": "x", "scopes": ["read"], "expires_in_days": 3651}`, `{"name": "x", "scopes": ["read"], "secret": "rt_mine"}`,
	} {
		c.send(http.MethodPost, "/tokens", json.RawMessage(body)).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	}
	require.Len(t, decode[client.TokenList](c.send(http.MethodGet, "/tokens", nil).requireStatus(http.StatusOK)).Data, 1)
}

func TestCreateToken_refusesMoreTokensThanTheLimit(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		var rows string
		for n := range store.MaxTokens - 1 {
			if n > 0 {
				rows += ", "
			}
			rows += fmt.Sprintf("('%s', '%s', 'x', '%s', 'read', 0)", uuid.New(), c.org.ID, uuid.New())
		}
		a.Exec(t, "INSERT INTO api_tokens (id, organisation_id, name, hash, scopes, created_at) VALUES "+rows)
		p := c.send(http.MethodPost, "/tokens", map[string]any{"name": "x", "scopes": []string{"read"}}).requireProblem(http.StatusConflict, server.CodeTooManyTokens)
		require.Contains(t, p.Detail, "1000 tokens")
	})
}

func TestTokens_ofOtherOrganisationsAreUnknown(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		theirs, mine := a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)
		made := theirs.createToken("theirs")
		mine.send(http.MethodDelete, "/tokens/"+made.ID.String(), nil).requireProblem(http.StatusNotFound, server.CodeNotFound)
		theirs.withToken(*made.Secret).send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
		require.NotContains(t, string(mine.send(http.MethodGet, "/tokens", nil).requireStatus(http.StatusOK).body), made.ID.String())
	})
}
