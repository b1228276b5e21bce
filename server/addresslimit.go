package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// addressLimit is a rate limit for requests without a valid token, such as attempts to sign in. It is the maximum number of such requests that one
// client address can send in a minute. A client address is an IPv4 address, or the /64 network of an IPv6 address: see networkOf.
type addressLimit struct {
	name        string // name of the limit in the RateLimit headers, and part of the key in the rate store
	perMinute   int64
	description string // what the limit counts, in words for an error message: for example "sign-in attempts"
}

var (
	// refusedRequests limits how many requests of one client address get status 401 in a minute. Above the limit, requests without a valid
	// token get status 429 until the minute ends.
	refusedRequests = addressLimit{"unauthenticated", 60, "requests without a valid token"}
	// unknownTokens limits how many unknown tokens of one client address are looked up in a minute. Malformed
	// and recently refused tokens need no look-up.
	unknownTokens = addressLimit{"unknown_tokens", 60, "requests with unknown tokens"}
)

// limitExceeded is the error for a request from a client address that has exceeded an addressLimit.
type limitExceeded struct {
	limit addressLimit
	reset time.Duration // time until the client address can send requests again
}

func (e *limitExceeded) Error() string {
	return fmt.Sprintf("more than %d %s a minute", e.limit.perMinute, e.limit.description)
}

// problem returns the error response that tells the caller when to try again.
func (e *limitExceeded) problem() *Error {
	p := problem(CodeRateLimited, "Your IP address sent more than %d %s in a minute. Try again in %s.",
		e.limit.perMinute, e.limit.description, inSeconds(e.reset))
	p.RetryAfter = e.reset
	return p
}

// addressLimits counts requests without a valid token by IP address. It is safe for concurrent use.
type addressLimits struct {
	rates RateStore
	now   func() time.Time
	log   *slog.Logger
	// exceeded contains the IP addresses that have reached a limit, with the time when the limit ends. The
	// keys are results of addressLimit.key.
	exceeded *lru.Cache[string, time.Time]
}

// newAddressLimits returns an addressLimits that counts requests in rateStore and reads the time from clock.
func newAddressLimits(rateStore RateStore, clock func() time.Time, log *slog.Logger) *addressLimits {
	return &addressLimits{rates: rateStore, now: clock, log: log, exceeded: newLRU[string, time.Time]()}
}

// key returns the key under which the rate store counts the requests of an IP address for this limit.
func (l addressLimit) key(address string) string { return l.name + ":" + address }

// checkLimit returns *limitExceeded if countRequest has already returned it for the IP address in the current minute. It does not count a
// request.
func (a *addressLimits) checkLimit(l addressLimit, address string) error {
	now := a.now()
	if until, ok := a.exceeded.Get(l.key(address)); ok && now.Before(until) {
		return &limitExceeded{l, until.Sub(now)}
	}
	return nil
}

// countRequest counts one request of an IP address towards the limit. It returns *limitExceeded if the address has sent more requests in the
// current minute than the limit allows.
func (a *addressLimits) countRequest(ctx context.Context, l addressLimit, address string) error {
	// Until the limit ends, requests are refused without calling the rate store.
	if err := a.checkLimit(l, address); err != nil {
		return err
	}
	quota, err := a.rates.Count(ctx, l.key(address), 1, l.perMinute, rateWindow)
	if err != nil || !quota.Exceeded {
		return err
	}
	a.exceeded.Add(l.key(address), a.now().Add(quota.Reset))
	return &limitExceeded{l, quota.Reset}
}

// uncountRequest undoes the counting of a request that countRequest has counted.
func (a *addressLimits) uncountRequest(ctx context.Context, l addressLimit, address string) {
	if _, err := a.rates.Count(ctx, l.key(address), -1, l.perMinute, rateWindow); err != nil { // the request stays counted
		a.log.ErrorContext(ctx, "cannot lower the request count of the client's IP address", "error", err)
	}
}

// networkOf returns the text by which requests are counted: an IPv4 address, or the /64 network of an
// IPv6 address. Other texts are returned unchanged.
func networkOf(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	// One machine can use all addresses of a /64 network.
	p, _ := a.Prefix(64) // Prefix cannot fail, because every IPv6 address has 128 bits
	return p.String()
}
