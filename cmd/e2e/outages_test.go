package e2e_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server/redistest"
	"github.com/reeltally/reeltally/store/storetest"
)

// `make outages` runs the test with more outages and with full disks. For the full disks, the test mounts small file systems.
var (
	outagesCount = flag.Int("outages.count", 2, "number of times that each part of the system fails")
	outagesDisks = flag.Bool("outages.disks", false, "also fill disks; needs root, because the test mounts file systems")
	outagesOut   = flag.String("outages.out", "", "path of the page with the results of TestOutages_serverLosesNoAcknowledgedWriteAndRecovers; if it is empty, there is no page")
)

const (
	outageWriters = 3 // goroutines that track videos
	// requestsPerOutage is the number of requests that must get the expected response during each outage. Between two outages, the same number
	// of requests must succeed.
	requestsPerOutage = 20
)

// outage describes how a part of the system fails and works again while callers send requests.
type outage struct {
	name   string
	engine string
	env    []string // settings of the server
	fail   func()   // function that makes the part fail
	repair func()   // function that makes the part work again
	// If endsImmediately is true, the outage is already over when a call of fail() returns. The test then does not wait for refused requests.
	endsImmediately bool
	// During the outage, requests that read data succeed if readsSucceed is true. Requests that write data succeed if writesSucceed is true.
	readsSucceed, writesSucceed bool
	// limits is true if the server has rate limits.
	limits bool
}

// outageCounts counts the responses of the server while one part of the system, such as PostgreSQL, fails again and again.
type outageCounts struct {
	name, engine  string
	outages       int
	writes, reads int           // number of requests that got status 200
	refusedWrites int           // number of responses with status 503 to requests that write data
	refusedReads  int           // number of responses with status 503 to requests that read data
	limited       int           // number of requests that got status 429; it is 0 except in the run with Redis, because the other runs have no rate limits
	slowest       time.Duration // the longest time from a request to its response
	recovery      time.Duration // the longest time from the end of an outage until a write succeeded
	duration      time.Duration
}

// TestOutages_serverLosesNoAcknowledgedWriteAndRecovers repeatedly makes PostgreSQL and Redis fail while callers track and list videos. The server
// must recover without a restart and lose no acknowledged video.
func TestOutages_serverLosesNoAcknowledgedWriteAndRecovers(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	var mu sync.Mutex
	var results []outageCounts
	t.Cleanup(func() {
		if *outagesOut != "" && !t.Failed() {
			require.NoError(t, os.WriteFile(*outagesOut, []byte(outagesPage(results, storetest.Machine())), 0o600))
		}
	})
	tests := map[string]func(t *testing.T) outage{"PostgreSQL": newPostgresCrash, "Redis": newRedisCrash}
	if *outagesDisks {
		tests["SQLite disk"], tests["PostgreSQL disk"] = newSQLiteDiskOutage, newPostgresDiskOutage
	}
	for name, newOutage := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &outageRun{outage: newOutage(t), acknowledged: map[string]bool{}}
			r.counts.name, r.counts.engine = r.name, r.engine
			r.causeOutages(t)
			t.Logf("%+v", r.counts)
			mu.Lock()
			results = append(results, r.counts)
			mu.Unlock()
		})
	}
}

func newPostgresCrash(t *testing.T) outage {
	t.Helper()
	postgres := storetest.NewServer(t)
	return outage{name: "PostgreSQL is killed (SIGKILL) and started again", engine: "postgres", env: []string{"REELTALLY_DATABASE_URL=" + postgres.New(t, "outages").URL},
		fail: func() { postgres.Crash(t) }, repair: func() {}, endsImmediately: true}
}

func newRedisCrash(t *testing.T) outage {
	t.Helper()
	r := redistest.Start(t)
	return outage{name: "Redis is killed (SIGKILL) and started again", engine: "sqlite", env: []string{"REELTALLY_DATABASE_URL=" + storetest.CreateDatabase(t, "sqlite"), "REELTALLY_REDIS_URL=" + r.URL},
		fail: r.Kill, repair: r.Start, readsSucceed: true, writesSucceed: true, limits: true}
}

// newSQLiteDiskOutage returns an outage in which the file system of the SQLite database is full.
func newSQLiteDiskOutage(t *testing.T) outage {
	t.Helper()
	dir := t.TempDir()
	mountSmallDisk(t, dir, 32)
	file := strings.TrimPrefix(storetest.CreateDatabase(t, "sqlite"), "sqlite:")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	path := filepath.Join(dir, "reeltally.db")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return outage{name: "the disk of SQLite is full", engine: "sqlite", env: []string{"REELTALLY_DATABASE_URL=sqlite:" + path},
		fail: func() { fillDisk(t, dir) }, repair: func() { require.NoError(t, os.Remove(fillerPath(dir))) }, readsSucceed: true}
}

