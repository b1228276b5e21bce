package link

import (
	"net/url"
	"strings"
	"unicode"
)

// isDigit returns true if c is an ASCII digit.
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isAlnum returns true if c is an ASCII letter or digit.
func isAlnum(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// isIDCharacter returns true if c can occur in an id. The platforms use the alphabet of base64url
// for ids with letters.
func isIDCharacter(c byte) bool { return isAlnum(c) || c == '-' || c == '_' }

// consistsOf returns true if s has minLength to maxLength bytes and the function isAllowed returns true for each of them.
func consistsOf(s string, minLength, maxLength int, isAllowed func(byte) bool) bool {
	if len(s) < minLength || len(s) > maxLength {
		return false
	}
	for i := range len(s) {
		if !isAllowed(s[i]) {
			return false
		}
	}
	return true
}

// isLocale returns true if s has the form of a locale, such as "de", "pt-br", "zh-hant" or "en_US".
func isLocale(s string) bool {
	language, region, ok := strings.Cut(strings.ReplaceAll(s, "_", "-"), "-")
	letter := func(c byte) bool { return isAlnum(c) && !isDigit(c) }
	return consistsOf(language, 2, 2, letter) && (!ok || consistsOf(region, 2, 4, letter))
}

// isBlank returns true if r is a white space or another invisible character. Such characters often surround a pasted link.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }

// isForbidden returns true if Parse refuses a link that contains r. Zero-width joiners and
// non-joiners are allowed, because some scripts need them in handles.
func isForbidden(r rune) bool {
	if r < 0x80 {
		return r <= ' ' || r == 0x7f
	}
	// unicode.Cf contains invisible characters, such as marks that change the direction of text.
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d'
}

// hasPrefixFold returns true if s begins with prefix, ignoring case.
func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// unescapeQuery decodes a query value once. If the value has an invalid escape, unescapeQuery returns the value unchanged.
func unescapeQuery(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	// Use PathUnescape instead of QueryUnescape, which would replace each "+" by a blank. A link in a query can contain "+".
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}
