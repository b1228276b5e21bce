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

type faultsKey struct{}

// FaultsFrom returns the faults in the arguments of a tool call. ctx is the context of the call's
// HTTP request. The server must refuse a request with faults.
func FaultsFrom(ctx context.Context) []Fault {
	faults, _ := ctx.Value(faultsKey{}).([]Fault)
	return faults
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
	for _, a := range t.arguments {
		value, ok := given[a.name]
		// Null counts as missing, except for a body member that can be null.
		if ok = ok && (a.nullable || string(value) != "null"); !ok && a.defaultValue != nil {
			value, ok = a.defaultValue, true
		}
		if !ok {
			if a.required && a.in == openapi3.ParameterInPath {
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
	// If the arguments of the tool call have faults, the request is sent nevertheless, so that it counts
	// towards the rate limits. The API then refuses it because of faultsKey.
	if len(faults) > 0 {
		ctx = context.WithValue(ctx, faultsKey{}, faults)
	}
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
		if a.name == name {
			return true
		}
	}
	return false
}

// argumentNames returns a list of the tool's arguments for an error message, such as "it takes link, limit".
func (t *tool) argumentNames() string {
	if len(t.arguments) == 0 {
		return "it takes no arguments"
	}
	names := make([]string, len(t.arguments))
	for i, a := range t.arguments {
		names[i] = a.name
	}
	return "it takes " + strings.Join(names, ", ")
}

// formatValue converts the JSON value of an argument to text for a path, query or header. The
// server later validates the text against the argument's schema.
func (a argument) formatValue(raw json.RawMessage) (string, *Fault) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", &Fault{a.name, faultSyntax, a.name + " is not JSON"}
	}
	switch value := value.(type) {
	case string:
		if value == "" && a.in != openapi3.ParameterInQuery {
			return "", &Fault{a.name, faultEmpty, a.name + " must not be empty"}
		}
		return value, nil
	case []any:
		if a.list {
			return a.joinEntries(value)
		}
		return "", &Fault{a.name, faultType, a.name + " must not be an array"}
	case map[string]any:
		return "", &Fault{a.name, faultType, a.name + " must not be an object"}
	}
	return string(bytes.TrimSpace(raw)), nil
}

// joinEntries joins the entries of an array argument with commas: ["reels", "shorts"] becomes "reels,shorts". It returns a fault if an
// entry contains a comma or is not a string.
func (a argument) joinEntries(entries []any) (string, *Fault) {
	texts := make([]string, len(entries))
	for i, e := range entries {
		text, ok := e.(string)
		switch {
		case !ok:
			return "", &Fault{a.name, faultType, fmt.Sprintf("entry %d of %s must be a string", i, a.name)}
		case strings.Contains(text, ","):
			return "", &Fault{a.name, faultSyntax, fmt.Sprintf("entry %d of %s contains a comma, and commas separate entries; use an id instead of a name", i, a.name)}
		}
		texts[i] = text
	}
	return strings.Join(texts, ","), nil
}
