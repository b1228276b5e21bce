package fetch

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/source"
)

// MaxRetryAfter is the longest wait that is accepted from a Retry-After header. A longer wait is probably a mistake of the server.
const MaxRetryAfter = 24 * time.Hour

// ClassOf returns the class of an answer without an error code. It never returns a class that
// concerns only one target, such as Gone.
func ClassOf(status int, isJSON bool) source.Class {
	switch {
	case status >= 200 && status < 300 && isJSON:
		return source.OK
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired:
		return source.AuthFailed
	case status == http.StatusTooManyRequests:
		return source.RateLimited
	// A 403 or 404 without JSON usually comes from a proxy or a load balancer.
	case !isJSON, status < 400, status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return source.Temporary
	case status == http.StatusPaymentRequired:
		return source.QuotaSpent
	// With status 403, AuthFailed does not always mean that the credential is invalid; see
	// IsCredentialRefusal.
	case status == http.StatusForbidden:
		return source.AuthFailed
	default:
		// A 404 does not give the class Gone, because it can also mean a wrong base URL.
		return source.BadRequest
	}
}

// IsCredentialRefusal returns true if the status means that the credential was refused. It returns
// false for 403, which can also mean that a video is not public.
func IsCredentialRefusal(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusProxyAuthRequired
}

// NewFailure returns the failure for an answer that is not a success, as far as it follows from the HTTP status and the headers. If the body is not the
// expected JSON, jsonErr says why. The caller adds what the error codes of the platform say.
func NewFailure(res *Response, jsonErr error, now time.Time) *source.Failure {
	f := &source.Failure{Class: ClassOf(res.Status, jsonErr == nil), RetryAt: RetryAfter(res.Header, now), OfSource: IsCredentialRefusal(res.Status),
		Detail: fmt.Sprintf("HTTP %d", res.Status)}
	if res.Status >= 300 && res.Status < 400 {
		f.Detail += " (redirects are not followed)"
	}
	if jsonErr != nil {
		f.Detail += ": " + jsonErr.Error()
	}
	return f
}

// RetryAfter returns the time in the Retry-After header, or the zero time if the header is absent
// or malformed. The wait is between 0 and MaxRetryAfter.
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
