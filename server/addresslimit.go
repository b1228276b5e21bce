package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// addressLimit is a limit of the requests without a valid token that one IP address can send in a minute.
type addressLimit struct {
	name        string // name of the policy in the quota headers, and part of the key in the rate store
	perMinute   int64
	description string // description of the limited requests for error messages
}

var (
	// refusedRequests limits the requests that are answered with 401.
	refusedRequests = addressLimit{"unauthenticated", 60, "requests without a valid token"}
	// unknownTokens limits the database look-ups of unknown tokens. A request without a token, with a malformed token, or with a token whose
	// refusal is cached causes no look-up and is not counted.
	unknownTokens = addressLimit{"unknown_tokens", 60, "requests with unknown tokens"}
)

// limitExceeded is the error for an address that has reached a limit.
type limitExceeded struct {
	limit addressLimit
	reset time.Duration // time until the address can send requests again
}

func (e *limitExceeded) Error() string {
	return fmt.Sprintf("more than %d %s a minute", e.limit.perMinute, e.limit.description)
}

// problem returns the problem that is sent to the caller.
func (e *limitExceeded) problem() *Error {
	p := problem(CodeRateLimited, "This address sent more than %d %s in a minute. Try again in %d seconds.",
		e.limit.perMinute, e.limit.description, wholeSeconds(e.reset))
	p.RetryAfter = e.reset
	return p
}

// addressLimits counts the requests without a valid token for each IP address. It is safe for concurrent use.
type addressLimits struct {
	rates RateStore
	now   func() time.Time
	log   *slog.Logger
	// exceeded maps the key of a limit and an address to the time when the address can send requests again. Until then, the rate store is not
	// called.
	exceeded *lru.Cache[string, time.Time]
}

func newAddressLimits(rates RateStore, now func() time.Time, log *slog.Logger) *addressLimits {
	return &addressLimits{rates: rates, now: now, log: log, exceeded: newLRU[string, time.Time]()}
}

// key returns the key of an address in the rate store.
func (l addressLimit) key(address string) string { return l.name + ":" + address }

// check returns *limitExceeded if an earlier take found that the address has reached the limit. It does not count a request.
func (a *addressLimits) check(l addressLimit, address string) error {
	now := a.now()
	if until, ok := a.exceeded.Get(l.key(address)); ok && now.Before(until) {
		return &limitExceeded{l, until.Sub(now)}
	}
	return nil
}

// take counts one request of an address. It returns *limitExceeded if the address has sent too many such requests in the current minute.
func (a *addressLimits) take(ctx context.Context, l addressLimit, address string) error {
	if err := a.check(l, address); err != nil {
		return err
	}
	quota, err := a.rates.Take(ctx, l.key(address), l.perMinute, rateWindow)
	if err != nil || !quota.Exceeded {
		return err
	}
	a.exceeded.Add(l.key(address), a.now().Add(quota.Reset))
	return &limitExceeded{l, quota.Reset}
}

// giveBack undoes one take, so that the request is not counted.
func (a *addressLimits) giveBack(ctx context.Context, l addressLimit, address string) {
	if _, err := a.rates.GiveBack(ctx, l.key(address), l.perMinute, rateWindow); err != nil { // if GiveBack fails, the request stays counted
		a.log.ErrorContext(ctx, "cannot subtract a look-up of a token from the rate limit", "error", err)
	}
}

// network returns the part of an IP address for which requests are counted together. For IPv4 it is the address. For IPv6 it is the /64
// network, because one machine can use all addresses of such a network.
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
