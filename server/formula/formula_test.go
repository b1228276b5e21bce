package formula

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzEscape requires that an escaped text contains no formula, wherever a spreadsheet splits the text into cells. Unescape must return the
// original text.
func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", "=1", "'=1", "''", "'", "＝1", "\t", "a", "x;=HYPERLINK(1)", "x\t@a", "x\n+1", "x\r-1", `x;"=1"`, `x;'"=1`, ";;=1", "\t=1", "\n\n=1", "a;'b", "\xff=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		escaped := Escape(text)
		require.Equal(t, text, Unescape(escaped))
		for _, sign := range formulaSignsAtStart {
			require.False(t, strings.HasPrefix(escaped, string(sign)), "%q", escaped)
		}
		for _, separators := range []string{";", "\t", "\r\n", ";\r\n", "\t\r\n", ";\t\r\n"} {
			for cell := range strings.FieldsFuncSeq(escaped, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
				for _, sign := range formulaSigns {
					require.False(t, strings.HasPrefix(strings.TrimLeft(cell, `"`), string(sign)), "%q in %q", cell, escaped)
				}
			}
		}
	})
}
