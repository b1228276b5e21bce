package server_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// expectation describes which response statuses are correct for a generated request.
type expectation int

const (
	expectAny    expectation = iota // any status below 500 is correct if the contract declares it
	expectValid                     // the request is valid, so the statuses 400, 401, 403, 405, 413, 415 and 429 are wrong
	expect400                       // the request violates a schema, so the status must be 400
	expect4xx                       // the request violates a rule that is not in a schema, so the status must be 4xx except 429
	expectStatus                    // the status must be equal to generatedRequest.status
)

// generatedRequest is a random request with a description of the expected response.
type generatedRequest struct {
	op       *contractOperation
	method   string
	path     map[string]string // values of the path parameters, by parameter name
	target   string            // encoded path and query; "" if they are made from the fields path, query and rawQuery
	query    [][2]string       // names and values of query parameters, before encoding
	rawQuery string            // encoded text that is added to the query
	body     any               // decoded JSON body; nil if there is no body
	raw      []byte            // encoded body; if raw is not nil, raw is sent instead of the field "body"
	headers  map[string]string
	caller   *caller // the caller whose token is sent; if caller is nil, the token is in headers
	address  string  // IP address and port of the client

	want        expectation
	status      int    // the expected response status, or 0 if `want` is not `expectStatus`
	description string // what failure messages say about the request: for example "the cursor was modified"
}

// generator generates random valid and invalid requests for one test server.
type generator struct {
	random
	now            time.Time
	ownItems       inventory // items of the organisation that sends the current request
	otherItems     inventory // items of another organisation
	missingItems   inventory // items that do not exist
	callers        []*caller // callers whose tokens have all scopes
	reader, writer *caller   // callers whose tokens have only the scope "read" (reader) or only the scope "write" (writer)
	shortLinks     []string  // short links; at most one of them redirects to a video, and the others are dead
	wrongLinks     []string  // texts that are not links of a video or an account
	onlyOwnItems   bool      // true if requests contain only ids and links of the organisation that sends them
	requestCount   int       // number of requests generated so far
}

// setExpectedResponse sets the expected response and the description of r, and returns r. The description is a format string for args.
func (r *generatedRequest) setExpectedResponse(want expectation, description string, args ...any) *generatedRequest {
	r.want, r.description = want, fmt.Sprintf(description, args...)
	return r
}

// setExpectedStatus sets the expected status and the description of r, and returns r. The description is a format string for args.
func (r *generatedRequest) setExpectedStatus(status int, description string, args ...any) *generatedRequest {
	r.status = status
	return r.setExpectedResponse(expectStatus, description, args...)
}

// parameters returns the parameters of an operation at one location, in the order of the contract. The location is "path", "query" or
// "header".
func (op *contractOperation) parameters(location string) []*openapi3.Parameter {
	var out []*openapi3.Parameter
	for _, p := range op.Operation.Parameters {
		if p.Value.In == location {
			out = append(out, p.Value)
		}
	}
	return out
}

// bodySchema returns the schema of the JSON request body, or nil if the operation has no request body.
func (op *contractOperation) bodySchema() *openapi3.Schema {
	if op.Operation.RequestBody == nil {
		return nil
	}
	return op.Operation.RequestBody.Value.Content.Get("application/json").Schema.Value
}

