// Package graph is what the sources that ask Meta's Graph API have in common: how a call is made, what an error means, and how
// the limits that answers tell of are kept to.
package graph

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// DefaultBaseURL is where the API is served, in the version that the sources are written for.
const DefaultBaseURL = "https://graph.facebook.com/v25.0/"

// Budget is the one budget of a source that asks the Graph API. Its limit is not known: the platform tells how much of it is
// used up, and the client keeps to that.
const Budget = "calls"

var version = regexp.MustCompile(`/v[1-9][0-9]*\.[0-9]+/?$`)

// Options of a Client.
type Options struct {
	Source  string // the name of the source, for errors
	BaseURL string // with the API's version at its end; "" means DefaultBaseURL
	Token   string // an access token
	// AppSecret is the secret of the app that the token is of: with it, each call proves that it comes from the app's own server,
	// which an app can demand. "" means that none does.
	AppSecret string
	Client    *fetch.Client
	Now       func() time.Time
}

// Client asks the Graph API with one access token, and with those of pages that it gives. All methods may be called
// concurrently.
type Client struct {
	api           *fetch.Endpoint
	token, secret string
	now           func() time.Time
	usage         usage
	pages         pageTokens
}

// New makes a client. It returns an error when the token is missing or the base address is none, or names no version.
func New(o Options) (*Client, error) {
	if o.Token == "" {
		return nil, fmt.Errorf("%s: the access token is missing", o.Source)
	}
	if o.Client == nil || o.Now == nil {
		return nil, fmt.Errorf("%s: Client and Now are required", o.Source)
	}
	api, err := o.Client.Endpoint(o.BaseURL, DefaultBaseURL)
	if err != nil || !version.MatchString(api.Address()) {
		return nil, fmt.Errorf("%s: the base address must be an http or https address that ends in a version, as %s, not %q",
			o.Source, DefaultBaseURL, fetch.Redact(o.BaseURL, o.Token, o.AppSecret))
	}
	return &Client{api: api, token: o.Token, secret: o.AppSecret, now: o.Now}, nil
}

// Address is the version's base address.
func (c *Client) Address() string { return c.api.Address() }

// Timeout is the client's.
func (c *Client) Timeout() time.Duration { return c.api.Timeout() }

// Clock is the server's.
func (c *Client) Clock(ctx context.Context) (time.Time, error) { return c.api.Clock(ctx) }

// Budgets lists the one budget, whose limit is not known.
func (c *Client) Budgets() []source.Budget {
	return []source.Budget{{Name: Budget, Window: func(now time.Time) (string, time.Time) {
		hour := now.UTC().Truncate(time.Hour) // of which the platform counts a rolling one
		return hour.Format("2006-01-02T15Z"), hour.Add(time.Hour)
	}}}
}

// Plan is the plan for so many calls, and none while the client spreads its calls because much of the limit is used up.
func (c *Client) Plan(calls int) [][]source.Call {
	if c.usage.spreads(c.now()) {
		return nil
	}
	return [][]source.Call{{{Bucket: Budget, Units: int64(max(calls, 1))}}}
}

// Answer is a good answer: JSON of a sane depth.
type Answer struct {
	Body    []byte
	Sandbox bool
}

// Refusal is an error of the platform that concerns what was asked for and not the source.
type Refusal struct {
	Class   source.Class // of one target
	Detail  string       // for the log; never holds a credential
	Sandbox bool
}

func (r *Refusal) Error() string { return r.Detail }

// Result is the refusal as the outcome for one target.
func (r *Refusal) Result() source.Result {
	return source.Result{Class: r.Class, Detail: r.Detail, Sandbox: r.Sandbox}
}

// Code is what the platform calls an error by. Sub 0 stands for every subcode.
type Code struct{ Main, Sub int }

// Verdicts are what errors mean for the object that was asked for, where they concern it alone; AuthFailed says that it is the
// operator's own, so that the source cannot work.
type Verdicts map[Code]source.Class

// Get asks for a path below the version with parameters, by name and value in turn. Every answer that is not a success with
// JSON comes back as a *source.Failure or, where verdicts has its code, as a *Refusal. While the platform's limit is used
// up it returns the failure at once, without a call.
func (c *Client) Get(ctx context.Context, budget *source.CallBudget, path string, verdicts Verdicts, parameters ...string) (Answer, error) {
	return c.get(ctx, budget, c.token, path, verdicts, parameters...)
}

