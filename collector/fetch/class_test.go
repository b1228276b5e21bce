package fetch_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

func TestClassOf_returnsClassByStatusAndJSON(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]source.Class{
		200: source.OK, 201: source.OK, 204: source.OK, 301: source.Temporary, 304: source.Temporary,
		400: source.BadRequest, 401: source.AuthFailed, 402: source.QuotaSpent, 403: source.AuthFailed,
		404: source.BadRequest, 407: source.AuthFailed, 408: source.Temporary, 410: source.BadRequest,
		422: source.BadRequest, 425: source.Temporary, 429: source.RateLimited, 451: source.BadRequest,
		500: source.Temporary, 503: source.Temporary, 599: source.Temporary,
	} {
		require.Equal(t, want, fetch.ClassOf(status, true), "status %d", status)
	}
	for status, want := range map[int]source.Class{
		200: source.Temporary, 302: source.Temporary, 400: source.Temporary, 401: source.AuthFailed,
		403: source.Temporary, 404: source.Temporary, 429: source.RateLimited, 502: source.Temporary,
	} {
		require.Equal(t, want, fetch.ClassOf(status, false), "status %d without JSON", status)
	}
}

func TestRetryAfter_parsesSecondsAndDates(t *testing.T) {
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

func TestNewFailure_describesTheStatusAndTheBody(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	noJSON := errors.New("no JSON")
	for name, tt := range map[string]struct {
		status  int
		jsonErr error
		want    source.Failure
	}{
		"refused credential": {401, nil, source.Failure{Class: source.AuthFailed, OfSource: true, Detail: "HTTP 401"}},
		"forbidden":          {403, nil, source.Failure{Class: source.AuthFailed, Detail: "HTTP 403"}},
		"body without JSON":  {502, noJSON, source.Failure{Class: source.Temporary, Detail: "HTTP 502: no JSON"}},
		"redirect":           {302, noJSON, source.Failure{Class: source.Temporary, Detail: "HTTP 302 (redirects are not followed): no JSON"}},
	} {
		tt.want.RetryAt = now.Add(time.Minute)
		got := fetch.NewFailure(&fetch.Response{Status: tt.status, Header: http.Header{"Retry-After": {"60"}}}, tt.jsonErr, now)
		require.Equal(t, tt.want, *got, name)
	}
}
