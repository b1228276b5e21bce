package fetch_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
)

func TestClassOf_judges(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]collector.Class{
		200: collector.OK, 201: collector.OK, 204: collector.OK, 301: collector.Temporary, 304: collector.Temporary,
		400: collector.BadRequest, 401: collector.AuthFailed, 402: collector.QuotaSpent, 403: collector.AuthFailed,
		404: collector.BadRequest, 407: collector.AuthFailed, 408: collector.Temporary, 410: collector.BadRequest,
		422: collector.BadRequest, 425: collector.Temporary, 429: collector.RateLimited, 451: collector.BadRequest,
		500: collector.Temporary, 503: collector.Temporary, 599: collector.Temporary,
	} {
		require.Equal(t, want, fetch.ClassOf(status, true), "status %d", status)
	}
	for status, want := range map[int]collector.Class{
		200: collector.Temporary, 302: collector.Temporary, 400: collector.Temporary, 401: collector.AuthFailed,
		403: collector.Temporary, 404: collector.Temporary, 429: collector.RateLimited, 502: collector.Temporary,
	} {
		require.Equal(t, want, fetch.ClassOf(status, false), "status %d without JSON", status)
	}
}

func TestRetryAfter_reads(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                              {},
		"soon":                          {},
		"-5":                            {},
		"1.5":                           {},
		"0":                             now,
		"120":                           now.Add(2 * time.Minute),
		"86401":                         now.Add(24 * time.Hour),
		"99999999999999999999":          now.Add(24 * time.Hour),
		"Sat, 21 Nov 2026 07:00:30 GMT": now.Add(30 * time.Second),
		"Sat, 21 Nov 2026 06:00:00 GMT": now,
		"Sat, 21 Nov 2099 06:00:00 GMT": now.Add(24 * time.Hour),
	} {
		got := fetch.RetryAfter(http.Header{"Retry-After": {text}}, now)
		require.True(t, want.Equal(got), "%q: want %s, got %s", text, want, got)
	}
	require.True(t, fetch.RetryAfter(http.Header{}, now).IsZero())
}
