package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/server"
)

// contract is the parsed openapi.yaml. The tests check every request and response against the contract, without using code of the server.
type contract struct {
	doc        *openapi3.T
	operations []*contractOperation

	mu   sync.Mutex
	seen map[string]map[int]bool // maps an operation id to the set of response statuses that the tests received
}

// contractOperation is an operation of openapi.yaml. Its path template is split at slashes into segments.
type contractOperation struct {
	*routers.Route
	id       string
	segments []string
}

// sharedContract returns the same contract to all tests. The contract records the response statuses that the tests received.
var sharedContract = sync.OnceValue(func() *contract {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(reeltally.OpenAPI))
	if err != nil {
		panic(err)
	}
	for _, s := range doc.Components.Schemas {
		forbidOtherMembers(s.Value)
	}
	c := &contract{doc: doc, seen: map[string]map[int]bool{}}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			c.operations = append(c.operations, &contractOperation{id: op.OperationID, segments: strings.Split(path, "/"),
				Route: &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: op}})
			c.seen[op.OperationID] = map[int]bool{}
		}
	}
	slices.SortFunc(c.operations, func(a, b *contractOperation) int { return strings.Compare(a.id, b.id) })
	return c
})

// forbidOtherMembers makes a schema refuse undeclared members of JSON objects. The published contract allows undeclared members, so that a
// later version can add members.
func forbidOtherMembers(s *openapi3.Schema) {
	if s.Type.Is("object") && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		no := false
		s.AdditionalProperties.Has = &no
	}
	for _, p := range s.Properties {
		forbidOtherMembers(p.Value)
	}
	if s.Items != nil {
		forbidOtherMembers(s.Items.Value)
	}
}

// match returns the operation and the path parameters of a request. A path of the contract without parameters, such as /videos/bulk, matches
// only its own operations. The operation is nil if no path matches.
func (c *contract) match(method string, u *url.URL) (*contractOperation, map[string]string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	path := u.EscapedPath()
	if strings.HasPrefix(path, "/refresh/") {
		path = strings.TrimSuffix(path, "/") // the contract allows a slash at the end of the paths of the refresh operations
	}
	sent, isLiteral := strings.Split(path, "/"), c.doc.Paths.Value(path) != nil
	for _, op := range c.operations {
		if op.Method != method || len(op.segments) != len(sent) || isLiteral && op.Path != path {
			continue
		}
		params, ok := map[string]string{}, true
		for i, segment := range op.segments {
			if name, isParam := strings.CutPrefix(segment, "{"); isParam {
				value, err := url.PathUnescape(sent[i])
				ok = ok && err == nil && value != ""
				params[strings.TrimSuffix(name, "}")] = value
			} else {
				ok = ok && segment == sent[i]
			}
		}
		if ok {
			return op, params
		}
	}
	return nil, nil
}

// contractTransport is a RoundTripper that returns an error if a response violates the contract, or if the server accepts an invalid
// request.
type contractTransport struct {
	contract *contract
	next     http.RoundTripper
}

func (t contractTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		var err error
		if sent, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	op, params := t.contract.match(req.Method, req.URL)
	var requestFault error
	if op != nil {
		requestFault = validateRequest(req, op, params, sent)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if faults := t.checkResponse(req, op, params, requestFault, resp, body); len(faults) > 0 {
		return nil, fmt.Errorf("the response of %s %s with status %d violates the contract: %w\n%s", req.Method, req.URL, resp.StatusCode, errors.Join(faults...), body)
	}
	return resp, nil
}

// validateRequest returns an error if a request violates the contract.
func validateRequest(req *http.Request, op *contractOperation, params map[string]string, body []byte) error {
	clone := req.Clone(req.Context())
	clone.Body = io.NopCloser(bytes.NewReader(body))
	clone.GetBody = nil
	return openapi3filter.ValidateRequest(req.Context(), &openapi3filter.RequestValidationInput{
		Request: clone, PathParams: params, Route: op.Route, Options: contractOptions(acceptAnyURI)})
}

// checkAbsoluteURI returns an error if s is not an absolute URI. It validates texts with the format "uri" in responses.
func checkAbsoluteURI(s string) error {
	if u, err := url.Parse(s); err != nil || u.Host == "" {
		return errors.New("the text is not an absolute URI")
	}
	return nil
}

// acceptAnyURI accepts every text for the format "uri" in requests. Links in requests need not be URIs, because the server also accepts links
// without https.
func acceptAnyURI(string) error { return nil }

// contractOptions returns options for validating requests and responses. validateURI validates texts with the format "uri". It returns an
// error if a text is invalid.
func contractOptions(validateURI func(string) error) *openapi3filter.Options {
	return &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true, IncludeResponseStatus: true,
		SchemaValidationOptions: []openapi3.SchemaValidationOption{
			openapi3.WithStringFormatValidator("uuid", openapi3.NewRegexpFormatValidator(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)),
			openapi3.WithStringFormatValidator("uri", openapi3.NewCallbackValidator(validateURI)),
			openapi3.WithStringFormatValidator("uri-reference", openapi3.NewCallbackValidator(func(s string) error {
				_, err := url.Parse(s)
				return err
			})),
		},
	}
}

