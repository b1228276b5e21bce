package tiktok

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/queue"
)

// TokenStore stores the tokens of logins in the database, for all collectors. *queue.Queue implements this interface.
type TokenStore interface {
	LoadOrStoreSourceToken(ctx context.Context, source, account string, sealed []byte) (queue.SourceToken, error)
	LockSourceToken(ctx context.Context, t queue.SourceToken, d time.Duration) (queue.SourceToken, bool, error)
	ReplaceSourceToken(ctx context.Context, t queue.SourceToken, sealed []byte) (bool, error)
	UnlockSourceToken(ctx context.Context, t queue.SourceToken) error
}

var _ TokenStore = (*queue.Queue)(nil)

const (
	storedSource = "tiktok"
	// lockFor is how long a collector locks a refresh token for an exchange. It is longer than the longest exchange, so that two
	// collectors never exchange the same token.
	lockFor = 3 * exchangeTimeout
	// retryAfterLock is how long a call is deferred if another collector is exchanging the refresh token at that moment.
	retryAfterLock = 2 * time.Second
)

// userTokens provides the access tokens of an account. An exchange makes the old refresh token
// invalid, so only one collector at a time exchanges a token.
type userTokens struct {
	app
	ctxMutex
	store   TokenStore
	log     *slog.Logger
	account string      // the id of the login: a hash of its first refresh token
	first   credentials // the configured refresh token
	seal    seal

	known      credentials
	unsaved    *unsavedTokens
	retryRenew time.Time // after a failed exchange, the old access token is used until this time
}

// unsavedTokens are encrypted tokens that are not in the database yet. If the process is killed,
// the account owner may have to log in again.
type unsavedTokens struct {
	row    queue.SourceToken // the database row that the new tokens will replace
	sealed []byte
}

// newUserTokens returns the userTokens of one login. firstRefreshToken, the first refresh token of
// the login, identifies the login. Later tokens are kept in tokenStore.
func newUserTokens(a app, firstRefreshToken string, tokenStore TokenStore, log *slog.Logger) (*userTokens, error) {
	sum := sha256.Sum256([]byte("reeltally tiktok login\n" + firstRefreshToken))
	u := &userTokens{app: a, ctxMutex: newCtxMutex(), store: tokenStore, log: log, account: hex.EncodeToString(sum[:16]), first: credentials{Refresh: firstRefreshToken}}
	var err error
	u.seal, err = newSeal(a.secret, storedSource, u.account)
	return u, err
}

// hasScope returns true if the owner of the account has granted the scope, or if the granted scopes are not known.
func (u *userTokens) hasScope(ctx context.Context, scope string) bool {
	if u.lock(ctx) != nil {
		return false
	}
	defer u.unlock()
	return u.known.hasScope(scope)
}

// token returns a usable access token other than refusedToken, which TikTok has refused. It tries
// tokens in memory, stored tokens, and then an exchange of the refresh token.
func (u *userTokens) token(ctx context.Context, refusedToken string) (string, error) {
	if err := u.lock(ctx); err != nil {
		return "", err
	}
	defer u.unlock()
	saveErr := u.saveTokens(ctx)
	if u.known.isFresh(u.now(), refusedToken) || u.known.isUsable(u.now(), refusedToken) && (saveErr != nil || u.now().Before(u.retryRenew)) {
		return u.known.Access, nil
	}
	if saveErr != nil {
		return "", saveErr // nothing is loaded, because the tokens in the database are older than the unsaved tokens in memory
	}
	row, err := u.loadTokens(ctx)
	if err != nil {
		return "", err
	}
	if u.known.isFresh(u.now(), refusedToken) {
		return u.known.Access, nil
	}
	locked, ok, err := u.store.LockSourceToken(ctx, row, lockFor)
	switch {
	case err != nil:
		return "", err
	case ok:
		err = u.renewTokens(ctx, locked)
	default:
		// The class RateLimited makes the collector try again at RetryAt.
		err = &source.Failure{Class: source.RateLimited, RetryAt: u.now().Add(retryAfterLock), Detail: "another collector is renewing the access token"}
	}
	switch {
	case err == nil:
	// The exchange failed, but the old access token can still be used.
	case u.known.isUsable(u.now(), refusedToken):
		u.retryRenew = u.now().Add(ratePause)
	default:
		return "", err
	}
	return u.known.Access, nil
}

// loadTokens sets u.known to the stored tokens of the login. If no tokens are stored, it first stores the
// configured refresh token.
func (u *userTokens) loadTokens(ctx context.Context) (queue.SourceToken, error) {
	sealed, err := u.seal.encrypt(u.first)
	if err != nil {
		return queue.SourceToken{}, err
	}
	row, err := u.store.LoadOrStoreSourceToken(ctx, storedSource, u.account, sealed)
	if err != nil {
		return queue.SourceToken{}, err
	}
	if u.known, err = u.seal.decrypt(row.Sealed); err != nil {
		u.log.WarnContext(ctx, "stored TikTok token cannot be decrypted; the configured refresh token is used", "error", err, "login", u.account)
		u.known = u.first
	}
	return row, nil
}

// renewTokens exchanges the refresh token, which this collector has locked, and stores
// the new tokens.
func (u *userTokens) renewTokens(ctx context.Context, locked queue.SourceToken) error {
	// The new tokens are stored even if ctx is cancelled, because the old refresh token becomes
	// invalid.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockFor)
	defer cancel()
	got, err := u.requestTokens(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {u.known.Refresh}}, u.known.Refresh, u.known.Access)
	if err != nil {
		if failure, ok := errors.AsType[*source.Failure](err); ok && failure.Class == source.AuthFailed {
			failure.Detail += "; log in to the account again and set REELTALLY_TIKTOK_REFRESH_TOKEN to the new refresh token"
		}
		u.log.WarnContext(ctx, "TikTok access token could not be renewed", "error", err, "login", u.account)
		return errors.Join(err, u.store.UnlockSourceToken(ctx, locked))
	}
	if got.Refresh == "" {
		got.Refresh = u.known.Refresh
	}
	if got.Scope == "" {
		got.Scope = u.known.Scope
	}
	sealed, err := u.seal.encrypt(got)
	if err != nil {
		return err
	}
	u.known, u.unsaved = got, &unsavedTokens{locked, sealed}
	_ = u.saveTokens(ctx) // saveTokens logs its error, and the next call of userTokens.token tries to store the tokens again
	return nil
}

// saveTokens stores the unsaved tokens in the database. If this fails, the next call of userTokens.token tries again.
func (u *userTokens) saveTokens(ctx context.Context) error {
	if u.unsaved == nil {
		return nil
	}
	ok, err := u.store.ReplaceSourceToken(context.WithoutCancel(ctx), u.unsaved.row, u.unsaved.sealed)
	switch {
	case err != nil:
		u.log.ErrorContext(ctx, "TikTok token renewed but not stored yet: do not stop this collector until it is stored", "error", err, "login", u.account)
		return err
	case ok:
		u.log.InfoContext(ctx, "TikTok token renewed", "login", u.account, "expires", u.known.Expires)
	default:
		u.log.WarnContext(ctx, "TikTok token was also renewed by another collector; the token of that collector is kept", "login", u.account)
	}
	u.unsaved = nil
	return nil
}
