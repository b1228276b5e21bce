package fetch

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

const (
	redacted  = "REDACTED"
	maxDetail = 300 // runes of a foreign text that go into an error or a log line
)

// credential matches a parameter that is known to carry one, in a query or in a text that quotes a query. It is the
// second net, for credentials that the caller does not know of, such as a token in a link that a server echoes.
var credential = regexp.MustCompile(`(?i)\b((?:api_?|access_|x-api-)?(?:key|token)|client_secret|appsecret_proof)=[^&\s"'<>]+`)

// Redact makes a foreign text fit for an error or a log line: the secrets and whatever stands behind `key=`, `token=`
// and their relatives are replaced, control characters become spaces, and the text is cut to a sane length.
func Redact(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			text = strings.ReplaceAll(text, form, redacted)
		}
	}
	text = credential.ReplaceAllString(text, "$1="+redacted)
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
	return cut(strings.Join(strings.Fields(text), " "), maxDetail)
}

func cut(text string, runes int) string {
	n := 0
	for i := range text {
		if n == runes {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
