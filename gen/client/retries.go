package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	maxRetries = 4                // maximum number of repetitions of one request; it does not include repetitions after the error that the Idempotency-Key is in use
	maxWait    = 90 * time.Second // longest wait before a repetition
	maxKeyWait = 90 * time.Second // maximum time to wait while the server reports that the Idempotency-Key of a request is in use

	defaultTimeout = 60 * time.Second // how long the server may send nothing, if the option WithTimeout is not given
)

// WithTimeout sets how long the server may send nothing before an attempt fails. The default is 60 seconds. Zero means no limit. A failed attempt is
// repeated like an attempt whose connection broke. A response can last longer than the timeout if its parts arrive in time. For a limit of
// all attempts together, use a context with a deadline.
func WithTimeout(timeout time.Duration) ClientOption {
	return func(c *Client) error {
		next := c.Client
		if next == nil {
			next = &http.Client{}
		}
		c.Client = &timeLimit{next, timeout}
		return nil
	}
}

// timeLimit sends requests with next. A request fails with a timeoutError if the server sends nothing for the duration timeout.
type timeLimit struct {
	next    HttpRequestDoer
	timeout time.Duration // no limit if it is zero or negative
}

// keepClient returns an option that does the same as the given option. But if the given option changes the HTTP client or the timeout, the returned
// option changes l instead.
func (l *timeLimit) keepClient(option ClientOption) ClientOption {
	return func(c *Client) error {
		c.Client = l.next
		err := option(c)
		switch changed := c.Client.(type) {
		case nil:
		case *timeLimit:
			*l = *changed
		default:
			l.next = changed
		}
		return err
	}
}

// Do sends a request once.
func (l *timeLimit) Do(r *http.Request) (*http.Response, error) {
	if l.timeout <= 0 {
		return l.next.Do(r)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	body := &limitedBody{ctx: ctx, cancel: cancel, timeout: l.timeout}
	body.timer = time.AfterFunc(l.timeout, func() { cancel(timeoutError{l.timeout}) })
	response, err := l.next.Do(r.WithContext(ctx))
	body.timer.Stop()
	if err != nil {
		if cause := body.cause(err); cause != err { //nolint:errorlint // the same error, not one that it wraps
			err = urlError(r, cause)
		}
		cancel(nil)
		return response, err
	}
	body.ReadCloser = response.Body
	response.Body = body
	return response, nil
}

// limitedBody is the body of a response. The time limit holds for each read. It does not include the time between reads, in which the caller uses
// the data.
type limitedBody struct {
	io.ReadCloser
	ctx     context.Context // the context of the request
	cancel  context.CancelCauseFunc
	timer   *time.Timer // calls cancel with a timeoutError
	timeout time.Duration
}

func (b *limitedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.timeout)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	return n, b.cause(err)
}

func (b *limitedBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// cause returns the timeoutError if the request failed because of the time limit. Otherwise it returns err.
func (b *limitedBody) cause(err error) error {
	if late, ok := context.Cause(b.ctx).(timeoutError); ok && err != nil && err != io.EOF { //nolint:errorlint // these errors are not wrapped
		return late
	}
	return err
}

// timeoutError is the error of an attempt in which the server sent nothing for a duration. It implements net.Error.
type timeoutError struct{ silence time.Duration }

func (e timeoutError) Error() string { return fmt.Sprintf("the server sent nothing for %s", e.silence) }

// Timeout returns true.
func (timeoutError) Timeout() bool { return true }

// Temporary returns true.
func (timeoutError) Temporary() bool { return true }

// urlError returns a *url.Error with the method and address of a request, as package net/http does.
func urlError(r *http.Request, err error) error {
	return &url.Error{Op: r.Method[:1] + strings.ToLower(r.Method[1:]), URL: r.URL.Redacted(), Err: err}
}

// wholeResponseKey is a key for the context of a request. It marks requests whose responses are read completely before they are used.
type wholeResponseKey struct{}

// wholeResponse marks a request whose response is read completely before it is used. If the response breaks off, the client sends the request again.
func wholeResponse(ctx context.Context) context.Context {
	return context.WithValue(ctx, wholeResponseKey{}, true)
}

// retrying repeats failed requests, which it sends with next.
type retrying struct {
	next   HttpRequestDoer
	server string // the address of the server
}

// Do sends a request and repeats it after temporary failures. maxRetries and maxKeyWait limit the repetitions.
func (t retrying) Do(r *http.Request) (*http.Response, error) {
	// A body that can be read only once cannot be sent again.
	readOnce := r.Body != nil && r.Body != http.NoBody && r.GetBody == nil
	repeatable := r.Method != http.MethodPost || r.Header.Get("Idempotency-Key") != ""
	var keyWait time.Duration // total time of the waits for an Idempotency-Key that was in use
	keyRetries := 0           // number of these waits
	for attempt := 0; ; attempt++ {
		own := r.Clone(context.WithValue(r.Context(), serverKey{}, t.server))
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			own.Body = body
		}
		response, err := t.next.Do(own)
		if err == nil && r.Context().Value(wholeResponseKey{}) != nil {
			if _, err = readBody(response); err != nil { // the connection broke before the response was complete
				response, err = nil, urlError(r, err)
			}
		}
		wait := min(8*time.Second, 500*time.Millisecond<<min(attempt, 4))
		wait = wait/2 + mathrand.N(wait/2) //nolint:gosec // a weak random number is enough, because the wait need not be secret
		again, keyInUse := repeatable && err != nil, false
		if err == nil {
			if after, ok := retryAfter(response); ok {
				wait = after
			}
			again, keyInUse = shouldRepeat(response, repeatable), isKeyInUse(response)
		}
		if keyInUse {
			keyWait, keyRetries = keyWait+wait, keyRetries+1
			again = keyWait <= maxKeyWait
		} else {
			again = again && attempt-keyRetries < maxRetries && wait <= maxWait
		}
		if !again || readOnce || r.Context().Err() != nil {
			return response, err
		}
		if err == nil {
			_ = response.Body.Close() // close this response, which is not used because the request is repeated
		}
		select {
		case <-r.Context().Done():
			return nil, urlError(r, r.Context().Err())
		case <-time.After(wait):
		}
	}
}

// retryAfter returns how long the header Retry-After of a response says to wait. The header has a number of seconds or a time. A time is compared with the
// header Date of the response, because the clock of this machine can be wrong. The second result is false if the header is absent, invalid or 0, or if its
// time is not in the future.
func retryAfter(response *http.Response) (time.Duration, bool) {
	text := response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(seconds) * time.Second, seconds > 0
	}
	end, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	now, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		now = time.Now() //nolint:forbidigo // the time of the machine, as for the waits before repetitions
	}
	return end.Sub(now), end.After(now)
}

// shouldRepeat returns true if the request should be repeated after this response. If isRepeatable is
// true, sending the request twice does no harm.
func shouldRepeat(response *http.Response, isRepeatable bool) bool {
	switch response.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		// It is unknown whether the request took effect.
		return isRepeatable
	}
	return false
}

// isKeyInUse returns true if the response says that an earlier request with the same Idempotency-Key still runs or was interrupted.
func isKeyInUse(response *http.Response) bool {
	if response.StatusCode != http.StatusConflict {
		return false
	}
	body, err := readBody(response)
	var problem struct{ Code string }
	return err == nil && json.Unmarshal(body, &problem) == nil && problem.Code == "idempotency_key_in_use"
}

// readBody reads the body of a response completely and returns it. The body can then be read once more.
func readBody(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // ignore the error, because nothing more is read
	response.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}
