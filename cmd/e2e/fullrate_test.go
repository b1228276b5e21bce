package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/reeltally/reeltally/store/storetest"
)

var (
	fullRateOut = flag.String("fullrate.out", "", "folder for full-rate.md and full-rate.svg; if set, TestFullRate_maximumAllowedLoadNeedsLittleMemory runs for fullrate.for and writes them")
	fullRateFor = flag.Duration("fullrate.for", 10*time.Minute, "duration of TestFullRate_maximumAllowedLoadNeedsLittleMemory if fullrate.out is set")
)

const (
	// maxInFlight is the maximum number of concurrent requests of the organisation that uses its full rate limits. The test skips a request
	// that would exceed this number.
	maxInFlight = 100
	// maxKeyBytes is the maximum size of the table of idempotency keys on disk, in bytes. The server allows one organisation 128 MiB of keys.
	maxKeyBytes = 256 << 20
	// maxResident is the maximum resident memory of the server in bytes.
	maxResident = 1 << 30
)

// One organisation sends the largest requests as often as its rate limits allow. The server's memory
// must stay small, and other organisations must get responses.
//
//nolint:paralleltest // the test loads the whole machine, so that parallel tests with short timeouts would fail
func TestFullRate_maximumAllowedLoadNeedsLittleMemory(t *testing.T) {
	storetest.SkipIfShort(t)
	run := fullRateRun{alone: 3 * time.Second, length: 15 * time.Second, sampleEvery: time.Second, window: 5 * time.Second, videos: 500}
	if *fullRateOut != "" {
		run = fullRateRun{alone: time.Minute, length: *fullRateFor, sampleEvery: 5 * time.Second, window: 30 * time.Second, videos: 5000}
	}
	db := storetest.NewServer(t).New(t, "fullrate")
	s := &stack{sandboxProcess: startSandbox(t)}
	s.env = append(slices.Clone(s.sandboxProcess.env), "REELTALLY_DATABASE_URL="+db.URL, "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_METRICS_LISTEN=127.0.0.1:0")
	callers := newHonestCallers(t, s)
	m := startMeteredServer(t, s, findPostmaster(t, db))
	c := newCustomer(t, s, run.videos)
	db.Exec(t, "VACUUM ANALYZE")
	run.limits = c.rateLimits(t)
	requestSpecs := c.requestSpecs(t)
	require.ElementsMatch(t, slices.Collect(maps.Keys(run.limits)), slices.Collect(maps.Keys(requestSpecs)), "the test must call every operation")

	run.tablesBefore = tableSizes(t, db)
	run.began = time.Now().Add(run.alone)
	ctx, stop := context.WithDeadline(t.Context(), run.began.Add(run.length))
	defer stop()
	var workers errgroup.Group
	workers.Go(func() error {
		run.normal = callers.sendRequests(ctx, s.base)
		return nil
	})
	workers.Go(func() error { return run.takeSamples(ctx, m, db) })
	pause(t, time.Until(run.began))
	server, database := m.serverTime(t), m.databaseTime(t)
	run.sent = c.callAllOperations(ctx, run.limits, requestSpecs)
	require.NoError(t, workers.Wait())
	run.server, run.database = m.serverTime(t)-server, m.databaseTime(t)-database
	run.tablesAfter = tableSizes(t, db)

	if *fullRateOut != "" { // write the files before the assertions, so that a failed run writes its results too
		require.NoError(t, os.WriteFile(filepath.Join(*fullRateOut, "full-rate.md"), []byte(run.reportText()), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(*fullRateOut, "full-rate.svg"), []byte(run.chartsSVG()), 0o600))
	}
	require.Equal(t, http.StatusOK, requireResponse(t, http.MethodGet, s.base+"/readyz", "", nil).status, "the server must still run after the requests")
	for operation, o := range run.sent {
		t.Logf("%s: %s", operation, o)
		require.Positive(t, o.sentRequests(), operation)
		require.NotContains(t, o.responses, "500", operation)
		require.NotContains(t, o.responses, "no response", operation)
	}
	for _, one := range run.samples {
		require.Less(t, one.resident, int64(maxResident), "the resident memory of the server, in bytes, must stay below the limit")
		require.Less(t, one.keys, int64(maxKeyBytes), "the size of the table idempotency_keys, in bytes, must stay below the limit")
	}
	failed := countFailures(run.normal)
	delete(failed, "503 Service Unavailable") // status 503 is allowed: the server answers with it if the machine is overloaded
	require.Empty(t, failed)
}

// fullRateRun has the settings and the measurements of one run. One organisation uses its full rate
// limits, while the honest callers send normal requests.
type fullRateRun struct {
	alone       time.Duration  // duration of the first phase, in which the organisation sends no requests
	length      time.Duration  // duration of the second phase, in which the organisation sends as many requests as its limits allow
	sampleEvery time.Duration  // interval between samples
	window      time.Duration  // length of the periods for which the latency is charted
	videos      int            // number of videos of the organisation before the run
	limits      map[string]int // allowed calls in a minute, by the id of the operation

	began                     time.Time // start of the organisation's requests, which is minute 0 of the charts
	normal                    []timing
	samples                   []sample
	sent                      map[string]*outcome
	server, database          time.Duration
	tablesBefore, tablesAfter map[string]int64
}

