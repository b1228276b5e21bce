package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/outbound"
)

// clockTimeout is the timeout of the request that Endpoint.Clock sends.
const clockTimeout = 10 * time.Second

// Endpoint sends requests only to one host and port. It refuses IP addresses that are not allowed
// for the host. All methods may be called concurrently.
type Endpoint struct {
	client *Client
	base   string
	origin string // scheme, host and port of the base URL
	host   string // host name of the base URL
	http   *http.Client
}

// Endpoint returns an endpoint for the URL `base`, or for publicURL (the URL of the platform or
// vendor) if `base` is empty. It returns an error if the URL is not a valid http or https URL, or has credentials, a query or a fragment.
func (c *Client) Endpoint(base, publicURL string) (*Endpoint, error) {
	base = cmp.Or(base, publicURL)
	u, err := outbound.ParseBaseURL(base)
	if err != nil {
		return nil, fmt.Errorf("the base address %w, not %q", err, base)
	}
	e := &Endpoint{client: c, base: strings.TrimSuffix(base, "/") + "/", origin: originOf(u), host: u.Hostname()}
	transport := c.options.Transport
	if transport == nil {
		reach := outbound.Operated // a host that the operator configured may also be on this machine or in a private network
		if hasSameHost(u, publicURL) {
			reach = outbound.Public
		}
		transport = c.newTransport(outbound.AddressOf(u), reach)
	}
	e.http = &http.Client{
		Transport: transport,
		// Redirects are not followed. A redirect could send a credential to another host, and no platform needs redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoints = append(c.endpoints, e)
	return e, nil
}

// hasSameHost returns true if a URL and publicURL have the same host name. It returns false if the host of the URL is an IP address.
func hasSameHost(u *url.URL, publicURL string) bool {
	s, err := url.Parse(publicURL)
	if err != nil || !strings.EqualFold(strings.TrimSuffix(u.Hostname(), "."), strings.TrimSuffix(s.Hostname(), ".")) {
		return false
	}
	_, err = netip.ParseAddr(u.Hostname())
	return err != nil
}

// originOf returns the scheme, host and port of u in lower case, such as https://example.com:443.
func originOf(u *url.URL) string { return strings.ToLower(u.Scheme) + "://" + outbound.AddressOf(u) }

// newTransport returns a transport that connects only to the given address.
func (c *Client) newTransport(address string, allowedAddresses outbound.Reach) *http.Transport {
	guard := &outbound.Guard{Lookup: c.options.Lookup, Dial: c.options.Dial, Reach: func(wanted string) outbound.Reach {
		if wanted != address {
			return outbound.NoAddress
		}
		return allowedAddresses
	}}
	t := outbound.NewTransport(guard)
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.options.RootCAs}
	t.ForceAttemptHTTP2 = true
	t.DisableCompression = false
	t.TLSHandshakeTimeout = 10 * time.Second
	t.MaxIdleConns = 64
	t.MaxIdleConnsPerHost = 16
	t.IdleConnTimeout = 90 * time.Second
	t.MaxResponseHeaderBytes = 256 << 10
	return t
}

// checkServer returns a failure if a URL is not on the endpoint's server or has credentials.
func (e *Endpoint) checkServer(u *url.URL) *source.Failure {
	if originOf(u) == e.origin && u.User == nil {
		return nil
	}
	refused := &outbound.RefusedError{Host: u.Host, Why: fmt.Sprintf("requests go to %s only", e.origin)}
	return &source.Failure{Class: source.BadRequest, Detail: refused.Error(), Cause: refused}
}

// Address returns the base URL with a slash at its end.
func (e *Endpoint) Address() string { return e.base }

// Timeout returns the timeout of the requests whose field Timeout is 0.
func (e *Endpoint) Timeout() time.Duration { return e.client.timeout }

// Clock returns the server's time from the Date header of an answer. The time is zero if the header
// is absent or malformed.
func (e *Endpoint) Clock(ctx context.Context) (time.Time, error) {
	res, err := e.Do(ctx, Request{Method: http.MethodHead, URL: e.base, Timeout: clockTimeout})
	if err != nil {
		return time.Time{}, err
	}
	at, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return time.Time{}, nil //nolint:nilerr // a missing or malformed Date header is not an error
	}
	return at, nil
}
