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
	// exchangeWithin is how long an exchange of tokens may take.
	exchangeWithin = 20 * time.Second
	// assumedLife is that of an access token of which TikTok does not say how long it lives.
	assumedLife = 10 * time.Minute
	longestLife = 400 * 24 * time.Hour
	// lastMoments of a token are not begun a call with.
	lastMoments = 30 * time.Second
)

// credentials are what the exchange of tokens gives. They are kept sealed; see seal.
type credentials struct {
	Access  string    `json:"access,omitempty"`
	RenewAt time.Time `json:"renew_at,omitzero"` // a new one is worth having, while this one still works
	Expires time.Time `json:"expires,omitzero"`
	Refresh string    `json:"refresh,omitempty"`
	Scope   string    `json:"scope,omitempty"` // separated by commas; "" when it is not known
}

// works says whether the access token can be used, and is not the one that was refused.
func (c credentials) works(now time.Time, refused string) bool {
	return c.Access != "" && c.Access != refused && now.Before(c.Expires.Add(-lastMoments))
}

func (c credentials) fresh(now time.Time, refused string) bool {
	return c.works(now, refused) && now.Before(c.RenewAt)
}

// granted says whether the account's owner agreed to a scope.
func (c credentials) granted(scope string) bool {
	return c.Scope == "" || strings.Contains(","+c.Scope+",", ","+scope+",")
}

// exchange asks the token endpoint, whose errors have a form of their own: {"error":"invalid_grant","error_description":…}.
func (a app) exchange(ctx context.Context, form url.Values, secrets ...string) (credentials, error) {
	form.Set("client_key", a.key)
	form.Set("client_secret", a.secret)
	secrets = append(secrets, a.secret)
	res, err := a.api.Do(ctx, fetch.Request{
		Method: http.MethodPost, URL: a.Address() + pathToken, Body: []byte(form.Encode()), Timeout: exchangeWithin,
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Secrets: secrets,
	})
	if err != nil {
		return credentials{}, err
	}
	var said struct {
		Access      string          `json:"access_token"`
		ExpiresIn   fetch.Count     `json:"expires_in"`
		Refresh     string          `json:"refresh_token"`
		Scope       string          `json:"scope"`
		Error       json.RawMessage `json:"error"`
		Description string          `json:"error_description"`
	}
	broken := fetch.CheckJSON(res.Body)
	if broken == nil && json.Unmarshal(res.Body, &said) != nil {
		broken = errShape
	}
	class := fetch.ClassOf(res.Status, broken == nil)
	if class == source.OK && len(said.Error) == 0 && said.Access != "" {
		life := assumedLife
		if s := said.ExpiresIn.Value(); s != nil {
			life = time.Duration(min(*s, int64(longestLife/time.Second))) * time.Second
		}
		now := a.now()
		return credentials{Access: said.Access, RenewAt: now.Add(life * 3 / 4), Expires: now.Add(life), Refresh: said.Refresh, Scope: said.Scope}, nil
	}
	f := &source.Failure{Class: class, RetryAt: fetch.RetryAfter(res.Header, a.now()), Detail: fmt.Sprintf("token endpoint: HTTP %d", res.Status)}
	var name string
	switch {
	case broken != nil:
		f.Detail += ": " + broken.Error()
	case json.Unmarshal(said.Error, &name) == nil && name != "":
		f.Class = tokenClassOf(name, class)
		f.Detail = fetch.Redact(strings.TrimRight(f.Detail+" "+name+": "+said.Description, ": "), secrets...)
	}
	f.OfSource = true // the call names no target
	switch f.Class {
	case source.OK, source.BadRequest, source.QuotaSpent:
		f.Class = source.Temporary // nothing that it could mean elsewhere
	case source.RateLimited:
		if f.RetryAt.IsZero() {
			f.RetryAt = a.now().Add(ratePause)
		}
	default:
	}
	return credentials{}, f
}

// tokenClassOf is what an error of the token endpoint means; of an unknown one, what its status does.
func tokenClassOf(name string, byStatus source.Class) source.Class {
	switch name {
	case "server_error", "temporarily_unavailable", "internal_error":
		return source.Temporary
	case "invalid_grant", "invalid_client", "unauthorized_client", "invalid_request", "invalid_scope", "unsupported_grant_type", "access_denied":
		return source.AuthFailed
	case "rate_limit_exceeded":
		return source.RateLimited
	}
	return byStatus
}

// turn lets one caller at a time through, and nobody who has given up.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for an access token: %w", context.Cause(ctx))
	}
}

func (t turn) pass() { <-t }

// clientTokens are those of the app itself: each process has its own, and none is kept.
type clientTokens struct {
	app
	turn
	known credentials
}

func (c *clientTokens) token(ctx context.Context, refused string) (string, error) {
	if err := c.take(ctx); err != nil {
		return "", err
	}
	defer c.pass()
	if c.known.fresh(c.now(), refused) {
		return c.known.Access, nil
	}
	got, err := c.exchange(ctx, url.Values{"grant_type": {"client_credentials"}})
	switch {
	case err == nil:
		c.known = got
	case !c.known.works(c.now(), refused):
		return "", err
	}
	return c.known.Access, nil
}
