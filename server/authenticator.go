package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/reeltally/reeltally/store"
)

const (
	// identityTTL is how long a server accepts a valid token without a new look-up in the database.
	// During this time, a revocation or a new tier may have no effect.
	identityTTL = 500 * time.Millisecond
	// refusalTTL is how long an invalid token is refused without a new look-up in the database. An invalid token never becomes valid,
	// because every new token is random.
	refusalTTL = 10 * time.Second
	// maxIdentities is the maximum number of entries in each cache of tokens. A full cache drops the least recently used entry.
	maxIdentities = 10_000
	// maxNewLookUps is the maximum number of concurrent database look-ups of new tokens. A token is
	// new if it is not in the cache of valid tokens.
	maxNewLookUps = 2
	// lookUpTimeout is the time limit for one look-up of a token in the database.
	lookUpTimeout = 5 * time.Second
	// lastUseInterval limits database writes: the time of a token's last use is stored at most once in this interval.
	lastUseInterval = time.Minute
)

// tokenHash is the hash of a token. The caches contain hashes, so that tokens do not stay in memory.
type tokenHash [sha256.Size]byte

// authenticator looks up the organisation and permissions of a secret, and caches the results. The server has one authenticator for tokens, and one for
// browser sessions. An authenticator is safe for concurrent use.
type authenticator struct {
	store         *store.Store
	authenticate  func(ctx context.Context, secret string) (store.Identity, error) // looks up a secret in the database
	addressLimits *addressLimits                                                   // rate limits for requests without a valid token
	now           func() time.Time
	background    *backgroundWrites

	known      *lru.Cache[tokenHash, knownIdentity] // results for valid tokens, by the hash of the token
	refused    *lru.Cache[tokenHash, refusedToken]  // results for invalid tokens; a separate cache, so that they do not evict valid tokens
	used       *lru.Cache[uuid.UUID, time.Time]     // when this server last began to store the use of each token; the key is the token id
	inFlight   singleflight.Group                   // look-ups in progress; requests with the same token and address share one look-up
	newLookUps chan struct{}                        // semaphore of size maxNewLookUps, so that invalid tokens cannot use all database connections
}

// knownIdentity is the result of looking up a valid token.
type knownIdentity struct {
	store.Identity
	at time.Time // start time of the look-up in the database
}

// refusedToken is the result of looking up an invalid token.
type refusedToken struct {
	err error
	at  time.Time // start time of the look-up in the database
}

// newAuthenticator returns an authenticator with empty caches. The parameter authenticate is a function that looks up a secret in the database.
func newAuthenticator(s *store.Store, authenticate func(context.Context, string) (store.Identity, error), limits *addressLimits, now func() time.Time, background *backgroundWrites) *authenticator {
	return &authenticator{store: s, authenticate: authenticate, addressLimits: limits, now: now, background: background,
		known: newLRU[tokenHash, knownIdentity](), refused: newLRU[tokenHash, refusedToken](), used: newLRU[uuid.UUID, time.Time](),
		newLookUps: make(chan struct{}, maxNewLookUps)}
}

// newLRU returns an empty least-recently-used cache for maxIdentities entries.
func newLRU[K comparable, V any]() *lru.Cache[K, V] {
	cache, err := lru.New[K, V](maxIdentities)
	if err != nil { // lru.New cannot fail here, because it fails only for a size below 1
		panic(err)
	}
	return cache
}

// findToken returns the identity of a token, or store.ErrTokenUnknown, ErrTokenExpired or ErrTokenRevoked. If the IP address has sent too many unknown
// tokens, findToken does not look up a token that is missing in the cache of valid tokens. It then returns *limitExceeded.
func (a *authenticator) findToken(ctx context.Context, token, address string) (store.Identity, error) {
	hash := tokenHash(sha256.Sum256([]byte(token)))
	if id, known, err := a.findCached(hash); known {
		return id, err
	}
	result := a.inFlight.DoChan(string(hash[:])+address, func() (any, error) {
		if id, known, err := a.findCached(hash); known { // another call may have finished its look-up since the first check of the cache
			return id, err
		}
		return a.lookUpToken(ctx, hash, token, address)
	})
	select {
	case <-ctx.Done():
		a.background.running.Go(func() { <-result }) // the look-up continues after the caller has closed the connection, and Server.Close waits for it
		return store.Identity{}, ctx.Err()
	case f := <-result:
		if f.Err != nil {
			return store.Identity{}, f.Err
		}
		return f.Val.(store.Identity), nil
	}
}

// findCached returns the cached result of the last look-up of a token. isKnown is false if no look-up is cached, or if the cached look-up
// is too old.
func (a *authenticator) findCached(hash tokenHash) (id store.Identity, isKnown bool, err error) {
	now := a.now()
	within := func(at time.Time, life time.Duration) bool { return !now.Before(at) && now.Sub(at) < life }
	if k, ok := a.known.Get(hash); ok && within(k.at, identityTTL) && (k.Token.ExpiresAt == nil || k.Token.ExpiresAt.Time().After(now)) {
		return k.Identity, true, nil
	}
	if r, ok := a.refused.Get(hash); ok && within(r.at, refusalTTL) {
		return store.Identity{}, true, r.err
	}
	return store.Identity{}, false, nil
}

// lookUpToken looks up a token in the database and caches the result. If the database fails,
// nothing is cached.
func (a *authenticator) lookUpToken(ctx context.Context, hash tokenHash, token, address string) (id store.Identity, err error) {
	// The look-up continues after the caller disconnects, so that the request still counts towards the rate limit.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
	defer cancel()
	if !a.known.Contains(hash) {
		if err := a.addressLimits.checkLimit(unknownTokens, address); err != nil { // check the limit first, so that a refused request does not wait for other look-ups
			return store.Identity{}, err
		}
		select {
		case a.newLookUps <- struct{}{}:
			defer func() { <-a.newLookUps }()
		case <-ctx.Done():
			return store.Identity{}, ctx.Err()
		}
		if err := a.addressLimits.countRequest(ctx, unknownTokens, address); err != nil {
			return store.Identity{}, err
		}
		defer func() {
			if !isTokenRefusal(err) {
				a.addressLimits.uncountRequest(ctx, unknownTokens, address)
			}
		}()
	}
	now := a.now()
	id, err = a.authenticate(ctx, token)
	switch {
	case err == nil:
		a.refused.Remove(hash)
		a.known.Add(hash, knownIdentity{id, now})
		a.recordUse(ctx, id.Token.ID, now)
	case isTokenRefusal(err):
		a.known.Remove(hash)
		a.refused.Add(hash, refusedToken{err, now})
	}
	return id, err
}

// forgetToken removes a token or the secret of a session from the cache of valid secrets.
func (a *authenticator) forgetToken(secret string) { a.known.Remove(sha256.Sum256([]byte(secret))) }

// isTokenRefusal returns true if err says that the token is unknown, expired or revoked. It returns false for any other error and for nil.
func isTokenRefusal(err error) bool {
	return errors.Is(err, store.ErrTokenUnknown) || errors.Is(err, store.ErrTokenExpired) || errors.Is(err, store.ErrTokenRevoked)
}

// recordUse writes the time of a token's last use to the database, but at most once in lastUseInterval. It does not wait for the write.
func (a *authenticator) recordUse(ctx context.Context, token uuid.UUID, now time.Time) {
	if last, ok := a.used.Get(token); ok && now.Sub(last) < lastUseInterval {
		return
	}
	a.used.Add(token, now)
	a.background.startWrite(ctx, "last use of a token",
		func(ctx context.Context) error { return a.store.SaveTokenUse(ctx, token, now) }, "token_id", token)
}
