package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
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
	hostileOut     = flag.String("hostile.out", "", "path of the page with the results of TestHostileRequests_useLittleTimeAndMemory; if it is set, the test measures more and longer")
	hostileRuns    = flag.Int("hostile.runs", 2, "number of measurements of each case if hostile.out is set; the page shows the highest cost")
	hostileWindows = flag.Int("hostile.windows", 3, "number of latency measurements if hostile.out is set; each one measures normal requests first alone, and then together with hostile requests")
)

// These limits hold for all requests of one hostileCase together. If hostileCase.large is true, the requests may exceed
// maxCPUTime. If also hostileCase.streamed is false, they may exceed maxMemory, a number of bytes.
const (
	maxCPUTime = time.Second
	maxMemory  = 64 << 20
)

// hostileSize determines the amount of data and the number of measurements in TestHostileRequests_useLittleTimeAndMemory.
type hostileSize struct {
	videos, days int
	runs         int           // number of measurements of each test case, of which only the highest cost is used
	retries      int           // if a test case exceeds the limits, it is measured again up to this number of times, and its lowest cost is used
	windows      int           // number of pairs of periods; the first period of a pair has only normal requests, and the second one also has an attack
	window       time.Duration // length of one period
}

// hostileData describes the organisation that tries to overload the server: its token, and the ids and links in its requests.
type hostileData struct {
	token            string
	videos, accounts []string // ids of the videos and accounts
	links            []string // links of the videos
	wide             []string // ids of collections, each of which contains all accounts
	chain            []string // ids of collections with 1,000 videos each; each collection is the parent of the next collection in the list
	changeable       string   // id of a collection that the attack changes
	cursor           string   // next_cursor of a response of GET /collections
	period           string   // query parameters start_date and end_date for the last 730 days
}

// wideCollections is the number of collections in hostileData.wide.
const wideCollections = 400

// Each test case must stay within maxCPUTime and maxMemory. Cases with lists of up to 5,000 rows
// are an exception: see hostileCase.
//
//nolint:paralleltest // the test loads the whole machine, so that parallel tests with short timeouts would fail
func TestHostileRequests_useLittleTimeAndMemory(t *testing.T) {
	storetest.SkipIfShort(t)
	size := hostileSize{videos: 2000, days: 3, runs: 1, retries: 2, windows: 1, window: 3 * time.Second}
	if *hostileOut != "" {
		size = hostileSize{videos: 5000, days: 730, runs: *hostileRuns, windows: *hostileWindows, window: 20 * time.Second}
	}
	db := storetest.NewServer(t).New(t, "hostile")
	db.Exec(t, "ALTER SYSTEM SET autovacuum = off") // switch autovacuum off, because its cost would be counted as part of a request
	db.Exec(t, "SELECT pg_reload_conf()")
	postmaster := findPostmaster(t, db)
	s := &stack{sandboxProcess: startSandbox(t)}
	s.env = append(slices.Clone(s.sandboxProcess.env), "REELTALLY_DATABASE_URL="+db.URL, "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_METRICS_LISTEN=127.0.0.1:0")
	callers := newHonestCallers(t, s)
	data := newHostileData(t, s, size)
	db.Exec(t, "VACUUM ANALYZE")

	var rows []hostileRow
	for i, c := range hostileCases() {
		t.Run(c.name, func(t *testing.T) {
			row := hostileRow{hostileCase: c}
			for run := 0; run < size.runs || (run < size.runs+size.retries && !row.withinLimits()); run++ {
				a, used := s.measureCase(t, data, callers, c, postmaster)
				switch {
				case run == 0:
					row.cost, row.responses = used, a.summary()
				case run < size.runs:
					row.cost = highestCost(row.cost, used)
				default:
					row.cost = lowestCost(row.cost, used)
				}
			}
			rows = append(rows, row)
			if *hostileOut != "" {
				printProgress(os.Stderr, "%d. %s: %s", i+1, c.name, row)
			}
			t.Log(row)
			require.NotRegexp(t, `(^|, )500`, row.responses, "no response may have the status 500")
			if !c.large {
				require.LessOrEqual(t, row.cost.server, maxCPUTime, "the server must not exceed the limit of CPU time: %s", row)
				require.LessOrEqual(t, row.cost.database, maxCPUTime, "PostgreSQL must not exceed the limit of CPU time: %s", row)
			}
			if !c.large || c.streamed {
				require.LessOrEqual(t, row.cost.memory, int64(maxMemory), "the server must not exceed the limit of memory: %s", row)
			}
		})
	}
	require.GreaterOrEqual(t, len(rows), 40)
	var honest honestResult
	if size.windows > 0 {
		honest = s.measureHonestCallers(t, data, callers, size)
	}
	if *hostileOut != "" {
		page := hostilePage(t, rows, honest, size)
		require.NoError(t, os.WriteFile(*hostileOut, []byte(page), 0o600))
		require.LessOrEqual(t, honest.ratio, 2.0, "the p99 of normal requests during hostile requests must be at most twice the p99 without hostile requests")
	}
	require.Empty(t, honest.failed, "all requests of honest callers must succeed")
}

