package e2e_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// spanTree is a list of received spans, with methods that find spans by their name and by their place in the trace.
type spanTree []receivedSpan

// descendants returns the spans that are below the given span: its children, their children, and so on.
func (all spanTree) descendants(s receivedSpan) spanTree {
	var found spanTree
	for _, child := range all {
		if child.parent() == s.id() && child.traceID() == s.traceID() {
			found = append(append(found, child), all.descendants(child)...)
		}
	}
	return found
}

func (all spanTree) withName(name string) spanTree {
	return slices.DeleteFunc(slices.Clone(all), func(s receivedSpan) bool { return s.Name != name })
}

func (all spanTree) names() []string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	return names
}

const (
	callerTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callerSpan  = "00f067aa0ba902b7"
)

// The server and the collector must send spans of requests, fetches, tool calls and webhooks. The
// spans must not contain secrets or parameters of SQL statements.
func TestTraces_haveSpansOfRequestsAndFetches(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			receiver, delivered := newTraceReceiver(t), make(chan struct{}, 1)
			events := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				select {
				case delivered <- struct{}{}:
				default: // the test waits for one event only
				}
			}))
			t.Cleanup(events.Close)
			s := &stack{sandboxProcess: startSandbox(t)}
			s.env = append(slices.Clone(s.sandboxProcess.env), "REELTALLY_DATABASE_URL="+storetest.CreateDatabase(t, engine), "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_WEBHOOK_ALLOW_PRIVATE=true",
				"OTEL_EXPORTER_OTLP_ENDPOINT="+receiver.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=canary%20API%20key")
			s.token = s.newAdminToken(t)
			s.startServer(t)
			s.startCollector(t)
			var hook struct{ Secret string }
			requireResponse(t, http.MethodPost, s.base+"/webhooks", s.token, map[string]any{"url": events.URL + "/canary-path-of-webhook?key=canary-of-webhook"}).decode(t, &hook)

			v := s.publicVideos(t, link.YouTube, 1, 1)[0]
			a, err := sendJSONWithHeaders(t, http.MethodPost, s.base+"/videos", s.token, map[string]string{"link": v.url}, map[string]string{
				"traceparent": "00-" + callerTrace + "-" + callerSpan + "-01", "tracestate": "vendor=canary-of-tracestate", "baggage": "key=canary-of-baggage",
				"X-Request-Id": "request-1"})
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, a.status, string(a.body))
			var tracked struct{ VideoID string }
			a.decode(t, &tracked)
			await(t, fetchTimeout, 50*time.Millisecond, func() string {
				var read struct {
					LatestViews *int64 `json:"latest_views"`
				}
				requireResponse(t, http.MethodGet, s.base+"/videos/"+url.PathEscape(v.url), s.token, nil).decode(t, &read)
				if read.LatestViews == nil {
					return "the video has no numbers yet"
				}
				return ""
			})
			requireResponse(t, http.MethodGet, s.base+"/videos?q=canary-of-query&limit=3", s.token, nil)
			requireResponse(t, http.MethodGet, s.base+"/canary-of-path", s.token, nil)
			requireResponse(t, http.MethodGet, s.base+"/c/canary-of-share-page", "", nil)
			requireResponse(t, http.MethodGet, s.base+"/livez", "", nil)
			tool, err := sendJSONWithHeaders(t, http.MethodPost, s.base+"/mcp", s.token, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
				"params": map[string]any{"name": "get_video", "arguments": map[string]any{"ad_id": v.url}}}, map[string]string{"Accept": "application/json, text/event-stream"})
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, tool.status, string(tool.body))
			select {
			case <-delivered:
			case <-time.After(fetchTimeout):
				require.Fail(t, "the webhook got no event")
			}
			s.collector.stop(t, syscall.SIGTERM)
			s.server.stop(t, syscall.SIGTERM)

			all := spanTree(receiver.receivedSpans(t))
			system := map[string]string{"sqlite": "sqlite", "postgres": "postgresql"}[engine]
			requireRequestSpans(t, s, all, system)
			requireFetchSpans(t, all, system)
			requireSpansOfToolAndWebhook(t, all)
			require.Empty(t, all.withName("GET /livez"))
			for _, h := range receiver.headers {
				require.Equal(t, "canary API key", h.Get("api-key"))
			}
			canaries := map[string]string{"the token": s.token, "the id of the video": v.ID, "the id of the row": tracked.VideoID, "the link": v.url, "the secret of the webhook": hook.Secret,
				"another canary": "canary"}
			for _, setting := range s.sandboxProcess.env {
				if name, value, _ := strings.Cut(setting, "="); strings.HasSuffix(name, "_KEY") {
					canaries[name] = value
				}
			}
			require.Contains(t, canaries, "REELTALLY_YOUTUBE_API_KEY")
			receiver.requireTextsAbsent(t, canaries)
			for _, p := range []*process{s.server, s.collector} {
				require.NotContains(t, p.stderr.String(), "canary", "the log must not contain the headers that are sent to the receiver")
			}
		})
	}
}

