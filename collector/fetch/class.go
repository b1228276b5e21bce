package fetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/source"
)

// MaxRetryAfter is the longest wait that Retry-After is believed: a longer one is probably a mistake of the server.
const MaxRetryAfter = 24 * time.Hour

// ClassOf returns the class of an HTTP status. Use it if the platform's own error does not decide the class. It never returns a class
// of one target: a 404 may also mean a wrong base address, and must not make a video disappear. It does not decide whether the source
// is at fault either. The collector decides that by whether other targets get the same answer (see NamesCredential).
//
// isJSON is true if the body is JSON, so that the platform itself answered. An HTML page comes from something in between, such as a
// proxy, a load balancer or a login portal. Its 403 does not make a key invalid, and its 404 does not mean that the request was wrong.
func ClassOf(status int, isJSON bool) source.Class {
	switch {
	case status >= 200 && status < 300 && isJSON:
		return source.OK
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired:
		return source.AuthFailed
	case status == http.StatusTooManyRequests:
		return source.RateLimited
	case !isJSON, status < 400, status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return source.Temporary
	case status == http.StatusPaymentRequired:
		return source.QuotaSpent
	case status == http.StatusForbidden:
		return source.AuthFailed
	default:
		return source.BadRequest
	}
}

// NamesCredential returns true if the status alone means that the credential is refused. 403 does not: some platforms answer 403 for
// one target that may not be shown.
func NamesCredential(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusProxyAuthRequired
}

// RetryAfter reads the header Retry-After, which has seconds or an HTTP date. It returns a time from now to now plus MaxRetryAfter,
// or the zero time if the header is absent or malformed.
func RetryAfter(h http.Header, now time.Time) time.Time {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return time.Time{}
	}
	if strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(MaxRetryAfter/time.Second) {
			return now.Add(MaxRetryAfter)
		}
		return now.Add(time.Duration(seconds) * time.Second)
	}
	at, err := http.ParseTime(text)
	switch {
	case err != nil:
		return time.Time{}
	case at.Before(now):
		return now
	case at.After(now.Add(MaxRetryAfter)):
		return now.Add(MaxRetryAfter)
	default:
		return at
	}
}
