package outboundtest

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// Answer is the answer of a name server about a host. Without addresses, the host does not exist.
type Answer struct {
	Addrs []netip.Addr
	Via   string // an alias (CNAME) on the way; "" for none
}

// NameServer is a DNS server over UDP that records its questions. Its answers have a TTL of 0.
type NameServer struct {
	zone     func(host string) Answer
	conn     net.PacketConn
	resolver *net.Resolver

	mu    sync.Mutex
	asked map[string]int
}

// NewNameServer starts a name server, which ends with the test. It calls zone for each question (A and AAAA) with a name in lower case and
// without the trailing dot.
func NewNameServer(t *testing.T, zone func(host string) Answer) *NameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0") //nolint:noctx // listening does not block
	require.NoError(t, err)
	s := &NameServer{zone: zone, conn: conn, asked: map[string]int{}}
	s.resolver = &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	var done sync.WaitGroup
	done.Go(s.serve)
	t.Cleanup(func() {
		_ = conn.Close()
		done.Wait()
	})
	return s
}

// Lookup looks a host up at this name server, without a cache.
func (s *NameServer) Lookup(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return s.resolver.LookupNetIP(ctx, network, strings.TrimSuffix(host, ".")+".") // no search list
}

// Resolver returns a resolver that uses this name server.
func (s *NameServer) Resolver() *net.Resolver { return s.resolver }

// Asked returns the names that were looked up, sorted.
func (s *NameServer) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.asked))
	for name := range s.asked {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Questions returns the number of questions about a host.
func (s *NameServer) Questions(host string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[host]
}

func (s *NameServer) serve() {
	buffer := make([]byte, 4096)
	for {
		n, from, err := s.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if reply := s.answer(buffer[:n]); reply != nil {
			_, _ = s.conn.WriteTo(reply, from)
		}
	}
}

// answer returns the reply to a question; nil if the message is not a question.
func (s *NameServer) answer(message []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(message)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	host := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	s.mu.Lock()
	s.asked[host]++
	s.mu.Unlock()
	said := s.zone(host)
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: head.ID, Response: true, Authoritative: true, RecursionDesired: head.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	if len(said.Addrs) == 0 {
		reply.RCode = dnsmessage.RCodeNameError
	}
	owner := q.Name
	if said.Via != "" {
		via := dnsmessage.MustNewName(said.Via + ".")
		reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: record(owner), Body: &dnsmessage.CNAMEResource{CNAME: via}})
		owner = via
	}
	for _, addr := range said.Addrs {
		switch {
		case q.Type == dnsmessage.TypeA && addr.Is4():
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: record(owner), Body: &dnsmessage.AResource{A: addr.As4()}})
		case q.Type == dnsmessage.TypeAAAA && addr.Is6():
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: record(owner), Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// record returns the header of a record with TTL 0, which must not be cached.
func record(owner dnsmessage.Name) dnsmessage.ResourceHeader {
	return dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET}
}
