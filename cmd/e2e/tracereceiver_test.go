package e2e_test

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receivedSpan is a span that a traceReceiver has received.
type receivedSpan struct {
	*tracepb.Span

	service string // name of the program that sent the span
	attrs   map[string]string
}

func (s receivedSpan) id() string      { return hex.EncodeToString(s.SpanId) }
func (s receivedSpan) parent() string  { return hex.EncodeToString(s.ParentSpanId) }
func (s receivedSpan) traceID() string { return hex.EncodeToString(s.TraceId) }

// traceReceiver is a receiver of OTLP, the protocol of OpenTelemetry, over HTTP.
type traceReceiver struct {
	*httptest.Server

	mu      sync.Mutex
	bodies  [][]byte // the received requests
	headers []http.Header
	spans   []receivedSpan
	faults  []string // descriptions of the errors in requests
}

func newTraceReceiver(t *testing.T) *traceReceiver {
	t.Helper()
	r := &traceReceiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(r.handleRequest))
	t.Cleanup(r.Close)
	return r
}

func (r *traceReceiver) handleRequest(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	var sent coltracepb.ExportTraceServiceRequest
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || request.Method != http.MethodPost || request.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
		r.faults = append(r.faults, request.Method+" "+request.URL.Path)
	}
	r.bodies, r.headers = append(r.bodies, body), append(r.headers, request.Header)
	for _, resource := range sent.GetResourceSpans() {
		service := attributeTexts(resource.GetResource().GetAttributes())["service.name"]
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				r.spans = append(r.spans, receivedSpan{s, service, attributeTexts(s.GetAttributes())})
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// attributeTexts returns a map from the names of attributes to their values as text.
func attributeTexts(attributes []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attributes {
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			out[a.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			out[a.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		default:
			out[a.GetKey()] = a.GetValue().String()
		}
	}
	return out
}

// receivedSpans returns the spans that have arrived so far. It fails the test if a request was not a valid request of OTLP.
func (r *traceReceiver) receivedSpans(t *testing.T) []receivedSpan {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Empty(t, r.faults)
	return append([]receivedSpan(nil), r.spans...)
}

// requireTextsAbsent fails the test if a received request contains one of the given values.
func (r *traceReceiver) requireTextsAbsent(t *testing.T, values map[string]string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.NotEmpty(t, r.bodies)
	for name, value := range values {
		require.NotEmpty(t, value, name)
		for _, body := range r.bodies {
			require.False(t, bytes.Contains(body, []byte(value)), "a span contains %s: %s", name, value)
		}
	}
}
