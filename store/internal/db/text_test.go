package db_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// textsToFold has texts, and the form in which each text is stored and compared.
var textsToFold = map[string]string{
	"":               "",
	"Plain TEXT 1_2": "plain text 1_2",
	"CAF\u00c9":      "caf\u00e9", // é as one character
	"CAFE\u0301":     "caf\u00e9", // é as a letter and a combining accent
	"cafe\u0301":     "caf\u00e9",
	"ΚΌΣΜΟΣ":         "κόσμοσ",
	"κόσμος":         "κόσμοσ",
	"κο\u0301σμος":   "κόσμοσ",
	"ΠΡΩΪ\u0301":     "πρωΐ",
	"Straße STRASSE": "straße strasse",
	"GROẞ":           "groß",
	"İstanbul":       "istanbul",
	"I\u0307stanbul": "istanbul",
	"i\u0307stanbul": "istanbul", // other programs convert İ to i and a combining dot
	"i\u0307\u0307":  "i",
	"ılık":           "ılık",
	"हिन्दी क़":      "हिन्दी क\u093c",
	"か\u3099ん":       "がん",
	"＃全角 ＤＯＧ 🐶 \U0001f468\u200d👩": "＃全角 ｄｏｇ 🐶 \U0001f468\u200d👩",
	"\u1100\u1161": "가",
}

func TestFoldText_givesEqualTextsOneForm(t *testing.T) {
	t.Parallel()
	for text, want := range textsToFold {
		require.Equal(t, want, db.FoldText(text), "%+q", text)
	}
}

func TestFoldText_treatsComposedAndDecomposedCharactersAsEqual(t *testing.T) {
	t.Parallel()
	var characters []rune
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || unicode.Is(unicode.Co, r) || !unicode.In(r, unicode.C, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z) {
			continue // surrogates, private-use characters and unassigned code points are never folded
		}
		if unicode.Is(unicode.Unified_Ideograph, r) && r%64 != 0 {
			continue // these 98,000 characters have neither upper case nor parts, so some of them are enough
		}
		characters = append(characters, r)
	}
	for block := range slices.Chunk(characters, 256) { // folding each character alone would take a minute with the race detector
		if text := accented(block...); hasOneFoldedForm(text) {
			continue
		}
		for _, r := range block {
			text := accented(r)
			require.True(t, hasOneFoldedForm(text), "the text is not folded to one form: %+q, decomposed %+q, folded %+q", text, norm.NFD.String(text), db.FoldText(text))
		}
		require.Fail(t, "the characters are folded to one form alone, but not in one text", "%+q", string(block))
	}
}

// accented returns a text in which each character is between an a and an accent.
func accented(characters ...rune) string {
	var text strings.Builder
	for _, r := range characters {
		text.WriteString("a" + string(r) + "\u0301 ")
	}
	return text.String()
}

// hasOneFoldedForm reports whether FoldText returns the same for a text, for the decomposed text, for the text in lower case and for the folded
// text.
func hasOneFoldedForm(text string) bool {
	folded := db.FoldText(text)
	return folded == db.FoldText(norm.NFD.String(text)) && folded == db.FoldText(folded) && folded == db.FoldText(strings.ToLower(text))
}

//nolint:paralleltest // testing.AllocsPerRun counts the allocations of the whole process
func TestFoldText_allocatesNothingForFoldedTexts(t *testing.T) {
	for _, text := range []string{"handmade in spring", "große käsespätzle", "κόσμοσ", "日本語タグ"} {
		require.Zero(t, testing.AllocsPerRun(20, func() { db.FoldText(text) }), "%q", text)
	}
}
