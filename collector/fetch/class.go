package fetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/source"
)

// MaxRetryAfter is the longest wait that is accepted from a Retry-After header. A longer wait is probably a mistake of the server.
const MaxRetryAfter = 24 * time.Hour

// ClassOf returns the class that the HTTP status gives to an answer without an error code. It never returns a class that concerns only one
// target, such as Gone, because a 404 can also mean a wrong base URL. AuthFailed does not always mean that the credential is invalid; see
// IsCredentialRefusal.
//
// A 403 or 404 whose body is not JSON gets the class Temporary, because it usually comes from a proxy or a load balancer.
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

// IsCredentialRefusal returns true if the status alone means that the credential was refused. It returns false for 403, because some
// platforms answer 403 if one video or account is not public.
func IsCredentialRefusal(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusProxyAuthRequired
}

// RetryAfter returns the time in the Retry-After header, which contains a number of seconds or an HTTP date. The result is not in the past,
// and at most MaxRetryAfter in the future. RetryAfter returns the zero time if the header is absent or malformed.
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