// get is Get with an access token.
func (c *Client) get(ctx context.Context, budget *source.CallBudget, token, path string, verdicts Verdicts, parameters ...string) (Answer, error) {
	if f := c.usage.exhausted(c.now()); f != nil {
		return Answer{}, f
	}
	var query strings.Builder
	for i := 0; i+1 < len(parameters); i += 2 {
		query.WriteString(parameters[i] + "=" + url.QueryEscape(parameters[i+1]) + "&")
	}
	query.WriteString("access_token=" + url.QueryEscape(token))
	secrets := []string{token, c.token, c.secret}
	if c.secret != "" {
		proof := proofOf(token, c.secret)
		query.WriteString("&appsecret_proof=" + proof)
		secrets = append(secrets, proof)
	}
	res, err := c.api.Do(ctx, fetch.Request{URL: c.Address() + path + "?" + query.String(), Secrets: secrets, Budget: budget})
	if err != nil {
		return Answer{}, err
	}
	now := c.now()
	u := usageOf(res.Header, now)
	c.usage.note(u, now)
	broken := fetch.CheckJSON(res.Body)
	if fetch.ClassOf(res.Status, broken == nil) != source.OK {
		err := c.refused(res, broken, u, verdicts, now, secrets)
		if f, ok := errors.AsType[*source.Failure](err); ok && token != c.token {
			f.OfSource = false // the token of one page may be refused while the client's own is valid
		}
		return Answer{}, err
	}
	return Answer{Body: res.Body, Sandbox: res.Sandbox}, nil
}

// proofOf is what proves that a caller with a token knows the app's secret as well.
func proofOf(token, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(token))
	return hex.EncodeToString(mac.Sum(nil))
}

// apiError is the body of an answer that is no success.
type apiError struct {
	Error struct {
		Message   string `json:"message"`
		Code      int    `json:"code"`
		Subcode   int    `json:"error_subcode"`
		Transient bool   `json:"is_transient"`
	} `json:"error"`
}

// The codes of errors.
const (
	codeUnknown        = 1
	codeService        = 2
	codeCapability     = 3
	codeAppLimit       = 4
	codePermission     = 10
	codeUserLimit      = 17
	codeParameter      = 100
	codePageLimit      = 32
	codeSession        = 102
	codeNoToken        = 104
	codeToken          = 190
	codePageToken      = 210
	codeBlocked        = 368
	codeCustomLimit    = 613
	firstPermission    = 200
	lastPermission     = 299
	firstBusinessLimit = 80000
	lastBusinessLimit  = 80014
)

// class is what an error means for the source; ok is false for one that says no more than the status. Most come with HTTP
// 400, so that the status decides nothing. Limits come first: the platform calls them transient as well.
func (e apiError) class() (class source.Class, ok bool) {
	switch code := e.Error.Code; {
	case e.ofCredential():
		return source.AuthFailed, true
	case code == codeAppLimit, code == codeUserLimit, code == codePageLimit, code == codeCustomLimit,
		code >= firstBusinessLimit && code <= lastBusinessLimit:
		return source.RateLimited, true
	case e.Error.Transient, code == codeUnknown, code == codeService:
		return source.Temporary, true
	case e.lacksAccess(), code == codeToken, code == codeSession, code == codeNoToken, code == codeBlocked, code == codeCapability, code == codePermission,
		code >= firstPermission && code <= lastPermission:
		return source.AuthFailed, true
	}
	return "", false
}

// namesCredential returns true if the error concerns the token, the session or the app, whatever object was asked for. It returns
// false for a missing permission (3, 10, 200 to 299), which may be missing for that object only.
func (e apiError) namesCredential() bool {
	switch e.Error.Code {
	case codeToken, codeSession, codeNoToken, codeBlocked:
		return !e.wantsPage()
	}
	return e.ofCredential() && !e.wantsPage()
}

// noAccess are the parts of messages by which an error of code 100 says that the token may not read the object. Meta also uses code 10
// for that.
var noAccess = []string{"public content access", "public metadata access", "missing permission", "reviewable feature"}

// lacksAccess returns true if an error of code 100 without a subcode means that the token may not read the requested object.
func (e apiError) lacksAccess() bool {
	message := strings.ToLower(e.Error.Message)
	return e.Error.Code == codeParameter && e.Error.Subcode == 0 && slices.ContainsFunc(noAccess, func(part string) bool { return strings.Contains(message, part) })
}

// ErrPageToken is the cause of a failure whose call needs a page's own token.
var ErrPageToken = errors.New("the call needs the token of a page")

// wantsPage says whether an error asks for a page's own token.
func (e apiError) wantsPage() bool {
	return e.Error.Code == codePageToken || e.Error.Code == codeToken && strings.Contains(strings.ToLower(e.Error.Message), "page access token")
}

// ofCredential says whether an error is one of the token or of the proof, whatever object was asked for.
func (e apiError) ofCredential() bool {
	return e.wantsPage() || e.Error.Code == codeParameter && strings.Contains(e.Error.Message, "appsecret_proof")
}

