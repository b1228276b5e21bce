package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	// readTimeout is the timeout of one read of the status.
	readTimeout = 20 * time.Second
	// responseTimeout limits how long a request waits for the status. So /status and /metrics
	// respond within two seconds even if the database does not respond.
	responseTimeout = 1500 * time.Millisecond
	// minCacheTime is the shortest time for which a status is cached.
	minCacheTime = 5 * time.Second
	// Each read of the status scans the whole queue. So a status is cached for cacheFactor times as long as its read
	// took: successful reads then take at most about 5 % of the time.
	cacheFactor = 20
)

// errNotRead is the error of Monitor.status while the first read of the status has not finished yet.
var errNotRead = errors.New("the status is still being read for the first time")

// Monitor serves the Status as Prometheus metrics and as JSON, from a cache. All methods are safe for concurrent use.
type Monitor struct {
	store    *store.Store
	describe func(time.Time) []queue.Source     // returns the sources of this process; nil if this process is not a collector
	results  func() map[string]map[string]int64 // returns the numbers of results by source and class; nil if this process is not a collector
	logger   *slog.Logger

	mu         sync.Mutex
	last       Status        // the status that the last finished call of ReadStatus returned
	err        error         // error of the last finished read; errNotRead before the first read has finished
	cacheUntil time.Time     // until this time, the last result is returned and no new read starts
	reading    chan struct{} // closed when the current read ends; nil if no read runs
}

// New returns a monitor and adds its metrics to the registry. In a process that collects, `describe` describes the sources of the process at a time.
// `results` returns the numbers of their results, by the name of the source and by class, such as "ok". In other processes, both functions are nil,
// and the monitor shows only the sources of running collectors.
func New(st *store.Store, describe func(time.Time) []queue.Source, results func() map[string]map[string]int64, registry *prometheus.Registry, logger *slog.Logger) *Monitor {
	m := &Monitor{store: st, describe: describe, results: results, logger: logger, err: errNotRead}
	registry.MustRegister(statusMetrics{m})
	return m
}

// status returns the cached status, or reads a new one if the cache has expired. If the read takes
// longer than responseTimeout, status returns the previous result.
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

// startReading starts a read in the background if the cache has expired and no read is running. The
// returned channel is closed as soon as no read is running.
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
		// The read continues after the end of the request that started it, because other requests can be waiting for its result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		s, err := ReadStatus(ctx, m.store, m.describe)
		m.mu.Lock()
		defer m.mu.Unlock()
		cacheTime := max(minCacheTime, cacheFactor*time.Since(start))
		if err != nil {
			cacheTime = min(time.Minute, cacheTime) // cache an error for at most a minute, so that the monitor soon notices that the database works again
		}
		m.last, m.err, m.cacheUntil, m.reading = s, err, time.Now().Add(cacheTime), nil
	}()
	return done
}

// ServeHTTP responds with the Status as JSON. It responds with status code 503 if the Status cannot be read.
func (m *Monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, err := m.status(r.Context())
	if err != nil {
		m.logger.ErrorContext(r.Context(), "status could not be read", "error", err)
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
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
