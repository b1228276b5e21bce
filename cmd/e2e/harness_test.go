package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/cmd/internal/seed"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// programs is the path of the folder with the programs that buildAndRun built: server, collector and reeltally.
var programs string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

// buildAndRun builds the programs, runs the tests and returns the exit status.
func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "reeltally-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c := exec.Command("go", "build", "-o", dir+"/", "../server", "../collector", "../reeltally")
	if out, err := c.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	programs = dir
	return m.Run()
}

const (
	// waitTimeout is the maximum time for which a test waits until a program prints or logs an expected line, or ends.
	waitTimeout = 2 * time.Minute
	// fetchTimeout is the maximum time for which a test waits until a tracked video has its first numbers.
	fetchTimeout = time.Minute
)

// process is a program that a test has started.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *boottest.Output
	done           chan struct{}
	err            error
}

// startProgram starts the built program with the given name: server, collector or reeltally.
func startProgram(t *testing.T, name string, env []string, args ...string) *process {
	t.Helper()
	return startInNewFolder(t, filepath.Join(programs, name), env, args...)
}

// startInNewFolder starts a program in a new folder. The environment of the program has only the variables in env, PATH and HOME. The program is
// killed when the test ends.
func startInNewFolder(t *testing.T, path string, env []string, args ...string) *process {
	t.Helper()
	return startInFolder(t, t.TempDir(), path, env, args...)
}

// startInFolder starts a program like startInNewFolder, but in an existing folder, which is also HOME.
func startInFolder(t *testing.T, dir, path string, env []string, args ...string) *process {
	t.Helper()
	c := exec.CommandContext(t.Context(), path, args...)
	c.Dir = dir
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, env...)
	return startCommand(t, c)
}

// startCommand starts a command. The program is killed when the test ends.
func startCommand(t *testing.T, c *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: c, stdout: boottest.NewOutput(), stderr: boottest.NewOutput(), done: make(chan struct{})}
	c.Stdout, c.Stderr = p.stdout, p.stderr
	require.NoError(t, c.Start())
	go func() {
		p.err = p.cmd.Wait()
		p.stdout.End()
		p.stderr.End()
		close(p.done)
	}()
	t.Cleanup(p.kill)
	return p
}

// kill sends SIGKILL to the process and waits until the process has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop sends a signal to the process and requires that the process ends with status 0.
func (p *process) stop(t *testing.T, signal syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(signal))
	select {
	case <-p.done:
	case <-time.After(waitTimeout):
		require.Fail(t, "the process did not stop in time", p.stderr.String())
	}
	require.NoError(t, p.err, p.stderr.String())
}

// runOperator runs the reeltally command to its end and returns its standard output.
func runOperator(t *testing.T, env []string, args ...string) string {
	t.Helper()
	p := startProgram(t, "reeltally", env, args...)
	<-p.done
	require.NoError(t, p.err, p.stderr.String())
	return p.stdout.String()
}

// sandboxProcess is a running `reeltally sandbox`: a server with made-up data that imitates the interfaces of all platforms.
type sandboxProcess struct {
	*process
	env     []string       // settings that make the sandbox the source of every platform
	control string         // base URL of the control interface
	world   *sandbox.World // the made-up data that the sandbox returns; tests compare it with stored numbers
}

// startSandbox starts `reeltally sandbox` and waits until it has printed its settings, which become sandboxProcess.env.
func startSandbox(t *testing.T) *sandboxProcess {
	t.Helper()
	b := &sandboxProcess{process: startProgram(t, "reeltally", nil, "sandbox", "--listen", "127.0.0.1:0"), world: sandbox.New(sandbox.Options{}).World()}
	base := b.stdout.Await(t, waitTimeout, "REELTALLY_SHORTLINK_BASE_URL=")
	b.control = strings.TrimSuffix(strings.TrimPrefix(base, "REELTALLY_SHORTLINK_BASE_URL="), "shortlinks") + "_control/"
	b.env = strings.Fields(b.stdout.String())
	return b
}

// setFault sets the fault with which the sandbox answers the calls of a source until clearFaults is called. retryAfter is
// the header Retry-After or, for the fault "slow", the delay, in seconds.
func (b *sandboxProcess) setFault(t *testing.T, source, fault string, retryAfter int) {
	t.Helper()
	body := map[string]any{"source": source, "fault": fault}
	// If retryAfter is 0, the responses have no Retry-After header.
	if retryAfter > 0 {
		body["retry_after"] = retryAfter
	}
	require.Equal(t, http.StatusOK, requireResponse(t, http.MethodPut, b.control+"faults", "", body).status)
}

