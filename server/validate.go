package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/internal/words"
)

// Codes of faults in requests that violate the OpenAPI contract. For other schema keywords, the
// code is the keyword in snake case, such as min_length.
const (
	faultRequired      = "required"
	faultUnknownMember = "unknown_member"
	faultType          = "type"
	faultFormat        = "format"
	faultEmpty         = "empty"
)

// validate is a middleware that checks requests against the OpenAPI contract. An invalid request
// gets status 400, 413 or 415. The operations check rules that a schema cannot express.
func (s *Server) validate(c echo.Context, op *operation, next echo.HandlerFunc) error {
	r := c.Request()
	state := stateFrom(r.Context())
	if faults := toolArgumentFaults(r); len(faults) > 0 {
		return invalidRequest(faults...)
	}
	joinHeaderLines(r.Header, op.headers)
	path, pathFaults := pathParams(c, op)
	query, queryFaults := checkQuery(r.URL.RawQuery, op)
	r.URL.RawQuery = query.Encode() // the generated code expects an array as one text, in which commas separate the values
	bodyFaults, err := checkBody(r, op, state.body)
	if err != nil {
		return err
	}
	faults := slices.Concat(pathFaults, queryFaults, bodyFaults)
	// A body with a forbidden character is still valid JSON, so its other faults can be found too.
	isJSON := !slices.ContainsFunc(bodyFaults, func(f api.Fault) bool { return f.Code != faultCharacter })
	value, contractFaults := checkContract(r, op, path, query, state.body, isJSON)
	if faults = append(faults, removeFaultsOfSameValues(contractFaults, faults)...); len(faults) > 0 {
		return invalidRequest(faults...)
	}
	if op.hasBody {
		state.decodedBody = value
		r.Body = io.NopCloser(bytes.NewReader(state.body))
	}
	return next(c)
}

// removeFaultsOfSameValues removes from `faults` every fault of a parameter or member that also has a fault in `earlier`.
// For example, invalid percent-encoding must not also be reported as a missing parameter. It keeps the faults of the entries of a parameter that has
// too many entries.
func removeFaultsOfSameValues(faults, earlier []api.Fault) []api.Fault {
	if len(earlier) == 0 {
		return faults
	}
	same := func(a, b *string) bool { return a != nil && b != nil && *a == *b }
	return slices.DeleteFunc(faults, func(f api.Fault) bool {
		return slices.ContainsFunc(earlier, func(e api.Fault) bool {
			return e.Location == f.Location && (same(e.Name, f.Name) && e.Code != faultMaxItems || same(e.Pointer, f.Pointer))
		})
	})
}

// joinHeaderLines joins the lines of each given header field with commas. The joined line has the
// same meaning (RFC 9110, section 5.3).
func joinHeaderLines(h http.Header, names []string) {
	for _, name := range names {
		if lines := h.Values(name); len(lines) > 1 {
			h.Set(name, strings.Join(lines, ", "))
		}
	}
}

// pathParams returns the decoded path parameters by name, and faults for invalid values.
func pathParams(c echo.Context, op *operation) (map[string]string, []api.Fault) {
	params := make(map[string]string, len(op.path))
	var faults []api.Fault
	for _, name := range op.path {
		value := c.Param(name)
		// The web framework echo returns percent-encoded parameters if URL.RawPath is set.
		if c.Request().URL.RawPath != "" {
			decoded, err := url.PathUnescape(value)
			if err != nil {
				faults = append(faults, namedFault(api.FaultLocationPath, name, faultSyntax, "%s is not percent-encoded correctly", name))
				continue
			}
			value = decoded
		}
		if reason := describeInvalidText(value); reason != "" {
			faults = append(faults, namedFault(api.FaultLocationPath, name, faultEncoding, "%s contains %s", name, reason))
		}
		params[name] = value
	}
	return params, faults
}

// readAll reads a request body to its end.
func readAll(body io.Reader) ([]byte, error) {
	content, err := io.ReadAll(body)
	if err == nil {
		return content, nil
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		// This error gets status 413.
		return nil, err
	}
	return nil, &Error{Code: CodeInvalidRequest, Detail: "The body could not be read to its end.", Cause: err}
}

