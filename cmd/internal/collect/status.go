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
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Status is what operators are told of collecting, over all collectors and organisations. Times are RFC 3339 in UTC, ages and
// waits in seconds; null means that there is none.
type Status struct {
	At         time.Time      `json:"at"`
	Collectors int            `json:"collectors"` // that were seen in the last ten seconds
	Queue      []QueueStatus  `json:"queue"`
	Freshness  []Freshness    `json:"freshness"`
	Platforms  []Platform     `json:"platforms"`
	Sources    []SourceStatus `json:"sources"`

	pauses map[string]PauseStatus // those of all sources and budgets, also of such as are configured elsewhere alone
}

// QueueStatus is one lane of the queue.
type QueueStatus struct {
	Platform         string           `json:"platform"`
	Kind             string           `json:"kind"`
	Lane             string           `json:"lane"`
	Targets          map[string]int64 `json:"targets"` // by state: active, gone, parked
	Failing          int64            `json:"failing"` // the last fetch failed
	Due              int64            `json:"due"`
	OldestDueSeconds *float64         `json:"oldest_due_seconds"` // how long the first of those due waits
}

// Freshness is how old the numbers of the active targets of a platform and kind are. A percentile is an upper bound, null where it lies
// beyond the oldest age that is counted or where nothing was fetched.
type Freshness struct {
	Platform     string           `json:"platform"`
	Kind         string           `json:"kind"`
	Targets      int64            `json:"targets"`
	NeverFetched int64            `json:"never_fetched"`
	Within       map[string]int64 `json:"within"` // targets by the age that their numbers do not exceed, e.g. "24h"
	P50          *float64         `json:"p50_seconds_at_most"`
	P95          *float64         `json:"p95_seconds_at_most"`
	P99          *float64         `json:"p99_seconds_at_most"`
}

// Platform tells how many of a platform's videos and accounts numbers are missing of, whatever their state. Those that are gone
// count in Gone and in NeverFetched alone.
type Platform struct {
	Platform     string `json:"platform"`
	Targets      int64  `json:"targets"`
	Gone         int64  `json:"gone"`
	Parked       int64  `json:"parked"`        // given up but for a look now and then
	Failing      int64  `json:"failing"`       // active, and the last fetch failed
	NeverFetched int64  `json:"never_fetched"` // though asked for more than 36 hours ago
	Stale        int64  `json:"stale"`         // active, and the numbers are older than 48 hours
	Fresh        int64  `json:"fresh"`         // fetched within 36 hours
}

// SourceStatus is one source and its budgets.
type SourceStatus struct {
	Source string `json:"source"`
	// Results of this process since it started, by class; null when this process does not collect.
	Results map[string]int64 `json:"results"`
	Pause   *PauseStatus     `json:"pause"`
	Budgets []BudgetStatus   `json:"budgets"`
}

// BudgetStatus is a budget in the window that is running. Limit and Left are null where no limit is known.
type BudgetStatus struct {
	Budget   string       `json:"budget"`
	Window   string       `json:"window"`
	Used     int64        `json:"used"`
	Limit    *int64       `json:"limit"`
	Left     *int64       `json:"left"`
	ResetsAt time.Time    `json:"resets_at"`
	Pause    *PauseStatus `json:"pause"`
}

// PauseStatus says until when something is left alone, and why.
type PauseStatus struct {
	Until  time.Time `json:"until"`
	Class  string    `json:"class"`
	Detail string    `json:"detail"`
	InARow int       `json:"in_a_row"`
}

// aliveWithin is how recently a collector must have been seen to count.
const aliveWithin = 10 * time.Second

// ReadStatus reads the state of collecting. The sources are those of this process's settings.
func ReadStatus(ctx context.Context, st *store.Store, sources []collector.Source) (Status, error) {
	c, err := st.Queue.Collecting(ctx)
	if err != nil {
		return Status{}, err
	}
	s := Status{At: c.At.Time(), Queue: queueStatus(c), Freshness: freshness(c), Platforms: platforms(c), Sources: make([]SourceStatus, len(sources))}
	for _, seen := range c.Collectors {
		if c.At.Sub(seen) <= aliveWithin {
			s.Collectors++
		}
	}
	for i, source := range sources {
		s.Sources[i] = sourceStatus(c, source)
	}
	s.pauses = map[string]PauseStatus{}
	for name := range c.Pauses {
		if p := pauseStatus(c, name); p != nil {
			s.pauses[name] = *p
		}
	}
	return s, nil
}

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
			if waits := c.At.Sub(*q.OldestDue).Seconds(); lane.OldestDueSeconds == nil || waits > *lane.OldestDueSeconds {
				lane.OldestDueSeconds = &waits
			}
		}
		out = append(out, lane)
	}
	return out
}

