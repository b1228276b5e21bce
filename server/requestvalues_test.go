package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
)

// verbatim is a JSON text that renderJSON copies unchanged into a body. Requests need it for values that Go cannot represent, such as very
// long numbers.
type verbatim string

// suspiciousTexts contains texts that often reveal bugs, such as special characters and SQL.
var suspiciousTexts = []string{
	// Responses can repeat these texts, so none of them may contain one of the internalTexts.
	"Launch", "summer launch", "Ünïcødé", "日本語", "😀", "👩‍👩‍👧‍👦", "مرحبا", "e\u0301", "ﬁ", "İ", "ß", "a\u200bb", "\u202eabc", "\u00a0", "a\u00a0b", "a\tb", "a\nb", "\r\n",
	" padded ", "a'b", `"quoted"`, `back\slash`, "100%", "%41", "%2F", "_", "%", "'; DROP TABLE videos; --", "<script>alert(1)</script>", "{{7*7}}", "${x}",
	"../../etc/passwd", "..", ".", "bulk", "null", "true", "0", "-1", "1e3", "a,b", ",", "#tag", "##", "@name", "@", "name~123", "~", "*", "a;b", "a&b=c", "a+b", "\x7f", "\ufeff", "\ufffd",
	"rt_nonsense", "https://", "https://www.tiktok.com", "https://example.test/video/1", "mailto:x@example.test", "urn:uuid:01938c32-8f07-7a46-93be-1d2c3b4a5968",
	"{01938c32-8f07-7a46-93be-1d2c3b4a5968}", "01938c328f077a4693be1d2c3b4a5968", "01938c32-8f07-7a46-93be-1d2c3b4a596", "01938c32-8f07-7a46-93be-1d2c3b4a596g", "2026-01-01", "2026-01-01T00:00:00Z",
}

// alphabets contains sets of characters. Each random text consists of characters of one set.
var alphabets = [][]rune{[]rune("abcxyz0189"), []rune("äöüßéñ"), []rune("日本語漢字"), []rune("😀🎬👍"), []rune("aé日😀 -_'\"<>&%#@~,")}

// Each list contains invalid values of one type. For example, no text in notDates is a valid date. The texts of a list are invalid for
// different reasons.
var (
	notDates = []string{"2026-02-30", "2026-13-01", "2026-00-10", "0000-01-01", "1969-12-31", "3000-01-01", "9999-12-31", "2026-1-1", "20260101", "2026-01-01T00:00:00Z", "yesterday", "294277-01-01", "２０２６-01-01"}
	notTimes = []string{"2026-02-22", "2026-02-22T00:31:05", "2026-02-30T00:00:00Z", "2026-02-22T25:00:00Z", "2026-02-22T00:31:05+99:99", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "294277-01-01T00:00:00Z", "2026-02-22 00:31:05+00:00", "1969-12-31T23:59:59Z", "2026-02-22T1:00:00+00:00", "2026-02-22T01:00:00,5Z", "1700000000"}
	notUUIDs = []string{"", "1", "null", "{01938c32-8f07-7a46-93be-1d2c3b4a5968}", "urn:uuid:01938c32-8f07-7a46-93be-1d2c3b4a5968", "01938c328f077a4693be1d2c3b4a5968", "01938c32-8f07-7a46-93be-1d2c3b4a596", "01938c32-8f07-7a46-93be-1d2c3b4a59688", "01938c32-8f07-7a46-93be-1d2c3b4a596g", "01938c32_8f07_7a46_93be_1d2c3b4a5968", "０1938c32-8f07-7a46-93be-1d2c3b4a5968", tiktokLink}
	notWhole = []string{"1.5", "1.0", "1e3", "NaN", "Infinity", "0x10", "1_000", "ten", "１", "9223372036854775808", "-9223372036854775809", "99999999999999999999999999", "1 ", "--1", "null", "[1]"}
	notBools = []string{"yes", "no", "0", "1", "2", "t", "null", "truee", "wahr", "[]", "-1"}
)

// random is a random number generator with methods that make random decisions and return random texts.
type random struct{ *rand.Rand }

// chance returns true with a probability of the given percentage.
func (d random) chance(percent int) bool { return d.IntN(100) < percent }

// randomElement returns a random element of values.
func randomElement[T any](d random, values []T) T { return values[d.IntN(len(values))] }

// text returns a random text of n characters. All characters are from the same element of alphabets.
func (d random) text(n int) string {
	alphabet := randomElement(d, alphabets)
	out := make([]rune, n)
	for i := range out {
		out[i] = randomElement(d, alphabet)
	}
	return string(out)
}

