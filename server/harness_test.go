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

// TestMain fails a run of the whole package in which a declared answer was never seen, or which leaves goroutines behind.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && wholePackage() {
		if missing := theContract().unseen(); len(missing) > 0 {
			fmt.Fprintln(os.Stderr, "declared in openapi.yaml and never seen in a test:\n\t"+strings.Join(missing, "\n\t"))
			code = 1
		}
		// The limiter library ends its cleaner when the garbage collector finds its store unused.
		if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/ulule/limiter/v3/drivers/store/memory.(*cleaner).Run")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func wholePackage() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}

// app is the real server on a real, fresh database.
type app struct {
	*storetest.DB
	t      *testing.T
	server *server.Server
	http   *httptest.Server
	// databaseError, when set, is what every statement fails with.
	databaseError atomic.Pointer[error]
	// panicAt, when set, is the table whose statements panic, as a bug on the way to them would.
	panicAt   atomic.Pointer[string]
	platforms *platforms
	log       *syncBuffer
}

// newApp starts the server on a database. Calls are counted but never too many, unless the options bring a rate store.
func newApp(t *testing.T, db *storetest.DB, change ...func(*server.Options)) *app {
	t.Helper()
	p := newPlatforms(t)
	a := buildApp(t, db, p.URL, change...)
	a.platforms = p
	a.serve(httptest.NewUnstartedServer(a.server.Handler()))
	return a
}

// buildApp builds the server, which nobody reaches yet.
func buildApp(t *testing.T, db *storetest.DB, platformsURL string, change ...func(*server.Options)) *app {
	t.Helper()
	a := &app{DB: db, t: t, log: &syncBuffer{}}
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: a.inspect})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	key, err := s.Secret(t.Context(), "cursor")
	require.NoError(t, err)
	resolver, err := shortlink.New(shortlink.Options{BaseURL: platformsURL})
	require.NoError(t, err)
	o := server.Options{Store: s, Resolver: resolver, AppURL: "https://app.example.test/", CursorKey: key, Now: db.Clock.Now,
		Logger: slog.New(slog.NewJSONHandler(a.log, &slog.HandlerOptions{Level: slog.LevelDebug})), RateStore: server.Unlimited{}}
	for _, f := range change {
		f(&o)
	}
	a.server, err = server.New(o)
	require.NoError(t, err)
	return a
}

func (a *app) serve(s *httptest.Server) {
	s.Start()
	s.Client().Transport.(*http.Transport).DisableCompression = true // answers as they are; compression has tests of its own
	a.http = s
	a.t.Cleanup(func() {
		a.http.Close()
		a.server.Close()
	})
}

func (a *app) inspect(statement string) error {
	if err := a.databaseError.Load(); err != nil {
		return *err
	}
	if table := a.panicAt.Load(); table != nil && strings.Contains(statement, *table) {
		panic("a bug at /usr/src with " + *table)
	}
	return a.Guard.Inspect(statement)
}

// breakDatabase makes every statement fail from now on, and forgets who is known.
func (a *app) breakDatabase(err error) {
	a.Clock.Advance(time.Second)
	a.databaseError.Store(&err)
}

// each runs a case against the server on every engine.
func each(t *testing.T, run func(t *testing.T, a *app)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) { run(t, newApp(t, db)) })
}

// platforms stands in for the platforms' own hosts, as the resolver of short links asks them.
type platforms struct {
	*httptest.Server

	mu        sync.Mutex
	locations map[string]string // host and path → where it redirects to; a missing one is dead, an empty one fails, one of busy is asked too often
	asked     int
}

func newPlatforms(t *testing.T) *platforms {
	t.Helper()
	p := &platforms{locations: map[string]string{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// busy is where a short link leads of which the platform was asked too often.
const busy = "busy"

// redirect makes a short link lead somewhere; to "" it fails for now.
func (p *platforms) redirect(short, target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.locations[strings.TrimSuffix(strings.TrimPrefix(short, "https://"), "/")] = target
}

// calls is how many requests there were.
func (p *platforms) calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func (p *platforms) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	switch target, ok := p.locations[strings.Trim(r.URL.Path, "/")]; {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case target == "":
		w.WriteHeader(http.StatusBadGateway)
	case target == busy:
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		http.Redirect(w, r, target, http.StatusFound)
	}
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// caller is a token of an organisation, and the ways to use it.
type caller struct {
	*client.ClientWithResponses
	app   *app
	t     *testing.T
	org   store.Organisation
	token string
	own   inventory // where stock has filled it
}

// newCaller makes an organisation with a subscription and a token with both scopes.
func (a *app) newCaller(t *testing.T, tier store.Tier) *caller {
	t.Helper()
	org, err := a.CreateOrganisation(t.Context(), "Northwind", tier, store.SubscriptionActive)
	require.NoError(t, err)
	return a.newToken(t, org, store.ScopeRead, store.ScopeWrite)
}

// newToken makes another token of an organisation.
func (a *app) newToken(t *testing.T, org store.Organisation, scopes ...store.Scope) *caller {
	t.Helper()
	_, token, err := a.CreateToken(t.Context(), org.ID, "test", scopes, 0)
	require.NoError(t, err)
	c := &caller{app: a, t: t, org: org, token: token}
	c.ClientWithResponses, err = client.NewClientWithResponses(a.http.URL, client.WithHTTPClient(a.client()),
		client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+c.token)
			return nil
		}))
	require.NoError(t, err)
	return c
}

