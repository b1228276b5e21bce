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
	// redisPrefix is the prefix of every key in Redis, so that other programs can use the same Redis.
	redisPrefix = "reeltally:limit"
	// redisTimeout is the default for the maximum time that a request waits for Redis.
	redisTimeout = 500 * time.Millisecond
	// redisRetryInterval is the time between two attempts to use Redis while Redis is unavailable.
	redisRetryInterval = time.Second
)

// RedisRateStore counts calls in a Redis or Valkey server, which several ReelTally servers can
// share. While Redis is unavailable, each server counts in its own memory.
type RedisRateStore struct {
	client  *redis.Client
	timeout time.Duration // maximum time that a request waits for Redis
	local   RateStore     // counts calls in memory while Redis is unavailable
	now     func() time.Time
	logger  *slog.Logger

	mu        sync.Mutex
	shared    RateStore // counts calls in Redis; nil until Redis has answered for the first time
	downSince time.Time // time when Redis became unavailable; zero while Redis is available
	retryAt   time.Time // time from which a request may try Redis again; used only while Redis is unavailable
}

// NewRedisRateStore returns a RedisRateStore that connects to Redis with the options o. If Redis is unavailable, it still returns a RedisRateStore,
// which counts in memory until Redis answers. The caller must not use o again, and must call Close after the last call of Count.
func NewRedisRateStore(ctx context.Context, o *redis.Options, now func() time.Time, logger *slog.Logger) *RedisRateStore {
	// The client must not log each failed connection, because recordResult logs a line when Redis becomes unavailable.
	logging.Disable()
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	// A request waits for Redis for at most o.ReadTimeout.
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = redisTimeout
	}
	o.WriteTimeout = o.ReadTimeout
	// If connecting takes longer than o.ReadTimeout, the request stops waiting. Connecting continues, and a later request uses the
	// connection.
	o.DialTimeout = redisRetryInterval
	// Client identification and maintenance notifications are disabled, because each needs a round trip on every new connection.
	o.DisableIdentity, o.MaintNotificationsConfig = true, &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	r := &RedisRateStore{client: redis.NewClient(o), timeout: o.ReadTimeout, local: NewMemoryRateStore(), now: now, logger: logger}
	ctx, cancel := context.WithTimeout(ctx, redisRetryInterval)
	defer cancel()
	_, err := r.connect(ctx)
	r.recordResult(ctx, err, true)
	return r
}

// Close closes the connections to Redis. A second call of Close does nothing.
func (r *RedisRateStore) Close() error {
	if err := r.client.Close(); !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

// Count counts calls in Redis. If Redis fails or is already known to be unavailable, it counts them in memory. See RateStore.
func (r *RedisRateStore) Count(ctx context.Context, key string, calls, limit int64, window time.Duration) (Quota, error) {
	if use, retry := r.shouldTryRedis(); use {
		quota, err := r.countInRedis(ctx, key, calls, limit, window)
		r.recordResult(ctx, err, retry)
		if err == nil {
			return quota, nil
		}
	}
	return r.local.Count(ctx, key, calls, limit, window)
}

// shouldTryRedis decides whether a request uses Redis. While Redis is unavailable, one request in
// each redisRetryInterval tries Redis again. For this request, isRetry is true.
func (r *RedisRateStore) shouldTryRedis() (useRedis, isRetry bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.downSince.IsZero() {
		return true, false
	}
	now := r.now()
	if now.Before(r.retryAt) {
		return false, false
	}
	r.retryAt = now.Add(redisRetryInterval) // no other request tries Redis before retryAt
	return true, true
}

// countInRedis counts calls in Redis. It fails if Redis does not answer within r.timeout.
func (r *RedisRateStore) countInRedis(ctx context.Context, key string, calls, limit int64, window time.Duration) (Quota, error) {
	// WithoutCancel is used because the request is counted even if the caller closes the connection.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timeout)
	defer cancel()
	shared, err := r.connect(ctx)
	if err != nil {
		return Quota{}, err
	}
	return shared.Count(ctx, key, calls, limit, window)
}

// connect returns the RateStore that counts in Redis. It creates this RateStore when Redis answers
// for the first time.
func (r *RedisRateStore) connect(ctx context.Context) (RateStore, error) {
	r.mu.Lock()
	shared := r.shared
	r.mu.Unlock()
	if shared != nil {
		return shared, nil
	}
	// NewStoreWithOptions ignores the timeout of ctx, so first check that Redis answers.
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

// recordResult records whether Redis is available, and logs a line when this changes. err is the
// error of a request to Redis, or nil.
func (r *RedisRateStore) recordResult(ctx context.Context, err error, isRetry bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch now, down := r.now(), !r.downSince.IsZero(); {
	case err != nil && !down:
		r.downSince, r.retryAt = now, now.Add(redisRetryInterval)
		r.logger.WarnContext(ctx, "redis is unavailable: each server counts rate limits in its own memory until redis answers again", "error", err)
	// Only a successful retry shows that Redis answers again: any other successful request may have begun
	// before Redis failed.
	case err == nil && down && isRetry:
		r.logger.InfoContext(ctx, "redis is available again: servers share rate limits again", "unavailable_for", now.Sub(r.downSince))
		r.downSince = time.Time{}
	}
}
