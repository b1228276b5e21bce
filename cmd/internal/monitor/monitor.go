package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	// readTimeout is the timeout of one read of the status or of the last fetches.
	readTimeout = 20 * time.Second
	// responseTimeout limits how long a request waits for these reads. So /status and /metrics
	// respond within two seconds even if the database does not respond.
	responseTimeout = 1500 * time.Millisecond
	// minCacheTime is the shortest time for which the result of a read is cached.
	minCacheTime = 5 * time.Second
	// Each read scans the whole queue. So its result is cached for cacheFactor times as long as the read took: successful
	// reads of the status, and of the last fetches, then take at most about 5 % of the time.
	cacheFactor = 20
)

// errNotRead is the error of cachedRead.result while the first read has not finished yet.
var errNotRead = errors.New("the state of the queue is still being read for the first time, or the database does not answer; try again in a few seconds")

// Monitor serves the Status as Prometheus metrics and as JSON, from a cache. All methods are safe for concurrent use.
type Monitor struct {
	store   *store.Store
	results func() map[string]map[string]int64 // returns the numbers of results by source and class; nil if this process is not a collector
	logger  *slog.Logger

	status  cachedRead[Status]
	fetches cachedRead[[]queue.LastFetches] // read for ServeHTTP only, because the metrics do not need it
}

// New returns a monitor and adds its metrics to the registry. In a process that collects, `describe` describes the sources of the process at a time.
// `results` returns the numbers of their results, by the name of the source and by class, such as "ok". In other processes, both functions are nil,
// and the monitor shows only the sources of running collectors.
func New(st *store.Store, describe func(time.Time) []queue.Source, results func() map[string]map[string]int64, registry *prometheus.Registry, logger *slog.Logger) *Monitor {
	m := &Monitor{store: st, results: results, logger: logger}
	m.status.read = func(ctx context.Context) (Status, error) { return ReadStatus(ctx, st, describe) }
	m.fetches.read = st.Queue.LastFetches
	registry.MustRegister(statusMetrics{m})
	return m
}

// ServeHTTP responds with the Status as JSON. It responds with status code 503 if the Status cannot be read.
func (m *Monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), responseTimeout)
	defer cancel()
	m.fetches.start(ctx) // so that both reads run at the same time
	s, err := m.status.result(ctx)
	if r.Context().Err() != nil { // the client does not wait for a response any more
		return
	}
	if err != nil {
		m.logger.ErrorContext(r.Context(), "status could not be read", "error", err)
		message := "the database does not answer"
		if errors.Is(err, errNotRead) {
			message = err.Error()
		}
		http.Error(w, message, http.StatusServiceUnavailable)
		return
	}
	if s.LastFetches, err = m.fetches.result(ctx); err != nil {
		m.logger.WarnContext(r.Context(), "results of the last fetches could not be read", "error", err)
	}
	var results map[string]map[string]int64
	if m.results != nil {
		results = m.results()
	}
	s.Sources = addResultCounts(s.Sources, results)
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		m.logger.DebugContext(r.Context(), "status could not be sent", "error", err)
	}
}

// addResultCounts returns copies of the sources with the field Results set. The counts come from `results`, by
// the name of the source.
func addResultCounts(sources []SourceStatus, results map[string]map[string]int64) []SourceStatus {
	out := slices.Clone(sources)
	for i := range out {
		if out[i].Results = results[out[i].Source]; out[i].Results == nil {
			out[i].Results = map[string]int64{}
		}
	}
	return out
}
