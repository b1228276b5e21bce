package graph_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// platform is a test server and a client of this server. A test can set the server's answer.
type platform struct {
	*graph.Client
	now      atomic.Pointer[time.Time]
	header   atomic.Pointer[http.Header]
	status   atomic.Int32
	body     atomic.Pointer[string]
	requests chan string
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{requests: make(chan string, 64)}
	p.setClock(sourcetest.Now)
	p.respond(http.StatusOK, `{"id":"1"}`, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests <- r.Method + " " + r.RequestURI
		maps.Copy(w.Header(), *p.header.Load())
		w.WriteHeader(int(p.status.Load()))
		_, _ = w.Write([]byte(*p.body.Load()))
	}))
	t.Cleanup(web.Close)
	client := fetch.New(fetch.Options{})
	t.Cleanup(client.Close)
	var err error
	p.Client, err = graph.New(graph.Options{Source: "test", BaseURL: web.URL + "/v25.0", Token: sourcetest.Credential, Client: client, Now: func() time.Time { return *p.now.Load() }})
	require.NoError(t, err)
	return p
}

func (p *platform) setClock(now time.Time) { p.now.Store(&now) }

func (p *platform) respond(status int, body string, header http.Header) {
	if header == nil {
		header = http.Header{}
	}
	p.status.Store(int32(status))
	p.body.Store(&body)
	p.header.Store(&header)
}

func (p *platform) requireFailure(t *testing.T, classes graph.ErrorClasses) *source.Failure {
	t.Helper()
	_, err := p.Get(t.Context(), nil, "1", classes)
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	return f
}

func TestClient_sendsRequestsAsDocumented(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	_, err := p.Get(t.Context(), nil, "17841405822304914", nil, "fields", "business_discovery.username(mira){id,media.limit(50){id}}", "after", "QVF=")
	require.NoError(t, err)
	require.Equal(t, "GET /v25.0/17841405822304914?fields=business_discovery.username%28mira%29%7Bid%2Cmedia.limit%2850%29%7Bid%7D%7D&after=QVF%3D&access_token=s3cret%2BKey%2F42", <-p.requests)
}

