package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/ulule/limiter/v3"
	redisstore "github.com/ulule/limiter/v3/drivers/store/redis"
)

const (
	// redisPrefix starts every key in Redis, so that other programs can use the same Redis.
	redisPrefix = "reeltally:limit"
	// redisTimeout is how long a request waits for Redis if the URL of Redis sets no timeout.
	redisTimeout = 500 * time.Millisecond
	// redisRetryInterval is the time between two attempts while Redis is unavailable.
	redisRetryInterval = time.Second
)

// RedisRateStore counts in a Redis or Valkey that several servers share. While Redis is unavailable, each server counts in its own memory,
// and one request in each redisRetryInterval tries Redis again. The other requests do not wait. The log has one line when Redis becomes
// unavailable and one when it is back.
type RedisRateStore struct {
	client  *redis.Client
	timeout time.Duration // how long a request waits for Redis
	local   RateStore
	now     func() time.Time
	logger  *slog.Logger

	mu        sync.Mutex
	shared    RateStore // nil until Redis has answered for the first time
	downSince time.Time // zero while Redis is available
	retryAt   time.Time // Redis is not tried before then
}

// NewRedisRateStore returns a store that counts in the Redis of o. A request waits for o.ReadTimeout, or half a second if that is zero.
// NewRedisRateStore sets the other timeouts in o and keeps o. It does not fail if Redis is unavailable. Call Close after the last Take.
func NewRedisRateStore(ctx context.Context, o *redis.Options, now func() time.Time, logger *slog.Logger) *RedisRateStore {
	// The client logs each failed connection. recordResult logs them instead.
	logging.Disable()
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = redisTimeout
	}
	o.WriteTimeout = o.ReadTimeout
	// A request waits for o.ReadTimeout at most. A slower dial continues, and a later request uses its connection.
	o.DialTimeout = redisRetryInterval
	// Each of these features costs a round trip on every new connection.
	o.DisableIdentity, o.MaintNotificationsConfig = true, &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	r := &RedisRateStore{client: redis.NewClient(o), timeout: o.ReadTimeout, local: NewMemoryRateStore(), now: now, logger: logger}
	ctx, cancel := context.WithTimeout(ctx, redisRetryInterval)
	defer cancel()
	_, err := r.connect(ctx)
	r.recordResult(ctx, err, true)
	return r
}

// Close closes the connections to Redis. A second call does nothing.
func (r *RedisRateStore) Close() error {
	if err := r.client.Close(); !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

// Take counts in Redis, or in memory while Redis is unavailable.
func (r *RedisRateStore) Take(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error) {
	return r.count(ctx, func(ctx context.Context, s RateStore) (Quota, error) { return s.Take(ctx, key, limit, window) })
}

// GiveBack undoes a Take in Redis, or in memory while Redis is unavailable.
func (r *RedisRateStore) GiveBack(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error) {
	return r.count(ctx, func(ctx context.Context, s RateStore) (Quota, error) { return s.GiveBack(ctx, key, limit, window) })
}

// count calls count with the counters in Redis, or with those in memory if Redis fails.
func (r *RedisRateStore) count(ctx context.Context, count func(context.Context, RateStore) (Quota, error)) (Quota, error) {
	if use, retry := r.shouldTry(); use {
		quota, err := r.try(ctx, count)
		r.recordResult(ctx, err, retry)
		if err == nil {
			return quota, nil
		}
	}
	return count(ctx, r.local)
}

// shouldTry returns whether to use Redis. retry is true if Redis was unavailable and this call tries it again.
func (r *RedisRateStore) shouldTry() (use, retry bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.downSince.IsZero() {
		return true, false
	}
	now := r.now()
	if now.Before(r.retryAt) {
		return false, false
	}
	r.retryAt = now.Add(redisRetryInterval) // for the other requests
	return true, true
}

// try calls count with the counters in Redis.
func (r *RedisRateStore) try(ctx context.Context, count func(context.Context, RateStore) (Quota, error)) (Quota, error) {
	// A request is also counted if the caller hangs up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timeout)
	defer cancel()
	shared, err := r.connect(ctx)
	if err != nil {
		return Quota{}, err
	}
	return count(ctx, shared)
}

// connect returns the counters in Redis. Creating them loads scripts into Redis, and the library passes no context. So connect first checks
// with a ping that Redis answers.
func (r *RedisRateStore) connect(ctx context.Context) (RateStore, error) {
	r.mu.Lock()
	shared := r.shared
	r.mu.Unlock()
	if shared != nil {
		return shared, nil
	}
	if err := r.client.Ping(ctx).Err(); err != nil {
		return nil, err
	}
	s, err := redisstore.NewStoreWithOptions(r.client, limiter.StoreOptions{Prefix: redisPrefix})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shared = limiterStore{s}
	return r.shared, nil
}

// recordResult remembers whether Redis answered and logs a change. Only a retry shows that Redis is back: any other answer may have been
// sent before the failure.
func (r *RedisRateStore) recordResult(ctx context.Context, err error, retry bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch now, down := r.now(), !r.downSince.IsZero(); {
	case err != nil && !down:
		r.downSince, r.retryAt = now, now.Add(redisRetryInterval)
		r.logger.WarnContext(ctx, "redis is away: each server counts rate limits in its own memory until redis answers again", "error", err)
	case err == nil && down && retry:
		r.logger.InfoContext(ctx, "redis is back: servers share rate limits again", "unavailable_for", now.Sub(r.downSince))
		r.downSince = time.Time{}
	}
}
