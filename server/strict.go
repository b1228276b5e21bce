package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/reeltally/reeltally/gen/api"
)

// Codes of faults in JSON bodies and in queries.
const (
	faultSyntax           = "syntax"
	faultEncoding         = "encoding"
	faultDuplicateMember  = "duplicate_member"
	faultTrailingText     = "trailing_text"
	faultUnknownParameter = "unknown_parameter"
	faultRepeated         = "repeated_parameter"
	faultMaxLength        = "max_length"
	faultMaxItems         = "max_items"
	faultMaxValues        = "max_values"
	faultMaxWords         = "max_words"
)

// Limits of every JSON body, whatever its schema. They allow the largest valid bodies: a bulk request with 500 links, and display settings of
// 16 KiB with up to 8,200 values.
const (
	maxDepth  = 64     // maximum nesting depth of arrays and objects
	maxValues = 10_000 // maximum number of values, including the values in arrays and objects
	maxName   = 500    // maximum length of the name of a member, in bytes
)

// checkJSON checks the syntax of a JSON body more strictly than encoding/json. It also reports duplicate members, half surrogate pairs, invalid
// UTF-8, NUL characters, and text after the JSON value.
//
// The scan ends at the first value or name that exceeds maxDepth, maxValues or maxName. schema is the schema of the body. If there are too many
// values, checkJSON uses the schema to find the array that is too long. If there are no faults, body is one JSON value. The error is ctx.Err(), if ctx ends during the scan.
func checkJSON(ctx context.Context, body []byte, schema *openapi3.Schema) ([]api.Fault, error) {
	if !utf8.Valid(body) {
		return []api.Fault{bodyFault("", faultEncoding, "the body is not valid UTF-8")}, nil
	}
	s := &jsonScan{ctx: ctx, body: body, schema: schema, dec: json.NewDecoder(bytes.NewReader(body))}
	s.dec.UseNumber()
	if s.scanValue() {
		if rest := bytes.TrimLeft(body[s.dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
			s.fault(faultTrailingText, "there is text after the JSON value, from byte %d on", len(body)-len(rest))
		}
	}
	return s.faults, ctx.Err()
}

// jsonScan is the state of one scan of a JSON body.
type jsonScan struct {
	ctx    context.Context
	body   []byte
	schema *openapi3.Schema
	dec    *json.Decoder
	path   []pathStep // from the root to the value that is being scanned
	values int        // number of values scanned so far
	faults []api.Fault
}

// pathStep is one step from an array or object to one of its values.
type pathStep struct {
	name  string // name of the member, in an object
	index int    // index of the entry, in an array; -1 in an object
}

// fault adds a fault at the current path, unless there are maxFaults faults already.
func (s *jsonScan) fault(code, format string, args ...any) {
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, bodyFault(jsonPointer(s.names()), code, format, args...))
	}
}

// names returns the current path as names of members and indexes of entries.
func (s *jsonScan) names() []string {
	names := make([]string, len(s.path))
	for i, step := range s.path {
		if names[i] = step.name; step.index >= 0 {
			names[i] = strconv.Itoa(step.index)
		}
	}
	return names
}

// scanValue scans the next value and adds its faults. It returns false if the scan must end.
func (s *jsonScan) scanValue() bool {
	depth := len(s.path)
	if s.ctx.Err() != nil {
		return false
	}
	if depth > maxDepth {
		s.fault(faultSyntax, "the body nests deeper than %d levels", maxDepth)
		return false
	}
	if s.values++; s.values > maxValues {
		s.tooManyValues()
		return false
	}
	token, ok := s.readToken()
	if !ok {
		return false
	}
	switch token {
	case json.Delim('['):
		ok = s.scanArray()
	case json.Delim('{'):
		ok = s.scanObject()
	default:
		return true
	}
	if !ok {
		return false
	}
	s.path = s.path[:depth]
	_, ok = s.readToken() // reads the closing bracket or brace
	return ok
}

// scanArray scans the entries of an array up to its closing bracket. It returns false if the scan must end.
func (s *jsonScan) scanArray() bool {
	depth := len(s.path)
	for i := 0; s.dec.More(); i++ {
		if s.path = append(s.path[:depth], pathStep{index: i}); !s.scanValue() {
			return false
		}
	}
	return true
}

