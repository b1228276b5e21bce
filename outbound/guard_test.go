package outbound_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/outbound"
	"github.com/reeltally/reeltally/outbound/outboundtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIsPublic_returnsTrueOnlyForPublicAddresses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"1.1.1.1", "8.8.8.8", "93.184.215.14", "100.63.255.255", "100.128.0.1", "11.0.0.1", "172.15.255.255", "172.32.0.1", "192.167.255.255", "192.169.0.1",
		"169.253.255.255", "169.255.0.1", "168.63.129.15", "198.17.255.255", "198.20.0.1", "223.255.255.255", "192.0.1.1",
		"2606:4700:4700::1111", "2a03:2880:f12f:83:face:b00c:0:25de", "2001:4860:4860::8888", "2001:200::1", "64:ff9b::808:808",
	} {
		require.True(t, outbound.IsPublic(netip.MustParseAddr(s)), s)
	}
	for _, s := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255", "127.0.0.1", "127.255.255.254",
		"168.63.129.16", "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1",
		"192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1",
		"255.255.255.255",
		"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:7f00:1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1",
		"2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "3fff::1", "4000::1", "5f00::1",
		"fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "2606:4700:4700::1111%eth0", "fec0::1", "ff02::1", "ff0e::1",
	} {
		require.False(t, outbound.IsPublic(netip.MustParseAddr(s)), s)
	}
	require.False(t, outbound.IsPublic(netip.Addr{}))
}

func TestIsPublic_returnsFalseForIPv6FormsOfLocalAddresses(t *testing.T) {
	t.Parallel()
	local := []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"),
	}
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SampledFrom(local).Draw(t, "prefix")
		v4 := prefix.Addr().As4()
		for i := range 4 {
			free := prefix.Bits() - i*8
			mask := byte(0xff)
			if free > 0 {
				mask = byte(0xff >> min(free, 8))
			}
			v4[i] |= rapid.Byte().Draw(t, "byte") & mask
		}
		require.False(t, outbound.IsPublic(netip.AddrFrom4(v4)))
		for _, head := range [][]byte{
			{}, // ::a.b.c.d
			{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff},       // IPv4-mapped
			{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff},             // IPv4-translated (SIIT)
			{0, 0x64, 0xff, 0x9b},                            // NAT64
			{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0x5e, 0xfe}, // ISATAP, link-local
			{0x20, 0x02, v4[0], v4[1], v4[2], v4[3]},         // 6to4
			{0x20, 0x01, 0, 0, 0x41, 0x36, 0xe3, 0x78, 0x80}, // Teredo
			{0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0},    // unique local addresses (RFC 4193)
			{0, 0x64, 0xff, 0x9b, 0, 1, 0, 0, 0, 0, 0, 0},    // NAT64 prefix for local use (RFC 8215)
			{0x3f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},       // prefix for examples in documents (RFC 9637)
			{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0}, // prefix for examples in documents (RFC 3849)
			{0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},       // multicast addresses
			{0x01, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},       // discard prefix: packets to these addresses are dropped (RFC 6666)
			{0x5f, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},       // prefix for segment routing over IPv6 (RFC 9602)
			{0xfe, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},       // site-local addresses
			{0x40, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},       // unassigned prefix
			{0x20, 0x01, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0},    // prefix of ORCHID addresses (RFC 4843)
			{0x20, 0x01, 0, 0x02, 0, 0, 0, 0, 0, 0, 0, 0},    // prefix for benchmarks (RFC 5180)
			{0x20, 0x01, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0},    // prefix of ORCHIDv2 addresses (RFC 7343)
			{0x20, 0x01, 0x01, 0xff, 0, 0, 0, 0, 0, 0, 0, 0}, // reserved prefix
		} {
			var v6 [16]byte
			copy(v6[:], head)
			copy(v6[12:], v4[:])
			require.False(t, outbound.IsPublic(netip.AddrFrom16(v6)), netip.AddrFrom16(v6).String())
		}
	})
}

