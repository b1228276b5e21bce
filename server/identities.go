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
	// identityTTL is how long a valid token is accepted without a new look-up in the database. So a revoked token or a changed tier takes
	// effect within a second on every server.
	identityTTL = 500 * time.Millisecond
	// refusalTTL is how long an invalid token is refused without a new look-up. An invalid token never becomes valid, because every new token
	// is random.
	refusalTTL = 10 * time.Second
	// maxIdentities is the maximum number of tokens in each cache. A full cache drops the least recently used token.
	maxIdentities = 10_000
	// maxNewLookUps is the maximum number of concurrent look-ups of tokens that this server has never accepted. It limits how many database
	// connections callers without a valid token can use. The pool has at least eight connections.
	maxNewLookUps = 2
	// lookUpTimeout is the time limit for one look-up of a token.
	lookUpTimeout = 5 * time.Second
	// lastUseInterval is the minimum time between two writes of a token's last use to the database.
	lastUseInterval = time.Minute
)

// tokenHash is the hash of a token. The caches contain hashes, so that tokens do not stay in memory.
type tokenHash [sha256.Size]byte

// identities looks up tokens and caches the results. It is safe for concurrent use.
type identities struct {
	store         *store.Store
	addressLimits *addressLimits // limits of requests without a valid token
	now           func() time.Time
	log           *slog.Logger

	known      *lru.Cache[tokenHash, knownIdentity] // valid tokens
	refused    *lru.Cache[tokenHash, refusedToken]  // invalid tokens, in a separate cache so that they do not evict valid tokens
	used       *lru.Cache[uuid.UUID, time.Time]     // token id → time of the last use that was written to the database
	inFlight   singleflight.Group                   // running look-ups
	newLookUps chan struct{}                        // one entry for each running look-up that maxNewLookUps limits
	writes     sync.WaitGroup                       // look-ups and writes that can outlast their request; Server.Close waits for them
}

// knownIdentity is the result of looking up a valid token.
type knownIdentity struct {
	store.Identity
	at time.Time // when the look-up started
}

// refusedToken is the result of looking up an invalid token.
type refusedToken struct {
	err error
	at  time.Time // when the look-up started
}

func newIdentities(s *store.Store, rates RateStore, now func() time.Time, log *slog.Logger) *identities {
	return &identities{store: s, addressLimits: newAddressLimits(rates, now, log), now: now, log: log,
		known: newLRU[tokenHash, knownIdentity](), refused: newLRU[tokenHash, refusedToken](), used: newLRU[uuid.UUID, time.Time](),
		newLookUps: make(chan struct{}, maxNewLookUps)}
}

// newLRU returns an empty cache for maxIdentities entries.
func newLRU[K comparable, V any]() *lru.Cache[K, V] {
	cache, err := lru.New[K, V](maxIdentities)
	if err != nil { // lru.New fails only for a size below 1
		panic(err)
	}
	return cache
}

// find returns the identity of a token, or store.ErrTokenUnknown, ErrTokenExpired or ErrTokenRevoked. It returns *limitExceeded if this server
// has never accepted the token and the address has reached the limit unknownTokens. Concurrent calls for the same token and address share one
// look-up.
func (i *identities) find(ctx context.Context, token, address string) (store.Identity, error) {
	hash := tokenHash(sha256.Sum256([]byte(token)))
	if id, known, err := i.cached(hash); known {
		return id, err
	}
	result := i.inFlight.DoChan(string(hash[:])+address, func() (any, error) {
		if id, known, err := i.cached(hash); known { // another call may have finished its look-up since the first check
			return id, err
		}
		return i.lookUp(ctx, hash, token, address)
	})
	select {
	case <-ctx.Done():
		i.writes.Go(func() { <-result }) // the look-up continues, and Server.Close waits for it
		return store.Identity{}, ctx.Err()
	case f := <-result:
		if f.Err != nil {
			return store.Identity{}, f.Err
		}
		return f.Val.(store.Identity), nil
	}
}

// cached returns the cached result of the last look-up of a token. known is false if no result is cached or if it is too old.
func (i *identities) cached(hash tokenHash) (id store.Identity, known bool, err error) {
	now := i.now()
	within := func(at time.Time, life time.Duration) bool { return !now.Before(at) && now.Sub(at) < life }
	if k, ok := i.known.Get(hash); ok && within(k.at, identityTTL) && (k.Token.ExpiresAt == nil || k.Token.ExpiresAt.Time().After(now)) {
		return k.Identity, true, nil
	}
	if r, ok := i.refused.Get(hash); ok && within(r.at, refusalTTL) {
		return store.Identity{}, true, r.err
	}
	return store.Identity{}, false, nil
}

// lookUp looks a token up in the database and caches the result, unless the database fails. It continues if the caller closes the connection,
// so that a caller who always does so is still counted.
func (i *identities) lookUp(ctx context.Context, hash tokenHash, token, address string) (id store.Identity, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
	defer cancel()
	if !i.known.Contains(hash) {
		if err := i.addressLimits.check(unknownTokens, address); err != nil { // before waiting in newLookUps, so that the refusal is quick
			return store.Identity{}, err
		}
		select {
		case i.newLookUps <- struct{}{}:
			defer func() { <-i.newLookUps }()
		case <-ctx.Done():
			return store.Identity{}, ctx.Err()
		}
		if err := i.addressLimits.take(ctx, unknownTokens, address); err != nil {
			return store.Identity{}, err
		}
		defer func() {
			if !refusesToken(err) {
				i.addressLimits.giveBack(ctx, unknownTokens, address)
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

// refusesToken returns true if err says that the token is invalid, and false for any other error.
func refusesToken(err error) bool {
	return errors.Is(err, store.ErrTokenUnknown) || errors.Is(err, store.ErrTokenExpired) || errors.Is(err, store.ErrTokenRevoked)
}

// recordUse writes now as the time of the token's last use to the database, unless the last write is less than lastUseInterval ago. It does not wait
// for the write.
func (i *identities) recordUse(ctx context.Context, token uuid.UUID, now time.Time) {
	if last, ok := i.used.Get(token); ok && now.Sub(last) < lastUseInterval {
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
