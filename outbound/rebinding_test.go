package outbound_test

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/outbound"
	"github.com/reeltally/reeltally/outbound/outboundtest"
)

// attacks has functions that simulate a hostile name server. The parameter n is the number of earlier
// queries for the same host.
var attacks = map[string]func(n int64) outboundtest.Answer{
	"per-question": func(n int64) outboundtest.Answer { return newAnswer(nthValueOfCycle(n, "93.184.215.14", "127.0.0.1")) },
	// A look-up of a host sends two queries, one for IPv4 and one for IPv6. So n/2 is the number of earlier
	// look-ups of the host.
	"per-lookup": func(n int64) outboundtest.Answer {
		return newAnswer(nthValueOfCycle(n/2, "93.184.215.14", "127.0.0.1"))
	},
	"metadata": func(n int64) outboundtest.Answer {
		return newAnswer(nthValueOfCycle(n/2, "93.184.215.14", "169.254.169.254"))
	},
	"both-families": func(int64) outboundtest.Answer { return newAnswer("93.184.215.14", "::1") },
	"ipv6":          func(n int64) outboundtest.Answer { return newAnswer(nthValueOfCycle(n/2, "93.184.215.14", "::1")) },
	"ipv4-mapped": func(n int64) outboundtest.Answer {
		return newAnswer(nthValueOfCycle(n/2, "93.184.215.14", "::ffff:127.0.0.1"))
	},
	"mixed":    func(int64) outboundtest.Answer { return newAnswer("127.0.0.1", "93.184.215.14", "10.0.0.1", "::1") },
	"loopback": func(int64) outboundtest.Answer { return newAnswer("127.0.0.1", "::1") },
	"cname": func(n int64) outboundtest.Answer {
		a := newAnswer(nthValueOfCycle(n/2, "93.184.215.14", "127.0.0.1"))
		a.Via = nthValueOfCycle(n/2, "edge.example", "localhost")
		return a
	},
	"many-addresses": func(int64) outboundtest.Answer {
		private := strings.Fields(strings.Repeat("127.0.0.1 192.168.0.1 ", 6))
		return newAnswer(append(private, "93.184.215.14")...)
	},
}

// nthValueOfCycle returns values[n]. After the last value, it begins again with the first value.
func nthValueOfCycle(n int64, values ...string) string { return values[n%int64(len(values))] }

func newAnswer(addresses ...string) outboundtest.Answer {
	return outboundtest.Answer{Addrs: parseAddrs(addresses...)}
}

// newRebindingServer starts a name server that answers questions about LABEL.rebind.example with attacks[LABEL].
func newRebindingServer(t *testing.T) *outboundtest.NameServer {
	t.Helper()
	var mu sync.Mutex
	questions := map[string]int64{}
	return outboundtest.NewNameServer(t, func(host string) outboundtest.Answer {
		name, ok := strings.CutSuffix(host, ".rebind.example")
		attack := attacks[name]
		if !ok || attack == nil {
			return outboundtest.Answer{}
		}
		mu.Lock()
		defer mu.Unlock()
		questions[name]++
		return attack(questions[name] - 1)
	})
}

// connectionCounter counts connections immediately before the system makes them. It aborts connections to outboundtest.Public, so that no
// packet leaves this machine, and allows all other connections.
type connectionCounter struct {
	public atomic.Int64 // number of connections to outboundtest.Public
	others atomic.Int64 // number of connections to addresses other than outboundtest.Public
}

var errPublic = errors.New("connection to the public address aborted by the test")

// dialer returns a dialer that uses the resolver and counts its connections.
func (s *connectionCounter) dialer(r *net.Resolver) *net.Dialer {
	return &net.Dialer{Resolver: r, Control: func(_, address string, _ syscall.RawConn) error {
		if addr, err := netip.ParseAddrPort(address); err == nil && addr.Addr() == outboundtest.Public {
			s.public.Add(1)
			return errPublic
		}
		s.others.Add(1)
		return nil
	}}
}

