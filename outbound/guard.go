// Package outbound restricts the hosts and IP addresses to which a program connects.
//
// A Guard is a dialer that allows only the hosts and ports that the caller configured. It checks the IP address immediately before it
// connects. So neither a redirect nor a hostile name server can make the program connect to a different machine.
//
// NewTransport returns an HTTP transport that uses a Guard. Start reading in Guard.DialContext. The file public.go decides which addresses
// are public.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

const (
	// maxHeaderBytes is the maximum size of the headers of a response in bytes.
	maxHeaderBytes = 64 << 10
	// connectTimeout is the time limit for trying all addresses of a host. Without it, the transport of net/http would continue to dial
	// after the request was cancelled.
	connectTimeout = 10 * time.Second
	// addressTimeout is the time limit for connecting to one address of a host. For the last address of a host, only connectTimeout
	// applies.
	addressTimeout = 3 * time.Second
)

// Reach is the kind of IP addresses to which a host may resolve.
type Reach int

const (
	// NoAddress means that no connection to the host is allowed.
	NoAddress Reach = iota
	// Public means that the host may resolve only to public addresses. It is for hosts on the internet.
	Public
	// Operated means that the host may resolve to public, loopback and private addresses. It is for
	// hosts that the operator configured.
	Operated
)

// Guard is a dialer that connects only to allowed hosts. It is safe for concurrent use, but must
// not be changed after its first use.
type Guard struct {
	// Reach returns the kind of IP addresses to which a host may resolve. hostPort is in lower
	// case. If Reach is nil, no host is allowed.
	Reach func(hostPort string) Reach
	// Lookup returns the IP addresses of a host. If Lookup is nil, [net.Resolver.LookupNetIP] of the default resolver is used.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// Dial connects to an allowed "ip:port". If Dial is nil, a [net.Dialer] is used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// RefusedError is the error of a connection that is not allowed.
type RefusedError struct {
	Host string     // the requested host, or "host:port" if the host or the port is not allowed
	Addr netip.Addr // the refused IP address of the host; the zero Addr if the refusal has another reason
	Why  string     // if Addr is set, the kind of this address, such as "private"; if not, the reason for the refusal
}

func (e *RefusedError) Error() string {
	if !e.Addr.IsValid() {
		return fmt.Sprintf("connection to %s refused: %s", e.Host, e.Why)
	}
	return fmt.Sprintf("connection to %s refused: %s is %s", e.Host, e.Addr, e.Why)
}

// AddressOf returns the "host:port" of an http or https URL, in lower case. If the URL has no port, the port is 80 for http and 443 for
// https.
func AddressOf(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "http":
		port = "80"
	default:
		port = "443"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// DialContext tries the host's allowed addresses in order and returns the first successful
// connection. If no address is allowed, the error is a [*RefusedError].
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	reach := NoAddress
	if g.Reach != nil {
		reach = g.Reach(strings.ToLower(address))
	}
	if reach == NoAddress {
		return nil, &RefusedError{Host: address, Why: "this host and port are not allowed"}
	}
	if why := NonPublicNameReason(host); why != "" && reach == Public {
		return nil, &RefusedError{Host: address, Why: "the host is " + why}
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	addrs, err := g.lookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	target := target{host: host, reach: reach}
	var refused, failed error
	for i, addr := range addrs {
		if err := target.checkAddress(addr); err != nil {
			refused = err
			continue
		}
		conn, err := g.dialAddress(ctx, target, network, net.JoinHostPort(addr.String(), port), i == len(addrs)-1)
		if err == nil {
			return conn, nil
		}
		failed = err
	}
	if failed != nil {
		return nil, failed
	}
	return nil, refused
}

// lookupHost returns the IP addresses of a host. It fails if the host has no address.
func (g *Guard) lookupHost(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	lookup := g.Lookup
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	addrs, err := lookup(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	for i := range addrs {
		// net.Resolver can return an IPv4 address as an IPv4-mapped IPv6 address. Unmap it, because checkAddress refuses IPv4-mapped
		// addresses.
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, nil
}

// dialAddress connects to one allowed address of the host. If isLast is false, it stops after addressTimeout, so that time is left for the
// next addresses of the host.
func (g *Guard) dialAddress(ctx context.Context, t target, network, address string, isLast bool) (net.Conn, error) {
	if !isLast {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, addressTimeout)
		defer cancel()
	}
	if g.Dial != nil {
		return g.Dial(ctx, network, address)
	}
	d := net.Dialer{Control: t.checkBeforeConnecting}
	return d.DialContext(ctx, network, address)
}

// target is the host to which DialContext connects, and the IP addresses to which this host may resolve.
type target struct {
	host  string
	reach Reach
}

// checkBeforeConnecting is the function for net.Dialer.Control. It checks the IP address once more, immediately before the system connects to it.
func (t target) checkBeforeConnecting(_, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return &RefusedError{Host: t.host, Why: fmt.Sprintf("%q is not an IP address with a port", address)}
	}
	return t.checkAddress(addr.Addr())
}

// checkAddress returns a *RefusedError if the host may not resolve to the address.
func (t target) checkAddress(addr netip.Addr) error {
	why := nonPublicReason(addr)
	// The operator may configure any IP address instead of a host name, including a link-local address.
	if why == "" || t.reach == Operated && (isLocal(addr) || t.host == addr.String()) {
		return nil
	}
	return &RefusedError{Host: t.host, Addr: addr, Why: why}
}

// ErrBaseURL is the error of ParseBaseURL. It does not contain the URL, because the URL can contain a password.
var ErrBaseURL = errors.New("must be an http or https address without credentials, query and fragment")

// ParseBaseURL parses an http or https URL to which a path can be appended. It returns ErrBaseURL if the URL is invalid, or has a user, a password, a query or
// a fragment.
func ParseBaseURL(baseURL string) (*url.URL, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.ContainsAny(baseURL, "?#") {
		return nil, ErrBaseURL
	}
	return u, nil
}

// AllowOneServer returns a function for Guard.Reach that allows only the server of baseURL. It returns an error if ParseBaseURL returns one.
func AllowOneServer(baseURL string) (func(address string) Reach, error) {
	base, err := ParseBaseURL(baseURL)
	if err != nil {
		return nil, errors.New("the base URL is invalid: it must be http://HOST/PATH or https://HOST/PATH, without credentials and query")
	}
	allowed := AddressOf(base)
	return func(address string) Reach {
		if address == allowed {
			return Operated
		}
		return NoAddress
	}, nil
}

// NewTransport returns a transport that dials with g. The caller must handle redirects, with
// [http.ErrUseLastResponse].
func NewTransport(g *Guard) *http.Transport {
	return &http.Transport{
		// A proxy would connect without the checks of g.
		Proxy:                  nil,
		DialContext:            g.DialContext,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    5 * time.Second,
	}
}
