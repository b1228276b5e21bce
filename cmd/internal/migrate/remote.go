package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/outbound"
)

// Remote is a client for the API of the other server, from which a migration copies data.
type Remote struct {
	base  *url.URL
	token string
	http  *http.Client
	// waiting is called before the Remote waits for the end of a rate limit or for the next attempt of a request.
	waiting func(reason string, wait time.Duration)
	// sleep waits until the time has passed or ctx is done.
	sleep func(ctx context.Context, wait time.Duration) error

	demo      bool // whether the other server's numbers are made up: its responses have the header ReelTally-Sandbox
	reelTally bool // whether the other server is a ReelTally server, which marks interpolated points: its responses have the header API-Version
}

const (
	// maxAttempts is the maximum number of attempts of a request that fails because of the network or the other server. After them, the
	// migration ends. An attempt that a rate limit refused is not counted.
	maxAttempts = 10
	// maxBackoff is the longest wait after a failure.
	maxBackoff = time.Minute
	// maxWait is the longest wait for the end of a rate limit. If a response asks for a longer wait, the Remote waits for maxWait.
	maxWait = 15 * time.Minute
	// requestTimeout is the time limit for one attempt.
	requestTimeout = 2 * time.Minute
	// maxBody is the maximum size of a response in bytes.
	maxBody = 64 << 20
	// pageSize is the number of entries that a page of a list has.
	pageSize = 1000
)

// NewRemote returns a Remote for the API at base. It connects only to the host of base, which may have a private address, because the
// operator names it.
func NewRemote(base, token string, waiting func(reason string, wait time.Duration)) (*Remote, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the address of an API; it must be like https://api.example.com", base)
	}
	guard := &outbound.Guard{Reach: func(address string) outbound.Reach {
		if address == outbound.AddressOf(u) {
			return outbound.Operated
		}
		return outbound.NoAddress
	}}
	return &Remote{base: u, token: token, waiting: waiting, sleep: sleep, http: &http.Client{Transport: outbound.NewTransport(guard), Timeout: requestTimeout,
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

// statusError is an answer of the other server with an unexpected status.
type statusError struct {
	path   string
	status int
	detail string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("GET %s: the service answered with status %d: %s", e.path, e.status, e.detail)
}

// hasStatus returns true if err is an answer with the given status.
func hasStatus(err error, status int) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && e.status == status
}

// get requests path and decodes the response into the value to which out points. If a rate limit refuses the request, get waits and tries
// again. It also repeats a request that failed because of the network or the other server.
func (r *Remote) get(ctx context.Context, path string, query url.Values, out any) error {
	for attempt := 1; ; {
		wait, reason, err := r.try(ctx, path, query, out)
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
		r.waiting(reason, wait)
		if err := r.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// try sends one request. If the request fails but can succeed later, wait is the shortest time to wait before the next attempt, and reason says
// why. Otherwise wait is 0.
func (r *Remote) try(ctx context.Context, path string, query url.Values, out any) (wait time.Duration, reason string, err error) {
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
		err := &statusError{path: path, status: response.StatusCode, detail: detailOf(response, body)}
		switch {
		case response.StatusCode == http.StatusTooManyRequests:
			return max(retryAfter(response), time.Second), "the rate limit of the service is reached", err
		case response.StatusCode >= http.StatusInternalServerError:
			return max(retryAfter(response), time.Second), err.Error(), err
		}
		return 0, "", err
	}
	r.demo = r.demo || response.Header.Get("ReelTally-Sandbox") == "true"
	r.reelTally = r.reelTally || response.Header.Get("API-Version") != ""
	if err := json.Unmarshal(body, out); err != nil {
		return 0, "", fmt.Errorf("GET %s: the response is not the expected JSON; is %s the address of the API? %w", path, r.base, err)
	}
	return 0, "", nil
}

// retryAfter returns the time in the header Retry-After, which is a number of seconds or a date. It returns 0 if there is none.
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

// detailOf returns the shortened message of an error response.
func detailOf(response *http.Response, body []byte) string {
	if to := response.Header.Get("Location"); to != "" {
		return fmt.Sprintf("it redirects to %q; give the address of the API itself", to)
	}
	var problem struct{ Detail, Error, Message string }
	_ = json.Unmarshal(body, &problem) // a response without JSON is shown as it is
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

// pagination is the part of a page that says how many pages the list has.
type pagination struct {
	Total      int64 `json:"total"`
	TotalPages int   `json:"total_pages"`
}

// page is a page of a list.
type page[T any] struct {
	Data       []T        `json:"data"`
	Pagination pagination `json:"pagination"`
}

// list reads all pages of a list, the oldest entry first, so that entries that are added in the meantime come last. id returns the id of an
// entry. An entry that is on two pages is returned once.
func list[T any](ctx context.Context, r *Remote, path string, query url.Values, id func(*T) string) ([]T, error) {
	var out []T
	seen := map[string]bool{}
	for n := 1; ; n++ {
		q := url.Values{"page": {strconv.Itoa(n)}, "limit": {strconv.Itoa(pageSize)}, "order_by": {"created_at"}, "order_direction": {"asc"}}
		maps.Copy(q, query)
		var p page[T]
		if err := r.get(ctx, path, q, &p); err != nil {
			return nil, err
		}
		for i := range p.Data {
			if key := id(&p.Data[i]); !seen[key] {
				seen[key] = true
				out = append(out, p.Data[i])
			}
		}
		if len(p.Data) == 0 || n >= p.Pagination.TotalPages {
			return out, nil
		}
	}
}