// newPostgresDiskOutage returns an outage in which the file system with the tables of PostgreSQL is full. The write-ahead log is on another
// file system.
func newPostgresDiskOutage(t *testing.T) outage {
	t.Helper()
	postgres := storetest.NewServer(t)
	db := postgres.New(t, "disks")
	dir, err := os.MkdirTemp("/tmp", "reeltally-disk") //nolint:usetesting // the user of PostgreSQL has no access to t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.Remove(dir) })
	mountSmallDisk(t, dir, 64)
	tables := filepath.Join(dir, "tables")
	require.NoError(t, os.Mkdir(tables, 0o700))
	require.NoError(t, os.Chmod(dir, 0o755))
	data := storetest.Column[string](t, db, "SHOW data_directory")[0]
	out, err := exec.CommandContext(t.Context(), "chown", "--reference="+data, tables).CombinedOutput()
	require.NoError(t, err, "%s", out)
	db.Exec(t, "CREATE TABLESPACE small LOCATION '"+tables+"'")
	db.Exec(t, "ALTER TABLE ALL IN TABLESPACE pg_default SET TABLESPACE small")
	db.Exec(t, "ALTER INDEX ALL IN TABLESPACE pg_default SET TABLESPACE small")
	return outage{name: "the disk with the tables of PostgreSQL is full", engine: "postgres", env: []string{"REELTALLY_DATABASE_URL=" + db.URL},
		fail: func() { fillDisk(t, dir) }, repair: func() { require.NoError(t, os.Remove(fillerPath(dir))) }, readsSucceed: true}
}

// mountSmallDisk mounts a file system in memory at dir, and unmounts it when the test ends. sizeMiB is its size in MiB.
func mountSmallDisk(t *testing.T, dir string, sizeMiB int) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size="+strconv.Itoa(sizeMiB)+"m", "none", dir).CombinedOutput()
	require.NoError(t, err, "mounting needs root: %s", out)
	t.Cleanup(func() { _ = exec.Command("umount", "--lazy", dir).Run() })
}

// fillerPath returns the path of the file with which fillDisk fills the disk.
func fillerPath(dir string) string { return filepath.Join(dir, "filler") }

// fillDisk writes a file to the disk until nothing more fits.
func fillDisk(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(fillerPath(dir))
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	require.ErrorContains(t, err, "no space left on device")
	require.NoError(t, f.Close())
}

// outageRun is a run in which one kind of outage happens several times. It has the server, the counts and the acknowledged links.
type outageRun struct {
	outage
	*stack
	mu           sync.Mutex
	counts       outageCounts
	acknowledged map[string]bool // links of the videos whose tracking was answered with 200
	links        int             // number of links that were sent
	problems     []string        // unexpected responses, which the outage does not explain
}

// causeOutages starts a server and callers, and causes the outage as often as the flag -outages.count says. It then
// compares the stored videos with the acknowledged ones.
func (r *outageRun) causeOutages(t *testing.T) {
	t.Helper()
	start := time.Now()
	r.stack = &stack{sandboxProcess: &sandboxProcess{}, env: append(r.outage.env, "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_REQUEST_TIMEOUT=5s")}
	r.token = r.newOrganisation(t)
	if !r.limits {
		r.stack.env = append(r.stack.env, "REELTALLY_RATE_LIMITS=off")
	}
	r.startServer(t)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range outageWriters {
		callers.Go(func() { r.repeatUntilStopped(stop, func() { r.trackVideo(t) }) })
	}
	callers.Go(func() { r.repeatUntilStopped(stop, func() { r.sendGet(t, "/videos?limit=5") }) })
	callers.Go(func() { r.repeatUntilStopped(stop, func() { r.sendGet(t, "/livez") }) })
	answered := func(c outageCounts) int { return c.writes + c.limited }
	for range *outagesCount {
		r.awaitGrowth(t, answered)
		r.fail()
		switch {
		case r.endsImmediately:
		case r.writesSucceed:
			r.awaitGrowth(t, answered)
		default:
			r.awaitGrowth(t, func(c outageCounts) int { return c.refusedWrites })
			r.awaitGrowth(t, func(c outageCounts) int { return c.reads })
		}
		r.repair()
		repaired := time.Now()
		r.awaitWrite(t)
		r.mu.Lock()
		r.counts.recovery = max(r.counts.recovery, time.Since(repaired))
		r.counts.outages++
		r.mu.Unlock()
	}
	close(stop)
	callers.Wait()
	// A refused request must get status 503 with Retry-After, or status 429 from a rate limit.
	require.Empty(t, r.problems, "%s", r.server.stderr)
	stored := r.countListedLinks(t)
	for link := range r.acknowledged {
		require.Equal(t, 1, stored[link], "the acknowledged video %s must be stored exactly once", link)
	}
	for link, times := range stored {
		require.Equal(t, 1, times, link)
	}
	if !r.writesSucceed && !r.endsImmediately {
		require.Positive(t, r.counts.refusedWrites)
	}
	r.server.stop(t, sigterm)
	r.counts.duration = time.Since(start)
}

