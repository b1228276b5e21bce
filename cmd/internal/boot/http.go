package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// These constants are the time limits of HTTP connections. They are long enough to receive 2 MiB, or to send a response with 5000 videos, on a
// slow network. A connection that reaches a limit is closed, so a client that sends or reads nothing cannot keep it open forever.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	writeTimeout      = 2 * time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	// lastRequestTimeout is how long Serve still accepts requests on open connections after its context has ended.
	lastRequestTimeout = time.Second
	// shutdownTimeout is how long Serve waits for running requests before it closes their connections.
	shutdownTimeout = 20 * time.Second
)

// PortInUseError reports that another program already listens on Address. Flag and Variable are the names of the flag and environment
// variable that set the address.
type PortInUseError struct{ Flag, Variable, Address string }

func (e *PortInUseError) Error() string {
	return fmt.Sprintf("%s is in use by another program: choose another address with --%s or %s, for example 127.0.0.1:0 for any free port",
		e.Address, e.Flag, e.Variable)
}

// Listen listens on a TCP address that comes from a setting. The errors of Listen name the flag and the environment variable of this setting. If the
// port is in use, the error is a *PortInUseError.
func Listen(ctx context.Context, flag, variable, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &PortInUseError{flag, variable, address}
	case err != nil:
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err
		}
		return nil, fmt.Errorf("cannot listen on %s (--%s or %s must be HOST:PORT): %w", address, flag, variable, err)
	}
	return l, nil
}

// Serve serves HTTP requests until ctx ends. It then accepts no new connections, answers requests that arrive on open connections, and
// waits up to 20 seconds until the running requests are finished. The contexts of the requests do not end when ctx ends.
func Serve(ctx context.Context, l net.Listener, handler http.Handler, logger *slog.Logger) error {
	var connections sync.WaitGroup // counts the open connections
	s := &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				connections.Add(1)
			case http.StateClosed, http.StateHijacked:
				connections.Done()
			}
		},
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	if err := l.Close(); err != nil {
		return errors.Join(err, s.Close())
	}
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		return errors.Join(err, s.Close())
	}
	// s.Shutdown can close a connection on which the server has not received a request yet. If a proxy has just sent its first request on such a
	// connection, this request would fail. So before Serve calls s.Shutdown, it waits until all connections are closed, for up to
	// lastRequestTimeout. Keep-alives are switched off for this time, so that each connection closes after its next answer.
	s.SetKeepAlivesEnabled(false)
	closed := make(chan struct{})
	go func() {
		connections.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(lastRequestTimeout):
	}
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := s.Shutdown(shutdownCtx); err != nil {
		logger.WarnContext(shutdownCtx, "running requests were cut off at shutdown", "after", shutdownTimeout, "error", err)
		return s.Close()
	}
	return nil
}

// URL returns the http URL of a listener. The listener can have an address that stands for all interfaces, such as 0.0.0.0. Then the URL
// has the host 127.0.0.1.
func URL(l net.Listener) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "http://" + l.Addr().String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
