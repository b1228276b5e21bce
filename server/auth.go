package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/store"
)

// Caller is the organisation and token that sent a request.
type Caller struct {
	store.Identity
	// Org gives access to the data of the caller's organisation only.
	Org *store.Org
	// View says whether the response contains metrics.
	View View

	facts tierFacts // limits and rights of the organisation's tier
}

type callerKey struct{}

// CallerFrom returns the caller from the context of a request. It panics if the request is not for an operation of the contract, because
// such requests are not authenticated.
func CallerFrom(ctx context.Context) Caller {
	return ctx.Value(callerKey{}).(Caller)
}

// authenticate looks up the token of a request and stores the Caller in the request's context. It answers 401 if the token is not valid.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		op := s.contract.match(c)
		if op == nil {
			return next(c)
		}
		id, err := s.identify(c)
		if err != nil {
			return err
		}
		r := c.Request()
		facts, err := factsOfTier(id.Organisation.Tier)
		if err != nil {
			return err
		}
		caller := Caller{Identity: id, Org: s.store.Org(id.Organisation.ID), View: FullView, facts: facts}
		if op.masked && facts.masked {
			caller.View = MaskedView
		}
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
		return next(c)
	}
}

// identify returns the token of the request and its organisation. It returns a problem with 401 if the token is not valid, or with 429 if
// the IP address has sent too many requests without a valid token.
func (s *Server) identify(c echo.Context) (store.Identity, error) {
	address := network(c.RealIP())
	token, err := bearerToken(c.Request())
	var id store.Identity
	if err == nil {
		id, err = s.identities.find(c.Request().Context(), token, address)
	}
	if err == nil {
		return id, nil
	}
	refusal := refuseToken(err)
	if refusal.Code.info().Status == http.StatusUnauthorized {
		if e := s.identities.addressLimits.take(c.Request().Context(), refusedRequests, address); e != nil {
			err, refusal = e, toError(e)
		}
	}
	if exceeded, ok := errors.AsType[*limitExceeded](err); ok {
		setQuotaHeaders(c, exceeded.limit.name, exceeded.limit.perMinute, Quota{Exceeded: true, Reset: exceeded.reset})
		return store.Identity{}, exceeded.problem()
	}
	return store.Identity{}, refusal
}

// bearerToken returns the well-formed token in the Authorization header, or the problem if there is none. The problem contains no part of the
// token.
func bearerToken(r *http.Request) (string, error) {
	headers := r.Header.Values(echo.HeaderAuthorization)
	if len(headers) == 0 {
		if name := tokenInQuery(r.URL.RawQuery); name != "" {
			return "", problem(CodeTokenMissing, "A token in the query (%s) is refused: send the header Authorization: Bearer rt_….", name)
		}
		return "", problem(CodeTokenMissing, "There is no token: send the header Authorization: Bearer rt_….")
	}
	if len(headers) > 1 {
		return "", problem(CodeTokenMalformed, "There are %d Authorization headers; send one.", len(headers))
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(headers[0]), " ")
	token = strings.TrimSpace(token)
	switch {
	case !strings.EqualFold(scheme, "Bearer"), token == "":
		return "", problem(CodeTokenMalformed, "The Authorization header must be: Bearer rt_….")
	case !strings.HasPrefix(token, "rt_"):
		return "", problem(CodeTokenMalformed, "This is not a token of ReelTally: a token starts with rt_.")
	case !store.WellFormedToken(token):
		return "", problem(CodeTokenMistyped, "The token's checksum does not fit, so it was mistyped or cut off.")
	}
	return token, nil
}

// tokenInQuery returns the name of the first query parameter whose name suggests a token or whose value is a token. It returns "" if there is
// no such parameter.
func tokenInQuery(query string) string {
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		switch strings.ToLower(name) {
		case "token", "access_token", "api_token", "api_key", "apikey", "authorization", "bearer":
			return name
		}
		if decoded, err := url.QueryUnescape(value); err == nil && store.WellFormedToken(decoded) {
			return name
		}
	}
	return ""
}

// refuseToken converts the error of bearerToken or of a token look-up into a problem.
func refuseToken(err error) *Error {
	switch {
	case errors.Is(err, store.ErrTokenUnknown):
		return problem(CodeTokenUnknown, "The token is not known.")
	case errors.Is(err, store.ErrTokenExpired):
		return problem(CodeTokenExpired, "The token has expired.")
	case errors.Is(err, store.ErrTokenRevoked):
		return problem(CodeTokenRevoked, "The token was revoked.")
	}
	return toError(err)
}
