package boot

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics has the setting of the address at which /metrics, /status and /debug/pprof are served.
type Metrics struct {
	MetricsListen string `setting:"REELTALLY_METRICS_LISTEN" placeholder:"ADDRESS" help:"HOST:PORT at which /metrics, /status and profiles are served. Without it, they are not served. Do not open this address to the public."`
}

// CheckAddress returns a UsageError if the address of the metrics is invalid, or if it is also the address of the API. The parameter apiListen is
// the setting of the API's address; it is "" if the program has no API.
func (m Metrics) CheckAddress(apiListen string) error {
	if m.MetricsListen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(m.MetricsListen)
	if err != nil {
		return InvalidSetting("REELTALLY_METRICS_LISTEN", m.MetricsListen, "HOST:PORT, for example 127.0.0.1:9091")
	}
	apiHost, apiPort, err := net.SplitHostPort(apiListen)
	if err != nil || port != apiPort || port == "0" {
		return nil //nolint:nilerr // the program itself checks the address of its API
	}
	if ip, apiIP := net.ParseIP(host), net.ParseIP(apiHost); host != apiHost && host != "" && apiHost != "" && !ip.IsUnspecified() && !apiIP.IsUnspecified() {
		return nil
	}
	return UsageError{fmt.Errorf("--metrics-listen (REELTALLY_METRICS_LISTEN) is %s and --listen (REELTALLY_LISTEN) is %s: choose two different ports", m.MetricsListen, apiListen)}
}

// NewRegistry returns a registry with metrics of the Go runtime, the process and the build.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "reeltally_build_info", Help: "Always 1; the label is the version."}, []string{"version"})
	build.WithLabelValues(Version()).Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build)
	return r
}

// Services returns a service that answers requests for the metrics of r and for profiles of this process. If `status` is not nil, the
// service also answers /status. If MetricsListen is empty, Services returns no service.
func (m Metrics) Services(ctx context.Context, r *prometheus.Registry, status http.Handler, logger *slog.Logger) ([]Service, error) {
	if m.MetricsListen == "" {
		return nil, nil
	}
	l, err := Listen(ctx, "REELTALLY_METRICS_LISTEN", m.MetricsListen)
	if err != nil {
		return nil, err
	}
	logger.InfoContext(ctx, "serving metrics", "address", URL(l)+"/metrics")
	routes := http.NewServeMux()
	routes.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{Registry: r}))
	if status != nil {
		routes.Handle("GET /status", status)
	}
	// The other pages of pprof are not served: /debug/pprof/cmdline would show secrets that are arguments of the program.
	routes.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	for _, name := range []string{"allocs", "goroutine", "heap"} {
		routes.Handle("GET /debug/pprof/"+name, pprof.Handler(name))
	}
	return []Service{func(ctx context.Context) error { return Serve(ctx, l, routes, logger) }}, nil
}

// CountRequests returns a handler that passes requests to the given handler, and records the number and the duration of the requests in metrics of
// the registry r.
func CountRequests(r *prometheus.Registry, handler http.Handler) http.Handler {
	inFlight := prometheus.NewGauge(prometheus.GaugeOpts{Name: "reeltally_http_requests_in_flight", Help: "Requests in progress."})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "reeltally_http_request_seconds",
		Help: "Duration of requests in seconds.", Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 12)},
		[]string{"method", "status"})
	r.MustRegister(inFlight, seconds)
	return promhttp.InstrumentHandlerInFlight(inFlight, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		start := time.Now()
		response := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		handler.ServeHTTP(response, req)
		seconds.WithLabelValues(methodLabel(req.Method), strconv.Itoa(response.status)).Observe(time.Since(start).Seconds())
	}))
}

// methodLabel returns the common HTTP methods unchanged, and "other" for all other texts. Without
// "other", clients could create an unlimited number of label values.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

// statusWriter is an http.ResponseWriter that stores the status code of the response.
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

// Unwrap returns the underlying writer. http.ResponseController calls Unwrap to flush the response and to set deadlines.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// release is the version of the release, such as "v1.2.0". `make dist` sets it with a flag of the linker. In all other programs, it is "".
var release string //nolint:gochecknoglobals // the linker can set only a variable

// Version returns the version of the release, else the version of the Go module, else the commit,
// else "devel".
func Version() string {
	if release != "" {
		return release
	}
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
