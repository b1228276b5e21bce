package server

import (
	"context"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

// RateStore counts calls in windows of fixed length. It must be safe for concurrent use.
type RateStore interface {
	// Take counts one call of a key and returns the quota that is left in the current window. A window starts with the first call after the
	// end of the previous window. If the limit of a key changes, its count continues. An error fails the request, so a store that may be
	// unavailable must count elsewhere meanwhile.
	Take(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error)
	// GiveBack undoes a recent Take and returns the quota that is left. If the window of that Take has ended, the next window allows one
	// call more.
	GiveBack(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error)
}

// Quota is the number of calls left in a window.
type Quota struct {
	Remaining int64
	Exceeded  bool          // this call was above the limit
	Reset     time.Duration // until the window ends, rounded up
}

// NewMemoryRateStore returns a store that counts in the memory of this process. Several servers count separately.
func NewMemoryRateStore() RateStore { return limiterStore{memory.NewStore()} }

// Unlimited is a rate store for measurements. It refuses no call. The quota headers show the limit as if it were enforced.
type Unlimited struct{}

// Take returns a quota with one call taken. It counts nothing.
func (Unlimited) Take(_ context.Context, _ string, limit int64, window time.Duration) (Quota, error) {
	return Quota{Remaining: limit - 1, Reset: window}, nil
}

// GiveBack returns the full quota.
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

func (l limiterStore) count(ctx context.Context, key string, calls int64, rate limiter.Rate) (Quota, error) {
	lc, err := l.Increment(ctx, key, calls, rate)
	if err != nil {
		return Quota{}, err
	}
	// Reset is rounded down to a whole second, so the window may end up to one second later.
	reset := min(time.Until(time.Unix(lc.Reset+1, 0)), rate.Period) //nolint:forbidigo // the library uses the wall clock
	return Quota{Remaining: min(lc.Remaining, rate.Limit), Exceeded: lc.Reached, Reset: max(reset, time.Second)}, nil
}
