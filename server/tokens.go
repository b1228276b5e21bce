package server

import (
	"context"
	"time"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// ListTokens answers GET /tokens with the tokens of the caller's organisation.
func (s *Server) ListTokens(ctx context.Context, _ api.ListTokensRequestObject) (api.ListTokensResponseObject, error) {
	caller := CallerFrom(ctx)
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
	t, secret, err := CallerFrom(ctx).Org.CreateToken(ctx, n)
	if err != nil {
		return nil, err
	}
	return api.CreateToken201JSONResponse(api.CreatedToken{ID: t.ID, Name: t.Name, Scopes: toAPIScopes(t.Scopes), CreatedAt: toAPITime(t.CreatedAt),
		ExpiresAt: toAPITimePtr(t.ExpiresAt), Secret: &secret}), nil
}

// RevokeToken answers DELETE /tokens/{token_id}: it revokes a token.
func (s *Server) RevokeToken(ctx context.Context, r api.RevokeTokenRequestObject) (api.RevokeTokenResponseObject, error) {
	return api.RevokeToken204Response{}, CallerFrom(ctx).Org.RevokeToken(ctx, r.TokenID)
}