// patterns is a cache of compiled regular expressions of the contract. The mutex must be locked while the cache is used.
var patterns = struct {
	sync.Mutex
	compiled map[string]*regexp.Regexp
}{compiled: map[string]*regexp.Regexp{}}

// matchesPattern returns true if a text matches a regular expression of the contract.
func matchesPattern(pattern, text string) bool {
	patterns.Lock()
	defer patterns.Unlock()
	if patterns.compiled[pattern] == nil {
		patterns.compiled[pattern] = regexp.MustCompile(pattern)
	}
	return patterns.compiled[pattern].MatchString(text)
}

// matchesSchema returns true if a text matches a string schema. It does not use the validation library of the server, so that the tests can
// find errors in the library.
func matchesSchema(s *openapi3.Schema, text string) bool {
	n := uint64(utf8.RuneCountInString(text))
	if n < s.MinLength || s.MaxLength != nil && n > *s.MaxLength || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return false
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, any(text)) {
		return false
	}
	if s.Pattern != "" && !matchesPattern(s.Pattern, text) {
		return false
	}
	if kind := s.Extensions["x-text"]; kind != nil && hasForbiddenCharacter(text, kind == "lines") {
		return false
	}
	switch s.Format {
	case "uuid":
		return uuidPattern.MatchString(text)
	case "date":
		return isAllowedTime(time.Parse(time.DateOnly, text))
	case "date-time":
		return !slices.Contains(notTimes, text) && isAllowedTime(time.Parse(time.RFC3339, text))
	}
	return true
}

