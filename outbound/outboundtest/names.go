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

// Answer is the answer of a name server to a query for the addresses of a host.
type Answer struct {
	Addrs []netip.Addr // the IP addresses of the host; empty if the host does not exist
	Via   string       // the target of the host's CNAME record; "" if the host has no CNAME record
}

// NameServer is a DNS server over UDP. It counts the questions about each host. Its answers have a TTL of 0.
type NameServer struct {
	answerFor func(host string) Answer // called for each question about IPv4 or IPv6 addresses
	conn      net.PacketConn
	resolver  *net.Resolver

	mu    sync.Mutex
	asked map[string]int // a map from hosts to the number of questions about them
}

// NewNameServer starts a name server, which is stopped at the end of the test. It calls answerFor with
// hosts in lower case and without a trailing dot.
func NewNameServer(t *testing.T, answerFor func(host string) Answer) *NameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0") //nolint:noctx // no context is needed, because listening does not block
	require.NoError(t, err)
	s := &NameServer{answerFor: answerFor, conn: conn, asked: map[string]int{}}
	s.resolver = &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	var done sync.WaitGroup
	done.Go(s.answerQuestions)
	t.Cleanup(func() {
		_ = conn.Close()
		done.Wait()
	})
	return s
}

// Lookup asks this name server for the addresses of a host. It uses no cache.
func (s *NameServer) Lookup(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return s.resolver.LookupNetIP(ctx, network, strings.TrimSuffix(host, ".")+".") // with the trailing dot, the resolver appends no search domain
}

// Resolver returns a resolver that uses this name server.
func (s *NameServer) Resolver() *net.Resolver { return s.resolver }

// LookedUpHosts returns the hosts that were looked up, sorted and without duplicates.
func (s *NameServer) LookedUpHosts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.asked))
	for name := range s.asked {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Questions returns how many questions about a host the server has received. A look-up usually asks two questions: one for IPv4 and one for
// IPv6 addresses.
func (s *NameServer) Questions(host string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[host]
}

// answerQuestions answers questions until the connection is closed.
func (s *NameServer) answerQuestions() {
	buffer := make([]byte, 4096)
	for {
		n, from, err := s.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if reply := s.replyTo(buffer[:n]); reply != nil {
			_, _ = s.conn.WriteTo(reply, from)
		}
	}
}

// replyTo returns the reply to a DNS message, or nil if the message is not a question.
func (s *NameServer) replyTo(message []byte) []byte {
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
	result := s.answerFor(host)
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: head.ID, Response: true, Authoritative: true, RecursionDesired: head.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	if len(result.Addrs) == 0 {
		reply.RCode = dnsmessage.RCodeNameError
	}
	owner := q.Name
	if result.Via != "" {
		via := dnsmessage.MustNewName(result.Via + ".")
		reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: dnsRecordHeader(owner), Body: &dnsmessage.CNAMEResource{CNAME: via}})
		owner = via
	}
	for _, addr := range result.Addrs {
		switch {
		case q.Type == dnsmessage.TypeA && addr.Is4():
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: dnsRecordHeader(owner), Body: &dnsmessage.AResource{A: addr.As4()}})
		case q.Type == dnsmessage.TypeAAAA && addr.Is6():
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: dnsRecordHeader(owner), Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// dnsRecordHeader returns the header of a DNS record about a host. The TTL of the record is 0, so that no resolver caches the record.
func dnsRecordHeader(host dnsmessage.Name) dnsmessage.ResourceHeader {
	return dnsmessage.ResourceHeader{Name: host, Class: dnsmessage.ClassINET}
}