// checkBody checks the Content-Type, the Content-Encoding and the JSON syntax of a request with the given body. It checks nothing if the
// operation defines no request body.
func checkBody(r *http.Request, op *operation, body []byte) ([]api.Fault, error) {
	if !op.hasBody {
		return nil, nil
	}
	if len(body) == 0 {
		if op.route.Operation.RequestBody.Value.Required {
			return []api.Fault{bodyFault("", faultRequired, "this operation needs a JSON body")}, nil
		}
		return nil, nil
	}
	if e := r.Header.Get(echo.HeaderContentEncoding); e != "" && !strings.EqualFold(e, "identity") {
		return nil, problem(CodeUnsupportedMedia, "The Content-Encoding %s is not supported. Send the body uncompressed, without this header.", words.Quote(e))
	}
	sent := r.Header.Get(echo.HeaderContentType)
	if media, _, err := mime.ParseMediaType(sent); err != nil || media != echo.MIMEApplicationJSON {
		if sent == "" {
			return nil, problem(CodeUnsupportedMedia, "Content-Type is missing; it must be application/json.")
		}
		return nil, problem(CodeUnsupportedMedia, "Content-Type must be application/json, not %s.", words.Quote(sent))
	}
	r.Header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON) // this removes parameters such as charset, because checkContract would refuse them
	return checkJSON(r.Context(), body, op.bodySchema())
}

// checkContract validates a request with the library kin-openapi, and returns the decoded body and
// the faults. It does not validate the body if withBody is false or the body is empty.
func checkContract(r *http.Request, op *operation, path map[string]string, query url.Values, body []byte, withBody bool) (any, []api.Fault) {
	clone := *r // ValidateRequest replaces the body of its request, so it gets a copy of the request
	clone.Body = io.NopCloser(bytes.NewReader(body))
	clone.GetBody = nil
	// ValidateRequest reports every fault, also very many. So checkQuery and checkJSON, which run before it,
	// refuse requests with too many values.
	err := openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request: &clone, PathParams: path, QueryParams: query, Route: op.route,
		Options: &openapi3filter.Options{
			MultiError:              true,
			KeepValidatedValue:      true,
			SkipSettingDefaults:     true, // with defaults, a PATCH request would change values that the caller did not send
			ExcludeRequestBody:      !op.hasBody || !withBody || len(body) == 0,
			AuthenticationFunc:      openapi3filter.NoopAuthenticationFunc, // the middleware authenticate has already checked the token
			SchemaValidationOptions: stringFormats,
		}})
	var found faultCollector
	found.addError(err, nil)
	if validated, ok := clone.Body.(interface{ ValidatedValue() any }); ok {
		return validated.ValidatedValue(), found.faults
	}
	return nil, found.faults
}

// faultCollector converts errors of the library kin-openapi into faults for the caller. It keeps one fault for each value, and at most maxFaults
// faults. A value is a parameter, an entry of a parameter, or a member of the body.
type faultCollector struct {
	faults []api.Fault
	at     map[string]int // for each value with a fault, the index of the fault in faults
	full   bool           // true if a fault was dropped because maxFaults faults were already found; the search can then stop
}

// addFault adds a fault of a parameter, of an entry of a parameter, or of a member of the body, up to maxFaults faults. If the value already has a fault,
// addFault keeps only one of the two faults. The path leads from a parameter to its entry. It is empty for a fault of the whole parameter and for a fault
// in the body.
func (c *faultCollector) addFault(f api.Fault, path ...string) {
	place := string(f.Location)
	if f.Name != nil {
		place += " " + *f.Name + jsonPointer(path)
	}
	if f.Pointer != nil {
		place += " " + *f.Pointer
	}
	switch i, seen := c.at[place]; {
	case seen && f.Code == faultFormat:
		// A fault with the code "format" explains the error better than the earlier fault.
		c.faults[i] = f
	case seen:
	case len(c.faults) == maxFaults:
		c.full = true
	default:
		if c.at == nil {
			c.at = map[string]int{}
		}
		c.at[place] = len(c.faults)
		c.faults = append(c.faults, f)
	}
}

