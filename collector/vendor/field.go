package vendor

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/internal/words"
)

// Field lists the places where the JSON object of a video or account can have one value. The first place with a
// value is used. A boolean is true if it is true at any place.
type Field []Alternative

// Alternative describes one place where a JSON object of a video or account can have a value.
type Alternative struct {
	Path string `json:"path"`
	// Inside is an optional path in JSON that the vendor returns as a string at Path. Invalid JSON counts
	// as a missing value.
	Inside string `json:"inside,omitempty"`
	// Unit is the unit of a time ("unix", "unix_ms" or "rfc3339") or of a length ("s", the default, or "ms").
	Unit string `json:"unit,omitempty"`
	// OneOf is for booleans. The value is true if it is one of these texts, or if it is a JSON list with one of
	// them. Any other text or list is false.
	OneOf []string `json:"one_of,omitempty"`
	// NotEmpty is for booleans. If NotEmpty is set, an empty string or list is false, and any other string
	// or list is true.
	NotEmpty bool `json:"not_empty,omitempty"`
	// Withheld lists the texts that stand for a hidden count. "null" stands for a JSON null, but not for a
	// missing value.
	Withheld []string `json:"withheld,omitempty"`
	// HiddenIf is for counts. If this condition is true for the JSON object of the video, the platform hides the count, and the value means
	// nothing.
	HiddenIf *Condition `json:"hidden_if,omitempty"`
	// Minus is the path of a second count, which is subtracted from the count at Path. If the answer lacks the
	// second count, the Alternative has no value.
	Minus string `json:"minus,omitempty"`
	// RoundsFrom is for counts of videos: the smallest number that the vendor may round at this place, such as 1000. 0
	// means that the number is exact, unless Call.Rounds is true. History points with rounded counts are marked.
	RoundsFrom int64 `json:"rounds_from,omitempty"`
	// InLink is true if the value is a link that contains the id. The id is the last segment of the link's path
	// that has only digits.
	InLink bool `json:"in_link,omitempty"`
	// Format is for links. It is a URL in which {} is replaced by the value.
	Format string `json:"format,omitempty"`
}

// UnmarshalJSON accepts a path, an Alternative, or a list of paths and Alternatives.
func (f *Field) UnmarshalJSON(raw []byte) error {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		elements = []json.RawMessage{raw}
	}
	out := make(Field, len(elements))
	for i, element := range elements {
		if json.Unmarshal(element, &out[i].Path) == nil {
			continue
		}
		if err := decodeStrictly(element, &out[i]); err != nil {
			return fmt.Errorf("a field must be a path, an object with a path, or a list of these: %w", err)
		}
	}
	*f = out
	return nil
}

// factKind is the type of a fact. A fact is a single value that a source returns about a video or account, such as the views or the title.
type factKind int

const (
	countFact factKind = iota + 1
	textFact
	nameFact
	handleFact
	idFact
	linkFact
	timeFact
	lengthFact
	flagFact
)

// factNames maps the names of facts (data of a video or account, such as "views") to their types. A vendor description may use only these
// names.
type factNames map[string]factKind

// facts are the facts that a video can have, such as its views and its title.
var facts = factNames{
	"views": countFact, "likes": countFact, "comments": countFact, "shares": countFact, "bookmarks": countFact,
	"title": textFact, "username": handleFact, "account_id": idFact, "account_name": nameFact, "uploaded_at": timeFact,
	"length_seconds": lengthFact, "song_name": nameFact, "song_link": linkFact, "thumbnail_url": linkFact, "not_safe": flagFact, "private": flagFact,
	"hidden_stats": flagFact, "is_ad": flagFact, "shop_ad": flagFact, "shop_product_id": idFact,
}

// accountFacts are the facts that the profile of an account can have, such as its name and its followers.
var accountFacts = factNames{
	"account_id": idFact, "username": handleFact, "account_name": nameFact, "bio": nameFact, "profile_link": linkFact,
	"followers": countFact, "following": countFact, "private": flagFact,
}

