package server

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"
)

// limitOrganisation counts a call for the caller's organisation and the operation, and refuses those beyond the limit of
// the tier. Every answer after this bears the quota headers.
func (s *Server) limitOrganisation(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		op := s.operations.of(c)
		if op == nil {
			return next(c)
		}
		caller := CallerFrom(c.Request().Context())
		limit := caller.facts.limits[op.group]
		key := rateKey(caller, op)
		quota, err := s.rates.Take(c.Request().Context(), key, limit, rateWindow)
		if err != nil {
			return err
		}
		setQuotaHeaders(c, op.id, limit, quota)
		if quota.Exceeded {
			e := problem(CodeRateLimited, "%s may be called %d times a minute by your organisation. Try again in %d seconds.",
				op.id, limit, wholeSeconds(quota.Reset))
			e.RetryAfter = quota.Reset
			return e
		}
		c.Response().Before(func() { s.chargeNothingFor304(c, op, key, limit) })
		return next(c)
	}
}

// chargeNothingFor304 gives a call back that told the caller nothing new, before its headers are sent.
func (s *Server) chargeNothingFor304(c echo.Context, op *operation, key string, limit int64) {
	if c.Response().Status != http.StatusNotModified {
		return
	}
	quota, err := s.rates.GiveBack(c.Request().Context(), key, limit, rateWindow)
	if err != nil { // it stays counted
		s.logger.ErrorContext(c.Request().Context(), "a call was not given back", "request_id", requestID(c), "error", err)
		return
	}
	setQuotaHeaders(c, op.id, limit, quota)
}

func rateKey(caller Caller, op *operation) string {
	return "org:" + caller.Organisation.ID.String() + ":" + op.id
}

// notModifiedFactor is how many answers of 304 a window may have for each call that the tier's limit allows. They cost little, but not
// nothing.
const notModifiedFactor = 4

// limitNotModified counts an answer of 304 against a limit of its own, since the ordinary one does not count it.
func (s *Server) limitNotModified(c echo.Context) error {
	op, caller := s.operations.of(c), CallerFrom(c.Request().Context())
	limit := notModifiedFactor * caller.facts.limits[op.group]
	quota, err := s.rates.Take(c.Request().Context(), rateKey(caller, op)+":304", limit, rateWindow)
	if err != nil || !quota.Exceeded {
		return err
	}
	e := problem(CodeRateLimited, "%s may be answered with 304 %d times a minute for your organisation. Try again in %d seconds.",
		op.id, limit, wholeSeconds(quota.Reset))
	e.RetryAfter = quota.Reset
	return e
}

// checkScope refuses what the token's scopes do not cover. It comes after the limit, so that its answers are counted and
// bear the quota headers like every other.
func (s *Server) checkScope(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		op := s.operations.of(c)
		if op == nil || op.scope == "" {
			return next(c)
		}
		if token := CallerFrom(c.Request().Context()).Token; !slices.Contains(token.Scopes, op.scope) {
			return problem(CodeScopeMissing, "This operation needs a token with the scope %s; this token has %v.", op.scope, token.Scopes)
		}
		return next(c)
	}
}

// refusalsPerMinute is how many requests without a valid token an address may send in a minute.
const refusalsPerMinute = 60

// limitAddress counts a request without a valid token for its address.
func (s *Server) limitAddress(c echo.Context) error {
	quota, err := s.rates.Take(c.Request().Context(), "address:"+network(c.RealIP()), refusalsPerMinute, rateWindow)
	if err != nil || !quota.Exceeded {
		return err
	}
	setQuotaHeaders(c, "unauthenticated", refusalsPerMinute, quota)
	e := problem(CodeRateLimited, "This address sent more than %d requests without a valid token in a minute. Try again in %d seconds.",
		refusalsPerMinute, wholeSeconds(quota.Reset))
	e.RetryAfter = quota.Reset
	return e
}

// network is the address, or for IPv6 the network of 64 bits, of which one host has all the addresses it wants.
func network(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	p, _ := a.Prefix(64) // cannot fail: every IPv6 address has 128 bits
	return p.String()
}

func setQuotaHeaders(c echo.Context, policy string, limit int64, q Quota) {
	h, reset := c.Response().Header(), wholeSeconds(q.Reset)
	h.Set("RateLimit-Limit", strconv.FormatInt(limit, 10))
	h.Set("RateLimit-Remaining", strconv.FormatInt(q.Remaining, 10))
	h.Set("RateLimit-Reset", strconv.Itoa(reset))
	h.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", policy, q.Remaining, reset))
	h.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", policy, limit, int(rateWindow.Seconds())))
}
