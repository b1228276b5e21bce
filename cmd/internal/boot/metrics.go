package boot

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are where Prometheus finds its numbers.
type Metrics struct {
	MetricsListen string `setting:"REELTALLY_METRICS_LISTEN" placeholder:"ADDRESS" help:"HOST:PORT at which /metrics and /status are served; not served without. Keep it away from the public."`
}

// NewRegistry returns a registry that knows the process and what was built.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "reeltally_build_info", Help: "1, labelled with the version."}, []string{"version"})
	build.WithLabelValues(Version()).Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build)
	return r
}

// Part serves the registry, and the status for operators at /status unless it is nil; false when no address is set.
func (m Metrics) Part(ctx context.Context, r *prometheus.Registry, status http.Handler, logger *slog.Logger) (Part, bool, error) {
	if m.MetricsListen == "" {
		return Part{}, false, nil
	}
	l, err := Listen(ctx, "metrics-listen", "REELTALLY_METRICS_LISTEN", m.MetricsListen)
	if err != nil {
		return Part{}, false, err
	}
	logger.InfoContext(ctx, "serving metrics", "address", URL(l)+"/metrics")
	routes := http.NewServeMux()
	routes.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{Registry: r}))
	if status != nil {
		routes.Handle("GET /status", status)
	}
	return Part{"metrics", func(ctx context.Context) error { return Serve(ctx, l, routes, logger) }}, true, nil
}

// Measured counts a handler's requests and how long they take.
func Measured(r *prometheus.Registry, handler http.Handler) http.Handler {
	inFlight := prometheus.NewGauge(prometheus.GaugeOpts{Name: "reeltally_http_requests_in_flight", Help: "Requests being answered."})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "reeltally_http_request_seconds",
		Help: "How long requests took to answer, and by their count how many there were.", Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 12)},
		[]string{"method", "status"})
	r.MustRegister(inFlight, seconds)
	return promhttp.InstrumentHandlerInFlight(inFlight, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		began := time.Now()
		answer := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		handler.ServeHTTP(answer, req)
		seconds.WithLabelValues(knownMethod(req.Method), strconv.Itoa(answer.status)).Observe(time.Since(began).Seconds())
	}))
}

// knownMethod keeps strangers from making labels.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the writer below, which can flush and set deadlines.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Version is the version that was built: the module's, or the commit's, or "devel" when neither is known.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if revision == "" {
		return "devel"
	}
	return revision[:min(12, len(revision))] + dirty
}
