package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/outbound"
)

// Remote is a client for the API of the remote server, from which a migration copies data.
type Remote struct {
	base  *url.URL
	token string
	http  *http.Client
	// onWait is called before each wait, with its reason and duration. Remote waits before it repeats a request that
	// failed temporarily or that a rate limit refused.
	onWait func(reason string, wait time.Duration)
	// sleep waits until the time has passed or ctx is done.
	sleep func(ctx context.Context, wait time.Duration) error

	madeUp    bool // whether the numbers are made up; set by responses with the header ReelTally-Sandbox
	reelTally bool // whether the remote server is a ReelTally server; set by responses with the header API-Version
}

const (
	// maxAttempts limits the attempts to send a request. After the last attempt, the migration fails. Attempts that a
	// rate limit refused do not count.
	maxAttempts = 10
	// maxBackoff is the maximum wait after a failed request. The wait doubles with each failure. A response can ask for a longer wait, up to maxWait.
	maxBackoff = time.Minute
	// maxWait is the maximum wait if the header Retry-After of a response asks for a longer one.
	maxWait = 15 * time.Minute
	// requestTimeout is the time limit for one request, including the response.
	requestTimeout = 2 * time.Minute
	// maxBody is the maximum size of a response in bytes.
	maxBody = 64 << 20
	// pageSize is the requested number of entries of each page of a list.
	pageSize = 1000
)

// NewRemote returns a client for the API at baseURL. It connects only to the host of this URL. The host may have a private address, because the
// operator chose it.
func NewRemote(baseURL, token string, onWait func(reason string, wait time.Duration)) (*Remote, error) {
	u, err := outbound.ParseBaseURL(strings.TrimRight(baseURL, "/"))
	if err != nil {
		return nil, fmt.Errorf("%q is not the address of an API; it must be like https://api.example.com", baseURL)
	}
	guard := &outbound.Guard{Reach: func(address string) outbound.Reach {
		if address == outbound.AddressOf(u) {
			return outbound.Operated
		}
		return outbound.NoAddress
	}}
	return &Remote{base: u, token: token, onWait: onWait, sleep: sleep, http: &http.Client{Transport: outbound.NewTransport(guard), Timeout: requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// close closes the idle connections.
func (r *Remote) close() { r.http.CloseIdleConnections() }

// sleep waits until the time has passed or ctx is done.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// statusError reports that the remote server answered with a status other than 200.
type statusError struct {
	path   string
	status int
	detail string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("GET %s: the service answered with status %d: %s", e.path, e.status, e.detail)
}

// hasStatus returns true if err is a statusError with the given status.
func hasStatus(err error, status int) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && e.status == status
}

// getJSON sends a GET request and decodes the JSON of the response into *result. It repeats the request after failures
// that may be temporary.
func (r *Remote) getJSON(ctx context.Context, path string, query url.Values, result any) error {
	for attempt := 1; ; {
		wait, reason, err := r.sendRequest(ctx, path, query, result)
		if wait == 0 || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if !hasStatus(err, http.StatusTooManyRequests) {
			if attempt == maxAttempts {
				return fmt.Errorf("after %d attempts: %w", attempt, err)
			}
			wait = max(wait, min(time.Second<<(attempt-1), maxBackoff))
			attempt++
		}
		r.onWait(reason, wait)
		if err := r.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// sendRequest sends a request once. minWait is the minimum time before the next attempt, or 0 if there is no reason to
// repeat the request.
func (r *Remote) sendRequest(ctx context.Context, path string, query url.Values, result any) (minWait time.Duration, failure string, err error) {
	target := *r.base
	target.Path, target.RawQuery = target.Path+path, query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set("Accept", "application/json")
	response, err := r.http.Do(request)
	if err != nil {
		if _, ok := errors.AsType[*outbound.RefusedError](err); ok {
			return 0, "", err
		}
		return time.Second, "the network failed: " + err.Error(), err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return time.Second, "the connection broke: " + err.Error(), err
	case len(body) > maxBody:
		return 0, "", fmt.Errorf("GET %s: the response is larger than %d bytes", path, maxBody)
	}
	if response.StatusCode != http.StatusOK {
		err := &statusError{path: path, status: response.StatusCode, detail: errorMessage(response, body)}
		switch {
		case response.StatusCode == http.StatusTooManyRequests:
			return max(retryAfter(response), time.Second), "the rate limit of the service is reached", err
		case response.StatusCode >= http.StatusInternalServerError:
			return max(retryAfter(response), time.Second), err.Error(), err
		}
		return 0, "", err
	}
	r.madeUp = r.madeUp || response.Header.Get(reeltally.SandboxHeader) == "true"
	r.reelTally = r.reelTally || response.Header.Get("API-Version") != ""
	if err := json.Unmarshal(body, result); err != nil {
		return 0, "", fmt.Errorf("GET %s: the response is not the expected JSON; is %s the address of the API? %w", path, r.base, err)
	}
	return 0, "", nil
}

// retryAfter returns the wait that the header Retry-After asks for, at most maxWait. It returns 0 if the header is
// missing or invalid.
func retryAfter(response *http.Response) time.Duration {
	text := response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return min(time.Duration(max(seconds, 0))*time.Second, maxWait)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), 0), maxWait)
	}
	return 0
}

