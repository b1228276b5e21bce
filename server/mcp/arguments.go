package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Fault is what is wrong with an argument before it can be put into a request.
type Fault struct {
	Argument string // "" for the arguments as a whole
	Code     string
	Detail   string // a sentence without its full stop
}

// Codes of faults, those that the same faults of a body have.
const (
	faultRequired  = "required"
	faultUnknown   = "unknown_member"
	faultDuplicate = "duplicate_member"
	faultType      = "type"
	faultEmpty     = "empty"
	faultSyntax    = "syntax"
)

type faultsKey struct{}

// FaultsFrom returns what is wrong with the arguments of the call that a request comes from. A request that has such faults
// is to be refused where requests are validated, so that it counts and is answered as any other invalid one.
func FaultsFrom(ctx context.Context) []Fault {
	faults, _ := ctx.Value(faultsKey{}).([]Fault)
	return faults
}

// maxFaults is how many faults of one call are reported.
const maxFaults = 100

// placeholder stands in the path of a request that is going to be refused.
const placeholder = "-"

// request is the operation's request with the arguments in their places, from whom outer comes from.
func (t *tool) request(ctx context.Context, outer *http.Request, raw json.RawMessage) (*http.Request, error) {
	given, faults := t.read(raw)
	target, query, header := t.path, url.Values{}, http.Header{}
	var members []string
	for _, a := range t.arguments {
		value, ok := given[a.name]
		if !ok {
			if a.required && a.in == openapi3.ParameterInPath {
				faults = append(faults, Fault{a.name, faultRequired, a.name + " is required"})
			}
			value = json.RawMessage(`"` + placeholder + `"`)
			if a.in != openapi3.ParameterInPath {
				if a.preset != "" {
					query.Set(a.wire, a.preset)
				}
				continue
			}
		}
		if a.in == inBody {
			name, _ := json.Marshal(a.wire)
			members = append(members, string(name)+":"+string(value))
			continue
		}
		text, fault := a.text(value)
		if fault != nil {
			faults = append(faults, *fault)
			text = placeholder
		}
		switch a.in {
		case openapi3.ParameterInPath:
			target = strings.ReplaceAll(target, "{"+a.wire+"}", url.PathEscape(text))
		case openapi3.ParameterInQuery:
			query.Set(a.wire, text)
		default:
			header.Set(a.wire, text)
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
	if len(faults) > 0 {
		ctx = context.WithValue(ctx, faultsKey{}, faults)
	}
	r, err := http.NewRequestWithContext(ctx, t.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"Authorization", "X-Forwarded-For", "X-Request-Id", "User-Agent"} {
		if values := outer.Header.Values(name); len(values) > 0 {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	r.Header, r.Host, r.RemoteAddr, r.RequestURI = header, outer.Host, outer.RemoteAddr, target
	return r, nil
}

// read takes the arguments apart as they were sent: what encoding/json would lose is found here or, within a member of a
// body, where the request is validated.
func (t *tool) read(raw json.RawMessage) (map[string]json.RawMessage, []Fault) {
	given := map[string]json.RawMessage{}
	if len(raw) == 0 || string(raw) == "null" {
		return given, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return given, []Fault{{"", faultType, "the arguments must be an object"}}
	}
	var faults []Fault
	for decoder.More() && len(faults) < maxFaults {
		token, err := decoder.Token()
		name, _ := token.(string)
		var value json.RawMessage
		if err = errors.Join(err, decoder.Decode(&value)); err != nil {
			return given, append(faults, Fault{"", faultSyntax, "the arguments are not JSON"})
		}
		_, twice := given[name]
		switch {
		case twice:
			faults = append(faults, Fault{name, faultDuplicate, fmt.Sprintf("the argument %q stands there twice", name)})
		case !t.takes(name):
			faults = append(faults, Fault{name, faultUnknown, fmt.Sprintf("%q is not an argument of %s; %s", name, t.name, t.known())})
		}
		given[name] = value
	}
	return given, faults
}

func (t *tool) takes(name string) bool {
	for _, a := range t.arguments {
		if a.name == name {
			return true
		}
	}
	return false
}

func (t *tool) known() string {
	if len(t.arguments) == 0 {
		return "it takes none"
	}
	names := make([]string, len(t.arguments))
	for i, a := range t.arguments {
		names[i] = a.name
	}
	return "it takes " + strings.Join(names, ", ")
}

// text writes an argument as a path, a query or a header has it. Whether the text is of the right type is seen where the request
// is validated.
func (a argument) text(raw json.RawMessage) (string, *Fault) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", &Fault{a.name, faultSyntax, a.name + " is not JSON"}
	}
	switch value := value.(type) {
	case nil:
		return "", &Fault{a.name, faultType, a.name + " must not be null; leave it out instead"}
	case string:
		if value == "" && a.in != openapi3.ParameterInQuery {
			return "", &Fault{a.name, faultEmpty, a.name + " must not be empty"}
		}
		return value, nil
	case []any:
		if a.list {
			return a.joined(value)
		}
		return "", &Fault{a.name, faultType, a.name + " must not be an array"}
	case map[string]any:
		return "", &Fault{a.name, faultType, a.name + " must not be an object"}
	}
	return string(bytes.TrimSpace(raw)), nil
}

// joined writes the entries of a list between commas, which none of them can contain.
func (a argument) joined(entries []any) (string, *Fault) {
	texts := make([]string, len(entries))
	for i, e := range entries {
		text, ok := e.(string)
		switch {
		case !ok:
			return "", &Fault{a.name, faultType, fmt.Sprintf("%s, entry %d, must be a string", a.name, i)}
		case strings.Contains(text, ","):
			return "", &Fault{a.name, faultSyntax, fmt.Sprintf("%s, entry %d, contains a comma, which separates entries; name it by its id", a.name, i)}
		}
		texts[i] = text
	}
	return strings.Join(texts, ","), nil
}
