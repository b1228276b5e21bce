package sourcetest

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/queue"
)

// Credential is the key or token that the source under test sends. It has characters that must be escaped in a URL.
const Credential = "s3cret+Key/42"

// Now is the time that the clock of the tested source returns. It is 07:30 in California, where the daily quotas of some platforms end at
// midnight.
var Now = time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)

// Case is the name of a situation, such as a deleted video. For each case, a harness has an answer in the format of its platform.
type Case string

// These are the test cases. Each Harness must have one answer for each test case. The test server sends this answer when the source
// requests Harness.Targets.
const (
	OK          Case = "ok"           // the answer has all data of all targets
	Bare        Case = "bare"         // the answer has all targets, with only the members that the platform always sends
	Gone        Case = "gone"         // the first target does not exist
	Private     Case = "private"      // the first target is private
	Restricted  Case = "restricted"   // the first target is restricted, for example by age
	WrongTypes  Case = "wrong types"  // the first target has members of wrong types
	Strings     Case = "strings"      // as in the case "OK", but numbers are sent as strings, and strings as numbers
	Big         Case = "big"          // the first target has a count above fetch.MaxCount
	Duplicates  Case = "duplicates"   // as in the case "OK", but with a second item for the first target; the counts of this item differ, so neither item may be used
	Foreign     Case = "foreign"      // as in the case "OK", but with an additional item that was not requested
	GoneForeign Case = "gone foreign" // as in the case "Gone", but with an additional item that was not requested
	RateLimited Case = "rate limited" // the platform refuses the call because of a rate limit
	QuotaSpent  Case = "quota spent"  // the platform refuses the call because the quota is spent
	AuthFailed  Case = "auth failed"  // the platform refuses the credential; its answer can contain the credential
	ServerError Case = "server error" // the platform answers the call with a server error
)

// answeredCases lists the cases in which the platform answers the call for some or all targets.
var answeredCases = []Case{OK, Bare, Gone, Private, Restricted, WrongTypes, Strings, Big, Duplicates, Foreign, GoneForeign}

// refusedCases lists the cases in which the whole call fails.
var refusedCases = []Case{RateLimited, QuotaSpent, AuthFailed, ServerError}

// Answer has the platform's answer in one test case, and the results that the source must return for this answer.
type Answer struct {
	Status  int            // HTTP status; 0 means 200
	Body    string         // the body, in which the server replaces {{credential}} by Credential
	Classes []source.Class // expected class of each target, or one class for all targets; nil if the platform refuses the whole call
	// Facts has the expected data of each target. The data is nil for a target whose class is not source.OK. If
	// Facts itself is nil, the Facts of the test case OK are expected.
	Facts []*source.Facts
	// RetryAt, Budget and Class are the expected fields of the source.Failure if the platform refuses
	// the call.
	RetryAt time.Time // for an answer without the header Retry-After
	Budget  string
	Class   source.Class // "" means the usual class of the case (see classOf)
}

// Harness has a source to test, a batch of videos, and the platform's answers about the videos in each test case. Run runs the tests.
type Harness struct {
	// New returns the source to test. The source sends its requests through the client to the base URL, with the constant Credential. Its
	// clock returns Now.
	New     func(t *testing.T, base string, client *fetch.Client) source.Source
	Targets []queue.Target // the batch that the tests fetch
	Plan    int            // index of the tested plan in the result of Source.Plan
	// IsMain returns true if r requests the targets. Side answers all other requests. IsMain is nil if
	// the source sends no other requests.
	IsMain func(r *http.Request) bool
	Side   http.Handler
	// SideCounts is a JSON text with the counts in the answers of Side. The source may return these counts even
	// if the answer to the request for the targets lacks them.
	SideCounts string
	Answers    map[Case]Answer
	// NotFoundClass is the class that a failure must have if the response has status 404 and an HTML body. "" means source.Temporary.
	NotFoundClass source.Class
}

// Run runs all tests of the suite against the source of a harness.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, c := range append(append([]Case{}, answeredCases...), refusedCases...) {
		require.Contains(t, h.Answers, c, "the harness must have an answer for each case")
	}
	for _, c := range answeredCases {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			h.requireExpectedResults(t, c)
		})
	}
	for _, c := range refusedCases {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			h.testRefusedCase(t, c)
		})
	}
	h.testBrokenAnswers(t)
	h.testSlowServers(t)
	h.testRandomChanges(t)
}

// requireExpectedResults serves the answer of a test case. It requires that the source returns the expected class and the expected data of
// each target.
func (h Harness) requireExpectedResults(t *testing.T, c Case) {
	want := h.Answers[c]
	facts := want.Facts
	if facts == nil {
		facts = h.Answers[OK].Facts
	}
	classes := want.Classes
	if len(classes) == 1 {
		for len(classes) < len(h.Targets) {
			classes = append(classes, want.Classes[0])
		}
	}
	require.Len(t, classes, len(h.Targets), "the harness must have a class for each target")
	require.Len(t, facts, len(h.Targets), "the harness must have facts for each target")

	got := h.fetch(t, want.newHandler(nil), fetch.Options{})
	require.NoError(t, got.err)
	for i, r := range got.results {
		require.Equal(t, classes[i], r.Class, "target %d: %s", i, r.Detail)
		require.False(t, r.Sandbox)
		if r.Class == source.OK {
			require.Equal(t, facts[i], r.Facts, "target %d", i)
		}
	}
}

