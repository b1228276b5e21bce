// Package redistest gives tests a real Redis of their own, which they may kill, freeze, and start again.
package redistest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// Redis is a redis-server that keeps nothing on disk: killed and started again, it is empty.
type Redis struct {
	// URL is where it is, whether it runs or not.
	URL string
	// Client asks it. It is not what is tested.
	*redis.Client

	t      testing.TB
	folder string
	run    *exec.Cmd // nil while it does not run
	output bytes.Buffer
}

// New returns a Redis that does not run yet. It is killed when the test ends. In short mode New skips the test.
func New(t testing.TB) *Redis {
	t.Helper()
	storetest.SkipIfShort(t)
	// A socket's path may have 107 characters, fewer than t.TempDir may take.
	folder, err := os.MkdirTemp("", "redis") //nolint:usetesting // see above
	require.NoError(t, err)
	r := &Redis{URL: "unix://" + filepath.Join(folder, "socket"), t: t, folder: folder}
	o, err := redis.ParseURL(r.URL)
	require.NoError(t, err)
	r.Client = redis.NewClient(o)
	t.Cleanup(func() {
		r.Kill()
		require.NoError(t, r.Client.Close())
		require.NoError(t, os.RemoveAll(folder))
	})
	return r
}

// Start returns a Redis that answers. A missing redis-server fails the test.
func Start(t testing.TB) *Redis {
	t.Helper()
	r := New(t)
	r.Start()
	return r
}

// Start starts it and waits until it answers.
func (r *Redis) Start() {
	r.t.Helper()
	program, err := exec.LookPath("redis-server")
	require.NoError(r.t, err, "run the tests by `make test`, which sets redis-server up, or install it (Debian: redis-server)")
	r.run = exec.Command(program, "--port", "0", "--unixsocket", filepath.Join(r.folder, "socket"), "--dir", r.folder, //nolint:gosec,noctx // killed by Kill
		"--save", "", "--appendonly", "no", "--daemonize", "no")
	r.run.Stdout, r.run.Stderr = &r.output, &r.output
	require.NoError(r.t, r.run.Start())
	if !isTrue(func() bool { return r.Ping(r.t.Context()).Err() == nil }) {
		r.Kill() // and thereby ends the writing of its output
		require.Fail(r.t, "redis-server does not answer", r.output.String())
	}
}

// isTrue waits until something is. require.Eventually would end the test before what the server said is shown.
func isTrue(condition func() bool) bool {
	deadline, ticks := time.NewTimer(20*time.Second), time.NewTicker(5*time.Millisecond)
	defer deadline.Stop()
	defer ticks.Stop()
	for !condition() {
		select {
		case <-deadline.C:
			return false
		case <-ticks.C:
		}
	}
	return true
}

// Kill ends it as a power cut would.
func (r *Redis) Kill() {
	if r.run == nil {
		return
	}
	_ = r.run.Process.Kill()
	_ = r.run.Wait() // it was killed, and says so
	r.run = nil
}

// Freeze stops it from answering, while connections to it stay and new ones are taken. Thaw lets it go on.
func (r *Redis) Freeze() { r.signal(syscall.SIGSTOP) }

// Thaw lets it go on.
func (r *Redis) Thaw() { r.signal(syscall.SIGCONT) }

func (r *Redis) signal(s syscall.Signal) {
	r.t.Helper()
	require.NoError(r.t, r.run.Process.Signal(s))
}