// requireRequestSpans checks the spans of POST /videos, which the caller has sent with a traceparent.
func requireRequestSpans(t *testing.T, s *stack, all spanTree, system string) {
	t.Helper()
	roots := all.withName("POST /videos")
	require.Len(t, roots, 1, all.names())
	root := roots[0]
	require.Equal(t, callerTrace, root.traceID(), "the span must belong to the trace of the caller")
	require.Equal(t, callerSpan, root.parent())
	require.Empty(t, root.TraceState)
	require.Equal(t, "reeltally-server", root.service)
	require.Equal(t, "SPAN_KIND_SERVER", root.Kind.String())
	require.Equal(t, "request-1", root.attrs["reeltally.request_id"])
	require.Equal(t, "200", root.attrs["http.response.status_code"])
	require.Equal(t, "POST", root.attrs["http.request.method"])
	require.Equal(t, "/videos", root.attrs["http.route"])
	require.Len(t, root.attrs["reeltally.organisation_id"], 36)
	statements := all.descendants(root)
	for _, want := range []string{"BEGIN", "COMMIT"} {
		require.Len(t, statements.withName(want), 1, "%s: %v", want, statements.names())
	}
	require.True(t, slices.ContainsFunc(statements.names(), func(name string) bool { return strings.HasPrefix(name, "INSERT ") }), statements.names())
	for _, span := range statements {
		require.Equal(t, system, span.attrs["db.system.name"], span.Name)
		require.NotEmpty(t, span.attrs["db.query.text"])
		require.Equal(t, "SPAN_KIND_CLIENT", span.Kind.String())
	}
	line := s.server.stderr.Await(t, waitTimeout, `"msg":"request"`, `"request_id":"request-1"`)
	require.Contains(t, line, `"trace_id":"`+callerTrace+`"`)
	require.NotEmpty(t, all.withName("GET"), "if no route matches the path, the span must not contain the path")
}

// requireFetchSpans checks one trace of the collector. It must have the spans of a claim, of a call to a source, and of a write of the
// counts.
func requireFetchSpans(t *testing.T, all spanTree, system string) {
	t.Helper()
	rounds := slices.DeleteFunc(all.withName("collect youtube"), func(s receivedSpan) bool { return len(all.descendants(s).withName("call youtube")) == 0 })
	require.NotEmpty(t, rounds, all.names())
	round := rounds[0]
	require.Empty(t, round.parent())
	require.Equal(t, "reeltally-collector", round.service)
	require.Equal(t, "1", round.attrs["reeltally.targets"])
	below := all.descendants(round)
	claim, fetched, stored := below.withName("claim"), below.withName("call youtube"), below.withName("store")
	require.Len(t, claim, 1)
	require.Len(t, fetched, 1)
	require.Len(t, stored, 1)
	for _, child := range []receivedSpan{claim[0], fetched[0], stored[0]} {
		require.Equal(t, round.id(), child.parent(), child.Name)
	}
	require.LessOrEqual(t, claim[0].EndTimeUnixNano, fetched[0].StartTimeUnixNano)
	require.LessOrEqual(t, fetched[0].EndTimeUnixNano, stored[0].StartTimeUnixNano)
	require.Equal(t, "1", fetched[0].attrs["reeltally.results.ok"])
	require.Equal(t, "youtube", fetched[0].attrs["reeltally.platform"])
	requests := all.descendants(fetched[0]).withName("GET")
	require.NotEmpty(t, requests, all.descendants(fetched[0]).names())
	require.Equal(t, "127.0.0.1", requests[0].attrs["server.address"])
	require.Equal(t, "200", requests[0].attrs["http.response.status_code"])
	for _, step := range []receivedSpan{claim[0], stored[0]} {
		commits := all.descendants(step).withName("COMMIT")
		require.NotEmpty(t, commits, "%s: %v", step.Name, all.descendants(step).names())
		require.Equal(t, system, commits[0].attrs["db.system.name"])
	}
}

