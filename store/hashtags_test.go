package store_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"

	"github.com/reeltally/reeltally/store"
)

func TestHashtags_areReadFromCaptions(t *testing.T) {
	t.Parallel()
	for caption, want := range map[string][]string{
		"":                       nil,
		"no tag # at all #":      nil,
		"#Dog":                   {"dog"},
		"#dog #DOG #Dog":         {"dog"},
		"#b#a":                   {"a", "b"},
		"x#glued, #end.":         {"end", "glued"},
		"##double":               {"double"},
		"#snake_case #with-dash": {"snake_case", "with"},
		"#2026 #v2":              {"2026", "v2"},
		"＃全角 #日本語タグ。":            {"全角", "日本語タグ"},
		"#Ünïcode #наука #हिन्दी":      {"ünïcode", "наука", "हिन्दी"},
		"#dog🐶#cat\n#bird":             {"bird", "cat", "dog"},
		"#" + strings.Repeat("ä", 100): {strings.Repeat("ä", 100)},
		"#" + strings.Repeat("a", 101): nil,
		"#a\x00b #\xff":                {"a"},
		"#cafe\u0301 #CAF\u00c9":       {"caf\u00e9"},
		"#κόσμος #ΚΌΣΜΟΣ":              {"κόσμοσ"},
		"#İzmir #i\u0307zmir":          {"izmir"},
		// The length is measured in the stored form, in which each of these letters with its accent is one character.
		"#" + strings.Repeat("a\u0308", 100): {strings.Repeat("ä", 100)},
		"#" + strings.Repeat("a\u0308", 101): nil,
	} {
		require.Equal(t, want, store.Hashtags(caption), "%q", caption)
	}
}

func FuzzHashtags(f *testing.F) {
	for _, s := range []string{"#dog #Cat", "＃全角", "#\xff#", "#İ", "##", "#a#b#a", "#cafe\u0301", "#ς"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, caption string) {
		tags := store.Hashtags(caption)
		require.True(t, slices.IsSorted(tags))
		require.Equal(t, tags, slices.Compact(slices.Clone(tags)))
		for _, tag := range tags {
			require.NotEmpty(t, tag)
			require.True(t, utf8.ValidString(tag), "%q must be valid UTF-8, because the database accepts only valid UTF-8", tag)
			require.Equal(t, tag, store.FoldTag("#"+tag))
			require.NotContains(t, tag, "#")
		}
		require.Equal(t, tags, store.Hashtags(norm.NFD.String(caption)))
	})
}

func TestFoldTag_returnsTheTagInLowerCaseWithoutHashSign(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{"dog": "dog", " #DOG ": "dog", "＃Dog": "dog", "#Straße": "straße", "#": "", "": "", "ÄÖ": "äö", "#Cafe\u0301": "caf\u00e9", "λόγος": "λόγοσ"} {
		require.Equal(t, want, store.FoldTag(tag), "%q", tag)
	}
}
