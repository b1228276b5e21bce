package collect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Status shows operators how well the collectors work. It covers all collectors and organisations of a database. Its JSON is the response
// of /status: times are RFC 3339 in UTC, durations are in seconds, and a value that does not exist is null.
type Status struct {
	At         time.Time      `json:"at"`
	Collectors int            `json:"collectors"` // number of collectors that sent a heartbeat in the last ten seconds
	Queue      []QueueStatus  `json:"queue"`
	Freshness  []Freshness    `json:"freshness"`
	Platforms  []Platform     `json:"platforms"`
	Sources    []SourceStatus `json:"sources"`
	Statuses   []StatusCount  `json:"statuses"`

	pauses map[string]PauseStatus // current pauses, by "SOURCE" or "SOURCE/BUDGET", of the sources of all collectors
}

// QueueStatus counts the targets of the queue that have the same platform, kind (video or account) and lane. The lane is the priority of a
// target: interactive, premium, basic or free.
type QueueStatus struct {
	Platform         string           `json:"platform"`
	Kind             queue.Kind       `json:"kind"`
	Lane             string           `json:"lane"`
	Targets          map[string]int64 `json:"targets"`            // number of targets by state: active, gone, parked
	Failing          int64            `json:"failing"`            // number of targets whose last fetch failed
	Due              int64            `json:"due"`                // number of targets whose next fetch is due
	OldestDueSeconds *float64         `json:"oldest_due_seconds"` // seconds for which the oldest due target has been due; null if no target is due
}

// StatusCount is the number of videos or accounts with one fetch status, such as "ok", on one platform. If tracking was stopped, the
// platform is not counted: there is one StatusCount with the Platform "" for all platforms.
type StatusCount struct {
	Platform string            `json:"platform"`
	Kind     queue.Kind        `json:"kind"`
	Status   store.FetchStatus `json:"status"`
	Targets  int64             `json:"targets"`
}

// Freshness describes how old the numbers of the active targets of one platform and kind (video or account) are. P50, P95 and P99 are upper
// bounds for percentiles of these ages. They are null if no target was fetched yet, or if the percentile is above the largest age in
// queue.FreshWithin.
type Freshness struct {
	Platform     string           `json:"platform"`
	Kind         queue.Kind       `json:"kind"`
	Targets      int64            `json:"targets"`
	NeverFetched int64            `json:"never_fetched"`
	Within       map[string]int64 `json:"within"` // number of targets by maximum age of their numbers, such as "24h"
	P50          *float64         `json:"p50_seconds_at_most"`
	P95          *float64         `json:"p95_seconds_at_most"`
	P99          *float64         `json:"p99_seconds_at_most"`
}

// Platform counts how many targets of a platform have missing, old or recent numbers. If the video or account of a target no longer exists,
// the target is counted only in Targets, Gone and NeverFetched.
type Platform struct {
	Platform     string `json:"platform"`
	Targets      int64  `json:"targets"`
	Gone         int64  `json:"gone"`
	Parked       int64  `json:"parked"`        // number of targets that failed too often and are now fetched once a week
	Failing      int64  `json:"failing"`       // number of active targets whose last fetch failed
	NeverFetched int64  `json:"never_fetched"` // number of targets requested more than 36 hours ago and never fetched
	Stale        int64  `json:"stale"`         // number of active targets whose numbers are older than 48 hours
	Fresh        int64  `json:"fresh"`         // number of targets fetched within the last 36 hours
}

// SourceStatus is the state of one source, such as "youtube": its results, its current pause, and its budgets.
type SourceStatus struct {
	Source string `json:"source"`
	// Results counts the results since the start of this process, by class, such as "ok". It is null if this process is not a collector.
	Results map[string]int64 `json:"results"`
	Pause   *PauseStatus     `json:"pause"`
	Budgets []BudgetStatus   `json:"budgets"`
}

// BudgetStatus says how much of a budget of a source was used in the current window, such as a day. Limit and Left are null if no limit is
// known.
type BudgetStatus struct {
	Budget   string       `json:"budget"`
	Window   string       `json:"window"`
	Used     int64        `json:"used"`
	Limit    *int64       `json:"limit"`
	Left     *int64       `json:"left"`
	ResetsAt time.Time    `json:"resets_at"`
	Pause    *PauseStatus `json:"pause"`
}

