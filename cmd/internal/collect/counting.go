package collect

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reeltally/reeltally/collector"
)

const (
	resultsMetric = "reeltally_source_results_total"
	panicsMetric  = "reeltally_collector_panics_total"
)

// CountCalls returns sources that count and time their calls, and count their results, in metrics of the registry.
func CountCalls(registry *prometheus.Registry, sources []collector.Source) []collector.Source {
	m := &sourceMetrics{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "reeltally_source_call_seconds",
			Help:    "Duration of fetches in seconds. The class is ok if the call succeeded.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 10)}, []string{"source", "class"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: resultsMetric,
			Help: "Results for single videos and accounts."}, []string{"source", "kind", "class"}),
	}
	registry.MustRegister(m.calls, m.results)
	counting := make([]collector.Source, len(sources))
	for i, s := range sources {
		counting[i] = countingSource{s, m}
		if g, ok := s.(collector.Grouped); ok {
			counting[i] = groupedCountingSource{countingSource{s, m}, g}
		}
	}
	return counting
}

type sourceMetrics struct {
	calls   *prometheus.HistogramVec
	results *prometheus.CounterVec
}

type countingSource struct {
	collector.Source
	metrics *sourceMetrics
}

type groupedCountingSource struct {
	countingSource
	grouped collector.Grouped
}

// Group calls Group of the wrapped source.
func (s groupedCountingSource) Group(t collector.Target) string { return s.grouped.Group(t) }

// Fetch calls Fetch of the wrapped source and counts the call and its results.
func (s countingSource) Fetch(ctx context.Context, batch []collector.Target, plan []collector.Call) ([]collector.Result, error) {
	start := time.Now()
	results, err := s.Source.Fetch(ctx, batch, plan)
	class := collector.OK
	if err != nil {
		class = "error"
		if failure := (*collector.Failure)(nil); errors.As(err, &failure) {
			class = failure.Class
		}
	}
	s.metrics.calls.WithLabelValues(s.Name(), string(class)).Observe(time.Since(start).Seconds())
	for _, r := range results {
		s.metrics.results.WithLabelValues(s.Name(), string(r.Target.Kind), string(r.Class)).Inc()
	}
	return results, err
}
