package collector_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// These flags configure the simulation of killed collectors and database crashes.
// `make simulate-killed` runs it with more videos and days.
var (
	killedVideos  = flag.Int("killed.videos", 80, "number of tracked videos")
	killedYouTube = flag.Int("killed.youtube", 48, "how many percent of the videos are on YouTube (one call fetches 50 YouTube videos, but only one video of another platform)")
	killedDays    = flag.Int("killed.days", 3, "number of simulated days")
	killedTicks   = flag.Int("killed.ticks", 24, "how many times a day the collectors fetch all due targets")
	killedKills   = flag.Int("killed.kills", 8, "how many times a collector is killed")
	killedCrashes = flag.Int("killed.crashes", 2, "number of database crashes")
	killedPoll    = flag.Duration("killed.poll", 20*time.Millisecond, "poll interval of an idle collector; use a longer one for many videos")
	killedOut     = flag.String("killed.out", "", "file to write the report to")
)

const (
	// lastTick is the last tick of a day. A tick is a time of day at which the collectors fetch all due targets. The first fetch of a target on a day
	// is scheduled at the time that queue.SlotOf returns, which is never after lastTick.
	lastTick = 24*time.Hour - 10*time.Minute
	// The test advances the clock by clockStep if it sees no progress during idlePolls polls.
	idlePolls = 8
	clockStep = 2 * time.Second
	// At the last tick of a day, the collectors also fetch all targets that become due within endOfDayMargin, for example retries.
	endOfDayMargin = time.Minute
)

// workerConfig is the configuration of a collector process. The test passes it as JSON in an environment variable.
type workerConfig struct {
	Database, Sandbox, Clock string
	Limits                   map[string]int64
	Poll                     time.Duration
}

const workerVariable = "REELTALLY_TEST_COLLECTOR"