// PauseStatus is the current pause of a source or budget. The source is not asked before the time Until. Class and Detail say why, such as
// a rate limit.
type PauseStatus struct {
	Until  time.Time `json:"until"`
	Class  string    `json:"class"`
	Detail string    `json:"detail"`
	InARow int       `json:"in_a_row"` // number of consecutive pauses
}

// heartbeatTimeout is how long a collector counts as running after its last heartbeat.
const heartbeatTimeout = 10 * time.Second

// ReadStatus reads the Status from the database. Status.Sources contains the given sources, followed by further sources that other running
// collectors use.
func ReadStatus(ctx context.Context, st *store.Store, sources []source.Source) (Status, error) {
	c, err := st.Queue.Collecting(ctx)
	if err != nil {
		return Status{}, err
	}
	s := Status{At: c.At.Time(), Queue: queueStatus(c), Freshness: freshness(c), Platforms: platforms(c), Sources: []SourceStatus{}, Statuses: make([]StatusCount, len(c.Statuses))}
	for i, n := range c.Statuses {
		s.Statuses[i] = StatusCount{Platform: string(n.Platform), Kind: n.Kind, Status: n.Status, Targets: n.Targets}
	}
	for _, seen := range c.Collectors {
		if c.At.Sub(seen) <= heartbeatTimeout {
			s.Collectors++
		}
	}
	own := collector.Published(sources, c.At.Time())
	for _, other := range c.Sources {
		if !slices.ContainsFunc(own, func(source queue.Source) bool { return source.Name == other.Name }) {
			own = append(own, other)
		}
	}
	for _, source := range own {
		s.Sources = append(s.Sources, sourceStatus(c, source))
	}
	s.pauses = map[string]PauseStatus{}
	for name := range c.Pauses {
		if p := pauseStatus(c, name); p != nil {
			s.pauses[name] = *p
		}
	}
	return s, nil
}

// queueStatus returns one QueueStatus for each platform, kind (video or account) and lane (priority). For each of these, c has one row per
// state of the targets, such as active, and queueStatus sums up these rows.
func queueStatus(c queue.Collecting) []QueueStatus {
	out := []QueueStatus{}
	for _, q := range c.Queue {
		lane := QueueStatus{Platform: string(q.Platform), Kind: q.Kind, Lane: q.Lane.String(), Targets: map[string]int64{}}
		if n := len(out); n > 0 && out[n-1].Platform == lane.Platform && out[n-1].Kind == lane.Kind && out[n-1].Lane == lane.Lane {
			lane, out = out[n-1], out[:n-1]
		}
		lane.Targets[q.State] += q.Targets
		lane.Failing += q.Failing
		lane.Due += q.Due
		if q.OldestDue != nil {
			if overdue := c.At.Sub(*q.OldestDue).Seconds(); lane.OldestDueSeconds == nil || overdue > *lane.OldestDueSeconds {
				lane.OldestDueSeconds = &overdue
			}
		}
		out = append(out, lane)
	}
	return out
}

