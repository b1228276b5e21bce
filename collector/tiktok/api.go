// Package tiktok collects from TikTok's own interfaces. Display asks for the videos of an account that has logged in to
// the operator's app, Research for anybody's public videos, for approved researchers and no commercial use. They have their
// tokens, their envelope and their errors in common.
package tiktok

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// DefaultBaseURL is where TikTok's interfaces are served.
const DefaultBaseURL = "https://open.tiktokapis.com/"

const (
	pathToken = "v2/oauth/token/" //nolint:gosec // a path, no token
	// ratePause is how long TikTok's sliding minute takes to forget.
	ratePause = time.Minute
)

var (
	errShape = errors.New("the answer is JSON of another shape than TikTok's")
	// errTokenRefused marks the failure of a call whose access token is worth nothing any more.
	errTokenRefused = errors.New("the access token was refused")
)

// app is what TikTok gave the operator, and the way to its interfaces.
type app struct {
	api         *fetch.Endpoint
	key, secret string
	now         func() time.Time
}

// Address is where the API is asked.
func (a app) Address() string { return a.api.Address() }

// Clock is the server's.
func (a app) Clock(ctx context.Context) (time.Time, error) { return a.api.Clock(ctx) }

func newApp(what, base, key, secret string, client *fetch.Client, now func() time.Time) (app, error) {
	switch {
	case key == "" || secret == "":
		return app{}, fmt.Errorf("%s: the client key and the client secret are both needed", what)
	case client == nil || now == nil:
		return app{}, fmt.Errorf("%s: Client and Now are required", what)
	}
	api, err := client.Endpoint(base, DefaultBaseURL)
	if err != nil {
		return app{}, fmt.Errorf("%s: %s", what, fetch.Redact(err.Error(), key, secret)) //nolint:err113 // with the credentials left out
	}
	return app{api: api, key: key, secret: secret, now: now}, nil
}

// request is one call of a method; body is nil for a GET.
type request struct {
	path   string
	fields string
	body   any
}

// answer is the data of a call that succeeded.
type answer struct {
	data    json.RawMessage // an object
	sandbox bool
}

// bearer gives access tokens.
type bearer interface {
	// token gives a token that is another than refused, which TikTok would not take.
	token(ctx context.Context, refused string) (string, error)
}

// ask makes a call, and makes it again with a new token when TikTok refuses the first.
func (a app) ask(ctx context.Context, budget *source.CallBudget, b bearer, r request) (answer, error) {
	token, err := b.token(ctx, "")
	if err != nil {
		return answer{}, err
	}
	got, err := a.call(ctx, budget, token, r)
	if !errors.Is(err, errTokenRefused) {
		return got, err
	}
	if token, err = b.token(ctx, token); err != nil {
		return answer{}, err
	}
	return a.call(ctx, budget, token, r)
}

// call makes a call. Every answer that is no success comes back as a *source.Failure.
func (a app) call(ctx context.Context, budget *source.CallBudget, token string, r request) (answer, error) {
	req := fetch.Request{
		URL:     a.Address() + r.path + "?fields=" + url.QueryEscape(r.fields),
		Header:  http.Header{"Authorization": {"Bearer " + token}},
		Secrets: []string{token, a.secret},
		Budget:  budget,
	}
	if r.body != nil {
		body, err := json.Marshal(r.body)
		if err != nil {
			return answer{}, err
		}
		req.Method, req.Body = http.MethodPost, body
	}
	res, err := a.api.Do(ctx, req)
	if err != nil {
		return answer{}, err
	}
	broken := fetch.CheckJSON(res.Body)
	var e envelope
	if broken == nil && json.Unmarshal(res.Body, &e) != nil {
		e, broken = envelope{}, errShape
		if fetch.ClassOf(res.Status, true) != source.OK {
			broken = nil // the status says enough
		}
	}
	if broken == nil && fetch.ClassOf(res.Status, true) == source.OK && e.Error.Code == codeOK {
		if len(e.Data) == 0 || e.Data[0] != '{' {
			return answer{}, &source.Failure{Class: source.Temporary, Detail: errShape.Error()}
		}
		return answer{data: e.Data, sandbox: res.Sandbox}, nil
	}
	return answer{}, a.failure(res, broken, e, token)
}

const codeOK = "ok"

// envelope is what every answer is wrapped in. The error is there on success too, with the code "ok".
type envelope struct {
	Data  json.RawMessage `json:"data"`
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// classOf is what an error's code means; ok is false for a code that says no more than the status.
func classOf(code string) (class source.Class, ok bool) {
	switch code {
	case "access_token_invalid", "access_token_expired", "scope_not_authorized", "scope_permission_missed":
		return source.AuthFailed, true
	case "invalid_params":
		return source.BadRequest, true
	case "rate_limit_exceeded":
		return source.RateLimited, true
	case "daily_quota_limit_exceeded":
		return source.QuotaSpent, true
	case "internal_error":
		return source.Temporary, true
	default:
		return "", false
	}
}

// failure says what an answer that is no success means for the source.
func (a app) failure(res *fetch.Response, broken error, e envelope, token string) *source.Failure {
	now := a.now()
	f := &source.Failure{
		Class:   fetch.ClassOf(res.Status, broken == nil),
		RetryAt: fetch.RetryAfter(res.Header, now),
		Detail:  fmt.Sprintf("HTTP %d", res.Status),
	}
	f.OfSource = fetch.NamesCredential(res.Status)
	if f.Class == source.OK { // with an error inside that is not in the list
		f.Class = source.Temporary
	}
	switch {
	case broken != nil:
		f.Detail += ": " + broken.Error()
	default:
		if class, ok := classOf(e.Error.Code); ok {
			f.Class, f.OfSource = class, class == source.AuthFailed
		}
		f.Detail = fetch.Redact(strings.TrimRight(fmt.Sprintf("%s %s: %s", f.Detail, e.Error.Code, e.Error.Message), ": "), token, a.secret)
	}
	if res.Status >= 300 && res.Status < 400 {
		f.Detail += ", a redirect, which is not followed"
	}
	switch {
	case e.Error.Code == "access_token_invalid" || e.Error.Code == "access_token_expired" || (broken == nil && e.Error.Code == "" && res.Status == http.StatusUnauthorized):
		f.Cause = errTokenRefused
	case f.Class == source.RateLimited && f.RetryAt.IsZero():
		f.RetryAt = now.Add(ratePause)
	case f.Class == source.QuotaSpent:
		_, f.RetryAt = utcDay(now)
	}
	return f
}

// utcDay is the day of now, at whose end TikTok's daily quotas begin anew.
func utcDay(now time.Time) (id string, ends time.Time) {
	day := now.UTC().Truncate(24 * time.Hour)
	return day.Format(time.DateOnly), day.Add(24 * time.Hour)
}

// minute is the minute of now.
func minute(now time.Time) (id string, ends time.Time) {
	start := now.UTC().Truncate(time.Minute)
	return start.Format("2006-01-02T15:04"), start.Add(time.Minute)
}

// limit reads an option: 0 is the default, less than 0 no known limit.
func limit(option, byDefault int64) int64 {
	switch {
	case option == 0:
		return byDefault
	case option < 0:
		return 0
	default:
		return option
	}
}
