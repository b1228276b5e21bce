package server

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

// RateStore counts calls in windows of fixed length.
type RateStore interface {
	// Take counts one call under a key and says what is left of limit in the window that is running, which
	// begins with the first call after the one before has ended. The limit is not part of the key: where it changes, the count goes on.
	Take(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error)
}

// Quota is what is left in a window.
type Quota struct {
	Remaining int64
	Exceeded  bool          // this call was one too many
	Reset     time.Duration // until the window ends; never too short
}

// NewMemoryRateStore counts in the memory of this process: two servers have two counts.
func NewMemoryRateStore() RateStore { return LimiterRateStore(memory.NewStore()) }

// Unlimited is a rate store in which nothing is ever too much, for measurements: the quota headers say what the limit would be.
type Unlimited struct{}

// Take counts nothing.
func (Unlimited) Take(_ context.Context, _ string, limit int64, window time.Duration) (Quota, error) {
	return Quota{Remaining: limit - 1, Reset: window}, nil
}

// LimiterRateStore counts in any store of the limiter library, such as its Redis store, which several servers share.
func LimiterRateStore(s limiter.Store) RateStore { return limiterStore{s} }

type limiterStore struct{ limiter.Store }

func (l limiterStore) Take(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error) {
	lc, err := l.Get(ctx, key, limiter.Rate{Period: window, Limit: limit})
	if err != nil {
		return Quota{}, err
	}
	// Reset is cut to a whole second: the window ends somewhere in the second after it.
	reset := min(time.Until(time.Unix(lc.Reset+1, 0)), window) //nolint:forbidigo // the library counts by the wall clock
	return Quota{Remaining: lc.Remaining, Exceeded: lc.Reached, Reset: max(reset, time.Second)}, nil
}

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
		quota := s.take(c.Request().Context(), "org:"+caller.Organisation.ID.String()+":"+op.id, limit)
		setQuotaHeaders(c, op.id, limit, quota)
		if quota.Exceeded {
			e := problem(CodeRateLimited, "%s may be called %d times a minute by your organisation. Try again in %d seconds.",
				op.id, limit, wholeSeconds(quota.Reset))
			e.RetryAfter = quota.Reset
			return e
		}
		return next(c)
	}
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
	quota := s.take(c.Request().Context(), "address:"+network(c.RealIP()), refusalsPerMinute)
	if !quota.Exceeded {
		return nil
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

// take counts in the configured store, and in this process's memory while that store is away: a limit that is counted for each
// server on its own is better than no service.
func (s *Server) take(ctx context.Context, key string, limit int64) Quota {
	quota, err := s.rates.Take(ctx, key, limit, rateWindow)
	if err == nil {
		return quota
	}
	s.logger.WarnContext(ctx, "rate store does not answer, counting in memory", "error", err)
	quota, err = s.localRates.Take(ctx, key, limit, rateWindow)
	if err != nil { // the memory store has no error to give
		s.logger.ErrorContext(ctx, "rate limit not counted", "error", err)
		return Quota{Remaining: limit, Reset: rateWindow}
	}
	return quota
}

func setQuotaHeaders(c echo.Context, policy string, limit int64, q Quota) {
	h, reset := c.Response().Header(), wholeSeconds(q.Reset)
	h.Set("RateLimit-Limit", strconv.FormatInt(limit, 10))
	h.Set("RateLimit-Remaining", strconv.FormatInt(q.Remaining, 10))
	h.Set("RateLimit-Reset", strconv.Itoa(reset))
	h.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", policy, q.Remaining, reset))
	h.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", policy, limit, int(rateWindow.Seconds())))
}
