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
	// Count adds calls to the count of a key: 1 for a new call, and -1 to undo the counting of a recent call. If the window of the undone call has
	// ended, the current window allows one more call. A window starts with the first call after the end of the previous window. A changed limit does
	// not reset the count. If the counting of a new call returns an error, the caller's request fails. So a RateStore that uses a database server
	// must count in memory while this server is down.
	Count(ctx context.Context, key string, calls, limit int64, window time.Duration) (Quota, error)
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

// Count returns the Quota as if the calls were the first ones in a window. An undone call leaves the full Quota.
func (Unlimited) Count(_ context.Context, _ string, calls, limit int64, window time.Duration) (Quota, error) {
	return Quota{Remaining: limit - max(calls, 0), Reset: window}, nil
}

// limiterStore is a RateStore that counts in a store of the library ulule/limiter.
type limiterStore struct{ limiter.Store }

func (l limiterStore) Count(ctx context.Context, key string, calls, limit int64, window time.Duration) (Quota, error) {
	lc, err := l.Increment(ctx, key, calls, limiter.Rate{Period: window, Limit: limit})
	if err != nil {
		return Quota{}, err
	}
	// The library rounds lc.Reset, the end of the window, down to a whole second. So the real end of the window can be up to one second later.
	reset := min(time.Until(time.Unix(lc.Reset+1, 0)), window) //nolint:forbidigo // the real time, because lc.Reset is a time of the system clock
	return Quota{Remaining: min(lc.Remaining, limit), Exceeded: lc.Reached, Reset: max(reset, time.Second)}, nil
}