// generateValid generates a valid request of an operation. It chooses optional parameters and all values at random.
func (g *generator) generateValid(op *contractOperation) *generatedRequest {
	g.requestCount++
	r := &generatedRequest{op: op, method: op.Method, path: map[string]string{}, headers: map[string]string{}, caller: randomElement(g.random, g.callers),
		// Each request has a different client address, because the server has a rate limit per address for requests without a token.
		address: fmt.Sprintf("198.51.%d.%d:4711", g.requestCount/250%250, g.requestCount%250)}
	if g.chance(50) {
		r.caller = g.callers[0]
	}
	g.ownItems = r.caller.items
	if r.method == http.MethodGet && g.chance(5) {
		r.method = http.MethodHead
	}
	for _, p := range op.parameters(openapi3.ParameterInPath) {
		r.path[p.Name] = g.validText(op, p.Name, p.Schema.Value)
		for r.path[p.Name] == "bulk" { // /videos/bulk and /accounts/bulk are paths of other operations
			r.path[p.Name] = g.validText(op, p.Name, p.Schema.Value)
		}
	}
	optionalPercent := randomElement(g.random, []int{0, 15, 30, 70})
	for _, p := range op.parameters(openapi3.ParameterInQuery) {
		if p.Required || p.Name != "cursor" && g.chance(optionalPercent) {
			r.setQueryValue(p.Name, g.validParameter(op, p))
		}
	}
	for _, p := range op.parameters(openapi3.ParameterInHeader) {
		if p.Required || g.chance(20) {
			r.headers[p.Name] = toHeaderValue(p.Schema.Value, g.validText(op, p.Name, p.Schema.Value))
		}
	}
	if op.Method == http.MethodGet && g.chance(10) {
		r.headers["If-None-Match"] = randomElement(g.random, []string{"*", `"x"`, `W/"x", "y"`, "nonsense", g.ownItems[entityTag][0], `""`})
	}
	if s := op.bodySchema(); s != nil && (op.Operation.RequestBody.Value.Required || g.chance(50)) {
		r.body = g.validObject(op, s)
		r.headers["Content-Type"] = randomElement(g.random, []string{"application/json", "application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=\"UTF-8\""})
	} else if g.chance(10) {
		r.headers["Content-Type"] = "application/json"
	}
	if g.chance(10) {
		r.headers["X-Request-Id"] = randomElement(g.random, []string{"abc", strings.Repeat("a", 128), strings.Repeat("a", 129), "a b", "é", "\"", ""})
	}
	g.makeRequestConsistent(r)
	return r.setExpectedResponse(expectValid, "valid")
}

// toHeaderValue removes the characters that a header value cannot contain. If the schema allows
// quotes, it puts the text in quotes.
func toHeaderValue(s *openapi3.Schema, text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text))
	if quoted := `"` + strings.Trim(text, `"`) + `"`; matchesSchema(s, quoted) {
		return quoted
	}
	return text
}

// validParameter returns a random valid value of a query parameter.
func (g *generator) validParameter(op *contractOperation, p *openapi3.Parameter) string {
	s := p.Schema.Value
	switch {
	case s.Type.Is("integer"):
		return g.validInteger(s)
	case s.Type.Is("boolean"):
		return strconv.FormatBool(g.chance(50))
	case s.Type.Is("array"):
		var items []string
		for len(items) < max(1, g.validLength(s)) {
			if item := g.validText(op, p.Name, s.Items.Value); !strings.Contains(item, ",") {
				items = append(items, item)
			}
		}
		return strings.Join(items, ",")
	}
	return g.validText(op, p.Name, s)
}

// queryValue returns the value of a query parameter of r. The second result is false if r does not have the parameter.
func (r *generatedRequest) queryValue(name string) (string, bool) {
	for _, pair := range r.query {
		if pair[0] == name {
			return pair[1], true
		}
	}
	return "", false
}

// dropParameters removes the query parameters with the given names.
func (r *generatedRequest) dropParameters(names ...string) {
	r.query = slices.DeleteFunc(r.query, func(pair [2]string) bool { return slices.Contains(names, pair[0]) })
}

// setQueryValue sets a query parameter, and replaces an existing value.
func (r *generatedRequest) setQueryValue(name, value string) {
	r.dropParameters(name)
	r.query = append(r.query, [2]string{name, value})
}

// makeRequestConsistent changes query parameters and members of the body that are valid alone but
// invalid together.
func (g *generator) makeRequestConsistent(r *generatedRequest) {
	paginated, _ := r.queryValue("paginated")
	if r.op.Operation.Parameters.GetByInAndName("query", "paginated") != nil && paginated != "true" {
		r.dropParameters("page")
	}
	for _, ends := range g.dateRanges(r.op) {
		from, hasFrom := r.queryValue(ends[0])
		to, hasTo := r.queryValue(ends[1])
		switch {
		case hasFrom && hasTo:
			if g.parseTime(from).After(g.parseTime(to)) {
				r.setQueryValue(ends[0], to)
				r.setQueryValue(ends[1], from)
			}
		case hasTo && r.hasPeriod():
			r.setQueryValue(ends[1], g.validEndDate())
		}
	}
	if members, ok := r.body.(map[string]any); ok {
		from, hasFrom := members["start_date"].(string)
		to, hasTo := members["end_date"].(string)
		switch {
		case hasFrom && hasTo && from > to:
			members["start_date"], members["end_date"] = to, from
		case hasTo && !hasFrom:
			members["end_date"] = g.validEndDate()
		}
	}
}

