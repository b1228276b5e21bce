// Package redistest starts a real Redis for a test, which the test can kill, freeze and restart. Start is the usual entry point.
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

// Redis is a redis-server without storage on disk. After a restart it is empty.
type Redis struct {
	// URL is the address of the server, also while it does not run.
	URL string
	// Client is connected to the server, for checks by the test.
	*redis.Client

	t      testing.TB
	folder string
	run    *exec.Cmd // nil while the server does not run
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

// Start returns a started Redis. The test fails if redis-server is not installed.
func Start(t testing.TB) *Redis {
	t.Helper()
	r := New(t)
	r.Start()
	return r
}

// Start starts the server and waits until it answers.
func (r *Redis) Start() {
	r.t.Helper()
	program, err := exec.LookPath("redis-server")
	require.NoError(r.t, err, "run the tests with `make test`, which installs redis-server, or install it (Debian: redis-server)")
	r.run = exec.Command(program, "--port", "0", "--unixsocket", filepath.Join(r.folder, "socket"), "--dir", r.folder, //nolint:gosec,noctx // killed by Kill
		"--save", "", "--appendonly", "no", "--daemonize", "no")
	r.run.Stdout, r.run.Stderr = &r.output, &r.output
	require.NoError(r.t, r.run.Start())
	if !eventually(func() bool { return r.Ping(r.t.Context()).Err() == nil }) {
		r.Kill() // also ends the writes to r.output
		require.Fail(r.t, "redis-server does not answer", r.output.String())
	}
}

// eventually waits until condition is true, for 20 seconds at most. require.Eventually would end the test before the output of the server is
// shown.
func eventually(condition func() bool) bool {
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

// Kill ends the server without a shutdown.
func (r *Redis) Kill() {
	if r.run == nil {
		return
	}
	_ = r.run.Process.Kill()
	_ = r.run.Wait() // the error only says that the process was killed
	r.run = nil
}

// Freeze suspends the server: connections stay open and new ones are accepted, but it does not answer. Thaw resumes it.
func (r *Redis) Freeze() { r.signal(syscall.SIGSTOP) }

// Thaw resumes the server after Freeze.
func (r *Redis) Thaw() { r.signal(syscall.SIGCONT) }

func (r *Redis) signal(s syscall.Signal) {
	r.t.Helper()
	require.NoError(r.t, r.run.Process.Signal(s))
}
