package boot_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot"
)

// pipeListener is an in-memory listener. Its connections use the fake time of synctest for their deadlines, so tests of timeouts need not
// wait.
type pipeListener struct {
	connections chan net.Conn
	closed      chan struct{}
	closing     sync.Once // a second call of Close must not close the channel again
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return nil
}

func (p *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// serveInMemory serves requests with a handler, without a network. The returned function dial opens a connection. The server runs until the test
// ends or calls the returned function stop.
func serveInMemory(t *testing.T, handler http.Handler) (dial func() net.Conn, stop func()) {
	t.Helper()
	l := &pipeListener{connections: make(chan net.Conn), closed: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- boot.Serve(ctx, l, handler, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-served)
	})
	dial = func() net.Conn {
		client, server := net.Pipe()
		l.connections <- server
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	return dial, stop
}

// writeSlowly writes one byte a second until the server closes the connection. It returns the time until the connection was closed.
func writeSlowly(c net.Conn) time.Duration {
	start := time.Now()
	for {
		if _, err := c.Write([]byte("a")); err != nil {
			return time.Since(start)
		}
		<-time.After(time.Second) // this wait takes no real time, because synctest has a fake clock
	}
}

// A proxy can open a connection just before the server begins to shut down, and send its first request just after that. The server must answer this
// request.
func TestServe_answersRequestsOnOpenConnectionsDuringShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial, stop := serveInMemory(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
		c := dial()
		synctest.Wait()
		stop()
		<-time.After(500 * time.Millisecond) // this wait takes no real time, because synctest has a fake clock
		_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusNoContent, response.StatusCode)
		require.True(t, response.Close, "the server must close the connection after the response")
		require.NoError(t, response.Body.Close())
	})
}

func TestServe_closesConnectionWithSlowHeaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial, _ := serveInMemory(t, http.NotFoundHandler())
		c := dial()
		_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ")
		require.NoError(t, err)
		require.LessOrEqual(t, writeSlowly(c), 11*time.Second)
	})
}

func TestServe_closesConnectionWithSlowBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 1)
		dial, _ := serveInMemory(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			failed <- err
		}))
		c := dial()
		_, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
		require.NoError(t, err)
		go func() { _, _ = io.Copy(io.Discard, c) }()
		require.LessOrEqual(t, writeSlowly(c), 62*time.Second)
		require.Error(t, <-failed)
	})
}

func TestServe_refusesRequestsWithTooLargeHeaders(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"a header of 1 MiB":          "GET / HTTP/1.1\r\nHost: a\r\nX-Large: " + strings.Repeat("a", 1<<20) + "\r\n\r\n",
		"50,000 headers":             "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-Many: a\r\n", 50_000) + "\r\n",
		"a URL of 1 MiB":             "GET /?q=" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"100,000 query parameters":   "GET /?" + strings.Repeat("a=1&", 100_000) + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"an HTTP method of 1 MiB":    strings.Repeat("A", 1<<20) + " / HTTP/1.1\r\nHost: a\r\n\r\n",
		"a header without an end":    "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a", 1<<20),
		"a header folded many times": "GET / HTTP/1.1\r\nHost: a\r\nX-Large: a\r\n" + strings.Repeat(" a\r\n", 100_000) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dial, _ := serveInMemory(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					t.Error("the server must not handle a request whose headers are too large")
				}))
				c := dial()
				sent := make(chan int, 1)
				go func() {
					n, _ := io.WriteString(c, head)
					sent <- n
				}()
				response, err := http.ReadResponse(bufio.NewReader(c), nil)
				require.NoError(t, err)
				require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
				_, _ = io.Copy(io.Discard, response.Body)
				require.NoError(t, response.Body.Close())
				require.NoError(t, c.Close())
				require.Less(t, <-sent, 80<<10, "the server must stop reading before the end of the headers, which have %d bytes", len(head))
			})
		})
	}
}
