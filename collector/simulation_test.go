package collector_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/collector/youtube"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// These flags configure the simulation, which runs the real collector, store and sandbox in simulated
// time. `make simulate` runs it with more videos and days.
var (
	simulatedVideos = flag.Int("simulation.videos", 120, "number of tracked videos")
	simulatedDays   = flag.Int("simulation.days", 10, "number of simulated days")
	simulatedOrgs   = flag.Int("simulation.orgs", 50, "number of organisations")
	simulationOut   = flag.String("simulation.out", "", "folder to write the chart to")
)

// simulationStep is how far the simulated clock advances when no target is due.
const simulationStep = 10 * time.Minute

// simulation is the state of one simulation run, with its organisations, tracked videos and measurements.
type simulation struct {
	t     *testing.T
	db    *storetest.DB // used only for the test's own SQL statements; the collector uses another store, which does not check SQL
	fast  *store.Store
	clock simulationClock
	// platformNow returns the current time of the simulated platforms.
	platformNow func() time.Time
	box         *sandbox.Sandbox
	client      *fetch.Client
	orgs        []*store.Org
	rng         *rand.Rand
	// pacific is the time zone of YouTube's quota day.
	pacific *time.Location

	tracked   []link.Link
	known     map[string]bool
	limits    map[string]int64 // maps the name of a budget to the number of units that may be used in one window
	scheduled map[string]scheduledFetch
	days      []simulatedDay

	mu       sync.Mutex
	units    map[string]int64 // maps the name and window of a budget to the number of units used so far
	requests map[string]int   // maps the id of a video to the number of its fetches since the clock last advanced
}

// simulationClock is the clock of the collector and of the store in a simulation.
type simulationClock interface {
	Now() time.Time
	Set(at time.Time)
	Advance(d time.Duration)
}

// scheduledFetch has the time of the last fetch of a target and the scheduled time of its next fetch.
type scheduledFetch struct{ at, next time.Time }

// simulatedDay has the measurements of one day.
type simulatedDay struct {
	calls         map[string]int64
	limits        map[string]int64
	fetches, late int
	maxDeviation  float64                 // largest deviation of a fetch from its scheduled time, as a fraction of the interval
	age           map[queue.Lane]quantile // age of Instagram's counts in each lane at the end of the day
	throttle      float64                 // throttle of Instagram's videos, measured at the end of the day
}

type quantile struct{ median, p95 time.Duration }

// RoundTrip passes a request to ServeHTTP without a network connection.
func (s *simulation) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// ServeHTTP passes a request to the sandbox. It also adds one unit to the used units of the request's budget.
func (s *simulation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	budget, window := "tiktok", s.clock.Now().UTC().Format(time.DateOnly)
	switch {
	case strings.HasPrefix(r.URL.Path, "/youtube/"):
		window = s.clock.Now().In(s.pacific).Format(time.DateOnly)
		if budget = "youtube/common"; strings.HasSuffix(r.URL.Path, "batchGetStats") {
			budget = "youtube/stats"
		}
	case strings.Contains(r.URL.Path, "/instagram/"):
		budget = "instagram"
	}
	s.mu.Lock()
	s.units[budget+" "+window]++
	s.mu.Unlock()
	s.box.Handler().ServeHTTP(w, r)
}

// recordingSource is a source that counts the fetches of each video.
type recordingSource struct {
	source.Source
	s *simulation
}

func (n recordingSource) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	n.s.mu.Lock()
	for _, t := range batch {
		n.s.requests[t.ExternalID]++
	}
	n.s.mu.Unlock()
	return n.Source.Fetch(ctx, batch, budget)
}

