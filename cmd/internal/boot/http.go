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

// These constants limit HTTP connections. Without the timeouts, a client that sends or reads
// nothing could keep a connection open forever.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second // long enough to receive 2 MiB on a slow network
	writeTimeout      = 2 * time.Minute  // long enough to send 5000 videos on a slow network
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	// lastRequestTimeout is how long Serve still accepts requests on open connections after its context has ended.
	lastRequestTimeout = time.Second
	// shutdownTimeout is how long Serve waits for running requests before it closes their connections.
	shutdownTimeout = 20 * time.Second
)

// PortInUseError reports that another program already listens on Address. Variable is the name of the environment variable that sets the
// address.
type PortInUseError struct{ Variable, Address string }

func (e *PortInUseError) Error() string {
	return fmt.Sprintf("%s is in use by another program: choose another address with --%s or %s, for example 127.0.0.1:0 for any free port",
		e.Address, flagOf(e.Variable), e.Variable)
}

// Listen listens on a TCP address from a setting. Its errors name the setting's flag and environment
// variable. If the port is in use, the error is a *PortInUseError.
func Listen(ctx context.Context, variable, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &PortInUseError{variable, address}
	case err != nil:
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err
		}
		return nil, fmt.Errorf("cannot listen on %s (--%s or %s must be HOST:PORT): %w", address, flagOf(variable), variable, err)
	}
	return l, nil
}

// Serve serves HTTP requests until ctx ends. It then accepts no new connections, and waits up to 21
// seconds for running requests. Their contexts do not end with ctx.
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
	// s.Shutdown can close a connection on which a proxy has just sent its first request. This
	// request would fail, so Serve first waits until connections close.
	s.SetKeepAlivesEnabled(false) // each connection now closes after its next response
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
