package tiktok_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/tiktok"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// issuer simulates TikTok's token endpoint and an API method. Each refresh token is accepted only once. Of the access tokens, only the
// newest is accepted.
type issuer struct {
	*httptest.Server
	mu        sync.Mutex
	refresh   string // the only refresh token that is accepted now
	made      int
	exchanges int
	reply     func(w http.ResponseWriter) bool // if not nil, called for the next token request; if it returns false, the normal answer is sent
}

func newIssuer(t *testing.T, first string) *issuer {
	t.Helper()
	i := &issuer{refresh: first}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serveRequest))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) serveRequest(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !strings.HasSuffix(r.URL.Path, "/oauth/token/") {
		if r.Header.Get("Authorization") != fmt.Sprintf("Bearer act.secret.%d", i.made) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, errorAnswer("access_token_invalid", "The access token is invalid."))
			return
		}
		_, _ = io.WriteString(w, videoListAnswer(displayVideoJSON(soup, counts)))
		return
	}
	i.exchanges++
	if r.PostFormValue("refresh_token") != i.refresh {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"Refresh token %s is invalid or expired.","log_id":"x"}`, r.PostFormValue("refresh_token"))
		return
	}
	i.made++
	i.refresh = fmt.Sprintf("rft.secret.%d", i.made)
	if i.reply != nil && i.reply(w) {
		i.reply = nil
		return
	}
	_, _ = fmt.Fprintf(w, `{"scope":"user.info.basic,video.list","access_token":"act.secret.%d","expires_in":7200,"refresh_token":"rft.secret.%d","refresh_expires_in":15552000}`, i.made, i.made)
}

func (i *issuer) countExchanges() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.exchanges
}

// revokeToken makes the newest access token invalid.
func (i *issuer) revokeToken() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made += 100
}

const firstToken = "rft.secret.first"

// newSourceWithOwnConnection returns a source with its own connection to the database, like a source in a separate process.
func newSourceWithOwnConnection(t *testing.T, db *storetest.DB, i *issuer, log io.Writer, change func(*tiktok.DisplayOptions)) *tiktok.Display {
	t.Helper()
	return newDisplay(t, db, i.URL, nil, func(o *tiktok.DisplayOptions) {
		o.RefreshToken, o.Now, o.Tokens = firstToken, db.Clock.Now, db.Open(t).Queue
		o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		if change != nil {
			change(o)
		}
	})
}

func fetchVideo(ctx context.Context, d *tiktok.Display) error {
	batch := []queue.Target{videoTarget(soup, "", true)}
	results, err := d.Fetch(ctx, batch, source.NewCallBudget(d.Plan(batch)[0]))
	if err == nil && results[0].Class != source.OK {
		err = errors.New(results[0].Detail)
	}
	return err
}

func TestTokens_areStoredForNextProcess(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		i, log := newIssuer(t, firstToken), &bytes.Buffer{}
		for n := range 4 { // each iteration simulates a new process, whose settings still have the first token
			d := newSourceWithOwnConnection(t, db, i, log, nil)
			require.NoError(t, fetchVideo(t.Context(), d))
			require.NoError(t, fetchVideo(t.Context(), d))
			require.Equal(t, n+1, i.countExchanges(), "the number of exchanges must not grow while the access token is valid")
			db.Clock.Advance(100 * time.Minute) // a token is renewed after 90 of its 120 minutes, so its renewal is due now
		}
		require.NotContains(t, log.String(), "secret", "the log must not contain a token")
		sealed := storetest.Column[[]byte](t, db, "SELECT sealed FROM source_tokens")
		require.Len(t, sealed, 1)
		require.NotContains(t, string(sealed[0]), "secret")
		require.NotContains(t, strings.Join(storetest.Column[string](t, db, "SELECT account FROM source_tokens"), ""), "secret")
	})
}

func TestTokens_areExchangedByOneCollectorAtATime(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		i := newIssuer(t, firstToken)
		const collectors = 6
		all := make([]*tiktok.Display, collectors)
		for n := range all {
			all[n] = newSourceWithOwnConnection(t, db, i, io.Discard, nil)
		}
		for round := range 3 {
			var wg sync.WaitGroup
			var waited atomic.Int64
			for _, d := range all {
				for range 2 {
					wg.Go(func() {
						err := fetchVideo(t.Context(), d)
						if f, ok := errors.AsType[*source.Failure](err); ok && f.Class == source.RateLimited {
							waited.Add(1) // the call failed because another collector was exchanging the token
						} else if err != nil {
							t.Errorf("fetch: %v", err)
						}
					})
				}
			}
			wg.Wait()
			require.Equal(t, round+1, i.countExchanges(), "the token must be exchanged by only one collector")
			require.Less(t, waited.Load(), int64(2*collectors))
			for _, d := range all {
				require.NoError(t, fetchVideo(t.Context(), d))
			}
			db.Clock.Advance(3 * time.Hour)
		}
	})
}

func TestTokens_areRenewedIfTikTokRefusesThem(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	i := newIssuer(t, firstToken)
	d := newSourceWithOwnConnection(t, db, i, io.Discard, nil)
	require.NoError(t, fetchVideo(t.Context(), d))
	i.revokeToken()
	require.NoError(t, fetchVideo(t.Context(), d), "the refused token must be renewed although it has not expired")
	require.Equal(t, 2, i.countExchanges())
}

func TestTokens_areStoredEvenIfCallerCancelsContext(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	i := newIssuer(t, firstToken)
	ctx, cancel := context.WithCancel(t.Context())
	i.reply = func(http.ResponseWriter) bool { cancel(); return false }
	require.ErrorIs(t, fetchVideo(ctx, newSourceWithOwnConnection(t, db, i, io.Discard, nil)), context.Canceled)
	require.NoError(t, fetchVideo(t.Context(), newSourceWithOwnConnection(t, db, i, io.Discard, nil)))
	require.Equal(t, 1, i.countExchanges())
}

func TestTokens_areRenewedAfterAnotherCollectorWasKilled(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	i := newIssuer(t, firstToken)
	d := newSourceWithOwnConnection(t, db, i, io.Discard, nil)
	require.NoError(t, fetchVideo(t.Context(), d))
	db.Clock.Advance(3 * time.Hour)
	db.Exec(t, "UPDATE source_tokens SET held_until = ?", store.InstantOf(db.Clock.Now().Add(time.Minute))) // simulates a collector that was killed during an exchange

	err := fetchVideo(t.Context(), d)
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.RateLimited, f.Class)
	require.True(t, db.Clock.Now().Add(2*time.Second).Equal(f.RetryAt), "the next attempt must be after two seconds")
	db.Clock.Advance(time.Minute)
	require.NoError(t, fetchVideo(t.Context(), d))
}

// flakyStore is a token store. While the field `unavailable` is true, it stores no new tokens and returns
// store.ErrUnavailable.
type flakyStore struct {
	tiktok.TokenStore
	unavailable atomic.Bool
}

func (s *flakyStore) ReplaceSourceToken(ctx context.Context, t queue.SourceToken, sealed []byte) (bool, error) {
	if s.unavailable.Load() {
		return false, store.ErrUnavailable
	}
	return s.TokenStore.ReplaceSourceToken(ctx, t, sealed)
}

func TestTokens_areUsedEvenIfTheyCannotBeStored(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	i, log := newIssuer(t, firstToken), &bytes.Buffer{}
	kept := &flakyStore{TokenStore: db.Queue}
	kept.unavailable.Store(true)
	d := newSourceWithOwnConnection(t, db, i, log, func(o *tiktok.DisplayOptions) { o.Tokens = kept })
	require.NoError(t, fetchVideo(t.Context(), d), "the new token must be used although it is not stored")
	require.Contains(t, log.String(), "not stored yet")
	db.Clock.Advance(100 * time.Minute)
	require.NoError(t, fetchVideo(t.Context(), d))
	require.Equal(t, 1, i.countExchanges(), "there must be no second exchange before the new token is stored")
	kept.unavailable.Store(false)
	require.NoError(t, fetchVideo(t.Context(), d))
	require.Equal(t, 2, i.countExchanges())
	require.NoError(t, fetchVideo(t.Context(), newSourceWithOwnConnection(t, db, i, log, nil)), "other collectors must be able to use the stored token")
	require.Equal(t, 2, i.countExchanges())
}

func TestTokens_reportThatNewLoginIsNeeded(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	i, log := newIssuer(t, "rft.another"), &bytes.Buffer{}
	d := newSourceWithOwnConnection(t, db, i, log, nil)
	var f *source.Failure
	require.ErrorAs(t, fetchVideo(t.Context(), d), &f)
	require.Equal(t, source.AuthFailed, f.Class)
	require.Equal(t, "token endpoint: HTTP 400 invalid_grant: Refresh token REDACTED is invalid or expired.; log in to the account again and set REELTALLY_TIKTOK_REFRESH_TOKEN to the new refresh token", f.Detail)
	require.NotContains(t, log.String(), "secret")
	require.ErrorAs(t, fetchVideo(t.Context(), d), &f)
	require.Equal(t, source.AuthFailed, f.Class, "the token must be released for other collectors after the failure")

	d = newSourceWithOwnConnection(t, db, i, log, func(o *tiktok.DisplayOptions) { o.RefreshToken = "rft.another" })
	require.NoError(t, fetchVideo(t.Context(), d), "a new refresh token must work")
}

func TestTokens_areNotDecryptedWithAnotherClientSecret(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	i, log := newIssuer(t, firstToken), &bytes.Buffer{}
	require.NoError(t, fetchVideo(t.Context(), newSourceWithOwnConnection(t, db, i, log, nil)))
	d := newSourceWithOwnConnection(t, db, i, log, func(o *tiktok.DisplayOptions) { o.ClientSecret = "rotated" })
	var f *source.Failure
	require.ErrorAs(t, fetchVideo(t.Context(), d), &f)
	require.Equal(t, source.AuthFailed, f.Class, "the call must fail, because the first refresh token is no longer valid")
	require.Contains(t, log.String(), "cannot be decrypted")
	require.NoError(t, fetchVideo(t.Context(), newSourceWithOwnConnection(t, db, i, log, nil)), "the stored token must not be changed")

	// The encrypted token of a login cannot be decrypted for another login.
	d = newSourceWithOwnConnection(t, db, i, log, func(o *tiktok.DisplayOptions) { o.RefreshToken = "rft.other" })
	require.Error(t, fetchVideo(t.Context(), d))
	db.Exec(t, "UPDATE source_tokens SET sealed = (SELECT s.sealed FROM source_tokens s WHERE s.version > 1)")
	require.ErrorAs(t, fetchVideo(t.Context(), newSourceWithOwnConnection(t, db, i, log, func(o *tiktok.DisplayOptions) { o.RefreshToken = "rft.other" })), &f)
	require.Equal(t, source.AuthFailed, f.Class)
}

func TestTokens_classifyErrorsOfTokenEndpoint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		class  source.Class
	}{
		"a server error":                 {http.StatusInternalServerError, `{"error":"server_error","error_description":"x","log_id":"y"}`, source.Temporary},
		"a rate limit":                   {http.StatusTooManyRequests, `{"error":"rate_limit_exceeded","error_description":"x"}`, source.RateLimited},
		"a wrong client secret":          {http.StatusOK, `{"error":"invalid_client","error_description":"Client key or secret is incorrect."}`, source.AuthFailed},
		"an error in the API's format":   {http.StatusOK, errorAnswer("internal_error", "x"), source.Temporary},
		"an answer without a token":      {http.StatusOK, `{"expires_in":7200}`, source.Temporary},
		"a list instead of a token":      {http.StatusOK, `{"access_token":["act.x"],"expires_in":7200}`, source.Temporary},
		"a page of HTML":                 {http.StatusOK, `<html></html>`, source.Temporary},
		"a page of HTML with status 403": {http.StatusForbidden, `<html></html>`, source.Temporary},
		"an empty body":                  {http.StatusOK, ``, source.Temporary},
		"an unknown error":               {http.StatusBadRequest, `{"error":"what_is_this"}`, source.Temporary},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, requests := recordRequests(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			d := newDisplay(t, storetest.New(t, "sqlite"), base, nil, nil)
			var f *source.Failure
			require.ErrorAs(t, fetchVideo(t.Context(), d), &f)
			require.Equal(t, c.class, f.Class, f.Detail)
			require.Len(t, requests(), 1, "after the exchange of the token failed, there must be no further request")
		})
	}
}

func TestTokens_areUsedUntilExpiryIfRenewalFails(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	i := newIssuer(t, firstToken)
	d := newSourceWithOwnConnection(t, db, i, io.Discard, nil)
	require.NoError(t, fetchVideo(t.Context(), d))
	i.mu.Lock()
	good := i.refresh
	i.refresh = "out of order"
	i.mu.Unlock()
	db.Clock.Advance(100 * time.Minute)
	for range 3 {
		require.NoError(t, fetchVideo(t.Context(), d))
	}
	require.Equal(t, 2, i.countExchanges(), "a failed renewal must not be repeated by every call")
	i.mu.Lock()
	i.refresh = good
	i.mu.Unlock()
	db.Clock.Advance(2 * time.Minute)
	require.NoError(t, fetchVideo(t.Context(), d))
	require.Equal(t, 3, i.countExchanges())
}
