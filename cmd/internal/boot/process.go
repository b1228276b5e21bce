// Package boot is what the programs of ReelTally have in common around their work: they read their settings, log, open
// the database, serve, and stop in order.
package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Process is what a program gets from the system. Tests hand in their own.
type Process struct {
	Name           string // as its user calls it
	Args           []string
	Env            func(name string) (value string, set bool)
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// UsageError is a fault in how the program was called, not in what it did.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the fault.
func (e UsageError) Unwrap() error { return e.Err }

// ErrHelpShown ends a program that was only asked for its help.
var ErrHelpShown = errors.New("help was shown")

// Main runs a program until it is done or told to stop, and returns its exit status: 0 when it did its work, 1 when it
// failed or was stopped before it was done, 2 when it was called wrongly. SIGINT and SIGTERM end the context; a second one
// ends the process at once.
func Main(name string, run func(context.Context, Process) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return Status(ctx, Process{Name: name, Args: os.Args[1:], Env: os.LookupEnv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}, run)
}

// Status runs a program, writes its error for people, and returns its exit status.
func Status(ctx context.Context, p Process, run func(context.Context, Process) error) int {
	err := run(ctx, p)
	var usage UsageError
	switch {
	case err == nil, errors.Is(err, ErrHelpShown):
		return 0
	case stopped(ctx, err): // what called the program must not take its output for whole
		fmt.Fprintf(p.Stderr, "%s: stopped before it was done: what it has written is not whole\n", p.Name)
		return 1
	case errors.As(err, &usage):
		fmt.Fprintf(p.Stderr, "%s: %v\nRun \"%s --help\" for what there is.\n", p.Name, err, p.Name)
		return 2
	}
	fmt.Fprintf(p.Stderr, "%s: %v\n", p.Name, err)
	return 1
}

func stopped(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && ctx.Err() != nil
}

// UntilStopped is the error of a program that runs until it is told to stop: having been told so is none.
func UntilStopped(ctx context.Context, err error) error {
	if stopped(ctx, err) {
		return nil
	}
	return err
}