// repeatUntilStopped calls sendRequest again and again until stop is closed.
func (r *outageRun) repeatUntilStopped(stop <-chan struct{}, sendRequest func()) {
	for {
		sendRequest()
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond): // wait, so that other tests get CPU time
		}
	}
}

// trackVideo sends a request that tracks a new video, and counts the response.
func (r *outageRun) trackVideo(t *testing.T) {
	r.mu.Lock()
	r.links++
	link := fmt.Sprintf("https://www.tiktok.com/@someone/video/7%018d", r.links)
	r.mu.Unlock()
	start := time.Now()
	a, err := sendJSON(t, http.MethodPost, r.base+"/videos", r.token, map[string]any{"link": link})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.slowest = max(r.counts.slowest, time.Since(start))
	switch {
	case err == nil && a.status == http.StatusOK:
		r.counts.writes++
		r.acknowledged[link] = true
	case err == nil && a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "" && !r.writesSucceed:
		r.counts.refusedWrites++
	default:
		r.addUnexpectedResponse("POST /videos", a, err)
	}
}

func (r *outageRun) sendGet(t *testing.T, target string) {
	start := time.Now()
	a, err := sendJSON(t, http.MethodGet, r.base+target, r.token, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.slowest = max(r.counts.slowest, time.Since(start))
	switch {
	case err == nil && a.status == http.StatusOK:
		r.counts.reads++
	case err == nil && a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "" && target != "/livez" && !r.readsSucceed:
		r.counts.refusedReads++
	default:
		r.addUnexpectedResponse("GET "+target, a, err)
	}
}

// addUnexpectedResponse handles a response that the outage does not explain. If the server has rate limits, it counts a response with status 429. It
// adds any other response to r.problems.
func (r *outageRun) addUnexpectedResponse(request string, a response, err error) {
	if err == nil && a.status == http.StatusTooManyRequests && r.limits {
		r.counts.limited++
		return
	}
	if len(r.problems) < 10 {
		r.problems = append(r.problems, fmt.Sprintf("%s: %d %s %v", request, a.status, a.body, err))
	}
}

// awaitGrowth waits until a count has grown by requestsPerOutage. selectCount returns this count.
func (r *outageRun) awaitGrowth(t *testing.T, selectCount func(outageCounts) int) {
	t.Helper()
	first := -1
	await(t, waitTimeout, 20*time.Millisecond, func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		if first < 0 {
			first = selectCount(r.counts)
		}
		if selectCount(r.counts) >= first+requestsPerOutage {
			return ""
		}
		return fmt.Sprintf("%s: too few requests got the expected response: %+v; unexpected responses: %v", r.name, r.counts, r.problems)
	})
}

// awaitWrite waits until one more write succeeds, or until a rate limit refuses one more request.
func (r *outageRun) awaitWrite(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	first := r.counts.writes + r.counts.limited
	r.mu.Unlock()
	await(t, waitTimeout, 5*time.Millisecond, func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.counts.writes+r.counts.limited > first {
			return ""
		}
		return fmt.Sprintf("%s: no write succeeds: %+v\n%s", r.name, r.counts, lastBytes(r.server.stderr.String()))
	})
}

// countListedLinks returns how often the server lists each link.
func (r *outageRun) countListedLinks(t *testing.T) map[string]int {
	t.Helper()
	times := map[string]int{}
	for page := 1; ; page++ {
		var list struct{ Data []trackedVideo }
		await(t, waitTimeout, time.Second, func() string { // try again after an error, because the callers may have used up the rate limit of lists
			a := requireResponse(t, http.MethodGet, fmt.Sprintf("%s/videos?limit=1000&page=%d", r.base, page), r.token, nil)
			if a.status != http.StatusOK {
				return string(a.body)
			}
			a.decode(t, &list)
			return ""
		})
		if len(list.Data) == 0 {
			return times
		}
		for _, v := range list.Data {
			times[v.Link]++
		}
	}
}