// requireSpansOfToolAndWebhook requires that the trace of a tool call has the span of its API request. Each call to a webhook must begin a new trace.
func requireSpansOfToolAndWebhook(t *testing.T, all spanTree) {
	t.Helper()
	mcp := all.withName("POST /mcp")
	require.Len(t, mcp, 1)
	inner := all.descendants(mcp[0]).withName("GET /videos/:ad_id")
	require.Len(t, inner, 1, all.descendants(mcp[0]).names())
	require.Equal(t, "SPAN_KIND_INTERNAL", inner[0].Kind.String())
	require.True(t, slices.ContainsFunc(all.descendants(inner[0]).names(), func(name string) bool { return strings.HasPrefix(name, "SELECT ") }))
	var posts spanTree
	for _, sent := range all.withName("send to webhook") { // the span has no request if all events of the webhook were already sent
		require.Empty(t, sent.parent())
		posts = append(posts, all.descendants(sent).withName("POST")...)
	}
	require.NotEmpty(t, posts)
	require.Equal(t, "127.0.0.1", posts[0].attrs["server.address"])
}

// If the receiver of spans is down or never answers, this must not delay requests or a shutdown. The failure must be logged only once.
func TestTraces_failingReceiverDelaysNoRequests(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // the operating system accepts connections to this listener, but the test never reads from them
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	down, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, down.Close())
	for name, c := range map[string]struct {
		address net.Addr
		env     []string
		logged  string
	}{
		"down":    {down.Addr(), nil, "spans could not be sent"},
		"hangs":   {silent.Addr(), []string{"OTEL_EXPORTER_OTLP_TIMEOUT=100"}, "spans could not be sent"},
		"cut off": {silent.Addr(), nil, "the last spans were not sent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &stack{}
			s.env = append(c.env, "REELTALLY_DATABASE_URL="+storetest.CreateDatabase(t, "sqlite"), "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_RATE_LIMITS=off",
				"OTEL_EXPORTER_OTLP_ENDPOINT=http://"+c.address.String(), "OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_BSP_MAX_QUEUE_SIZE=8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=4")
			s.token = s.newOrganisation(t)
			s.startServer(t)
			for range 200 { // far more spans than the queue can hold
				started := time.Now()
				require.Equal(t, http.StatusOK, requireResponse(t, http.MethodGet, s.base+"/videos", s.token, nil).status)
				require.Less(t, time.Since(started), 8*time.Second, "a request must not wait for the receiver of spans, which takes ten seconds to fail")
			}
			if c.logged == "spans could not be sent" {
				s.server.stderr.Await(t, waitTimeout, c.logged)
			}
			stopping := time.Now()
			s.server.stop(t, syscall.SIGTERM)
			require.Less(t, time.Since(stopping), 30*time.Second)
			require.Equal(t, 1, strings.Count(s.server.stderr.String(), c.logged), s.server.stderr.String())
		})
	}
}

// `reeltally up` must send the spans of requests and of fetches under the same service name. If the
// SDK is disabled or nothing is sampled, it must send no spans.
func TestTraces_areSentOnlyToAConfiguredReceiver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		variables []string
		sent      bool
	}{
		"a receiver":          {nil, true},
		"another name":        {[]string{"OTEL_SERVICE_NAME=numbers"}, true},
		"the SDK is disabled": {[]string{"OTEL_SDK_DISABLED=true"}, false},
		"nothing is sampled":  {[]string{"OTEL_TRACES_SAMPLER=always_off"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receiver, data := newTraceReceiver(t), t.TempDir()
			p := startProgram(t, "reeltally", append([]string{"REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_DATA_DIR=" + data, "REELTALLY_LOG_LEVEL=info",
				"OTEL_EXPORTER_OTLP_ENDPOINT=" + receiver.URL + "/"}, c.variables...), "up")
			p.stdout.Await(t, waitTimeout, "Ctrl-C stops.")
			base := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(p.stdout.String())
			token, err := os.ReadFile(filepath.Join(data, "demo-token"))
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, requireResponse(t, http.MethodGet, base+"/videos", strings.TrimSpace(string(token)), nil).status)
			line := p.stderr.Await(t, waitTimeout, `"msg":"request"`, `"route":"/videos"`)
			require.Equal(t, c.sent, strings.Contains(line, `"trace_id"`), line)
			p.stop(t, syscall.SIGTERM)
			all := spanTree(receiver.receivedSpans(t))
			if !c.sent {
				require.Empty(t, all.names())
				return
			}
			require.NotEmpty(t, all.withName("GET /videos"))
			for _, s := range all {
				require.Equal(t, map[bool]string{true: "numbers", false: "reeltally"}[name == "another name"], s.service)
			}
		})
	}
}
