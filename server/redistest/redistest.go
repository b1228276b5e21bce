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
	// URL is the address of the server. It does not change when the server is restarted.
	URL string
	// Client is a client of the server, with which the test can read and change data.
	*redis.Client

	t       testing.TB
	folder  string
	process *exec.Cmd // nil while the server does not run
	output  bytes.Buffer
}

// New returns a Redis whose server is not started yet. The server is killed when the test ends. In short mode, New skips the test.
func New(t testing.TB) *Redis {
	t.Helper()
	storetest.SkipIfShort(t)
	// The path of a Unix socket can have 107 bytes at most. The path of t.TempDir can be longer.
	folder, err := os.MkdirTemp("", "redis") //nolint:usetesting // the path of t.TempDir is too long
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

// Start returns a Redis whose server is running. The test fails if redis-server is not installed.
func Start(t testing.TB) *Redis {
	t.Helper()
	r := New(t)
	r.Start()
	return r
}

// Start starts the server and waits until it answers. The test fails if the server does not answer within 20 seconds.
func (r *Redis) Start() {
	r.t.Helper()
	program, err := exec.LookPath("redis-server")
	require.NoError(r.t, err, "run the tests with `make test`, which installs redis-server, or install it (Debian: redis-server)")
	r.process = exec.Command(program, "--port", "0", "--unixsocket", filepath.Join(r.folder, "socket"), "--dir", r.folder, //nolint:gosec,noctx // killed by Kill
		"--save", "", "--appendonly", "no", "--daemonize", "no")
	r.process.Stdout, r.process.Stderr = &r.output, &r.output
	require.NoError(r.t, r.process.Start())
	if !waitUntil(func() bool { return r.Ping(r.t.Context()).Err() == nil }) {
		r.Kill() // so that nothing writes to r.output while it is read
		require.Fail(r.t, "redis-server does not answer", r.output.String())
	}
}

// waitUntil calls condition until it returns true. It returns false if that takes more than 20 seconds. require.Eventually is not used,
// because it would end the test before the output of the server is shown.
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

// Kill kills the server process, so that the server cannot shut down cleanly. Kill does nothing if the server does not run.
func (r *Redis) Kill() {
	if r.process == nil {
		return
	}
	_ = r.process.Process.Kill()
	_ = r.process.Wait() // the error only says that the process was killed
	r.process = nil
}

// Freeze suspends the server process. Connections stay open and new ones are accepted, but the server does not answer until Thaw is called.
func (r *Redis) Freeze() { r.signal(syscall.SIGSTOP) }

// Thaw resumes the server process after Freeze.
func (r *Redis) Thaw() { r.signal(syscall.SIGCONT) }

func (r *Redis) signal(s syscall.Signal) {
	r.t.Helper()
	require.NoError(r.t, r.process.Process.Signal(s))
}