// fixedLookup returns a function for Guard.Lookup that always returns the given addresses. The second result counts the calls of the
// returned function.
func fixedLookup(addresses []netip.Addr) (lookup func(context.Context, string, string) ([]netip.Addr, error), calls *atomic.Int64) {
	calls = new(atomic.Int64)
	return func(context.Context, string, string) ([]netip.Addr, error) {
		calls.Add(1)
		return append([]netip.Addr(nil), addresses...), nil
	}, calls
}

// dialRecorder records the addresses that a Guard dials. Its method recordDial is used as Guard.Dial. recordDial never connects and always
// returns errRecorded.
type dialRecorder struct {
	mu     sync.Mutex
	dialed []string
}

var errRecorded = errors.New("address recorded and not dialled")

func (r *dialRecorder) recordDial(_ context.Context, _, address string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dialed = append(r.dialed, address)
	return nil, errRecorded
}

// allowAllHosts is a function for Guard.Reach. It allows all hosts at all ports, if they resolve to public addresses.
func allowAllHosts(string) outbound.Reach { return outbound.Public }

// allowPort443 is a function for Guard.Reach. It allows all hosts at port 443, if they resolve to public addresses.
func allowPort443(address string) outbound.Reach {
	if !strings.HasSuffix(address, ":443") {
		return outbound.NoAddress
	}
	return outbound.Public
}

// allowConfiguredHost returns a function for Guard.Reach. For the given "host:port", the function returns outbound.Operated. For any other
// "host:port", it returns outbound.NoAddress.
func allowConfiguredHost(hostPort string) func(string) outbound.Reach {
	return func(address string) outbound.Reach {
		if address != hostPort {
			return outbound.NoAddress
		}
		return outbound.Operated
	}
}

func parseAddrs(s ...string) []netip.Addr {
	out := make([]netip.Addr, len(s))
	for i := range s {
		out[i] = netip.MustParseAddr(s[i])
	}
	return out
}

func TestGuard_dialsPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		address string
		answer  []netip.Addr
		dialed  []string
		refused bool
	}{
		"a host name with a public address":                {"example.com:443", parseAddrs("93.184.215.14"), []string{"93.184.215.14:443"}, false},
		"a host name with public IPv6 and IPv4 addresses":  {"example.com:443", parseAddrs("2606:4700::1", "93.184.215.14"), []string{"[2606:4700::1]:443", "93.184.215.14:443"}, false},
		"a host name with an IPv4-mapped public address":   {"example.com:443", parseAddrs("::ffff:93.184.215.14"), []string{"93.184.215.14:443"}, false},
		"a public IP address":                              {"93.184.215.14:443", nil, []string{"93.184.215.14:443"}, false},
		"a host name with a private address":               {"example.com:443", parseAddrs("10.0.0.1"), nil, true},
		"a host name with loopback addresses":              {"example.com:443", parseAddrs("127.0.0.1", "::1"), nil, true},
		"a host name with an IPv4-mapped loopback address": {"example.com:443", parseAddrs("::ffff:127.0.0.1"), nil, true},
		"a host name with a public and a private address":  {"example.com:443", parseAddrs("10.0.0.1", "93.184.215.14"), []string{"93.184.215.14:443"}, false},
		"the IP address of a cloud metadata service":       {"169.254.169.254:443", nil, nil, true},
		"an IPv4-mapped IP address":                        {"[::ffff:93.184.215.14]:443", nil, nil, true},
		"an IP address with a zone":                        {"[fe80::1%eth0]:443", nil, nil, true},
		"a decimal number that resolves to loopback":       {"2130706433:443", parseAddrs("127.0.0.1"), nil, true},
		"a hexadecimal number that resolves to loopback":   {"0x7f.1:443", parseAddrs("127.0.0.1"), nil, true},
		"a port other than 443":                            {"example.com:8443", parseAddrs("93.184.215.14"), nil, true},
		"no port":                                          {"example.com:", parseAddrs("93.184.215.14"), nil, true},
		"a port name instead of a port number":             {"example.com:https", parseAddrs("93.184.215.14"), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r dialRecorder
			lookup, _ := fixedLookup(c.answer)
			g := &outbound.Guard{Reach: allowPort443, Lookup: lookup, Dial: r.recordDial}
			_, err := g.DialContext(t.Context(), "tcp", c.address)
			require.Equal(t, c.dialed, r.dialed)
			var refused *outbound.RefusedError
			if c.refused {
				require.ErrorAs(t, err, &refused)
				require.Contains(t, err.Error(), "refused")
				return
			}
			require.ErrorIs(t, err, errRecorded)
		})
	}
}