// validEndDate returns a random valid last day for a request without a first day. It is at most 29 days ago, because the server then uses the day 30
// days ago as the first day.
func (g *generator) validEndDate() string {
	return g.now.AddDate(0, 0, -g.IntN(30)).Format(time.DateOnly)
}

// hasPeriod returns true if the operation returns the numbers of a period of days. If the request does not set the period, the server uses
// a default.
func (r *generatedRequest) hasPeriod() bool {
	return strings.HasSuffix(r.op.Path, "/history") || strings.HasSuffix(r.op.Path, "/statistics")
}

// dateRanges returns a pair of parameter names for each date range of an operation: the parameter with the start, and the parameter with
// the end.
func (g *generator) dateRanges(op *contractOperation) [][2]string {
	var out [][2]string
	for _, p := range op.parameters(openapi3.ParameterInQuery) {
		if strings.Contains(p.Name, "start") {
			out = append(out, [2]string{p.Name, strings.Replace(p.Name, "start", "end", 1)})
		}
	}
	return out
}

// parseTime parses a date or an RFC 3339 time. It panics if text is neither.
func (g *generator) parseTime(text string) time.Time {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	panic("neither a date nor a time: " + text)
}

// encodeTarget returns the encoded path and query of r. The order of the parameters and the form of percent-encoding are random.
func (g *generator) encodeTarget(r *generatedRequest) string {
	if r.target != "" {
		return r.target
	}
	path := r.op.Path
	for _, name := range slices.Sorted(maps.Keys(r.path)) {
		value := url.PathEscape(r.path[name])
		switch g.IntN(10) {
		case 0: // percent-encode every byte of the value
			value = ""
			for _, b := range []byte(r.path[name]) {
				value += fmt.Sprintf("%%%02x", b)
			}
		case 1:
			value = changeEscapesToLowerCase(value)
		}
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	var pairs []string
	for _, pair := range r.query {
		name := pair[0]
		if g.chance(3) {
			name = fmt.Sprintf("%%%02X", name[0]) + name[1:]
		}
		pairs = append(pairs, name+"="+url.QueryEscape(pair[1]))
	}
	if r.rawQuery != "" {
		pairs = append(pairs, r.rawQuery)
	}
	g.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	if len(pairs) > 0 {
		path += "?" + strings.Join(pairs, "&")
	}
	return path
}

// toHTTPRequest converts r to an HTTP request. It returns nil if the path and query are not valid in HTTP.
func (g *generator) toHTTPRequest(r *generatedRequest) *http.Request {
	r.target = g.encodeTarget(r)
	u, err := url.ParseRequestURI(r.target)
	if err != nil {
		return nil
	}
	if r.raw == nil && r.body != nil {
		r.raw = renderJSON(r.body)
	}
	req := &http.Request{Method: r.method, URL: u, RequestURI: r.target, Header: http.Header{}, Host: "reeltally.example.test", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		RemoteAddr: r.address, Body: http.NoBody, ContentLength: int64(len(r.raw))}
	if r.raw != nil {
		req.Body = readCloser{bytes.NewReader(r.raw)}
	}
	if r.caller != nil {
		req.Header.Set("Authorization", "Bearer "+r.caller.token)
	}
	for name, value := range r.headers {
		if req.Header.Set(name, value); value == "" {
			req.Header.Del(name)
		}
	}
	return req
}

// readCloser is a bytes.Reader with a method Close that does nothing, for use as a request body.
type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// String describes the request for a failure message, so that a developer can repeat the request. It shows at most 2000 bytes of the body.
func (r *generatedRequest) String() string {
	body := r.raw
	if len(body) > 2000 {
		body = append(slices.Clone(body[:2000]), "…"...)
	}
	return fmt.Sprintf("%s: %s\n\t%s %s\n\t%q\n\t%q", r.op.id, r.description, r.method, r.target, r.headers, body)
}