// entryFacts are the facts that an entry of an account's video list can have.
var entryFacts = factNames{"id": idFact, "uploaded_at": timeFact, "account_id": idFact, "username": handleFact}

// check adds an error if factName is not an allowed fact, or if an alternative of the field is not valid
// for the fact's type.
func (f Field) check(p *problems, memberPath, factName string, allowed factNames) {
	kind, ok := allowed[factName]
	if !ok {
		names := make([]string, 0, len(allowed))
		for known := range allowed {
			names = append(names, known)
		}
		slices.Sort(names)
		p.add(memberPath, "is not a known fact; the facts are %s", strings.Join(names, ", "))
		return
	}
	if len(f) == 0 {
		p.add(memberPath, "must have a path")
	}
	for _, a := range f {
		checkPath(p, memberPath+".path", a.Path)
		if a.Inside != "" {
			checkPath(p, memberPath+".inside", a.Inside)
		}
		units := map[factKind][]string{timeFact: {"unix", "unix_ms", "rfc3339"}, lengthFact: {"", "s", "ms"}}[kind]
		if units == nil {
			units = []string{""}
		}
		if !slices.Contains(units, a.Unit) {
			p.add(memberPath+".unit", "must be %s, not %q", words.JoinWithOr(quoteTexts(units)), a.Unit)
		}
		if kind != flagFact && (a.OneOf != nil || a.NotEmpty) {
			p.add(memberPath, "is not a boolean fact, so it cannot have one_of or not_empty")
		}
		if a.OneOf != nil && a.NotEmpty {
			p.add(memberPath, "cannot have both one_of and not_empty")
		}
		if kind != countFact && (a.Withheld != nil || a.HiddenIf != nil || a.Minus != "" || a.RoundsFrom != 0) {
			p.add(memberPath, `is not a count, so it cannot have the members "withheld", "hidden_if", "minus" or "rounds_from"`)
		}
		if a.RoundsFrom != 0 && a.RoundsFrom < minRounded {
			p.add(memberPath+".rounds_from", "must be at least %d, not %d", minRounded, a.RoundsFrom)
		}
		if a.HiddenIf != nil {
			a.HiddenIf.check(p, memberPath+".hidden_if")
		}
		if a.Minus != "" {
			checkPath(p, memberPath+".minus", a.Minus)
		}
		if kind != idFact && a.InLink {
			p.add(memberPath+".in_link", "is for ids only")
		}
		if a.Format != "" && (kind != linkFact || !strings.Contains(a.Format, "{}")) {
			p.add(memberPath+".format", "must contain {} and is for links only")
		}
	}
}

// readValue reads a value in an item: the JSON object of a video or account. ok is false if the value is
// missing or null, or if it is inside a text that is not valid JSON.
func (a Alternative) readValue(item gjson.Result) (v gjson.Result, ok bool) {
	v = item.Get(a.Path)
	if a.Inside != "" && v.Type == gjson.String {
		if fetch.CheckJSON([]byte(v.Str)) != nil {
			return gjson.Result{}, false
		}
		v = gjson.Get(v.Str, a.Inside)
	}
	return v, v.Exists() && v.Type != gjson.Null
}

// scalarText returns the text of a JSON string, number or boolean. It returns false for a value of any other JSON type.
func scalarText(v gjson.Result) (text string, ok bool) {
	switch v.Type {
	case gjson.String:
		return v.Str, true
	case gjson.Number, gjson.True, gjson.False:
		return v.Raw, true
	default:
		return "", false
	}
}

// readCount returns the count in an item, or nil if the count is missing, hidden or invalid. Valid counts
// are whole numbers from 0 to fetch.MaxCount.
func (f Field) readCount(item gjson.Result) (n *int64, isHidden, isInvalid bool) {
	n, _, isHidden, isInvalid = f.readCountAndPlace(item)
	return n, isHidden, isInvalid
}

