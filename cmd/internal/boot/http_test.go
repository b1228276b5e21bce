package boot_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot"
)

// pipes is a listener in memory, so that a connection's deadlines follow the clock of a synctest bubble.
type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// servePipes serves a handler in memory until the test ends. It returns a function that opens a connection.
func servePipes(t *testing.T, handler http.Handler) (dial func() net.Conn) {
	t.Helper()
	l := &pipes{make(chan net.Conn), make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- boot.Serve(ctx, l, handler, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-served)
	})
	return func() net.Conn {
		ours, theirs := net.Pipe()
		l.connections <- theirs
		t.Cleanup(func() { _ = ours.Close() })
		return ours
	}
}

// trickle writes one byte a second until the connection is closed, and returns after how long that was.
func trickle(c net.Conn) time.Duration {
	began := time.Now()
	for {
		if _, err := c.Write([]byte("a")); err != nil {
			return time.Since(began)
		}
		<-time.After(time.Second) // on the fake clock of synctest
	}
}

func TestServe_endsSlowHeaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial := servePipes(t, http.NotFoundHandler())
		c := dial()
		_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ")
		require.NoError(t, err)
		require.LessOrEqual(t, trickle(c), 11*time.Second)
	})
}

func TestServe_endsSlowBodies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 1)
		dial := servePipes(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			failed <- err
		}))
		c := dial()
		_, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
		require.NoError(t, err)
		go func() { _, _ = io.Copy(io.Discard, c) }()
		require.LessOrEqual(t, trickle(c), 62*time.Second)
		require.Error(t, <-failed)
	})
}

func TestServe_refusesLargeHeaders(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"a header of a megabyte":     "GET / HTTP/1.1\r\nHost: a\r\nX-Large: " + strings.Repeat("a", 1<<20) + "\r\n\r\n",
		"50,000 headers":             "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-Many: a\r\n", 50_000) + "\r\n",
		"an address of a megabyte":   "GET /?q=" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"100,000 parameters":         "GET /?" + strings.Repeat("a=1&", 100_000) + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"a method of a megabyte":     strings.Repeat("A", 1<<20) + " / HTTP/1.1\r\nHost: a\r\n\r\n",
		"a header that never ends":   "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a", 1<<20),
		"a header folded many times": "GET / HTTP/1.1\r\nHost: a\r\nX-Large: a\r\n" + strings.Repeat(" a\r\n", 100_000) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dial := servePipes(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					t.Error("the request was handled")
				}))
				c := dial()
				sent := make(chan int, 1)
				go func() {
					n, _ := io.WriteString(c, head)
					sent <- n
				}()
				answer, err := http.ReadResponse(bufio.NewReader(c), nil)
				require.NoError(t, err)
				require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer.StatusCode)
				_, _ = io.Copy(io.Discard, answer.Body)
				require.NoError(t, answer.Body.Close())
				require.NoError(t, c.Close())
				require.Less(t, <-sent, 80<<10, fmt.Sprint("bytes that the server took of ", len(head)))
			})
		})
	}
}
