package server

import (
	"context"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

// RateStore counts calls in windows of fixed length. It may be called concurrently.
type RateStore interface {
	// Take counts one call under a key and says what is left of limit in the window that is running, which
	// begins with the first call after the one before has ended. The limit is not part of the key: where it changes, the count
	// goes on. An error fails the request: a store that may be away counts elsewhere meanwhile.
	Take(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error)
	// GiveBack undoes a Take of a moment ago and says what is left now. Where that Take's window has ended meanwhile, the next
	// has one call more.
	GiveBack(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error)
}

// Quota is what is left in a window.
type Quota struct {
	Remaining int64
	Exceeded  bool          // this call was one too many
	Reset     time.Duration // until the window ends; never too short
}

// NewMemoryRateStore counts in the memory of this process: two servers have two counts.
func NewMemoryRateStore() RateStore { return limiterStore{memory.NewStore()} }

// Unlimited is a rate store in which nothing is ever too much, for measurements: the quota headers say what the limit would be.
type Unlimited struct{}

// Take counts nothing.
func (Unlimited) Take(_ context.Context, _ string, limit int64, window time.Duration) (Quota, error) {
	return Quota{Remaining: limit - 1, Reset: window}, nil
}

// GiveBack has nothing to give back.
func (Unlimited) GiveBack(_ context.Context, _ string, limit int64, window time.Duration) (Quota, error) {
	return Quota{Remaining: limit, Reset: window}, nil
}

// limiterStore counts in a store of the limiter library.
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
	// Reset is cut to a whole second: the window ends somewhere in the second after it.
	reset := min(time.Until(time.Unix(lc.Reset+1, 0)), rate.Period) //nolint:forbidigo // the library counts by the wall clock
	return Quota{Remaining: min(lc.Remaining, rate.Limit), Exceeded: lc.Reached, Reset: max(reset, time.Second)}, nil
}
