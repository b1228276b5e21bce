package server

import (
	"context"
	"time"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// Authenticate answers GET /authenticate with the caller's organisation, token and rate limits. Its requirements are in section 5 of docs/coverage.md.
func (s *Server) Authenticate(ctx context.Context, _ api.AuthenticateRequestObject) (api.AuthenticateResponseObject, error) {
	caller := callerFrom(ctx)
	return api.Authenticate200JSONResponse(api.Authentication{
		Organisation: toAPIOrganisation(caller.Organisation),
		Token:        toAPIToken(caller.Token),
		RateLimits:   s.rateLimits(caller.rules),
	}), nil
}

// rateLimits returns the rate limit of each rate group in a tier. The limit applies to each operation
// of the group separately.
func (s *Server) rateLimits(rules tierRules) []api.RateLimit {
	out := make([]api.RateLimit, 0, len(rateGroups))
	for _, g := range rateGroups {
		out = append(out, api.RateLimit{Group: string(g), Limit: int32(rules.limits[g]), WindowSeconds: int32(rateWindow.Seconds()), //nolint:gosec // no overflow, because a limit is at most a million, and the window is a minute
			Operations: s.contract.groups[g]})
	}
	return out
}

// ListTokens answers GET /tokens with the tokens of the caller's organisation.
func (s *Server) ListTokens(ctx context.Context, _ api.ListTokensRequestObject) (api.ListTokensResponseObject, error) {
	caller := callerFrom(ctx)
	tokens, err := caller.Org.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	now := store.InstantOf(s.now())
	list := api.TokenList{Data: make([]api.ListedToken, len(tokens))}
	for i, t := range tokens {
		list.Data[i] = api.ListedToken{ID: t.ID, Name: t.Name, Scopes: toAPIScopes(t.Scopes), State: api.TokenState(t.State(now)), Current: t.ID == caller.Token.ID,
			CreatedAt: toAPITime(t.CreatedAt), ExpiresAt: toAPITimePtr(t.ExpiresAt), LastUsedAt: toAPITimePtr(t.LastUsedAt), RevokedAt: toAPITimePtr(t.RevokedAt)}
	}
	return api.ListTokens200JSONResponse(list), nil
}

// CreateToken answers POST /tokens: it creates a token and returns its secret.
func (s *Server) CreateToken(ctx context.Context, r api.CreateTokenRequestObject) (api.CreateTokenResponseObject, error) {
	n := store.NewToken{ID: recordIDFrom(ctx), Name: r.Body.Name}
	for _, sc := range r.Body.Scopes {
		n.Scopes = append(n.Scopes, store.Scope(sc))
	}
	if r.Body.ExpiresInDays != nil {
		n.Validity = time.Duration(*r.Body.ExpiresInDays) * 24 * time.Hour
	}
	t, secret, err := callerFrom(ctx).Org.CreateToken(ctx, n)
	if err != nil {
		return nil, err
	}
	return api.CreateToken201JSONResponse(api.CreatedToken{ID: t.ID, Name: t.Name, Scopes: toAPIScopes(t.Scopes), CreatedAt: toAPITime(t.CreatedAt),
		ExpiresAt: toAPITimePtr(t.ExpiresAt), Secret: &secret}), nil
}

// RevokeToken answers DELETE /tokens/{token_id}: it revokes a token.
func (s *Server) RevokeToken(ctx context.Context, r api.RevokeTokenRequestObject) (api.RevokeTokenResponseObject, error) {
	return api.RevokeToken204Response{}, callerFrom(ctx).Org.RevokeToken(ctx, r.TokenID)
}

// toAPIOrganisation converts an organisation from the database to the JSON type of the API.
func toAPIOrganisation(o store.Organisation) api.Organisation {
	return api.Organisation{ID: o.ID, Name: o.Name, Tier: api.OrganisationTier(o.Tier),
		Subscription: api.OrganisationSubscription(o.Subscription)}
}

// toAPIToken converts the database record of a token to the JSON type of the API. The result does not contain the secret.
func toAPIToken(t store.Token) api.Token {
	return api.Token{ID: t.ID, Name: t.Name, CreatedAt: toAPITime(t.CreatedAt), ExpiresAt: toAPITimePtr(t.ExpiresAt), Scopes: toAPIScopes(t.Scopes)}
}

func toAPIScopes(scopes []store.Scope) api.Scopes {
	out := make(api.Scopes, len(scopes))
	for i, sc := range scopes {
		out[i] = api.Scope(sc)
	}
	return out
}
