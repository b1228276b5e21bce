package link

import (
	"net/url"
	"strings"
	"unicode"
)

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// isID reports whether c is in the base-64url alphabet. All platforms with letters in their ids use it.
func isID(c byte) bool { return isAlnum(c) || c == '-' || c == '_' }

// allOf reports whether s has between least and most bytes and all of them pass.
func allOf(s string, least, most int, passes func(byte) bool) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	for i := range len(s) {
		if !passes(s[i]) {
			return false
		}
	}
	return true
}

// isLocale reports whether s looks like "de", "pt-br", "zh-hant" or "en_US".
func isLocale(s string) bool {
	language, region, ok := strings.Cut(strings.ReplaceAll(s, "_", "-"), "-")
	letter := func(c byte) bool { return isAlnum(c) && !isDigit(c) }
	return allOf(language, 2, 2, letter) && (!ok || allOf(region, 2, 4, letter))
}

// isBlank reports whether r is invisible, as characters around a pasted link often are.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }

// isForbidden reports whether a link must not contain r: blanks, control characters and marks that change the direction of text. The two
// joiners are allowed, because some scripts need them in handles.
func isForbidden(r rune) bool {
	if r < 0x80 {
		return r <= ' ' || r == 0x7f
	}
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d'
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// unescapeQuery decodes a query value once. It returns a value with an invalid escape unchanged.
func unescapeQuery(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	// PathUnescape keeps "+". No id contains a blank, and an unencoded link inside a query may contain a plus.
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}
