package tiktok

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

const (
	// exchangeTimeout is the timeout of a request that exchanges a refresh token for new tokens.
	exchangeTimeout = 20 * time.Second
	// defaultLifetime is the assumed lifetime of an access token if TikTok's answer does not contain the lifetime.
	defaultLifetime = 10 * time.Minute
	maxLifetime     = 400 * 24 * time.Hour
	// minRemaining is the shortest remaining lifetime with which an access token is still used for a new call. A token that expires earlier
	// could expire during the call.
	minRemaining = 30 * time.Second
)

// credentials are the access token and the refresh token that TikTok returned in one answer. The credentials of an account are encrypted
// before they are stored.
type credentials struct {
	Access  string    `json:"access,omitempty"`
	RenewAt time.Time `json:"renew_at,omitzero"` // time from which a new token is requested; earlier than Expires
	Expires time.Time `json:"expires,omitzero"`
	Refresh string    `json:"refresh,omitempty"`
	Scope   string    `json:"scope,omitempty"` // the granted scopes, separated by commas; "" if they are not known
}

// isUsable returns true if there is an access token that does not expire soon and is not
// refusedToken, the token that TikTok refused last.
func (c credentials) isUsable(now time.Time, refusedToken string) bool {
	return c.Access != "" && c.Access != refusedToken && now.Before(c.Expires.Add(-minRemaining))
}

// isFresh returns true if the access token is usable (see isUsable) and it is not yet time to renew it.
func (c credentials) isFresh(now time.Time, refusedToken string) bool {
	return c.isUsable(now, refusedToken) && now.Before(c.RenewAt)
}

// hasScope returns true if the owner of the account has granted the scope, or if the granted scopes are not known.
func (c credentials) hasScope(scope string) bool {
	return c.Scope == "" || strings.Contains(","+c.Scope+",", ","+scope+",")
}

// requestTokens requests tokens from TikTok's token endpoint. It adds the app's key and secret to
// the parameters. It removes the secrets from error messages.
func (a app) requestTokens(ctx context.Context, parameters url.Values, secrets ...string) (credentials, error) {
	parameters.Set("client_key", a.key)
	parameters.Set("client_secret", a.secret)
	secrets = append(secrets, a.secret)
	res, err := a.Do(ctx, fetch.Request{
		Method: http.MethodPost, URL: a.Address() + tokenPath, Body: []byte(parameters.Encode()), Timeout: exchangeTimeout,
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Secrets: secrets,
	})
	if err != nil {
		return credentials{}, err
	}
	var body struct {
		Access      string          `json:"access_token"`
		ExpiresIn   fetch.Count     `json:"expires_in"`
		Refresh     string          `json:"refresh_token"`
		Scope       string          `json:"scope"`
		Error       json.RawMessage `json:"error"`
		Description string          `json:"error_description"`
	}
	jsonErr := fetch.CheckJSON(res.Body)
	if jsonErr == nil && json.Unmarshal(res.Body, &body) != nil {
		jsonErr = errFormat
	}
	class := fetch.ClassOf(res.Status, jsonErr == nil)
	if class == source.OK && len(body.Error) == 0 && body.Access != "" {
		lifetime := defaultLifetime
		if s := body.ExpiresIn.Value(); s != nil {
			lifetime = time.Duration(min(*s, int64(maxLifetime/time.Second))) * time.Second
		}
		now := a.now()
		return credentials{Access: body.Access, RenewAt: now.Add(lifetime * 3 / 4), Expires: now.Add(lifetime), Refresh: body.Refresh, Scope: body.Scope}, nil
	}
	f := &source.Failure{Class: class, RetryAt: fetch.RetryAfter(res.Header, a.now()), Detail: fmt.Sprintf("token endpoint: HTTP %d", res.Status)}
	var name string
	switch {
	case jsonErr != nil:
		f.Detail += ": " + jsonErr.Error()
	// This endpoint returns the name of an error as a string, such as "invalid_grant".
	case json.Unmarshal(body.Error, &name) == nil && name != "":
		f.Class = tokenClassOf(name, class)
		f.Detail = fetch.Redact(strings.TrimRight(f.Detail+" "+name+": "+body.Description, ": "), secrets...)
	}
	f.OfSource = true // a request for tokens concerns no single video or account, so its failure concerns the source
	switch f.Class {
	case source.OK, source.BadRequest, source.QuotaSpent:
		f.Class = source.Temporary // these classes do not fit a failed request for tokens, so they become Temporary: the request is tried again later
	case source.RateLimited:
		if f.RetryAt.IsZero() {
			f.RetryAt = a.now().Add(ratePause)
		}
	default:
	}
	return credentials{}, f
}

// tokenClassOf returns the class for an error name of the token endpoint, such as "invalid_grant". For an unknown name it returns
// defaultClass.
func tokenClassOf(errorName string, defaultClass source.Class) source.Class {
	switch errorName {
	case "server_error", "temporarily_unavailable", "internal_error":
		return source.Temporary
	case "invalid_grant", "invalid_client", "unauthorized_client", "invalid_request", "invalid_scope", "unsupported_grant_type", "access_denied":
		return source.AuthFailed
	case "rate_limit_exceeded":
		return source.RateLimited
	}
	return defaultClass
}

// ctxMutex is a mutex. A call that waits for the mutex returns if its context is cancelled.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

// lock locks the mutex. It returns an error if ctx is cancelled while it waits.
func (m ctxMutex) lock(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the call ended while it waited for an access token: %w", context.Cause(ctx))
	}
}

func (m ctxMutex) unlock() { <-m }

// clientTokens provides the access tokens of the operator's app, which belong to no account. Each process requests its own tokens and does
// not store them.
type clientTokens struct {
	app
	ctxMutex
	known credentials
}

// token returns a usable access token other than refusedToken, which TikTok has refused. It
// requests a new token if necessary.
func (c *clientTokens) token(ctx context.Context, refusedToken string) (string, error) {
	if err := c.lock(ctx); err != nil {
		return "", err
	}
	defer c.unlock()
	if c.known.isFresh(c.now(), refusedToken) {
		return c.known.Access, nil
	}
	got, err := c.requestTokens(ctx, url.Values{"grant_type": {"client_credentials"}})
	switch {
	case err == nil:
		c.known = got
	// The request failed, and the known token cannot be used.
	case !c.known.isUsable(c.now(), refusedToken):
		return "", err
	}
	return c.known.Access, nil
}