// refused says what an answer that is no success means.
func (c *Client) refused(res *fetch.Response, broken error, u reading, verdicts Verdicts, now time.Time, secrets []string) error {
	f := &source.Failure{
		Class:   fetch.ClassOf(res.Status, broken == nil),
		RetryAt: fetch.RetryAfter(res.Header, now),
		Detail:  fmt.Sprintf("HTTP %d", res.Status),
	}
	f.OfSource = fetch.NamesCredential(res.Status)
	switch {
	case broken != nil:
		f.Detail += ": " + broken.Error()
	default:
		var body apiError
		_ = json.Unmarshal(res.Body, &body) // of another shape: the status alone decides
		e := body.Error
		if e.Code != 0 {
			f.Detail = fetch.Redact(strings.TrimRight(fmt.Sprintf("HTTP %d, code %d/%d: %s", res.Status, e.Code, e.Subcode, e.Message), ": "), secrets...)
		}
		class, known := body.class()
		if known {
			f.Class, f.OfSource = class, f.OfSource || body.namesCredential()
		}
		if body.wantsPage() {
			f.Cause = ErrPageToken
		}
		if body.ofCredential() {
			break
		}
		code := e.Code
		if body.lacksAccess() {
			code = codePermission
		}
		if v, ok := verdict(verdicts, code, e.Subcode); ok && f.Class != source.Temporary && res.Status < http.StatusInternalServerError {
			if v != source.AuthFailed {
				return &Refusal{Class: v, Detail: f.Detail, Sandbox: res.Sandbox}
			}
			f.Class, f.OfSource = v, true
		}
	}
	if res.Status >= 300 && res.Status < 400 {
		f.Detail += ", a redirect, which is not followed"
	}
	if f.Class == source.RateLimited && f.RetryAt.IsZero() {
		f.RetryAt = now.Add(u.rest())
	}
	return f
}

func verdict(verdicts Verdicts, code, subcode int) (source.Class, bool) {
	if code == 0 {
		return "", false
	}
	if class, ok := verdicts[Code{code, subcode}]; ok {
		return class, true
	}
	class, ok := verdicts[Code{Main: code}]
	return class, ok
}

// ErrShape is an answer that is JSON, but not the platform's.
var ErrShape = &source.Failure{Class: source.Temporary, Detail: "the answer is JSON of another shape than the Graph API's"}

// AsRefusal tells a refusal of one target from a failure of the source.
func AsRefusal(err error) (*Refusal, bool) { return errors.AsType[*Refusal](err) }

// timeLayout is RFC 3339 but for the colon that the zone lacks.
const timeLayout = "2006-01-02T15:04:05-0700"

// Time reads a time as the platform writes it, or returns nil when it can be no upload time.
func Time(text *string, now time.Time) *time.Time {
	if text == nil {
		return nil
	}
	for _, layout := range []string{timeLayout, time.RFC3339} {
		if at, err := time.Parse(layout, *text); err == nil {
			return fetch.UploadTime(at, now)
		}
	}
	return nil
}

// maxCursor bounds what is sent back to the platform.
const maxCursor = 2048

// List is a page of a list, newest first as a rule. Data is nil where there is no list at all.
type List struct {
	Data   *fetch.Items `json:"data"`
	Paging *struct {
		Cursors *struct {
			After *string `json:"after"`
		} `json:"cursors"`
		Next *string `json:"next"`
	} `json:"paging"`
}

// After is the cursor of what follows, "" when nothing does. A list that was asked for by itself says so by an address, which
// holds the token and is not used: the platform filters a page after cutting it, so that an empty one is not the end. One inside another
// object has the cursor alone.
func (l *List) After(itself bool) string {
	p := l.Paging
	switch {
	case p == nil, l.Data == nil, p.Cursors == nil, p.Cursors.After == nil, len(*p.Cursors.After) > maxCursor:
		return ""
	case itself && p.Next == nil, !itself && len(*l.Data) == 0:
		return ""
	}
	return *p.Cursors.After
}

// Each asks for the targets of a batch one after the other. If a call fails after others were answered, the remaining targets get the
// result source.Unanswered. The answers so far count even if the caller's deadline has passed. Otherwise a batch that is too slow
// would never make progress.
func Each(ctx context.Context, batch []source.Target, ask func(context.Context, source.Target) (source.Result, error)) ([]source.Result, error) {
	results := make([]source.Result, len(batch))
	var failed error
	answered := false
	for i, t := range batch {
		var r source.Result
		err := failed
		if failed == nil {
			r, err = ask(ctx, t)
		}
		switch {
		case err == nil:
			answered = answered || r.Class != source.Unsupported
		case !answered || errors.Is(err, context.Canceled):
			return nil, err
		default:
			failed = err
			r = source.Unanswered(t, err)
		}
		r.Target = t
		results[i] = r
	}
	return results, nil
}
