package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/reeltally/reeltally/gen/api"
)

// Codes of the faults that are found here.
const (
	faultSyntax           = "syntax"
	faultEncoding         = "encoding"
	faultDuplicateMember  = "duplicate_member"
	faultTrailingText     = "trailing_text"
	faultUnknownParameter = "unknown_parameter"
	faultRepeated         = "repeated_parameter"
)

// maxDepth is how deep arrays and objects may nest.
const maxDepth = 64

// checkJSON finds what encoding/json lets pass: duplicate members, of which it takes the last; text after the value; NUL,
// half surrogate pairs and invalid UTF-8, which it replaces silently. No faults mean that body is one JSON value.
func checkJSON(body []byte) []api.Fault {
	if !utf8.Valid(body) {
		return []api.Fault{bodyFault("", faultEncoding, "the body is not valid UTF-8")}
	}
	s := &jsonScan{body: body, dec: json.NewDecoder(bytes.NewReader(body))}
	s.dec.UseNumber()
	if !s.value("", 0) {
		return s.faults
	}
	if rest := bytes.TrimLeft(body[s.dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		s.fault("", faultTrailingText, "there is text after the JSON value, from byte %d on", len(body)-len(rest))
	}
	return s.faults
}

type jsonScan struct {
	body   []byte
	dec    *json.Decoder
	faults []api.Fault
}

func (s *jsonScan) fault(pointer, code, format string, args ...any) {
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, bodyFault(cut(pointer), code, format, args...))
	}
}

// value scans one value and says whether the scan can go on.
func (s *jsonScan) value(pointer string, depth int) bool {
	if depth > maxDepth {
		s.fault(pointer, faultSyntax, "the body nests deeper than %d levels", maxDepth)
		return false
	}
	token, ok := s.token(pointer)
	if !ok {
		return false
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return true
	}
	if delim == '[' {
		for i := 0; s.dec.More(); i++ {
			if !s.value(pointer+"/"+strconv.Itoa(i), depth+1) {
				return false
			}
		}
	} else if !s.members(pointer, depth) {
		return false
	}
	_, ok = s.token(pointer)
	return ok
}

func (s *jsonScan) members(pointer string, depth int) bool {
	seen := map[string]bool{}
	for s.dec.More() {
		token, ok := s.token(pointer)
		if !ok {
			return false
		}
		name, _ := token.(string) // the decoder takes nothing else here
		at := pointer + "/" + escapePointer(name)
		if seen[name] {
			s.fault(at, faultDuplicateMember, "the member %s stands there twice", quote(name))
		}
		seen[name] = true
		if !s.value(at, depth+1) {
			return false
		}
	}
	return true
}

// token reads the next token and checks the text of a string as it was sent.
func (s *jsonScan) token(pointer string) (json.Token, bool) {
	before := s.dec.InputOffset()
	token, err := s.dec.Token()
	if err != nil {
		s.broken(pointer, err)
		return nil, false
	}
	if _, isText := token.(string); isText {
		if what := badEscape(s.body[before:s.dec.InputOffset()]); what != "" {
			s.fault(pointer, faultEncoding, "a string contains %s", what)
		}
	}
	return token, true
}

func (s *jsonScan) broken(pointer string, err error) {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		s.fault(pointer, faultSyntax, "the JSON of the body ends too early")
	case errors.As(err, &syntax):
		s.fault(pointer, faultSyntax, "the body is not JSON: %s, at byte %d", syntax.Error(), syntax.Offset)
	default:
		s.fault(pointer, faultSyntax, "the body is not JSON")
	}
}

// badEscape names the first NUL or half surrogate pair in a JSON string as it was sent; "" when there is none.
func badEscape(raw []byte) string {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if i >= len(raw) || raw[i] != 'u' {
			continue
		}
		switch r := escaped(raw[i:]); {
		case r == 0:
			return "a NUL character"
		case utf16.IsSurrogate(r):
			i += 4
			if i+2 >= len(raw) || raw[i+1] != '\\' || utf16.DecodeRune(r, escaped(raw[i+2:])) == utf8.RuneError {
				return "half of a surrogate pair"
			}
			i += 2
		}
	}
	return ""
}

// escaped reads uXXXX; -1 when that is not there.
func escaped(raw []byte) rune {
	if len(raw) < 5 || raw[0] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(raw[1:5]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// escapePointer writes a member's name as a part of a JSON pointer (RFC 6901). A NUL, which no answer contains, is replaced.
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "\x00", "\ufffd").Replace(name)
}

// maxPlace is how long the name of a place may be in a fault; a member's name may be as long as the body.
const maxPlace = 500

// cut shortens the name of a place.
func cut(s string) string {
	if utf8.RuneCountInString(s) <= maxPlace {
		return s
	}
	return string([]rune(s)[:maxPlace-1]) + "…"
}

// quote makes a piece of input fit for a sentence: quoted, escaped and short.
func quote(s string) string {
	const most = 100
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return strconv.Quote(s)
}

// checkQuery reads a query as strictly as it was meant: net/url drops pairs it cannot read, and with such a pair a
// filter would vanish and the caller get everything.
func checkQuery(raw string, op *operation) (url.Values, []api.Fault) {
	values := url.Values{}
	var faults []api.Fault
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
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
			faults = append(faults, queryFault(quoteName(name), faultUnknownParameter, "%s is not a parameter of this operation; %s", quote(name), known(op)))
		case badText(value) != "":
			faults = append(faults, queryFault(name, faultEncoding, "%s contains %s", name, badText(value)))
		case values.Has(name):
			faults = append(faults, queryFault(name, faultRepeated, "%s stands there more than once; give it once%s", name, separator(op, name)))
		default:
			values.Set(name, value)
		}
	}
	return values, faults
}

func known(op *operation) string {
	if len(op.query) == 0 {
		return "it takes none"
	}
	return "it takes " + strings.Join(op.queryNames(), ", ")
}

func separator(op *operation, name string) string {
	if op.query[name].Schema.Value.Type.Is("array") {
		return ", its values separated by commas"
	}
	return ""
}

// quoteName keeps a name as it is where it is plain, so that programs can compare it.
func quoteName(name string) string {
	if q := quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}

// badText names what no text may contain; "" when there is nothing of it. PostgreSQL refuses NUL in text, and invalid UTF-8
// would be stored as something else than was sent.
func badText(s string) string {
	switch {
	case strings.ContainsRune(s, 0):
		return "a NUL character"
	case !utf8.ValidString(s):
		return "invalid UTF-8"
	}
	return ""
}
