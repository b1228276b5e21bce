package fetch

import (
	"math"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxText   = 5000 // runes; the longest caption of any platform has 4,000
	maxHandle = 100  // runes
	maxLink   = 2048 // bytes
	maxLength = 366 * 24 * time.Hour
)

// Text cleans a title, a name or the like. Control characters other than line feed and tab go, above all NUL, which
// PostgreSQL does not take; so does whatever is not UTF-8. What is too long is cut. nil stays nil, "" stays "".
func Text(text *string) *string {
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
		clean = cut(clean, maxText-1)
	}
	return &clean
}

// Name is Text for what means nothing when it is empty: a display name, a song's name.
func Name(text *string) *string {
	clean := Text(text)
	if clean == nil || strings.TrimSpace(*clean) == "" {
		return nil
	}
	return clean
}

// Handle is an account's handle without "@" and in lower case, or nil when the text cannot be one.
func Handle(text *string) *string {
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

// Link is an absolute http or https address, or nil: `javascript:` and `data:` never get any further.
func Link(text *string) *string {
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

// Length is a length in seconds, or nil when it is negative, not a number or longer than a year.
func Length(seconds float64) *float64 {
	if math.IsNaN(seconds) || seconds < 0 || seconds > maxLength.Seconds() {
		return nil
	}
	return &seconds
}

// UploadTime is an upload time in UTC, or nil when it cannot be one: before the first of the platforms, or more than
// two days after now.
func UploadTime(t, now time.Time) *time.Time {
	if t.Year() < 2004 || t.After(now.Add(48*time.Hour)) {
		return nil
	}
	t = t.UTC()
	return &t
}
