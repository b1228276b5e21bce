package fetch

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

const (
	redacted  = "REDACTED"
	maxDetail = 300 // maximum length in runes of a platform's text in an error or a log line
)

// credentialParameter matches query parameters such as "access_token=…" anywhere in a text. Redact uses it to
// find credentials that are not among its secrets.
var credentialParameter = regexp.MustCompile(`(?i)\b((?:api_?|access_|x-api-)?(?:key|token)|client_secret|appsecret_proof)=[^&\s"'<>]+`)

// Redact prepares a platform's text for an error or a log line. It replaces the secrets, other
// credentials and control characters, and truncates the text.
func Redact(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			text = strings.ReplaceAll(text, form, redacted)
		}
	}
	text = credentialParameter.ReplaceAllString(text, "$1="+redacted)
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
	return truncate(strings.Join(strings.Fields(text), " "), maxDetail)
}

// truncate shortens text to the given number of runes and appends an ellipsis. A shorter text is returned unchanged.
func truncate(text string, runes int) string {
	n := 0
	for i := range text {
		if n == runes {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