// readCountAndPlace does the same as readCount, and also returns the place at which it found the count.
func (f Field) readCountAndPlace(item gjson.Result) (n *int64, place Alternative, isHidden, isInvalid bool) {
	for _, a := range f {
		v, ok := a.readValue(item)
		isNull := v.Exists() && v.Type == gjson.Null
		if !ok && (!isNull || !slices.Contains(a.Withheld, "null")) {
			continue
		}
		text, ok := scalarText(v)
		if isNull || ok && slices.Contains(a.Withheld, text) || a.HiddenIf != nil && a.HiddenIf.isTrue(item) {
			return nil, a, true, false
		}
		parsed, good := fetch.ParseCount(text)
		if !ok || !good {
			return nil, a, false, true
		}
		if a.Minus != "" {
			part, _, isInvalid := Field{{Path: a.Minus}}.readCount(item)
			if isInvalid || part != nil && *part > parsed {
				return nil, a, false, true
			}
			if part == nil {
				continue
			}
			parsed -= *part
		}
		return &parsed, a, false, false
	}
	return nil, Alternative{}, false, false
}

const (
	minRounded     = 1_000  // the smallest possible value of Alternative.RoundsFrom
	defaultRounded = 10_000 // the smallest number that a vendor rounds if Call.Rounds is true and Alternative.RoundsFrom is 0
)

// roundsFrom returns the smallest number that the vendor may round at the given place, or 0 if the vendor does not round there.
func (c Call) roundsFrom(place Alternative) int64 {
	if place.RoundsFrom == 0 && c.Rounds {
		return defaultRounded
	}
	return place.RoundsFrom
}

// isRounded returns true if the number is probably rounded, because it is at least smallest and could come from a text such as 573.9K or 1.2M, with
// at most one decimal place. It returns false if smallest is 0, because the vendor then does not round.
func isRounded(n, smallest int64) bool {
	for unit := int64(1e9); unit >= 1e3; unit /= 1e3 {
		if n >= unit {
			return smallest > 0 && n >= smallest && n%(unit/10) == 0
		}
	}
	return false
}

// readText tries the alternatives of the field in order. It returns the first string or number that it finds in the item, as text, or nil
// if it finds none.
func (f Field) readText(item gjson.Result) *string {
	for _, a := range f {
		v, ok := a.readValue(item)
		if !ok || (v.Type != gjson.String && v.Type != gjson.Number) {
			continue
		}
		text, _ := scalarText(v)
		if a.Format != "" {
			if text = parseID(text); text == "" {
				continue
			}
			text = strings.ReplaceAll(a.Format, "{}", url.PathEscape(text))
		}
		return &text
	}
	return nil
}

// readID returns the id in an item, or nil if the item has no valid id.
func (f Field) readID(item gjson.Result) *string {
	for i, a := range f {
		text := f[i : i+1].readText(item)
		if text == nil {
			continue
		}
		if a.InLink {
			if *text = lastNumberInPath(*text); *text == "" {
				continue
			}
		}
		if *text = parseID(*text); *text == "" {
			return nil
		}
		return text
	}
	return nil
}

// parseID returns the id in a text, or "" if the text is not a valid id. "0" stands for a missing id.
func parseID(text string) string {
	if text == "0" {
		return ""
	}
	return fetch.ParseID(text)
}

// lastNumberInPath looks in the path of a link for segments that have only digits. It returns the last such segment, or "" if there is none.
func lastNumberInPath(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	for _, part := range slices.Backward(strings.Split(u.Path, "/")) {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			return part
		}
	}
	return ""
}

// readTime returns the upload time in an item, or nil if the time is missing, malformed, or rejected by
// fetch.CheckUploadTime.
func (f Field) readTime(item gjson.Result, now time.Time) *time.Time {
	for _, a := range f {
		v, ok := a.readValue(item)
		if !ok {
			continue
		}
		text, _ := scalarText(v)
		if a.Unit == "rfc3339" {
			for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05-0700"} {
				if at, err := time.Parse(layout, text); err == nil {
					return fetch.CheckUploadTime(at, now)
				}
			}
			continue
		}
		n, ok := fetch.ParseNumber(text) // a time in milliseconds can be above fetch.MaxCount
		switch {
		case !ok || n > 1<<48:
		case a.Unit == "unix_ms":
			return fetch.CheckUploadTime(time.UnixMilli(n), now)
		default:
			return fetch.CheckUploadTime(time.Unix(n, 0), now)
		}
	}
	return nil
}

