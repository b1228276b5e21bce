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
	// redisPrefix begins every key in Redis, so that others may live beside them.
	redisPrefix = "reeltally:limit"
	// redisAnswersWithin is how long a request waits for Redis, unless its URL says otherwise.
	redisAnswersWithin = 500 * time.Millisecond
	// redisAskedAgainAfter is how long Redis is left alone once it did not answer.
	redisAskedAgainAfter = time.Second
)

// RedisRateStore counts in a Redis, or a Valkey, that several servers share. While that is away each of them counts in its own
// memory: a limit that is counted for each server on its own is better than no service. Then one request a second asks for
// it, so that the others do not wait, and the log has one line when it goes and one when it is back.
type RedisRateStore struct {
	client *redis.Client
	within time.Duration // how long a request waits for it
	local  RateStore
	now    func() time.Time
	logger *slog.Logger

	mu         sync.Mutex
	shared     RateStore // nil until Redis has answered for the first time
	awaySince  time.Time // zero while Redis answers
	askedAgain time.Time // not before this
}

// NewRedisRateStore returns a store that counts where o leads. A request waits for as long as o.ReadTimeout, or half a second without; what else
// concerns waiting is set in o, which is the store's from now on. A Redis that is away is no error. Close it after the last Take.
func NewRedisRateStore(ctx context.Context, o *redis.Options, now func() time.Time, logger *slog.Logger) *RedisRateStore {
	// It writes a line for each connection that fails; the errors come back to us as well.
	logging.Disable()
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = redisAnswersWithin
	}
	o.WriteTimeout = o.ReadTimeout
	// Nobody waits for a dial longer than for an answer; one that takes longer, by TLS from far away, is there for the next request.
	o.DialTimeout = redisAskedAgainAfter
	// Each is a round trip before the first answer of a connection.
	o.DisableIdentity, o.MaintNotificationsConfig = true, &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	r := &RedisRateStore{client: redis.NewClient(o), within: o.ReadTimeout, local: NewMemoryRateStore(), now: now, logger: logger}
	ctx, cancel := context.WithTimeout(ctx, redisAskedAgainAfter)
	defer cancel()
	_, err := r.connect(ctx)
	r.learn(ctx, err, true)
	return r
}

// Close closes the connections to Redis. Closing again does nothing.
func (r *RedisRateStore) Close() error {
	if err := r.client.Close(); !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

// Take counts in Redis, or in memory while that is away.
func (r *RedisRateStore) Take(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error) {
	return r.count(ctx, func(ctx context.Context, s RateStore) (Quota, error) { return s.Take(ctx, key, limit, window) })
}

// GiveBack gives back to Redis, or to memory while that is away.
func (r *RedisRateStore) GiveBack(ctx context.Context, key string, limit int64, window time.Duration) (Quota, error) {
	return r.count(ctx, func(ctx context.Context, s RateStore) (Quota, error) { return s.GiveBack(ctx, key, limit, window) })
}

func (r *RedisRateStore) count(ctx context.Context, in func(context.Context, RateStore) (Quota, error)) (Quota, error) {
	if ask, trial := r.mayAsk(); ask {
		quota, err := r.ask(ctx, in)
		r.learn(ctx, err, trial)
		if err == nil {
			return quota, nil
		}
	}
	return in(ctx, r.local)
}

// mayAsk says whether to ask Redis, and whether that is a trial whether it is back.
func (r *RedisRateStore) mayAsk() (ask, trial bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.awaySince.IsZero() {
		return true, false
	}
	now := r.now()
	if now.Before(r.askedAgain) {
		return false, false
	}
	r.askedAgain = now.Add(redisAskedAgainAfter) // for everybody else
	return true, true
}

func (r *RedisRateStore) ask(ctx context.Context, in func(context.Context, RateStore) (Quota, error)) (Quota, error) {
	// A caller who hangs up says nothing about Redis, and is counted.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.within)
	defer cancel()
	shared, err := r.connect(ctx)
	if err != nil {
		return Quota{}, err
	}
	return in(ctx, shared)
}

// connect returns the counters in Redis. The library makes its store only where Redis takes its scripts, without a context to
// bound that: Redis is asked whether it is there before.
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

// learn notes whether Redis answered, and logs a change. Only a trial tells that it is back: an answer to anything else may have
// been on its way before the failure.
func (r *RedisRateStore) learn(ctx context.Context, err error, trial bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch now, away := r.now(), !r.awaySince.IsZero(); {
	case err != nil && !away:
		r.awaySince, r.askedAgain = now, now.Add(redisAskedAgainAfter)
		r.logger.WarnContext(ctx, "redis is away: each server counts rate limits by itself until it is back", "error", err)
	case err == nil && away && trial:
		r.logger.InfoContext(ctx, "redis is back: servers share rate limits again", "away", now.Sub(r.awaySince))
		r.awaySince = time.Time{}
	}
}
