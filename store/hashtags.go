package store

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/reeltally/reeltally/store/internal/db"
)

// maxTagLength is the highest number of characters of a hashtag in the form that FoldTag returns. Longer hashtags are not stored.
const maxTagLength = 100

// Hashtags returns the hashtags in a caption in the form that FoldTag returns, sorted and without duplicates.
func Hashtags(caption string) []string {
	var tags []string
	forEachHashtag(caption, func(tag string) { tags = append(tags, tag) })
	slices.Sort(tags)
	return slices.Compact(tags)
}

// forEachHashtag calls handleTag for each hashtag in a caption, in order and with repetitions. The
// hashtag is in the form that FoldTag returns.
func forEachHashtag(caption string, handleTag func(tag string)) {
	wide := strings.Contains(caption, fullWidth)
	for {
		var found bool
		if caption, found = textAfterHash(caption, wide); !found {
			return
		}
		end := tagLength(caption)
		if tag := FoldTag(caption[:end]); tag != "" && utf8.RuneCountInString(tag) <= maxTagLength {
			handleTag(tag)
		}
		caption = caption[end:]
	}
}

// tagLength returns the length, in bytes, of the longest beginning of s that has only characters of hashtags.
func tagLength(s string) int {
	for i, r := range s {
		if r < utf8.RuneSelf {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r == '_' {
				continue
			}
			return i
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			return i
		}
	}
	return len(s)
}

// fullWidth is the full-width form of "#", which also begins a hashtag.
const fullWidth = "＃"

// textAfterHash returns the part of a text after its first "#" or full-width "＃". If hasFullWidth
// is false, it looks only for "#".
func textAfterHash(s string, hasFullWidth bool) (rest string, found bool) {
	plain, at := strings.IndexByte(s, '#'), -1
	if hasFullWidth {
		at = strings.Index(s, fullWidth)
	}
	if at >= 0 && (plain < 0 || at < plain) {
		return s[at+len(fullWidth):], true
	}
	return s[plain+1:], plain >= 0
}

// FoldTag returns a hashtag in the form in which hashtags are stored and compared: without a leading "#" or full-width "＃", and converted by FoldText
// of package db.
func FoldTag(s string) string {
	return db.FoldText(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(s), "#"), fullWidth))
}
