package e2e_test

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// `make restarts` sets these flags.
var (
	restartsCount = flag.Int("restarts.count", 20, "number of times that one of two servers is restarted while callers send requests")
	restartsOut   = flag.String("restarts.out", "", "path of the page with the results of TestProxy_rollingRestartsLoseNoRequest; if it is empty, there is no page")
)

// shutdownDelay is the servers' REELTALLY_SHUTDOWN_DELAY. It is longer than keepalive_timeout in
// docs/nginx.conf, so that nginx closes its idle connections to a server before the server ends.
const shutdownDelay = 3 * time.Second

// openSocket opens a listening socket on a free port, as systemd does for socket units. The socket
// stays open while servers restart. The address is HOST:PORT.
func openSocket(t *testing.T) (file *os.File, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	file, err = l.(*net.TCPListener).File()
	require.NoError(t, err)
	require.NoError(t, l.Close()) // closing l does not close the file, which is a copy of the socket
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	return file, l.Addr().String()
}

// startServerWithSocket starts the program `server` in the given folder. The program gets an open listening socket, as it would get from systemd.
// startServerWithSocket returns when the server serves requests.
func (s *stack) startServerWithSocket(t *testing.T, folder string, socket *os.File) *process {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", `LISTEN_PID=$$ exec "$0"`, filepath.Join(folder, "server"))
	c.Dir = t.TempDir()
	c.ExtraFiles = []*os.File{socket}
	c.Env = append(slices.Clip(s.env), "LISTEN_FDS=1", "REELTALLY_LISTEN=127.0.0.1:1", "REELTALLY_RATE_LIMITS=off",
		"REELTALLY_SHUTDOWN_DELAY="+shutdownDelay.String())
	p := startCommand(t, c)
	p.stderr.Await(t, waitTimeout, `"msg":"serving"`)
	return p
}

// loadedPair has two servers behind nginx, and callers that read and track videos. The callers send each request only once.
type loadedPair struct {
	*stack
	nginx   *proxiedStack
	sockets [2]*os.File
	servers [2]*process
	tracked atomic.Int64 // number of tracked videos
	read    atomic.Int64 // number of lists that were read
	failed  atomic.Int64 // number of requests that did not succeed
	stop    chan struct{}
	callers sync.WaitGroup
}

// startLoadedPair starts two servers that share a new PostgreSQL database. It also starts nginx and the callers.
func startLoadedPair(t *testing.T) *loadedPair {
	t.Helper()
	s := &stack{sandboxProcess: &sandboxProcess{}, env: []string{"REELTALLY_DATABASE_URL=" + storetest.CreateDatabase(t, "postgres"), "REELTALLY_TRUSTED_PROXIES=127.0.0.1/32"}}
	s.token = s.newOrganisation(t)
	l := &loadedPair{stack: s, stop: make(chan struct{})}
	var addresses [2]string
	for i := range l.servers {
		l.sockets[i], addresses[i] = openSocket(t)
		l.servers[i] = s.startServerWithSocket(t, programs, l.sockets[i])
	}
	l.nginx = &proxiedStack{stack: s, t: t, direct: addresses[0]}
	l.nginx.startProxy(nginx, nginx.withSecondServer(t, addresses[1]))

	for caller := range 4 {
		l.callers.Go(func() { l.sendRequests(t, caller) })
	}
	return l
}

// sendRequests sends the requests of one caller until l.stop is closed. No two callers track the same link.
func (l *loadedPair) sendRequests(t *testing.T, caller int) {
	t.Helper()
	for n := 0; ; n++ {
		select {
		case <-l.stop:
			return
		case <-time.After(20 * time.Millisecond): // wait, so that other tests get CPU time
		}
		method, target, body, count := http.MethodGet, "/videos?limit=5", "", &l.read
		if n%2 == 0 {
			method, target, count = http.MethodPost, "/videos", &l.tracked
			body = fmt.Sprintf(`{"link":"https://www.tiktok.com/@someone/video/7%03d%015d"}`, caller, n)
		}
		a, err := l.nginx.sendToProxy(method, target, body)
		if err != nil || a.status != http.StatusOK {
			l.failed.Add(1)
			t.Logf("%s %s: %d %s %v", method, target, a.status, a.body, err)
			continue
		}
		count.Add(1)
	}
}

