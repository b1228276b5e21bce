package ingest

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/reeltally/reeltally/store"
)

// maxTagLength is the highest number of characters of a hashtag that is indexed.
const maxTagLength = 100

// Hashtags returns the hashtags of a caption, folded, sorted and without duplicates.
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

// cutRune splits s after its first character.
func cutRune(s string) (first rune, rest string, ok bool) {
	for i, r := range s {
		if i > 0 {
			return first, s[i:], true
		}
		first = r
	}
	return first, "", s != ""
}

// formatSeconds returns a length with as few digits as possible: "58", "58.5".
func formatSeconds(s float64) string { return strconv.FormatFloat(s, 'f', -1, 64) }
