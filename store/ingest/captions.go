package ingest

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/reeltally/reeltally/store"
)

// maxTagLength is the highest number of characters of a hashtag. Longer hashtags are not stored.
const maxTagLength = 100

// Hashtags returns the hashtags in a caption in lower case and without "#", sorted and without duplicates.
func Hashtags(caption string) []string {
	var tags []string
	for i := strings.IndexAny(caption, "#＃"); i >= 0; i = strings.IndexAny(caption, "#＃") {
		_, rest, _ := cutRune(caption[i:])
		end := strings.IndexFunc(rest, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '_'
		})
		if end < 0 {
			end = len(rest)
		}
		if n := len([]rune(rest[:end])); n > 0 && n <= maxTagLength {
			tags = append(tags, store.FoldTag(rest[:end]))
		}
		caption = rest[end:]
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// cutRune splits s after its first character. It returns false if s is empty.
func cutRune(s string) (first rune, rest string, ok bool) {
	for i, r := range s {
		if i > 0 {
			return first, s[i:], true
		}
		first = r
	}
	return first, "", s != ""
}

// formatSeconds returns a number of seconds as text with as few digits as possible, such as "58" or "58.5".
func formatSeconds(s float64) string { return strconv.FormatFloat(s, 'f', -1, 64) }