func TestGuard_returnsErrorIfHostCannotBeLookedUp(t *testing.T) {
	t.Parallel()
	broken := errors.New("no name server")
	g := &outbound.Guard{Reach: allowAllHosts, Lookup: func(context.Context, string, string) ([]netip.Addr, error) { return nil, broken }}
	_, err := g.DialContext(t.Context(), "tcp", "example.com:443")
	require.ErrorIs(t, err, broken)

	g = &outbound.Guard{Reach: allowAllHosts, Lookup: func(context.Context, string, string) ([]netip.Addr, error) { return nil, nil }}
	_, err = g.DialContext(t.Context(), "tcp", "example.com:443")
	var dns *net.DNSError
	require.ErrorAs(t, err, &dns)
	require.True(t, dns.IsNotFound)

	_, err = g.DialContext(t.Context(), "tcp", "no port")
	require.Error(t, err)
}

func TestGuard_checksIPAddressBeforeSystemConnects(t *testing.T) {
	t.Parallel()
	listener := outboundtest.NewLocalListener(t)
	_, err := (&outbound.Guard{Reach: allowAllHosts}).DialContext(t.Context(), "tcp", listener.Address())
	var refused *outbound.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, netip.MustParseAddr("127.0.0.1"), refused.Addr)
	require.Zero(t, listener.CountConnections(t))
	for _, address := range []string{listener.Address(), "[::1]:443", "[::ffff:127.0.0.1]:443", "vm.tiktok.com:443", ""} {
		require.ErrorAs(t, outbound.Control("vm.tiktok.com", outbound.Public, "tcp", address, nil), &refused, address)
	}
	require.NoError(t, outbound.Control("vm.tiktok.com", outbound.Public, "tcp4", "93.184.215.14:443", nil))
}

func TestGuard_refusesHostsThatAreNotConfigured(t *testing.T) {
	t.Parallel()
	var r dialRecorder
	lookup, calls := fixedLookup(parseAddrs("93.184.215.14"))
	for name, g := range map[string]*outbound.Guard{
		"no Reach function": {Lookup: lookup, Dial: r.recordDial},
		"another host":      {Reach: allowConfiguredHost("www.example.com:443"), Lookup: lookup, Dial: r.recordDial},
		"another port":      {Reach: allowConfiguredHost("example.com:80"), Lookup: lookup, Dial: r.recordDial},
	} {
		_, err := g.DialContext(t.Context(), "tcp", "example.com:443")
		var refused *outbound.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.EqualError(t, err, "connection to example.com:443 refused: this host and port are not allowed")
	}
	require.Empty(t, r.dialed)
	require.Zero(t, calls.Load(), "a refused host must not be looked up")
}

