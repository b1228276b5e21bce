package monitor

import (
	"context"
	"sync"
	"time"
)

// cachedRead reads a value that is slow to read, and caches the value. The field read must be set. All methods are safe for concurrent use.
type cachedRead[T any] struct {
	read func(context.Context) (T, error)

	mu         sync.Mutex
	last       T             // the value that the last finished read returned
	err        error         // error of the last finished read
	finished   bool          // true if at least one read has finished
	cacheUntil time.Time     // until this time, the last value is returned and no new read starts
	reading    chan struct{} // closed when the current read ends; nil if no read runs
}

// result returns the cached value, or reads a new one if the cache has expired. If ctx ends before the read ends, result returns the previous
// value, or errNotRead if there is none.
func (c *cachedRead[T]) result(ctx context.Context) (T, error) {
	reading := c.start(ctx)
	select {
	case <-reading:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.finished {
		return c.last, errNotRead
	}
	return c.last, c.err
}

// start starts a read in the background if the cache has expired and no read is running. The returned channel is closed as soon as no read is
// running.
func (c *cachedRead[T]) start(ctx context.Context) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading != nil {
		return c.reading
	}
	done := make(chan struct{})
	start := time.Now()
	if start.Before(c.cacheUntil) {
		close(done)
		return done
	}
	c.reading = done
	go func() {
		defer close(done)
		// The read continues after the end of the caller's context, because other requests can be waiting for its result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		value, err := c.read(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		cacheTime := max(minCacheTime, cacheFactor*time.Since(start))
		if err != nil {
			cacheTime = min(time.Minute, cacheTime) // cache an error for at most a minute, so that the monitor soon notices that the database works again
		}
		c.last, c.err, c.finished, c.cacheUntil, c.reading = value, err, true, time.Now().Add(cacheTime), nil
	}()
	return done
}