// clearFaults makes the sandbox answer all calls normally again.
func (b *sandboxProcess) clearFaults(t *testing.T) {
	t.Helper()
	require.Equal(t, http.StatusNoContent, requireResponse(t, http.MethodDelete, b.control+"faults", "", nil).status)
}

// receivedBatches returns one list for each call that a source of the sandbox has received. The list has the ids of the targets (videos or
// accounts) in the call.
func (b *sandboxProcess) receivedBatches(t *testing.T, source string) [][]string {
	t.Helper()
	var calls map[string]struct {
		Batches [][]string
		Dropped int `json:"batches_dropped"`
	}
	requireResponse(t, http.MethodGet, b.control+"calls", "", nil).decode(t, &calls)
	require.Zero(t, calls[source].Dropped, "the sandbox must have recorded all calls")
	return calls[source].Batches
}

// video is a video of the sandbox, with its parsed link and its URL.
type video struct {
	link.Link
	url string
}

// publicVideos returns n different public videos of a platform. It chooses them at random: another seed almost certainly gives other videos.
func (b *sandboxProcess) publicVideos(t *testing.T, p link.Platform, n int, randomSeed uint64) []video {
	t.Helper()
	random := rand.New(rand.NewPCG(randomSeed, uint64(n)))
	found := make([]video, 0, n)
	seen := map[string]bool{}
	for len(found) < n {
		v, ok := seed.AnyVideo(b.world, p, random, time.Now())
		require.True(t, ok)
		if v.State != sandbox.Public || v.Category != sandbox.Normal || seen[v.ID] {
			continue
		}
		seen[v.ID] = true
		l, err := link.Parse(v.Link)
		require.NoError(t, err)
		found = append(found, video{l, v.Link})
	}
	return found
}

func videoLinks(videos []video) []string {
	out := make([]string, len(videos))
	for i, v := range videos {
		out[i] = v.url
	}
	return out
}

// stack is a complete system under test: a server with its database, sandbox and collector, and an organisation with a token.
type stack struct {
	*sandboxProcess
	env               []string
	server, collector *process
	base, token       string
}

// startStack starts server and collector with a new database. The sandbox is the source of every
// platform. The settings in omittedSettings are left out.
func startStack(t *testing.T, engine string, omittedSettings ...string) *stack {
	t.Helper()
	s := &stack{sandboxProcess: startSandbox(t)}
	s.env = append(slices.DeleteFunc(slices.Clone(s.sandboxProcess.env), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return slices.Contains(omittedSettings, name)
	}), "REELTALLY_DATABASE_URL="+storetest.CreateDatabase(t, engine), "REELTALLY_LISTEN=127.0.0.1:0")
	s.token = s.newOrganisation(t)
	s.startServer(t)
	s.startCollector(t)
	return s
}

// newOrganisation creates an organisation with the operator's commands and returns a token of the organisation.
func (s *stack) newOrganisation(t *testing.T) string {
	t.Helper()
	var made struct {
		Organisation string `json:"organisation_id"`
		Token        string `json:"token"`
	}
	require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "org", "create", "--name", "Tester", "--json")), &made))
	require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "token", "create", "--org", made.Organisation, "--name", "Test", "--json")), &made))
	return made.Token
}

// startServer starts the server and waits until it serves requests.
func (s *stack) startServer(t *testing.T) {
	t.Helper()
	s.server = startProgram(t, "server", s.env)
	s.base = loggedAddress(t, s.server, "serving")
}

// loggedAddress waits until a program logs a message and returns the value of the attribute "address" of the message.
func loggedAddress(t *testing.T, p *process, message string) string {
	t.Helper()
	var line struct{ Address string }
	require.NoError(t, json.Unmarshal([]byte(p.stderr.Await(t, waitTimeout, `"msg":"`+message+`"`)), &line))
	return line.Address
}

// startCollector starts a collector with log level debug and waits until it collects.
func (s *stack) startCollector(t *testing.T) *process {
	t.Helper()
	s.collector = startProgram(t, "collector", append(slices.Clone(s.env), "REELTALLY_LOG_LEVEL=debug"))
	s.collector.stderr.Await(t, waitTimeout, `"msg":"the collector has started"`)
	return s.collector
}

