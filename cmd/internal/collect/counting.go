package collect

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reeltally/reeltally/collector/source"
)

const (
	resultsMetric = "reeltally_source_results_total"
	panicsMetric  = "reeltally_collector_panics_total"
)

// CountCalls wraps sources so that two metrics in the registry record the durations of their calls
// and the numbers of their results.
func CountCalls(registry *prometheus.Registry, sources []source.Source) []source.Source {
	m := &sourceMetrics{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "reeltally_source_call_seconds",
			Help:    "Duration of fetches in seconds. The class is ok if the call succeeded.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 10)}, []string{"source", "class"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: resultsMetric,
			Help: "Number of results of fetches by class, such as ok. A fetch of many targets has one result for each target."}, []string{"source", "kind", "class"}),
	}
	registry.MustRegister(m.calls, m.results)
	counting := make([]source.Source, len(sources))
	for i, s := range sources {
		counting[i] = countingSource{s, m}
	}
	return counting
}

type sourceMetrics struct {
	calls   *prometheus.HistogramVec
	results *prometheus.CounterVec
}

// countingSource is a source that counts its calls and results.
type countingSource struct {
	source.Source
	metrics *sourceMetrics
}

// Fetch asks the wrapped source, and counts the call and its results by class, such as "ok".
func (s countingSource) Fetch(ctx context.Context, batch []source.Target, budget *source.CallBudget) ([]source.Result, error) {
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
	for _, r := range results {
		s.metrics.results.WithLabelValues(s.Name(), string(r.Target.Kind), string(r.Class)).Inc()
	}
	return results, err
}
