package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/reeltally/reeltally/store"
)

const (
	// identityLife is how long an identity is used without a new look-up in the database. So a revoked token or a changed tier takes effect
	// within a second on every server.
	identityLife = 500 * time.Millisecond
	// refusalLife is how long the refusal of a token is used without a new look-up. A refused token never becomes valid later, because every
	// new token is random.
	refusalLife = 10 * time.Second
	// maxIdentities is the size of each cache of tokens. A full cache drops the least recently used token.
	maxIdentities = 10_000
	// maxNewLookUps is how many tokens that this server has never accepted may be looked up at once. It limits the database connections that
	// callers without a valid token occupy. The pool has at least eight.
	maxNewLookUps = 2
	// lookUpTimeout bounds one look-up of a token.
	lookUpTimeout = 5 * time.Second
	// usedEvery is how often the last use of a token is written to the database.
	usedEvery = time.Minute
)

// tokenHash identifies a token in memory without keeping the token itself.
type tokenHash [sha256.Size]byte

// identities finds the identity that a token belongs to. It may be used concurrently.
type identities struct {
	store         *store.Store
	addressLimits *addressLimits // of requests without a valid token
	now           func() time.Time
	log           *slog.Logger

	known      *lru.Cache[tokenHash, knownIdentity]
	refused    *lru.Cache[tokenHash, refusedToken] // separate from known, so that unknown tokens do not push valid ones out of the cache
	used       *lru.Cache[uuid.UUID, time.Time]
	inFlight   singleflight.Group
	newLookUps chan struct{}  // one entry for each running look-up that maxNewLookUps limits
	writes     sync.WaitGroup // look-ups and writes that may continue after their request
}

type knownIdentity struct {
	store.Identity
	at time.Time
}

type refusedToken struct {
	err error
	at  time.Time
}

func newIdentities(s *store.Store, rates RateStore, now func() time.Time, log *slog.Logger) *identities {
	return &identities{store: s, addressLimits: newAddressLimits(rates, now, log), now: now, log: log,
		known: newLRU[tokenHash, knownIdentity](), refused: newLRU[tokenHash, refusedToken](), used: newLRU[uuid.UUID, time.Time](),
		newLookUps: make(chan struct{}, maxNewLookUps)}
}

func newLRU[K comparable, V any]() *lru.Cache[K, V] {
	cache, err := lru.New[K, V](maxIdentities)
	if err != nil { // only for a size below 1
		panic(err)
	}
	return cache
}

// find returns the identity of a token, or store.ErrTokenUnknown, ErrTokenExpired or ErrTokenRevoked. If this server has never accepted the
// token and the address is over the limit newTokens, it returns *limitExceeded. Concurrent calls for one token and address share a
// look-up.
func (i *identities) find(ctx context.Context, token, address string) (store.Identity, error) {
	hash := tokenHash(sha256.Sum256([]byte(token)))
	if id, known, err := i.remembered(hash); known {
		return id, err
	}
	result := i.inFlight.DoChan(string(hash[:])+address, func() (any, error) {
		if id, known, err := i.remembered(hash); known { // another look-up may have ended since the first check
			return id, err
		}
		return i.lookUp(ctx, hash, token, address)
	})
	select {
	case <-ctx.Done():
		i.writes.Go(func() { <-result }) // the look-up continues
		return store.Identity{}, ctx.Err()
	case f := <-result:
		if f.Err != nil {
			return store.Identity{}, f.Err
		}
		return f.Val.(store.Identity), nil
	}
}

// remembered returns the outcome of the last look-up of a token. known is false if there was none or it is too old.
func (i *identities) remembered(hash tokenHash) (id store.Identity, known bool, err error) {
	now := i.now()
	within := func(at time.Time, life time.Duration) bool { return !now.Before(at) && now.Sub(at) < life }
	if k, ok := i.known.Get(hash); ok && within(k.at, identityLife) && (k.Token.ExpiresAt == nil || k.Token.ExpiresAt.Time().After(now)) {
		return k.Identity, true, nil
	}
	if r, ok := i.refused.Get(hash); ok && within(r.at, refusalLife) {
		return store.Identity{}, true, r.err
	}
	return store.Identity{}, false, nil
}

// lookUp asks the database for a token and remembers the outcome, unless the database failed. It continues if the caller hangs up.
// Otherwise callers could cause queries without being counted, by always hanging up.
func (i *identities) lookUp(ctx context.Context, hash tokenHash, token, address string) (id store.Identity, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
	defer cancel()
	if !i.known.Contains(hash) {
		if err := i.addressLimits.check(newTokens, address); err != nil { // without waiting for a slot
			return store.Identity{}, err
		}
		select {
		case i.newLookUps <- struct{}{}:
			defer func() { <-i.newLookUps }()
		case <-ctx.Done():
			return store.Identity{}, ctx.Err()
		}
		if err := i.addressLimits.take(ctx, newTokens, address); err != nil {
			return store.Identity{}, err
		}
		defer func() {
			if !refusesToken(err) {
				i.addressLimits.giveBack(ctx, newTokens, address)
			}
		}()
	}
	now := i.now()
	id, err = i.store.Authenticate(ctx, token)
	switch {
	case err == nil:
		i.refused.Remove(hash)
		i.known.Add(hash, knownIdentity{id, now})
		i.recordUse(ctx, id.Token.ID, now)
	case refusesToken(err):
		i.known.Remove(hash)
		i.refused.Add(hash, refusedToken{err, now})
	}
	return id, err
}

// refusesToken returns true if err is about the token. It returns false if the database failed.
func refusesToken(err error) bool {
	return errors.Is(err, store.ErrTokenUnknown) || errors.Is(err, store.ErrTokenExpired) || errors.Is(err, store.ErrTokenRevoked)
}

// recordUse writes the use of a token to the database, at most once in usedEvery. It does not wait for the write.
func (i *identities) recordUse(ctx context.Context, token uuid.UUID, now time.Time) {
	if last, ok := i.used.Get(token); ok && now.Sub(last) < usedEvery {
		return
	}
	i.used.Add(token, now)
	i.writes.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := i.store.TokenUsed(ctx, token, now); err != nil {
			i.log.WarnContext(ctx, "cannot write the last use of a token", "token_id", token, "error", err)
		}
	})
}
