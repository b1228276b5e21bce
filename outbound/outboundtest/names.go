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

// Answer is what a name server says of a host; without addresses, that there is no such host.
type Answer struct {
	Addrs []netip.Addr
	Via   string // another name that stands in between
}

// NameServer speaks DNS over UDP, and keeps a book of what it is asked. Its answers live for no second.
type NameServer struct {
	zone     func(host string) Answer
	conn     net.PacketConn
	resolver *net.Resolver

	mu    sync.Mutex
	asked map[string]int
}

// NewNameServer starts a name server. The zone is asked with a name in lower case without its last dot, once a question: one
// for A and one for AAAA. It ends with the test.
func NewNameServer(t *testing.T, zone func(host string) Answer) *NameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0") //nolint:noctx // it listens at once
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

// Lookup asks the name server by Go's own resolver, which caches nothing.
func (s *NameServer) Lookup(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return s.resolver.LookupNetIP(ctx, network, strings.TrimSuffix(host, ".")+".") // no search list
}

// Resolver asks the name server.
func (s *NameServer) Resolver() *net.Resolver { return s.resolver }

// Asked gives the names that were looked up.
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

// Questions is how often a name was asked for.
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

// answer is the reply to a message, nil to one that is no question.
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

// record is the head of a record that may not be kept: TTL 0.
func record(owner dnsmessage.Name) dnsmessage.ResourceHeader {
	return dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET}
}