// scanObject scans the members of an object up to its closing brace. It returns false if the scan must end.
func (s *jsonScan) scanObject() bool {
	depth := len(s.path)
	seen := map[string]bool{}
	for s.dec.More() {
		s.path = s.path[:depth]
		token, ok := s.readToken()
		if !ok {
			return false
		}
		name, _ := token.(string) // cannot fail: the name of a member is a string
		s.path = append(s.path, pathStep{name: name, index: -1})
		if len(name) > maxName {
			s.fault(faultMaxLength, "the name of a member must have at most %d bytes, not %d", maxName, len(name))
			return false
		}
		if seen[name] {
			s.fault(faultDuplicateMember, "the member %s occurs twice", quote(name))
		}
		seen[name] = true
		if !s.scanValue() {
			return false
		}
	}
	return true
}

// tooManyValues adds a fault at the outermost array on the current path that is longer than its schema allows. If there is no such array, it adds
// a fault at the body as a whole.
func (s *jsonScan) tooManyValues() {
	schema := s.schema
	for i, step := range s.path {
		next := schema.Items
		if step.index < 0 {
			next = schema.Properties[step.name]
		} else if most := schema.MaxItems; most != nil && uint64(step.index) >= *most {
			s.path = s.path[:i]
			s.fault(faultMaxItems, "%s must have at most %d entries, not %d or more", placeName(s.names()), *most, step.index+1)
			return
		}
		if next == nil {
			break
		}
		schema = next.Value
	}
	s.path = nil
	s.fault(faultMaxValues, "the body must have at most %d values, those in arrays and objects included", maxValues)
}

// readToken reads the next token. It adds a fault if the token is a string with an invalid escape. It returns false after a syntax error.
func (s *jsonScan) readToken() (json.Token, bool) {
	before := s.dec.InputOffset()
	token, err := s.dec.Token()
	if err != nil {
		s.syntaxFault(err)
		return nil, false
	}
	if _, isText := token.(string); isText {
		if reason := invalidEscape(s.body[before:s.dec.InputOffset()]); reason != "" {
			s.fault(faultEncoding, "a string contains %s", reason)
		}
	}
	return token, true
}

// syntaxFault adds the fault for a syntax error of the JSON decoder.
func (s *jsonScan) syntaxFault(err error) {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		s.fault(faultSyntax, "the JSON of the body ends too early")
	case errors.As(err, &syntax):
		s.fault(faultSyntax, "the body is not JSON: %s, at byte %d", syntax.Error(), syntax.Offset)
	default:
		s.fault(faultSyntax, "the body is not JSON")
	}
}

// invalidEscape describes the first escape in a JSON string that is a NUL character or half of a surrogate pair. raw is the string as sent, with
// quotes. It returns "" if there is no such escape.
func invalidEscape(raw []byte) string {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if i >= len(raw) || raw[i] != 'u' {
			continue
		}
		switch r := parseEscape(raw[i:]); {
		case r == 0:
			return "a NUL character"
		case utf16.IsSurrogate(r):
			i += 4
			if i+2 >= len(raw) || raw[i+1] != '\\' || utf16.DecodeRune(r, parseEscape(raw[i+2:])) == utf8.RuneError {
				return "half of a surrogate pair"
			}
			i += 2
		}
	}
	return ""
}

