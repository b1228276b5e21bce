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

// programs is the folder of the programs that are tested.
var programs string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
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
	soon = 30 * time.Second
	// fetched is how long a number may take to appear after a video is tracked.
	fetched = 10 * time.Second
)

// process is a program that runs.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *boottest.Output
	done           chan struct{}
	err            error
}

// start starts one of our programs.
func start(t *testing.T, name string, env []string, args ...string) *process {
	t.Helper()
	return run(t, filepath.Join(programs, name), env, args...)
}

// run starts a program with env as its whole environment, but for what the operating system needs. It is killed when
// the test ends, if it still runs.
func run(t *testing.T, path string, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), path, args...), stdout: boottest.NewOutput(), stderr: boottest.NewOutput(), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = t.TempDir(), p.stdout, p.stderr
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.cmd.Dir}, env...)
	require.NoError(t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		p.stdout.End()
		p.stderr.End()
		close(p.done)
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks the process to stop, which it has to do well.
func (p *process) stop(t *testing.T, signal syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(signal))
	select {
	case <-p.done:
	case <-time.After(soon):
		require.Fail(t, "it does not stop", p.stderr.String())
	}
	require.NoError(t, p.err, p.stderr.String())
}

// operator runs the operator's tool to its end and returns what it printed.
func operator(t *testing.T, env []string, args ...string) string {
	t.Helper()
	p := start(t, "reeltally", env, args...)
	<-p.done
	require.NoError(t, p.err, p.stderr.String())
	return p.stdout.String()
}

// box is a sandbox in a process of its own.
type box struct {
	*process
	env     []string // points every source at it
	control string
	world   *sandbox.World // the same one as in the process
}

func startSandbox(t *testing.T) *box {
	t.Helper()
	b := &box{process: start(t, "reeltally", nil, "sandbox", "--listen", "127.0.0.1:0"), world: sandbox.New(sandbox.Options{}).World()}
	base := b.stdout.Await(t, soon, "REELTALLY_SHORTLINK_BASE_URL=")
	b.control = strings.TrimSuffix(strings.TrimPrefix(base, "REELTALLY_SHORTLINK_BASE_URL="), "shortlinks") + "_control/"
	b.env = strings.Fields(b.stdout.String())
	return b
}

// fault puts a fault in force, until lift.
func (b *box) fault(t *testing.T, source, fault string, retryAfter int) {
	t.Helper()
	body := map[string]any{"source": source, "fault": fault}
	if retryAfter > 0 {
		body["retry_after"] = retryAfter
	}
	require.Equal(t, http.StatusOK, call(t, http.MethodPut, b.control+"faults", "", body).status)
}

func (b *box) lift(t *testing.T) {
	t.Helper()
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, b.control+"faults", "", nil).status)
}

// batches are the ids that a source was asked for, call by call.
func (b *box) batches(t *testing.T, source string) [][]string {
	t.Helper()
	var calls map[string]struct {
		Batches [][]string
		Dropped int `json:"batches_dropped"`
	}
	call(t, http.MethodGet, b.control+"calls", "", nil).into(t, &calls)
	require.Zero(t, calls[source].Dropped, "the sandbox remembers all calls")
	return calls[source].Batches
}

// video is one of the world.
type video struct {
	link.Link
	url string
}

