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
)

// Field says where a fact stands in an item: alternatives, the first that is there wins. In JSON it is a path, an
// object of an Alternative's members, or a list of these. For a yes-or-no fact, all alternatives are asked: yes when one
// says yes, no when none does and one says no, unknown otherwise.
type Field []Alternative

// Alternative is one place of a fact.
type Alternative struct {
	Path string `json:"path"`
	// Inside is a path inside the value, which is then a text that holds JSON.
	Inside string `json:"inside,omitempty"`
	// Unit of a time ("unix", "unix_ms" or "rfc3339") or of a length ("s", the default, or "ms").
	Unit string `json:"unit,omitempty"`
	// OneOf, for a yes-or-no fact: yes when the value, or an element of it, is one of these texts, no when it is another.
	OneOf []string `json:"one_of,omitempty"`
	// NotEmpty, for a yes-or-no fact: yes when the value is a text or a list that is not empty.
	NotEmpty bool `json:"not_empty,omitempty"`
	// Withheld, for a count: values that say that the platform withholds it.
	Withheld []string `json:"withheld,omitempty"`
	// Format, for a link: the address, in which {} stands for the value.
	Format string `json:"format,omitempty"`
}

// UnmarshalJSON takes the three forms.
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

// factKind is how a fact is read.
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

// factNames are the members that fields may have.
type factNames map[string]factKind

// facts are those of a video.
var facts = factNames{
	"views": countFact, "likes": countFact, "comments": countFact, "shares": countFact, "bookmarks": countFact,
	"title": textFact, "username": handleFact, "account_id": idFact, "account_name": nameFact, "uploaded_at": timeFact,
	"length_seconds": lengthFact, "song_name": nameFact, "song_link": linkFact, "not_safe": flagFact, "private": flagFact,
	"hidden_stats": flagFact, "is_ad": flagFact, "shop_ad": flagFact, "shop_product_id": idFact,
}

// accountFacts are those of an account's profile.
var accountFacts = factNames{
	"account_id": idFact, "username": handleFact, "account_name": nameFact, "bio": nameFact, "profile_link": linkFact,
	"followers": countFact, "following": countFact, "private": flagFact,
}

// entryFacts are those of an entry of an account's list.
var entryFacts = factNames{"id": idFact, "uploaded_at": timeFact}

func (f Field) check(p *problems, member, name string, known factNames) {
	kind, ok := known[name]
	if !ok {
		names := make([]string, 0, len(known))
		for known := range known {
			names = append(names, known)
		}
		slices.Sort(names)
		p.add(member, "is no fact; there are %s", strings.Join(names, ", "))
		return
	}
	if len(f) == 0 {
		p.add(member, "must name a path")
	}
	for _, a := range f {
		checkPath(p, member+".path", a.Path)
		if a.Inside != "" {
			checkPath(p, member+".inside", a.Inside)
		}
		units := map[factKind][]string{timeFact: {"unix", "unix_ms", "rfc3339"}, lengthFact: {"", "s", "ms"}}[kind]
		if units == nil {
			units = []string{""}
		}
		if !slices.Contains(units, a.Unit) {
			p.add(member+".unit", "must be one of %q, not %q", units, a.Unit)
		}
		if kind != flagFact && (a.OneOf != nil || a.NotEmpty) {
			p.add(member, "is no yes-or-no fact: one_of and not_empty have no meaning")
		}
		if a.OneOf != nil && a.NotEmpty {
			p.add(member, "cannot have both one_of and not_empty")
		}
		if kind != countFact && a.Withheld != nil {
			p.add(member+".withheld", "has a meaning with counts only")
		}
		if a.Format != "" && (kind != linkFact || !strings.Contains(a.Format, "{}")) {
			p.add(member+".format", "must hold {} and has a meaning with links only")
		}
	}
}

// value finds the alternative's value; ok is false when there is none, or null.
func (a Alternative) value(item gjson.Result) (v gjson.Result, ok bool) {
	v = item.Get(a.Path)
	if a.Inside != "" && v.Type == gjson.String {
		if fetch.CheckJSON([]byte(v.Str)) != nil {
			return gjson.Result{}, false
		}
		v = gjson.Get(v.Str, a.Inside)
	}
	return v, v.Exists() && v.Type != gjson.Null
}

// scalar is a text, a number digit by digit, or "true" or "false".
func scalar(v gjson.Result) (text string, ok bool) {
	switch v.Type {
	case gjson.String:
		return v.Str, true
	case gjson.Number, gjson.True, gjson.False:
		return v.Raw, true
	default:
		return "", false
	}
}

