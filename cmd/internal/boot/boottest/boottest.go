// Package boottest runs programs in tests: in the test's own process, or as a process of their own.
package boottest

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot"
)

// Output collects what a program writes and lets a test wait for a line of it.
type Output struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
	ended   bool
}

// NewOutput returns an empty output.
func NewOutput() *Output { return &Output{changed: make(chan struct{})} }

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wake()
	return o.text.Write(p)
}

// End says that nothing more will come, so that nobody waits for it.
func (o *Output) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.wake()
}

func (o *Output) wake() {
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Await returns the first whole line that holds all the parts, once it is there. It fails the test when the output ends
// or the time is up without it.
func (o *Output) Await(t testing.TB, within time.Duration, parts ...string) string {
	t.Helper()
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	for {
		o.mu.Lock()
		text, changed, ended := o.text.String(), o.changed, o.ended
		o.mu.Unlock()
		for line := range strings.Lines(text) {
			if strings.HasSuffix(line, "\n") && holdsAll(line, parts) {
				return strings.TrimSuffix(line, "\n")
			}
		}
		require.False(t, ended, "the program ended without a line with %q:\n%s", parts, text)
		select {
		case <-changed:
		case <-timeout.C:
			require.Fail(t, "no such line in time", "waited %s for a line with %q:\n%s", within, parts, text)
		}
	}
}

func holdsAll(line string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(line, p) {
			return false
		}
	}
	return true
}

// Program is a program in this process.
type Program struct {
	Stdout, Stderr *Output
	stop           context.CancelFunc
	done           chan struct{}
	status         int
}

// Start runs a program with the arguments and nothing but env as its environment. It is stopped when the test ends.
func Start(t testing.TB, run func(context.Context, boot.Process) error, stdin io.Reader, env map[string]string, args ...string) *Program {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p := &Program{Stdout: NewOutput(), Stderr: NewOutput(), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.status = boot.Status(ctx, boot.Process{Name: "program", Args: args, Stdin: stdin, Stdout: p.Stdout, Stderr: p.Stderr,
			Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, run)
		p.Stdout.End()
		p.Stderr.End()
	}()
	t.Cleanup(func() { p.Stop() })
	return p
}

// Stop tells the program to stop and returns its exit status.
func (p *Program) Stop() int {
	p.stop()
	<-p.done
	return p.status
}

// Wait returns the program's exit status once it has ended by itself.
func (p *Program) Wait() int {
	<-p.done
	return p.status
}

// Run runs a program to its end.
func Run(t testing.TB, run func(context.Context, boot.Process) error, stdin io.Reader, env map[string]string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	p := Start(t, run, stdin, env, args...)
	status = p.Wait()
	return status, p.Stdout.String(), p.Stderr.String()
}