// videos returns ordinary public videos of a platform, each once; another salt gives others.
func (b *box) videos(t *testing.T, p link.Platform, n int, salt uint64) []video {
	t.Helper()
	dice := rand.New(rand.NewPCG(salt, uint64(n)))
	found := make([]video, 0, n)
	seen := map[string]bool{}
	for len(found) < n {
		v, ok := seed.AnyVideo(b.world, p, dice, time.Now())
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

func urls(videos []video) []string {
	out := make([]string, len(videos))
	for i, v := range videos {
		out[i] = v.url
	}
	return out
}

// stack is an API with its database, its sandbox and a collector.
type stack struct {
	*box
	env               []string
	server, collector *process
	base, token       string
}

// startStack starts everything on an engine, with an organisation and its token, and without some settings of the sandbox.
func startStack(t *testing.T, engine string, without ...string) *stack {
	t.Helper()
	s := &stack{box: startSandbox(t)}
	s.env = append(slices.DeleteFunc(slices.Clone(s.box.env), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return slices.Contains(without, name)
	}), "REELTALLY_DATABASE_URL="+storetest.NewURL(t, engine), "REELTALLY_LISTEN=127.0.0.1:0")
	s.token = s.newOrganisation(t)
	s.startServer(t)
	s.startCollector(t)
	return s
}

func (s *stack) newOrganisation(t *testing.T) string {
	t.Helper()
	var made struct {
		Organisation string `json:"organisation_id"`
		Token        string `json:"token"`
	}
	require.NoError(t, json.Unmarshal([]byte(operator(t, s.env, "org", "create", "--name", "Tester", "--json")), &made))
	require.NoError(t, json.Unmarshal([]byte(operator(t, s.env, "token", "create", "--org", made.Organisation, "--name", "Test", "--json")), &made))
	return made.Token
}

func (s *stack) startServer(t *testing.T) {
	t.Helper()
	s.server = start(t, "server", s.env)
	s.base = loggedAddress(t, s.server, "serving")
}

// loggedAddress waits until a program logs a message and returns the address in it.
func loggedAddress(t *testing.T, p *process, message string) string {
	t.Helper()
	var line struct{ Address string }
	require.NoError(t, json.Unmarshal([]byte(p.stderr.Await(t, soon, `"msg":"`+message+`"`)), &line))
	return line.Address
}

func (s *stack) startCollector(t *testing.T) *process {
	t.Helper()
	s.collector = start(t, "collector", append(slices.Clone(s.env), "REELTALLY_LOG_LEVEL=debug"))
	s.collector.stderr.Await(t, soon, `"msg":"collecting"`)
	return s.collector
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(a.body, v), string(a.body))
}

// call makes a request and expects an answer.
func call(t *testing.T, method, url, token string, body any) answer {
	t.Helper()
	a, err := try(t, method, url, token, body)
	require.NoError(t, err)
	return a
}

// try makes a request that may find nobody.
func try(t *testing.T, method, url, token string, body any) (a answer, err error) {
	t.Helper()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		require.NoError(t, err)
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, content)
	require.NoError(t, err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, text}, errors.Join(err, res.Body.Close())
}

// bulkAnswer is the part of the answer to POST /videos/bulk that the tests look at.
type bulkAnswer struct {
	Success          bool
	TrackingEnqueued bool
	Summary          struct{ Total, Succeeded, Failed, AlreadyExists, Retryable int }
	Results          []struct {
		URL, Status, Code, VideoID string
		Success, Retryable         bool
	}
}

func (s *stack) bulk(t *testing.T, links []string) (a answer, b bulkAnswer) {
	t.Helper()
	a = call(t, http.MethodPost, s.base+"/videos/bulk", s.token, map[string]any{"links": links})
	a.into(t, &b)
	return a, b
}

// tracked is the part of a video that the tests look at.
type tracked struct {
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

// list returns all videos that are tracked.
func (s *stack) list(t *testing.T) []tracked {
	t.Helper()
	var page struct {
		Data       []tracked
		Pagination struct{ Total int }
	}
	a := call(t, http.MethodGet, s.base+"/videos", s.token, nil)
	require.Equal(t, http.StatusOK, a.status, string(a.body))
	a.into(t, &page)
	require.Len(t, page.Data, page.Pagination.Total)
	return page.Data
}

// listEvery is how often a list is asked for: the limit is 30 a minute.
const listEvery = 2500 * time.Millisecond

// awaitNumbers waits until every tracked video has views, and returns them.
func (s *stack) awaitNumbers(t *testing.T, n int, within time.Duration) []tracked {
	t.Helper()
	var videos []tracked
	await(t, within, listEvery, func() string {
		videos = s.list(t)
		missing := 0
		for _, v := range videos {
			if v.Views == nil {
				missing++
			}
		}
		if len(videos) == n && missing == 0 {
			return ""
		}
		return fmt.Sprintf("%d videos, %d of them without numbers; %d with numbers are wanted\n%s", len(videos), missing, n, tail(s.collector.stderr.String()))
	})
	return videos
}

// await asks now and then until there is nothing left to complain about.
func await(t *testing.T, within, every time.Duration, complaint func() string) {
	t.Helper()
	deadline, ticks := time.NewTimer(within), time.NewTicker(every)
	defer deadline.Stop()
	defer ticks.Stop()
	for {
		c := complaint()
		if c == "" {
			return
		}
		select {
		case <-ticks.C:
		case <-deadline.C:
			require.Fail(t, "not in time", "after %s: %s", within, c)
		}
	}
}

// tail is the end of a log.
func tail(log string) string { return log[max(0, len(log)-4000):] }