// sample is one measurement of the server and the database. It has the memory of the server and the size of the database at one moment.
type sample struct {
	at       time.Duration // time since the start of the organisation's requests
	resident int64         // resident memory of the server in bytes
	database int64         // size of the database in bytes
	keys     int64         // size of the table of idempotency keys in bytes; the size of the database includes it
}

// takeSamples measures the server and the database at the interval r.sampleEvery until ctx ends. It adds the samples to r.samples.
func (r *fullRateRun) takeSamples(ctx context.Context, m *meter, db *storetest.DB) error {
	ticks := time.NewTicker(r.sampleEvery)
	defer ticks.Stop()
	for {
		one := sample{at: time.Since(r.began)}
		var err error
		if one.resident, err = m.memorySize("VmRSS"); err != nil {
			return err
		}
		err = db.QueryRow(context.WithoutCancel(ctx), // the end of ctx must not interrupt the query
			"SELECT pg_database_size(current_database()), pg_total_relation_size('idempotency_keys')", &one.database, &one.keys)
		if err != nil {
			return err
		}
		r.samples = append(r.samples, one)
		if *fullRateOut != "" && len(r.samples)%6 == 0 {
			printProgress(os.Stderr, "%s: server %.0f MiB, database %.0f MiB, including idempotency keys %.0f MiB", one.at.Round(time.Second),
				inMebibytes(one.resident), inMebibytes(one.database), inMebibytes(one.keys))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// tableSizes returns a map from the names of tables to their sizes in bytes. The size of a table includes its indexes and partitions.
func tableSizes(t *testing.T, db *storetest.DB) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, line := range storetest.Column[string](t, db, `SELECT COALESCE(i.inhparent, c.oid)::regclass::text || ' ' || SUM(pg_total_relation_size(c.oid))
FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' GROUP BY COALESCE(i.inhparent, c.oid)`) {
		var name string
		var size int64
		_, err := fmt.Sscan(line, &name, &size)
		require.NoError(t, err)
		out[name] = size
	}
	return out
}

// outcome counts the requests of one operation by their responses.
type outcome struct {
	mu        sync.Mutex
	responses map[string]int  // number of responses by status
	skipped   int             // number of requests not sent, because maxInFlight requests were running
	durations []time.Duration // duration of each request
}

func (o *outcome) sentRequests() int {
	n := 0
	for _, count := range o.responses {
		n += count
	}
	return n
}

func (o *outcome) String() string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(o.responses)) {
		parts = append(parts, fmt.Sprintf("%d × %s", o.responses[status], status))
	}
	return strings.Join(parts, ", ")
}

// callAllOperations calls each operation of the API as often as the operation's rate limit allows, at even intervals, until ctx ends. Then it
// waits for the remaining responses. It returns the outcomes by the ids of the operations.
func (c *customer) callAllOperations(ctx context.Context, limits map[string]int, requestSpecs map[string]func(n int) requestSpec) map[string]*outcome {
	client := hostileClient()
	defer client.CloseIdleConnections()
	slots := make(chan struct{}, maxInFlight)
	sent := map[string]*outcome{}
	var callers sync.WaitGroup
	for operation, limit := range limits {
		o := &outcome{responses: map[string]int{}}
		sent[operation] = o
		callers.Go(func() {
			ticks := time.NewTicker(time.Minute / time.Duration(limit))
			defer ticks.Stop()
			for n := 0; ; n++ {
				select {
				case slots <- struct{}{}:
					request := requestSpecs[operation](n)
					callers.Go(func() {
						defer func() { <-slots }()
						c.sendRequest(context.WithoutCancel(ctx), client, request, o)
					})
				default:
					o.skipped++
				}
				select {
				case <-ctx.Done():
					return
				case <-ticks.C:
				}
			}
		})
	}
	callers.Wait()
	return sent
}

// sendRequest sends a request and counts its response.
func (c *customer) sendRequest(ctx context.Context, client *http.Client, request requestSpec, o *outcome) {
	began := time.Now()
	r, err := http.NewRequestWithContext(ctx, request.method, c.base+request.path, strings.NewReader(request.body))
	if err != nil {
		panic(err) // cannot happen, because the test builds a valid URL
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	if request.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if request.keyed {
		r.Header.Set("Idempotency-Key", uuid.NewString())
	}
	res, err := client.Do(r)
	var body []byte
	if err == nil {
		if request.onSuccess != nil {
			body, err = io.ReadAll(res.Body)
		} else {
			_, err = io.Copy(io.Discard, res.Body)
		}
		_ = res.Body.Close()
	}
	status := "no response"
	switch {
	case err == nil:
		status = fmt.Sprint(res.StatusCode)
	case res != nil: // the server sent the status but ended the body early, at the request's deadline
		status = fmt.Sprint(res.StatusCode, " cut off")
	}
	if request.onSuccess != nil && err == nil && res.StatusCode < http.StatusMultipleChoices {
		request.onSuccess(body)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.responses[status]++
	o.durations = append(o.durations, time.Since(began))
}

// decodeJSON decodes JSON into a value. If the JSON is invalid, the test fails but continues.
func decodeJSON(t *testing.T, text []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}
