package tiktok

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/store/queue"
)

// TokenStore keeps tokens that change with their use, for all collectors; *store.Queue is one.
type TokenStore interface {
	KeepSourceToken(ctx context.Context, source, account string, sealed []byte) (queue.SourceToken, error)
	HoldSourceToken(ctx context.Context, t queue.SourceToken, d time.Duration) (queue.SourceToken, bool, error)
	ReplaceSourceToken(ctx context.Context, t queue.SourceToken, sealed []byte) (bool, error)
	ReleaseSourceToken(ctx context.Context, t queue.SourceToken) error
}

var _ TokenStore = (*queue.Queue)(nil)

const (
	tokenSource = "tiktok"
	// holdFor is longer than an exchange can take, so that nobody exchanges a token that somebody alive is exchanging.
	holdFor = 3 * exchangeWithin
	// heldPause is how long calls wait that need the token which another collector is just exchanging.
	heldPause = 2 * time.Second
)

// userTokens are those of an account that has logged in to the app. Each exchange gives a new refresh token and makes the
// old one worthless, so that one collector exchanges at a time, and a new pair is used only once it is stored, or, while
// the database is away, kept here until it can be. What cannot be helped is a process that is killed between TikTok's answer and the
// database's: the account has to log in again if TikTok then refuses the old token.
type userTokens struct {
	app
	turn
	store   TokenStore
	log     *slog.Logger
	account string // names the login: a hash of its first refresh token
	first   credentials
	seal    seal

	known    credentials
	unsaved  *unsaved
	calmTill time.Time // after an exchange that failed, while the old access token still works
}

// unsaved is a pair that could not be stored yet.
type unsaved struct {
	row    queue.SourceToken
	sealed []byte
}

func newUserTokens(a app, refresh string, st TokenStore, log *slog.Logger) (*userTokens, error) {
	sum := sha256.Sum256([]byte("reeltally tiktok login\n" + refresh))
	u := &userTokens{app: a, turn: newTurn(), store: st, log: log, account: hex.EncodeToString(sum[:16]), first: credentials{Refresh: refresh}}
	var err error
	u.seal, err = newSeal(a.secret, tokenSource, u.account)
	return u, err
}

// granted says whether the owner agreed to a scope, as far as is known.
func (u *userTokens) granted(ctx context.Context, scope string) bool {
	if u.take(ctx) != nil {
		return false
	}
	defer u.pass()
	return u.known.granted(scope)
}

func (u *userTokens) token(ctx context.Context, refused string) (string, error) {
	if err := u.take(ctx); err != nil {
		return "", err
	}
	defer u.pass()
	unsaved := u.save(ctx)
	if u.known.fresh(u.now(), refused) || u.known.works(u.now(), refused) && (unsaved != nil || u.now().Before(u.calmTill)) {
		return u.known.Access, nil
	}
	if unsaved != nil {
		return "", unsaved // what is stored is older than what is known
	}
	row, err := u.load(ctx)
	if err != nil {
		return "", err
	}
	if u.known.fresh(u.now(), refused) {
		return u.known.Access, nil
	}
	held, ok, err := u.store.HoldSourceToken(ctx, row, holdFor)
	switch {
	case err != nil:
		return "", err
	case ok:
		err = u.renew(ctx, held)
	default:
		// Not a fault, but all that a source can say for "ask me again in a moment".
		err = &collector.Failure{Class: collector.RateLimited, RetryAt: u.now().Add(heldPause), Detail: "another collector is renewing the access token"}
	}
	switch {
	case err == nil:
	case u.known.works(u.now(), refused):
		u.calmTill = u.now().Add(ratePause)
	default:
		return "", err
	}
	return u.known.Access, nil
}

// load brings what is known up to what any collector has stored.
func (u *userTokens) load(ctx context.Context) (queue.SourceToken, error) {
	sealed, err := u.seal.close(u.first)
	if err != nil {
		return queue.SourceToken{}, err
	}
	row, err := u.store.KeepSourceToken(ctx, tokenSource, u.account, sealed)
	if err != nil {
		return queue.SourceToken{}, err
	}
	if u.known, err = u.seal.open(row.Sealed); err != nil {
		u.log.WarnContext(ctx, "TikTok token cannot be opened; the configured one is tried", "error", err, "login", u.account)
		u.known = u.first
	}
	return row, nil
}

// renew exchanges the held token. Once asked, TikTok's answer is waited for and stored, whoever gives up meanwhile.
func (u *userTokens) renew(ctx context.Context, held queue.SourceToken) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdFor)
	defer cancel()
	got, err := u.exchange(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {u.known.Refresh}}, u.known.Refresh, u.known.Access)
	if err != nil {
		if failure, ok := errors.AsType[*collector.Failure](err); ok && failure.Class == collector.AuthFailed {
			failure.Detail += "; the account has to log in again, and REELTALLY_TIKTOK_REFRESH_TOKEN be set to its new refresh token"
		}
		u.log.WarnContext(ctx, "TikTok token not renewed", "error", err, "login", u.account)
		return errors.Join(err, u.store.ReleaseSourceToken(ctx, held))
	}
	if got.Refresh == "" {
		got.Refresh = u.known.Refresh
	}
	if got.Scope == "" {
		got.Scope = u.known.Scope
	}
	sealed, err := u.seal.close(got)
	if err != nil {
		return err
	}
	u.known, u.unsaved = got, &unsaved{held, sealed}
	_ = u.save(ctx) // logged, and tried again by the next call
	return nil
}

// save stores a new pair, or leaves it for the next call.
func (u *userTokens) save(ctx context.Context) error {
	if u.unsaved == nil {
		return nil
	}
	ok, err := u.store.ReplaceSourceToken(context.WithoutCancel(ctx), u.unsaved.row, u.unsaved.sealed)
	switch {
	case err != nil:
		u.log.ErrorContext(ctx, "TikTok token renewed but not stored yet: do not stop this collector before it is", "error", err, "login", u.account)
		return err
	case ok:
		u.log.InfoContext(ctx, "TikTok token renewed", "login", u.account, "expires", u.known.Expires)
	default:
		u.log.WarnContext(ctx, "TikTok token was renewed by another collector as well, whose token stays", "login", u.account)
	}
	u.unsaved = nil
	return nil
}