// answeredRequests returns the number of successful requests so far.
func (l *loadedPair) answeredRequests() int64 { return l.tracked.Load() + l.read.Load() }

// restartServer ends the server with the given index, and starts the program `server` in the given folder in its place.
func (l *loadedPair) restartServer(t *testing.T, folder string, index int) {
	t.Helper()
	before := l.answeredRequests()
	l.servers[index].stop(t, syscall.SIGTERM)
	l.servers[index] = l.startServerWithSocket(t, folder, l.sockets[index])
	require.Greater(t, l.answeredRequests(), before, "the servers must answer requests during the restart")
}

// requireNothingLost stops the callers. It requires that each request succeeded and that each tracked video is stored once.
func (l *loadedPair) requireNothingLost(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.callers.Wait()
	t.Logf("%d videos tracked, %d lists read", l.tracked.Load(), l.read.Load())
	require.Zero(t, l.failed.Load(), "failed requests")
	var list struct {
		Pagination struct{ Total int64 }
	}
	l.nginx.send(http.StatusOK, http.MethodGet, "/videos?limit=1", "").decode(t, &list)
	require.Equal(t, l.tracked.Load(), list.Pagination.Total, "each video whose tracking was acknowledged must be stored once")
}

// TestProxy_rollingRestartsLoseNoRequest restarts two servers behind nginx alternately, while callers read and track videos. Each request must succeed.
func TestProxy_rollingRestartsLoseNoRequest(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	l, start := startLoadedPair(t), time.Now()
	for n := range *restartsCount {
		l.restartServer(t, programs, n%len(l.servers))
	}
	duration := time.Since(start)
	l.requireNothingLost(t)
	if *restartsOut != "" {
		page := restartsPage(int(l.tracked.Load()), int(l.read.Load()), duration, storetest.Machine())
		require.NoError(t, os.WriteFile(*restartsOut, []byte(page), 0o600))
	}
}

// restartsPage returns the text of docs/evidence/rolling-restarts.md.
func restartsPage(tracked, read int, duration time.Duration, machine string) string {
	return fmt.Sprintf(`# Rolling restarts

`+
		"`make restarts` writes this page. Two servers with one PostgreSQL database run behind nginx with the configuration of `docs/nginx.conf`. "+
		`Four callers track videos and list videos without a break. Meanwhile, the servers are
stopped (SIGTERM) and started again in turn. The callers never send a request again. If a connection to a server breaks, nginx may send a GET request to the other server, but not a POST request.

| Restarts | Videos tracked | Lists read | Failed requests | Lost or doubled videos | Duration |
| --: | --: | --: | --: | --: | --: |
| %d | %s | %s | 0 | 0 | %s |

Each server waits %s (REELTALLY_SHUTDOWN_DELAY) after SIGTERM before it stops, so that nginx closes its idle connections. `+
		"The listening sockets stay open during the restarts, as with the socket units in `docs/systemd`.\n"+
		`
%s

`+
		"The command was `make restarts RESTARTS=%d`. `make check` runs the same test with 20 restarts. The test is in `cmd/e2e/restart_test.go`.\n", *restartsCount, formatThousands(tracked), formatThousands(read), duration.Round(time.Second), shutdownDelay, machine, *restartsCount)
}

// TestSystemd_unitsAreValid checks the systemd units in docs/systemd.
func TestSystemd_unitsAreValid(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	analyze, err := exec.LookPath("systemd-analyze")
	require.NoError(t, err, "this test needs systemd-analyze: apt-get install systemd")
	units, err := filepath.Glob(filepath.Join("..", "..", "docs", "systemd", "*"))
	require.NoError(t, err)
	require.Len(t, units, 3)
	dir, args := t.TempDir(), []string{"verify"}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		require.NoError(t, err)
		// systemd checks that the programs exist, so the units get the paths of the built programs.
		path := filepath.Join(dir, filepath.Base(unit))
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "/usr/local/bin", programs)), 0o600))
		args = append(args, path)
	}
	out, err := exec.CommandContext(t.Context(), analyze, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out), "systemd-analyze must print no warning")
}
