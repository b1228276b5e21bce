package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/outbound"
)

// reachWithin is how long a server may take to show its clock.
const reachWithin = 10 * time.Second

// Endpoint is the way to one server. It never connects to another host or port, whatever an answer says, and to no
// address that the host may not stand for. All methods may be called concurrently.
type Endpoint struct {
	client *Client
	base   string
	origin string // scheme, host and port of the base
	http   *http.Client
}

// Endpoint makes the way to the server of a base address, http or https, without query and credentials; an error says
// that it is none and quotes it. "" is the standard base address, where the platform or vendor serves everybody.
//
// The host of standard is reached at public addresses only. Any other is one that the operator named: it may as well stand for
// this machine or one of a private network. An address written out, like localhost, is meant wherever it stands.
func (c *Client) Endpoint(base, standard string) (*Endpoint, error) {
	base = cmp.Or(base, standard)
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the base address must be an http or https address without query, not %q", base)
	}
	e := &Endpoint{client: c, base: strings.TrimSuffix(base, "/") + "/", origin: originOf(u)}
	transport := c.options.Transport
	if transport == nil {
		reach := outbound.Operated
		if isStandard(u, standard) {
			reach = outbound.Public
		}
		transport = c.ownTransport(outbound.AddressOf(u), reach)
	}
	e.http = &http.Client{
		Transport: transport,
		// A redirect could carry a credential to a foreign host, and none of the platforms needs one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoints = append(c.endpoints, e)
	return e, nil
}

// isStandard says whether an address has the host of the standard one, by name.
func isStandard(u *url.URL, standard string) bool {
	s, err := url.Parse(standard)
	if err != nil || !strings.EqualFold(strings.TrimSuffix(u.Hostname(), "."), strings.TrimSuffix(s.Hostname(), ".")) {
		return false
	}
	_, err = netip.ParseAddr(u.Hostname())
	return err != nil
}

// originOf is scheme, host and port in one spelling.
func originOf(u *url.URL) string { return strings.ToLower(u.Scheme) + "://" + outbound.AddressOf(u) }

// ownTransport connects to the address of one server, or in its place to the proxy, which does the rest.
func (c *Client) ownTransport(address string, reach outbound.Reach) *http.Transport {
	proxy := c.options.Proxy
	if proxy != nil {
		address, reach = proxyAddress(proxy), outbound.Operated
	}
	guard := &outbound.Guard{Lookup: c.options.Lookup, Dial: c.options.Dial, Reach: func(wanted string) outbound.Reach {
		if wanted != address {
			return outbound.Nowhere
		}
		return reach
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
	if proxy != nil {
		t.Proxy = http.ProxyURL(proxy)
	}
	return t
}

// proxyAddress is where a proxy is dialled; those of SOCKS have a port of their own.
func proxyAddress(proxy *url.URL) string {
	if proxy.Port() == "" && strings.HasPrefix(proxy.Scheme, "socks5") {
		return net.JoinHostPort(strings.ToLower(proxy.Hostname()), "1080")
	}
	return outbound.AddressOf(proxy)
}

// elsewhere refuses an address that is not on the endpoint's server: a proxy would connect to it for us.
func (e *Endpoint) elsewhere(u *url.URL) *source.Failure {
	if originOf(u) == e.origin && u.User == nil {
		return nil
	}
	refused := &outbound.RefusedError{Host: u.Host, Why: "only " + e.origin + " is asked"}
	return &source.Failure{Class: source.BadRequest, Detail: refused.Error(), Cause: refused}
}

// Address is the base address, with a slash at its end.
func (e *Endpoint) Address() string { return e.base }

// Timeout is the client's, for a request that has none of its own.
func (e *Endpoint) Timeout() time.Duration { return e.client.timeout }

// Clock asks the server for its time, which any answer of its has. It returns the zero time when the server has none to
// show, and the error of Do when it cannot be reached.
func (e *Endpoint) Clock(ctx context.Context) (time.Time, error) {
	res, err := e.Do(ctx, Request{Method: http.MethodHead, URL: e.base, Timeout: reachWithin})
	if err != nil {
		return time.Time{}, err
	}
	at, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return time.Time{}, nil //nolint:nilerr // it has no clock to show
	}
	return at, nil
}
