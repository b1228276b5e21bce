// Package fetch is the way in which every source asks a platform: one HTTP client with limits, and the tolerant
// types with which hostile answers are read. What it returns is checked for size and depth, never for meaning.
package fetch

import (
	"bytes"
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

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/outbound"
)

// The defaults of a Client.
const (
	DefaultTimeout = 30 * time.Second
	DefaultMaxBody = 8 << 20
)

// SandboxHeader is set to "true" by a sandbox on every answer.
const SandboxHeader = "ReelTally-Sandbox"

// What a Failure of Do can be matched with.
var (
	ErrTimeout     = fmt.Errorf("%w in time", source.ErrNoAnswer)
	ErrTooLarge    = errors.New("answer too large")
	ErrUnreachable = fmt.Errorf("%w: the server cannot be reached", source.ErrNoAnswer)
)

// Options of a Client. The zero value is ready for use.
type Options struct {
	Timeout time.Duration // for the whole call, body included; 0 means DefaultTimeout
	MaxBody int64         // bytes of an answer after decompression; 0 means DefaultMaxBody
	Version string        // for the User-Agent; "" means the version that the binary was built from
	// Proxy is used for every call. nil means none: HTTP_PROXY and its relatives are not read, because they are
	// often set for other programs, and a proxy of plain http sees the keys that some platforms want in the query.
	Proxy *url.URL
	// RootCAs, Lookup and Dial replace the system's certificates and the two of [outbound.Guard].
	RootCAs *x509.CertPool
	Lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	// Transport replaces the client's own, and with it Proxy, RootCAs, Lookup and Dial. The limits of the client still hold.
	Transport http.RoundTripper
	Logger    *slog.Logger // one debug line a call, without query, headers and bodies; nil means none
}

// Client is what all endpoints have in common. It follows no redirect, keeps no cookies, takes gzip, and never retries. By
// itself it reaches nothing: an Endpoint does. All methods may be called concurrently.
type Client struct {
	options   Options
	timeout   time.Duration
	maxBody   int64
	userAgent string
	log       *slog.Logger

	mu        sync.Mutex
	endpoints []*Endpoint
}

// New makes a client.
func New(o Options) *Client {
	c := &Client{
		options:   o,
		timeout:   o.Timeout,
		maxBody:   o.MaxBody,
		userAgent: fmt.Sprintf("ReelTally/%s (+https://github.com/reeltally/reeltally)", versionOr(o.Version)),
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

func versionOr(version string) string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// Close gives up the idle connections of all endpoints.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.endpoints {
		e.http.CloseIdleConnections()
	}
}

// Request is one call.
type Request struct {
	Method  string             // "" means GET
	URL     string             // on the endpoint's server; sent byte for byte, the query in the order given
	Header  http.Header        // besides User-Agent and Accept
	Body    []byte             // JSON unless Header names another Content-Type; nil for none
	Timeout time.Duration      // 0 means the client's
	Secrets []string           // credentials that URL, Header or Body hold, to be kept out of every error
	Budget  *source.CallBudget // pays for the request; nil if the request costs nothing
}

// Response is an answer that was read to its end.
type Response struct {
	Status  int
	Header  http.Header
	Body    []byte // decompressed, at most the client's MaxBody
	Sandbox bool   // the answer says that it comes from a sandbox
}

// Do makes one call. Every answer is a Response, whatever its status. Without a complete answer it returns a
// *source.Failure of class Temporary whose cause is ErrTimeout, ErrTooLarge or ErrUnreachable; a deadline of
// ctx counts as a timeout. For want of units the cause is
// [source.ErrNoUnits], and no call was made. An address elsewhere is not asked: that is a *source.Failure of class BadRequest, whose
// cause is an *outbound.RefusedError. When ctx is cancelled the error is context.Canceled and no Failure, since that says
// nothing about the platform.
func (e *Endpoint) Do(ctx context.Context, r Request) (*Response, error) {
	c := e.client
	timeout := c.timeout
	if r.Timeout > 0 {
		timeout = r.Timeout
	}
	own, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	req, err := c.request(own, r)
	if err != nil {
		return nil, err
	}
	if f := e.elsewhere(req.URL); f != nil {
		c.log.WarnContext(ctx, "source call refused", "method", req.Method, "host", req.URL.Host, "error", f)
		return nil, f
	}
	if own.Err() == nil && !r.Budget.Spend() {
		return nil, &source.Failure{Class: source.Temporary, Cause: source.ErrNoUnits, Detail: "the units that were reserved for it are used up"}
	}
	res, err := e.roundTrip(req)
	if err != nil {
		if refused, ok := errors.AsType[*outbound.RefusedError](err); ok {
			// A platform's name never stands for an inner address: somebody plays with the name server.
			c.log.WarnContext(ctx, "source call refused", "method", req.Method, "host", req.URL.Host, "error", refused)
		}
		err = explain(ctx, own, err, timeout, c.maxBody, r.Secrets)
		c.log.DebugContext(ctx, "source call failed", "method", req.Method, "host", req.URL.Host, "path", req.URL.Path,
			"error", err)
		return nil, err
	}
	c.log.DebugContext(ctx, "source call answered", "method", req.Method, "host", req.URL.Host, "path", req.URL.Path,
		"status", res.Status, "bytes", len(res.Body), "sandbox", res.Sandbox)
	return res, nil
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.URL, body)
	if err != nil {
		// The error of net/http quotes the address, and with it the key.
		return nil, &source.Failure{Class: source.BadRequest, Detail: "the request's method or address is malformed"}
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
		Sandbox: res.Header.Get(SandboxHeader) == "true",
	}, nil
}

func explain(ctx, own context.Context, err error, timeout time.Duration, maxBody int64, secrets []string) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // the outer one quotes the address with its query
	}
	failure := &source.Failure{Class: source.Temporary}
	netErr, _ := errors.AsType[net.Error](err)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("the call was abandoned: %w", context.Canceled)
	case ctx.Err() != nil:
		failure.Cause, failure.Detail = ErrTimeout, "no complete answer before the caller's deadline"
	case own.Err() != nil:
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