// measureCase measures the cost of a test case on a new server process. In a running server, memory
// from earlier cases would change the result.
func (s *stack) measureCase(t *testing.T, data *hostileData, callers *honestCallers, c hostileCase, postmaster int) (*attack, cost) {
	t.Helper()
	own := &stack{sandboxProcess: s.sandboxProcess, env: s.env}
	m := startMeteredServer(t, own, postmaster)
	for kind := range honestKinds { // a server uses more memory after its first responses, so send requests before the measurement
		require.Empty(t, callers.sendRequest(t.Context(), own.base, kind, 0).fail)
	}
	a := newAttack(t, data, own.base)
	if c.prepare != nil {
		c.prepare(a)
	}
	used := m.measure(t, func() { c.run(a) })
	require.Equal(t, http.StatusOK, requireResponse(t, http.MethodGet, own.base+"/readyz", "", nil).status, "the server must still run after the case")
	own.server.kill()
	return a, used
}

// hostileRow is one row of the table in docs/evidence/hostile-requests.md.
type hostileRow struct {
	hostileCase
	cost      cost
	responses string
}

// withinLimits returns true if the cost is within the limits that apply to the case. See
// hostileCase.large and hostileCase.streamed.
func (r hostileRow) withinLimits() bool {
	return (r.large || r.cost.server <= maxCPUTime && r.cost.database <= maxCPUTime) && (r.large && !r.streamed || r.cost.memory <= maxMemory)
}

func (r hostileRow) String() string {
	return fmt.Sprintf("CPU time: server %d ms, database %d ms; memory: %.1f MiB; duration: %d ms; responses: %s", r.cost.server.Milliseconds(), r.cost.database.Milliseconds(),
		inMebibytes(r.cost.memory), r.cost.elapsed.Milliseconds(), r.responses)
}

func inMebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// highestCost returns a cost in which each field has the higher value of a and b.
func highestCost(a, b cost) cost {
	return cost{max(a.server, b.server), max(a.database, b.database), max(a.elapsed, b.elapsed), max(a.memory, b.memory)}
}

// lowestCost returns a cost in which each field has the lower value of a and b.
func lowestCost(a, b cost) cost {
	return cost{min(a.server, b.server), min(a.database, b.database), min(a.elapsed, b.elapsed), min(a.memory, b.memory)}
}

// databaseURL returns the URL of the stack's database, or "" if s.env has no such setting.
func (s *stack) databaseURL() string {
	for _, setting := range s.env {
		if url, found := strings.CutPrefix(setting, "REELTALLY_DATABASE_URL="); found {
			return url
		}
	}
	return ""
}