// freshness sums the active targets of all lanes: those that are gone or given up are not expected to be fresh.
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

// The places in store.FreshWithin by which numbers are fresh, and beyond which they are stale.
var (
	freshBy    = slices.Index(queue.FreshWithin[:], queue.FetchedBy)
	staleAfter = slices.Index(queue.FreshWithin[:], 48*time.Hour)
)

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

// percentile returns the smallest age, in seconds, that covers the share of the targets that were ever fetched.
func (f *Freshness) percentile(share float64) *float64 {
	fetched := f.Targets - f.NeverFetched
	for _, age := range queue.FreshWithin {
		if fetched > 0 && float64(f.Within[ageName(age)]) >= share*float64(fetched) {
			return new(age.Seconds())
		}
	}
	return nil
}

// ageName writes an age of whole hours as 24h.
func ageName(age time.Duration) string { return strings.TrimSuffix(age.String(), "0m0s") }

func sourceStatus(c queue.Collecting, source collector.Source) SourceStatus {
	s := SourceStatus{Source: source.Name(), Pause: pauseStatus(c, source.Name()), Budgets: []BudgetStatus{}}
	for _, b := range source.Budgets() {
		name := source.Name() + "/" + b.Name
		budget := BudgetStatus{Budget: b.Name, Pause: pauseStatus(c, name)}
		if b.Window != nil {
			budget.Window, budget.ResetsAt = b.Window(c.At.Time())
			budget.ResetsAt = budget.ResetsAt.UTC()
		}
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

// pauseStatus is nil when nothing is paused now.
func pauseStatus(c queue.Collecting, name string) *PauseStatus {
	p, known := c.Pauses[name]
	if !known || p.BlockedUntil <= c.At {
		return nil
	}
	return &PauseStatus{Until: p.BlockedUntil.Time(), Class: p.Class, Detail: p.Detail, InARow: p.Strikes}
}

const (
	// readWithin bounds one reading of the status.
	readWithin = 20 * time.Second
	// answerWithin is how long a caller waits for a reading. With it, /status and /metrics answer within two seconds even if the database
	// hangs.
	answerWithin = 1500 * time.Millisecond
	// statusFor is for how long a status is given out again at the least.
	statusFor = 5 * time.Second
	// statusShare bounds the time that readings take in each process: they cost a pass over the queue.
	statusShare = 20
)

// errNotRead reports that no reading has finished yet.
var errNotRead = errors.New("the status is still being read for the first time")

// Monitor gives the status to Prometheus and to whoever asks for it as JSON. One reading serves all for a while.
type Monitor struct {
	store   *store.Store
	sources []collector.Source
	results prometheus.Gatherer
	logger  *slog.Logger

	mu      sync.Mutex
	last    Status
	err     error         // of the last reading
	until   time.Time     // until then the last reading is returned again
	reading chan struct{} // closed when the current reading ends; nil if none runs
}

// NewMonitor returns a monitor and registers it. The registry is where Measured counts. A process that does not collect has no
// sources: what the store knows it tells all the same, above all that nobody collects, which no collector can tell.
func NewMonitor(st *store.Store, sources []collector.Source, registry *prometheus.Registry, logger *slog.Logger) *Monitor {
	m := &Monitor{store: st, sources: sources, results: registry, logger: logger, err: errNotRead}
	registry.MustRegister(statusMetrics{m})
	return m
}

// status returns the last reading if it is recent, and otherwise a new one. If the new reading takes longer than answerWithin, status
// returns the last one, and Status.At tells its age.
func (m *Monitor) status(ctx context.Context) (Status, error) {
	reading := m.startReading(ctx)
	late := time.NewTimer(answerWithin)
	defer late.Stop()
	select {
	case <-reading:
	case <-late.C:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, m.err
}

// startReading starts a reading unless one is running or the last one is recent. The returned channel is closed when the reading ends.
// If no reading is needed, it is closed already.
func (m *Monitor) startReading(ctx context.Context) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reading != nil {
		return m.reading
	}
	done := make(chan struct{})
	began := time.Now()
	if began.Before(m.until) {
		close(done)
		return done
	}
	m.reading = done
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readWithin) // the reading serves other callers too, so it outlives this request
		defer cancel()
		s, err := ReadStatus(ctx, m.store, m.sources)
		m.mu.Lock()
		defer m.mu.Unlock()
		valid := max(statusFor, statusShare*time.Since(began))
		if err != nil {
			valid = min(time.Minute, valid) // so that the status is soon right after the database recovers
		}
		m.last, m.err, m.until, m.reading = s, err, time.Now().Add(valid), nil
	}()
	return done
}

