package server

import (
	"context"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

// RateStore counts calls in windows of fixed length. A key identifies which calls are counted together, for example the calls of one operation by
// one organisation. A RateStore must be safe for concurrent use.
type RateStore interface {
	// Take counts one call of a key and returns the remaining quota of the current window. A window starts with the first call after the
	// end of the previous window. If the limit of a key changes, its count continues. If Take returns an error, the request fails. So a store
	// that depends on another server must count in memory while that server is unavailable.
	Take(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error)
	// GiveBack undoes a recent Take and returns the remaining quota. If the window of that Take has ended, the current window allows one more
	// call instead.
	GiveBack(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error)
}

// Quota is the number of calls left in a window.
type Quota struct {
	Remaining int64         // number of calls left in the window, 0 or more
	Exceeded  bool          // the counted call was above the limit
	Reset     time.Duration // time until the window ends, or up to a second more
}

// NewMemoryRateStore returns a store that counts in the memory of this process. If several servers use it, each server counts separately.
func NewMemoryRateStore() RateStore { return limiterStore{memory.NewStore()} }

// Unlimited is a rate store for performance measurements. It counts nothing and refuses no call.
type Unlimited struct{}

// Take returns the quota after the first call in a window.
func (Unlimited) Take(_ context.Context, _ string, limit int64, window time.Duration) (Quota, error) {
	return Quota{Remaining: limit - 1, Reset: window}, nil
}

// GiveBack returns the quota of a window without calls.
func (Unlimited) GiveBack(_ context.Context, _ string, limit int64, window time.Duration) (Quota, error) {
	return Quota{Remaining: limit, Reset: window}, nil
}

// limiterStore is a RateStore that uses a store of the limiter library.
type limiterStore struct{ limiter.Store }

func (l limiterStore) Take(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error) {
	return l.count(ctx, key, 1, limiter.Rate{Period: window, Limit: limit})
}

func (l limiterStore) GiveBack(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error) {
	return l.count(ctx, key, -1, limiter.Rate{Period: window, Limit: limit})
}

// count adds calls, which can be negative, to the count of a key.
func (l limiterStore) count(ctx context.Context, key string, calls int64, rate limiter.Rate) (Quota, error) {
	lc, err := l.Increment(ctx, key, calls, rate)
	if err != nil {
		return Quota{}, err
	}
	// lc.Reset is rounded down to a whole second, so the window ends up to one second later.
	reset := min(time.Until(time.Unix(lc.Reset+1, 0)), rate.Period) //nolint:forbidigo // the library uses the wall clock
	return Quota{Remaining: min(lc.Remaining, rate.Limit), Exceeded: lc.Reached, Reset: max(reset, time.Second)}, nil
}