// client is an HTTP client that holds every exchange against the contract.
func (a *app) client() *http.Client {
	return &http.Client{Transport: checking{theContract(), a.http.Client().Transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// answer is a response, read to its end.
type answer struct {
	t *testing.T
	*http.Response
	body []byte
}

// send sends a request as it stands: target is a path with its query, already encoded.
func (c *caller) send(method, target string, body any, headers ...string) answer {
	c.t.Helper()
	return c.app.send(c.t, method, target, body, append([]string{"Authorization", "Bearer " + c.token}, headers...)...)
}

func (a *app) send(t *testing.T, method, target string, body any, headers ...string) answer {
	t.Helper()
	got, err := a.exchange(t, method, target, body, headers...)
	require.NoError(t, err)
	return got
}

// exchange is send for goroutines beside the test's own, which may not end it.
func (a *app) exchange(t *testing.T, method, target string, body any, headers ...string) (answer, error) {
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
			return answer{}, err
		}
		reader = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, a.http.URL+target, reader)
	if err != nil {
		return answer{}, err
	}
	if reader != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	resp, err := a.client().Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	read, err := io.ReadAll(resp.Body)
	return answer{t, resp, read}, err
}

// is requires the status.
func (a answer) is(status int) answer {
	a.t.Helper()
	require.Equal(a.t, status, a.StatusCode, "%s", a.body)
	return a
}

// problem requires the status and returns the problem.
func (a answer) problem(status int) client.Problem {
	a.t.Helper()
	a.is(status)
	require.Equal(a.t, "application/problem+json", a.Header.Get("Content-Type"))
	return decode[client.Problem](a)
}

// refuses requires a problem of that status and code.
func (a answer) refuses(status int, code server.Code) client.Problem {
	a.t.Helper()
	p := a.problem(status)
	require.Equal(a.t, string(code), p.Code, "%s", a.body)
	return p
}

func decode[T any](a answer) T {
	a.t.Helper()
	var v T
	require.NoError(a.t, json.Unmarshal(a.body, &v), "%s", a.body)
	return v
}

const tiktokLink = "https://www.tiktok.com/@northwind.studio/video/7338812345678901234"

// numbered returns the link of the n-th of a series of videos.
func numbered(n int) string {
	return fmt.Sprintf("https://www.tiktok.com/@northwind.studio/video/%d", 7300000000000000000+n)
}

// track tracks a link and returns the video's id.
func (c *caller) track(raw string) uuid.UUID {
	c.t.Helper()
	a := c.send(http.MethodPost, "/videos", map[string]any{"link": raw}).is(http.StatusOK)
	return decode[client.TrackVideoResult](a).VideoID
}

// fetch delivers facts for everything that is due, as a collector would, and moves the clock on by a second.
func (a *app) fetch(facts func(target queue.Target) ingest.VideoFacts) {
	a.t.Helper()
	a.Clock.Advance(time.Second)
	collector := store.NewID()
	for _, p := range link.Platforms {
		for _, lane := range queue.Lanes {
			c, err := a.Claim(a.t.Context(), queue.ClaimRequest{Collector: collector, Platform: p, Kind: "video", Lanes: []queue.Lane{lane}, Limit: 1000, Lease: time.Minute})
			require.NoError(a.t, err)
			outcomes := make([]ingest.Outcome, len(c.Targets))
			for i, target := range c.Targets {
				f := facts(target)
				outcomes[i] = ingest.Outcome{Target: target, Facts: &f, Details: true, Source: "test", State: "active",
					NextAt: store.InstantOf(a.Clock.Now().Add(time.Hour))}
			}
			require.NoError(a.t, a.Acknowledge(a.t.Context(), c, c.At, outcomes))
		}
	}
}

// views are facts with one number.
func views(n int64) func(queue.Target) ingest.VideoFacts {
	return func(queue.Target) ingest.VideoFacts { return ingest.VideoFacts{Views: &n} }
}

// newSQLite is for tests of what the server does before and after the store.
func newSQLite(t *testing.T) *storetest.DB {
	t.Helper()
	return storetest.New(t, "sqlite")
}

// list lists videos.
func (c *caller) list(query string) client.VideoPage {
	c.t.Helper()
	return decode[client.VideoPage](c.send(http.MethodGet, "/videos?"+query, nil).is(http.StatusOK))
}
