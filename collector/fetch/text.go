package fetch

import (
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxText   = 5000 // maximum length of a text in runes; the longest captions of any platform have 4,000
	maxHandle = 100  // maximum length of a handle in runes
	maxLink   = 2048 // maximum length of a link in bytes
	maxLength = 366 * 24 * time.Hour
)

// CleanText removes invalid UTF-8 and control characters except line feed and tab. It shortens the
// text to maxText. It returns nil only for nil.
func CleanText(text *string) *string {
	if text == nil {
		return nil
	}
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(*text, ""))
	if utf8.RuneCountInString(clean) > maxText {
		clean = truncate(clean, maxText-1)
	}
	return &clean
}

// CleanName cleans a name in the same way as CleanText. It returns nil if the name is nil or blank.
func CleanName(text *string) *string {
	clean := CleanText(text)
	if clean == nil || strings.TrimSpace(*clean) == "" {
		return nil
	}
	return clean
}

// ParseHandle returns an account's handle in lower case without "@", or nil if text cannot be a handle.
func ParseHandle(text *string) *string {
	if text == nil || !utf8.ValidString(*text) {
		return nil
	}
	handle := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(*text), "@"))
	if handle == "" || utf8.RuneCountInString(handle) > maxHandle {
		return nil
	}
	for _, r := range handle {
		if unicode.IsControl(r) || unicode.IsSpace(r) || strings.ContainsRune(`/\?#@<>"`, r) {
			return nil
		}
	}
	return &handle
}

// ParseLink parses an absolute http or https URL without credentials, and returns it as [url.URL.String] writes it. For any other text, such as
// a `javascript:` or `data:` URL, it returns nil.
func ParseLink(text *string) *string {
	if text == nil || len(*text) > maxLink {
		return nil
	}
	u, err := url.Parse(*text)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && u.Scheme != "http") {
		return nil
	}
	link := u.String()
	return &link
}

// Optional decodes an optional member of a JSON object, such as a title. A value of the wrong type counts
// as missing, so that it does not make the counts of the object unreadable.
type Optional[T any] struct{ value *T }

// UnmarshalJSON implements [json.Unmarshaler]. It never fails, so that the other members of the
// object can be read.
func (o *Optional[T]) UnmarshalJSON(raw []byte) error {
	var value *T
	if json.Unmarshal(raw, &value) != nil {
		value = nil
	}
	o.value = value
	return nil
}

// Value returns the value, or nil if the member was missing, null or of the wrong type.
func (o Optional[T]) Value() *T { return o.value }

// OptionalLength decodes the length of a video in seconds: a JSON number, or a number as text. Any
// other value counts as missing.
type OptionalLength struct{ seconds *float64 }

// UnmarshalJSON implements [json.Unmarshaler]. It never fails, so that the other members of the
// object can be read.
func (l *OptionalLength) UnmarshalJSON(raw []byte) error {
	l.seconds = nil
	text := string(raw)
	if strings.HasPrefix(text, `"`) && json.Unmarshal(raw, &text) != nil {
		text = ""
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		l.seconds = CheckLength(seconds)
	}
	return nil
}

// Value returns the length in seconds, or nil if the object had no length that CheckLength accepts.
func (l OptionalLength) Value() *float64 { return l.seconds }

// CheckLength returns the length of a video in seconds. It returns nil if the length is negative, not a number or more than 366 days.
func CheckLength(seconds float64) *float64 {
	if math.IsNaN(seconds) || seconds < 0 || seconds > maxLength.Seconds() {
		return nil
	}
	return &seconds
}

// CheckUploadTime returns t in UTC, or nil if t is before 2004 or more than two days in the future.
// No platform existed before 2004.
func CheckUploadTime(t, now time.Time) *time.Time {
	if t.Year() < 2004 || t.After(now.Add(48*time.Hour)) {
		return nil
	}
	t = t.UTC()
	return &t
}
