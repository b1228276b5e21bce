package mcp

import (
	"bytes"
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
	Argument string // name of the argument; "" if the fault concerns all arguments, for example if they are not JSON
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
	Arguments map[string]json.RawMessage // the arguments that are sent to the API, by name
	Schema    *openapi3.Schema           // schema of the object Arguments
}

type callKey struct{}

// CallFrom returns the tool call of an HTTP request with the context ctx. It returns false if the request does not come from a tool call.
func CallFrom(ctx context.Context) (Call, bool) {
	call, ok := ctx.Value(callKey{}).(Call)
	return call, ok
}

// maxFaults is the maximum number of unknown arguments that are reported for one tool call.
const maxFaults = 100

// placeholder is sent in the HTTP request in place of a missing or invalid argument of a tool call. The server refuses a request with a
// placeholder.
const placeholder = "-"

// newRequest returns the HTTP request for a tool call. The result `fields` names the members to
// keep in each list entry; nil means all members.
func (t *tool) newRequest(ctx context.Context, mcpRequest *http.Request, argumentsJSON json.RawMessage) (r *http.Request, fields []string, err error) {
	given, faults := t.readArguments(argumentsJSON)
	target, query, header := t.path, url.Values{}, http.Header{}
	var members []string
	sent := map[string]json.RawMessage{}
	for _, a := range t.arguments {
		value, ok := given[a.name]
		ok = ok && !a.isFixed
		// Null counts as missing, except for a body member that can be null.
		if ok = ok && (a.nullable || string(value) != "null"); !ok && a.defaultValue != nil {
			value, ok = a.defaultValue, true
		}
		if !ok {
			if a.required {
				faults = append(faults, Fault{a.name, faultRequired, a.name + " is required"})
			}
			value = json.RawMessage(`"` + placeholder + `"`)
			if a.in != openapi3.ParameterInPath {
				continue
			}
		}
		if a.in == inResult {
			names, fault := t.entry.readFields(value)
			if fault != nil {
				faults = append(faults, *fault)
			}
			fields = names
			continue
		}
		if ok {
			sent[a.name] = value
		}
		if a.in == inBody {
			name, _ := json.Marshal(a.requestName)
			members = append(members, string(name)+":"+string(value))
			continue
		}
		text, fault := a.formatValue(value)
		if fault != nil {
			faults = append(faults, *fault)
			text = placeholder
		}
		switch a.in {
		case openapi3.ParameterInPath:
			target = strings.ReplaceAll(target, "{"+a.requestName+"}", url.PathEscape(text))
		case openapi3.ParameterInQuery:
			query.Set(a.requestName, text)
		default:
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
	// A tool call whose arguments have faults is sent too, so that it counts towards the rate limits. The middleware validate finds the faults in
	// the context and refuses the request.
	ctx = context.WithValue(ctx, callKey{}, Call{faults, sent, t.sent})
	r, err = http.NewRequestWithContext(ctx, t.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	// The token and the address of the caller are copied from the request to /mcp.
	for _, name := range []string{"Authorization", "X-Forwarded-For", "X-Request-Id", "User-Agent"} {
		if values := mcpRequest.Header.Values(name); len(values) > 0 {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	r.Header, r.Host, r.RemoteAddr, r.RequestURI = header, mcpRequest.Host, mcpRequest.RemoteAddr, target
	return r, fields, nil
}

// readArguments returns the JSON value of each argument by name. It reports unknown arguments as
// faults, but does not check the values.
func (t *tool) readArguments(raw json.RawMessage) (map[string]json.RawMessage, []Fault) {
	given := map[string]json.RawMessage{}
	if len(raw) == 0 || string(raw) == "null" {
		return given, nil
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, []Fault{{"", faultType, "the arguments must be an object"}}
	}
	var faults []Fault
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !t.hasArgument(name) && len(faults) < maxFaults {
			faults = append(faults, Fault{name, faultUnknown, fmt.Sprintf("%q is not an argument of %s; %s", name, t.name, t.argumentNames())})
		}
	}
	return given, faults
}

func (t *tool) hasArgument(name string) bool {
	for _, a := range t.arguments {
		if a.name == name && !a.isFixed {
			return true
		}
	}
	return false
}

// argumentNames returns a list of the tool's arguments for an error message, such as "it takes link, limit".
func (t *tool) argumentNames() string {
	var names []string
	for _, a := range t.arguments {
		if !a.isFixed {
			names = append(names, a.name)
		}
	}
	if len(names) == 0 {
		return "it takes no arguments"
	}
	return "it takes " + strings.Join(names, ", ")
}

// formatValue converts the JSON value of an argument to text for a path, query or header. It does not check
// the type of the value, because the server refuses values that violate Call.Schema.
func (a argument) formatValue(raw json.RawMessage) (string, *Fault) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" && a.in != openapi3.ParameterInQuery {
			return "", &Fault{a.name, faultEmpty, a.name + " must not be empty"}
		}
		return text, nil
	}
	var entries []string
	if a.list && json.Unmarshal(raw, &entries) == nil {
		return a.joinEntries(entries)
	}
	return string(bytes.TrimSpace(raw)), nil
}

// joinEntries joins the entries of an array argument with commas: ["reels", "shorts"] becomes "reels,shorts". It returns a fault if an
// entry contains a comma.
func (a argument) joinEntries(entries []string) (string, *Fault) {
	for i, text := range entries {
		if strings.Contains(text, ",") {
			return "", &Fault{a.name, faultSyntax, fmt.Sprintf("entry %d of %s contains a comma, and commas separate entries; use an id instead of a name", i, a.name)}
		}
	}
	return strings.Join(entries, ","), nil
}
