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

// DefaultBaseURL is the base URL of TikTok's public APIs.
const DefaultBaseURL = "https://open.tiktokapis.com/"

const (
	tokenPath = "v2/oauth/token/" //nolint:gosec // a URL path, not a credential
	// ratePause is the length of the pause after a rate limit if TikTok's answer has no Retry-After. TikTok counts the requests of the last
	// 60 seconds.
	ratePause = time.Minute
)

var (
	errFormat = errors.New("the JSON of the answer does not have TikTok's format")
	// errTokenRefused is the cause of a failure if TikTok answers that the access token is not valid or has expired.
	errTokenRefused = errors.New("the access token was refused")
)

// app calls TikTok's APIs with the credentials of the operator's app.
type app struct {
	*fetch.Endpoint
	key, secret string
	now         func() time.Time
}

// newApp returns an app with the given client key and client secret. Error messages contain the name of the source.
func newApp(sourceName, base, key, secret string, client *fetch.Client, now func() time.Time) (app, error) {
	switch {
	case key == "" || secret == "":
		return app{}, fmt.Errorf("%s: the client key or the client secret is missing", sourceName)
	case client == nil || now == nil:
		return app{}, fmt.Errorf("%s: the options \"Client\" and \"Now\" are required", sourceName)
	}
	api, err := client.Endpoint(base, DefaultBaseURL)
	if err != nil {
		return app{}, fmt.Errorf("%s: %s", sourceName, fetch.Redact(err.Error(), key, secret)) //nolint:err113 // Redact has removed the credentials, so err is not wrapped
	}
	return app{Endpoint: api, key: key, secret: secret, now: now}, nil
}

// request is one call of an API method.
type request struct {
	path   string
	fields string
	body   any // nil for a GET request
}

// answer is the content of a successful answer of the API.
type answer struct {
	data    json.RawMessage // the data member of the answer, a JSON object
	sandbox bool
}

// tokenSource provides access tokens.
type tokenSource interface {
	// token returns an access token other than refusedToken. The caller sets refusedToken to a token that TikTok has just refused, or to "".
	token(ctx context.Context, refusedToken string) (string, error)
}

// callWithToken makes a call with an access token of the given token source. If TikTok refuses the token, callWithToken gets a new token
// and makes the call once more.
func (a app) callWithToken(ctx context.Context, budget *source.CallBudget, tokens tokenSource, r request) (answer, error) {
	token, err := tokens.token(ctx, "")
	if err != nil {
		return answer{}, err
	}
	got, err := a.callMethod(ctx, budget, token, r)
	if !errors.Is(err, errTokenRefused) {
		return got, err
	}
	if token, err = tokens.token(ctx, token); err != nil {
		return answer{}, err
	}
	return a.callMethod(ctx, budget, token, r)
}

// callMethod makes one call with the given access token. It returns a *source.Failure for any answer that is not a success.
func (a app) callMethod(ctx context.Context, budget *source.CallBudget, token string, r request) (answer, error) {
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
	res, err := a.Do(ctx, req)
	if err != nil {
		return answer{}, err
	}
	jsonErr := fetch.CheckJSON(res.Body)
	var e envelope
	if jsonErr == nil && json.Unmarshal(res.Body, &e) != nil {
		e, jsonErr = envelope{}, errFormat
		if fetch.ClassOf(res.Status, true) != source.OK {
			jsonErr = nil // an error status gives the class of the failure, whatever the body is
		}
	}
	if jsonErr == nil && fetch.ClassOf(res.Status, true) == source.OK && e.Error.Code == codeOK {
		if len(e.Data) == 0 || e.Data[0] != '{' {
			return answer{}, &source.Failure{Class: source.Temporary, Detail: errFormat.Error()}
		}
		return answer{data: e.Data, sandbox: res.Sandbox}, nil
	}
	return answer{}, a.parseFailure(res, jsonErr, e, token)
}

const codeOK = "ok"

// envelope is the JSON format of every answer. Even a successful answer has the member "error"; its code is then "ok".
type envelope struct {
	Data  json.RawMessage `json:"data"`
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// classOf returns the class for an error code of TikTok. It returns false for an unknown code; the HTTP status then gives the class.
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

// parseFailure returns the failure for an answer that is not a success. If the body could not be decoded, jsonErr says why. parseFailure
// removes the access token from error messages.
func (a app) parseFailure(res *fetch.Response, jsonErr error, e envelope, accessToken string) *source.Failure {
	now := a.now()
	f := fetch.NewFailure(res, jsonErr, now)
	if f.Class == source.OK { // the status is 200, but the error code is unknown
		f.Class = source.Temporary
	}
	if jsonErr == nil {
		if class, ok := classOf(e.Error.Code); ok {
			f.Class, f.OfSource = class, class == source.AuthFailed
		}
		f.Detail = fetch.Redact(strings.TrimRight(fmt.Sprintf("%s %s: %s", f.Detail, e.Error.Code, e.Error.Message), ": "), accessToken, a.secret)
	}
	switch {
	case e.Error.Code == "access_token_invalid" || e.Error.Code == "access_token_expired" || (jsonErr == nil && e.Error.Code == "" && res.Status == http.StatusUnauthorized):
		f.Cause = errTokenRefused
	case f.Class == source.RateLimited && f.RetryAt.IsZero():
		f.RetryAt = now.Add(ratePause)
	case f.Class == source.QuotaSpent:
		_, f.RetryAt = utcDay(now)
	}
	return f
}

// utcDay returns the current UTC date, as an id, and the end of that day. The daily budgets use it, because TikTok counts its daily quotas
// per UTC day.
func utcDay(now time.Time) (id string, ends time.Time) {
	day := now.UTC().Truncate(24 * time.Hour)
	return day.Format(time.DateOnly), day.Add(24 * time.Hour)
}

// minuteOf returns the current minute, as an id, and the end of that minute. Budgets that count per minute use it.
func minuteOf(now time.Time) (id string, ends time.Time) {
	start := now.UTC().Truncate(time.Minute)
	return start.Format("2006-01-02T15:04"), start.Add(time.Minute)
}
