package store

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// maxTagLength is the highest number of characters of a hashtag. Longer hashtags are not stored.
const maxTagLength = 100

// Hashtags returns the hashtags in a caption in lower case and without "#", sorted and without duplicates.
func Hashtags(caption string) []string {
	var tags []string
	for {
		var found bool
		if caption, found = afterHash(caption); !found {
			break
		}
		end := strings.IndexFunc(caption, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '_'
		})
		if end < 0 {
			end = len(caption)
		}
		if n := utf8.RuneCountInString(caption[:end]); n > 0 && n <= maxTagLength {
			tags = append(tags, FoldTag(caption[:end]))
		}
		caption = caption[end:]
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// afterHash returns the part of s after its first "#" or full-width "＃". It returns false if s contains neither.
func afterHash(s string) (rest string, found bool) {
	const fullWidth = "＃"
	plain, wide := strings.IndexByte(s, '#'), strings.Index(s, fullWidth)
	if wide >= 0 && (plain < 0 || wide < plain) {
		return s[wide+len(fullWidth):], true
	}
	return s[plain+1:], plain >= 0
}

// FoldTag returns a hashtag in the form in which hashtags are stored and compared: in lower case, without a leading "#" or full-width "＃".
func FoldTag(s string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(s), "#"), "＃"))
}

// VideoHashtag is a row of video_hashtags: a hashtag in a video's caption.
type VideoHashtag struct {
	OrganisationID uuid.UUID
	Tag            string
	VideoID        uuid.UUID
}
