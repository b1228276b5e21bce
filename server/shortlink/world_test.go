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

// publicAddress is the address of all hosts of the platforms in a test.
const publicAddress = "93.184.215.14"

// answer is the response of a page.
type answer struct {
	status   int
	location string
	head     int           // the status of HEAD, without Location; 0 means the same response as for GET
	cookie   string        // a Set-Cookie header
	endless  chan struct{} // an endless body; the channel is closed when the client closes the connection
	silent   bool          // no response
}

func moved(location string) answer {
	return answer{status: http.StatusMovedPermanently, location: location}
}

func found(location string) answer { return answer{status: http.StatusFound, location: location} }

// routes are the pages of a world, by host and path with query. Other paths are answered with 404.
type routes map[string]answer

// world simulates the internet: a real TLS server for the hosts of all platforms, a name server that resolves to this server, and a record of
// all connections.
type world struct {
	sites   routes
	secure  *httptest.Server
	plain   *httptest.Server
	roots   *x509.CertPool
	arrived chan struct{}

	mu       sync.Mutex
	asked    []string
	sent     []http.Header
	contacts []string
	done     chan struct{}
}

func newWorld(t *testing.T, sites routes) *world {
	t.Helper()
	w := &world{sites: sites, arrived: make(chan struct{}, 64), done: make(chan struct{})}
	authority := outboundtest.NewAuthority(t)
	w.roots = authority.Roots
	w.secure = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.serve(rw, r, r.Host) }))
	w.secure.TLS = authority.ServerConfig()
	// Tests abort handshakes on purpose.
	w.secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.secure.StartTLS()
	w.plain = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.serve(rw, r, "standin.example") }))
	t.Cleanup(func() {
		close(w.done)
		w.secure.Close()
		w.plain.Close()
	})
	return w
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request, host string) {
	page := host + r.URL.RequestURI()
	w.mu.Lock()
	w.asked = append(w.asked, r.Method+" "+page)
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

// resolver returns a resolver that uses the name server and the dialer of this world, unless o has others.
func (w *world) resolver(t *testing.T, o shortlink.Options) *shortlink.Resolver {
	t.Helper()
	if o.Lookup == nil {
		o.Lookup = lookup
	}
	if o.Dial == nil {
		o.Dial = w.dial
	}
	o.RootCAs = w.roots
	r, err := shortlink.New(o)
	require.NoError(t, err)
	return r
}

func lookup(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(publicAddress)}, nil
}

// dial connects to the server for publicAddress, and to the real address otherwise.
func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.contacts = append(w.contacts, address)
	w.mu.Unlock()
	if address == net.JoinHostPort(publicAddress, "443") {
		address = w.secure.Listener.Addr().String()
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (w *world) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.asked...)
}

func (w *world) headers() []http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]http.Header(nil), w.sent...)
}

// dialed returns the dialled addresses.
func (w *world) dialed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.contacts...)
}