// addError adds the faults that err and its wrapped errors describe. param is the invalid request
// parameter, or nil if the error is in the request body.
func (c *faultCollector) addError(err error, param *openapi3.Parameter) {
	switch e := err.(type) { //nolint:errorlint // not errors.As, because each wrapped error is handled separately
	case nil:
	case openapi3.MultiError:
		for _, inner := range e {
			if c.full {
				return
			}
			c.addError(inner, param)
		}
	case *openapi3filter.RequestError:
		switch {
		case errors.Is(e.Err, openapi3filter.ErrInvalidRequired):
			c.addFault(fault(e.Parameter, nil, faultRequired, "is missing"))
		case errors.Is(e.Err, openapi3filter.ErrInvalidEmptyValue):
			c.addFault(fault(e.Parameter, nil, faultEmpty, "is empty; leave it out or give it a value"))
		default:
			c.addError(e.Err, e.Parameter)
		}
	case *openapi3filter.ParseError:
		if limit := violatedLimit(e, param); limit != "" {
			c.addFault(fault(param, nil, faultType, "must be %s, not %s", limit, strings.Trim(words.Quote(fmt.Sprint(e.Value)), `"`)))
			return
		}
		expected := "a value"
		if param != nil && param.Schema != nil {
			expected = typeNames(param.Schema.Value.Type.Slice())
		}
		c.addFault(fault(param, nil, faultType, "must be %s, not %s", expected, words.Quote(fmt.Sprint(e.Value))))
	case *openapi3.SchemaError:
		c.addSchemaError(e, param)
	default:
		c.addFault(fault(param, nil, faultSyntax, "cannot be read"))
	}
}

// checkValue adds the faults of a decoded JSON value, which is the body of a request or the arguments of a tool call, that violates the schema.
func (c *faultCollector) checkValue(value any, schema *openapi3.Schema) {
	c.addError(schema.VisitJSON(value, append([]openapi3.SchemaValidationOption{openapi3.MultiErrors(), openapi3.VisitAsRequest()}, stringFormats...)...), nil)
}

// addSchemaError adds the fault for a value that violates a schema keyword, such as maxLength.
// param is nil if the value is in the request body.
func (c *faultCollector) addSchemaError(e *openapi3.SchemaError, param *openapi3.Parameter) {
	path, schema := e.JSONPointer(), e.Schema
	add := func(code, format string, args ...any) {
		c.addFault(fault(param, path, code, format, args...), path...)
	}
	switch e.SchemaField {
	case "type":
		value := formatValue(e.Value)
		if schema.Format == "password" {
			value = valueKind(e.Value)
		}
		add(faultType, "must be %s, not %s", typeNames(schema.Type.Slice()), value)
	case "nullable":
		add("nullable", "must not be null")
	case "enum":
		add("enum", "must be %s, not %s", words.JoinWithOr(schema.Enum), formatValue(e.Value))
	case "minimum":
		add("minimum", "must be at least %v, not %s", *schema.Min, formatValue(e.Value))
	case "maximum":
		add("maximum", "must be at most %v, not %s", int64(*schema.Max), formatValue(e.Value))
	case "minLength":
		switch allowed := allowedText(schema); {
		case schema.MinLength == 1:
			add("min_length", "is empty")
		case allowed != "":
			add("min_length", "must be %s, not %s", allowed, formatValue(e.Value))
		default: // the message does not contain the value, because it can be a password
			add("min_length", "must have at least %s, not %d", countWithNoun(int(schema.MinLength), "character"), textLength(e.Value)) //nolint:gosec // no overflow, because the limits in the contract are small
		}
	case "maxLength":
		add(faultMaxLength, "must have at most %s, not %d", countWithNoun(int(*schema.MaxLength), "character"), textLength(e.Value)) //nolint:gosec // no overflow, because the limits in the contract are small
	case "minItems":
		add("min_items", "must have at least %s, not %d", countWithNoun(int(schema.MinItems), "entry"), arrayLength(e.Value)) //nolint:gosec // no overflow, because the limits in the contract are small
	case "maxItems":
		add(faultMaxItems, "must have at most %d entries, not %d", *schema.MaxItems, arrayLength(e.Value))
	case "pattern":
		add("pattern", "must be %s, not %s", cmp.Or(allowedText(schema), "a text without NUL characters"), formatValue(e.Value))
	case "format":
		if text := formatValue(e.Value); schema.Type.Is("integer") {
			add(faultType, "must be %s, not %s", violatedBound(schema, text), text)
			return
		}
		add(faultFormat, "must be %s, not %s", describeStringFormat(schema.Format), formatValue(e.Value))
	case "required":
		add(faultRequired, "is missing")
	case "properties":
		// The name of the unknown member is taken from the text of e.Reason, because e has no field with the name.
		name, err := strconv.Unquote(strings.TrimSuffix(strings.TrimPrefix(e.Reason, "property "), " is unsupported"))
		if err != nil {
			name = e.Reason
		}
		path = append(path, name)
		if len(schema.Properties) == 0 {
			add(faultUnknownMember, "is not a known member; the object must be empty")
			return
		}
		add(faultUnknownMember, "is not a known member; the known members are %s", strings.Join(slices.Sorted(maps.Keys(schema.Properties)), ", "))
	default:
		add(strings.ToLower(e.SchemaField), "does not match the schema")
	}
}

