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

// The simulation lets the real collector, store and sandbox live through weeks in minutes: the clock moves on only when
// nothing is due. `make simulate` runs it at its full size and draws docs/evidence/schedule.svg.
var (
	simulatedVideos = flag.Int("simulation.videos", 120, "videos that are tracked")
	simulatedDays   = flag.Int("simulation.days", 10, "days")
	simulatedOrgs   = flag.Int("simulation.orgs", 50, "organisations")
	simulationOut   = flag.String("simulation.out", "", "folder for the picture")
)

// tick is how far the clock moves when nothing is due.
const tick = 10 * time.Minute

// simulation is one run.
type simulation struct {
	t     *testing.T
	db    *storetest.DB // of which the rules for statements are held elsewhere: here it would take most of the time
	fast  *store.Store
	clock worldClock
	// platforms is the clock by which the platforms' numbers move.
	platformNow func() time.Time
	box         *sandbox.Sandbox
	client      *fetch.Client
	orgs        []*store.Org
	lanes       []queue.Lane
	rng         *rand.Rand
	// pacific is where YouTube's day begins.
	pacific *time.Location

	tracked []link.Link
	known   map[string]bool
	limits  map[string]int64 // by budget, units a window
	plans   map[string]plan
	days    []simulatedDay

	mu       sync.Mutex
	units    map[string]int64 // by budget and window
	requests map[string]int   // since the last tick, by id
}

// worldClock is the clock of everything in a simulation.
type worldClock interface {
	Now() time.Time
	Set(at time.Time)
	Advance(d time.Duration)
}

// planned is a fetch and what the schedule said then.
type plan struct{ at, next time.Time }

// simulatedDay is what a day was like.
type simulatedDay struct {
	calls         map[string]int64
	limits        map[string]int64
	fetches, late int
	maxDeviation  float64                 // the largest deviation, as a share of the wait
	age           map[queue.Lane]quantile // of the numbers as the day ended
	throttle      float64                 // of Instagram, which has the short budget
}

type quantile struct{ median, p95 time.Duration }

// RoundTrip hands a request to the sandbox without a network, and counts what it costs.
func (s *simulation) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// ServeHTTP is the sandbox, and counts what a request costs.
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

// noted is a source of which it is noted which videos it was asked for.
type recordingSource struct {
	source.Source
	s *simulation
}

func (n recordingSource) Fetch(ctx context.Context, batch []source.Target, budget *source.CallBudget) ([]source.Result, error) {
	n.s.mu.Lock()
	for _, t := range batch {
		n.s.requests[t.ExternalID]++
	}
	n.s.mu.Unlock()
	return n.Source.Fetch(ctx, batch, budget)
}

// newSimulation begins a simulation in a database. Its platforms live by a clock that may differ from its own.
func newSimulation(t *testing.T, db *storetest.DB, clock worldClock, platformNow func() time.Time) *simulation {
	t.Helper()
	clock.Set(time.Date(2026, 10, 5, 0, 0, 0, 0, time.UTC))
	pacific, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	fast, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: clock.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fast.Close()) })
	s := &simulation{t: t, db: db, fast: fast, clock: clock, platformNow: platformNow, box: sandbox.New(sandbox.Options{Now: platformNow}), rng: rand.New(rand.NewPCG(1, 2)), pacific: pacific,
		known: map[string]bool{}, plans: map[string]plan{}, units: map[string]int64{}, requests: map[string]int{}}
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
		s.orgs, s.lanes = append(s.orgs, fast.Org(o.ID)), append(s.lanes, store.LaneOf(o))
	}
	return s
}

// collect starts a collector with budgets, in units a day.
func (s *simulation) newCollector(limits map[string]int64) *collector.Collector {
	s.t.Helper()
	s.limits = limits
	sources, err := simulatedSources("http://sandbox", s.client, s.clock.Now, limits)
	require.NoError(s.t, err)
	for i, source := range sources {
		sources[i] = recordingSource{source, s}
	}
	c, err := collector.New(collector.Options{Store: s.fast, Sources: sources, Now: s.clock.Now, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(s.t, err)
	require.NoError(s.t, c.Start(s.t.Context()))
	return c
}

// simulatedSources are YouTube and, by the same vendor each with an account of its own, TikTok and Instagram.
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

// find returns so many videos of a platform's accounts that are not tracked yet, of each account up to so many of its
// newest.
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

// track has organisations track videos: 30 % of them two to four, the others one.
func (s *simulation) track(links []link.Link, immediate bool) {
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
			r := store.TrackRequest{Links: chunk, Lane: s.lanes[i], Enqueue: len(chunk)}
			if immediate {
				r.Immediate = len(chunk)
			}
			_, err := o.Track(s.t.Context(), r)
			require.NoError(s.t, err)
		}
	}
	s.tracked = append(s.tracked, links...)
}

