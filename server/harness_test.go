package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// TestMain runs the tests. If the tests pass and the command line does not select some of them, TestMain also
// requires that a test received each response in openapi.yaml, and that no goroutine is left.
func TestMain(m *testing.M) {
	flag.Parse()
	for _, mediaType := range []string{"text/csv", "application/x-ndjson", xlsx} {
		openapi3filter.RegisterBodyDecoder(mediaType, openapi3filter.FileBodyDecoder) // decodes a body of this media type to one string
	}
	code := m.Run()
	if code == 0 && !selectsTests() {
		if missing := sharedContract().untestedResponses(); len(missing) > 0 {
			fmt.Fprintln(os.Stderr, "openapi.yaml declares these responses, but no test received them:\n\t"+strings.Join(missing, "\n\t"))
			code = 1
		}
		// One goroutine of the library "limiter" may be left: its cleaner ends only after the store of the library is garbage-collected.
		if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/ulule/limiter/v3/drivers/store/memory.(*cleaner).Run")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// selectsTests returns true if the command line selects some tests of this package. It ignores the flag -skip:
// the tests that `make test-all` skips are not needed to receive each response in openapi.yaml.
func selectsTests() bool {
	for _, name := range []string{"test.run", "test.list", "test.fuzz"} {
		if flag.Lookup(name).Value.String() != "" {
			return true
		}
	}
	return false
}

// app is a running server with a test database, simulated platforms and a recorded log.
type app struct {
	*storetest.DB
	t      *testing.T
	server *server.Server
	http   *httptest.Server
	// databaseError makes every database statement fail with this error. If it is nil, statements succeed.
	databaseError atomic.Pointer[error]
	// panicAt is the name of a database table. Each statement that contains this name causes a panic. If panicAt is nil, there is no panic.
	panicAt   atomic.Pointer[string]
	platforms *platforms
	log       *storetest.Log
}

// newApp starts a server that uses the given database. Each function in changeOptions modifies the options of the server. By default, the
// server has no rate limits.
func newApp(t *testing.T, db *storetest.DB, changeOptions ...func(*server.Options)) *app {
	t.Helper()
	p := newPlatforms(t)
	a := buildApp(t, db, p.URL, changeOptions...)
	a.platforms = p
	a.serve(httptest.NewUnstartedServer(a.server.Handler()))
	return a
}

// buildApp creates a server, but does not start it. platformsURL is the address of the HTTP server that simulates the platforms.
func buildApp(t *testing.T, db *storetest.DB, platformsURL string, change ...func(*server.Options)) *app {
	t.Helper()
	a := &app{DB: db, t: t, log: &storetest.Log{}}
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: a.inspect})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	key, err := s.Secret(t.Context(), "cursor")
	require.NoError(t, err)
	logger := slog.New(slog.NewJSONHandler(a.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	resolver, err := shortlink.New(shortlink.Options{BaseURL: platformsURL, Logger: logger})
	require.NoError(t, err)
	o := server.Options{Store: s, Resolver: resolver, AppURL: "https://app.example.test/", CursorKey: key, Now: db.Clock.Now,
		Logger: logger, RateStore: server.Unlimited{}}
	for _, f := range change {
		f(&o)
	}
	a.server, err = server.New(o)
	require.NoError(t, err)
	return a
}

// serve starts the HTTP server s. When the test ends, it closes s and also the ReelTally server of the app.
func (a *app) serve(s *httptest.Server) {
	s.Start()
	s.Client().Transport.(*http.Transport).DisableCompression = true // only TestCompression_usesTheEncodingOfAcceptEncoding tests compression
	a.http = s
	a.t.Cleanup(func() {
		a.http.Close()
		a.server.Close()
	})
}

// inspect is called before each database statement runs. The statement fails if inspect returns an error.
func (a *app) inspect(statement string, args []any) error {
	if err := a.databaseError.Load(); err != nil {
		return *err
	}
	if table := a.panicAt.Load(); table != nil && strings.Contains(statement, *table) {
		panic("made-up panic in /usr/src, caused by a statement on the table " + *table)
	}
	return a.Guard.Inspect(statement, args)
}

// breakDatabase makes every database statement fail with the given error. It also advances the clock by a second, so that cached tokens
// expire.
func (a *app) breakDatabase(err error) {
	a.Clock.Advance(time.Second)
	a.databaseError.Store(&err)
}

// eachDatabase calls runTest in one subtest for each engine that storetest.StoreEngines returns, with a new server and a new database.
func eachDatabase(t *testing.T, runTest func(t *testing.T, a *app)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) { runTest(t, newApp(t, db)) })
}

