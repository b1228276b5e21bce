package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store"
)

// Codes of faults in JSON bodies and in URL queries. Callers see them in error responses.
const (
	faultSyntax           = "syntax"
	faultEncoding         = "encoding"
	faultCharacter        = "character"
	faultDuplicateMember  = "duplicate_member"
	faultTrailingText     = "trailing_text"
	faultUnknownParameter = "unknown_parameter"
	faultRepeated         = "repeated_parameter"
	faultMaxLength        = "max_length"
	faultMaxItems         = "max_items"
	faultMaxValues        = "max_values"
	faultMaxWords         = "max_words"
)

// Limits for every JSON body, in addition to its schema. All valid bodies are within these limits:
// display settings can have up to 8,200 values.
const (
	maxDepth  = 64     // maximum nesting depth of arrays and objects
	maxValues = 10_000 // maximum number of values in the body, including the values in arrays and objects
	maxName   = 500    // maximum length of the name of an object member, in bytes
)

// checkJSON checks the syntax of a JSON body more strictly than encoding/json. If there is no fault
// and no error, body is one valid JSON value. The only possible error is ctx.Err().
func checkJSON(ctx context.Context, body []byte, bodySchema *openapi3.Schema) ([]api.Fault, error) {
	if !utf8.Valid(body) {
		return []api.Fault{bodyFault("", faultEncoding, "the body is not valid UTF-8")}, nil
	}
	s := &jsonScan{ctx: ctx, body: body, schema: bodySchema, dec: json.NewDecoder(bytes.NewReader(body))}
	s.dec.UseNumber()
	if s.scanValue() {
		if rest := bytes.TrimLeft(body[s.dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
			s.addFault(faultTrailingText, "there is text after the JSON value, from byte %d on", len(body)-len(rest))
		}
	}
	return s.faults, ctx.Err()
}

// jsonScan is the state of checkJSON while it scans a JSON body.
type jsonScan struct {
	ctx    context.Context
	body   []byte
	schema *openapi3.Schema // schema of the body
	dec    *json.Decoder
	path   []pathStep // path from the root of the body to the value that is being scanned
	values int        // number of values scanned so far
	faults []api.Fault
}

// pathStep is one step of the path to a JSON value: from an array to one of its entries, or from an object to one of its members.
type pathStep struct {
	name  string // name of an object member; "" for an entry of an array
	index int    // index of an array entry; -1 for a member of an object
}

// addFault adds a fault of the value that is being scanned. If maxFaults faults were already found, it does nothing.
func (s *jsonScan) addFault(code, format string, args ...any) {
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, bodyFault(jsonPointer(s.pathNames()), code, format, args...))
	}
}

// pathNames returns the path to the value that is being scanned, as the names of members and the indexes of entries.
func (s *jsonScan) pathNames() []string {
	names := make([]string, len(s.path))
	for i, step := range s.path {
		if names[i] = step.name; step.index >= 0 {
			names[i] = strconv.Itoa(step.index)
		}
	}
	return names
}

// scanValue scans the next JSON value and adds the faults that it finds. It returns false if the scan must end.
func (s *jsonScan) scanValue() bool {
	depth := len(s.path)
	if s.ctx.Err() != nil {
		return false
	}
	if depth > maxDepth {
		s.addFault(faultSyntax, "the body nests deeper than %d levels", maxDepth)
		return false
	}
	if s.values++; s.values > maxValues {
		s.addValueLimitFault()
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
		if text, isText := token.(string); isText {
			s.checkCharacters(text)
		}
		return true
	}
	if !ok {
		return false
	}
	s.path = s.path[:depth]
	_, ok = s.readToken() // the token is the closing bracket of the array or the closing brace of the object
	return ok
}

// checkCharacters adds a fault if the schema of a text has the extension x-text and the text has a character that x-text forbids. The value of x-text
// is "line" if the text is shown on one line, and "lines" if the text can have several lines. checkCharacters ignores NUL characters, because another
// check refuses them.
func (s *jsonScan) checkCharacters(text string) {
	schema := s.schema
	for _, step := range s.path {
		if schema == nil {
			return
		}
		schema = childSchema(schema, step)
	}
	if schema == nil || schema.Extensions["x-text"] == nil || strings.ContainsRune(text, 0) {
		return
	}
	if found := store.ForbiddenCharacter(text, schema.Extensions["x-text"] == "lines"); found != "" {
		s.addFault(faultCharacter, "%s contains %s, which is not allowed there", describeBodyPath(s.pathNames()), found)
	}
}

