package store

import (
	"fmt"
	"strings"
	"unicode"
)

// ForbiddenCharacter describes the first character of text that a name or note of a caller must not contain, such as "the control character U+0085".
// It returns "" if text has no such character. The forbidden characters are control characters, the separators of lines and paragraphs, and the
// characters that change the direction of the text after them. If multiline is true, line feeds, carriage returns and tabs are allowed.
func ForbiddenCharacter(text string, multiline bool) string {
	for _, r := range text {
		switch {
		case multiline && strings.ContainsRune("\n\r\t", r):
		case unicode.IsControl(r):
			return fmt.Sprintf("the control character U+%04X", r)
		case unicode.In(r, unicode.Zl, unicode.Zp):
			return fmt.Sprintf("the separator U+%04X", r)
		case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			return fmt.Sprintf("the character U+%04X, which changes the direction of text", r)
		}
	}
	return ""
}
