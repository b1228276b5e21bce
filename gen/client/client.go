// Package client is the Go client of the API. The files that end with .gen.go are generated from openapi.yaml.
//
//	c, err := client.New("", "")
//	page, err := c.ListVideos(ctx, client.ListVideosOptions{OrderBy: client.VideoOrderLatestViews, Limit: 5})
package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	maxErrorBody = 200                // maximum length in bytes of the member Body of an Error
	mediaJSON    = "application/json" // media type of results
)

// ReelTally is a client of the API. Methods such as AllVideos read all pages of a list. Options
// with the zero value are not sent.
type ReelTally struct {
	// Raw returns HTTP responses with unread bodies. If the connection breaks while the caller
	// reads a body, Raw does not repeat the request.
	Raw *Client
}

// New returns a client for the server at address. If address or token is "", New uses the environment
// variable REELTALLY_URL or REELTALLY_TOKEN. The client repeats requests after temporary failures. A
// repeated request that takes an Idempotency-Key has the same key. An attempt fails if the server sends nothing for 60 seconds: WithTimeout changes this limit. With the
// option WithHTTPClient, the client sends each attempt with a copy of your http.Client, and still repeats requests. The client follows no redirects: the
// error of a redirected request names the new address.
func New(address, token string, options ...ClientOption) (*ReelTally, error) {
	address, token = cmp.Or(address, os.Getenv("REELTALLY_URL")), cmp.Or(token, os.Getenv("REELTALLY_TOKEN")) //nolint:forbidigo // allowed here, because other programs use this package
	// A value that was read from a file can end with a line break.
	address, token = strings.TrimSpace(address), strings.TrimSpace(token)
	if address == "" || token == "" {
		return nil, errors.New("address and token are needed: pass them, or set REELTALLY_URL and REELTALLY_TOKEN")
	}
	if scheme, host, _ := strings.Cut(strings.ToLower(address), "://"); host == "" || scheme != "https" && scheme != "http" {
		return nil, fmt.Errorf("the address of the server is %q: it must begin with https:// or http://, such as https://reeltally.example.com", address)
	}
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		if r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") == "" {
			// A POST that the caller sends with Raw has no key yet.
			r.Header.Set("Idempotency-Key", rand.Text())
		}
		return nil
	}
	limit := &timeLimit{next: &http.Client{}, timeout: defaultTimeout}
	all := []ClientOption{WithRequestEditorFn(authorize)}
	for _, option := range options {
		all = append(all, limit.keepClient(option))
	}
	repeat := func(c *Client) error {
		limit.next = withoutRedirects(limit.next)
		c.Client = retrying{limit, c.Server}
		return nil
	}
	raw, err := NewClient(address, append(all, repeat)...)
	if err != nil {
		return nil, err
	}
	return &ReelTally{Raw: raw}, nil
}

// Must returns its first argument, or panics if err is not nil. Use it in short programs that cannot continue after an error:
//
//	top := client.Must(c.ListVideos(ctx, client.ListVideosOptions{Limit: 5}))
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Error is the error for a response that is not a success, or that does not have the expected type.
type Error struct {
	StatusCode  int           // HTTP status code; 2xx if the response does not have the expected type, for example because a proxy answered
	ContentType string        // header Content-Type of the response
	Body        string        // the first bytes of the response body, at most maxErrorBody bytes
	Problem                   // decoded error response of the server; empty if a proxy answered instead of the server
	RetryAfter  time.Duration // how long the header Retry-After says to wait; 0 if the response has none

	cause    error  // error of decoding a response with a 2xx status; nil if the response has another type or status
	redirect string // message about the address to which the response redirects; "" if the response is no redirect
}

func (e *Error) Error() string {
	switch {
	case e.redirect != "":
		return e.redirect
	case e.Code != "":
		return fmt.Sprintf("%s (code %s, request %s)", e.Detail, e.Code, e.RequestID)
	case e.cause != nil:
		return fmt.Sprintf("the server answered with status %d and JSON that cannot be read: %v", e.StatusCode, e.cause)
	case e.StatusCode >= 200 && e.StatusCode < 300:
		return fmt.Sprintf("the server answered with status %d and the unexpected Content-Type %q: is a proxy or a login page in between?", e.StatusCode, e.ContentType)
	}
	return fmt.Sprintf("the server answered with status %d", e.StatusCode)
}

// Unwrap returns the error of decoding the JSON of a response with a 2xx status. For other errors, it returns nil.
func (e *Error) Unwrap() error { return e.cause }

// decodeResult decodes the JSON of a successful response, or of a response 422 to a bulk request. If T is struct{}, only a response with status 204 is
// successful. A response with status 202 can have no content: the result is then the zero value. For any other response, it returns an *Error.
func decodeResult[T any](r *http.Response, err error) (value T, _ error) {
	if err != nil {
		return value, err
	}
	defer func() { _ = r.Body.Close() }() // ignore the error: the body was read completely
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return value, err
	}
	if r.StatusCode == http.StatusAccepted && len(body) == 0 && r.Header.Get("Content-Type") == "" { // the response to a refresh
		return value, nil
	}
	if _, isEmpty := any(value).(struct{}); isEmpty {
		if r.StatusCode == http.StatusNoContent {
			return value, nil
		}
		return value, responseError(r, body)
	}
	isSuccess := r.StatusCode >= 200 && r.StatusCode < 300
	// A response 422 has the reason for each entry that failed.
	if !hasType(r, mediaJSON) || !isSuccess && r.StatusCode != http.StatusUnprocessableEntity {
		return value, responseError(r, body)
	}
	if err := json.Unmarshal(body, &value); err != nil {
		failed := responseError(r, body)
		failed.cause = err
		return *new(T), failed
	}
	return value, nil
}

// hasType returns true if the Content-Type of a response is the given media type. It ignores the parameters of both, such as charset.
func hasType(r *http.Response, mediaType string) bool {
	got, _, errGot := mime.ParseMediaType(r.Header.Get("Content-Type"))
	want, _, errWant := mime.ParseMediaType(mediaType)
	return errGot == nil && errWant == nil && got == want
}

// responseError returns the error for a response with an error status, or with a Content-Type that the operation does not have.
func responseError(r *http.Response, body []byte) *Error {
	failed := &Error{StatusCode: r.StatusCode, ContentType: r.Header.Get("Content-Type"), Body: string(body[:min(len(body), maxErrorBody)])}
	if r.StatusCode < 300 {
		return failed
	}
	failed.redirect = redirectMessage(r)
	failed.RetryAfter, _ = retryAfter(r)
	if json.Unmarshal(body, &failed.Problem) != nil { // ignore the error: a proxy may have answered in another format
		failed.Problem = Problem{}
	}
	return failed
}

// allPages returns the entries of all pages, from firstCursor on. The cursor "" means the first page. For the last page, readPage
// returns nil as `next`.
func allPages[T any](firstCursor string, readPage func(cursor string) (entries []T, next *string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := firstCursor; ; {
			entries, next, err := readPage(cursor)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, entry := range entries {
				if !yield(entry, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			cursor = *next
		}
	}
}

// keyOrNew returns a pointer to an Idempotency-Key, or to a new key if key is "". All repetitions of a request have the same key.
func keyOrNew(key string) *string { return new(cmp.Or(key, rand.Text())) }

// optional returns a pointer to the value of an option. For the zero value it returns nil, so that the option is not sent.
func optional[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}
