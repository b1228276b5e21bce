package server_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// faults contains functions that add one fault to a request and set the expected response. A
// function returns nil if the operation's requests cannot have the fault.
var faults = []func(g *generator, r *generatedRequest) *generatedRequest{
	// The test chooses a function at random. It chooses repeated functions more often.
	setWrongParameter, setWrongParameter, setWrongParameter, setWrongPath, setWrongPath, setWrongBodyValue, setWrongBodyValue, setWrongBodyValue, setWrongBodyValue,
	breakQuery, addUnknownParameter, repeatParameter, breakBody, breakBody, repeatMember, setWrongMediaType, makeBodyTooLarge,
	setWrongToken, useTokenWithoutScope, setWrongMethod, setWrongLink, setWrongRange, requestPageOfUnpaginatedList, sendCursorOfAnotherList, setTooLongHeader, corruptBytes, corruptBytes,
}

// generateInvalid generates a request with one random fault.
func (g *generator) generateInvalid(op *contractOperation) *generatedRequest {
	for {
		if r := randomElement(g.random, faults)(g, g.generateValid(op)); r != nil {
			return r
		}
	}
}

// setWrongParameter sets a random query parameter to an invalid value.
func setWrongParameter(g *generator, r *generatedRequest) *generatedRequest {
	params := r.op.parameters(openapi3.ParameterInQuery)
	if len(params) == 0 {
		return nil
	}
	p := randomElement(g.random, params)
	wrong := g.wrongParameters(r.op, p)
	value := randomElement(g.random, wrong)
	if r.setQueryValue(p.Name, value); p.Name == "page" || p.Name == "cursor" {
		r.dropParameters("paginated")
	}
	return r.setExpectedResponse(expect400, "%s is %.100q", p.Name, value)
}

// wrongParameters returns values that are invalid for a query parameter.
func (g *generator) wrongParameters(op *contractOperation, p *openapi3.Parameter) []string {
	s := p.Schema.Value
	nonsense := []string{"a\x00b", "a\xffb", "\xc3\x28", "\xed\xa0\x80", "\x00"}
	switch {
	case s.Type.Is("integer"):
		return append(append(nonsense, notWhole...), fmt.Sprint(int64(*s.Min)-1), fmt.Sprint(int64(*s.Max)+1), "")
	case s.Type.Is("boolean"):
		return append(append(nonsense, notBools...), "")
	case s.Type.Is("array"):
		item := g.validText(op, p.Name, s.Items.Value)
		for strings.Contains(item, ",") {
			item = g.validText(op, p.Name, s.Items.Value)
		}
		wrong := append(nonsense, "", ",", item+",", ","+item, strings.Repeat(item+",", int(*s.MaxItems))+item)
		if most := s.Items.Value.MaxLength; most != nil {
			return append(wrong, strings.Repeat("a", int(*most)+1))
		}
		return append(wrong, item+"x", strings.ToUpper(item)) // the array accepts only the values of an enum, so a changed value is invalid
	}
	return append(nonsense, g.wrongTexts(s)...)
}

// setWrongPath sets a random path parameter to an invalid value.
func setWrongPath(g *generator, r *generatedRequest) *generatedRequest {
	params := r.op.parameters(openapi3.ParameterInPath)
	if len(params) == 0 {
		return nil
	}
	p := randomElement(g.random, params)
	if g.chance(10) { // use a link that is not percent-encoded, so that its slashes split the path
		r.target = strings.Replace(r.op.Path, "{"+p.Name+"}", randomElement(g.random, g.ownItems[videoLink]), 1)
		return r.setExpectedResponse(expect4xx, "the link in the path is not encoded")
	}
	wrong := append(g.wrongTexts(p.Schema.Value), "a\x00b", "a\xffb", "\x00")
	r.path[p.Name] = randomElement(g.random, slices.DeleteFunc(wrong, func(s string) bool { return s == "" })) // leave out empty values, because a path with an empty value would be the path of another operation
	return r.setExpectedResponse(expect400, "%s is %.100q", p.Name, r.path[p.Name])
}

// node is a value in a JSON body, with its JSON pointer and its schema. The call replace(v) replaces this value in the body by v.
type node struct {
	pointer string
	schema  *openapi3.Schema
	value   any
	replace func(any)
}

// nodesOf returns nodes for a JSON value and for all values inside it, at every depth. Members with
// an unknown schema are left out.
func nodesOf(pointer string, s *openapi3.Schema, value any, replace func(any)) []node {
	out := []node{{pointer, s, value, replace}}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if member := s.Properties[name]; member != nil {
				out = append(out, nodesOf(pointer+"/"+name, member.Value, value[name], func(v any) { value[name] = v })...)
			}
		}
	case []any:
		for i, e := range value {
			out = append(out, nodesOf(fmt.Sprintf("%s/%d", pointer, i), s.Items.Value, e, func(v any) { value[i] = v })...)
		}
	}
	return out
}