// ServeHTTP answers with the Status as JSON.
func (m *Monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var results map[string]map[string]int64
	counted := make(chan error, 1)
	go func() { // concurrently, since gathering waits for the status as well
		var err error
		results, err = m.countResults()
		counted <- err
	}()
	s, err := m.status(r.Context())
	if failed := <-counted; err == nil {
		s.Sources, err = withResults(s.Sources, results), failed
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

// withResults returns the sources with their results filled in.
func withResults(sources []SourceStatus, results map[string]map[string]int64) []SourceStatus {
	out := slices.Clone(sources)
	for i := range out {
		if out[i].Results = results[out[i].Source]; out[i].Results == nil {
			out[i].Results = map[string]int64{}
		}
	}
	return out
}

// countResults returns the counts of Measured in this process, by source and class.
func (m *Monitor) countResults() (map[string]map[string]int64, error) {
	families, err := m.results.Gather()
	if err != nil {
		return nil, err
	}
	results := map[string]map[string]int64{}
	for _, family := range families {
		if family.GetName() != resultsName {
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

// statusMetrics gives the status to Prometheus.
type statusMetrics struct{ *Monitor }

var (
	targetsDesc = prometheus.NewDesc("reeltally_queue_targets", "Videos and accounts in the queue.", []string{"platform", "kind", "lane", "state"}, nil)
	dueDesc     = prometheus.NewDesc("reeltally_queue_due", "Those whose turn has come.", []string{"platform", "kind", "lane"}, nil)
	oldestDesc  = prometheus.NewDesc("reeltally_queue_oldest_due_seconds", "How long the first of those due waits; 0 when none is due.", []string{"platform", "kind", "lane"}, nil)
	failingDesc = prometheus.NewDesc("reeltally_queue_failing", "Those whose last fetch failed.", []string{"platform", "kind", "lane"}, nil)
	withinDesc  = prometheus.NewDesc("reeltally_numbers_within", "Active targets whose numbers are not older than that many seconds.", []string{"platform", "kind", "le"}, nil)
	neverDesc   = prometheus.NewDesc("reeltally_numbers_never", "Active targets that were never fetched.", []string{"platform", "kind"}, nil)
	usedDesc    = prometheus.NewDesc("reeltally_quota_used", "Units reserved in the window that is running.", []string{"source", "budget"}, nil)
	limitDesc   = prometheus.NewDesc("reeltally_quota_limit", "Units that the window has, where a limit is known.", []string{"source", "budget"}, nil)
	resetsDesc  = prometheus.NewDesc("reeltally_quota_resets_timestamp_seconds", "When the window ends.", []string{"source", "budget"}, nil)
	pausedDesc  = prometheus.NewDesc("reeltally_source_paused_until_timestamp_seconds", "Until when a source, or one of its budgets, is left alone; only while it is.", []string{"source", "budget", "class"}, nil)
	upDesc      = prometheus.NewDesc("reeltally_database_up", "1 if the database answered a read within 1.5 seconds, else 0.", nil, nil)
	aliveDesc   = prometheus.NewDesc("reeltally_collectors", "Collectors that live.", nil, nil)
)

// Describe names no metric: which there are depends on what is tracked.
func (statusMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect reads the status. If the database does not answer, reeltally_database_up is 0 and the other metrics of the database are missing.
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
			gauge(targetsDesc, float64(n), q.Platform, q.Kind, q.Lane, state)
		}
		gauge(dueDesc, float64(q.Due), q.Platform, q.Kind, q.Lane)
		gauge(failingDesc, float64(q.Failing), q.Platform, q.Kind, q.Lane)
		gauge(oldestDesc, value(q.OldestDueSeconds), q.Platform, q.Kind, q.Lane)
	}
	for _, f := range s.Freshness {
		gauge(neverDesc, float64(f.NeverFetched), f.Platform, f.Kind)
		for _, age := range queue.FreshWithin {
			gauge(withinDesc, float64(f.Within[ageName(age)]), f.Platform, f.Kind, seconds(age))
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

// databaseUp returns 1 if the database answers a read within answerWithin, else 0.
func (m *Monitor) databaseUp() float64 {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	if m.store.Ready(ctx) != nil {
		return 0
	}
	return 1
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d.Seconds()), 10) }

func value(v *float64) float64 { return *cmp.Or(v, new(0.0)) }