// childSchema returns the schema of an entry or a member of a value with the given schema, or nil if the contract does not define it.
func childSchema(schema *openapi3.Schema, step pathStep) *openapi3.Schema {
	child := schema.Items
	if step.index < 0 {
		child = schema.Properties[step.name]
	}
	if child == nil {
		return nil
	}
	return child.Value
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
		name, _ := token.(string) // no failure is possible, because the decoder returns the name of a member as a string
		s.path = append(s.path, pathStep{name: name, index: -1})
		if len(name) > maxName {
			s.addFault(faultMaxLength, "the name of a member must have at most %d bytes, not %d", maxName, len(name))
			return false
		}
		if seen[name] {
			s.addFault(faultDuplicateMember, "the member %s occurs twice", words.Quote(name))
		}
		seen[name] = true
		if !s.scanValue() {
			return false
		}
	}
	return true
}

// addValueLimitFault adds a fault for a body with too many values. The fault is about the outermost array that
// has more entries than its schema allows or, without such an array, about the whole body.
func (s *jsonScan) addValueLimitFault() {
	schema := s.schema
	for i, step := range s.path {
		if most := schema.MaxItems; most != nil && step.index >= 0 && uint64(step.index) >= *most {
			s.path = s.path[:i]
			s.addFault(faultMaxItems, "%s must have at most %d entries; it has %d or more", describeBodyPath(s.pathNames()), *most, step.index+1)
			return
		}
		if schema = childSchema(schema, step); schema == nil {
			break
		}
	}
	s.path = nil
	s.addFault(faultMaxValues, "the body must have at most %d values, including the values in arrays and objects", maxValues)
}

// readToken reads the next JSON token. It adds a fault if the token is a string with an invalid escape. It returns false after a syntax
// error.
func (s *jsonScan) readToken() (json.Token, bool) {
	before := s.dec.InputOffset()
	token, err := s.dec.Token()
	if err != nil {
		s.addSyntaxFault(err)
		return nil, false
	}
	if _, isText := token.(string); isText {
		if reason := invalidEscape(s.body[before:s.dec.InputOffset()]); reason != "" {
			s.addFault(faultEncoding, "a string contains %s", reason)
		}
	}
	return token, true
}

// addSyntaxFault adds a fault for err, a syntax error that the JSON decoder found.
func (s *jsonScan) addSyntaxFault(err error) {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		s.addFault(faultSyntax, "the JSON of the body ends too early")
	case errors.As(err, &syntax):
		s.addFault(faultSyntax, "the body is not JSON: %s, at byte %d", syntax.Error(), syntax.Offset)
	default:
		s.addFault(faultSyntax, "the body is not JSON")
	}
}

// invalidEscape describes the first invalid escape in a JSON string. It returns "" if all escapes
// are valid. raw includes the quotes of the string.
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

// parseEscape returns the character of an escape such as u00e9 at the start of raw. It returns -1 if raw does not start with u and four
// hexadecimal digits.
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

// jsonPointer returns the JSON pointer (RFC 6901) of a path, such as "/links/3". If it has more than
// maxPlace characters, it is cut to maxPlace characters, of which the last is "…".
func jsonPointer(path []string) string {
	var pointer strings.Builder
	for _, name := range path {
		if pointer.Len() > utf8.UTFMax*maxPlace {
			break
		}
		pointer.WriteByte('/')
		pointer.WriteString(escapePointer(name))
	}
	return words.Truncate(pointer.String(), maxPlace)
}

// pointerEscaper escapes the name of a member for a JSON pointer. It also replaces NUL characters, which responses must not contain.
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1", "\x00", "\ufffd")

// escapePointer escapes the name of a member for a JSON pointer: "a/b" becomes "a~1b".
func escapePointer(name string) string { return pointerEscaper.Replace(name) }