// setWrongBodyValue replaces a random value in the body by a value that does not match the schema.
func setWrongBodyValue(g *generator, r *generatedRequest) *generatedRequest {
	s := r.op.bodySchema()
	if s == nil || r.body == nil {
		return nil
	}
	if g.chance(50) { // add missing optional members to half of the bodies
		members, _ := r.body.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if _, there := members[name]; !there && g.chance(50) {
				members[name] = g.validValue(r.op, name, s.Properties[name].Value)
			}
		}
	}
	nodes := nodesOf("", s, r.body, func(v any) { r.body = v })
	at := randomElement(g.random, nodes)
	value := randomElement(g.random, g.wrongValues(at.schema, at.value))
	if at.replace(value); r.body == nil {
		r.raw = []byte("null")
	}
	return r.setExpectedResponse(expect400, "the body has the invalid value %.100s at the JSON pointer %q", renderJSON(value), at.pointer)
}

// breakQuery adds text with invalid syntax or encoding to the query.
func breakQuery(g *generator, r *generatedRequest) *generatedRequest {
	r.rawQuery = randomElement(g.random, []string{"a=1;b=2", "%zz", "%", "limit=%4", "limit=1;", "%C3%28=1", "%00=1", "=1", "=", "x;y", "%ff", "limit%=1"})
	return r.setExpectedResponse(expect400, "the query contains the invalid part %s", r.rawQuery)
}

// addUnknownParameter adds a query parameter that the operation does not declare.
func addUnknownParameter(g *generator, r *generatedRequest) *generatedRequest {
	names := []string{"colour", "Limit", "LIMIT", "limit[]", "limit%20", "page.size", "api_version", "%F0%9F%98%80", "organisation_id", strings.Repeat("x", 3000)}
	for _, p := range r.op.parameters(openapi3.ParameterInQuery) {
		names = append(names, strings.ToUpper(p.Name), p.Name+"%00", p.Name+"s_")
	}
	r.rawQuery = randomElement(g.random, names) + randomElement(g.random, []string{"=1", "", "="})
	return r.setExpectedResponse(expect400, "the operation has no parameter %.100s", r.rawQuery)
}

// repeatParameter repeats a query parameter that may occur only once.
func repeatParameter(g *generator, r *generatedRequest) *generatedRequest {
	params := r.op.parameters(openapi3.ParameterInQuery)
	if len(params) == 0 {
		return nil
	}
	p := randomElement(g.random, params)
	if p.Name == "cursor" || p.Schema.Value.Type.Is("array") { // a list may be sent as several parameters with the same name
		return nil
	}
	value := g.validParameter(r.op, p)
	r.setQueryValue(p.Name, value)
	r.rawQuery = p.Name + "=" + url.QueryEscape(randomElement(g.random, []string{value, g.validParameter(r.op, p)}))
	return r.setExpectedResponse(expect400, "the query parameter %s occurs twice", p.Name)
}

// breakBody replaces the body by a text that is not exactly one JSON object.
func breakBody(g *generator, r *generatedRequest) *generatedRequest {
	if r.body == nil {
		return nil
	}
	whole := renderJSON(r.body)
	broken := [][]byte{
		append(slices.Clone(whole), " {}"...), append(slices.Clone(whole), 'x'), append(slices.Clone(whole), ','), append([]byte("\xef\xbb\xbf"), whole...), whole[:len(whole)-1],
		[]byte("[]"), []byte(`"text"`), []byte("1"), []byte("null"), []byte("true"), []byte("{"), []byte("'{}'"), []byte("{'name': 1}"), []byte("{,}"), []byte(`{"a":1,}`), []byte("// x\n{}"), []byte("\xff"), []byte("\x00"), []byte(" "), []byte("NaN"),
		[]byte(strings.Repeat("[", 100_000)), []byte(strings.Repeat(`{"a":`, 1000)), append(append([]byte("["), whole...), ']'), []byte(`{"a` + "\x00" + `":1}`), []byte("a=1&b=2"),
	}
	if r.op.Operation.RequestBody.Value.Required {
		broken = append(broken, []byte{})
	}
	r.raw = randomElement(g.random, broken)
	return r.setExpectedResponse(expect400, "the body is %.60q", r.raw)
}

