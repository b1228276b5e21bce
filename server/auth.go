package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/store"
)

// Caller is who asks, as one operation sees them.
type Caller struct {
	store.Identity
	// Org is the caller's data, and nobody else's.
	Org *store.Org
	// View is what the operation may show them.
	View View

	facts tierFacts
}

type callerKey struct{}

// CallerFrom returns the caller of a request. It panics outside of an operation of the contract: there the middleware is
// missing, and going on without an identity would be worse.
func CallerFrom(ctx context.Context) Caller {
	return ctx.Value(callerKey{}).(Caller)
}

// authenticate puts the Caller into the request's context, or refuses the request with 401.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		op := s.operations.of(c)
		if op == nil {
			return next(c)
		}
		id, err := s.identify(c)
		if err != nil {
			return err
		}
		r := c.Request()
		facts, err := factsOf(id.Organisation.Tier)
		if err != nil {
			return err
		}
		caller := Caller{Identity: id, Org: s.store.Org(id.Organisation.ID), View: FullView, facts: facts}
		if op.masked && facts.masked {
			caller.View = MaskedView
		}
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
		return next(c)
	}
}

// identify returns whom the request's token speaks for, or why it is refused; refusals are limited by address.
func (s *Server) identify(c echo.Context) (store.Identity, error) {
	r := c.Request()
	token, err := bearerToken(r)
	var id store.Identity
	if err == nil {
		id, err = s.identities.of(r.Context(), token)
	}
	if err == nil {
		return id, nil
	}
	refusal := refuseToken(err)
	if refusal.Code.info().Status == http.StatusUnauthorized {
		if err := s.limitAddress(c); err != nil {
			return store.Identity{}, err
		}
	}
	return store.Identity{}, refusal
}

// bearerToken takes the token from the Authorization header. Nothing of the token stands in an error.
func bearerToken(r *http.Request) (string, error) {
	headers := r.Header.Values(echo.HeaderAuthorization)
	if len(headers) == 0 {
		if name := tokenInQuery(r.URL.RawQuery); name != "" {
			return "", problem(CodeTokenMissing, "A token in the query (%s) is refused: send the header Authorization: Bearer rt_….", name)
		}
		return "", problem(CodeTokenMissing, "There is no token: send the header Authorization: Bearer rt_….")
	}
	if len(headers) > 1 {
		return "", problem(CodeTokenMalformed, "There are %d Authorization headers; send one.", len(headers))
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(headers[0]), " ")
	token = strings.TrimSpace(token)
	switch {
	case !strings.EqualFold(scheme, "Bearer"), token == "":
		return "", problem(CodeTokenMalformed, "The Authorization header must be: Bearer rt_….")
	case !strings.HasPrefix(token, "rt_"):
		return "", problem(CodeTokenMalformed, "This is not a token of ReelTally: those start with rt_.")
	case !store.WellFormedToken(token):
		return "", problem(CodeTokenMistyped, "The token's checksum does not fit, so it was mistyped or cut off.")
	}
	return token, nil
}

// tokenInQuery returns the name of the first query parameter that carries a token, by its name or its form.
func tokenInQuery(query string) string {
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		switch strings.ToLower(name) {
		case "token", "access_token", "api_token", "api_key", "apikey", "authorization", "bearer":
			return name
		}
		if decoded, err := url.QueryUnescape(value); err == nil && store.WellFormedToken(decoded) {
			return name
		}
	}
	return ""
}

func refuseToken(err error) *Error {
	switch {
	case errors.Is(err, store.ErrTokenUnknown):
		return problem(CodeTokenUnknown, "The token is not known.")
	case errors.Is(err, store.ErrTokenExpired):
		return problem(CodeTokenExpired, "The token has expired.")
	case errors.Is(err, store.ErrTokenRevoked):
		return problem(CodeTokenRevoked, "The token was revoked.")
	}
	return asError(err)
}

// identityLife is how long an identity is believed without asking the database: what an operator changes (a token
// revoked, a tier) takes effect within a second everywhere.
const identityLife = 500 * time.Millisecond

// maxIdentities bounds the memory of the cache; a full one is emptied, which costs one look-up for each token in use.
const maxIdentities = 10_000

// usedEvery is how often the last use of a token is written down.
const usedEvery = time.Minute

// identities knows whom tokens speak for. Tokens are held as hashes alone.
type identities struct {
	store *store.Store
	now   func() time.Time
	log   *slog.Logger

	mu     sync.Mutex
	known  map[[sha256.Size]byte]knownIdentity
	used   map[uuid.UUID]time.Time
	writes sync.WaitGroup
}

type knownIdentity struct {
	store.Identity
	at time.Time
}

func newIdentities(s *store.Store, now func() time.Time, log *slog.Logger) *identities {
	return &identities{store: s, now: now, log: log,
		known: map[[sha256.Size]byte]knownIdentity{}, used: map[uuid.UUID]time.Time{}}
}

// of returns whom a token speaks for, or why it speaks for nobody.
func (i *identities) of(ctx context.Context, token string) (store.Identity, error) {
	key := sha256.Sum256([]byte(token))
	now := i.now()
	i.mu.Lock()
	k, ok := i.known[key]
	i.mu.Unlock()
	if ok && !now.Before(k.at) && now.Sub(k.at) < identityLife && (k.Token.ExpiresAt == nil || k.Token.ExpiresAt.Time().After(now)) {
		return k.Identity, nil
	}
	id, err := i.store.Authenticate(ctx, token)
	if err != nil {
		return store.Identity{}, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.known) >= maxIdentities {
		clear(i.known)
	}
	i.known[key] = knownIdentity{id, now}
	i.noteUse(ctx, id.Token.ID, now)
	return id, nil
}

// noteUse writes down the use of a token, at most once in usedEvery and beside the request, which must not wait for a
// write. i.mu is held.
func (i *identities) noteUse(ctx context.Context, token uuid.UUID, now time.Time) {
	if last, ok := i.used[token]; ok && now.Sub(last) < usedEvery {
		return
	}
	if len(i.used) >= maxIdentities {
		clear(i.used)
	}
	i.used[token] = now
	i.writes.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := i.store.TokenUsed(ctx, token, now); err != nil {
			i.log.WarnContext(ctx, "use of a token not written down", "token_id", token, "error", err)
		}
	})
}