// parseEscape returns the character of an escape of the form uXXXX at the start of raw. It returns -1 if raw does not start with such an escape.
func parseEscape(raw []byte) rune {
	if len(raw) < 5 || raw[0] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(raw[1:5]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// jsonPointer returns the JSON pointer (RFC 6901) of a path, cut to maxPlace characters.
func jsonPointer(path []string) string {
	var pointer strings.Builder
	for _, name := range path {
		if pointer.Len() > utf8.UTFMax*maxPlace {
			break
		}
		pointer.WriteByte('/')
		pointer.WriteString(escapePointer(name))
	}
	return truncatePlace(pointer.String())
}

// pointerEscapes escapes a name for a JSON pointer. It also replaces NUL characters, which responses must not contain.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1", "\x00", "\ufffd")

// escapePointer escapes the name of a member for a JSON pointer.
func escapePointer(name string) string { return pointerEscapes.Replace(name) }

// maxPlace is the maximum length, in characters, of the JSON pointer or name that says where a fault is.
const maxPlace = 500

// truncatePlace cuts s to maxPlace characters. If it cuts s, the last character is ….
func truncatePlace(s string) string {
	if head, longer := firstRunes(s, maxPlace); longer {
		head, _ = firstRunes(head, maxPlace-1)
		return head + "…"
	}
	return s
}

// quote returns a text from a request for an error message: in quotes, escaped, and cut to 100 characters.
func quote(s string) string {
	const maxQuoted = 100
	head, longer := firstRunes(s, maxQuoted)
	if longer {
		head += "…"
	}
	return strconv.Quote(head)
}

// firstRunes returns the first n characters of s. longer is true if s has more characters.
func firstRunes(s string, n int) (head string, longer bool) {
	for i := range s {
		if n == 0 {
			return s[:i], true
		}
		n--
	}
	return s, false
}

// checkQuery parses the query of a URL and returns its valid parameters and its faults, maxFaults at most. Unlike net/url, it reports pairs with
// wrong syntax instead of dropping them. If a filter were dropped, the list would contain too much. If an array parameter has too many entries,
// checkQuery adds a fault and does not return the parameter.
func checkQuery(raw string, op *operation) (url.Values, []api.Fault) {
	values := url.Values{}
	var faults []api.Fault
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		if len(faults) == maxFaults {
			break
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		if strings.Contains(pair, ";") {
			faults = append(faults, queryFault(quoteName(rawName), faultSyntax,
				"%s contains a semicolon; pairs are separated by &, and a semicolon in a value is written %%3B", quote(pair)))
			continue
		}
		name, nameErr := url.QueryUnescape(rawName)
		value, valueErr := url.QueryUnescape(rawValue)
		switch {
		case nameErr != nil || valueErr != nil:
			faults = append(faults, queryFault(quoteName(rawName), faultSyntax, "%s is not percent-encoded correctly; a %% itself is written %%25", quote(pair)))
		case op.query[name] == nil:
			faults = append(faults, queryFault(quoteName(name), faultUnknownParameter, "%s is not a parameter of this operation; %s", quote(name), allowedParameters(op)))
		case invalidText(value) != "":
			faults = append(faults, queryFault(name, faultEncoding, "%s contains %s", name, invalidText(value)))
		case tooManyEntries(op.query[name], value):
			faults = append(faults, queryFault(name, faultMaxItems, "%s must have at most %d entries, not %d",
				name, *op.query[name].Schema.Value.MaxItems, 1+strings.Count(value, ",")))
		case values.Has(name):
			faults = append(faults, queryFault(name, faultRepeated, "%s is given more than once; give it once%s", name, separatorHint(op, name)))
		default:
			values.Set(name, value)
		}
	}
	return values, faults
}

// tooManyEntries returns true if value, whose entries are separated by commas, has more entries than the schema of the parameter allows.
func tooManyEntries(p *openapi3.Parameter, value string) bool {
	most := p.Schema.Value.MaxItems
	return most != nil && strings.Count(value, ",") >= int(*most) //nolint:gosec // the contract has only small values of maxItems
}

// allowedParameters returns the end of an error message that lists the query parameters of an operation, such as "it takes limit, page".
func allowedParameters(op *operation) string {
	if len(op.query) == 0 {
		return "it takes none"
	}
	return "it takes " + strings.Join(op.queryNames(), ", ")
}

// separatorHint returns the end of an error message that says how to send several values of an array parameter. It returns "" for any other
// parameter.
func separatorHint(op *operation, name string) string {
	if op.query[name].Schema.Value.Type.Is("array") {
		return ", its values separated by commas"
	}
	return ""
}

// quoteName returns the name of a parameter unchanged, so that programs can compare it. It returns quote(name) if the name is too long or contains
// characters that need escaping.
func quoteName(name string) string {
	if q := quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}

// invalidText returns "a NUL character" or "invalid UTF-8" if s contains it, and otherwise "". PostgreSQL refuses NUL characters in text. Invalid
// UTF-8 would be changed when it is stored.
func invalidText(s string) string {
	switch {
	case strings.ContainsRune(s, 0):
		return "a NUL character"
	case !utf8.ValidString(s):
		return "invalid UTF-8"
	}
	return ""
}