// repeatMember adds the same member twice to an object of the body.
func repeatMember(g *generator, r *generatedRequest) *generatedRequest {
	if r.body == nil {
		return nil
	}
	whole, opened := renderJSON(r.body), []int{}
	inText := false
	for i, b := range whole {
		switch {
		case b == '"' && (i == 0 || whole[i-1] != '\\'):
			inText = !inText
		case b == '{' && !inText:
			opened = append(opened, i+1)
		}
	}
	at := randomElement(g.random, opened)
	name := randomElement(g.random, []string{"zz", "", "😀", `\u007a`})
	more := fmt.Sprintf(`"%s":0,"%s":0`, name, strings.Replace(name, `\u007a`, "z", 1))
	if whole[at] != '}' {
		more += ","
	}
	r.raw = slices.Insert(whole, at, []byte(more)...)
	return r.setExpectedResponse(expect400, "the body has a duplicate member at byte %d", at)
}

// setWrongMediaType sends the body with an unsupported Content-Type or Content-Encoding.
func setWrongMediaType(g *generator, r *generatedRequest) *generatedRequest {
	if r.body == nil {
		return nil
	}
	if g.chance(30) {
		r.headers["Content-Encoding"] = randomElement(g.random, []string{"br", "compress", "x"})
	} else {
		r.headers["Content-Type"] = randomElement(g.random, []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", "application/vnd.api+json", "json", "*/*", "application/json; charset", ";", "application/xml"})
	}
	return r.setExpectedStatus(http.StatusUnsupportedMediaType, "the body has Content-Type %q and Content-Encoding %q", r.headers["Content-Type"], r.headers["Content-Encoding"])
}

// makeBodyTooLarge makes the body larger than 2 MiB.
func makeBodyTooLarge(g *generator, r *generatedRequest) *generatedRequest {
	if r.body == nil || !g.chance(5) { // large bodies are slow, so the test makes only 5 percent of the bodies too large
		return nil
	}
	r.raw = append(bytes.Repeat([]byte(" "), 2<<20), renderJSON(r.body)...)
	return r.setExpectedStatus(http.StatusRequestEntityTooLarge, "the body is larger than 2 MiB")
}

// setWrongToken replaces the Authorization header by an invalid header, or removes the header.
func setWrongToken(g *generator, r *generatedRequest) *generatedRequest {
	r.caller = nil
	r.headers["Authorization"] = randomElement(g.random, []string{"", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "Bearer rt_nonsense", "Bearer rt_" + strings.Repeat("A", 46), "bearer  x y", g.callers[0].token,
		"Bearer " + changeOneCharacter(g.callers[0].token), "Bearer " + g.callers[0].token + "A", "Token " + g.callers[0].token, "Bearer \xff", "Bearer " + strings.Repeat("x", 100_000)})
	return r.setExpectedStatus(http.StatusUnauthorized, "the token is %.60q", r.headers["Authorization"])
}

// useTokenWithoutScope uses a token that does not have the scope that the operation requires.
func useTokenWithoutScope(g *generator, r *generatedRequest) *generatedRequest {
	switch scope, _ := r.op.Operation.Extensions["x-scope"].(string); scope {
	case "read":
		r.caller = g.writer
	case "write", "admin":
		r.caller = g.reader
	default:
		return nil
	}
	return r.setExpectedStatus(http.StatusForbidden, "the token does not have the scope of the operation")
}

// setWrongMethod uses a method that the contract does not have for the path. The server must refuse it, except
// OPTIONS, which it answers for every path.
func setWrongMethod(g *generator, r *generatedRequest) *generatedRequest {
	r.method = randomElement(g.random, []string{"PUT", "TRACE", "CONNECT", "BREW", "get", "PATCH", "POST", "DELETE", http.MethodOptions})
	u, err := url.ParseRequestURI(g.encodeTarget(r))
	if err != nil {
		return nil
	}
	if other, _ := sharedContract().match(r.method, u); other != nil {
		return nil // the method is not wrong, because the contract has an operation with this method and this path
	}
	if r.method == http.MethodOptions {
		return r.setExpectedStatus(http.StatusNoContent, "the method is OPTIONS")
	}
	return r.setExpectedStatus(http.StatusMethodNotAllowed, "the method is %s", r.method)
}

// setWrongLink replaces a video link by an account link, an account link by a video link, or a link by a text that is not a supported link.
func setWrongLink(g *generator, r *generatedRequest) *generatedRequest {
	other := map[textKind]textKind{videoLink: accountLinks, accountLinks: videoLink}
	pick := func(kinds []textKind) string {
		return randomElement(g.random, append(slices.Clone(g.wrongLinks), randomElement(g.random, g.ownItems[other[kinds[0]]])))
	}
	if s := r.op.bodySchema(); s != nil {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			kinds := kindsOfField(r.op, name)
			if members, ok := r.body.(map[string]any); ok && s.Properties[name].Value.Format == "uri" {
				members[name] = pick(kinds)
				return r.setExpectedResponse(expect4xx, "%s is %s", name, members[name])
			}
		}
	}
	for _, p := range r.op.parameters(openapi3.ParameterInQuery) {
		if kinds := kindsOfField(r.op, p.Name); p.Schema.Value.Type.Is("string") && kinds != nil && mustBeLink(p.Schema.Value, kinds) {
			r.setQueryValue(p.Name, pick(kinds))
			return r.setExpectedResponse(expect400, "%s is not a link of the kind that the parameter accepts", p.Name)
		}
	}
	return nil
}

// setWrongRange sets the start of a date range to a date that is after the end or older than the tier allows.
func setWrongRange(g *generator, r *generatedRequest) *generatedRequest {
	ends := g.dateRanges(r.op)
	if len(ends) == 0 {
		return nil
	}
	pair := randomElement(g.random, ends)
	start, end := "2026-01-02", "2026-01-01"
	if r.op.Operation.Parameters.GetByInAndName("query", pair[0]).Schema.Value.Format == "date-time" {
		start, end = start+"T00:00:00Z", start+"T00:00:00+00:01"
	}
	if r.hasPeriod() && g.chance(50) {
		r.dropParameters(pair[1])
		r.setQueryValue(pair[0], g.now.AddDate(0, 0, -731-g.IntN(1000)).Format("2006-01-02"))
		return r.setExpectedResponse(expect400, "%s is older than the tier allows", pair[0])
	}
	r.setQueryValue(pair[0], start)
	r.setQueryValue(pair[1], end)
	return r.setExpectedResponse(expect400, "%s is after %s", pair[0], pair[1])
}

// requestPageOfUnpaginatedList requests page 2 of a list without paginated=true. Such a request is invalid.
func requestPageOfUnpaginatedList(g *generator, r *generatedRequest) *generatedRequest {
	if r.op.Operation.Parameters.GetByInAndName("query", "paginated") == nil {
		return nil
	}
	if r.setQueryValue("page", "2"); g.chance(50) {
		r.setQueryValue("paginated", "false")
	} else {
		r.dropParameters("paginated")
	}
	return r.setExpectedResponse(expect400, "page is 2, but paginated is not true")
}

// sendCursorOfAnotherList sends a cursor that the server returned to another organisation, or a text that is not a cursor.
func sendCursorOfAnotherList(g *generator, r *generatedRequest) *generatedRequest {
	if r.op.Operation.Parameters.GetByInAndName("query", "cursor") == nil {
		return nil
	}
	r.dropParameters("page")
	if r.op.Operation.Parameters.GetByInAndName("query", "paginated") != nil {
		r.setQueryValue("paginated", "true")
	}
	r.setQueryValue("cursor", randomElement(g.random, []string{randomElement(g.random, g.otherItems[pageCursor]), randomElement(g.random, g.missingItems[pageCursor]), "AAAA", "null", strings.Repeat("A", 2048), "-", g.ownItems[videoID][0]}))
	return r.setExpectedResponse(expect4xx, "the cursor is not a cursor of this list")
}

// setTooLongHeader sets a header to a value that is longer than the contract allows.
func setTooLongHeader(g *generator, r *generatedRequest) *generatedRequest {
	params := r.op.parameters(openapi3.ParameterInHeader)
	if len(params) == 0 {
		return nil
	}
	p := randomElement(g.random, params)
	r.headers[p.Name] = strings.Repeat("x", int(*p.Schema.Value.MaxLength)+1)
	return r.setExpectedResponse(expect400, "%s is too long", p.Name)
}

// corruptBytes changes random bytes of the body or of the path and query. The request can stay valid, so any status below 500 is expected.
func corruptBytes(g *generator, r *generatedRequest) *generatedRequest {
	if g.chance(10) {
		r.caller = g.callers[0]
	}
	if r.body != nil && g.chance(70) {
		r.raw = g.changeRandomBytes(renderJSON(r.body))
	} else {
		r.target = "/" + strings.TrimPrefix(string(g.changeRandomBytes([]byte(g.encodeTarget(r)))), "/")
	}
	return r.setExpectedResponse(expectAny, "some bytes of the request are corrupted")
}

// changeRandomBytes replaces, deletes, duplicates or inserts bytes at one to three random positions of b, and returns the result.
func (g *generator) changeRandomBytes(b []byte) []byte {
	for range 1 + g.IntN(3) {
		if len(b) == 0 {
			return b
		}
		at := g.IntN(len(b))
		switch g.IntN(4) {
		case 0:
			b[at] = byte(g.IntN(256))
		case 1:
			b = slices.Delete(b, at, at+1)
		case 2:
			b = slices.Insert(b, at, b[at:min(len(b), at+1+g.IntN(8))]...)
		default:
			b = slices.Insert(b, at, []byte(randomElement(g.random, []string{"%00", "%2F", "%", "/", "&", ";", "\"", "{", "}", "[", ",", "\\", "\\u0000", "null", "é", "0", "-", "e9"}))...)
		}
	}
	return b
}
