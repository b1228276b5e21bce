package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"
)

// The limits on connections. Reading and writing leave time for 2 MiB and for a list of 5000 videos on a slow line,
// while nobody can hold a connection for nothing.
const (
	headerWithin   = 10 * time.Second
	requestWithin  = 60 * time.Second
	answerWithin   = 2 * time.Minute
	idleFor        = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	// drainFor is how long requests that are being answered may take once the program is told to stop.
	drainFor = 20 * time.Second
)

// PortInUseError says that somebody listens at the address already.
type PortInUseError struct{ Flag, Variable, Address string }

func (e *PortInUseError) Error() string {
	return fmt.Sprintf("%s is in use by another program: choose another address by --%s or %s, for example 127.0.0.1:0 for any free port",
		e.Address, e.Flag, e.Variable)
}

// Listen opens the address that a flag gives. The error names the flag, or is a *PortInUseError.
func Listen(ctx context.Context, flag, variable, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &PortInUseError{flag, variable, address}
	case err != nil:
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err
		}
		return nil, fmt.Errorf("cannot listen at %s (--%s, %s; HOST:PORT is wanted): %w", address, flag, variable, err)
	}
	return l, nil
}

// Serve answers requests until ctx ends, then takes no new ones and waits for those under way, for 20 seconds at the
// most. Requests do not see ctx end.
func Serve(ctx context.Context, l net.Listener, handler http.Handler, logger *slog.Logger) error {
	s := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerWithin, ReadTimeout: requestWithin, WriteTimeout: answerWithin,
		IdleTimeout: idleFor, MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	if err := s.Shutdown(drain); err != nil {
		logger.WarnContext(drain, "requests cut off", "after", drainFor, "error", err)
		return s.Close()
	}
	return nil
}

// URL returns where people reach a listener: a wildcard address is reached on this machine.
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
