package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store"
)

// Caller is the sender of a request: the token of the request and the organisation that the token belongs to.
type Caller struct {
	store.Identity
	// Org gives access to the data of the caller's organisation, and to no data of other organisations.
	Org *store.Org
	// View says whether the response shows metrics or replaces them by null, and whether a collector is running.
	View View

	rules tierRules // rate limits and rights that the organisation's tier gives
}

// requestState has the values that the middleware passes to an operation of the OpenAPI contract. The request's context contains it.
type requestState struct {
	Caller
	operation   *operation
	echo        echo.Context         // an operation needs it for the request's URL and the response's headers
	body        []byte               // request body; set by limitInFlight if the operation has a request body
	decodedBody any                  // JSON value of body; set by validate
	conditional *conditionalResponse // set by answerConditionally for GET and HEAD requests, and nil for others
	recordID    uuid.UUID            // set by idempotency: see recordIDFrom
}

type requestStateKey struct{}

// stateFrom returns the state that Server.authenticate stored in the context. It returns nil if the caller is not identified, or if the request is not
// for an operation of the OpenAPI contract.
func stateFrom(ctx context.Context) *requestState {
	state, _ := ctx.Value(requestStateKey{}).(*requestState)
	return state
}

// callerFrom returns the Caller that Server.authenticate stored in the context. It panics if the context has no requestState.
func callerFrom(ctx context.Context) Caller { return stateFrom(ctx).Caller }

// authenticate is a middleware that looks up the token of a request, and stores the requestState with the Caller in the request's context.
func (s *Server) authenticate(c echo.Context, op *operation, next echo.HandlerFunc) error {
	id, err := s.identify(c)
	if err != nil {
		return err
	}
	r := c.Request()
	rules, err := s.tiers.rulesOf(id.Organisation.Tier)
	if err != nil {
		return err
	}
	view := View{masked: rules.masked}
	if op.masked { // only the responses of these operations say whether a collector is running, so the other operations do not need this query
		fetchable, err := s.fetchable.readFetchable(r.Context())
		if err != nil {
			return err
		}
		view.noCollector = !fetchable.IsRunning()
	}
	caller := Caller{Identity: id, Org: s.store.Org(id.Organisation.ID), View: view, rules: rules}
	c.SetRequest(r.WithContext(context.WithValue(r.Context(), requestStateKey{}, &requestState{Caller: caller, operation: op, echo: c})))
	return next(c)
}

// checkScope is a middleware that answers with status 403 if the token lacks the scope that the operation needs.
func (s *Server) checkScope(c echo.Context, op *operation, next echo.HandlerFunc) error {
	if op.scope == "" {
		return next(c)
	}
	if token := callerFrom(c.Request().Context()).Token; !token.HasScope(op.scope) {
		return problem(CodeScopeMissing, "This operation needs a token with the scope %s; this token has %s.", op.scope, words.JoinWithAnd(token.Scopes))
	}
	return next(c)
}

// identify returns the token of a request and the token's organisation. The error has status 401 for
// an invalid token, or 429 if the IP address exceeded a limit.
func (s *Server) identify(c echo.Context) (store.Identity, error) {
	if id, ok := pageCaller(c.Request().Context()); ok {
		return id, nil
	}
	address := networkOf(c.RealIP())
	token, err := bearerToken(c.Request())
	var id store.Identity
	if err == nil {
		id, err = s.tokens.findToken(c.Request().Context(), token, address)
	}
	if err == nil {
		return id, nil
	}
	refusal := tokenError(err)
	if refusal.Code.info().Status == http.StatusUnauthorized {
		if e := s.tokens.addressLimits.countRequest(c.Request().Context(), refusedRequests, address); e != nil {
			err, refusal = e, toError(e)
		}
	}
	if exceeded, ok := errors.AsType[*limitExceeded](err); ok {
		setQuotaHeaders(c, exceeded.limit.name, exceeded.limit.perMinute, Quota{Exceeded: true, Reset: exceeded.reset})
		return store.Identity{}, exceeded.problem()
	}
	return store.Identity{}, refusal
}

// bearerToken returns the token in the Authorization header. It returns an *Error if the header is
// missing or contains no well-formed token.
func bearerToken(r *http.Request) (string, error) {
	headers := r.Header.Values(echo.HeaderAuthorization)
	if len(headers) == 0 {
		if name := tokenInQuery(r.URL.RawQuery); name != "" {
			return "", problem(CodeTokenMissing, "A token in the query parameter %s is refused. Send the header Authorization: Bearer rt_….", name)
		}
		return "", problem(CodeTokenMissing, "The request has no token. Send the header Authorization: Bearer rt_….")
	}
	if len(headers) > 1 {
		return "", problem(CodeTokenMalformed, "The request has %d Authorization headers. Send only one.", len(headers))
	}
	// The error messages contain no part of the header.
	scheme, token, _ := strings.Cut(strings.TrimSpace(headers[0]), " ")
	token = strings.TrimSpace(token)
	switch {
	case !strings.EqualFold(scheme, "Bearer"), token == "":
		return "", problem(CodeTokenMalformed, "The Authorization header does not consist of the word Bearer and a token. Send the header Authorization: Bearer rt_….")
	case !strings.HasPrefix(token, "rt_"):
		return "", problem(CodeTokenMalformed, "This is not a token of ReelTally: a token starts with rt_.")
	case !store.WellFormedToken(token):
		return "", problem(CodeTokenMistyped, "The token's checksum does not fit, so it was mistyped or cut off.")
	}
	return token, nil
}

// tokenInQuery returns the name of the first query parameter that seems to contain a token, or "" if
// no parameter does.
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

// tokenError converts an error of bearerToken or of a token look-up into the error response.
func tokenError(err error) *Error {
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
