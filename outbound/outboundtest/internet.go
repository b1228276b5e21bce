// Package outboundtest is what the proof against hostile links is made of: the links, an internet of its own with a name
// server in the hands of an attacker, and a book of every connection that anybody tries to make.
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

// Public is where all names lead that are no attack.
var Public = netip.MustParseAddr("93.184.215.14")

var errNobody = errors.New("nobody listens there")

// Internet has one public address with a server behind it, at port 443, that is every host at once. Everything else is
// really dialled, so that whoever is let go inside arrives there.
type Internet struct {
	*NameServer

	Authority *Authority
	// Inside is the port of a listener at every address of this machine, which nobody may reach.
	Inside *Canary

	secure *httptest.Server
	mu     sync.Mutex
	dialed []string
}

// NewInternet starts an internet in which the hosts that good tells of are public and all others stand for this machine,
// but for those of a name that says what it stands for: see Zone. It ends with the test.
func NewInternet(t *testing.T, good func(host string) bool, h http.Handler) *Internet {
	t.Helper()
	n := &Internet{NameServer: NewNameServer(t, Zone(good)), Authority: NewAuthority(t), Inside: NewCanary(t)}
	n.secure = httptest.NewUnstartedServer(h)
	n.secure.TLS = n.Authority.ServerConfig()
	n.secure.EnableHTTP2 = true
	n.secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) // handshakes that are broken off are part of the tests
	n.secure.StartTLS()
	t.Cleanup(n.secure.Close)
	return n
}

// Dial writes the address into the book and connects: to the server where it is the public one, else to where it leads.
func (n *Internet) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, address)
	n.mu.Unlock()
	switch {
	case address == PublicAddress():
		address = n.secure.Listener.Addr().String()
	case strings.HasPrefix(address, Public.String()+":"):
		return nil, errNobody // it is somebody's in reality
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// PublicAddress is the one address of the internet that may be dialled.
func PublicAddress() string { return net.JoinHostPort(Public.String(), "443") }

// Dialed gives the book, each address once.
func (n *Internet) Dialed() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(n.dialed)))
}

// Connections is how many connections were tried.
func (n *Internet) Connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.dialed)
}

// RequireUntouched wants all connections to have been to the public address, all looked-up hosts to be good ones or names
// under their domains, and nobody to have come inside.
func (n *Internet) RequireUntouched(t *testing.T, may func(host string) bool) {
	t.Helper()
	for _, address := range n.Dialed() {
		require.Equal(t, PublicAddress(), address)
	}
	for _, host := range n.Asked() {
		require.True(t, may(host), "%q was looked up", host)
	}
	require.Zero(t, n.Inside.Visits(t), "somebody came")
}

// Canary is a listener that nobody may reach.
type Canary struct {
	Port string

	inner net.Listener
	done  sync.WaitGroup
	stop  sync.Once
	count int
}

// NewCanary listens at all addresses of this machine.
func NewCanary(t *testing.T) *Canary {
	t.Helper()
	inner, err := net.Listen("tcp", ":0") //nolint:gosec,noctx // at every address, so that no detour to this machine goes unseen
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

// Address is one of its addresses.
func (c *Canary) Address() string { return net.JoinHostPort("127.0.0.1", c.Port) }

// Visits stops listening and counts who came. It comes itself last: connections are handed out in their order, so nobody
// before is missed.
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

// Zone is an attacker's: hosts that good tells of are public, and all others stand for this machine. A name whose first
// label begins with "ip-" stands for the address in it ("ip-10-0-0-1", "ip-v6-fe80--1"), with "cname-" for the same by way
// of another name, with "mixed-" for the same and the public address, and with "gone-" for none.
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
