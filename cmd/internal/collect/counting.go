package collect

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/queue"
)

// CountCalls wraps sources so that two metrics in the registry record the durations of their calls and the numbers of their results. It returns the
// wrapped sources, and a function that returns the numbers of results so far. The numbers are by the name of the source and by class, such as "ok".
func CountCalls(registry *prometheus.Registry, sources []source.Source) (counted []source.Source, results func() map[string]map[string]int64) {
	m := &sourceMetrics{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "reeltally_source_call_seconds",
			Help:    "Duration of fetches in seconds. The class is ok if the call succeeded.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 10)}, []string{"source", "class"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "reeltally_source_results_total",
			Help: "Number of results of fetches by class, such as ok. A fetch of many targets has one result for each target."}, []string{"source", "kind", "class"}),
		counts: map[string]map[string]int64{},
	}
	registry.MustRegister(m.calls, m.results)
	counted = make([]source.Source, len(sources))
	for i, s := range sources {
		counted[i] = countingSource{s, m}
	}
	return counted, m.resultCounts
}

// sourceMetrics counts the calls and results of all sources. Its methods are safe for concurrent use.
type sourceMetrics struct {
	calls   *prometheus.HistogramVec
	results *prometheus.CounterVec

	mu     sync.Mutex
	counts map[string]map[string]int64 // numbers of results by the name of the source and by class
}

// countResults counts the results of a call of a source by class. The metric also separates the kinds of targets. m.counts has the numbers for
// /status.
func (m *sourceMetrics) countResults(name string, results []source.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts[name] == nil {
		m.counts[name] = map[string]int64{}
	}
	for _, r := range results {
		m.results.WithLabelValues(name, string(r.Target.Kind), string(r.Class)).Inc()
		m.counts[name][string(r.Class)]++
	}
}

// resultCounts returns a copy of the numbers of results.
func (m *sourceMetrics) resultCounts() map[string]map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := make(map[string]map[string]int64, len(m.counts))
	for source, byClass := range m.counts {
		counts[source] = maps.Clone(byClass)
	}
	return counts
}

// countingSource is a source that counts its calls and results.
type countingSource struct {
	source.Source
	metrics *sourceMetrics
}

// Fetch asks the wrapped source, and counts the call and its results by class, such as "ok".
func (s countingSource) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	start := time.Now()
	results, err := s.Source.Fetch(ctx, batch, budget)
	class := source.OK
	if err != nil {
		class = "error"
		if failure := (*source.Failure)(nil); errors.As(err, &failure) {
			class = failure.Class
		}
	}
	s.metrics.calls.WithLabelValues(s.Name(), string(class)).Observe(time.Since(start).Seconds())
	s.metrics.countResults(s.Name(), results)
	return results, err
}
