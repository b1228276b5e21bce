package fetch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/internal/tracing"
	"github.com/reeltally/reeltally/outbound"
)

// These are the default values of Options.Timeout and Options.MaxBody. DefaultMaxBody is a number of bytes.
const (
	DefaultTimeout = 30 * time.Second
	DefaultMaxBody = 8 << 20
)

// These errors are causes of the failures that Endpoint.Do returns. Use errors.Is to find out whether a failure has one of these causes.
var (
	ErrTimeout     = fmt.Errorf("%w in time", source.ErrNoAnswer)
	ErrTooLarge    = errors.New("the body of the answer is too large")
	ErrUnreachable = fmt.Errorf("%w: the server cannot be reached", source.ErrNoAnswer)
)

// Options are the settings of a Client. Each field that is not set has a default, so Options{} is valid.
type Options struct {
	Timeout time.Duration // timeout of a whole call, including reading the body; 0 means DefaultTimeout
	MaxBody int64         // maximum size of an answer's body in bytes, after decompression; 0 means DefaultMaxBody
	// RootCAs replaces the system's root certificates if it is not nil. Lookup and Dial are passed to [outbound.Guard], which uses its
	// defaults if they are nil.
	RootCAs *x509.CertPool
	Lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	// Transport replaces the client's transport. RootCAs, Lookup and Dial are then ignored; Timeout and MaxBody still apply.
	Transport http.RoundTripper
	Logger    *slog.Logger // logs one debug line for each request, without query, headers and bodies; nil disables logging
}

// Client holds the settings and connections of all endpoints. It follows no redirects, stores no
// cookies and never repeats a request after an answer. All methods may be called concurrently.
type Client struct {
	options   Options
	timeout   time.Duration
	maxBody   int64
	userAgent string
	log       *slog.Logger

	mu        sync.Mutex
	endpoints []*Endpoint
}

// New returns a client with the given options. It replaces missing options by their defaults.
func New(o Options) *Client {
	c := &Client{
		options:   o,
		timeout:   o.Timeout,
		maxBody:   o.MaxBody,
		userAgent: fmt.Sprintf("ReelTally/%s (+https://github.com/reeltally/reeltally)", binaryVersion()),
		log:       o.Logger,
	}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	if c.maxBody <= 0 {
		c.maxBody = DefaultMaxBody
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c
}

// binaryVersion returns the version of ReelTally in the binary's build information, or "dev" if the version is not known.
func binaryVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// Close closes the idle connections of all endpoints.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.endpoints {
		e.http.CloseIdleConnections()
	}
}

// Request is an HTTP request that Endpoint.Do sends.
type Request struct {
	Method  string             // HTTP method; "" means GET
	URL     string             // complete URL; it must be on the endpoint's server
	Header  http.Header        // headers in addition to User-Agent and Accept
	Body    []byte             // body of the request, or nil; it is sent as JSON if Header has no Content-Type
	Timeout time.Duration      // timeout of this request; 0 means the timeout of the client
	Secrets []string           // credentials in URL, Header or Body; they are removed from every error that Endpoint.Do returns
	Budget  *source.CallBudget // budget from which Do spends one unit; nil if the request needs no budget
}

// Response is an answer whose body was read completely.
type Response struct {
	Status  int
	Header  http.Header
	Body    []byte // body after decompression, at most Options.MaxBody bytes
	Sandbox bool   // true if the server is a sandbox, whose numbers are made up
}