// platforms is an HTTP server that simulates TikTok and the other platforms. It answers requests for short links.
type platforms struct {
	*httptest.Server

	mu sync.Mutex
	// locations maps the host and path of a short link to the target that the method redirect has
	// set. A link without an entry gets status 404.
	locations map[string]string
	requests  int // number of requests that the server received
}

func newPlatforms(t *testing.T) *platforms {
	t.Helper()
	p := &platforms{locations: map[string]string{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// respond429 can be passed to platforms.redirect as the target. Requests for the short link then get status 429.
const respond429 = "busy"

// redirect makes a short link redirect to target. If target is "", requests for the link get status 502.
func (p *platforms) redirect(short, target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.locations[strings.TrimSuffix(strings.TrimPrefix(short, "https://"), "/")] = target
}

// requestCount returns the number of requests that p received.
func (p *platforms) requestCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

func (p *platforms) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	switch target, ok := p.locations[strings.Trim(r.URL.Path, "/")]; {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case target == "":
		w.WriteHeader(http.StatusBadGateway)
	case target == respond429:
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		http.Redirect(w, r, target, http.StatusFound)
	}
}

// caller is an API client that sends requests with a token of one organisation.
type caller struct {
	*client.ReelTally
	app   *app
	t     *testing.T
	org   store.Organisation
	token string
	items inventory // the videos, accounts and collections that createItems created; nil before createItems is called
}

// newCaller creates an organisation with an active subscription and a token with all scopes.
func (a *app) newCaller(t *testing.T, tier store.Tier) *caller {
	t.Helper()
	org, err := a.CreateOrganisation(t.Context(), "Northwind", tier, store.SubscriptionActive)
	require.NoError(t, err)
	return a.newToken(t, org, store.Scopes...)
}

// newToken creates a token of an existing organisation and returns a caller that uses the token.
func (a *app) newToken(t *testing.T, org store.Organisation, scopes ...store.Scope) *caller {
	t.Helper()
	_, token, err := a.CreateToken(t.Context(), org.ID, "test", scopes, 0)
	require.NoError(t, err)
	c := &caller{app: a, t: t, org: org, token: token}
	raw, err := client.NewClient(a.http.URL, client.WithHTTPClient(a.newContractCheckingClient()),
		client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+c.token)
			return nil
		}))
	require.NoError(t, err)
	c.ReelTally = &client.ReelTally{Raw: raw}
	return c
}

