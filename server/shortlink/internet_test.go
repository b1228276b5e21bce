package shortlink_test

import (
	"context"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/outbound/outboundtest"
	"github.com/reeltally/reeltally/server/shortlink"
)

// publicAddress is the IP address to which all hosts of the simulated internet resolve.
const publicAddress = "93.184.215.14"

// pageResponse is the response of a simulated platform to a request for one page.
type pageResponse struct {
	status   int
	location string
	// head is the status of the response to a HEAD request. This response has no headers. If head is 0, HEAD and GET get the same response.
	head    int
	cookie  string        // value of the header Set-Cookie; "" if the response has no such header
	endless chan struct{} // set if the response body is endless; the server closes this channel after the client has closed the connection
	silent  bool          // true if the server never sends a response
}

// redirect301 returns a redirect with status 301.
func redirect301(location string) pageResponse {
	return pageResponse{status: http.StatusMovedPermanently, location: location}
}

// redirect302 returns a redirect with status 302.
func redirect302(location string) pageResponse {
	return pageResponse{status: http.StatusFound, location: location}
}

// routes maps pages to responses. A page is a host, a path and a query, such as
// "vm.tiktok.com/ZMabc1234/". Pages without an entry get status 404.
type routes map[string]pageResponse

// simulatedInternet simulates the internet. All hosts resolve to publicAddress, where one TLS server answers the requests for all hosts.
// simulatedInternet records all requests and connections.
type simulatedInternet struct {
	sites   routes
	secure  *httptest.Server // the TLS server at publicAddress
	plain   *httptest.Server // an http server with the pages of the host simulated.example, for tests of Options.BaseURL
	roots   *x509.CertPool
	arrived chan struct{} // receives a value when a request arrives

	mu       sync.Mutex
	received []string      // method and page of each request
	sent     []http.Header // headers of each request
	contacts []string      // addresses to which the resolver connected
	done     chan struct{} // closed at the end of the test; ends all requests that got no response
}

// newInternet starts a simulatedInternet, which is stopped at the end of the test.
func newInternet(t *testing.T, sites routes) *simulatedInternet {
	t.Helper()
	w := &simulatedInternet{sites: sites, arrived: make(chan struct{}, 64), done: make(chan struct{})}
	authority := outboundtest.NewAuthority(t)
	w.roots = authority.Roots
	w.secure = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.handleRequest(rw, r, r.Host) }))
	w.secure.TLS = authority.ServerConfig()
	// Some tests abort TLS handshakes, which would be logged as errors.
	w.secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.secure.StartTLS()
	w.plain = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.handleRequest(rw, r, "simulated.example") }))
	t.Cleanup(func() {
		close(w.done)
		w.secure.Close()
		w.plain.Close()
	})
	return w
}

// handleRequest records the request r and sends the response from w.sites. host is the host of the
// requested page.
func (w *simulatedInternet) handleRequest(rw http.ResponseWriter, r *http.Request, host string) {
	page := host + r.URL.RequestURI()
	w.mu.Lock()
	w.received = append(w.received, r.Method+" "+page)
	w.sent = append(w.sent, r.Header.Clone())
	w.mu.Unlock()
	select {
	case w.arrived <- struct{}{}:
	default:
	}
	a, ok := w.sites[page]
	switch {
	case !ok:
		rw.WriteHeader(http.StatusNotFound)
		return
	case a.silent:
		select {
		case <-r.Context().Done():
		case <-w.done:
		}
		return
	case r.Method == http.MethodHead && a.head != 0:
		rw.WriteHeader(a.head)
		return
	}
	if a.cookie != "" {
		rw.Header().Set("Set-Cookie", a.cookie)
	}
	if a.location != "" {
		rw.Header().Set("Location", a.location)
	}
	rw.WriteHeader(a.status)
	if a.endless != nil {
		defer close(a.endless)
		for {
			if _, err := io.WriteString(rw, strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	}
}

// newResolver returns a resolver with the given options. If o.Lookup or o.Dial is nil, the resolver uses the simulated internet.
func (w *simulatedInternet) newResolver(t *testing.T, o shortlink.Options) *shortlink.Resolver {
	t.Helper()
	if o.Lookup == nil {
		o.Lookup = lookup
	}
	if o.Dial == nil {
		o.Dial = w.recordDial
	}
	o.RootCAs = w.roots
	r, err := shortlink.New(o)
	require.NoError(t, err)
	return r
}

// lookup resolves every host to publicAddress.
func lookup(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(publicAddress)}, nil
}

// recordDial records the address and returns a connection to it. Port 443 of publicAddress is simulated: the connection leads to the TLS
// server w.secure.
func (w *simulatedInternet) recordDial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.contacts = append(w.contacts, address)
	w.mu.Unlock()
	if address == net.JoinHostPort(publicAddress, "443") {
		address = w.secure.Listener.Addr().String()
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// receivedRequests returns the method and page of each request in order, such as "HEAD vm.tiktok.com/ZMabc1234/".
func (w *simulatedInternet) receivedRequests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.received...)
}

// receivedHeaders returns the headers of each request in order.
func (w *simulatedInternet) receivedHeaders() []http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]http.Header(nil), w.sent...)
}

// dialedAddresses returns the addresses to which the resolver connected, in order.
func (w *simulatedInternet) dialedAddresses() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.contacts...)
}