// work lets the collector do all that is due now, and compares what it did with what the schedule had said.
func (s *simulation) fetchDue(c *collector.Collector, day *simulatedDay) {
	s.t.Helper()
	for busy := true; busy; {
		var err error
		busy, err = c.Round(s.t.Context())
		require.NoError(s.t, err)
	}
	now := s.clock.Now()
	ids, fetched := make([]string, 0, len(s.requests)), maps.Clone(s.requests)
	for id, n := range s.requests {
		require.Equal(s.t, 1, n, "%s was asked for %d times at %s", id, n, now)
		ids = append(ids, id)
		// Of what is asked for again within the hour, since it was refused or is doubted, the wait is a matter of seconds.
		if p, ok := s.plans[id]; ok && p.next.Sub(p.at) >= time.Hour {
			// A turn of the day that comes before the six hours are over is as exact as the others.
			deviation := math.Abs(now.Sub(p.next).Hours()) / max(6, p.next.Sub(p.at).Hours())
			day.fetches++
			day.maxDeviation = max(day.maxDeviation, deviation)
			if deviation > 0.05 {
				s.t.Logf("%s was due at %s and was fetched at %s", id, p.next, now)
				day.late++
			}
		}
	}
	clear(s.requests)
	for id, p := range s.plans { // what should have been fetched and was not may have been put off
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
			if p, known := s.plans[id]; known && !p.next.After(now) && fetched[id] == 0 {
				s.plans[id] = plan{p.at, store.Instant(at).Time()}
			} else {
				s.plans[id] = plan{now, store.Instant(at).Time()}
			}
		}
	}
}

// ages are how old the numbers of a lane's videos are.
func (s *simulation) ages() map[queue.Lane]quantile {
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

// live lets a day pass.
func (s *simulation) runDay(c *collector.Collector) {
	s.t.Helper()
	before := s.total()
	day := simulatedDay{limits: s.limits, calls: map[string]int64{}}
	for end := s.clock.Now().Add(24 * time.Hour); s.clock.Now().Before(end); s.clock.Advance(tick) {
		s.fetchDue(c, &day)
		require.NoError(s.t, c.RunJobs(s.t.Context()))
	}
	for budget, n := range s.total() {
		day.calls[budget] = n - before[budget]
	}
	day.age, day.throttle = s.ages(), float64(c.Throttle(link.Instagram))
	s.days = append(s.days, day)
	for window, n := range s.units {
		budget, _, _ := strings.Cut(window, " ")
		require.LessOrEqual(s.t, n, s.limits[budget], "%s: more units than there are", window)
	}
}

func (s *simulation) total() map[string]int64 {
	totals := map[string]int64{}
	for window, n := range s.units {
		budget, _, _ := strings.Cut(window, " ")
		totals[budget] += n
	}
	return totals
}

func TestSimulation_keepsScheduleAndBudgets(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	db := storetest.New(t, "sqlite")
	s, videos, days := newSimulation(t, db, db.Clock, db.Clock.Now), *simulatedVideos, *simulatedDays
	instagram := max(30, videos/20)
	rest := videos - instagram
	newPerDay := max(1, rest/20/days) // a day, of either platform
	s.track(s.findVideos(link.YouTube, rest/2-newPerDay*days, 50), false)
	s.track(s.findVideos(link.TikTok, rest/2-newPerDay*days, 50), false)
	s.track(s.findVideos(link.Instagram, instagram, 50), false)

	// Instagram costs a call a video and time. In the middle of the time there is far less than all turns would take.
	ampleBudgets := map[string]int64{"youtube/common": 10_000, "youtube/stats": 10_000, "tiktok": int64(2 * videos), "instagram": int64(6 * instagram)}
	shortBudgets := map[string]int64{"youtube/common": 10_000, "youtube/stats": 10_000, "tiktok": int64(2 * videos), "instagram": int64(instagram) * 8 / 10}
	shortFrom, shortTo := days*3/10, days*6/10
	c := s.newCollector(ampleBudgets)
	for day := range days {
		switch day {
		case shortFrom:
			clear(s.units) // of Instagram they ended with the day; the others' budgets stay as they are
			c = s.newCollector(shortBudgets)
		case shortTo:
			c = s.newCollector(ampleBudgets)
		}
		if day > 0 {
			s.track(s.findVideos(link.YouTube, newPerDay, 1), true)
			s.track(s.findVideos(link.TikTok, newPerDay, 1), true)
		}
		s.runDay(c)
		d := s.days[day]
		t.Logf("day %3d: %d fetches, %d not within 5 %%, the worst %.1f %%; calls %v; throttle %.2f", day+1, d.fetches, d.late, 100*d.maxDeviation, d.calls, d.throttle)
	}
	if *simulationOut != "" {
		require.NoError(t, os.WriteFile(filepath.Join(*simulationOut, "schedule.svg"), []byte(s.chart()), 0o644))
	}
	fetches, late := 0, 0
	for i, d := range s.days {
		fetches, late = fetches+d.fetches, late+d.late
		if i >= shortTo+8 || i < shortFrom {
			require.Zero(t, d.throttle, "day %d: there is enough for all", i+1)
		}
	}
	require.Positive(t, fetches)
	require.Zero(t, late, "of %d fetches", fetches)
	require.Positive(t, s.days[shortTo-1].throttle, "turns are spaced out while the budget is short")
	require.LessOrEqual(t, s.days[shortTo-1].age[queue.LanePremium].p95, 26*time.Hour, "the best lane goes on as before")
	require.Greater(t, s.days[shortTo-1].age[queue.LaneFree].p95, 26*time.Hour, "the lowest lane gives way")
}