// errorMessage returns the message of an error response, shortened to about 300 bytes.
func errorMessage(response *http.Response, body []byte) string {
	if to := response.Header.Get("Location"); to != "" {
		return fmt.Sprintf("it redirects to %q; give the address of the API itself", to)
	}
	var problem struct{ Detail, Error, Message string }
	_ = json.Unmarshal(body, &problem) // if the body is not JSON, the body itself is the message
	text := string(body)
	for _, t := range []string{problem.Detail, problem.Error, problem.Message} {
		if t != "" {
			text = t
			break
		}
	}
	const maxBytes = 300
	if len(text) > maxBytes {
		text = text[:maxBytes] + "…"
	}
	return strings.ToValidUTF8(strings.TrimSpace(text), "?")
}

// pagination is the part of a response that says how many rows and pages the whole list has. NextCursor is "" on the last page, and on all pages of a
// service that has no cursors.
type pagination struct {
	Total      int64  `json:"total"`
	TotalPages int    `json:"total_pages"`
	NextCursor string `json:"next_cursor"`
}

// page is the response to a request for one page of a list.
type page[T any] struct {
	Data       []T        `json:"data"`
	Pagination pagination `json:"pagination"`
}

// list has the downloaded entries of one or more lists.
type list[E any] struct {
	Entries E     `json:"entries"`
	Missing int64 `json:"missing"` // number of entries that the remote server counted but did not list
}

// listAll requests all pages of a list and returns the entries, the oldest first. The function idOf returns the id of
// an entry. If a page does not begin where the page before it ends, listAll returns an error.
func listAll[T any](ctx context.Context, r *Remote, path string, query url.Values, idOf func(*T) string) (out list[[]T], err error) {
	var answered pagination // the pagination of the last response
	total := int64(0)
	numbered := numberedPages{least: math.MaxInt64}
	seen := map[string]bool{}
	cursor := ""
	for n := 1; ; {
		q := url.Values{"limit": {strconv.Itoa(pageSize)}, "order_by": {"created_at"}, "order_direction": {"asc"}}
		if cursor != "" {
			// A server can end a large page before its limit. The number of the next page would then skip entries, but the cursor does not.
			q.Set("cursor", cursor)
		} else {
			q.Set("page", strconv.Itoa(n))
		}
		maps.Copy(q, query)
		var p page[T]
		switch err := r.getJSON(ctx, path, q, &p); {
		case n > 1 && n > answered.TotalPages && (hasStatus(err, http.StatusNotFound) || hasStatus(err, http.StatusBadRequest)):
			p.Pagination = answered // a service can refuse a page after the last one
		case err != nil:
			return out, err
		}
		answered = p.Pagination
		if n == 1 || len(p.Data) > 0 { // a page after the last one can have another total
			total = answered.Total
		}
		before := len(out.Entries)
		for i := range p.Data {
			// If the list changes between two requests, the same entry can be on two pages.
			if key := idOf(&p.Data[i]); !seen[key] {
				seen[key] = true
				out.Entries = append(out.Entries, p.Data[i])
			}
		}
		switch next := answered.NextCursor; {
		case next != "" && next != cursor && len(p.Data) > 0:
			cursor = next
			continue
		case next == "" && cursor == "":
			if n, err = numbered.next(n, len(p.Data), before, len(out.Entries), answered); err != nil {
				return out, fmt.Errorf("GET %s: %w", path, err)
			}
			if n > 0 {
				continue
			}
		}
		// If a list grows while it is read, the new entries are on its last pages, because it is ordered by time. If it shrinks, the result also has
		// deleted entries. So entries are missing only if the total is not exact, or the service left entries out.
		out.Missing = max(0, total-int64(len(out.Entries)))
		return out, nil
	}
}

// numberedPages decides which page of a list to request next, if the service has page numbers and no cursors.
type numberedPages struct {
	last    int   // the highest number of a page that was read
	largest int   // the number of entries on the largest page
	short   bool  // true if the page that was read last has fewer entries than a full page
	least   int64 // the lowest total of the responses
}

// next returns the number of the page to request after page n, or 0 if the list has ended. `entries` is the number of entries on page n. `before` and
// `after` are the numbers of different entries that were read before page n and with it. If page n does not continue the page before it, next returns an
// error.
func (s *numberedPages) next(n, entries, before, after int, p pagination) (int, error) {
	isNew := n > s.last
	s.last = max(s.last, n)
	// If entries were deleted, the later entries have moved towards the beginning, so some may have moved to the page before.
	if n > 1 && p.Total < s.least {
		s.least, s.short = p.Total, false
		return n - 1, nil
	}
	s.least = min(s.least, p.Total)
	// If page n-1 was short, the service counts pages by the full page size, so it skipped the entries between the two pages. If page n has no new
	// entries, the service ignores the page number.
	if entries > 0 && (s.short || isNew && after == before && n <= p.TotalPages) {
		return 0, fmt.Errorf("page %d of the list does not begin where page %d ends, so entries would be left out", n, n-1)
	}
	s.largest = max(s.largest, entries)
	s.short = entries < s.largest || int64(entries)*int64(p.TotalPages) < p.Total
	// The total can be an approximation. If it differs from the number of entries, or if the last page is full, more pages may follow.
	if n < max(p.TotalPages, s.last) || after > before && (int64(after) != p.Total || entries >= pageSize) {
		return n + 1, nil
	}
	return 0, nil
}
