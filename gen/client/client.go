// Package client is the Go client of the API. client.gen.go is generated from openapi.yaml; New, Get, Pages, AllVideos, AllAccounts and
// AllCollections make it easier to use:
//
//	c, err := client.New("", "")
//	page, err := client.Get(c.ListVideosWithResponse(ctx, &client.ListVideosParams{Limit: new(int32(5))}))
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"
)

const (
	maxRetries = 4                // how often a request is repeated
	maxWait    = 90 * time.Second // the longest wait before a repetition
)

// New returns a client for the server at address that sends the token. An empty address is the environment variable REELTALLY_URL, and an empty
// token is REELTALLY_TOKEN. The client repeats a request after 429, 502, 503, 504 and failures of the network, as long as the header Retry-After
// says. Each POST has an Idempotency-Key, which its repetitions keep.
func New(address, token string, options ...ClientOption) (*ClientWithResponses, error) {
	address, token = cmp.Or(address, os.Getenv("REELTALLY_URL")), cmp.Or(token, os.Getenv("REELTALLY_TOKEN")) //nolint:forbidigo // other programs use this package
	if address == "" || token == "" {
		return nil, errors.New("address and token are needed: pass them, or set REELTALLY_URL and REELTALLY_TOKEN")
	}
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		if r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") == "" {
			r.Header.Set("Idempotency-Key", rand.Text())
		}
		return nil
	}
	standard := []ClientOption{WithHTTPClient(&http.Client{Transport: retrying{http.DefaultTransport}}), WithRequestEditorFn(authorize)} //nolint:forbidigo // other programs use this package
	return NewClientWithResponses(address, append(standard, options...)...)
}

// Error is the error of a response that is not successful.
type Error struct {
	StatusCode int // of HTTP
	Problem        // decoded error response of the server; empty if a proxy answered instead of the server
}

func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("the server answered with status %d", e.StatusCode)
	}
	return fmt.Sprintf("%s (code %s, request %s)", e.Detail, e.Code, e.RequestID)
}

// response is a response of the generated client whose successful JSON has the type T.
type response[T any] interface {
	StatusCode() int
	GetJSON200() *T
	GetApplicationProblemJSONDefault() *Problem
}

// Get returns the JSON of a response with status 200, or an error: err, or an *Error if the response has another status.
func Get[T any](r response[T], err error) (result T, _ error) {
	if err != nil {
		return result, err
	}
	if found := r.GetJSON200(); found != nil {
		return *found, nil
	}
	failed := &Error{StatusCode: r.StatusCode()}
	if problem := r.GetApplicationProblemJSONDefault(); problem != nil {
		failed.Problem = *problem
	}
	return result, failed
}

// Pages returns the entries of all pages that read returns. read gets the cursor of a page, which is nil for the first page, and returns the
// entries of the page and the cursor of the next page, which is nil on the last page. An error ends the sequence.
func Pages[T any](read func(cursor *string) (entries []T, next *string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := (*string)(nil); ; {
			entries, next, err := read(cursor)
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
			cursor = next
		}
	}
}

// AllVideos returns the videos of all pages of a list.
func AllVideos(ctx context.Context, c *ClientWithResponses, params ListVideosParams) iter.Seq2[Video, error] {
	return Pages(func(cursor *string) ([]Video, *string, error) {
		params.Cursor, params.Page = cmp.Or(cursor, params.Cursor), nil
		page, err := Get(c.ListVideosWithResponse(ctx, &params))
		return page.Data, page.Pagination.NextCursor, err
	})
}

// AllAccounts returns the accounts of all pages of a list.
func AllAccounts(ctx context.Context, c *ClientWithResponses, params ListAccountsParams) iter.Seq2[Account, error] {
	return Pages(func(cursor *string) ([]Account, *string, error) {
		params.Cursor, params.Page, params.Paginated = cmp.Or(cursor, params.Cursor), nil, new(true)
		list, err := Get(c.ListAccountsWithResponse(ctx, &params))
		if err != nil {
			return nil, nil, err
		}
		page, err := list.AsAccountPage()
		return page.Data, page.Pagination.NextCursor, err
	})
}

// AllCollections returns the collections of all pages of a list.
func AllCollections(ctx context.Context, c *ClientWithResponses, params ListCollectionsParams) iter.Seq2[Collection, error] {
	return Pages(func(cursor *string) ([]Collection, *string, error) {
		params.Cursor, params.Page, params.Paginated = cmp.Or(cursor, params.Cursor), nil, new(true)
		list, err := Get(c.ListCollectionsWithResponse(ctx, &params))
		if err != nil || list.Pagination == nil {
			return list.Data, nil, err
		}
		return list.Data, list.Pagination.NextCursor, nil
	})
}

// retrying is a transport that repeats requests.
type retrying struct{ next http.RoundTripper }

// RoundTrip sends a request until it is answered, or until it was repeated maxRetries times.
func (t retrying) RoundTrip(r *http.Request) (*http.Response, error) {
	repeatable := r.Method != http.MethodPost || r.Header.Get("Idempotency-Key") != ""
	for attempt := 0; ; attempt++ {
		own := r.Clone(r.Context())
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			own.Body = body
		}
		answer, err := t.next.RoundTrip(own)
		wait := min(8*time.Second, 500*time.Millisecond<<attempt)
		wait = wait/2 + mathrand.N(wait/2) //nolint:gosec // the wait is no secret
		again := repeatable && err != nil
		if err == nil {
			if seconds, invalid := strconv.Atoi(answer.Header.Get("Retry-After")); invalid == nil {
				wait = time.Duration(seconds) * time.Second
			}
			again = asksAgain(answer, repeatable)
		}
		if !again || attempt == maxRetries || wait > maxWait || r.Context().Err() != nil {
			return answer, err
		}
		if err == nil {
			_ = answer.Body.Close() // the request is repeated, so the content of this answer is not needed
		}
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(wait):
		}
	}
}

// asksAgain returns true if the request with this answer should be repeated. repeatable is true if the request may be repeated although it may
// have taken effect.
func asksAgain(answer *http.Response, repeatable bool) bool {
	switch answer.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return repeatable
	case http.StatusConflict: // the first request with the same key may still run
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		answer.Body = io.NopCloser(bytes.NewReader(body))
		var problem struct{ Code string }
		return err == nil && json.Unmarshal(body, &problem) == nil && problem.Code == "idempotency_key_in_use"
	}
	return false
}