// Do sends one request. It returns no error for a complete answer, whatever its status is. An error
// is a *source.Failure, or wraps context.Canceled if ctx was cancelled.
func (e *Endpoint) Do(ctx context.Context, r Request) (answer *Response, err error) {
	method := cmp.Or(r.Method, http.MethodGet)
	ctx, span := tracing.StartCall(ctx, method, attribute.String("http.request.method", method), attribute.String("server.address", e.host))
	defer func() {
		if answer != nil {
			tracing.SetStatus(span, answer.Status, http.StatusBadRequest)
		}
		tracing.End(span, err)
	}()
	c := e.client
	timeout := c.timeout
	if r.Timeout > 0 {
		timeout = r.Timeout
	}
	callCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	req, err := c.newRequest(callCtx, r)
	if err != nil {
		return nil, err
	}
	if f := e.checkServer(req.URL); f != nil {
		c.log.WarnContext(ctx, "source call refused", "method", req.Method, "host", req.URL.Host, "error", f)
		return nil, f
	}
	if callCtx.Err() == nil && !r.Budget.Spend() {
		return nil, &source.Failure{Class: source.Temporary, Cause: source.ErrNoUnits, Detail: "the reserved units of the call budget are used up"}
	}
	res, err := e.roundTrip(req)
	if err != nil {
		if refused, ok := errors.AsType[*outbound.RefusedError](err); ok {
			// The host name has resolved to an address that is not allowed, for example because of a DNS rebinding attack.
			c.log.WarnContext(ctx, "source call refused", "method", req.Method, "host", req.URL.Host, "error", refused)
		}
		err = callError(ctx, callCtx, err, timeout, c.maxBody, r.Secrets)
		c.log.DebugContext(ctx, "source call failed", "method", req.Method, "host", req.URL.Host, "path", req.URL.Path,
			"error", err)
		return nil, err
	}
	c.log.DebugContext(ctx, "got an answer from a source", "method", req.Method, "host", req.URL.Host, "path", req.URL.Path,
		"status", res.Status, "bytes", len(res.Body), "sandbox", res.Sandbox)
	return res, nil
}

// newRequest returns the HTTP request with the client's User-Agent. It returns a failure of class BadRequest if the Request is malformed.
func (c *Client) newRequest(ctx context.Context, r Request) (*http.Request, error) {
	method := cmp.Or(r.Method, http.MethodGet)
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.URL, body)
	if err != nil {
		// The error of http.NewRequestWithContext is not returned, because it contains the URL, which can contain an API key.
		return nil, &source.Failure{Class: source.BadRequest, Detail: "the method or the URL of the request is malformed"}
	}
	for name, values := range r.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Accept", "application/json")
	if r.Body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// roundTrip sends req and reads the whole answer. It returns ErrTooLarge if the body is larger than the client's limit.
func (e *Endpoint) roundTrip(req *http.Request) (*Response, error) {
	c := e.client
	res, err := e.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.ContentLength > c.maxBody {
		return nil, ErrTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, c.maxBody+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > c.maxBody {
		return nil, ErrTooLarge
	}
	return &Response{
		Status:  res.StatusCode,
		Header:  res.Header,
		Body:    body,
		Sandbox: res.Header.Get(reeltally.SandboxHeader) == "true",
	}, nil
}

// callError returns the error of Do for a call that got no complete answer. ctx is the caller's
// context. callCtx also has the call's timeout.
func callError(ctx, callCtx context.Context, err error, timeout time.Duration, maxBody int64, secrets []string) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // the outer error is not used, because it contains the URL, whose query can contain an API key
	}
	failure := &source.Failure{Class: source.Temporary}
	netErr, _ := errors.AsType[net.Error](err)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		// A cancelled call returns no *source.Failure, because the platform did not fail.
		return fmt.Errorf("the call was cancelled: %w", context.Canceled)
	case ctx.Err() != nil:
		failure.Cause, failure.Detail = ErrTimeout, "no complete answer before the caller's deadline"
	case callCtx.Err() != nil:
		failure.Cause, failure.Detail = ErrTimeout, fmt.Sprintf("no complete answer within %s", timeout)
	case errors.Is(err, ErrTooLarge):
		failure.Cause, failure.Detail = ErrTooLarge, fmt.Sprintf("the answer is larger than %d bytes", maxBody)
	case netErr != nil && netErr.Timeout():
		failure.Cause, failure.Detail = ErrTimeout, Redact(err.Error(), secrets...)
	default:
		failure.Cause, failure.Detail = ErrUnreachable, "no complete answer: "+Redact(err.Error(), secrets...)
	}
	return failure
}
