package server

import (
	"context"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

// RateStore counts calls for rate limits in windows of time. Calls with the same key are counted
// together. A RateStore must be safe for concurrent use.
type RateStore interface {
	// Take counts one call. A window starts with the first call after the end of the previous window. A changed
	// limit does not reset the count. If Take returns an error, the caller's request fails. So a RateStore that
	// uses a database server must count in memory while this server is down.
	Take(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error)
	// GiveBack undoes a recent call of Take with the same key. If that call's window has ended, the
	// current window allows one more call.
	GiveBack(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error)
}

// Quota describes how many calls a rate limit still allows in the current window of time.
type Quota struct {
	Remaining int64         // number of calls that are still allowed in the window, 0 or more
	Exceeded  bool          // true if the counted call is above the limit and must be refused
	Reset     time.Duration // time until the window ends; can be up to a second too long
}

// NewMemoryRateStore returns a RateStore that counts in the memory of this process. If an installation has several servers, each of them
// counts separately.
func NewMemoryRateStore() RateStore { return limiterStore{memory.NewStore()} }

// Unlimited is a RateStore for performance measurements. It counts nothing and allows every call.
type Unlimited struct{}

// Take returns the Quota that remains after the first call in a window. It counts nothing, so all results are the same.
func (Unlimited) Take(_ context.Context, _ string, limit int64, window time.Duration) (Quota, error) {
	return Quota{Remaining: limit - 1, Reset: window}, nil
}

// GiveBack always returns the full Quota of a window without calls, because Take counts nothing.
func (Unlimited) GiveBack(_ context.Context, _ string, limit int64, window time.Duration) (Quota, error) {
	return Quota{Remaining: limit, Reset: window}, nil
}

// limiterStore is a RateStore that counts in a store of the library ulule/limiter.
type limiterStore struct{ limiter.Store }

func (l limiterStore) Take(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error) {
	return l.addToCount(ctx, key, 1, limiter.Rate{Period: window, Limit: limit})
}

func (l limiterStore) GiveBack(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error) {
	return l.addToCount(ctx, key, -1, limiter.Rate{Period: window, Limit: limit})
}

// addToCount adds the number of calls, which can be negative, to the count of a key. It returns the remaining quota.
func (l limiterStore) addToCount(ctx context.Context, key string, calls int64, rate limiter.Rate) (Quota, error) {
	lc, err := l.Increment(ctx, key, calls, rate)
	if err != nil {
		return Quota{}, err
	}
	// The library rounds lc.Reset, the end of the window, down to a whole second. So the real end of the window can be up to one second later.
	reset := min(time.Until(time.Unix(lc.Reset+1, 0)), rate.Period) //nolint:forbidigo // the real time, because lc.Reset is a time of the system clock
	return Quota{Remaining: min(lc.Remaining, rate.Limit), Exceeded: lc.Reached, Reset: max(reset, time.Second)}, nil
}