func TestClient_classifiesErrors(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	quarter := sourcetest.Now.Add(15 * time.Minute)
	for body, want := range map[string]source.Failure{
		`{"error":{"message":"An unknown error","code":1}}`:                                                                      {Class: source.Temporary, Detail: "HTTP 400, code 1/0: An unknown error"},
		`{"error":{"message":"Service temporarily unavailable","code":2,"is_transient":true}}`:                                   {Class: source.Temporary, Detail: "HTTP 400, code 2/0: Service temporarily unavailable"},
		`{"error":{"message":"Application request limit reached","code":4,"is_transient":true}}`:                                 {Class: source.RateLimited, RetryAt: quarter, Detail: "HTTP 400, code 4/0: Application request limit reached"},
		`{"error":{"message":"User request limit reached","code":17,"error_subcode":2446079}}`:                                   {Class: source.RateLimited, RetryAt: quarter, Detail: "HTTP 400, code 17/2446079: User request limit reached"},
		`{"error":{"message":"Page request limit reached","code":32}}`:                                                           {Class: source.RateLimited, RetryAt: quarter, Detail: "HTTP 400, code 32/0: Page request limit reached"},
		`{"error":{"message":"Custom rate limit reached","code":613}}`:                                                           {Class: source.RateLimited, RetryAt: quarter, Detail: "HTTP 400, code 613/0: Custom rate limit reached"},
		`{"error":{"message":"Business limit reached","code":80002}}`:                                                            {Class: source.RateLimited, RetryAt: quarter, Detail: "HTTP 400, code 80002/0: Business limit reached"},
		`{"error":{"message":"Expired access token s3cret+Key/42","code":190,"error_subcode":463}}`:                              {Class: source.AuthFailed, OfSource: true, Detail: "HTTP 400, code 190/463: Expired access token REDACTED"},
		`{"error":{"message":"Invalid session key","code":102}}`:                                                                 {Class: source.AuthFailed, OfSource: true, Detail: "HTTP 400, code 102/0: Invalid session key"},
		`{"error":{"message":"An access token is required to request this resource.","code":104}}`:                               {Class: source.AuthFailed, OfSource: true, Detail: "HTTP 400, code 104/0: An access token is required to request this resource."},
		`{"error":{"message":"(#100) Pages Public Content Access requires either app secret proof or an app token","code":100}}`: {Class: source.AuthFailed, Detail: "HTTP 400, code 100/0: (#100) Pages Public Content Access requires either app secret proof or an app token"},
		`{"error":{"message":"permission","code":10}}`:                                                                           {Class: source.AuthFailed, Detail: "HTTP 400, code 10/0: permission"},
		`{"error":{"message":"permission","code":230}}`:                                                                          {Class: source.AuthFailed, Detail: "HTTP 400, code 230/0: permission"},
		`{"error":{"message":"The action is blocked","code":368}}`:                                                               {Class: source.AuthFailed, OfSource: true, Detail: "HTTP 400, code 368/0: The action is blocked"},
		`{"error":{"message":"nonexisting field","code":100}}`:                                                                   {Class: source.BadRequest, Detail: "HTTP 400, code 100/0: nonexisting field"},
		`{"error":{"message":"Object does not exist","code":100,"error_subcode":33}}`:                                            {Class: source.BadRequest, Detail: "HTTP 400, code 100/33: Object does not exist"},
		`{"error":"another shape"}`: {Class: source.BadRequest, Detail: "HTTP 400"},
		`{"error":{"message":"Object does not exist at the moment","code":803,"is_transient":true}}`: {Class: source.Temporary, Detail: "HTTP 400, code 803/0: Object does not exist at the moment"},
	} {
		p.respond(http.StatusBadRequest, body, nil)
		f := p.requireFailure(t, graph.ErrorClasses{{Main: 803}: source.Missing})
		require.Equal(t, want, *f, body)
	}
	p.respond(http.StatusNotFound, `{"error":{"message":"alias","code":803}}`, nil)
	_, err := p.Get(t.Context(), nil, "x", graph.ErrorClasses{{Main: 803}: source.Missing, {Main: 803, Sub: 5}: source.Private})
	e, ok := graph.AsTargetError(err)
	require.True(t, ok)
	require.Equal(t, graph.TargetError{Class: source.Missing, Detail: "HTTP 404, code 803/0: alias"}, *e)
	p.respond(http.StatusInternalServerError, `{"error":{"message":"alias","code":803}}`, nil)
	require.Equal(t, source.Temporary, p.requireFailure(t, graph.ErrorClasses{{Main: 803}: source.Missing}).Class, "the class must be temporary, because an internal server error says nothing about the object")
}