// readLength returns the first number among the alternatives as a length in seconds. It returns nil if no alternative is a number, or if
// fetch.CheckLength does not accept the first number.
func (f Field) readLength(item gjson.Result) *float64 {
	for _, a := range f {
		v, ok := a.readValue(item)
		if !ok || (v.Type != gjson.String && v.Type != gjson.Number) {
			continue
		}
		text, _ := scalarText(v)
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		if a.Unit == "ms" {
			seconds /= 1000
		}
		return fetch.CheckLength(seconds)
	}
	return nil
}

// readBoolean reads all alternatives. It returns true if at least one alternative is true, nil if none has
// a boolean, and false otherwise.
func (f Field) readBoolean(item gjson.Result) *bool {
	var result *bool
	for _, a := range f {
		v, ok := a.readValue(item)
		if !ok {
			continue
		}
		yes, known := a.toBoolean(v)
		if known && (result == nil || yes) {
			result = &yes
		}
	}
	return result
}

// toBoolean converts a value of an item to a boolean. isBoolean is false if the value cannot be converted.
func (a Alternative) toBoolean(v gjson.Result) (yes, isBoolean bool) {
	switch {
	case a.NotEmpty:
		return v.Str != "" || v.IsArray() && matchesAnyElement(v, func(gjson.Result) bool { return true }), v.Type == gjson.String || v.IsArray()
	case a.OneOf != nil && v.IsArray():
		return matchesAnyElement(v, a.acceptsAsTrue), true
	case a.OneOf != nil:
		_, isBoolean = scalarText(v)
		return a.acceptsAsTrue(v), isBoolean
	default:
		text, _ := scalarText(v)
		switch strings.ToLower(text) {
		case "true", "1":
			return true, true
		case "false", "0":
			return false, true
		default:
			return false, false
		}
	}
}

// matchesAnyElement returns true if the callback "match" returns true for at least one element of the JSON list. It does not copy the list.
func matchesAnyElement(list gjson.Result, match func(gjson.Result) bool) (found bool) {
	list.ForEach(func(_, element gjson.Result) bool {
		found = match(element)
		return !found
	})
	return found
}

// acceptsAsTrue returns true if OneOf contains the text of the JSON value. OneOf lists the texts that stand for the boolean "true".
func (a Alternative) acceptsAsTrue(v gjson.Result) bool {
	text, ok := scalarText(v)
	return ok && slices.Contains(a.OneOf, text)
}

// isTrue returns true if the condition is true for the JSON value.
func (c Condition) isTrue(v gjson.Result) bool { return c.matchingPath(v) != "" }

// matchingPath returns the first path whose value satisfies the condition, or "" if there is none.
func (c Condition) matchingPath(v gjson.Result) string {
	for _, path := range c.Path {
		if c.accepts(v.Get(path)) {
			return path
		}
	}
	return ""
}

// accepts returns true if the value at a path of the condition satisfies the condition.
func (c Condition) accepts(found gjson.Result) bool {
	if !found.Exists() || found.Type == gjson.Null {
		return false
	}
	if c.OneOf == nil && c.Contains == nil {
		return true
	}
	text, _ := scalarText(found)
	if c.OneOf != nil && !slices.Contains(c.OneOf, text) {
		return false
	}
	lower := strings.ToLower(text)
	return c.Contains == nil || slices.ContainsFunc(c.Contains, func(part string) bool {
		return strings.Contains(lower, strings.ToLower(part))
	})
}

func quoteTexts(texts []string) []string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.Quote(text)
	}
	return quoted
}