// testRefusedCase requires the expected failure in a test case in which the platform refuses the whole
// call.
func (h Harness) testRefusedCase(t *testing.T, c Case) {
	want := h.Answers[c]
	class := classOf(c, want.Class)
	refuse := func(t *testing.T, header http.Header) *source.Failure {
		t.Helper()
		got := h.fetch(t, want.newHandler(header), fetch.Options{})
		require.NotNil(t, got.failure, "Fetch must return a failure")
		require.Equal(t, class, got.failure.Class, got.failure.Detail)
		require.Equal(t, want.Budget, got.failure.Budget)
		return got.failure
	}
	f := refuse(t, nil)
	require.True(t, want.RetryAt.Equal(f.RetryAt), "RetryAt: want %s, got %s", want.RetryAt, f.RetryAt)
	if c == RateLimited || c == ServerError {
		f = refuse(t, http.Header{"Retry-After": {"120"}})
		require.True(t, Now.Add(2*time.Minute).Equal(f.RetryAt), "RetryAt must be %s", f.RetryAt)
		f = refuse(t, http.Header{"Retry-After": {"Sat, 21 Nov 2026 15:31:00 GMT"}})
		require.True(t, Now.Add(time.Minute).Equal(f.RetryAt), "RetryAt must be %s", f.RetryAt)
	}
}

// classOf returns configuredClass or, if configuredClass is "", the usual class of a failure in the
// test case.
func classOf(c Case, configuredClass source.Class) source.Class {
	if configuredClass != "" {
		return configuredClass
	}
	return map[Case]source.Class{
		RateLimited: source.RateLimited, QuotaSpent: source.QuotaSpent, AuthFailed: source.AuthFailed, ServerError: source.Temporary,
	}[c]
}

// newHandler returns a handler that sends the answer with additional headers.
func (a Answer) newHandler(header http.Header) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		maps.Copy(w.Header(), header)
		if a.Status != 0 {
			w.WriteHeader(a.Status)
		}
		_, _ = w.Write([]byte(strings.ReplaceAll(a.Body, "{{credential}}", Credential)))
	}
}

// outcome has the results or the error of one call of Fetch, and what Fetch logged.
type outcome struct {
	results []source.Result
	err     error           // the error of the context, or a *source.Failure
	failure *source.Failure // err as a *source.Failure; nil if err is another error
	logs    string
	spent   []source.Call // units that Fetch spent, one entry for each budget
}

// fetch creates a new source, calls its method Fetch, and checks the result with checkOutcome. The handler "main" answers the requests for
// the targets.
func (h Harness) fetch(t *testing.T, main http.HandlerFunc, o fetch.Options) outcome {
	t.Helper()
	server := httptest.NewServer(h.routeRequests(main))
	defer server.Close()
	return h.fetchFrom(t, server.URL, o)
}

// routeRequests returns a handler that passes a request to main if IsMain returns true, and to Side otherwise.
// If IsMain is nil, it passes all requests to main.
func (h Harness) routeRequests(main http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The server notices a closed connection only after it has read the body of the request.
		_, _ = io.Copy(io.Discard, r.Body)
		if h.IsMain == nil || h.IsMain(r) {
			main.ServeHTTP(w, r)
			return
		}
		h.Side.ServeHTTP(w, r)
	})
}

// fetchFrom calls Fetch of a new source and checks the result with checkOutcome. The source sends its
// requests to the server with the given base URL.
func (h Harness) fetchFrom(t *testing.T, base string, o fetch.Options) outcome {
	t.Helper()
	var logs bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client := fetch.New(o)
	defer client.Close()
	src := h.New(t, base, client)
	for _, target := range h.Targets {
		batch, ok := src.Serves(target)
		require.True(t, ok, "the source must serve %+v", target)
		require.GreaterOrEqual(t, batch, len(h.Targets))
	}
	plans := src.Plan(h.Targets)
	require.Greater(t, len(plans), h.Plan)

	var got outcome
	budget := source.NewCallBudget(plans[h.Plan])
	got.results, got.err = src.Fetch(t.Context(), h.Targets, budget)
	got.spent = budget.Spent()
	got.logs = logs.String()
	h.checkOutcome(t, got)
	got.failure, _ = errors.AsType[*source.Failure](got.err)
	return got
}

// checkOutcome checks what must be true after every call of Fetch. No error, result or log may contain
// the credential.
func (h Harness) checkOutcome(t require.TestingT, got outcome) {
	texts := []string{got.logs}
	if got.err != nil {
		require.Nil(t, got.results, "Fetch must not return both results and an error")
		texts = append(texts, got.err.Error())
		if f, ok := errors.AsType[*source.Failure](got.err); ok {
			require.Contains(t, []source.Class{
				source.RateLimited, source.QuotaSpent, source.AuthFailed, source.BadRequest, source.Temporary,
			}, f.Class, "the class must be one that a failure can have")
			require.NotEmpty(t, f.Detail)
		}
	} else {
		require.Len(t, got.results, len(h.Targets), "Fetch must return one result for each target")
	}
	for i, r := range got.results {
		require.Equal(t, h.Targets[i], r.Target, "the results must be in the order of the targets")
		facts, others := r.Facts != nil, r.Account != nil
		if h.Targets[i].Kind == queue.KindAccount {
			facts, others = others, facts
		}
		require.Equal(t, r.Class == source.OK, facts, "a result must have facts if its class is ok, and no facts otherwise: class %q", r.Class)
		require.False(t, others, "a result for a video must have no account, and a result for an account must have no video facts")
		texts = append(texts, r.Detail)
	}
	for _, text := range texts {
		for _, form := range []string{Credential, url.QueryEscape(Credential), url.PathEscape(Credential)} {
			require.NotContains(t, text, form, "no error, result or log may contain the credential")
		}
	}
}