// TestGuard_refusesDNSRebinding dials the hosts of all attacks. The guard must never connect to an
// internal address, even if the name server changes its answers.
func TestGuard_refusesDNSRebinding(t *testing.T) {
	t.Parallel()
	const rounds = 10_000
	server, listener := newRebindingServer(t), outboundtest.NewLocalListener(t)
	var counter connectionCounter
	guard := &outbound.Guard{Reach: allowAllHosts, Lookup: server.Lookup, Dial: counter.dialer(nil).DialContext}
	var refused, dialed, failed atomic.Int64
	var work sync.WaitGroup
	for name := range attacks {
		work.Go(func() {
			for range rounds / len(attacks) {
				_, err := guard.DialContext(t.Context(), "tcp", net.JoinHostPort(name+".rebind.example", listener.Port))
				if _, ok := errors.AsType[*outbound.RefusedError](err); ok {
					refused.Add(1)
				} else if errors.Is(err, errPublic) {
					dialed.Add(1)
				} else {
					failed.Add(1)
				}
			}
		})
	}
	work.Wait()
	t.Logf("dials: %d; refused by the guard: %d; connected to the public address: %d; failed: %d", rounds, refused.Load(), dialed.Load(), failed.Load())
	require.Zero(t, listener.CountConnections(t), "the guard must not connect to this machine")
	require.Zero(t, counter.others.Load(), "the guard must not connect to any address except the public address")
	require.Equal(t, dialed.Load(), counter.public.Load())
	require.EqualValues(t, rounds, refused.Load()+dialed.Load()+failed.Load())
	require.Less(t, failed.Load(), int64(rounds/100), "too many dials failed: the test allows less than 1 %")
	require.Greater(t, refused.Load(), int64(rounds/10), "too few dials were refused: the test needs more than 10 %")
	require.Greater(t, dialed.Load(), int64(rounds/10), "too few dials were allowed: the test needs more than 10 %")
	if failed.Load() == 0 { // after a failed look-up, the resolver may repeat its questions, so their number is not checked
		for name := range attacks {
			require.Equal(t, 2*rounds/len(attacks), server.Questions(name+".rebind.example"), "each dial must ask two questions about %s, for IPv4 and IPv6", name)
		}
	}
}

// TestUnsafeDialer_connectsToInternalAddressAfterDNSRebinding shows that TestGuard_refusesDNSRebinding
// can detect an unsafe dialer. The unsafe dialer looks up a host twice: first to check the address,
// then to connect.
func TestUnsafeDialer_connectsToInternalAddressAfterDNSRebinding(t *testing.T) {
	t.Parallel()
	server, listener := newRebindingServer(t), outboundtest.NewLocalListener(t)
	var counter connectionCounter
	unsafeDialer := counter.dialer(server.Resolver())
	for range 20 {
		found, err := server.Lookup(t.Context(), "ip4", "per-question.rebind.example")
		require.NoError(t, err)
		if !outbound.IsPublic(found[0].Unmap()) {
			continue
		}
		conn, err := unsafeDialer.DialContext(t.Context(), "tcp4", net.JoinHostPort("per-question.rebind.example.", listener.Port))
		if err == nil {
			require.NoError(t, conn.Close())
		}
	}
	require.Positive(t, counter.others.Load())
	require.Positive(t, listener.CountConnections(t))
}

// TestGuard_refusesEveryHostileLink dials the hosts of all hostile links. Its guard allows every host
// name, so only the check of the IP address can refuse a connection.
func TestGuard_refusesEveryHostileLink(t *testing.T) {
	t.Parallel()
	internet := outboundtest.NewInternet(t, outboundtest.InDomains("tiktok.com"), nil)
	guard := &outbound.Guard{Reach: allowAllHosts, Lookup: internet.Lookup, Dial: internet.Dial}
	refusals := 0
	for _, l := range outboundtest.Links(t, internet.Listener) {
		u, err := url.Parse(l.URL)
		if err != nil {
			continue
		}
		for _, port := range []string{internet.Listener.Port, "443"} {
			conn, err := guard.DialContext(t.Context(), "tcp", net.JoinHostPort(u.Hostname(), port))
			if err == nil {
				require.NoError(t, conn.Close())
			}
			if _, ok := errors.AsType[*outbound.RefusedError](err); ok {
				refusals++
			}
		}
	}
	require.Greater(t, refusals, 200)
	for _, address := range internet.DialedAddresses() {
		require.True(t, strings.HasPrefix(address, outboundtest.Public.String()+":"), address)
	}
	require.Zero(t, internet.Listener.CountConnections(t))
}
