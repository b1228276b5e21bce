package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// cost is the CPU time, wall-clock time and memory that the requests of a measurement take.
type cost struct {
	server   time.Duration // CPU time of the server
	database time.Duration // CPU time of all processes of PostgreSQL
	elapsed  time.Duration // time from the first sent byte until the last response
	memory   int64         // peak memory of the server minus its memory before the requests, in bytes
}

// meter measures the CPU time and memory of a process, usually a server, and the CPU time of the server's PostgreSQL.
type meter struct {
	pid        int    // process id of the measured process
	postmaster int    // process id of PostgreSQL's main process
	metrics    string // URL of the server's metrics
}

// startMeteredServer starts the server and returns a meter for its process. postmasterPID is the process id of PostgreSQL's main process.
func startMeteredServer(t *testing.T, s *stack, postmasterPID int) *meter {
	t.Helper()
	s.startServer(t)
	return &meter{s.server.cmd.Process.Pid, postmasterPID, loggedAddress(t, s.server, "serving metrics")}
}

// findPostmaster returns the process id of the main process of the PostgreSQL server to which db belongs.
func findPostmaster(t *testing.T, db *storetest.DB) int {
	t.Helper()
	lines := storetest.Column[string](t, db, "SELECT pg_read_file('postmaster.pid')")
	require.Len(t, lines, 1)
	first, _, _ := strings.Cut(lines[0], "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	return pid
}

// measure calls doWork and returns its cost. The cost includes work that the server and the database
// do after the client has disconnected.
func (m *meter) measure(t *testing.T, doWork func()) cost {
	t.Helper()
	m.awaitIdle(t)
	held := m.requireMemorySize(t, "VmRSS") - m.reusableMemory(t)
	require.NoError(t, os.WriteFile(m.procFile("clear_refs"), []byte("5"), 0)) // the text "5" resets VmHWM, the peak of the resident memory: see proc(5)
	server, database := m.serverTime(t), m.databaseTime(t)
	began := time.Now()
	doWork()
	c := cost{elapsed: time.Since(began)}
	m.awaitIdle(t)
	c.server, c.database = m.serverTime(t)-server, m.databaseTime(t)-database
	c.memory = max(0, m.requireMemorySize(t, "VmHWM")-held)
	return c
}

// awaitIdle waits until the server and the database have been idle for a tenth of a second.
func (m *meter) awaitIdle(t *testing.T) {
	t.Helper()
	const interval, idleChecks = 25 * time.Millisecond, 4
	server, database, quiet := m.serverTime(t), m.databaseTime(t), 0
	await(t, 5*time.Minute, interval, func() string {
		s, d := m.serverTime(t), m.databaseTime(t)
		// PostgreSQL also works in the background, so the database counts as idle if it has used at most one
		// clock tick of CPU time during all checks together.
		if quiet++; s != server || d-database > clockTick {
			server, database, quiet = s, d, 0
		}
		if quiet >= idleChecks {
			return ""
		}
		return "the server or the database is still busy"
	})
}

// procFile returns the path of a file in the folder of /proc that belongs to the measured process.
func (m *meter) procFile(name string) string {
	return filepath.Join("/proc", strconv.Itoa(m.pid), name)
}

// requireMemorySize returns the memory size with the given name, such as VmRSS, in bytes. It fails the test if the measured process has ended.
func (m *meter) requireMemorySize(t *testing.T, name string) int64 {
	t.Helper()
	size, err := m.memorySize(name)
	require.NoError(t, err)
	return size
}

// memorySize reads the memory size with the given name, such as VmRSS, from /proc/PID/status of the measured process. It returns the size in
// bytes, or an error if the process has ended.
func (m *meter) memorySize(name string) (int64, error) {
	text, err := os.ReadFile(m.procFile("status"))
	if err != nil {
		return 0, err
	}
	_, line, _ := strings.Cut(string(text), name+":")
	number, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	kilobytes, err := strconv.ParseInt(number, 10, 64)
	return kilobytes << 10, err
}

// reusableMemory returns the size of the server's unused resident heap in bytes. The meter counts this
// memory as free, because requests can use it again.
func (m *meter) reusableMemory(t *testing.T) int64 {
	t.Helper()
	a := requireResponse(t, http.MethodGet, m.metrics, "", nil)
	require.Equal(t, http.StatusOK, a.status)
	value := func(name string) int64 {
		_, line, found := strings.Cut(string(a.body), "\n"+name+" ")
		require.True(t, found, name)
		v, err := strconv.ParseFloat(strings.Fields(line)[0], 64)
		require.NoError(t, err)
		return int64(v)
	}
	return value("go_memstats_heap_idle_bytes") - value("go_memstats_heap_released_bytes")
}

// serverTime returns the CPU time that the server has used so far.
func (m *meter) serverTime(t *testing.T) time.Duration {
	t.Helper()
	used, err := cpuTime(m.pid, false)
	require.NoError(t, err)
	return used
}

// databaseTime returns the CPU time that PostgreSQL has used so far: the time of the main process and of its running and ended child
// processes.
func (m *meter) databaseTime(t *testing.T) time.Duration {
	t.Helper()
	total, err := cpuTime(m.postmaster, true)
	require.NoError(t, err)
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", m.postmaster))
	require.NoError(t, err)
	for child := range strings.FieldsSeq(string(children)) {
		pid, err := strconv.Atoi(child)
		require.NoError(t, err)
		if used, err := cpuTime(pid, false); err == nil { // skip processes that have ended: their time is already part of the time of the main process
			total += used
		}
	}
	return total
}

// clockTick is the unit of the times in /proc/PID/stat on Linux.
const clockTick = 10 * time.Millisecond

// cpuTime returns the CPU time that a process has used so far. If withChildren is true, the result includes the time of the
// ended child processes.
func cpuTime(pid int, withChildren bool) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field, the process name in brackets, may contain spaces. utime is the twelfth field after the name, followed by stime,
	// cutime and cstime.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))[11:15]
	if !withChildren {
		fields = fields[:2]
	}
	total := time.Duration(0)
	for _, f := range fields {
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(ticks) * clockTick
	}
	return total, nil
}

// printProgress writes a line to w immediately. Tests use it because go test shows the log of a test only when the test ends.
func printProgress(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