// allowedText describes the texts that a schema's pattern allows, to complete "must be" in an error
// message. The result is "" if the pattern only forbids NUL characters.
func allowedText(schema *openapi3.Schema) string {
	allowed, _ := schema.Extensions["x-allowed"].(string)
	return allowed
}

// violatedLimit returns the limit that an integer parameter violates, such as "at most 2147483647".
// It returns "" for every other error.
func violatedLimit(e *openapi3filter.ParseError, param *openapi3.Parameter) string {
	if !errors.Is(e.RootCause(), strconv.ErrRange) || param == nil || param.Schema == nil || !param.Schema.Value.Type.Is("integer") {
		return ""
	}
	return violatedBound(param.Schema.Value, fmt.Sprint(e.Value))
}

// violatedBound returns the bound of an integer schema that a number violates, such as "at most 2147483647". The number is outside the range
// of the schema's format.
func violatedBound(schema *openapi3.Schema, number string) string {
	lowest, highest := int64(math.MinInt64), int64(math.MaxInt64)
	if schema.Format == "int32" {
		lowest, highest = math.MinInt32, math.MaxInt32
	}
	if schema.Min != nil {
		lowest = int64(*schema.Min)
	}
	if schema.Max != nil {
		highest = int64(*schema.Max)
	}
	if strings.HasPrefix(number, "-") {
		return fmt.Sprintf("at least %d", lowest)
	}
	return fmt.Sprintf("at most %d", highest)
}

// fault returns a fault in a parameter, or in the request body if param is nil. The path leads to
// the invalid value, by member names and indexes.
func fault(param *openapi3.Parameter, path []string, code, format string, args ...any) api.Fault {
	// The detail begins with the name of the value, for example "limit is missing".
	text := fmt.Sprintf(format, args...)
	if param == nil {
		return bodyFault(jsonPointer(path), code, "%s %s", describeBodyPath(path), text)
	}
	name := param.Name
	if len(path) > 0 {
		name += ", entry " + strings.Join(path, ".") + ","
	}
	return namedFault(api.FaultLocation(param.In), param.Name, code, "%s %s", name, text)
}

// describeBodyPath describes the path to a value in the request body, for an error message. An example is "links.3". For an empty path, it
// returns "the body".
func describeBodyPath(path []string) string {
	if len(path) == 0 {
		return "the body"
	}
	return strings.Trim(words.Quote(strings.Join(path, ".")), `"`)
}

// typeNames describes JSON types for an error message, such as "a string or a whole number".
func typeNames(types []string) string {
	words := map[string]string{"integer": "a whole number", "number": "a number", "boolean": "true or false",
		"string": "a string", "array": "an array", "object": "an object"}
	var out []string
	for _, t := range types {
		out = append(out, words[t])
	}
	return strings.Join(out, " or ")
}

// describeStringFormat describes a string format of the OpenAPI contract for an error message, such as "a UUID such as …".
func describeStringFormat(format string) string {
	switch format {
	case "uuid":
		return "a UUID such as 01938c32-8f07-7a46-93be-1d2c3b4a5968"
	case "date":
		return fmt.Sprintf("a date that exists, YYYY-MM-DD, in the years %d to %d", firstYear, lastYear)
	case "date-time":
		return fmt.Sprintf("a time with an offset, such as 2026-02-22T00:31:05Z, in the years %d to %d (in a query, write + as %%2B)", firstYear, lastYear)
	}
	return "a " + format
}

// valueKind describes the JSON type of a decoded value for an error message, such as "a string".
func valueKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// textLength returns the number of characters of a decoded JSON string. It returns 0 if v is not a string.
func textLength(v any) int {
	text, _ := v.(string)
	return utf8.RuneCountInString(text)
}

// arrayLength returns the number of entries of a decoded JSON array. It returns 0 if v is not an array.
func arrayLength(v any) int {
	if a, ok := v.([]any); ok {
		return len(a)
	}
	return 0
}

// formatValue returns the text of a decoded JSON value for an error message. The text is the JSON of the value, or only the type of an array or
// object.
func formatValue(v any) string {
	switch v := v.(type) {
	case string:
		return words.Quote(v)
	case []any, map[string]any:
		return valueKind(v)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return valueKind(v)
	}
	return strings.Trim(words.Quote(string(out)), `"`)
}