// newSimulation creates a simulation with new organisations in a database. platformNow returns the current time of the platforms, which may
// differ from the time of the collector's clock.
func newSimulation(t *testing.T, db *storetest.DB, collectorClock simulationClock, platformNow func() time.Time) *simulation {
	t.Helper()
	collectorClock.Set(time.Date(2026, 10, 5, 0, 0, 0, 0, time.UTC))
	pacific, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	fast, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: collectorClock.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fast.Close()) })
	s := &simulation{t: t, db: db, fast: fast, clock: collectorClock, platformNow: platformNow, box: sandbox.New(sandbox.Options{Now: platformNow}), rng: rand.New(rand.NewPCG(1, 2)), pacific: pacific,
		known: map[string]bool{}, scheduled: map[string]scheduledFetch{}, units: map[string]int64{}, requests: map[string]int{}}
	s.client = fetch.New(fetch.Options{Transport: s})
	for i := range *simulatedOrgs {
		tier, subscription := store.TierBasic, store.SubscriptionActive
		switch i % 5 {
		case 0:
			tier = store.TierPremium
		case 1, 2:
			subscription = store.SubscriptionNone
		}
		o, err := fast.CreateOrganisation(t.Context(), fmt.Sprintf("Organisation %d", i), tier, subscription)
		require.NoError(t, err)
		s.orgs = append(s.orgs, fast.Org(o.ID))
	}
	return s
}

