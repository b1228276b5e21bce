package graph

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// DefaultBaseURL is the base URL of the public API in the version that the sources use.
const DefaultBaseURL = "https://graph.facebook.com/v25.0/"

// Budget is the name of the budget that counts the requests. Its limit is unknown, because Meta
// only reports the used percentage of its limits.
const Budget = "calls"

var version = regexp.MustCompile(`/v[1-9][0-9]*\.[0-9]+/?$`)

// Options are the settings of a Client.
type Options struct {
	Source  string // the name of the source, used in error messages
	BaseURL string // the base URL, with the API's version at its end; "" means DefaultBaseURL
	Token   string // the access token that is sent with each request
	// AppSecret is the secret of the app that issued the token. If AppSecret is set, each request
	// contains an appsecret_proof, which Meta can require.
	AppSecret string
	Client    *fetch.Client
	Now       func() time.Time
}

// Client calls the Graph API with one access token. It can also request the access tokens of Facebook
// pages. All methods may be called concurrently.
type Client struct {
	*fetch.Endpoint
	token, secret string
	now           func() time.Time
	usage         usage
	pages         pageTokens
	sizes         *fetch.Cache[int] // reduced page sizes by the name of the list: see GetPage
}

// New returns a client. It returns an error if the token is missing, or if the base URL is not valid or does not end in a version.
func New(o Options) (*Client, error) {
	if o.Token == "" {
		return nil, fmt.Errorf("%s: the access token is missing", o.Source)
	}
	if o.Client == nil || o.Now == nil {
		return nil, fmt.Errorf("%s: the options \"Client\" and \"Now\" are required", o.Source)
	}
	api, err := o.Client.Endpoint(o.BaseURL, DefaultBaseURL)
	if err != nil || !version.MatchString(api.Address()) {
		return nil, fmt.Errorf("%s: the base address must be an http or https address that ends in a version, such as %s, not %q",
			o.Source, DefaultBaseURL, fetch.Redact(o.BaseURL, o.Token, o.AppSecret))
	}
	return &Client{Endpoint: api, token: o.Token, secret: o.AppSecret, now: o.Now, sizes: fetch.NewCache[int](maxCachedSizes, pageSizeTTL, o.Now)}, nil
}

// Budgets returns one budget, which counts all requests. The limit of the budget is not known.
func (c *Client) Budgets() []source.Budget {
	return []source.Budget{{Name: Budget, Window: func(now time.Time) (string, time.Time) {
		hour := now.UTC().Truncate(time.Hour) // counting per clock hour is an approximation: Meta counts the last 60 minutes
		return hour.Format("2006-01-02T15Z"), hour.Add(time.Hour)
	}}}
}

// Plan returns a plan that reserves the given number of calls, at least one. It returns nil while
// calls must be delayed because of Meta's limit.
func (c *Client) Plan(calls int) [][]source.Call {
	if c.usage.mustDelayCalls(c.now()) {
		return nil
	}
	return [][]source.Call{{{Budget: Budget, Units: int64(max(calls, 1))}}}
}

// Answer is a successful answer of the Graph API. Its body is JSON that fetch.CheckJSON has accepted.
type Answer struct {
	Body    []byte
	Sandbox bool
}

// TargetError is an error of Meta that concerns only the requested object, such as a missing video. The source itself still works.
type TargetError struct {
	Class   source.Class // class of the result for the requested target
	Detail  string       // text for the log; never contains a credential
	Sandbox bool
}

func (e *TargetError) Error() string { return e.Detail }

// Result returns a result with the class and text of the error. The result has no facts.
func (e *TargetError) Result() source.Result {
	return source.Result{Class: e.Class, Detail: e.Detail, Sandbox: e.Sandbox}
}

// Code identifies an error of Meta by its code (Main) and its subcode (Sub). In a key of ErrorClasses, a Sub of 0 stands for all subcodes.
type Code struct{ Main, Sub int }

// ErrorClasses maps error codes to classes. An error with the class AuthFailed concerns the whole
// source. An error with another class concerns only the requested object.
type ErrorClasses map[Code]source.Class

// WithPermissions returns a copy of the classes that also has the given class for each error about a missing permission.
func (c ErrorClasses) WithPermissions(class source.Class) ErrorClasses {
	all := maps.Clone(c)
	all[Code{Main: codePermission}] = class
	for code := firstPermission; code <= lastPermission; code++ {
		all[Code{Main: code}] = class
	}
	return all
}

// Get requests a path below the API version. The parameters alternate between names and values. An
// error that concerns only the requested object is returned as a *TargetError.
func (c *Client) Get(ctx context.Context, budget *source.CallBudget, path string, errorClasses ErrorClasses, parameters ...string) (Answer, error) {
	return c.getWithToken(ctx, budget, c.token, path, errorClasses, parameters...)
}