// checkResponse returns all violations of the contract in a response. requestFault says why the request violates the contract. It is nil if
// the request is valid.
func (t contractTransport) checkResponse(req *http.Request, op *contractOperation, params map[string]string, requestFault error, resp *http.Response, body []byte) []error {
	var faults []error
	addFault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	status := resp.StatusCode
	for _, h := range []string{"X-Request-Id", "Api-Version", "X-Content-Type-Options"} {
		if resp.Header.Get(h) == "" {
			addFault("the response has no header %s", h)
		}
	}
	if status >= 400 && req.Method != http.MethodHead && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
		checkProblem(resp, body, addFault)
	} else if status >= 400 && op == nil && req.Method != http.MethodHead && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") { // pages of the dashboard show errors as HTML
		addFault("the Content-Type of the error response is neither application/problem+json nor text/html")
	}
	if leakedText := findInternalText(randomText.ReplaceAllString(string(body), "")); leakedText != "" && (op != nil || status >= 400) {
		addFault("the response contains the internal text %q", leakedText)
	}
	if op == nil {
		return faults
	}
	if requestFault != nil && status < 400 {
		addFault("the server accepted a request that violates the contract: %w", requestFault)
	}
	checkHeaders(resp, body, addFault)
	if resp.Header.Get("Access-Control-Allow-Origin") != "*" {
		addFault("the header Access-Control-Allow-Origin must be *")
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: op.Route},
		Status:                 status, Header: resp.Header, Options: contractOptions(checkAbsoluteURI),
	}
	input.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
		addFault("%w", err)
	}
	t.contract.mu.Lock()
	defer t.contract.mu.Unlock()
	t.contract.seen[op.id][status] = true
	return faults
}

// checkHeaders checks the RateLimit headers and the headers Retry-After and WWW-Authenticate. It calls addFault for each wrong, missing or
// forbidden header.
func checkHeaders(resp *http.Response, body []byte, addFault func(string, ...any)) {
	status := resp.StatusCode
	if status < 500 && status != http.StatusUnauthorized {
		for _, h := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit", "RateLimit-Policy"} {
			if resp.Header.Get(h) == "" {
				addFault("the response has no header %s", h)
			}
		}
	}
	retry, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	needsRetryAfter := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable ||
		status == http.StatusConflict && bytes.Contains(body, []byte(`"code":"idempotency_key_in_use"`))
	if needsRetryAfter && (err != nil || retry < 1) {
		addFault("Retry-After must be a positive number of seconds, not %q", resp.Header.Get("Retry-After"))
	} else if !needsRetryAfter && resp.Header.Get("Retry-After") != "" {
		addFault("the response with status %d must not have Retry-After", status)
	}
	if challenge := resp.Header.Get("WWW-Authenticate"); (status == http.StatusUnauthorized) != strings.HasPrefix(challenge, "Bearer") {
		addFault("WWW-Authenticate is %q, but it must begin with Bearer in a 401 response and be missing in all others", challenge)
	}
}

// documentedFaultCodes returns all codes that docs/errors.md lists: those of errors, and those that only faults have.
var documentedFaultCodes = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, c := range server.Codes() {
		all[string(c.Code)] = true
	}
	for _, c := range server.FaultCodes() {
		all[c.Code] = true
	}
	return all
})

