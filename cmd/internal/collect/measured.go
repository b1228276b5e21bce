package collect

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reeltally/reeltally/collector"
)

const (
	resultsName = "reeltally_source_results_total"
	panicsName  = "reeltally_collector_panics_total"
)

// Measured counts what sources are asked and what they answer.
func Measured(registry *prometheus.Registry, sources []collector.Source) []collector.Source {
	m := &sourceMetrics{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "reeltally_source_call_seconds",
			Help:    "How long fetches took, and by their count how many there were; the class is ok when the call had an answer.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 10)}, []string{"source", "class"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: resultsName,
			Help: "Answers for single videos and accounts."}, []string{"source", "kind", "class"}),
	}
	registry.MustRegister(m.calls, m.results)
	measured := make([]collector.Source, len(sources))
	for i, s := range sources {
		measured[i] = measuredSource{s, m}
		if g, ok := s.(collector.Grouped); ok {
			measured[i] = groupedSource{measuredSource{s, m}, g}
		}
	}
	return measured
}

type sourceMetrics struct {
	calls   *prometheus.HistogramVec
	results *prometheus.CounterVec
}

type measuredSource struct {
	collector.Source
	metrics *sourceMetrics
}

type groupedSource struct {
	measuredSource
	grouped collector.Grouped
}

// Group is the group of the source below, where it has such.
func (s groupedSource) Group(t collector.Target) string { return s.grouped.Group(t) }

// Fetch asks the source below.
func (s measuredSource) Fetch(ctx context.Context, batch []collector.Target, plan []collector.Call) ([]collector.Result, error) {
	began := time.Now()
	results, err := s.Source.Fetch(ctx, batch, plan)
	class := collector.OK
	if err != nil {
		class = "error"
		if failure := (*collector.Failure)(nil); errors.As(err, &failure) {
			class = failure.Class
		}
	}
	s.metrics.calls.WithLabelValues(s.Name(), string(class)).Observe(time.Since(began).Seconds())
	for _, r := range results {
		s.metrics.results.WithLabelValues(s.Name(), string(r.Target.Kind), string(r.Class)).Inc()
	}
	return results, err
}