func TestMain(m *testing.M) {
	if config := os.Getenv(workerVariable); config != "" {
		var w workerConfig
		if err := errors.Join(json.Unmarshal([]byte(config), &w), w.runCollector()); err != nil && !errors.Is(err, context.Canceled) { // runCollector returns context.Canceled if SIGTERM arrives during the start
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// runCollector runs a collector until SIGTERM, or until its standard input ends because the test process has ended.
func (w workerConfig) runCollector() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	file, err := os.Open(w.Clock)
	if err != nil {
		return err
	}
	now := func() time.Time {
		var content [8]byte
		if _, err := file.ReadAt(content[:], 0); err != nil {
			panic(err) // the collector cannot run without a clock
		}
		return time.UnixMicro(int64(binary.LittleEndian.Uint64(content[:]))).UTC()
	}
	s, err := store.Open(ctx, store.Options{URL: w.Database, Now: now})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	sources, err := simulatedSources(w.Sandbox, fetch.New(fetch.Options{}), now, w.Limits)
	if err != nil {
		return err
	}
	for i, s := range sources {
		sources[i] = oneCallSource{s}
	}
	c, err := collector.New(collector.Options{Store: s, Sources: sources, Now: now, Logger: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
		Poll: w.Poll, Heartbeat: 2 * w.Poll})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// oneCallSource is a source that a collector calls only once at a time.
type oneCallSource struct{ source.Source }

func (oneCallSource) Concurrency() int { return 1 }

// sharedClock is a simulated clock that writes its time to a file, which the collector processes read.
type sharedClock struct {
	*storetest.Clock
	file *os.File
}

func (c sharedClock) Set(at time.Time) {
	c.Clock.Set(at)
	var content [8]byte
	binary.LittleEndian.PutUint64(content[:], uint64(at.UnixMicro()))
	if _, err := c.file.WriteAt(content[:], 0); err != nil {
		panic(err)
	}
}

func (c sharedClock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }

// killTest is a simulation whose collectors run as separate processes. The test kills these processes.
type killTest struct {
	*simulation
	server  *storetest.Server
	gateway *httptest.Server
	config  workerConfig
	log     *os.File
	rng     *rand.Rand

	mu        sync.Mutex
	processes []*process
	faults    []fault // the faults that have not happened yet in the current tick
	countdown atomic.Int64
	called    atomic.Int64
	crash     chan struct{}
	crashed   int
	killed    int
	exited    int // number of collector processes that exited without being killed
}

// fault makes the test kill a collector or crash the database during a certain call to the platforms.
type fault struct {
	crash  bool // if true, the database crashes; if false, a collector is killed
	calls  int64
	answer bool // if true, the platform answers the call and then the fault happens; if false, the fault happens first
}

type process struct {
	cmd       *exec.Cmd
	done      chan struct{}
	wasKilled atomic.Bool
}

// newKillTest returns a test with its own database server, so that crashes of the server do not affect other tests.
func newKillTest(t *testing.T, name string, collectors int) *killTest {
	t.Helper()
	server := storetest.NewServer(t)
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "clock"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	db := server.New(t, name)
	clock := sharedClock{db.Clock, file}
	k := &killTest{server: server, log: log, rng: rand.New(rand.NewPCG(3, 4)), crash: make(chan struct{}, 1), processes: make([]*process, collectors)}
	// The counts of the platforms change only at midnight, so that all fetches of a day return the same counts.
	k.simulation = newSimulation(t, db, clock, func() time.Time { return clock.Now().Truncate(24 * time.Hour) })
	k.gateway = httptest.NewServer(http.HandlerFunc(k.serveWithFaults))
	t.Cleanup(k.gateway.Close)
	k.limits = map[string]int64{"youtube/common": 10_000, "youtube/stats": 10_000, "tiktok": int64(3 * *killedVideos), "instagram": int64(6 * *killedVideos)}
	k.config = workerConfig{Database: db.URL, Sandbox: k.gateway.URL, Clock: file.Name(), Limits: k.limits, Poll: *killedPoll}
	return k
}

// serveWithFaults passes a call to the sandbox. Each call decreases k.countdown. The call that decreases it to
// 0 also causes the next fault in k.faults.
func (k *killTest) serveWithFaults(w http.ResponseWriter, r *http.Request) {
	k.called.Add(1)
	if k.countdown.Add(-1) != 0 {
		k.ServeHTTP(w, r)
		return
	}
	k.mu.Lock()
	next := k.faults[0]
	k.faults = k.faults[1:]
	chosen := k.processes[k.rng.IntN(len(k.processes))]
	k.mu.Unlock()
	if next.answer {
		k.ServeHTTP(w, r)
	}
	if next.crash {
		k.crash <- struct{}{}
	} else {
		chosen.kill()
	}
	if !next.answer {
		k.ServeHTTP(w, r)
	}
	k.scheduleNextFault()
}

// scheduleNextFault sets k.countdown to the number of calls after which the first fault in k.faults happens, or to 0 if k.faults is
// empty.
func (k *killTest) scheduleNextFault() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.faults) > 0 {
		k.countdown.Store(k.faults[0].calls)
	} else {
		k.countdown.Store(0)
	}
}

func (p *process) kill() {
	p.wasKilled.Store(true)
	_ = p.cmd.Process.Kill()
	<-p.done
}

// startMissingCollectors starts every collector process that is not running, as a supervisor would do.
func (k *killTest) startMissingCollectors() {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, p := range k.processes {
		if p != nil {
			select {
			case <-p.done:
			default:
				continue
			}
			if p.wasKilled.Load() {
				k.killed++
			} else {
				k.exited++
			}
		}
		config, err := json.Marshal(k.config)
		require.NoError(k.t, err)
		p = &process{cmd: exec.CommandContext(k.t.Context(), os.Args[0]), done: make(chan struct{})}
		p.cmd.Env = append(os.Environ(), workerVariable+"="+string(config))
		p.cmd.Stderr = k.log
		_, err = p.cmd.StdinPipe() // the pipe closes when the test process ends, and the collector process then exits
		require.NoError(k.t, err)
		require.NoError(k.t, p.cmd.Start())
		go func() {
			_ = p.cmd.Wait()
			close(p.done)
		}()
		k.processes[i] = p
	}
}

// stopCollectors sends SIGTERM to all collector processes and waits until they have exited.
func (k *killTest) stopCollectors() {
	k.t.Helper()
	for _, p := range k.processes {
		require.NoError(k.t, p.cmd.Process.Signal(syscall.SIGTERM))
		<-p.done
		ended, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		require.True(k.t, ok)
		// If a process has not installed its handler for SIGTERM yet, the signal ends the process.
		require.True(k.t, ended.ExitStatus() == 0 || ended.Signaled() && ended.Signal() == syscall.SIGTERM, "%s", p.cmd.ProcessState)
	}
}

const dueTargets = `fetch_targets WHERE bucket = 0 AND source IN ('youtube', 'tiktok', 'instagram') AND kind = 'video' AND lane IN (0, 1, 2, 3)
 AND next_at <= $1 AND claimed_by IS NULL`

// hasWork returns true if any target is claimed, or is due at the given time. It also returns true if the database does not answer.
func (k *killTest) hasWork(dueUntil time.Time) bool {
	var busy bool
	err := k.db.Raw(k.t).QueryRowContext(k.t.Context(), `SELECT EXISTS (SELECT 1 FROM fetch_targets WHERE claimed_by IS NOT NULL) OR EXISTS (SELECT 1 FROM `+dueTargets+`)`,
		store.InstantOf(dueUntil)).Scan(&busy)
	return err != nil || busy // if the database does not answer, targets may still be due
}

// progress is one measurement of the collectors' work. If two successive measurements are equal, the collectors are waiting for a later
// time.
type progress struct {
	calls int64 // number of calls to the platforms so far
	left  int64 // number of due or claimed targets; -1 if the database does not answer
}

func (k *killTest) measureProgress(end time.Time) progress {
	p := progress{calls: k.called.Load()}
	err := k.db.Raw(k.t).QueryRowContext(k.t.Context(), `SELECT (SELECT COUNT(*) FROM fetch_targets WHERE claimed_by IS NOT NULL) + (SELECT COUNT(*) FROM `+dueTargets+`)`,
		store.InstantOf(end)).Scan(&p.left)
	if err != nil {
		p.left = -1
	}
	return p
}

// runTick sets the clock to the time of a tick and waits until the collectors have fetched all due targets. Meanwhile it causes the given
// faults.
func (k *killTest) runTick(tickTime time.Time, faults []fault) {
	k.t.Helper()
	k.faults = faults
	k.scheduleNextFault()
	k.clock.Set(tickTime)
	end := func() time.Time { return k.clock.Now() }
	if tickTime.Equal(tickTime.Truncate(24 * time.Hour).Add(lastTick)) {
		end = func() time.Time { return k.clock.Now().Add(endOfDayMargin) }
	}
	poll := time.NewTicker(*killedPoll)
	defer poll.Stop()
	timeout := time.NewTimer(15 * time.Minute)
	defer timeout.Stop()
	var before progress
	for n := 1; ; n++ {
		select {
		case <-poll.C:
		case <-k.crash:
			k.server.Crash(k.t)
			k.crashed++
		case <-timeout.C:
			require.Fail(k.t, "the collectors must finish in time", "%s", tickTime)
		}
		k.startMissingCollectors()
		if !k.hasWork(end()) {
			break
		}
		if n%idlePolls == 0 {
			now := k.measureProgress(end())
			if now == before && k.clock.Now().Add(clockStep).Day() == tickTime.Day() { // the collectors wait for a later time, so advance the clock, but not to the next day
				k.clock.Advance(clockStep)
			}
			before = now
		}
	}
	// If the tick had too few calls, some faults are left. They are caused now.
	k.mu.Lock()
	left := k.faults
	k.faults = nil
	k.mu.Unlock()
	k.countdown.Store(0)
	for _, s := range left {
		if s.crash {
			k.server.Crash(k.t)
			k.crashed++
		} else {
			k.processes[k.rng.IntN(len(k.processes))].kill()
			k.startMissingCollectors()
		}
	}
}

// runDays simulates the given number of days. It kills collectors and crashes the database at random ticks.
func (k *killTest) runDays(t *testing.T, videos, days, kills, crashes int) {
	t.Helper()
	parent := k.t
	k.t = t
	defer func() { k.t = parent }()
	faultsByTick := map[int][]fault{}
	for n := range kills + crashes {
		tick := *killedTicks + k.rng.IntN(*killedTicks*(days-1)) // index of a random tick that is not on the first day
		faultsByTick[tick] = append(faultsByTick[tick], fault{crash: n >= kills, calls: 1 + k.rng.Int64N(int64(max(4, videos/20 / *killedTicks))), answer: k.rng.IntN(2) == 0})
	}
	youtube := videos * *killedYouTube / 100
	instagram := max(10, min(videos/20, (videos-youtube)/2))
	tiktok := videos - youtube - instagram
	newPerDay := max(1, min(youtube, tiktok)/10/days)
	k.trackLinks(k.findVideos(link.YouTube, youtube-newPerDay*days, 50), true)
	k.trackLinks(k.findVideos(link.TikTok, tiktok-newPerDay*days, 50), true)
	k.trackLinks(k.findVideos(link.Instagram, instagram, 50), true)
	k.startMissingCollectors()
	began, started := k.clock.Now(), time.Now()
	for day := range days {
		if day > 0 {
			began = began.Add(24 * time.Hour)
			k.clock.Set(began)
			k.trackLinks(k.findVideos(link.YouTube, newPerDay, 1), true)
			k.trackLinks(k.findVideos(link.TikTok, newPerDay, 1), true)
		}
		apart := 24 * time.Hour / time.Duration(*killedTicks)
		for n := range *killedTicks {
			k.runTick(began.Add(lastTick-time.Duration(*killedTicks-1-n)*apart), faultsByTick[*killedTicks*day+n])
		}
		k.t.Logf("day %3d of %d after %s: calls %v; %d killed, %d database crashes, %d exited without being killed", day+1, days, time.Since(started).Round(time.Second), k.totalUsedUnits(), k.killed, k.crashed, k.exited)
	}
	k.stopCollectors()
	for window, n := range k.units {
		budget, _, _ := strings.Cut(window, " ")
		require.LessOrEqual(k.t, n, k.limits[budget], "%s: the used units must not exceed the budget", window)
	}
	// Run the daily job once more, so that the databases of the disturbed and of the undisturbed run have rolled up the same days.
	k.clock.Set(k.clock.Now().Truncate(24 * time.Hour).Add(28 * time.Hour))
	require.NoError(k.t, k.newCollector(k.limits).RunJobs(k.t.Context()))
}