// freshness returns one Freshness for each platform and kind (video or account), over all lanes. It counts only active targets. Targets
// that no longer exist, or that are fetched rarely after many failures, have old numbers as expected.
func freshness(c queue.Collecting) []Freshness {
	out := []Freshness{}
	for _, q := range c.Queue {
		if q.State != "active" {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Platform != string(q.Platform) || out[n-1].Kind != q.Kind {
			out = append(out, Freshness{Platform: string(q.Platform), Kind: q.Kind, Within: map[string]int64{}})
		}
		f := &out[len(out)-1]
		f.Targets += q.Targets
		f.NeverFetched += q.Never
		for i, age := range queue.FreshWithin {
			f.Within[ageName(age)] += q.Fresh[i]
		}
	}
	for i := range out {
		f := &out[i]
		f.P50, f.P95, f.P99 = f.percentile(0.5), f.percentile(0.95), f.percentile(0.99)
	}
	return out
}

// queue.FreshWithin is a list of ages. Numbers are fresh if they are at most as old as the element at freshBy, and stale if they are older
// than the element at staleAfter.
var (
	freshBy    = slices.Index(queue.FreshWithin[:], queue.FetchedBy)
	staleAfter = slices.Index(queue.FreshWithin[:], 48*time.Hour)
)

// platforms returns the counts for each platform. They include videos and accounts of all lanes (priorities) and states.
func platforms(c queue.Collecting) []Platform {
	out := []Platform{}
	for _, q := range c.Queue {
		if n := len(out); n == 0 || out[n-1].Platform != string(q.Platform) {
			out = append(out, Platform{Platform: string(q.Platform)})
		}
		p := &out[len(out)-1]
		p.Targets += q.Targets
		p.NeverFetched += q.Overdue
		p.Fresh += q.Fresh[freshBy]
		switch q.State {
		case "gone":
			p.Gone += q.Targets
		case "parked":
			p.Parked += q.Targets
		default:
			p.Failing += q.Failing
			p.Stale += q.Targets - q.Never - q.Fresh[staleAfter]
		}
	}
	return out
}

// percentile returns an upper bound, in seconds, for the percentile p of the ages of the numbers; p is between 0 and 1. The bound is the
// smallest age in queue.FreshWithin that is not exceeded by at least the fraction p of the fetched targets. percentile returns nil if there
// is no such age, or if no target was fetched.
func (f *Freshness) percentile(p float64) *float64 {
	fetched := f.Targets - f.NeverFetched
	for _, age := range queue.FreshWithin {
		if fetched > 0 && float64(f.Within[ageName(age)]) >= p*float64(fetched) {
			return new(age.Seconds())
		}
	}
	return nil
}

// ageName formats a number of whole hours, for example as "24h". These are the keys of Freshness.Within.
func ageName(age time.Duration) string { return strings.TrimSuffix(age.String(), "0m0s") }

// sourceStatus returns the state of a source, without its results: its current pause and the use of its budgets.
func sourceStatus(c queue.Collecting, from queue.Source) SourceStatus {
	s := SourceStatus{Source: from.Name, Pause: pauseStatus(c, from.Name), Budgets: []BudgetStatus{}}
	for _, b := range from.Budgets {
		name := from.Name + "/" + b.Name
		budget := BudgetStatus{Budget: b.Name, Window: b.Window, ResetsAt: b.Ends, Pause: pauseStatus(c, name)}
		if i := slices.IndexFunc(c.Quotas, func(q queue.QuotaUse) bool { return q.Source == name && q.Window == budget.Window }); i >= 0 {
			budget.Used = c.Quotas[i].Used
		}
		if b.Limit > 0 {
			budget.Limit, budget.Left = new(b.Limit), new(max(0, b.Limit-budget.Used))
		}
		s.Budgets = append(s.Budgets, budget)
	}
	return s
}

// pauseStatus returns the current pause of a source or budget, or nil if it is not paused. The name of a budget is "SOURCE/BUDGET".
func pauseStatus(c queue.Collecting, name string) *PauseStatus {
	p, known := c.Pauses[name]
	if !known || p.BlockedUntil <= c.At {
		return nil
	}
	return &PauseStatus{Until: p.BlockedUntil.Time(), Class: p.Class, Detail: p.Detail, InARow: p.Strikes}
}

const (
	// readTimeout is the timeout of one read of the status.
	readTimeout = 20 * time.Second
	// responseTimeout is the maximum time for which a request waits for a read of the status. With this limit, /status and /metrics respond
	// within two seconds even if the database does not respond.
	responseTimeout = 1500 * time.Millisecond
	// minCacheTime is the shortest time for which a status is cached.
	minCacheTime = 5 * time.Second
	// cacheFactor says how long a status is cached: this number times the duration of the read. A read scans the whole queue, which is
	// expensive. With this factor, a process spends at most about 1/20 of the time on it.
	cacheFactor = 20
)

// errNotRead is the error of Monitor.status while the first read of the status has not finished yet.
var errNotRead = errors.New("the status is still being read for the first time")

// Monitor serves the Status as Prometheus metrics and as JSON, from a cache. All methods are safe for concurrent use.
type Monitor struct {
	store    *store.Store
	sources  []source.Source
	gatherer prometheus.Gatherer
	logger   *slog.Logger

	mu         sync.Mutex
	last       Status        // status of the last finished read
	err        error         // error of the last finished read; errNotRead before the first read has finished
	cacheUntil time.Time     // time until which last and err are returned without a new read
	reading    chan struct{} // closed when the current read ends; nil if no read runs
}

// NewMonitor returns a monitor and adds its metrics to the registry. CountCalls must get the same registry. Programs that do not collect,
// such as the server, pass no sources: the monitor then shows the sources of the running collectors.
func NewMonitor(st *store.Store, sources []source.Source, registry *prometheus.Registry, logger *slog.Logger) *Monitor {
	m := &Monitor{store: st, sources: sources, gatherer: registry, logger: logger, err: errNotRead}
	registry.MustRegister(statusMetrics{m})
	return m
}

// status returns the cached status, or reads a new status if the cache has expired. If this takes longer than responseTimeout, status
// returns the result of the previous read. Status.At tells when a status was read.
func (m *Monitor) status(ctx context.Context) (Status, error) {
	reading := m.startReading(ctx)
	timeout := time.NewTimer(responseTimeout)
	defer timeout.Stop()
	select {
	case <-reading:
	case <-timeout.C:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, m.err
}

// startReading starts a read of the status in the background, unless the cache is valid or a read is running. The returned channel is
// closed when the read ends, or at once if the cache is valid.
func (m *Monitor) startReading(ctx context.Context) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reading != nil {
		return m.reading
	}
	done := make(chan struct{})
	start := time.Now()
	if start.Before(m.cacheUntil) {
		close(done)
		return done
	}
	m.reading = done
	go func() {
		defer close(done)
		// The read does not stop when the request that started it ends, because further requests can wait for the same read.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		s, err := ReadStatus(ctx, m.store, m.sources)
		m.mu.Lock()
		defer m.mu.Unlock()
		cacheTime := max(minCacheTime, cacheFactor*time.Since(start))
		if err != nil {
			cacheTime = min(time.Minute, cacheTime) // errors are cached for at most a minute, to notice soon that the database works again
		}
		m.last, m.err, m.cacheUntil, m.reading = s, err, time.Now().Add(cacheTime), nil
	}()
	return done
}

// ServeHTTP responds with the Status as JSON. It responds with status code 503 if the Status cannot be read.
func (m *Monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var results map[string]map[string]int64
	counted := make(chan error, 1)
	go func() { // countResults also waits for the status, so both run at the same time
		var err error
		results, err = m.countResults()
		counted <- err
	}()
	s, err := m.status(r.Context())
	if countErr := <-counted; err == nil {
		s.Sources, err = withResults(s.Sources, results), countErr
	}
	if err != nil {
		m.logger.ErrorContext(r.Context(), "status could not be read", "error", err)
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		m.logger.DebugContext(r.Context(), "status could not be sent", "error", err)
	}
}

// withResults returns a copy of sources with their results, which are counts by class such as "ok". The map results has these counts for
// the name of each source.
func withResults(sources []SourceStatus, results map[string]map[string]int64) []SourceStatus {
	out := slices.Clone(sources)
	for i := range out {
		if out[i].Results = results[out[i].Source]; out[i].Results == nil {
			out[i].Results = map[string]int64{}
		}
	}
	return out
}

// countResults returns how many results of sources CountCalls has counted in this process, by name of the source and class of the result.
func (m *Monitor) countResults() (map[string]map[string]int64, error) {
	families, err := m.gatherer.Gather()
	if err != nil {
		return nil, err
	}
	results := map[string]map[string]int64{}
	for _, family := range families {
		if family.GetName() != resultsMetric {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range metric.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if results[labels["source"]] == nil {
				results[labels["source"]] = map[string]int64{}
			}
			results[labels["source"]][labels["class"]] += int64(metric.GetCounter().GetValue())
		}
	}
	return results, nil
}

// statusMetrics exports the Status of a Monitor as Prometheus metrics. It implements prometheus.Collector.
type statusMetrics struct{ *Monitor }

var (
	targetsDesc = prometheus.NewDesc("reeltally_queue_targets", "Targets (videos and accounts) in the queue.", []string{"platform", "kind", "lane", "state"}, nil)
	dueDesc     = prometheus.NewDesc("reeltally_queue_due", "Targets that are due.", []string{"platform", "kind", "lane"}, nil)
	oldestDesc  = prometheus.NewDesc("reeltally_queue_oldest_due_seconds", "How long the oldest due target has been due; 0 if none is due.", []string{"platform", "kind", "lane"}, nil)
	failingDesc = prometheus.NewDesc("reeltally_queue_failing", "Targets whose last fetch failed.", []string{"platform", "kind", "lane"}, nil)
	withinDesc  = prometheus.NewDesc("reeltally_numbers_within", "Active targets whose numbers are at most le seconds old.", []string{"platform", "kind", "le"}, nil)
	neverDesc   = prometheus.NewDesc("reeltally_numbers_never", "Active targets that were never fetched.", []string{"platform", "kind"}, nil)
	usedDesc    = prometheus.NewDesc("reeltally_quota_used", "Units reserved in the current window.", []string{"source", "budget"}, nil)
	limitDesc   = prometheus.NewDesc("reeltally_quota_limit", "Limit of units in the current window, if known.", []string{"source", "budget"}, nil)
	resetsDesc  = prometheus.NewDesc("reeltally_quota_resets_timestamp_seconds", "End of the current window.", []string{"source", "budget"}, nil)
	pausedDesc  = prometheus.NewDesc("reeltally_source_paused_until_timestamp_seconds", "End of the pause of a source or budget; missing if it is not paused.", []string{"source", "budget", "class"}, nil)
	upDesc      = prometheus.NewDesc("reeltally_database_up", "1 if the database answered a read within 1.5 seconds, else 0.", nil, nil)
	aliveDesc   = prometheus.NewDesc("reeltally_collectors", "Collectors that sent a heartbeat in the last ten seconds.", nil, nil)
)

// Describe sends no descriptions, because the set of metrics depends on the targets and sources. Prometheus allows this, and then does not
// check the metrics.
func (statusMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of the status. If the database does not answer, reeltally_database_up is 0 and the other metrics of the
// database are missing.
func (m statusMetrics) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	up := make(chan float64, 1)
	go func() { up <- m.databaseUp() }()
	s, err := m.status(context.Background())
	gauge(upDesc, <-up)
	if err != nil {
		m.logger.Error("status could not be read", "error", err)
		return
	}
	gauge(aliveDesc, float64(s.Collectors))
	for _, q := range s.Queue {
		for state, n := range q.Targets {
			gauge(targetsDesc, float64(n), q.Platform, string(q.Kind), q.Lane, state)
		}
		gauge(dueDesc, float64(q.Due), q.Platform, string(q.Kind), q.Lane)
		gauge(failingDesc, float64(q.Failing), q.Platform, string(q.Kind), q.Lane)
		gauge(oldestDesc, valueOrZero(q.OldestDueSeconds), q.Platform, string(q.Kind), q.Lane)
	}
	for _, f := range s.Freshness {
		gauge(neverDesc, float64(f.NeverFetched), f.Platform, string(f.Kind))
		for _, age := range queue.FreshWithin {
			gauge(withinDesc, float64(f.Within[ageName(age)]), f.Platform, string(f.Kind), seconds(age))
		}
	}
	for name, p := range s.pauses {
		source, budget, _ := strings.Cut(name, "/")
		gauge(pausedDesc, float64(p.Until.Unix()), source, budget, p.Class)
	}
	for _, source := range s.Sources {
		for _, b := range source.Budgets {
			gauge(usedDesc, float64(b.Used), source.Source, b.Budget)
			if b.Limit != nil {
				gauge(limitDesc, float64(*b.Limit), source.Source, b.Budget)
			}
			if !b.ResetsAt.IsZero() {
				gauge(resetsDesc, float64(b.ResetsAt.Unix()), source.Source, b.Budget)
			}
		}
	}
}

// databaseUp returns 1 if the database answers a read within responseTimeout, else 0.
func (m *Monitor) databaseUp() float64 {
	ctx, cancel := context.WithTimeout(context.Background(), responseTimeout)
	defer cancel()
	if m.store.Ready(ctx) != nil {
		return 0
	}
	return 1
}

// seconds formats a duration as a number of whole seconds, rounded down.
func seconds(d time.Duration) string { return strconv.FormatInt(int64(d.Seconds()), 10) }

// valueOrZero returns the value to which v points, or 0 if v is nil.
func valueOrZero(v *float64) float64 { return *cmp.Or(v, new(0.0)) }
