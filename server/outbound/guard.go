// Package outbound is the one home of safety for requests whose address comes from outside: links that are
// resolved, endpoints that events are sent to. Whatever the name in the address, a connection is only made to a
// public address, decided on the address that is dialled, so that no answer of a name server can lead inside.
package outbound

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// maxHeaderBytes is the most that an answer's header may have.
const maxHeaderBytes = 64 << 10

// Guard dials public addresses only. The zero value is ready for use. A Guard must not be changed after its first
// use; it may be used by many goroutines.
type Guard struct {
	// Ports are the only ports dialled; none means every port.
	Ports []uint16
	// Allow are ranges that the operator opened although they are not public.
	Allow []netip.Prefix
	// Trusted are the "host:port" that the operator configured. They are dialled without a check.
	Trusted []string
	// Lookup finds the addresses of a host; nil asks the system's resolver. [net.Resolver.LookupNetIP] fits.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// Dial connects to an address that passed, written as "ip:port"; nil dials it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// RefusedError says that a connection was not made because its address is not allowed.
type RefusedError struct {
	Host string     // as it was asked for
	Addr netip.Addr // the address it stands for; invalid when the port was refused
	Why  string
}

func (e *RefusedError) Error() string {
	if !e.Addr.IsValid() {
		return fmt.Sprintf("connection to %s refused: %s", e.Host, e.Why)
	}
	return fmt.Sprintf("connection to %s refused: %s is %s", e.Host, e.Addr, e.Why)
}

// DialContext connects to the first address of the host that passes and answers. When none passes, the error is a
// [*RefusedError]. It fits [http.Transport.DialContext].
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if slices.Contains(g.Trusted, address) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := g.checkPort(host, port); err != nil {
		return nil, err
	}
	addrs, err := g.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var refused, failed error
	for i, addr := range addrs {
		if why := g.forbids(addr); why != "" {
			refused = &RefusedError{Host: host, Addr: addr, Why: why}
			continue
		}
		conn, err := g.dial(ctx, network, net.JoinHostPort(addr.String(), port), len(addrs)-i)
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

func (g *Guard) checkPort(host, port string) error {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return &RefusedError{Host: host, Why: fmt.Sprintf("%q is no port", port)}
	}
	if len(g.Ports) > 0 && !slices.Contains(g.Ports, uint16(number)) {
		return &RefusedError{Host: host, Why: fmt.Sprintf("port %d is not among %v", number, g.Ports)}
	}
	return nil
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

// dial connects to an address that passed. left counts the addresses that are left to try, this one included: a
// silent one must not use up the time of the others.
func (g *Guard) dial(ctx context.Context, network, address string, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left)) //nolint:forbidigo // deadlines are of the real clock
		defer cancel()
	}
	if g.Dial != nil {
		return g.Dial(ctx, network, address)
	}
	d := net.Dialer{Control: g.control}
	return d.DialContext(ctx, network, address)
}

// control is the second look, at the address that the system is about to connect to.
func (g *Guard) control(_, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return &RefusedError{Host: address, Why: "it is no address"}
	}
	if why := g.forbids(addr.Addr()); why != "" {
		return &RefusedError{Host: address, Addr: addr.Addr(), Why: why}
	}
	return nil
}

// forbids says why an address is not dialled, "" when it is.
func (g *Guard) forbids(addr netip.Addr) string {
	for _, prefix := range g.Allow {
		if prefix.Contains(addr) {
			return ""
		}
	}
	return whyNotPublic(addr)
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