// getWithToken does the same as Get, but with the given access token.
func (c *Client) getWithToken(ctx context.Context, budget *source.CallBudget, token, path string, classes ErrorClasses, parameters ...string) (Answer, error) {
	if f := c.usage.failureIfUsedUp(c.now()); f != nil {
		return Answer{}, f
	}
	var query strings.Builder
	for i := 0; i+1 < len(parameters); i += 2 {
		query.WriteString(parameters[i] + "=" + url.QueryEscape(parameters[i+1]) + "&")
	}
	query.WriteString("access_token=" + url.QueryEscape(token))
	secrets := []string{token, c.token, c.secret}
	if c.secret != "" {
		proof := appSecretProof(token, c.secret)
		query.WriteString("&appsecret_proof=" + proof)
		secrets = append(secrets, proof)
	}
	res, err := c.Do(ctx, fetch.Request{URL: c.Address() + path + "?" + query.String(), Secrets: secrets, Budget: budget})
	if err != nil {
		return Answer{}, err
	}
	now := c.now()
	u := parseUsage(res.Header, now)
	c.usage.recordReport(u, now)
	jsonErr := fetch.CheckJSON(res.Body)
	if fetch.ClassOf(res.Status, jsonErr == nil) != source.OK || hasError(res.Body) {
		err := c.parseError(res, jsonErr, u, classes, now, secrets)
		if f, ok := errors.AsType[*source.Failure](err); ok && token != c.token {
			f.OfSource = false // Meta may refuse the token of a page although the client's token is valid
		}
		return Answer{}, err
	}
	return Answer{Body: res.Body, Sandbox: res.Sandbox}, nil
}

// hasError returns true if an answer is an error of Meta. Meta can also send an error with the status 200.
func hasError(body []byte) bool {
	var e apiError
	return json.Unmarshal(body, &e) == nil && e.Error.Code != 0
}

// appSecretProof returns the appsecret_proof of a token: the hexadecimal HMAC-SHA256 of the token with the app secret as key.
func appSecretProof(token, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(token))
	return hex.EncodeToString(mac.Sum(nil))
}

// apiError is the JSON body of an error of Meta.
type apiError struct {
	Error struct {
		Message   string `json:"message"`
		Code      int    `json:"code"`
		Subcode   int    `json:"error_subcode"`
		Transient bool   `json:"is_transient"`
	} `json:"error"`
}

// These are error codes of the Graph API. A pair of constants such as firstPermission and lastPermission stands for a range of codes.
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

