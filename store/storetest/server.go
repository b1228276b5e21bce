package storetest

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Server is a PostgreSQL server for a single test. The test can crash and freeze the server.
type Server struct {
	script *exec.Cmd
	url    string
}

// NewServer starts a PostgreSQL server and stops it when the test ends.
func NewServer(t testing.TB) *Server {
	t.Helper()
	s, _ := startServers(t)
	return s
}

// startServers starts the script with-postgres with options. It returns the server, and its replica if options contains --replica.
func startServers(t testing.TB, options ...string) (primary, replica *Server) {
	t.Helper()
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	for !isFile(filepath.Join(root, "go.mod")) {
		require.NotEqual(t, root, filepath.Dir(root), "no go.mod was found in a parent folder: run the tests inside of the module")
		root = filepath.Dir(root)
	}
	// The script stops the server when its standard input is closed.
	script := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(root, ".ci/postgres/with-postgres"), append(options, "sh", "-c", `echo "$`+PostgresURL+`"; echo "$`+ReplicaURL+`"; exec cat`)...) //nolint:gosec // a script of this repository
	script.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, PostgresURL+"=") })
	script.Stderr = os.Stderr
	in, err := script.StdinPipe()
	require.NoError(t, err)
	out, err := script.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, script.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, script.Wait())
	})
	var urls [2]string
	lines := bufio.NewReader(out)
	for i := range urls {
		urls[i], err = lines.ReadString('\n')
		require.NoError(t, err)
	}
	return &Server{script, strings.TrimSpace(urls[0])}, &Server{script, strings.TrimSpace(urls[1])}
}

// Database returns the URL of the database with the given name on the server.
func (s *Server) Database(name string) string { return withDatabaseName(s.url, name) }

// isFile returns true if path is a regular file.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// New creates a database with the current schema on the server, and returns it.
func (s *Server) New(t testing.TB, name string) *DB {
	t.Helper()
	admin, err := sql.Open("pgx", s.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close()) }()
	// Commits must survive a crash. So switch on synchronous commits, which are switched off on the servers of the tests.
	for _, statement := range []string{"CREATE DATABASE " + name, "ALTER DATABASE " + name + " SET synchronous_commit = on"} {
		_, err = admin.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, applyMigrations(withDatabaseName(s.url, name)))
	return newDB(t, withDatabaseName(s.url, name), "postgres")
}

// Crash kills the server without a shutdown, restarts it on the same data, and returns when the server answers.
func (s *Server) Crash(t testing.TB) {
	t.Helper()
	admin, err := sql.Open("pgx", s.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close()) }()
	started := func() string {
		var at string
		if err := admin.QueryRowContext(t.Context(), "SELECT pg_postmaster_start_time()::text").Scan(&at); err != nil {
			return ""
		}
		return at
	}
	before := started()
	require.NotEmpty(t, before)
	require.NoError(t, s.script.Process.Signal(syscall.SIGUSR1))
	require.Eventually(t, func() bool { now := started(); return now != "" && now != before }, 5*time.Minute, 20*time.Millisecond, "the server does not answer after the restart")
}

// Freeze pauses all processes of the server: connections stay open, but get no answer. The returned
// function resumes the processes, and also runs when the test ends.
func (s *Server) Freeze(t testing.TB) (thaw func()) {
	t.Helper()
	main := s.mainProcess(t)
	require.NoError(t, syscall.Kill(main, syscall.SIGSTOP)) // pause the main process first, so that it starts no more processes
	stopped := []int{main}
	thaw = func() {
		for _, pid := range stopped {
			_ = syscall.Kill(pid, syscall.SIGCONT) // the error is ignored, because a process may have ended
		}
	}
	t.Cleanup(thaw)
	for pid, parent := range parentProcesses(t) {
		if parent == main {
			stopped = append(stopped, pid)
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
	}
	return thaw
}

// Stop ends the server immediately, as a crash does. It must not be called for a primary.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	require.NoError(t, syscall.Kill(s.mainProcess(t), syscall.SIGQUIT))
}

// mainProcess returns the process id of the server's main process.
func (s *Server) mainProcess(t testing.TB) int {
	t.Helper()
	admin, err := sql.Open("pgx", s.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close()) }()
	var serving int
	require.NoError(t, admin.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&serving))
	return parentProcesses(t)[serving]
}

// parentProcesses returns the parent process id of each process of this machine.
func parentProcesses(t testing.TB) map[int]int {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=,ppid=").Output()
	require.NoError(t, err)
	parents := map[int]int{}
	for line := range strings.Lines(string(list)) {
		var pid, parent int
		_, err := fmt.Sscan(line, &pid, &parent)
		require.NoError(t, err)
		parents[pid] = parent
	}
	return parents
}
