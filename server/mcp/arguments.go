package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Fault is an error in the arguments of an MCP tool call. It is found before the call becomes an HTTP request to the API.
type Fault struct {
	Argument string // name of the argument; "" if the arguments as a whole are not a JSON object
	Code     string // error code for programs, for example "unknown_member"
	Detail   string // the error message: a sentence without its full stop
}

// Values of Fault.Code. Package server uses the same codes for errors in the body of an HTTP request.
const (
	faultRequired = "required"
	faultUnknown  = "unknown_member"
	faultType     = "type"
	faultEmpty    = "empty"
	faultSyntax   = "syntax"
	faultEnum     = "enum"
)

// Call is an MCP tool call. The server must refuse the call's HTTP request if Faults is not empty or Arguments violates Schema.
type Call struct {
	Faults    []Fault
	Arguments map[string]json.RawMessage // the values of the arguments, by name; defaults are included, and unknown arguments are not
	Schema    *openapi3.Schema           // schema of the arguments that are sent to the API
}

type callKey struct{}

// CallFrom returns the tool call of an HTTP request with the context ctx. It returns false if the request does not come from a tool call.
func CallFrom(ctx context.Context) (Call, bool) {
	call, ok := ctx.Value(callKey{}).(Call)
	return call, ok
}

// maxUnknownArguments is the maximum number of unknown arguments that are reported for one tool call.
const maxUnknownArguments = 100

// newRequest returns the HTTP request for a tool call. The result `fields` names the members to
// keep in each list entry; nil means all members.
func (t *tool) newRequest(ctx context.Context, mcpRequest *http.Request, argumentsJSON json.RawMessage) (r *http.Request, fields []string, err error) {
	values, faults := t.readArguments(argumentsJSON)
	target, query, header := t.path, url.Values{}, http.Header{}
	var members []string // members of the JSON body
	for _, a := range t.arguments {
		value, ok := values[a.name]
		if !ok {
			if a.required {
				faults = append(faults, Fault{a.name, faultRequired, a.name + " is required"})
			}
			continue
		}
		var text string
		var fault *Fault
		switch a.in {
		case inResult:
			fields, fault = t.entry.readFields(value)
		case inBody:
			members = append(members, fmt.Sprintf("%q:%s", a.requestName, value))
		default:
			text, fault = a.formatValue(value)
		}
		if fault != nil {
			faults = append(faults, *fault)
			continue
		}
		switch a.in {
		case openapi3.ParameterInPath:
			target = strings.ReplaceAll(target, "{"+a.requestName+"}", url.PathEscape(text))
		case openapi3.ParameterInQuery:
			query.Set(a.requestName, text)
		case openapi3.ParameterInHeader:
			header.Set(a.requestName, text)
		}
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var body []byte
	if t.body != nil && (t.body.Required || len(members) > 0) {
		body = []byte("{" + strings.Join(members, ",") + "}")
		header.Set("Content-Type", "application/json")
	}
	// A tool call whose arguments have faults is sent too, so that it counts towards the rate limits. Its path can still contain the name of a
	// missing argument, such as {ad_id}. The middleware validate finds the faults in the context and refuses the request.
	ctx = context.WithValue(ctx, callKey{}, Call{faults, values, t.sent})
	r, err = http.NewRequestWithContext(ctx, t.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	// The headers that identify the caller and the request are copied from the request to /mcp.
	for _, name := range []string{"Authorization", "X-Forwarded-For", "X-Request-Id", "User-Agent"} {
		if values := mcpRequest.Header.Values(name); len(values) > 0 {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	r.Header, r.Host, r.RemoteAddr, r.RequestURI = header, mcpRequest.Host, mcpRequest.RemoteAddr, target
	return r, fields, nil
}

// readArguments returns the JSON value of each argument by name: the value in the tool call, or else the default value. An argument without
// either is missing in the result. readArguments reports unknown arguments as faults, but does not check the values.
func (t *tool) readArguments(raw json.RawMessage) (map[string]json.RawMessage, []Fault) {
	var given map[string]json.RawMessage
	var faults []Fault
	if len(raw) > 0 && json.Unmarshal(raw, &given) != nil {
		faults = append(faults, Fault{"", faultType, "the arguments must be an object"})
	}
	values := map[string]json.RawMessage{}
	var names []string // names of the arguments that the tool offers
	for _, a := range t.arguments {
		value, ok := given[a.name]
		if string(value) == "null" && !a.nullable {
			ok = false // null counts as missing, except for a body member that can be null
		}
		switch {
		case ok && !a.isFixed:
			values[a.name] = value
		case a.defaultValue != nil:
			values[a.name] = a.defaultValue
		}
		if !a.isFixed {
			names = append(names, a.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) && len(faults) < maxUnknownArguments {
			faults = append(faults, Fault{name, faultUnknown, fmt.Sprintf("%q is not an argument of %s; it takes %s", name, t.name,
				cmp.Or(strings.Join(names, ", "), "no arguments"))})
		}
	}
	return values, faults
}

// formatValue converts the JSON value of an argument to text for a path, query or header: ["reels", "shorts"] becomes "reels,shorts". It
// does not check the type of the value, because the server refuses values that violate Call.Schema.
func (a argument) formatValue(raw json.RawMessage) (string, *Fault) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" && a.in != openapi3.ParameterInQuery {
			return "", &Fault{a.name, faultEmpty, a.name + " must not be empty"}
		}
		return text, nil
	}
	var entries []string
	if !a.list || json.Unmarshal(raw, &entries) != nil {
		return string(bytes.TrimSpace(raw)), nil
	}
	for i, entry := range entries {
		if strings.Contains(entry, ",") {
			return "", &Fault{a.name, faultSyntax, fmt.Sprintf("entry %d of %s contains a comma, and commas separate entries; use an id instead of a name", i, a.name)}
		}
	}
	return strings.Join(entries, ","), nil
}
