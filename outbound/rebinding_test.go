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

// tricks are what a hostile name server answers to the n-th question for a name, all without a time to live.
var tricks = map[string]func(n int64) outboundtest.Answer{
	"turns":      func(n int64) outboundtest.Answer { return answerOf(byTurns(n, "93.184.215.14", "127.0.0.1")) },
	"slow-turns": func(n int64) outboundtest.Answer { return answerOf(byTurns(n/2, "93.184.215.14", "127.0.0.1")) },
	"metadata":   func(n int64) outboundtest.Answer { return answerOf(byTurns(n/2, "93.184.215.14", "169.254.169.254")) },
	"families":   func(int64) outboundtest.Answer { return answerOf("93.184.215.14", "::1") },
	"six":        func(n int64) outboundtest.Answer { return answerOf(byTurns(n/2, "93.184.215.14", "::1")) },
	"mapped":     func(n int64) outboundtest.Answer { return answerOf(byTurns(n/2, "93.184.215.14", "::ffff:127.0.0.1")) },
	"mixed":      func(int64) outboundtest.Answer { return answerOf("127.0.0.1", "93.184.215.14", "10.0.0.1", "::1") },
	"inside":     func(int64) outboundtest.Answer { return answerOf("127.0.0.1", "::1") },
	"chain": func(n int64) outboundtest.Answer {
		a := answerOf(byTurns(n/2, "93.184.215.14", "127.0.0.1"))
		a.Via = byTurns(n/2, "edge.example", "localhost")
		return a
	},
	"many": func(int64) outboundtest.Answer {
		private := strings.Fields(strings.Repeat("127.0.0.1 192.168.0.1 ", 6))
		return answerOf(append(private, "93.184.215.14")...)
	},
}

func byTurns(n int64, these ...string) string { return these[n%int64(len(these))] }

func answerOf(addresses ...string) outboundtest.Answer {
	return outboundtest.Answer{Addrs: addrs(addresses...)}
}

// rebinder is a name server whose names below "rebind.example" are the tricks.
func rebinder(t *testing.T) *outboundtest.NameServer {
	t.Helper()
	var mu sync.Mutex
	turns := map[string]int64{}
	return outboundtest.NewNameServer(t, func(host string) outboundtest.Answer {
		name, ok := strings.CutSuffix(host, ".rebind.example")
		trick := tricks[name]
		if !ok || trick == nil {
			return outboundtest.Answer{}
		}
		mu.Lock()
		defer mu.Unlock()
		turns[name]++
		return trick(turns[name] - 1)
	})
}

// sockets remembers where the system was about to connect to. Connections to the public address end there, before a packet
// leaves this machine; all others go on.
type sockets struct {
	public, others atomic.Int64
}

var errPublic = errors.New("it would have connected to the public address")

func (s *sockets) dialer(r *net.Resolver) *net.Dialer {
	return &net.Dialer{Resolver: r, Control: func(_, address string, _ syscall.RawConn) error {
		if addr, err := netip.ParseAddrPort(address); err == nil && addr.Addr() == outboundtest.Public {
			s.public.Add(1)
			return errPublic
		}
		s.others.Add(1)
		return nil
	}}
}

// TestGuard_refusesDNSRebinding resolves and dials 10,000 times against a name server that changes its mind.
func TestGuard_refusesDNSRebinding(t *testing.T) {
	t.Parallel()
	const rounds = 10_000
	server, canary := rebinder(t), outboundtest.NewCanary(t)
	var system sockets
	guard := &outbound.Guard{Reach: anywhere, Lookup: server.Lookup, Dial: system.dialer(nil).DialContext}
	var refused, dialed, failed atomic.Int64
	var work sync.WaitGroup
	for name := range tricks {
		work.Go(func() {
			for range rounds / len(tricks) {
				_, err := guard.DialContext(t.Context(), "tcp", net.JoinHostPort(name+".rebind.example", canary.Port))
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
	t.Logf("%d rounds: %d refused, %d to the public address, %d unanswered", rounds, refused.Load(), dialed.Load(), failed.Load())
	require.Zero(t, canary.Visits(t), "somebody came")
	require.Zero(t, system.others.Load(), "the system was about to connect to another address than the public one")
	require.Equal(t, dialed.Load(), system.public.Load())
	require.EqualValues(t, rounds, refused.Load()+dialed.Load()+failed.Load())
	require.Less(t, failed.Load(), int64(rounds/100), "the name server answers")
	require.Greater(t, refused.Load(), int64(rounds/10), "answers that were private alone")
	require.Greater(t, dialed.Load(), int64(rounds/10), "answers with the public address")
	if failed.Load() == 0 { // a lost packet is asked for again
		for name := range tricks {
			require.Equal(t, 2*rounds/len(tricks), server.Questions(name+".rebind.example"), "%s is asked for once a round, in both families", name)
		}
	}
}

// TestRebinding_reachesADialerThatLooksUpTwice shows that the name server and the canary do their work: whoever checks the answer and
// then dials the name is led inside.
func TestRebinding_reachesADialerThatLooksUpTwice(t *testing.T) {
	t.Parallel()
	server, canary := rebinder(t), outboundtest.NewCanary(t)
	var system sockets
	careless := system.dialer(server.Resolver())
	for range 20 {
		found, err := server.Lookup(t.Context(), "ip4", "turns.rebind.example")
		require.NoError(t, err)
		if !outbound.IsPublic(found[0].Unmap()) {
			continue
		}
		conn, err := careless.DialContext(t.Context(), "tcp4", net.JoinHostPort("turns.rebind.example.", canary.Port))
		if err == nil {
			require.NoError(t, conn.Close())
		}
	}
	require.Positive(t, system.others.Load())
	require.Positive(t, canary.Visits(t))
}

// TestGuard_refusesEveryHostileLink hands every host of the table to guards that may reach any name, so that addresses alone
// decide.
func TestGuard_refusesEveryHostileLink(t *testing.T) {
	t.Parallel()
	world := outboundtest.NewInternet(t, outboundtest.In("tiktok.com"), nil)
	guard := &outbound.Guard{Reach: anywhere, Lookup: world.Lookup, Dial: world.Dial}
	refusals := 0
	for _, l := range outboundtest.Links(t, world.Inside) {
		u, err := url.Parse(l.URL)
		if err != nil {
			continue
		}
		for _, port := range []string{world.Inside.Port, "443"} {
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
	for _, address := range world.Dialed() {
		require.True(t, strings.HasPrefix(address, outboundtest.Public.String()+":"), address)
	}
	require.Zero(t, world.Inside.Visits(t))
}