// checkProblem calls addFault if body is not a problem of RFC 9457, or if the problem contradicts the status or the headers of the
// response.
func checkProblem(resp *http.Response, body []byte, addFault func(string, ...any)) {
	var p struct {
		Type, Title, Detail, Instance, Code, Error string
		Status                                     int
		RequestID                                  string `json:"request_id"`
		Errors                                     []struct{ Code string }
	}
	if err := json.Unmarshal(body, &p); err != nil {
		addFault("the body is not a problem: %w", err)
		return
	}
	for _, f := range p.Errors {
		if !documentedFaultCodes()[f.Code] {
			addFault("docs/errors.md does not have the fault code %q", f.Code)
		}
	}
	replayed := resp.Header.Get("Idempotent-Replayed") != "" // true if the response was stored for an earlier request; it then contains the id of that request
	if p.Status != resp.StatusCode || !replayed && p.RequestID != resp.Header.Get("X-Request-Id") || p.Type != "/errors#"+p.Code ||
		p.Title == "" || p.Detail == "" || p.Error != p.Detail || p.Instance == "" {
		addFault("the problem contradicts the status or the headers of its response: %+v", p)
	}
}

// internalTexts has texts that reveal internals of the server. The value is a pattern or nil. If it is a
// pattern, a response reveals internals only if it also matches the pattern.
var internalTexts = map[string]*regexp.Regexp{
	"SELECT": regexp.MustCompile(`\bSELECT\b`), "INSERT INTO": regexp.MustCompile(`\bINSERT INTO\b`), "UPDATE ": regexp.MustCompile(`\bUPDATE \w+ SET\b`),
	"DELETE FROM": regexp.MustCompile(`\bDELETE FROM\b`), "WHERE": regexp.MustCompile(`\bWHERE\b`), "JOIN": regexp.MustCompile(`\bJOIN\b`),
	"SQLSTATE": nil, "sqlite": nil, "SQLITE_": nil, "postgres": nil, "pgconn": nil, "driver:": nil, "sql:": nil, "database/sql": nil,
	"pgx": regexp.MustCompile(`\bpgx(pool)?\b`), "gorm": regexp.MustCompile(`\bgorm\b`), "goose": regexp.MustCompile(`\bgoose\b`), // \b is necessary, because a cursor can contain these letters by chance
	"goroutine ": regexp.MustCompile(`goroutine \d`), "panic:": nil, "runtime error": nil, "nil pointer": nil, ".go": regexp.MustCompile(`\.go\b`),
	"interface conversion": nil, "interface {": nil, "map[string": nil, "store.": regexp.MustCompile(`\*?store\.[A-Z]`), "api.": regexp.MustCompile(`\*?api\.[A-Z]`),
	"server.": regexp.MustCompile(`\*?server\.[A-Z]`), "json: ": nil, "strconv.": nil, "net/http": nil, "context canceled": nil, "deadline exceeded": nil, "dial tcp": nil,
	"connection refused": nil, "/home/": nil, "/root/": nil, "/usr/": nil, "/tmp/": nil, "/var/": nil, "echo.": nil, "kin-openapi": nil, "openapi3": nil, "regexp": nil,
	"github.com/": nil, "unmarshal": nil, "Go struct": nil, "mcp.": regexp.MustCompile(`\*?mcp\.[A-Z]`),
}

// findInternalText returns one of the texts in internalTexts that the body contains, or "" if the body contains none of them.
func findInternalText(body string) string {
	for text, pattern := range internalTexts {
		// Searching the text first is much faster than matching the pattern.
		if strings.Contains(body, text) && (pattern == nil || pattern.MatchString(body)) {
			return text
		}
	}
	return ""
}

// randomText matches the members next_cursor and secret of a JSON text. Their values are random, so they can contain one of internalTexts
// by chance.
var randomText = regexp.MustCompile(`"(next_cursor|secret)":"[^"]*"`)

// untestedResponses returns the operation id and status of each response that the contract declares and no test has received.
func (c *contract) untestedResponses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var missing []string
	for _, op := range c.operations {
		for status := range op.Operation.Responses.Map() {
			if n, err := strconv.Atoi(status); err != nil || !c.seen[op.id][n] {
				missing = append(missing, op.id+" "+status)
			}
		}
	}
	slices.Sort(missing)
	return missing
}
