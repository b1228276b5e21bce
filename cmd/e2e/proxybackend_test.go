package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// startProxyForServers starts a proxy that forwards requests to one or two test servers. It returns a client of the proxy.
func startProxyForServers(t *testing.T, program *proxyProgram, servers ...*httptest.Server) *proxiedStack {
	t.Helper()
	for _, s := range servers {
		t.Cleanup(s.Close)
	}
	p := &proxiedStack{stack: &stack{}, t: t, direct: strings.TrimPrefix(servers[0].URL, "http://")}
	conf := program.configuration(t)
	if len(servers) > 1 {
		conf = program.withSecondServer(t, strings.TrimPrefix(servers[1].URL, "http://"))
	}
	p.startProxy(program, conf)
	return p
}

// TestProxy_forwardsDownloadsBeforeTheyAreComplete requires that a proxy forwards data before the download is complete. The test server first sends
// 64 KiB. It sends the rest after the caller has read some of these bytes.
func TestProxy_forwardsDownloadsBeforeTheyAreComplete(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, program := range proxyPrograms {
		t.Run(program.name, func(t *testing.T) {
			t.Parallel()
			// ReelTally also sends blocks of 64 KiB.
			const chunk, piece = 64 << 10, 16 << 10
			arrived := make(chan struct{})
			p := startProxyForServers(t, program, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/videos" {
					return
				}
				_, _ = io.WriteString(w, strings.Repeat("a", chunk))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-arrived:
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, "end")
			})))
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.base+"/videos", nil)
			require.NoError(t, err)
			resp, err := p.client.Do(r)
			require.NoError(t, err)
			defer func() { require.NoError(t, resp.Body.Close()) }()
			_, err = io.CopyN(io.Discard, resp.Body, piece)
			require.NoError(t, err)
			close(arrived)
			rest, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Len(t, rest, chunk-piece+len("end"))
		})
	}
}

// The proxy must send no requests to a server whose /readyz returns status 503. The test leaves out
// nginx, which does not request /readyz.
func TestProxy_sendsNoRequestsToServersThatAreNotReady(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, program := range []*proxyProgram{haproxy, caddy} {
		t.Run(program.name, func(t *testing.T) {
			t.Parallel()
			var ended atomic.Bool
			var late atomic.Int64 // number of requests that reached the server while it was not ready
			ready := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			ending := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !ended.Load():
				case r.URL.Path == "/readyz":
					// A ReelTally server also answers with status 503 while it shuts down.
					w.WriteHeader(http.StatusServiceUnavailable)
				default:
					late.Add(1)
				}
			}))
			p := startProxyForServers(t, program, ready, ending)
			ended.Store(true)
			// Wait until the proxy sends 20 requests in a row to the other server.
			await(t, waitTimeout, 50*time.Millisecond, func() string {
				before := late.Load()
				for range 20 {
					p.send(http.StatusOK, http.MethodGet, "/videos", "")
				}
				if late.Load() == before {
					return ""
				}
				return "the proxy still sends requests to a server that is not ready"
			})
		})
	}
}

// One of two servers accepts no connections, like a server that was killed. The proxy must send all
// requests to the other server.
func TestProxy_repeatsRequestsIfAServerCannotBeReached(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, program := range proxyPrograms {
		t.Run(program.name, func(t *testing.T) {
			t.Parallel()
			answer := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			killed := httptest.NewServer(answer)
			killed.Close()
			p := startProxyForServers(t, program, httptest.NewServer(answer), killed)
			for range 20 {
				p.send(http.StatusOK, http.MethodPost, "/videos", `{"link":"https://www.tiktok.com/@someone/video/1"}`)
			}
		})
	}
}
