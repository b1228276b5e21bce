package server

import (
	"context"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// Authenticate answers GET /authenticate with the caller's organisation, token and rate limits.
func (s *Server) Authenticate(ctx context.Context, _ api.AuthenticateRequestObject) (api.AuthenticateResponseObject, error) {
	caller := CallerFrom(ctx)
	return api.Authenticate200JSONResponse(api.Authentication{
		Organisation: ToAPIOrganisation(caller.Organisation),
		Token:        ToAPIToken(caller.Token),
		RateLimits:   s.rateLimits(caller.facts),
	}), nil
}

// ToAPIOrganisation converts an organisation from the database to the JSON type of the API.
func ToAPIOrganisation(o store.Organisation) api.Organisation {
	return api.Organisation{ID: o.ID, Name: o.Name, Tier: api.OrganisationTier(o.Tier),
		Subscription: api.OrganisationSubscription(o.Subscription)}
}

// ToAPIToken converts the database record of a token to the JSON type of the API. The result does not contain the secret.
func ToAPIToken(t store.Token) api.Token {
	return api.Token{ID: t.ID, Name: t.Name, CreatedAt: toAPITime(t.CreatedAt), ExpiresAt: toAPITimePtr(t.ExpiresAt), Scopes: toAPIScopes(t.Scopes)}
}

func toAPIScopes(scopes []store.Scope) api.Scopes {
	out := make(api.Scopes, len(scopes))
	for i, sc := range scopes {
		out[i] = api.Scope(sc)
	}
	return out
}

// rateLimits returns the rate limit of each rate group in a tier. The limit applies to each operation
// of the group separately.
func (s *Server) rateLimits(facts tierRules) []api.RateLimit {
	out := make([]api.RateLimit, 0, len(rateGroups))
	for _, g := range rateGroups {
		l := api.RateLimit{Group: string(g), Limit: int32(facts.limits[g]), WindowSeconds: int32(rateWindow.Seconds())} //nolint:gosec // no overflow, because a limit is at most a million, and the window is a minute
		for _, op := range s.contract.sorted {
			if op.group == g {
				l.Operations = append(l.Operations, op.id)
			}
		}
		out = append(out, l)
	}
	return out
}
