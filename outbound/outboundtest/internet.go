// Package outboundtest helps to test that hostile links never lead to an internal address. Links returns hostile links. Internet simulates
// the internet with an attacker's name server, and records every connection. LocalListener counts connections to this machine.
package outboundtest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Public is the IP address to which the attacker's name server resolves the public hosts of a test.
var Public = netip.MustParseAddr("93.184.215.14")

var errUnreachable = errors.New("no server listens at this address")

// Internet simulates the internet. One simulated server at PublicAddress() answers the requests for all hosts with the IP address Public. Connections to
// other IP addresses are real.
type Internet struct {
	*NameServer

	Authority *Authority
	// Listener counts the connections to addresses of this machine. The tested code must not make any such connection.
	Listener *LocalListener

	secure *httptest.Server // the simulated server, whose address is PublicAddress()
	mu     sync.Mutex
	dialed []string
}

// NewInternet starts a simulated internet, which is stopped at the end of the test. The handler answers all
// requests. For the IP addresses of hosts, see AttackerZone, which gets isPublic.
func NewInternet(t *testing.T, isPublic func(host string) bool, handler http.Handler) *Internet {
	t.Helper()
	n := &Internet{NameServer: NewNameServer(t, AttackerZone(isPublic)), Authority: NewAuthority(t), Listener: NewLocalListener(t)}
	n.secure = httptest.NewUnstartedServer(handler)
	n.secure.TLS = n.Authority.ServerConfig()
	n.secure.EnableHTTP2 = true
	n.secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) // some tests abort TLS handshakes, which would be logged as errors
	n.secure.StartTLS()
	t.Cleanup(n.secure.Close)
	return n
}

// Dial records the address. It connects to the simulated server for PublicAddress(), fails for other ports of
// the same IP address, and connects to any other address itself.
func (n *Internet) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, address)
	n.mu.Unlock()
	switch {
	case address == PublicAddress():
		address = n.secure.Listener.Addr().String()
	case strings.HasPrefix(address, Public.String()+":"):
		return nil, errUnreachable // a test must not connect to the real server that has this address
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// PublicAddress returns the "ip:port" of the simulated server. It is the only address that the tested code may dial.
func PublicAddress() string { return net.JoinHostPort(Public.String(), "443") }

// DialedAddresses returns the addresses with which Dial was called, sorted and without duplicates.
func (n *Internet) DialedAddresses() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(n.dialed)))
}

// Connections returns the number of calls of Dial.
func (n *Internet) Connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.dialed)
}

// RequireNoForbiddenConnection requires that the tested code connected only to the simulated server.
// It also requires that isAllowed returns true for every host that was looked up.
func (n *Internet) RequireNoForbiddenConnection(t *testing.T, isAllowed func(host string) bool) {
	t.Helper()
	for _, address := range n.DialedAddresses() {
		require.Equal(t, PublicAddress(), address)
	}
	for _, host := range n.LookedUpHosts() {
		require.True(t, isAllowed(host), "the host %q must not be looked up", host)
	}
	require.Zero(t, n.Listener.CountConnections(t), "the tested code must not connect to this machine")
}

// LocalListener is a TCP listener at all addresses of this machine. It counts the connections that it accepts, and closes each of them
// immediately.
type LocalListener struct {
	Port string // the listener's port; the port is the same at every address

	inner net.Listener
	done  sync.WaitGroup
	stop  sync.Once
	count int
}

// NewLocalListener starts a LocalListener at a free port. The listener is stopped at the end of the test.
func NewLocalListener(t *testing.T) *LocalListener {
	t.Helper()
	inner, err := net.Listen("tcp", ":0") //nolint:gosec,noctx // at every address, so that every connection to this machine is counted
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(inner.Addr().String())
	require.NoError(t, err)
	c := &LocalListener{Port: port, inner: inner}
	c.done.Go(func() {
		for {
			conn, err := inner.Accept()
			if err != nil {
				return
			}
			c.count++
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { c.CountConnections(t) })
	return c
}

// Address returns the "ip:port" of the listener at 127.0.0.1.
func (c *LocalListener) Address() string { return net.JoinHostPort("127.0.0.1", c.Port) }

// CountConnections stops the listener and returns how many connections to it were made.
func (c *LocalListener) CountConnections(t *testing.T) int {
	t.Helper()
	c.stop.Do(func() {
		// When the listener closes this connection, it has counted all earlier connections.
		conn, err := net.Dial("tcp", c.Address()) //nolint:noctx // no context is needed, because this machine answers without delay
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err, "the listener must close the connection")
		require.NoError(t, conn.Close())
		require.NoError(t, c.inner.Close())
		c.done.Wait()
		// The result does not include the connection that this function made.
		c.count--
	})
	return c.count
}

// AttackerZone simulates the DNS zone of an attacker. ip-10-0-0-1.evil.net has the address 10.0.0.1.
// cname-10-0-0-1.evil.net has it through a CNAME record, and mixed-10-0-0-1.evil.net has it together with Public.
// The prefix v6- marks an IPv6 address, as in ip-v6-fe80--1.evil.net. gone.evil.net has no address. Any other host
// has the address Public if isPublic returns true, and loopback addresses otherwise.
func AttackerZone(isPublic func(host string) bool) func(string) Answer {
	return func(host string) Answer {
		label, _, _ := strings.Cut(host, ".")
		kind, rest, _ := strings.Cut(label, "-")
		switch kind {
		case "gone": // the host does not exist
			return Answer{}
		case "ip", "cname", "mixed": // the rest of the label is an IP address, as in ip-10-0-0-1 or ip-v6-fe80--1
			addr, err := netip.ParseAddr(strings.ReplaceAll(rest, "-", "."))
			if v6, ok := strings.CutPrefix(rest, "v6-"); ok {
				addr, err = netip.ParseAddr(strings.ReplaceAll(v6, "-", ":"))
			}
			if err != nil {
				return Answer{}
			}
			a := Answer{Addrs: []netip.Addr{addr}}
			switch kind {
			case "cname": // the host has the IP address through a CNAME record
				a.Via = "inside.evil.net"
			case "mixed": // the host has the IP address and the address Public
				a.Addrs = append(a.Addrs, Public)
			}
			return a
		}
		if isPublic(host) {
			return Answer{Addrs: []netip.Addr{Public}}
		}
		// All other hosts lead to this machine.
		return Answer{Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}}
	}
}
