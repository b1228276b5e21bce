// Package boottest runs programs of this module inside the process of a test. Run runs a program to its end. Start runs a program in the
// background.
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

// Output collects what a program writes to standard output or standard error. A test can wait for a line with Await.
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
	o.notify()
	return o.text.Write(p)
}

// End tells Output that the program has ended. From then on, Await fails immediately if the expected line is missing.
func (o *Output) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.notify()
}

// notify wakes up the goroutines that wait in Await. The caller must have locked mu.
func (o *Output) notify() {
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Await waits for the first complete line that contains all substrings. If the program ends or the
// timeout expires without this line, Await fails the test.
func (o *Output) Await(t testing.TB, timeout time.Duration, substrings ...string) string {
	t.Helper()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		o.mu.Lock()
		text, changed, ended := o.text.String(), o.changed, o.ended
		o.mu.Unlock()
		for line := range strings.Lines(text) {
			if strings.HasSuffix(line, "\n") && containsAll(line, substrings) {
				return strings.TrimSuffix(line, "\n")
			}
		}
		require.False(t, ended, "the program ended without a line with %q:\n%s", substrings, text)
		select {
		case <-changed:
		case <-timer.C:
			require.Fail(t, "timed out waiting for a line", "waited %s for a line with %q:\n%s", timeout, substrings, text)
		}
	}
}

// containsAll returns true if line contains each of the substrings.
func containsAll(line string, substrings []string) bool {
	for _, s := range substrings {
		if !strings.Contains(line, s) {
			return false
		}
	}
	return true
}

// Program is a program of this module that Start runs in the background.
type Program struct {
	Stdout, Stderr *Output
	stop           context.CancelFunc
	done           chan struct{}
	status         int
}

// Start runs a program in the background. The program sees only the environment variables in env. When the test ends, the program is
// stopped.
func Start(t testing.TB, run func(context.Context, boot.Process) error, stdin io.Reader, env map[string]string, args ...string) *Program {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p := &Program{Stdout: NewOutput(), Stderr: NewOutput(), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.status = boot.Run(ctx, boot.Process{Name: "program", Args: args, Stdin: stdin, Stdout: p.Stdout, Stderr: p.Stderr,
			Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, run)
		p.Stdout.End()
		p.Stderr.End()
	}()
	t.Cleanup(func() { p.Stop() })
	return p
}

// Stop cancels the program's context, waits for the program to end and returns its exit status.
func (p *Program) Stop() int {
	p.stop()
	<-p.done
	return p.status
}

// Wait waits for the program to end and returns its exit status.
func (p *Program) Wait() int {
	<-p.done
	return p.status
}

// Run runs a program until it ends, and returns its exit status and output. The program sees only the environment variables in env.
func Run(t testing.TB, run func(context.Context, boot.Process) error, stdin io.Reader, env map[string]string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	p := Start(t, run, stdin, env, args...)
	status = p.Wait()
	return status, p.Stdout.String(), p.Stderr.String()
}