// count reads a count. wrong means that something stands there that is none, withheld that the platform withholds it.
func (f Field) count(item gjson.Result) (n *int64, withheld, wrong bool) {
	for _, a := range f {
		v, ok := a.value(item)
		if !ok {
			continue
		}
		text, ok := scalar(v)
		if ok && slices.Contains(a.Withheld, text) {
			return nil, true, false
		}
		parsed, good := fetch.ParseCount(text)
		if !ok || !good {
			return nil, false, true
		}
		return &parsed, false, false
	}
	return nil, false, false
}

// text reads the first text or number.
func (f Field) text(item gjson.Result) *string {
	for _, a := range f {
		v, ok := a.value(item)
		if !ok || (v.Type != gjson.String && v.Type != gjson.Number) {
			continue
		}
		text, _ := scalar(v)
		if a.Format != "" {
			if text = fetch.ParseID(text); text == "" {
				continue
			}
			text = strings.ReplaceAll(a.Format, "{}", url.PathEscape(text))
		}
		return &text
	}
	return nil
}

func (f Field) id(item gjson.Result) *string {
	text := f.text(item)
	if text == nil {
		return nil
	}
	if *text = fetch.ParseID(*text); *text == "" {
		return nil
	}
	return text
}

// time reads the first time that can be understood.
func (f Field) time(item gjson.Result, now time.Time) *time.Time {
	for _, a := range f {
		v, ok := a.value(item)
		if !ok {
			continue
		}
		text, _ := scalar(v)
		if a.Unit == "rfc3339" {
			for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05-0700"} {
				if at, err := time.Parse(layout, text); err == nil {
					return fetch.UploadTime(at, now)
				}
			}
			continue
		}
		n, ok := fetch.ParseCount(text)
		switch {
		case !ok || n > 1<<48:
		case a.Unit == "unix_ms":
			return fetch.UploadTime(time.UnixMilli(n), now)
		default:
			return fetch.UploadTime(time.Unix(n, 0), now)
		}
	}
	return nil
}

// length reads the first length that can be understood, in seconds.
func (f Field) length(item gjson.Result) *float64 {
	for _, a := range f {
		v, ok := a.value(item)
		if !ok || (v.Type != gjson.String && v.Type != gjson.Number) {
			continue
		}
		text, _ := scalar(v)
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		if a.Unit == "ms" {
			seconds /= 1000
		}
		return fetch.Length(seconds)
	}
	return nil
}

// flag reads a yes-or-no fact; nil when no alternative says anything.
func (f Field) flag(item gjson.Result) *bool {
	var said *bool
	for _, a := range f {
		v, ok := a.value(item)
		if !ok {
			continue
		}
		yes, understood := a.says(v)
		if understood && (said == nil || yes) {
			said = &yes
		}
	}
	return said
}

func (a Alternative) says(v gjson.Result) (yes, understood bool) {
	switch {
	case a.NotEmpty:
		return v.Str != "" || v.IsArray() && anyOf(v, func(gjson.Result) bool { return true }), v.Type == gjson.String || v.IsArray()
	case a.OneOf != nil && v.IsArray():
		return anyOf(v, a.isOneOf), true
	case a.OneOf != nil:
		_, understood = scalar(v)
		return a.isOneOf(v), understood
	default:
		text, _ := scalar(v)
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

// anyOf is whether an element of a list is such, without holding the list in memory.
func anyOf(list gjson.Result, such func(gjson.Result) bool) (found bool) {
	list.ForEach(func(_, element gjson.Result) bool {
		found = such(element)
		return !found
	})
	return found
}

func (a Alternative) isOneOf(v gjson.Result) bool {
	text, ok := scalar(v)
	return ok && slices.Contains(a.OneOf, text)
}

// holds is whether the condition is met.
func (w When) holds(v gjson.Result) bool {
	found := v.Get(w.Path)
	if !found.Exists() || found.Type == gjson.Null {
		return false
	}
	if w.OneOf == nil && w.Contains == nil {
		return true
	}
	text, _ := scalar(found)
	if w.OneOf != nil && !slices.Contains(w.OneOf, text) {
		return false
	}
	lower := strings.ToLower(text)
	return w.Contains == nil || slices.ContainsFunc(w.Contains, func(part string) bool {
		return strings.Contains(lower, strings.ToLower(part))
	})
}