// maxPlace is the maximum length of a JSON pointer in an error response, in characters. It also
// limits the error texts of the MCP handler.
const maxPlace = 500

// checkQuery parses the query of a URL. It returns the valid parameters and at most maxFaults
// faults. Wrong syntax, which net/url silently drops, is a fault.
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
				"%s contains a semicolon; pairs are separated by &, and a semicolon in a value is written %%3B", words.Quote(pair)))
			continue
		}
		name, nameErr := url.QueryUnescape(rawName)
		value, valueErr := url.QueryUnescape(rawValue)
		switch {
		case nameErr != nil || valueErr != nil:
			faults = append(faults, queryFault(quoteName(rawName), faultSyntax, "%s is not percent-encoded correctly; a %% itself is written %%25", words.Quote(pair)))
		case op.query[name] == nil:
			faults = append(faults, queryFault(quoteName(name), faultUnknownParameter, "%s is not a parameter of this operation; %s", words.Quote(name), allowedParameters(op)))
		case describeInvalidText(value) != "":
			faults = append(faults, queryFault(name, faultEncoding, "%s contains %s", name, describeInvalidText(value)))
		case values.Has(name) && !isArray(op.query[name]):
			faults = append(faults, queryFault(name, faultRepeated, "%s is given more than once; give it once", name))
		default:
			if values.Has(name) {
				// Some generated clients send each entry of an array as a parameter of its own.
				value = values.Get(name) + "," + value
			}
			if hasTooManyEntries(op.query[name], value) {
				most := int(*op.query[name].Schema.Value.MaxItems) //nolint:gosec // no overflow, because the limits in the contract are small
				faults = append(faults, queryFault(name, faultMaxItems, "%s must have at most %d entries, not %d", name, most, 1+strings.Count(value, ",")))
				value = strings.Join(strings.SplitN(value, ",", most+1)[:most], ",") // checkContract checks the first entries, so that their faults are reported too
			}
			values.Set(name, value)
		}
	}
	if len(faults) == 0 {
		faults = checkBooleans(values, op)
	}
	return values, faults
}

// checkBooleans returns a fault for each boolean parameter whose value is not true or false. It also accepts True and False, as Python writes them. The
// library kin-openapi would also accept 1, t and other texts.
func checkBooleans(values url.Values, op *operation) []api.Fault {
	var faults []api.Fault
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values.Get(name)
		if op.query[name].Schema.Value.Type.Is("boolean") && value != "" && !strings.EqualFold(value, "true") && !strings.EqualFold(value, "false") {
			faults = append(faults, queryFault(name, faultType, "%s must be true or false, not %s", name, words.Quote(value)))
		}
	}
	return faults
}

// hasTooManyEntries returns true if the value of a query parameter has more entries than the parameter's schema allows. The entries are
// separated by commas.
func hasTooManyEntries(p *openapi3.Parameter, value string) bool {
	most := p.Schema.Value.MaxItems
	return most != nil && strings.Count(value, ",") >= int(*most) //nolint:gosec // no overflow, because all values of maxItems in the contract are small
}

// allowedParameters returns a list of an operation's query parameters for an error message, such as "it takes limit, page".
func allowedParameters(op *operation) string {
	if len(op.query) == 0 {
		return "it takes no query parameters"
	}
	return "it takes " + strings.Join(slices.Sorted(maps.Keys(op.query)), ", ")
}

func isArray(p *openapi3.Parameter) bool { return p.Schema.Value.Type.Is("array") }

// quoteName returns the name of a parameter for an error response. It returns words.Quote(name) only
// if the name is too long or needs escaping.
func quoteName(name string) string {
	if q := words.Quote(name); q != `"`+name+`"` {
		return q
	}
	// The name is unchanged, so that programs can compare it with their parameters.
	return name
}

// describeInvalidText returns "a NUL character" or "invalid UTF-8" if s contains one of these
// faults, and "" if s is valid.
func describeInvalidText(s string) string {
	switch {
	case strings.ContainsRune(s, 0):
		// PostgreSQL refuses NUL characters in text.
		return "a NUL character"
	case !utf8.ValidString(s):
		// Invalid UTF-8 would be changed when it is stored.
		return "invalid UTF-8"
	}
	return ""
}
