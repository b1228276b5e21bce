// Package outboundtest helps to test that hostile links never lead to an internal address. Links is a table of hostile links. Internet
// simulates the internet with an attacker's name server, and records every connection. Canary is an internal server that must not be reached.
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

// Public is the address of all harmless host names.
var Public = netip.MustParseAddr("93.184.215.14")

var errUnreachable = errors.New("no server at this address")

// Internet has one public address, with a server at port 443 that answers for every host. Other addresses are really dialled, so that a
// connection to an internal address reaches the Canary.
type Internet struct {
	*NameServer

	Authority *Authority
	// Inside is a listener at all addresses of this machine. It must not be reached.
	Inside *Canary

	secure *httptest.Server
	mu     sync.Mutex
	dialed []string
}

// NewInternet starts an internet. Hosts for which good returns true resolve to Public, and the others as Zone describes. It ends with the
// test.
func NewInternet(t *testing.T, good func(host string) bool, h http.Handler) *Internet {
	t.Helper()
	n := &Internet{NameServer: NewNameServer(t, Zone(good)), Authority: NewAuthority(t), Inside: NewCanary(t)}
	n.secure = httptest.NewUnstartedServer(h)
	n.secure.TLS = n.Authority.ServerConfig()
	n.secure.EnableHTTP2 = true
	n.secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) // tests abort handshakes on purpose
	n.secure.StartTLS()
	t.Cleanup(n.secure.Close)
	return n
}

// Dial records the address and connects to it. PublicAddress connects to the server of this internet.
func (n *Internet) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, address)
	n.mu.Unlock()
	switch {
	case address == PublicAddress():
		address = n.secure.Listener.Addr().String()
	case strings.HasPrefix(address, Public.String()+":"):
		return nil, errUnreachable // the address is in use on the real internet
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// PublicAddress returns the only address that may be dialled.
func PublicAddress() string { return net.JoinHostPort(Public.String(), "443") }

// Dialed returns the dialled addresses, sorted and without duplicates.
func (n *Internet) Dialed() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(n.dialed)))
}

// Connections returns the number of dialled connections.
func (n *Internet) Connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.dialed)
}

// RequireUntouched requires that only PublicAddress was dialled, that only allowed hosts were looked up, and that the Canary was not reached.
func (n *Internet) RequireUntouched(t *testing.T, allowed func(host string) bool) {
	t.Helper()
	for _, address := range n.Dialed() {
		require.Equal(t, PublicAddress(), address)
	}
	for _, host := range n.Asked() {
		require.True(t, allowed(host), "%q was looked up", host)
	}
	require.Zero(t, n.Inside.Visits(t), "the canary was reached")
}

// Canary is a listener that must not be reached.
type Canary struct {
	Port string

	inner net.Listener
	done  sync.WaitGroup
	stop  sync.Once
	count int
}

// NewCanary starts a listener at all addresses of this machine.
func NewCanary(t *testing.T) *Canary {
	t.Helper()
	inner, err := net.Listen("tcp", ":0") //nolint:gosec,noctx // at every address, so that every connection to this machine is noticed
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

// Address returns one of the addresses of the listener.
func (c *Canary) Address() string { return net.JoinHostPort("127.0.0.1", c.Port) }

// Visits stops the listener and returns the number of connections. It first connects itself, because connections are accepted in order:
// after its own connection all earlier ones are counted.
func (c *Canary) Visits(t *testing.T) int {
	t.Helper()
	c.stop.Do(func() {
		conn, err := net.Dial("tcp", c.Address()) //nolint:noctx // this machine answers at once
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err, "the listener closes what it accepted")
		require.NoError(t, conn.Close())
		require.NoError(t, c.inner.Close())
		c.done.Wait()
		c.count--
	})
	return c.count
}

// Zone returns the zone of an attacker. Hosts for which good returns true resolve to Public, and others to this machine. The first label of
// a name may choose its addresses: "ip-10-0-0-1" and "ip-v6-fe80--1" resolve to the address in the name, "cname-…" to the same through
// another name, "mixed-…" to the same and Public, and "gone-…" to nothing.
func Zone(good func(host string) bool) func(string) Answer {
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
		if good(host) {
			return Answer{Addrs: []netip.Addr{Public}}
		}
		return Answer{Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}}
	}
}
