package e2e_test

import (
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

const (
	// rollingRestarts is the number of restarts in the test. Each of them restarts one of two servers while callers send requests.
	rollingRestarts = 20
	// shutdownDelay is the setting REELTALLY_SHUTDOWN_DELAY of the servers. It is longer than keepalive_timeout in docs/nginx.conf, so that
	// nginx closes its idle connections to a server before the server ends, even on a busy machine.
	shutdownDelay = 3 * time.Second
)

// socket opens a listening socket on a free port, as systemd does for a unit of type socket. The socket stays open while the servers that
// use it end and start. socket returns the socket as a file, and its HOST:PORT.
func socket(t *testing.T) (file *os.File, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	file, err = l.(*net.TCPListener).File()
	require.NoError(t, err)
	require.NoError(t, l.Close()) // file is a copy of the socket and stays open
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	return file, l.Addr().String()
}

// startServerOn starts a server that gets an open listening socket, as from systemd, and waits until the server serves requests.
func (s *stack) startServerOn(t *testing.T, socket *os.File) *process {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", `LISTEN_PID=$$ exec "$0"`, filepath.Join(programs, "server"))
	c.Dir = t.TempDir()
	c.ExtraFiles = []*os.File{socket}
	c.Env = append(slices.Clip(s.env), "LISTEN_FDS=1", "REELTALLY_LISTEN=127.0.0.1:1", "REELTALLY_RATE_LIMITS=off",
		"REELTALLY_SHUTDOWN_DELAY="+shutdownDelay.String())
	p := runCommand(t, c)
	p.stderr.Await(t, waitTimeout, `"msg":"serving"`)
	return p
}

// The test restarts two servers behind nginx alternately, while callers read and track videos. The callers send each request only once, and
// each request must succeed.
func TestProxy_rollingRestartsLoseNoRequest(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	s := &stack{box: &box{}, env: []string{"REELTALLY_DATABASE_URL=" + storetest.NewURL(t, "postgres"), "REELTALLY_TRUSTED_PROXIES=127.0.0.1/32"}}
	s.token = s.newOrganisation(t)
	var sockets [2]*os.File
	var addresses [2]string
	var servers [2]*process
	for i := range servers {
		sockets[i], addresses[i] = socket(t)
		servers[i] = s.startServerOn(t, sockets[i])
	}
	conf, err := os.ReadFile(filepath.Join("..", "..", "docs", "nginx.conf"))
	require.NoError(t, err)
	p := &proxied{stack: s, t: t, direct: addresses[0]}
	second := "    # server 127.0.0.1:8081 max_fails=0;"
	require.Contains(t, string(conf), second)
	p.startNginx(strings.Replace(string(conf), second, "    server "+addresses[1]+" max_fails=0;", 1))

	var tracked, read, failed atomic.Int64
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for caller := range 4 {
		callers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond): // leaves time to the tests that run at the same time
				}
				method, target, body, count := http.MethodGet, "/videos?limit=5", "", &read
				if n%2 == 0 {
					method, target, count = http.MethodPost, "/videos", &tracked
					body = fmt.Sprintf(`{"link":"https://www.tiktok.com/@someone/video/7%03d%015d"}`, caller, n)
				}
				a, err := p.try(method, target, body)
				if err != nil || a.status != http.StatusOK {
					failed.Add(1)
					t.Logf("%s %s: %d %s %v", method, target, a.status, a.body, err)
					continue
				}
				count.Add(1)
			}
		})
	}
	for n := range rollingRestarts {
		i := n % len(servers)
		before := tracked.Load() + read.Load()
		servers[i].stop(t, syscall.SIGTERM)
		servers[i] = s.startServerOn(t, sockets[i])
		require.Greater(t, tracked.Load()+read.Load(), before, "requests were answered during the restart")
	}
	close(stop)
	callers.Wait()
	t.Logf("%d restarts, %d videos tracked, %d lists read", rollingRestarts, tracked.Load(), read.Load())
	require.Zero(t, failed.Load(), "failed requests")
	var list struct {
		Pagination struct{ Total int64 }
	}
	p.send(http.StatusOK, http.MethodGet, "/videos?limit=1", "").decode(t, &list)
	require.Equal(t, tracked.Load(), list.Pagination.Total, "every acknowledged video is stored once")
}

// The test checks the systemd units in docs/systemd. It replaces the paths of the programs in the units by those of the built programs,
// because systemd checks that the programs exist.
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
		path := filepath.Join(dir, filepath.Base(unit))
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "/usr/local/bin", programs)), 0o600))
		args = append(args, path)
	}
	out, err := exec.CommandContext(t.Context(), analyze, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out), "systemd-analyze warns of nothing")
}