// response is an HTTP response with its complete body.
type response struct {
	status int
	header http.Header
	body   []byte
}

func (a response) decode(t *testing.T, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(a.body, v), string(a.body))
}

// requireResponse sends an HTTP request with body as JSON and returns the response. It fails the test if there is no response.
func requireResponse(t *testing.T, method, url, token string, body any) response {
	t.Helper()
	a, err := sendJSON(t, method, url, token, body)
	require.NoError(t, err)
	return a
}

// sendJSON sends an HTTP request with body as JSON. It returns an error if there is no response, for example because the server was killed.
func sendJSON(t *testing.T, method, url, token string, body any) (a response, err error) {
	t.Helper()
	return sendJSONWithHeaders(t, method, url, token, body, nil)
}

// sendJSONWithHeaders sends an HTTP request like sendJSON, with additional headers.
func sendJSONWithHeaders(t *testing.T, method, url, token string, body any, headers map[string]string) (a response, err error) {
	t.Helper()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return a, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, content)
	if err != nil {
		return a, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	text, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, text}, errors.Join(err, res.Body.Close())
}

// bulkResponse has the fields of the response to POST /videos/bulk that the tests use.
type bulkResponse struct {
	Success          bool
	TrackingEnqueued bool
	Summary          struct{ Total, Succeeded, Failed, AlreadyExists, Retryable int }
	Results          []struct {
		URL, Status, Code, VideoID string
		Success, Retryable         bool
	}
}

// trackLinks tracks links with POST /videos/bulk. It returns the response and the decoded body of the response.
func (s *stack) trackLinks(t *testing.T, links []string) (a response, b bulkResponse) {
	t.Helper()
	a = requireResponse(t, http.MethodPost, s.base+"/videos/bulk", s.token, map[string]any{"links": links})
	a.decode(t, &b)
	return a, b
}

// trackedVideo has the fields of an API video that the tests use.
type trackedVideo struct {
	ID          string  `json:"ad_id"`
	Link        string  `json:"ad_link"`
	Platform    string  `json:"platform"`
	Username    string  `json:"username"`
	Title       string  `json:"title"`
	VideoLength *string `json:"video_length"`
	Views       *int64  `json:"latest_views"`
	Likes       *int64  `json:"latest_likes"`
	UpdatedAt   *string `json:"latest_updated_at"`
}

// listVideos returns all tracked videos of the organisation.
func (s *stack) listVideos(t *testing.T) []trackedVideo {
	t.Helper()
	var page struct {
		Data       []trackedVideo
		Pagination struct{ Total int }
	}
	a := requireResponse(t, http.MethodGet, s.base+"/videos", s.token, nil)
	require.Equal(t, http.StatusOK, a.status, string(a.body))
	a.decode(t, &page)
	require.Len(t, page.Data, page.Pagination.Total)
	return page.Data
}

// listInterval is the interval between requests for a list. The rate limit for lists is 30 requests a minute.
const listInterval = 2500 * time.Millisecond

// awaitNumbers waits until the organisation tracks n videos and all n videos have views, and returns the videos.
func (s *stack) awaitNumbers(t *testing.T, n int, timeout time.Duration) []trackedVideo {
	t.Helper()
	var videos []trackedVideo
	await(t, timeout, listInterval, func() string {
		videos = s.listVideos(t)
		missing := 0
		for _, v := range videos {
			if v.Views == nil {
				missing++
			}
		}
		if len(videos) == n && missing == 0 {
			return ""
		}
		return fmt.Sprintf("%d videos, %d of them without numbers; want %d with numbers\n%s", len(videos), missing, n, lastBytes(s.collector.stderr.String()))
	})
	return videos
}

// await calls check repeatedly until check returns "". After timeout, await fails the test with the
// last result, which says what is missing.
func await(t *testing.T, timeout, interval time.Duration, check func() string) {
	t.Helper()
	deadline, ticks := time.NewTimer(timeout), time.NewTicker(interval)
	defer deadline.Stop()
	defer ticks.Stop()
	for {
		missing := check()
		if missing == "" {
			return
		}
		select {
		case <-ticks.C:
		case <-deadline.C:
			require.Fail(t, "timed out", "after %s: %s", timeout, missing)
		}
	}
}

// lastBytes returns the last 4000 bytes of a log.
func lastBytes(log string) string { return log[max(0, len(log)-4000):] }
