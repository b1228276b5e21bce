// Package outbound is the one home of safety for requests to other machines. Who asks says which hosts and ports it
// means; nothing else is dialled, and of these only addresses that such a host may stand for, decided on the address
// that is dialled, so that no answer of a platform and none of a name server can lead anywhere else.
package outbound

import (
	"context"
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
	// maxHeaderBytes is the most that an answer's header may have.
	maxHeaderBytes = 64 << 10
	// connectTime is how long a connection may take to come about, over all addresses of the host: the transport of
	// net/http dials on when the request has given up.
	connectTime = 10 * time.Second
	// patience is how long an address is waited for while there are others.
	patience = 3 * time.Second
)

// Reach says how far a connection to a host and port may go.
type Reach int

const (
	// Nowhere is for whatever nobody has named.
	Nowhere Reach = iota
	// Public is for hosts of the internet: they are reached at public addresses alone.
	Public
	// Operated is for hosts that the operator named: they may as well stand for this machine or one of a private
	// network, and for a special address only where the operator wrote the address itself.
	Operated
)

// Guard dials what it is told to, and nothing else; the zero value dials nothing. It must not be changed after its
// first use and may be used by many goroutines.
type Guard struct {
	// Reach says of an address, "host:port" in lower case as it was asked for, how far it may go. nil is Nowhere.
	Reach func(address string) Reach
	// Lookup finds the addresses of a host; nil asks the system's resolver. [net.Resolver.LookupNetIP] fits.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// Dial connects to an address that passed, written as "ip:port"; nil dials it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// RefusedError says that a connection was not made because it is not allowed.
type RefusedError struct {
	Host string     // as it was asked for, with its port when that was the reason
	Addr netip.Addr // the address it stands for; invalid when host or port were refused
	Why  string
}

func (e *RefusedError) Error() string {
	if !e.Addr.IsValid() {
		return fmt.Sprintf("connection to %s refused: %s", e.Host, e.Why)
	}
	return fmt.Sprintf("connection to %s refused: %s is %s", e.Host, e.Addr, e.Why)
}

// AddressOf is the "host:port" that a URL of http or https is dialled at, in lower case.
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

// DialContext connects to the first address of the host that passes and answers. When none passes, the error is a
// [*RefusedError]. It fits [http.Transport.DialContext].
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	reach := Nowhere
	if g.Reach != nil {
		reach = g.Reach(strings.ToLower(address))
	}
	if reach == Nowhere {
		return nil, &RefusedError{Host: address, Why: "it is not among the hosts and ports that may be asked"}
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	addrs, err := g.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	target := target{host: host, reach: reach}
	var refused, failed error
	for i, addr := range addrs {
		if err := target.check(addr); err != nil {
			refused = err
			continue
		}
		conn, err := g.dial(ctx, target, network, net.JoinHostPort(addr.String(), port), i == len(addrs)-1)
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

// lookup returns at least one address.
func (g *Guard) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
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
		// The resolver hands out A records in this form.
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, nil
}

// dial connects to an address that passed. One that is silent must not use up the time of those that are left.
func (g *Guard) dial(ctx context.Context, t target, network, address string, last bool) (net.Conn, error) {
	if !last {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	if g.Dial != nil {
		return g.Dial(ctx, network, address)
	}
	d := net.Dialer{Control: t.control}
	return d.DialContext(ctx, network, address)
}

// target is a host on its way to a connection.
type target struct {
	host  string
	reach Reach
}

// control is the second look, at the address that the system is about to connect to.
func (t target) control(_, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return &RefusedError{Host: t.host, Why: fmt.Sprintf("%q is no address", address)}
	}
	return t.check(addr.Addr())
}

// check refuses an address that the host may not stand for.
func (t target) check(addr netip.Addr) error {
	why := whyNotPublic(addr)
	if why == "" || t.reach == Operated && (isLocal(addr) || t.host == addr.String()) {
		return nil
	}
	return &RefusedError{Host: t.host, Addr: addr, Why: why}
}

// NewTransport returns a transport that reaches public addresses only. It uses no proxy, whatever the environment
// says: a proxy would look names up and dial for us. The caller follows redirects by itself, with
// [http.ErrUseLastResponse].
func NewTransport(g *Guard) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            g.DialContext,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    5 * time.Second,
	}
}
