package collect

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

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
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
	sources  []source.Source
	gatherer prometheus.Gatherer
	logger   *slog.Logger

	mu         sync.Mutex
	last       Status        // the status that the last finished call of ReadStatus returned
	err        error         // error of the last finished read; errNotRead before the first read has finished
	cacheUntil time.Time     // until this time, the last result is returned and no new read starts
	reading    chan struct{} // closed when the current read ends; nil if no read runs
}

// NewMonitor returns a monitor and adds its metrics to the registry. Pass the same registry to
// CountCalls. If `sources` is empty, the monitor shows the sources of running collectors.
func NewMonitor(st *store.Store, sources []source.Source, registry *prometheus.Registry, logger *slog.Logger) *Monitor {
	m := &Monitor{store: st, sources: sources, gatherer: registry, logger: logger, err: errNotRead}
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
		s, err := ReadStatus(ctx, m.store, m.sources)
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
	var results map[string]map[string]int64
	counted := make(chan error, 1)
	go func() { // countResults and m.status both wait for the status; run them at the same time, so that the request does not wait twice
		var err error
		results, err = m.countResults()
		counted <- err
	}()
	s, err := m.status(r.Context())
	if countErr := <-counted; err == nil {
		s.Sources, err = addResultCounts(s.Sources, results), countErr
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

// addResultCounts returns copies of the sources with the field Results set. The counts come from resultCounts,
// by the name of the source.
func addResultCounts(sources []SourceStatus, resultCounts map[string]map[string]int64) []SourceStatus {
	out := slices.Clone(sources)
	for i := range out {
		if out[i].Results = resultCounts[out[i].Source]; out[i].Results == nil {
			out[i].Results = map[string]int64{}
		}
	}
	return out
}

// countResults returns the numbers of results that CountCalls has counted in this process, by the name of the source and by class, such as
// "ok".
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