// forbiddenInText matches a character that a text with the extension x-text must not contain.
var forbiddenInText = regexp.MustCompile(`[\p{Cc}\x{2028}\x{2029}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)

// hasForbiddenCharacter returns true if text has a character that its schema's extension x-text forbids.
func hasForbiddenCharacter(text string, multiline bool) bool {
	if multiline {
		text = strings.NewReplacer("\n", "", "\r", "", "\t", "").Replace(text)
	}
	return forbiddenInText.MatchString(text)
}

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// isAllowedTime returns true if err is nil and t is in the years 1970 to 2999. The contract allows only these years.
func isAllowedTime(t time.Time, err error) bool {
	return err == nil && t.UTC().Year() >= 1970 && t.UTC().Year() <= 2999
}

// validText generates a valid text for the field with the given name and schema.
func (g *generator) validText(op *contractOperation, name string, s *openapi3.Schema) string {
	if len(s.Enum) > 0 {
		return fmt.Sprint(randomElement(g.random, s.Enum))
	}
	switch s.Format {
	case "date":
		return g.now.AddDate(0, 0, -g.IntN(60)).Format(time.DateOnly)
	case "date-time":
		at := g.now.Add(-time.Duration(g.IntN(1000)) * time.Hour)
		return at.In(time.FixedZone("", (g.IntN(27)-12)*3600)).Format(randomElement(g.random, []string{time.RFC3339, "2006-01-02T15:04:05.000000-07:00", "2006-01-02T15:04:05.9Z07:00"}))
	}
	kinds := kindsOfField(op, name)
	if kinds == nil {
		panic(fmt.Sprintf("%s: kindsByField has no entry for %q", op.id, name))
	}
	if mustBeLink(s, kinds) {
		return g.randomLink(kinds[0])
	}
	for range 50 {
		if text := g.anyText(kinds, s); matchesSchema(s, text) && (name != "q" || len(strings.Fields(text)) <= 20) {
			return text
		}
	}
	panic(fmt.Sprintf("%s: 50 generated texts did not match the schema of %q", op.id, name))
}

// mustBeLink returns true if a field accepts links but no other texts. s is the schema of the field. kinds are the kinds of text that the
// field accepts.
func mustBeLink(s *openapi3.Schema, kinds []textKind) bool {
	return s.Format == "uri" || len(kinds) == 1 && (kinds[0] == videoLink || kinds[0] == accountLinks || kinds[0] == webhookURL) && s.MaxLength != nil && *s.MaxLength == 2048
}

// anyText returns a random text, usually of one of the given kinds. The text may violate the schema of the field.
func (g *generator) anyText(kinds []textKind, s *openapi3.Schema) string {
	switch n := g.IntN(20); {
	case g.onlyOwnItems, n < 14:
		if kinds[0] == freeText {
			return randomElement(g.random, suspiciousTexts)
		}
		return g.itemText(randomElement(g.random, kinds))
	case n < 15:
		return g.itemText(randomElement(g.random, itemKinds))
	case n < 16:
		return randomElement(g.random, suspiciousTexts)
	case n < 17 && s.MaxLength != nil && *s.MaxLength < 10_000:
		return g.text(int(*s.MaxLength))
	case n < 18:
		return g.text(int(max(s.MinLength, 1)))
	case n < 19:
		return randomElement(g.random, []string{uuid.Nil.String(), strings.ToUpper(g.itemText(randomElement(g.random, kinds)))})
	}
	return g.text(1 + g.IntN(30))
}

// itemText returns a text of the given kind. Usually, the text identifies an item of the
// organisation that sends the request.
func (g *generator) itemText(kind textKind) string {
	of := g.ownItems
	switch n := g.IntN(10); {
	case kind == freeText:
		return randomElement(g.random, suspiciousTexts)
	case g.onlyOwnItems:
	case n < 1:
		of = g.otherItems
	case n < 2:
		of = g.missingItems
	}
	if kind == videoLink || kind == accountLinks {
		return g.varyLink(randomElement(g.random, of[kind]))
	}
	return randomElement(g.random, of[kind])
}

// randomLink returns a random link of a video or an account, depending on m. For a video, the
// result is sometimes a short link.
func (g *generator) randomLink(m textKind) string {
	if m == videoLink && g.chance(4) {
		return randomElement(g.random, g.shortLinks)
	}
	return g.itemText(m)
}

// varyLink returns a link of the same video or account in a random form, for example without https or with a query.
func (g *generator) varyLink(link string) string {
	switch g.IntN(8) {
	case 0:
		return link + "?utm_source=x&is_copy_url=1"
	case 1:
		return strings.Replace(link, "https://www.", "http://m.", 1)
	case 2:
		return strings.TrimPrefix(link, "https://")
	case 3:
		return " " + link + " "
	case 4:
		return strings.TrimSuffix(link, "/") + "/#top"
	}
	return link
}

// validValue returns a random valid value for the member "name" of a JSON body. The parameter s is the schema
// of this member.
func (g *generator) validValue(op *contractOperation, name string, s *openapi3.Schema) any {
	switch {
	case s.Nullable && g.chance(10):
		return nil
	case s.Type.Is("object"):
		return g.validObject(op, s)
	case s.Type.Is("array"):
		out := []any{}
		for range g.validLength(s) {
			out = append(out, g.validValue(op, name, s.Items.Value))
		}
		return out
	case s.Type.Is("boolean"):
		return g.chance(50)
	case s.Type.Is("integer"), s.Type.Is("number"):
		return verbatim(g.validInteger(s))
	}
	return g.validText(op, name, s)
}

// validLength returns a random length that the schema allows for an array. The length is usually small, because long arrays are slow.
func (g *generator) validLength(s *openapi3.Schema) int {
	least, most := int(s.MinItems), 4
	if s.MaxItems != nil {
		if g.chance(2) {
			return int(*s.MaxItems)
		}
		most = min(most, int(*s.MaxItems))
	}
	return least + g.IntN(most-least+1)
}

// validInteger returns a random integer that the schema allows, often the minimum or the maximum.
func (g *generator) validInteger(s *openapi3.Schema) string {
	least, most := int64(*s.Min), int64(*s.Max)
	switch g.IntN(8) {
	case 0:
		return fmt.Sprint(least)
	case 1:
		return fmt.Sprint(most)
	case 2:
		return fmt.Sprint(most - 1)
	}
	return fmt.Sprint(least + g.Int64N(min(20, most-least+1)))
}

// slowFields maps the names of slow body members to the maximum percentage of requests that contain
// the member.
var slowFields = map[string]int{"password": 2} // the server needs much time to hash a password

// validObject returns a JSON object that matches a schema. It has random optional members and, if the schema allows it, undeclared members.
func (g *generator) validObject(op *contractOperation, s *openapi3.Schema) map[string]any {
	out := map[string]any{}
	optionalPercent := randomElement(g.random, []int{0, 30, 30, 60})
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		percent := optionalPercent
		if rare, ok := slowFields[name]; ok {
			percent = min(optionalPercent, rare)
		}
		if slices.Contains(s.Required, name) || g.chance(percent) {
			out[name] = g.validValue(op, name, s.Properties[name].Value)
		}
	}
	if allowsOtherMembers(s) && g.chance(20) {
		out[randomElement(g.random, suspiciousTexts)] = randomElement(g.random, []any{"kept", true, nil, verbatim("1e300"), []any{map[string]any{"😀": "\u2028"}}})
	}
	return out
}

// allowsOtherMembers returns true if a schema allows objects with members that it does not declare.
func allowsOtherMembers(s *openapi3.Schema) bool {
	return s.AdditionalProperties.Has == nil || *s.AdditionalProperties.Has
}

// wrongTexts returns texts that violate a string schema: of the wrong form, in another case, or too long.
func (g *generator) wrongTexts(s *openapi3.Schema) []string {
	var out []string
	switch {
	case len(s.Enum) > 0:
		one := fmt.Sprint(s.Enum[0])
		out = []string{"", one + "x", strings.ToUpper(one), " " + one, one + "," + one, "null"}
	case s.Format == "date":
		out = slices.Clone(notDates)
	case s.Format == "date-time":
		out = slices.Clone(notTimes)
	case s.Format == "uuid":
		out = slices.Clone(notUUIDs)
	default:
		out = slices.DeleteFunc(append(slices.Clone(suspiciousTexts), ""), func(text string) bool { return matchesSchema(s, text) })
	}
	if s.MaxLength != nil && *s.MaxLength < 10_000 {
		out = append(out, g.text(int(*s.MaxLength)+1), strings.Repeat("a", int(*s.MaxLength)+1))
	}
	return out
}

// wrongValues returns JSON values that violate a schema. The parameter validValue matches the schema. Some of the results are changed copies
// of validValue.
func (g *generator) wrongValues(s *openapi3.Schema, validValue any) []any {
	var out []any
	for kind, value := range map[string]any{"string": "text", "boolean": true, "array": []any{}, "object": map[string]any{}, "number": verbatim("1.5")} {
		if !s.Type.Is(kind) && (kind != "number" || !s.Type.Is("integer")) {
			out = append(out, value)
		}
	}
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) // sort the values, because the iteration order of a map is random
	out = append(out, verbatim("0"), verbatim("1e400"), verbatim("-9223372036854775809"))
	if s.Type.Is("integer") || s.Type.Is("number") {
		out = []any{"5", verbatim("1.5"), verbatim("1e400"), verbatim(fmt.Sprint(int64(*s.Min) - 1)), verbatim(fmt.Sprint(uint64(*s.Max) + 1))}
	}
	if !s.Nullable {
		out = append(out, nil)
	}
	switch {
	case s.Type.Is("string"):
		for _, text := range g.wrongTexts(s) {
			out = append(out, text)
		}
		out = append(out, verbatim(`"a\u0000b"`), verbatim(`"\ud800"`), verbatim(`"\udc00\ud800"`), verbatim("\"a\xffb\""), verbatim("\"a\nb\""), verbatim(`"\x"`))
	case s.Type.Is("array"):
		if s.MinItems > 0 {
			out = append(out, []any{})
		}
		if items, ok := validValue.([]any); ok && len(items) > 0 && s.MaxItems != nil && *s.MaxItems < 1000 {
			out = append(out, slices.Repeat(items[:1], int(*s.MaxItems)+1))
		}
	case s.Type.Is("object"):
		members, _ := validValue.(map[string]any)
		for _, name := range s.Required {
			less := maps.Clone(members)
			delete(less, name)
			out = append(out, less)
		}
		if !allowsOtherMembers(s) {
			for _, name := range append(slices.Sorted(maps.Keys(s.Properties)), "surprise") {
				more := maps.Clone(members)
				if more == nil {
					more = map[string]any{}
				}
				delete(more, name)
				more[strings.ToUpper(name[:1])+name[1:]] = members[name]
				out = append(out, more)
			}
		}
	}
	return out
}

// renderJSON returns v as JSON text. It sorts the members of objects by name, so that equal values have equal texts.
func renderJSON(v any) []byte {
	switch v := v.(type) {
	case verbatim:
		return []byte(v)
	case []any:
		out := []byte{'['}
		for i, e := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, renderJSON(e)...)
		}
		return append(out, ']')
	case map[string]any:
		out := []byte{'{'}
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(append(append(out, renderJSON(name)...), ':'), renderJSON(v[name])...)
		}
		return append(out, '}')
	}
	out, err := json.Marshal(v)
	if err != nil {
		panic(err) // json.Marshal cannot fail, because v is a text, a boolean or nil
	}
	return out
}