func TestClient_delaysOrStopsCallsDependingOnReportedUsage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		header, value string
		delay, stop   time.Duration
	}{
		"74 % of the app's limit used":                        {"X-App-Usage", `{"call_count":74,"total_time":25,"total_cputime":25}`, 0, 0},
		"85 % of the app's limit used":                        {"X-App-Usage", `{"call_count":28,"total_time":85,"total_cputime":25}`, 30 * time.Second, 0},
		"95 % of the app's limit used":                        {"X-App-Usage", `{"call_count":28,"total_time":25,"total_cputime":95}`, 0, 15 * time.Minute},
		"90 % of a business limit used":                       {"X-Business-Use-Case-Usage", `{"1":[{"call_count":80}],"2":[{"call_count":5},{"total_time":90}]}`, 45 * time.Second, 0},
		"business limit with a known reset time":              {"X-Business-Use-Case-Usage", `{"1":[{"call_count":3,"estimated_time_to_regain_access":42}]}`, 0, 42 * time.Minute},
		"business limit with a reset time far in the future":  {"X-Business-Use-Case-Usage", `{"1":[{"call_count":100,"estimated_time_to_regain_access":1e300}]}`, 0, 24 * time.Hour},
		"header whose value has a string instead of a number": {"X-App-Usage", `{"call_count":"96"}`, 0, 0},
		"header whose value is truncated JSON":                {"X-Business-Use-Case-Usage", `{"1":[{"call_count":100`, 0, 0},
		"header whose value is a list instead of an object":   {"X-Business-Use-Case-Usage", `[100]`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlatform(t)
			require.Equal(t, [][]source.Call{{{Budget: graph.Budget, Units: 3}}}, p.Plan(3))
			p.respond(http.StatusOK, `{"id":"1"}`, http.Header{tt.header: {tt.value}})
			_, err := p.Get(t.Context(), nil, "1", nil)
			require.NoError(t, err, "Get must return the answer even if its headers report that the limit is used up")
			<-p.requests
			p.respond(http.StatusOK, `{"id":"1"}`, nil)
			if tt.delay > 0 {
				p.setClock(sourcetest.Now.Add(tt.delay - time.Second))
				require.Empty(t, p.Plan(3), "calls must be delayed")
				p.setClock(sourcetest.Now.Add(tt.delay))
			}
			require.Len(t, p.Plan(3), 1)
			if tt.stop > 0 {
				p.setClock(sourcetest.Now.Add(tt.stop - time.Second))
				f := p.requireFailure(t, nil)
				require.Equal(t, source.RateLimited, f.Class)
				require.True(t, sourcetest.Now.Add(tt.stop).Equal(f.RetryAt), "got %s", f.RetryAt)
				require.Contains(t, f.Detail, "no calls are made")
				require.Empty(t, p.requests, "Get must not send a request while the limit is used up")
				p.setClock(sourcetest.Now.Add(tt.stop))
			}
			_, err = p.Get(t.Context(), nil, "1", nil)
			require.NoError(t, err)
		})
	}
	t.Run("the answer is an error, and a header says when calls are allowed again", func(t *testing.T) {
		t.Parallel()
		p := newPlatform(t)
		p.respond(http.StatusBadRequest, `{"error":{"message":"limit","code":80002}}`, http.Header{"X-Business-Use-Case-Usage": {`{"1":[{"call_count":100,"estimated_time_to_regain_access":7}]}`}})
		require.True(t, sourcetest.Now.Add(7*time.Minute).Equal(p.requireFailure(t, nil).RetryAt))
	})
	t.Run("the answer is an error with the header Retry-After", func(t *testing.T) {
		t.Parallel()
		p := newPlatform(t)
		p.respond(http.StatusBadRequest, `{"error":{"message":"limit","code":4}}`, http.Header{"X-App-Usage": {`{"call_count":100}`}, "Retry-After": {"90"}})
		for range 2 { // the server refuses the first call, and the client refuses the second call
			require.True(t, sourcetest.Now.Add(90*time.Second).Equal(p.requireFailure(t, nil).RetryAt))
		}
		require.Len(t, p.requests, 1)
	})
}

func TestNew_refusesInvalidOptions(t *testing.T) {
	t.Parallel()
	_, err := graph.New(graph.Options{Source: "instagram"})
	require.EqualError(t, err, "instagram: the access token is missing")
	_, err = graph.New(graph.Options{Source: "instagram", Token: "t0k"})
	require.EqualError(t, err, "instagram: the options \"Client\" and \"Now\" are required")
	client := fetch.New(fetch.Options{})
	for _, base := range []string{"graph.facebook.com/v25.0", "ftp://x/v25.0", "https:///v25.0", "https://x/v25.0?a=t0k", "https://x/v25.0#a", "https://x/", "https://x/v25", "://"} {
		_, err := graph.New(graph.Options{Source: "instagram", BaseURL: base, Token: "t0k", Client: client, Now: time.Now})
		require.ErrorContains(t, err, "instagram: the base address must be an http or https address that ends in a version, such as https://graph.facebook.com/v25.0/", base)
		require.NotContains(t, err.Error(), "t0k")
	}
	c, err := graph.New(graph.Options{Source: "instagram", Token: "t0k", Client: client, Now: time.Now})
	require.NoError(t, err)
	id, ends := c.Budgets()[0].Window(sourcetest.Now)
	require.Equal(t, "2026-11-21T15Z", id)
	require.Equal(t, time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC), ends)
	require.Zero(t, c.Budgets()[0].Limit)
}
