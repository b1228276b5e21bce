package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/store"
)

// limitOrganisation is a middleware that counts requests by organisation and operation. A request above the limit that rateLimitOf returns gets status
// 429. A request that is answered with status 304 is not counted.
func (s *Server) limitOrganisation(c echo.Context, op *operation, next echo.HandlerFunc) error {
	caller := callerFrom(c.Request().Context())
	name, limit := rateLimitOf(c.Request().Context(), caller, op)
	if err := s.countCall(c, caller.Organisation, name, limit); err != nil {
		return err
	}
	c.Response().Before(func() { s.uncountOn304(c, caller.Organisation, name, limit) })
	return next(c)
}

// rateLimitOf returns the name of the rate limit that a request counts towards, and the limit. GET requests from pages have limits of their own.
func rateLimitOf(ctx context.Context, caller Caller, op *operation) (name string, limit int64) {
	switch {
	case !isFromPage(ctx) || op.method != http.MethodGet:
		return op.id, caller.rules.limits[op.group]
	case caller.Token.ID == uuid.Nil: // requests of share pages have no token
		return "share_" + op.id, maxShareReads
	}
	return "pages_" + op.id, maxPageReads
}

// countCall counts a call by an organisation and sets the RateLimit headers. If the organisation has exceeded
// the limit, the error has the code rate_limited. In the headers, the limit has the given name.
func (s *Server) countCall(c echo.Context, org store.Organisation, name string, limit int64) error {
	quota, err := s.rates.Count(c.Request().Context(), rateLimitKey(org, name), 1, limit, rateWindow)
	if err != nil {
		return err
	}
	setQuotaHeaders(c, name, limit, quota)
	if !quota.Exceeded {
		return nil
	}
	times := countWithNoun(int(limit), "time")
	text := fmt.Sprintf("%s may be called %s a minute by your organisation.", name, times)
	// The visitors of pages do not know the names of operations, so the text for them has no name.
	if id, ok := pageCaller(c.Request().Context()); ok {
		switch {
		case id.Token.ID == uuid.Nil:
			text = fmt.Sprintf("The share pages of this organisation can read the same kind of data at most %s a minute.", times)
		case c.Request().Method == http.MethodGet:
			text = fmt.Sprintf("The pages of your organisation can read the same kind of data at most %s a minute.", times)
		default:
			text = fmt.Sprintf("Your organisation can do this at most %s a minute, on pages and in programs together.", times)
		}
	}
	e := problem(CodeRateLimited, "%s Try again in %s.", text, inSeconds(quota.Reset))
	e.RetryAfter = quota.Reset
	return e
}

// rateLimitKey returns the key under which the rate store counts an organisation's calls for the rate limit with this name.
func rateLimitKey(org store.Organisation, name string) string {
	return "org:" + org.ID.String() + ":" + name
}

// uncountOn304 undoes the counting of a request if the response has status 304. It then updates the RateLimit headers, so it must run
// immediately before the headers are sent.
func (s *Server) uncountOn304(c echo.Context, org store.Organisation, name string, limit int64) {
	if c.Response().Status != http.StatusNotModified {
		return
	}
	quota, err := s.rates.Count(c.Request().Context(), rateLimitKey(org, name), -1, limit, rateWindow)
	if err != nil { // the error is only logged, and the request stays counted
		s.logger.ErrorContext(c.Request().Context(), "cannot undo the counting of a request that was answered with status 304", "request_id", requestID(c), "error", err)
		return
	}
	setQuotaHeaders(c, name, limit, quota)
}

// notModifiedFactor is the limit of responses with status 304, as a multiple of the operation's rate limit. Such a response needs little
// work, but it still needs a database query.
const notModifiedFactor = 4

// limit304Responses limits how many 304 responses an organisation gets from an operation in a
// minute. These responses do not count towards the operation's rate limit.
func (s *Server) limit304Responses(c echo.Context) error {
	state := stateFrom(c.Request().Context())
	limit := notModifiedFactor * state.rules.limits[state.operation.group]
	quota, err := s.rates.Count(c.Request().Context(), rateLimitKey(state.Organisation, state.operation.id)+":304", 1, limit, rateWindow)
	if err != nil || !quota.Exceeded {
		return err
	}
	// The refused request does not count towards the operation's rate limit either, and its headers describe the limit that it exceeded.
	name, operationLimit := rateLimitOf(c.Request().Context(), callerFrom(c.Request().Context()), state.operation)
	if _, err := s.rates.Count(c.Request().Context(), rateLimitKey(state.Organisation, name), -1, operationLimit, rateWindow); err != nil {
		return err
	}
	setQuotaHeaders(c, name+"_304", limit, quota)
	e := problem(CodeRateLimited, "Your organisation can get at most %d responses with status 304 in a minute from the operation %s. Try again in %s.",
		limit, state.operation.id, inSeconds(quota.Reset))
	e.RetryAfter = quota.Reset
	return e
}

// setQuotaHeaders sets the RateLimit headers of a response. The headers contain limitName as the name of the rate limit.
func setQuotaHeaders(c echo.Context, limitName string, limit int64, q Quota) {
	h, name := c.Response().Header(), strconv.Quote(limitName)
	most, remaining, reset := strconv.FormatInt(limit, 10), strconv.FormatInt(q.Remaining, 10), strconv.Itoa(wholeSeconds(q.Reset))
	h.Set("RateLimit-Limit", most)
	h.Set("RateLimit-Remaining", remaining)
	h.Set("RateLimit-Reset", reset)
	h.Set("RateLimit", name+";r="+remaining+";t="+reset)
	h.Set("RateLimit-Policy", name+";q="+most+";w="+strconv.Itoa(int(rateWindow.Seconds())))
}
