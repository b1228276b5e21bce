package server

import (
	"context"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// Authenticate returns the organisation, the token and the rate limits of the caller.
func (s *Server) Authenticate(ctx context.Context, _ api.AuthenticateRequestObject) (api.AuthenticateResponseObject, error) {
	caller := CallerFrom(ctx)
	return api.Authenticate200JSONResponse(api.Authentication{
		Organisation: ToAPIOrganisation(caller.Organisation),
		Token:        ToAPIToken(caller.Token),
		RateLimits:   s.rateLimits(caller.facts),
	}), nil
}

// ToAPIOrganisation converts an organisation for a response.
func ToAPIOrganisation(o store.Organisation) api.Organisation {
	return api.Organisation{ID: o.ID, Name: o.Name, Tier: api.OrganisationTier(o.Tier),
		Subscription: api.OrganisationSubscription(o.Subscription)}
}

// ToAPIToken converts the description of a token for a response. The response does not contain the token itself.
func ToAPIToken(t store.Token) api.Token {
	scopes := make([]api.TokenScopes, len(t.Scopes))
	for i, sc := range t.Scopes {
		scopes[i] = api.TokenScopes(sc)
	}
	return api.Token{ID: t.ID, Name: t.Name, CreatedAt: toAPITime(t.CreatedAt), ExpiresAt: toAPITimePtr(t.ExpiresAt), Scopes: scopes}
}

// rateLimits returns the rate limit of each rate group for a tier, with the operations of the group.
func (s *Server) rateLimits(facts tierFacts) []api.RateLimit {
	out := make([]api.RateLimit, 0, len(rateGroups))
	for _, g := range rateGroups {
		l := api.RateLimit{Group: string(g), Limit: int32(facts.limits[g]), WindowSeconds: int32(rateWindow.Seconds())} //nolint:gosec // both numbers are small
		for _, op := range s.contract.sorted {
			if op.group == g {
				l.Operations = append(l.Operations, op.id)
			}
		}
		out = append(out, l)
	}
	return out
}
