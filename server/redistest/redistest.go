// Package redistest starts a redis-server process for a test. The test can kill, freeze and restart the process. Most tests call Start.
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

// Redis is a redis-server process for one test. It stores nothing on disk, so it is empty after a restart.
type Redis struct {
	// URL is the address of the redis-server. The address does not change when the redis-server is restarted.
	URL string
	// Client is connected to the redis-server. A test can read and change data with it.
	*redis.Client

	t       testing.TB
	folder  string
	process *exec.Cmd // nil while the redis-server does not run
	output  bytes.Buffer
}

// New returns a Redis whose redis-server is not started yet. The redis-server is killed when the test ends. In short mode, New skips the
// test.
func New(t testing.TB) *Redis {
	t.Helper()
	storetest.SkipIfShort(t)
	// The path of a Unix socket can have at most 107 bytes. t.TempDir is not used, because its path can be longer.
	folder, err := os.MkdirTemp("", "redis") //nolint:usetesting // the path of t.TempDir can be too long for a Unix socket
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

// Start returns a Redis whose redis-server is running. The test fails if the program redis-server is not installed.
func Start(t testing.TB) *Redis {
	t.Helper()
	r := New(t)
	r.Start()
	return r
}

// Start starts the redis-server and waits until it answers. The test fails if the redis-server does not answer within 20 seconds.
func (r *Redis) Start() {
	r.t.Helper()
	program, err := exec.LookPath("redis-server")
	require.NoError(r.t, err, "run the tests with `make test`, which installs redis-server, or install it (Debian: redis-server)")
	r.process = exec.Command(program, "--port", "0", "--unixsocket", filepath.Join(r.folder, "socket"), "--dir", r.folder, //nolint:gosec,noctx // no context, because the method Kill ends the process
		"--save", "", "--appendonly", "no", "--daemonize", "no")
	r.process.Stdout, r.process.Stderr = &r.output, &r.output
	require.NoError(r.t, r.process.Start())
	if !waitUntil(func() bool { return r.Ping(r.t.Context()).Err() == nil }) {
		r.Kill() // the process writes to r.output, so it must end before r.output is read
		require.Fail(r.t, "redis-server does not answer", r.output.String())
	}
}

// waitUntil waits until the function condition returns true. After 20 seconds, it returns false.
// Unlike require.Eventually, waitUntil lets the caller show the output of the redis-server.
func waitUntil(condition func() bool) bool {
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

// Kill kills the process of the redis-server, so that it cannot shut down cleanly. Kill does nothing if the redis-server does not run.
func (r *Redis) Kill() {
	if r.process == nil {
		return
	}
	_ = r.process.Process.Kill()
	_ = r.process.Wait() // the error is ignored, because it only says that the process was killed
	r.process = nil
}

// Freeze suspends the process of the redis-server. Clients can still connect, but get no answers until Thaw is called.
func (r *Redis) Freeze() { r.sendSignal(syscall.SIGSTOP) }

// Thaw resumes the process of the redis-server after Freeze suspended it.
func (r *Redis) Thaw() { r.sendSignal(syscall.SIGCONT) }

// sendSignal sends a signal to the process of the redis-server.
func (r *Redis) sendSignal(s syscall.Signal) {
	r.t.Helper()
	require.NoError(r.t, r.process.Process.Signal(s))
}