// errorClass returns the class of an error by its code, its message and its member is_transient. If ok is false, the HTTP status gives
// the class.
func (e apiError) errorClass() (class source.Class, ok bool) {
	switch code := e.Error.Code; {
	case e.refusesCredential():
		return source.AuthFailed, true
	// Check for rate limits before temporary errors, because Meta also marks rate limits as temporary.
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

// concernsSource returns true if the token, the session or the app caused the error, so that
// requests for other objects fail as well.
func (e apiError) concernsSource() bool {
	switch e.Error.Code {
	case codeToken, codeSession, codeNoToken, codeBlocked:
		return !e.requiresPageToken()
	}
	// Codes 3, 10 and 200 to 299 mean that the token has no permission for this object. It can have the
	// permission for other objects.
	return e.refusesCredential() && !e.requiresPageToken()
}

// noAccessTexts are parts of messages of errors with code 100 and without a subcode. If a message has one of them, the error means the same as code 10:
// the token is not allowed to read the object.
var noAccessTexts = []string{"public content access", "public metadata access", "missing permission", "reviewable feature"}

// lacksAccess returns true if an error with code 100 and without a subcode says that the token is not allowed to read the requested object. See
// noAccessTexts.
func (e apiError) lacksAccess() bool {
	message := strings.ToLower(e.Error.Message)
	return e.Error.Code == codeParameter && e.Error.Subcode == 0 && slices.ContainsFunc(noAccessTexts, func(part string) bool { return strings.Contains(message, part) })
}

// ErrPageToken is the cause of a failure if Meta requires the access token of the page that owns the object.
var ErrPageToken = errors.New("the request requires the access token of a Facebook page")

// requiresPageToken returns true if the error means that Meta requires the access token of the page that owns the object.
func (e apiError) requiresPageToken() bool {
	return e.Error.Code == codePageToken || e.Error.Code == codeToken && strings.Contains(strings.ToLower(e.Error.Message), "page access token")
}

// refusesCredential returns true if Meta refused the request because it requires the token of a page or a valid appsecret_proof.
func (e apiError) refusesCredential() bool {
	return e.requiresPageToken() || e.Error.Code == codeParameter && strings.Contains(e.Error.Message, "appsecret_proof")
}

// parseError returns a *TargetError or a *source.Failure for an answer that is not a success. It
// removes the secrets from the error text.
func (c *Client) parseError(res *fetch.Response, jsonErr error, u usageReport, classes ErrorClasses, now time.Time, secrets []string) error {
	f := fetch.NewFailure(res, jsonErr, now)
	if f.Class == source.OK { // an error with the status 200 has the same meaning as one with the status 400
		f.Class = source.BadRequest
	}
	if jsonErr == nil {
		var e apiError
		_ = json.Unmarshal(res.Body, &e) // if the body has an unknown format, the decoded error stays empty, and the HTTP status gives the class
		if e.Error.Code != 0 {
			f.Detail = fetch.Redact(strings.TrimRight(fmt.Sprintf("%s, code %d/%d: %s", f.Detail, e.Error.Code, e.Error.Subcode, e.Error.Message), ": "), secrets...)
		}
		f.Cause = e.cause()
		if class, known := e.errorClass(); known {
			f.Class, f.OfSource = class, f.OfSource || e.concernsSource()
		}
		switch class, ok := e.classIn(classes); {
		case !ok, f.Class == source.Temporary, res.Status >= http.StatusInternalServerError:
		case class == source.AuthFailed:
			// The token cannot read an object of the operator, so the token is wrong.
			f.Class, f.OfSource = class, true
		default:
			return &TargetError{Class: class, Detail: f.Detail, Sandbox: res.Sandbox}
		}
	}
	if f.Class == source.RateLimited && f.RetryAt.IsZero() {
		f.RetryAt = now.Add(u.pauseLength())
	}
	return f
}

// cause returns the cause of a failure with this error, or nil if callers need not know it.
func (e apiError) cause() error {
	switch {
	case e.requiresPageToken():
		return ErrPageToken
	case e.asksForLessData():
		return ErrTooMuchData
	}
	return nil
}

// classIn returns the class of the error in classes, or false if it has none. An entry with the exact subcode has precedence. An error
// about the credential has no class, because it does not concern the requested object.
func (e apiError) classIn(classes ErrorClasses) (source.Class, bool) {
	code := e.Error.Code
	if e.lacksAccess() {
		code = codePermission
	}
	if code == 0 || e.refusesCredential() {
		return "", false
	}
	if class, ok := classes[Code{code, e.Error.Subcode}]; ok {
		return class, true
	}
	class, ok := classes[Code{Main: code}]
	return class, ok
}

// ErrFormat is the failure for JSON that does not have the format of the Graph API.
var ErrFormat = &source.Failure{Class: source.Temporary, Detail: "the JSON of the answer does not have the Graph API's format"}

// AsTargetError returns the *TargetError that err contains, and true. If err contains none, it returns nil and false.
func AsTargetError(err error) (*TargetError, bool) { return errors.AsType[*TargetError](err) }

// timeLayout is the layout of RFC 3339, but without a colon in the time zone.
const timeLayout = "2006-01-02T15:04:05-0700"

// ParseTime parses an upload time in an answer of the Graph API. It returns nil if the time is
// missing, malformed or impossible.
func ParseTime(text *string, now time.Time) *time.Time {
	if text == nil {
		return nil
	}
	for _, layout := range []string{timeLayout, time.RFC3339} {
		if at, err := time.Parse(layout, *text); err == nil {
			return fetch.CheckUploadTime(at, now)
		}
	}
	return nil
}

// maxCursor is the maximum length in bytes of a cursor that is sent back to Meta.
const maxCursor = 2048

// List is one page of a list in an answer of the Graph API, usually newest first. Data is nil if the answer has no list.
type List struct {
	Data   *fetch.Items `json:"data"`
	Paging *struct {
		Cursors *struct {
			After *string `json:"after"`
		} `json:"cursors"`
		Next *string `json:"next"`
	} `json:"paging"`
}

// NextCursor returns the cursor of the next page, or "" on the last page. Set topLevel to false if
// the list is part of another object.
func (l *List) NextCursor(topLevel bool) string {
	p := l.Paging
	switch {
	case p == nil, l.Data == nil, p.Cursors == nil, p.Cursors.After == nil, len(*p.Cursors.After) > maxCursor:
		return ""
	// The last page of a requested list has no "next" URL. Earlier pages can be empty, because Meta
	// filters the entries. A list inside another object ends with an empty page.
	case topLevel && p.Next == nil, !topLevel && len(*l.Data) == 0:
		return ""
	}
	// The cursor is returned instead of the URL, because the URL contains the token.
	return *p.Cursors.After
}