// seedOrganisations runs `reeltally seed` with args, which creates organisations with made-up data, and returns the ids of the organisations.
func (s *stack) seedOrganisations(t *testing.T, args ...string) []uuid.UUID {
	t.Helper()
	var ids []uuid.UUID
	for line := range strings.Lines(runOperator(t, s.env, append([]string{"seed", "--json"}, args...)...)) {
		var filled struct {
			ID uuid.UUID `json:"organisation_id"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &filled))
		ids = append(ids, filled.ID)
	}
	return ids
}

// newHostileData creates the organisation that tries to overload the server, with videos, accounts and collections. It creates the
// collections through the API of a server without rate limits.
func newHostileData(t *testing.T, s *stack, size hostileSize) *hostileData {
	t.Helper()
	today := time.Now().UTC()
	d := &hostileData{period: "start_date=" + today.AddDate(0, 0, -729).Format(time.DateOnly) + "&end_date=" + today.Format(time.DateOnly)}
	id := s.seedOrganisations(t, "--videos", fmt.Sprint(size.videos), "--days", fmt.Sprint(size.days))[0]
	var made struct{ Token string }
	require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "token", "create", "--org", id.String(), "--name", "Hostile", "--json")), &made))
	d.token = made.Token
	free := &stack{sandboxProcess: s.sandboxProcess, env: append(slices.Clone(s.env), "REELTALLY_RATE_LIMITS=off"), token: d.token}
	free.startServer(t)
	defer free.server.kill()

	for _, v := range free.listVideos(t) {
		d.videos, d.links = append(d.videos, v.ID), append(d.links, v.Link)
	}
	var accounts []struct {
		ID string `json:"account_id"`
	}
	free.requireSuccessfulGet(t, "/accounts?limit=5000").decode(t, &accounts)
	for _, a := range accounts {
		d.accounts = append(d.accounts, a.ID)
	}
	d.wide = make([]string, wideCollections)
	var makers errgroup.Group
	makers.SetLimit(4)
	for i := range d.wide {
		makers.Go(func() error {
			id, err := free.createCollection(t, fmt.Sprintf("All accounts, collection %d", i), "")
			if err != nil {
				return err
			}
			d.wide[i] = id
			return free.addMembers(t, id, "/accounts", "account_ids", d.accounts)
		})
	}
	require.NoError(t, makers.Wait())
	for level, parent := 0, ""; level < 10; level++ {
		id, err := free.createCollection(t, fmt.Sprintf("Level %d", level+1), parent)
		require.NoError(t, err)
		parent = id
		d.chain = append(d.chain, parent)
		require.NoError(t, free.addMembers(t, parent, "/videos", "video_ids", d.videos[:1000]))
	}
	var err error
	d.changeable, err = free.createCollection(t, "Spare", "")
	require.NoError(t, err)
	var page struct {
		Pagination struct {
			NextCursor string `json:"next_cursor"`
		}
	}
	free.requireSuccessfulGet(t, "/collections?paginated=true&limit=1").decode(t, &page)
	d.cursor = page.Pagination.NextCursor
	require.NotEmpty(t, d.cursor)
	return d
}

// requireSuccessfulGet sends a GET request with the token of the stack. It fails the test if the status is 300 or higher.
func (s *stack) requireSuccessfulGet(t *testing.T, path string) response {
	t.Helper()
	a, err := s.sendSuccessfully(t, http.MethodGet, path, nil)
	require.NoError(t, err)
	return a
}

// sendSuccessfully sends a request with the token of the stack. It returns an error if the status is 300 or higher.
func (s *stack) sendSuccessfully(t *testing.T, method, path string, body any) (response, error) {
	t.Helper()
	a, err := sendJSON(t, method, s.base+path, s.token, body)
	if err == nil && a.status >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: status %d: %s", method, path, a.status, a.body)
	}
	return a, err
}

// createCollection creates a collection and returns its id. If parent is "", the collection has no parent.
func (s *stack) createCollection(t *testing.T, name, parent string) (string, error) {
	t.Helper()
	body := map[string]any{"name": name}
	if parent != "" {
		body["parent_id"] = parent
	}
	a, err := s.sendSuccessfully(t, http.MethodPost, "/collections", body)
	if err != nil {
		return "", err
	}
	var made struct{ ID string }
	err = json.Unmarshal(a.body, &made)
	return made.ID, err
}

// addMembers adds videos or accounts to a collection, 100 in each request. pathEnd is "/videos" or
// "/accounts", and idsMember is "video_ids" or "account_ids".
func (s *stack) addMembers(t *testing.T, collection, pathEnd, idsMember string, ids []string) error {
	t.Helper()
	for chunk := range slices.Chunk(ids, 100) {
		if _, err := s.sendSuccessfully(t, http.MethodPost, "/collections/"+collection+pathEnd, map[string]any{idsMember: chunk}); err != nil {
			return err
		}
	}
	return nil
}

// hostileInterval is the minimum time between the starts of two test cases that try to overload the server, while the latency of normal
// requests is measured.
const hostileInterval = 250 * time.Millisecond

// honestResult is the latency of normal requests, without and during an attack on the server.
type honestResult struct {
	alone     []timing       // timings of normal requests in the periods without an attack
	during    []timing       // timings of normal requests in the periods with an attack
	ratio     float64        // p99During divided by p99Alone
	p99Alone  time.Duration  // the 99th percentile is computed for each period without an attack; p99Alone is the median of these values
	p99During time.Duration  // the 99th percentile is computed for each period with an attack; p99During is the median of these values
	hostile   map[string]int // number of responses to requests of the attack, by status and problem code
	failed    map[string]int // number of failed normal requests, by reason
}

// measureHonestCallers measures the latency of normal requests in pairs of periods. In the second
// period of a pair, one organisation also attacks the server.
func (s *stack) measureHonestCallers(t *testing.T, data *hostileData, callers *honestCallers, size hostileSize) honestResult {
	t.Helper()
	shared := &stack{sandboxProcess: s.sandboxProcess, env: s.env}
	shared.startServer(t)
	attacker := newAttack(t, data, shared.base)
	var limitedCases []hostileCase
	for _, c := range hostileCases() {
		if !c.large {
			limitedCases = append(limitedCases, c)
		}
	}
	next := 0
	var out honestResult
	var alone, during []time.Duration
	for window := range size.windows {
		ctx, stop := context.WithTimeout(t.Context(), size.window)
		quiet := callers.sendRequests(ctx, shared.base)
		stop()
		out.alone, alone = append(out.alone, quiet...), append(alone, percentile(quiet, -1, 99))

		ctx, stop = context.WithTimeout(t.Context(), size.window)
		var attackers sync.WaitGroup
		attackers.Go(func() { next = runCasesInTurn(ctx, attacker, limitedCases, next) })
		busy := callers.sendRequests(ctx, shared.base)
		stop()
		attackers.Wait()
		out.during, during = append(out.during, busy...), append(during, percentile(busy, -1, 99))
		if *hostileOut != "" {
			printProgress(os.Stderr, "honest callers, window %d of %d: p99 %s alone, %s during hostile requests", window+1, size.windows, alone[window], during[window])
		}
	}
	out.failed = countFailures(append(slices.Clone(out.alone), out.during...))
	out.p99Alone, out.p99During = median(alone), median(during)
	out.ratio = float64(out.p99During) / float64(out.p99Alone)
	out.hostile = attacker.responses
	t.Logf("honest callers: p99 %s alone, %s during hostile requests, ratio %.2f; responses to hostile requests: %s", out.p99Alone, out.p99During, out.ratio, attacker.summary())
	return out
}

// runCasesInTurn runs the test cases in turn until ctx ends. It begins with the case at the index
// firstCase, and returns the index of the case that is next.
func runCasesInTurn(ctx context.Context, a *attack, cases []hostileCase, firstCase int) int {
	ticks := time.NewTicker(hostileInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return firstCase
		case <-ticks.C:
		}
		c := cases[firstCase%len(cases)]
		firstCase++
		if c.prepare != nil {
			c.prepare(a)
		}
		c.run(a)
	}
}