// newCollector returns a collector that fetches only while a test calls ClaimAndFetch. Its budgets are in dailyLimits: the key of a budget, and the
// number of its units per day.
func (s *simulation) newCollector(dailyLimits map[string]int64) *collector.Collector {
	s.t.Helper()
	s.limits = dailyLimits
	sources, err := simulatedSources("http://sandbox", s.client, s.clock.Now, dailyLimits)
	require.NoError(s.t, err)
	for i, source := range sources {
		sources[i] = recordingSource{source, s}
	}
	c, err := collector.New(collector.Options{Store: s.fast, Sources: sources, Now: s.clock.Now, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(s.t, err)
	require.NoError(s.t, c.Start(s.t.Context()))
	return c
}

// simulatedSources returns sources for YouTube, TikTok and Instagram. TikTok and Instagram are fetched from a vendor, with a budget for
// each.
func simulatedSources(base string, client *fetch.Client, now func() time.Time, limits map[string]int64) ([]source.Source, error) {
	yt, err := youtube.New(youtube.Options{BaseURL: base + "/youtube/", APIKey: sandbox.YouTubeAPIKey, Client: client, Now: now,
		CommonLimit: limits["youtube/common"], StatsLimit: limits["youtube/stats"]})
	if err != nil {
		return nil, err
	}
	sources := []source.Source{yt}
	for _, p := range []link.Platform{link.TikTok, link.Instagram} {
		config, err := vendor.Load("sandbox")
		if err != nil {
			return nil, err
		}
		config.Name = string(p)
		config.Calls = slices.DeleteFunc(config.Calls, func(c vendor.Call) bool { return c.Platform != p })
		config.Limits = []vendor.Limit{{Name: "calls", Calls: limits[string(p)], Per: "day"}}
		v, err := vendor.New(config, vendor.Options{BaseURL: base + "/vendor", Key: sandbox.VendorKey, Client: client, Now: now})
		if err != nil {
			return nil, err
		}
		sources = append(sources, v)
	}
	return sources, nil
}

// findVideos returns n videos of a platform that are not tracked yet. It takes only the newest videos of each account, at most perAccount.
func (s *simulation) findVideos(p link.Platform, n, perAccount int) []link.Link {
	s.t.Helper()
	var found []link.Link
	w := s.box.World()
	now := s.platformNow()
	for number := uint32(1); len(found) < n; number++ {
		ids := w.Uploads(p, w.Handle(p, number), now)
		for _, id := range ids[:min(perAccount, len(ids))] {
			v, ok := w.Video(p, id, now)
			if !ok || s.known[id] || len(found) == n {
				continue
			}
			l, err := link.Parse(v.Link)
			require.NoError(s.t, err)
			s.known[id] = true
			found = append(found, l)
		}
	}
	return found
}

// trackLinks lets random organisations track each link. With a probability of 30 %, two to four organisations track the link. In all
// other cases, one organisation tracks it. If immediate is false, the first fetch of each video waits for the video's time of day.
func (s *simulation) trackLinks(links []link.Link, immediate bool) {
	s.t.Helper()
	byOrg := map[int][]link.Link{}
	for _, l := range links {
		trackers := 1
		if s.rng.Float64() < 0.3 {
			trackers = 2 + s.rng.IntN(3)
		}
		for _, o := range s.rng.Perm(len(s.orgs))[:min(trackers, len(s.orgs))] {
			byOrg[o] = append(byOrg[o], l)
		}
	}
	for i, o := range s.orgs {
		for chunk := range slices.Chunk(byOrg[i], 500) {
			r := store.TrackRequest{Links: chunk, Allowance: len(chunk), Scheduled: !immediate}
			if immediate {
				r.Immediate = len(chunk)
			}
			_, err := o.Track(s.t.Context(), r)
			require.NoError(s.t, err)
		}
	}
	s.tracked = append(s.tracked, links...)
}

// fetchDueTargets runs the collector until no target is due. It then compares the times of the fetches with the schedule.
func (s *simulation) fetchDueTargets(c *collector.Collector, day *simulatedDay) {
	s.t.Helper()
	for busy := true; busy; {
		var err error
		busy, err = c.ClaimAndFetch(s.t.Context())
		require.NoError(s.t, err)
	}
	now := s.clock.Now()
	ids, fetched := make([]string, 0, len(s.requests)), maps.Clone(s.requests)
	for id, n := range s.requests {
		require.Equal(s.t, 1, n, "video %s must be fetched once, but was fetched %d times at %s", id, n, now)
		ids = append(ids, id)
		// A fetch that was scheduled less than an hour after the previous fetch is a retry. Its time is not compared with the schedule.
		if p, ok := s.scheduled[id]; ok && p.next.Sub(p.at) >= time.Hour {
			// The deviation is the time between the planned and the actual fetch, as a fraction of the planned
			// interval. An interval of less than six hours counts as six hours.
			deviation := math.Abs(now.Sub(p.next).Hours()) / max(6, p.next.Sub(p.at).Hours())
			day.fetches++
			day.maxDeviation = max(day.maxDeviation, deviation)
			if deviation > 0.05 {
				s.t.Logf("video %s must be fetched at %s, but was fetched at %s", id, p.next, now)
				day.late++
			}
		}
	}
	clear(s.requests)
	for id, p := range s.scheduled { // the collector has also postponed due targets without a fetch; their new times are read below
		if !p.next.After(now) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for chunk := range slices.Chunk(slices.Compact(ids), 500) {
		args := make([]any, len(chunk))
		for i, id := range chunk {
			args[i] = id
		}
		rows := storetest.Column[string](s.t, s.db, "SELECT external_id || ' ' || next_at FROM fetch_targets WHERE external_id IN (?"+strings.Repeat(", ?", len(chunk)-1)+")", args...)
		for _, row := range rows {
			id, next, _ := strings.Cut(row, " ")
			at, err := strconv.ParseInt(next, 10, 64)
			require.NoError(s.t, err)
			if p, known := s.scheduled[id]; known && !p.next.After(now) && fetched[id] == 0 {
				s.scheduled[id] = scheduledFetch{p.at, store.Instant(at).Time()}
			} else {
				s.scheduled[id] = scheduledFetch{now, store.Instant(at).Time()}
			}
		}
	}
}

// agesOfCounts returns, for each lane, the median and the 95th percentile of the age of Instagram's stored counts.
func (s *simulation) agesOfCounts() map[queue.Lane]quantile {
	s.t.Helper()
	ages := map[queue.Lane][]time.Duration{}
	rows := storetest.Column[string](s.t, s.db, "SELECT base_lane || ' ' || fetched_at FROM fetch_targets WHERE fetched_at IS NOT NULL AND state = 'active' AND source = 'instagram'")
	for _, row := range rows {
		lane, fetched, _ := strings.Cut(row, " ")
		l, err := strconv.Atoi(lane)
		require.NoError(s.t, err)
		at, err := strconv.ParseInt(fetched, 10, 64)
		require.NoError(s.t, err)
		ages[queue.Lane(l)] = append(ages[queue.Lane(l)], s.clock.Now().Sub(store.Instant(at).Time()))
	}
	out := map[queue.Lane]quantile{}
	for lane, a := range ages {
		slices.Sort(a)
		out[lane] = quantile{a[len(a)/2], a[len(a)*95/100]}
	}
	return out
}

// runDay simulates one day with a collector and appends the measurements of the day to s.days.
func (s *simulation) runDay(c *collector.Collector) {
	s.t.Helper()
	before := s.totalUsedUnits()
	day := simulatedDay{limits: s.limits, calls: map[string]int64{}}
	for end := s.clock.Now().Add(24 * time.Hour); s.clock.Now().Before(end); s.clock.Advance(simulationStep) {
		s.fetchDueTargets(c, &day)
		require.NoError(s.t, c.RunJobs(s.t.Context()))
	}
	for budget, n := range s.totalUsedUnits() {
		day.calls[budget] = n - before[budget]
	}
	day.age, day.throttle = s.agesOfCounts(), float64(c.Throttle(link.Instagram))
	s.days = append(s.days, day)
	for window, n := range s.units {
		budget, _, _ := strings.Cut(window, " ")
		require.LessOrEqual(s.t, n, s.limits[budget], "%s: the used units must not exceed the budget", window)
	}
}

func (s *simulation) totalUsedUnits() map[string]int64 {
	totals := map[string]int64{}
	for window, n := range s.units {
		budget, _, _ := strings.Cut(window, " ")
		totals[budget] += n
	}
	return totals
}

func TestSimulation_fetchesFollowTheScheduleAndTheBudgets(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	db := storetest.New(t, "sqlite")
	s, videos, days := newSimulation(t, db, db.Clock, db.Clock.Now), *simulatedVideos, *simulatedDays
	instagram := max(30, videos/20)
	rest := videos - instagram
	newPerDay := max(1, rest/20/days) // number of new YouTube videos a day; TikTok has the same number
	s.trackLinks(s.findVideos(link.YouTube, rest/2-newPerDay*days, 50), false)
	s.trackLinks(s.findVideos(link.TikTok, rest/2-newPerDay*days, 50), false)
	s.trackLinks(s.findVideos(link.Instagram, instagram, 50), false)

	// Each fetch of an Instagram video needs its own call. In the middle of the simulation, Instagram's budget is too small for all
	// fetches.
	ampleBudgets := map[string]int64{"youtube/common": 10_000, "youtube/stats": 10_000, "tiktok": int64(2 * videos), "instagram": int64(6 * instagram)}
	shortBudgets := map[string]int64{"youtube/common": 10_000, "youtube/stats": 10_000, "tiktok": int64(2 * videos), "instagram": int64(instagram) * 8 / 10}
	shortFrom, shortTo := days*3/10, days*6/10
	c := s.newCollector(ampleBudgets)
	for day := range days {
		switch day {
		case shortFrom:
			clear(s.units) // forget the units of earlier days, because they may exceed the new, smaller budget of Instagram
			c = s.newCollector(shortBudgets)
		case shortTo:
			c = s.newCollector(ampleBudgets)
		}
		if day > 0 {
			s.trackLinks(s.findVideos(link.YouTube, newPerDay, 1), true)
			s.trackLinks(s.findVideos(link.TikTok, newPerDay, 1), true)
		}
		s.runDay(c)
		d := s.days[day]
		t.Logf("day %3d: %d fetches, %d of them early or late by more than 5 %%, largest deviation %.1f %%; calls %v; throttle %.2f", day+1, d.fetches, d.late, 100*d.maxDeviation, d.calls, d.throttle)
	}
	if *simulationOut != "" {
		require.NoError(t, os.WriteFile(filepath.Join(*simulationOut, "schedule.svg"), []byte(s.drawCharts()), 0o644))
	}
	fetches, late := 0, 0
	for i, d := range s.days {
		fetches, late = fetches+d.fetches, late+d.late
		if i >= shortTo+8 || i < shortFrom {
			require.Zero(t, d.throttle, "day %d: the fetches must not be throttled, because the budgets are large enough", i+1)
		}
	}
	require.Positive(t, fetches)
	require.Zero(t, late, "all %d fetches must be on time", fetches)
	require.Positive(t, s.days[shortTo-1].throttle, "Instagram's videos must be throttled while the budget is too small")
	require.LessOrEqual(t, s.days[shortTo-1].age[queue.LanePremium].p95, 26*time.Hour, `the lane "premium" must not be throttled`)
	require.Greater(t, s.days[shortTo-1].age[queue.LaneFree].p95, 26*time.Hour, `the lane "free" must be throttled`)
}