// newContractCheckingClient returns an HTTP client that checks every request and response against the contract.
func (a *app) newContractCheckingClient() *http.Client {
	return &http.Client{Transport: contractTransport{sharedContract(), a.http.Client().Transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// response is an HTTP response. body contains the whole response body.
type response struct {
	t *testing.T
	*http.Response
	body []byte
}

// send sends a request with the token of c. target is the encoded path and query. The headers are given as pairs: a name and its value.
func (c *caller) send(method, target string, body any, headers ...string) response {
	c.t.Helper()
	got, err := c.exchange(method, target, body, headers...)
	require.NoError(c.t, err)
	return got
}

// exchange sends a request like the method send, but returns an error instead of failing the test. Other goroutines than the goroutine of
// the test must use it, because only the goroutine of the test may call FailNow.
func (c *caller) exchange(method, target string, body any, headers ...string) (response, error) {
	c.t.Helper()
	return c.app.exchange(c.t, method, target, body, append([]string{"Authorization", "Bearer " + c.token}, headers...)...)
}

// send sends a request without a token. The headers are given as pairs: a name and its value. A header whose value is "" is not sent.
func (a *app) send(t *testing.T, method, target string, body any, headers ...string) response {
	t.Helper()
	got, err := a.exchange(t, method, target, body, headers...)
	require.NoError(t, err)
	return got
}

// exchange sends a request like the method send, but returns an error instead of failing the test. Other goroutines than the goroutine of
// the test must use it, because only the goroutine of the test may call FailNow.
func (a *app) exchange(t *testing.T, method, target string, body any, headers ...string) (response, error) {
	t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			return response{}, err
		}
		reader = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, a.http.URL+target, reader)
	if err != nil {
		return response{}, err
	}
	if reader != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	resp, err := a.newContractCheckingClient().Do(r)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	read, err := io.ReadAll(resp.Body)
	return response{t, resp, read}, err
}

// requireStatus fails the test if the response has another status, and shows the body. It returns the response, so that calls can be chained.
func (a response) requireStatus(status int) response {
	a.t.Helper()
	require.Equal(a.t, status, a.StatusCode, "%s", a.body)
	return a
}

// problem requires a response with the given status and the Content-Type application/problem+json. It returns the decoded body.
func (a response) problem(status int) client.Problem {
	a.t.Helper()
	a.requireStatus(status)
	require.Equal(a.t, "application/problem+json", a.Header.Get("Content-Type"))
	return decode[client.Problem](a)
}

// requireProblem requires an error response (RFC 9457) with the given status and error code. It returns the decoded body.
func (a response) requireProblem(status int, code server.Code) client.Problem {
	a.t.Helper()
	p := a.problem(status)
	require.Equal(a.t, string(code), p.Code, "%s", a.body)
	return p
}

// decode returns the JSON body of a response, decoded as a value of type T.
func decode[T any](a response) T {
	a.t.Helper()
	var v T
	require.NoError(a.t, json.Unmarshal(a.body, &v), "%s", a.body)
	return v
}

// tiktokLink is the link of a TikTok video.
const tiktokLink = "https://www.tiktok.com/@northwind.studio/video/7338812345678901234"

// videoURL returns the link of the TikTok video with the id 7300000000000000000 + n.
func videoURL(n int) string {
	return fmt.Sprintf("https://www.tiktok.com/@northwind.studio/video/%d", 7300000000000000000+n)
}

// track sends POST /videos and returns the id of the video.
func (c *caller) track(raw string) uuid.UUID {
	c.t.Helper()
	a := c.send(http.MethodPost, "/videos", map[string]any{"link": raw}).requireStatus(http.StatusOK)
	return decode[client.TrackVideoResult](a).VideoID
}

// fetch does the work of a collector. It advances the clock by a second, takes all due videos from
// the queue, and stores the values that factsOf returns.
func (a *app) fetch(factsOf func(target queue.Target) ingest.VideoFacts) {
	a.t.Helper()
	a.Clock.Advance(time.Second)
	collector := store.NewID()
	for _, p := range link.Platforms {
		for _, lane := range queue.Lanes {
			c, err := a.Claim(a.t.Context(), storetest.NewClaimRequest(collector, p, "video", 1000, time.Minute, lane))
			require.NoError(a.t, err)
			outcomes := make([]ingest.Outcome, len(c.Targets))
			for i, target := range c.Targets {
				f := factsOf(target)
				outcomes[i] = ingest.Outcome{Target: target, Facts: &f, Details: true, Source: "test", State: "active",
					NextAt: store.InstantOf(a.Clock.Now().Add(time.Hour))}
			}
			require.NoError(a.t, a.Acknowledge(a.t.Context(), c, c.At, outcomes))
		}
	}
}

// factsWithViews returns a function that can be passed to fetch. The function gives each fetched video n views and no other values.
func factsWithViews(n int64) func(queue.Target) ingest.VideoFacts {
	return func(queue.Target) ingest.VideoFacts { return ingest.VideoFacts{Views: &n} }
}

// newSQLite creates an SQLite database for a test that does not need to run on both database engines.
func newSQLite(t *testing.T) *storetest.DB {
	t.Helper()
	return storetest.New(t, "sqlite")
}

// listVideos sends GET /videos with the given query and returns the decoded response.
func (c *caller) listVideos(query string) client.VideoPage {
	c.t.Helper()
	return decode[client.VideoPage](c.send(http.MethodGet, "/videos?"+query, nil).requireStatus(http.StatusOK))
}
