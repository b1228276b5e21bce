// Package outboundtest helps to test that hostile links never lead to an internal address. Links returns hostile links. Internet simulates
// the internet with an attacker's name server, and records every connection. Canary counts connections to internal addresses.
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

// Public is the IP address of all host names that do not belong to the attacker.
var Public = netip.MustParseAddr("93.184.215.14")

var errUnreachable = errors.New("no server at this address")

// Internet simulates the internet. Its only public address is Public, where a server at port 443 answers for every host. It really connects
// to all other addresses, so that a connection to an internal address reaches the Canary.
type Internet struct {
	*NameServer

	Authority *Authority
	// Inside counts the connections to addresses of this machine. The tested code must make none.
	Inside *Canary

	secure *httptest.Server
	mu     sync.Mutex
	dialed []string
}

// NewInternet starts a simulated internet, which is stopped at the end of the test. isPublic is the parameter of Zone. h handles the requests
// to the server at PublicAddress.
func NewInternet(t *testing.T, isPublic func(host string) bool, h http.Handler) *Internet {
	t.Helper()
	n := &Internet{NameServer: NewNameServer(t, Zone(isPublic)), Authority: NewAuthority(t), Inside: NewCanary(t)}
	n.secure = httptest.NewUnstartedServer(h)
	n.secure.TLS = n.Authority.ServerConfig()
	n.secure.EnableHTTP2 = true
	n.secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) // some tests abort TLS handshakes, which would be logged as errors
	n.secure.StartTLS()
	t.Cleanup(n.secure.Close)
	return n
}

// Dial records the address and connects to it. PublicAddress leads to the simulated server. Dial fails for the other ports of Public.
func (n *Internet) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, address)
	n.mu.Unlock()
	switch {
	case address == PublicAddress():
		address = n.secure.Listener.Addr().String()
	case strings.HasPrefix(address, Public.String()+":"):
		return nil, errUnreachable // a real server has this address, and a test must not connect to it
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// PublicAddress returns the "ip:port" of the simulated server. It is the only address that the tested code may dial.
func PublicAddress() string { return net.JoinHostPort(Public.String(), "443") }

// Dialed returns the addresses that Dial was called with, sorted and without duplicates.
func (n *Internet) Dialed() []string {
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

// RequireUntouched requires that only PublicAddress was dialled, that allowed returns true for every host that was looked up, and that the
// Canary accepted no connection.
func (n *Internet) RequireUntouched(t *testing.T, allowed func(host string) bool) {
	t.Helper()
	for _, address := range n.Dialed() {
		require.Equal(t, PublicAddress(), address)
	}
	for _, host := range n.Asked() {
		require.True(t, allowed(host), "%q must not be looked up", host)
	}
	require.Zero(t, n.Inside.Visits(t), "number of connections to this machine")
}

// Canary is a listener at all addresses of this machine. It counts its connections.
type Canary struct {
	Port string // the port at which the listener listens, the same at every address

	inner net.Listener
	done  sync.WaitGroup
	stop  sync.Once
	count int
}

// NewCanary starts a Canary, which is stopped at the end of the test.
func NewCanary(t *testing.T) *Canary {
	t.Helper()
	inner, err := net.Listen("tcp", ":0") //nolint:gosec,noctx // at every address, so that every connection to this machine is counted
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(inner.Addr().String())
	require.NoError(t, err)
	c := &Canary{Port: port, inner: inner}
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
	t.Cleanup(func() { c.Visits(t) })
	return c
}

// Address returns the "ip:port" of the listener at 127.0.0.1.
func (c *Canary) Address() string { return net.JoinHostPort("127.0.0.1", c.Port) }

// Visits stops the listener and returns the number of connections. It first makes one connection, which it does not count. The listener
// accepts connections in order, so all earlier connections are counted then.
func (c *Canary) Visits(t *testing.T) int {
	t.Helper()
	c.stop.Do(func() {
		conn, err := net.Dial("tcp", c.Address()) //nolint:noctx // this machine answers at once
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err, "the listener must close the connection")
		require.NoError(t, conn.Close())
		require.NoError(t, c.inner.Close())
		c.done.Wait()
		c.count--
	})
	return c.count
}

// Zone returns the function with which an attacker's name server answers. The first label of a host can contain its address: "ip-10-0-0-1"
// and "ip-v6-fe80--1" resolve to the address in the label. "cname-…" resolves to the address in the label through a CNAME record. "mixed-…"
// resolves to the address in the label and to Public. "gone-…" does not exist. Any other host resolves to Public if isPublic returns true
// for it, and otherwise to the loopback addresses.
func Zone(isPublic func(host string) bool) func(string) Answer {
	return func(host string) Answer {
		label, _, _ := strings.Cut(host, ".")
		kind, rest, _ := strings.Cut(label, "-")
		switch kind {
		case "gone":
			return Answer{}
		case "ip", "cname", "mixed":
			addr, err := netip.ParseAddr(strings.ReplaceAll(rest, "-", "."))
			if v6, ok := strings.CutPrefix(rest, "v6-"); ok {
				addr, err = netip.ParseAddr(strings.ReplaceAll(v6, "-", ":"))
			}
			if err != nil {
				return Answer{}
			}
			a := Answer{Addrs: []netip.Addr{addr}}
			switch kind {
			case "cname":
				a.Via = "inside.evil.net"
			case "mixed":
				a.Addrs = append(a.Addrs, Public)
			}
			return a
		}
		if isPublic(host) {
			return Answer{Addrs: []netip.Addr{Public}}
		}
		return Answer{Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}}
	}
}