func TestGuard_dialsPrivateAddressesOfConfiguredHosts(t *testing.T) {
	t.Parallel()
	listener := outboundtest.NewLocalListener(t)
	conn, err := (&outbound.Guard{Reach: allowConfiguredHost(listener.Address())}).DialContext(t.Context(), "tcp", listener.Address())
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	for host, allowed := range map[string]bool{
		"127.0.0.1": true, "127.0.0.2": true, "::1": true, "10.0.0.1": true, "172.18.0.2": true, "192.168.1.1": true, "fd12:3456::1": true, "93.184.215.14": true,
		"169.254.169.254": false, "169.254.170.2": false, "100.100.100.200": false, "168.63.129.16": false, "fd00:ec2::254": false, "fd20:ce::254": false,
		"fd00:c1::a9fe:a9fe": false, "fe80::1": false, "fe80::1%eth0": false, "0.0.0.0": false, "::": false, "224.0.0.1": false, "198.18.0.1": false, "64:ff9b::7f00:1": false,
	} {
		var r dialRecorder
		lookup, _ := fixedLookup(parseAddrs(host))
		_, err := (&outbound.Guard{Reach: allowConfiguredHost("sandbox:443"), Lookup: lookup, Dial: r.recordDial}).DialContext(t.Context(), "tcp", "Sandbox:443")
		var refused *outbound.RefusedError
		require.Equal(t, allowed, !errors.As(err, &refused), "a name that resolves to %s: %v", host, err)
		require.Equal(t, allowed, len(r.dialed) == 1, host)

		literal := net.JoinHostPort(host, "443")
		_, err = (&outbound.Guard{Reach: allowConfiguredHost(literal), Dial: r.recordDial}).DialContext(t.Context(), "tcp", literal)
		require.ErrorIs(t, err, errRecorded, "the guard must dial %s, because the operator configured this address", host)
	}
}

func TestAddressOf_returnsHostAndPort(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"http://Sandbox:9090/x": "sandbox:9090", "http://sandbox": "sandbox:80", "https://Example.COM/": "example.com:443", "https://[::1]/": "[::1]:443",
		"https://[fe80::1%25lo]:1/": "[fe80::1%lo]:1", "https://example.com:/": "example.com:443",
	} {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		require.Equal(t, want, outbound.AddressOf(u), raw)
	}
}

func TestGuard_limitsConnectTimeIfMoreAddressesFollow(t *testing.T) {
	t.Parallel()
	lookup, _ := fixedLookup(parseAddrs("2606:4700::1", "93.184.215.14"))
	var timeouts []time.Duration
	g := &outbound.Guard{Reach: allowAllHosts, Lookup: lookup, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		timeouts = append(timeouts, time.Until(deadline))
		return nil, errRecorded
	}}
	_, err := g.DialContext(t.Context(), "tcp", "example.com:443")
	require.ErrorIs(t, err, errRecorded)
	require.Len(t, timeouts, 2)
	require.InDelta(t, 3*time.Second, timeouts[0], float64(time.Second))
	require.InDelta(t, 10*time.Second, timeouts[1], float64(time.Second))
}

func TestNewTransport_usesNoProxy(t *testing.T) { //nolint:paralleltest // not parallel, because the test changes environment variables
	proxy := outboundtest.NewLocalListener(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, "http://"+proxy.Address())
	}
	page := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(page.Close)
	transport := outbound.NewTransport(&outbound.Guard{Reach: allowConfiguredHost(strings.TrimPrefix(page.URL, "http://"))})
	t.Cleanup(transport.CloseIdleConnections)
	response, err := (&http.Client{Transport: transport}).Get(page.URL)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())

	_, err = (&http.Client{Transport: transport}).Get("http://" + proxy.Address())
	var refused *outbound.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Zero(t, proxy.CountConnections(t))
}

func TestParseBaseURL_refusesURLsToWhichNoPathCanBeAppended(t *testing.T) {
	t.Parallel()
	for _, valid := range []string{"http://127.0.0.1:9090", "https://example.com/prefix/"} {
		u, err := outbound.ParseBaseURL(valid)
		require.NoError(t, err)
		require.Equal(t, valid, u.String())
	}
	for _, invalid := range []string{"", "example.com", "ftp://example.com", "http://", "http://:80", "http://user:secret@example.com", "http://h?", "http://h/?a=b", "http://h/#", "http://h/#top", "http://h:x"} {
		_, err := outbound.ParseBaseURL(invalid)
		require.ErrorIs(t, err, outbound.ErrBaseURL, invalid)
		_, err = outbound.AllowOneServer(invalid)
		require.Error(t, err, invalid)
	}
}
