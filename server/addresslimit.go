package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// addressLimit limits the requests without a valid token that one address may send in a minute.
type addressLimit struct {
	name      string // of the policy in the quota headers, and part of the key in the rate store
	perMinute int64
	what      string // the requests that are limited, for the problem's detail
}

var (
	// refusedRequests limits requests that are answered 401.
	refusedRequests = addressLimit{"unauthenticated", 60, "requests without a valid token"}
	// newTokens limits the database look-ups of tokens that turn out to be invalid. A request without a token, with a malformed token, or
	// with a token that was refused a moment ago needs no look-up and does not count.
	newTokens = addressLimit{"unknown_tokens", 60, "requests with unknown tokens"}
)

// limitExceeded is the error for an address that is over a limit until reset.
type limitExceeded struct {
	limit addressLimit
	reset time.Duration
}

func (e *limitExceeded) Error() string {
	return fmt.Sprintf("more than %d %s a minute", e.limit.perMinute, e.limit.what)
}

func (e *limitExceeded) problem() *Error {
	p := problem(CodeRateLimited, "This address sent more than %d %s in a minute. Try again in %d seconds.",
		e.limit.perMinute, e.limit.what, wholeSeconds(e.reset))
	p.RetryAfter = e.reset
	return p
}

// addressLimits counts the requests without a valid token for each address. It may be used concurrently.
type addressLimits struct {
	rates RateStore
	now   func() time.Time
	log   *slog.Logger
	// exceeded maps an address to the time until which it is over a limit. Until then the rate store is not called.
	exceeded *lru.Cache[string, time.Time]
}

func newAddressLimits(rates RateStore, now func() time.Time, log *slog.Logger) *addressLimits {
	return &addressLimits{rates: rates, now: now, log: log, exceeded: newLRU[string, time.Time]()}
}

func (l addressLimit) key(address string) string { return l.name + ":" + address }

// check returns *limitExceeded if the address is known to be over a limit. It counts nothing.
func (a *addressLimits) check(l addressLimit, address string) error {
	now := a.now()
	if until, ok := a.exceeded.Get(l.key(address)); ok && now.Before(until) {
		return &limitExceeded{l, until.Sub(now)}
	}
	return nil
}

// take counts one use of a limit. It returns *limitExceeded if there were too many in the current minute.
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

// giveBack undoes a take.
func (a *addressLimits) giveBack(ctx context.Context, l addressLimit, address string) {
	if _, err := a.rates.GiveBack(ctx, l.key(address), l.perMinute, rateWindow); err != nil { // the use then stays counted
		a.log.ErrorContext(ctx, "cannot give back a counted look-up of a token", "error", err)
	}
}

// network returns an IPv4 address unchanged and the /64 network of an IPv6 address. One host can use all addresses of such a network.
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
