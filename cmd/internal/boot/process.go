package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback" // root certificates for systems that have none, such as the container image
)

// Process has everything that a program gets from the operating system: arguments, environment and standard streams. Tests set other values.
type Process struct {
	Name           string // the program's name in help and errors
	Args           []string
	Env            func(name string) (value string, set bool)
	Environ        []string // all environment variables, of the form NAME=VALUE
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// UsageError reports that a program was called with wrong arguments or settings.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e UsageError) Unwrap() error { return e.Err }

// ErrHelpShown is the error that Parse returns if the user asked for the help or the version, and Parse has printed it.
var ErrHelpShown = errors.New("help was shown")

// Go collects garbage when the heap has grown by gcPercent percent, or when the process uses
// memoryLimit bytes.
const (
	// With Go's default of 100 percent, the server would collect garbage every few requests, because
	// its heap is small.
	gcPercent   = 250
	memoryLimit = 512 << 20
)

// reduceGarbageCollection makes Go collect garbage less often. It sets gcPercent and memoryLimit, except if the environment sets other
// values.
func reduceGarbageCollection() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}

// Main calls Run for this process and returns the exit status. The first SIGINT or SIGTERM cancels
// the context. The second signal ends the process immediately.
func Main(name string, run func(context.Context, Process) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	reduceGarbageCollection()
	return Run(ctx, Process{Name: name, Args: os.Args[1:], Env: os.LookupEnv, Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}, run)
}

// Run runs a program, prints its error to standard error and returns its exit status. The status is 0 for success, 1 for a failure or an interrupted
// command, and 2 for wrong usage.
func Run(ctx context.Context, p Process, run func(context.Context, Process) error) int {
	err := run(ctx, p)
	var usage UsageError
	switch {
	case err == nil, errors.Is(err, ErrHelpShown):
		return 0
	case isShutdown(ctx, err): // return 1, so that scripts do not use the incomplete output
		fmt.Fprintf(p.Stderr, "%s: interrupted before it finished; the output is incomplete\n", p.Name)
		return 1
	case errors.As(err, &usage):
		fmt.Fprintf(p.Stderr, "%s: %v\nRun \"%s --help\" for usage.\n", p.Name, err, p.Name)
		return 2
	}
	fmt.Fprintf(p.Stderr, "%s: %v\n", p.Name, err)
	return 1
}

// isShutdown returns true if err is only a consequence of the cancellation of ctx.
func isShutdown(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && ctx.Err() != nil
}

// IgnoreShutdown returns nil if err is only a consequence of the cancellation of ctx, and err
// otherwise. For a long-running program, a shutdown is not a failure.
func IgnoreShutdown(ctx context.Context, err error) error {
	if isShutdown(ctx, err) {
		return nil
	}
	return err
}
