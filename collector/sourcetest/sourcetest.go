// Package sourcetest is the one suite that every source passes. A source brings the bodies that its platform really
// sends; the suite serves them over HTTP, adds what any server may do wrong, and checks that each target gets the
// right class, that no fact is invented and that no credential leaks.
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
)

// Credential is what a source under test is configured with. It needs escaping in a query.
const Credential = "s3cret+Key/42"

// Now is the time at which the suite runs, 07:30 in California.
var Now = time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)

// Case is something that a platform says in its own words.
type Case string

// The cases for which a source brings an answer. All are answers to a call for Harness.Targets.
const (
	OK          Case = "ok"           // everything that the source can say of every target
	Bare        Case = "bare"         // every target with no more than the platform always sends
	Gone        Case = "gone"         // the first target does not exist
	Private     Case = "private"      // the first target is private
	Restricted  Case = "restricted"   // the first target is age-gated or the like
	WrongTypes  Case = "wrong types"  // the first target has members of wrong types
	Strings     Case = "strings"      // as OK, where the platform sends numbers as strings, and strings as numbers
	Big         Case = "big"          // counts or ids beyond 2^53
	Duplicates  Case = "duplicates"   // as OK, with a second item of other counts for the first target at the end
	Foreign     Case = "foreign"      // as OK, with an item that was never asked for
	Strangers   Case = "strangers"    // as Gone, with an item that was never asked for: somebody else's answer, perhaps
	RateLimited Case = "rate limited" // the whole call is refused; the suite adds Retry-After
	QuotaSpent  Case = "quota spent"  // likewise
	AuthFailed  Case = "auth failed"  // likewise; {{credential}} in the body stands for Credential
	ServerError Case = "server error" // likewise
)

var answered = []Case{OK, Bare, Gone, Private, Restricted, WrongTypes, Strings, Big, Duplicates, Foreign, Strangers}
var refused = []Case{RateLimited, QuotaSpent, AuthFailed, ServerError}

// Answer is what the platform says and what has to come of it.
type Answer struct {
	Status  int            // 0 means 200
	Body    string         // {{credential}} stands for Credential
	Classes []source.Class // one for each target; a single one stands for all. Not for refusals.
	// Facts are compared exactly, one for each target, nil where the class is not OK. nil for all means that they are
	// those of the case OK.
	Facts []*source.Facts
	// RetryAt and Bucket are what a refusal has to carry when it has no Retry-After; Class is its class where the platform
	// does not tell the case from another one.
	RetryAt time.Time
	Bucket  string
	Class   source.Class
}

// Harness is a source to be tested, in one of its ways of asking.
type Harness struct {
	// New makes the source: it asks base through client with Credential, and takes Now for the time.
	New     func(t *testing.T, base string, client *fetch.Client) source.Source
	Targets []source.Target // one batch
	Way     int             // which of the source's plans for the batch is meant
	// IsMain tells the request for the targets from others that the source makes besides, which Side answers; nil when
	// there are no others.
	IsMain func(r *http.Request) bool
	Side   http.Handler
	// SideSays is the text of those answers of Side that hold counts.
	SideSays string
	Answers  map[Case]Answer
	// NotFound is the failure that a 404 without JSON means, where it is not Temporary.
	NotFound source.Class
}

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, c := range append(append([]Case{}, answered...), refused...) {
		require.Contains(t, h.Answers, c, "the harness brings no answer for this case")
	}
	for _, c := range answered {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			h.runAnswered(t, c)
		})
	}
	for _, c := range refused {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			h.runRefused(t, c)
		})
	}
	h.runBroken(t)
	h.runSlow(t)
	h.runHostile(t)
}

func (h Harness) runAnswered(t *testing.T, c Case) {
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
	require.Len(t, classes, len(h.Targets), "the harness names no class for some target")
	require.Len(t, facts, len(h.Targets), "the harness names no facts for some target")

	got := h.fetch(t, want.handler(nil), fetch.Options{})
	require.NoError(t, got.err)
	for i, r := range got.results {
		require.Equal(t, classes[i], r.Class, "target %d: %s", i, r.Detail)
		require.False(t, r.Sandbox)
		if r.Class == source.OK {
			require.Equal(t, facts[i], r.Facts, "target %d", i)
		}
	}
}

func (h Harness) runRefused(t *testing.T, c Case) {
	want := h.Answers[c]
	class := classOf(c, want.Class)
	ask := func(t *testing.T, header http.Header) *source.Failure {
		t.Helper()
		got := h.fetch(t, want.handler(header), fetch.Options{})
		require.NotNil(t, got.failure, "the whole call is refused")
		require.Equal(t, class, got.failure.Class, got.failure.Detail)
		require.Equal(t, want.Bucket, got.failure.Bucket)
		return got.failure
	}
	f := ask(t, nil)
	require.True(t, want.RetryAt.Equal(f.RetryAt), "want %s, got %s", want.RetryAt, f.RetryAt)
	if c == RateLimited || c == ServerError {
		f = ask(t, http.Header{"Retry-After": {"120"}})
		require.True(t, Now.Add(2*time.Minute).Equal(f.RetryAt), "got %s", f.RetryAt)
		f = ask(t, http.Header{"Retry-After": {"Sat, 21 Nov 2026 15:31:00 GMT"}})
		require.True(t, Now.Add(time.Minute).Equal(f.RetryAt), "got %s", f.RetryAt)
	}
}

// classOf is the class of a refusal: the case's own unless another is given.
func classOf(c Case, given source.Class) source.Class {
	if given != "" {
		return given
	}
	return map[Case]source.Class{
		RateLimited: source.RateLimited, QuotaSpent: source.QuotaSpent, AuthFailed: source.AuthFailed, ServerError: source.Temporary,
	}[c]
}

func (a Answer) handler(header http.Header) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		maps.Copy(w.Header(), header)
		if a.Status != 0 {
			w.WriteHeader(a.Status)
		}
		_, _ = w.Write([]byte(strings.ReplaceAll(a.Body, "{{credential}}", Credential)))
	}
}

// outcome is what a fetch returned: either results, or an error, which is a failure or the end of the context.
type outcome struct {
	results []source.Result
	err     error
	failure *source.Failure
	logs    string
	spent   []source.Call // the units that Fetch spent
}

// fetch asks a server with the handler for the targets, and checks what holds whatever the server does.
func (h Harness) fetch(t *testing.T, main http.HandlerFunc, o fetch.Options) outcome {
	t.Helper()
	server := httptest.NewServer(h.route(main))
	defer server.Close()
	return h.ask(t, server.URL, o)
}

func (h Harness) route(main http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A server notices that the client has gone only after it has read the request's body.
		_, _ = io.Copy(io.Discard, r.Body)
		if h.IsMain == nil || h.IsMain(r) {
			main.ServeHTTP(w, r)
			return
		}
		h.Side.ServeHTTP(w, r)
	})
}

func (h Harness) ask(t *testing.T, base string, o fetch.Options) outcome {
	t.Helper()
	var logs bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client := fetch.New(o)
	defer client.Close()
	src := h.New(t, base, client)
	for _, target := range h.Targets {
		batch, ok := src.Serves(target)
		require.True(t, ok, "the source does not serve %+v", target)
		require.GreaterOrEqual(t, batch, len(h.Targets))
	}
	plans := src.Plan(h.Targets)
	require.Greater(t, len(plans), h.Way)

	var got outcome
	budget := source.NewCallBudget(plans[h.Way])
	got.results, got.err = src.Fetch(t.Context(), h.Targets, budget)
	got.spent = budget.Spent()
	got.logs = logs.String()
	h.check(t, got)
	got.failure, _ = errors.AsType[*source.Failure](got.err)
	return got
}

// check is what holds for every outcome.
func (h Harness) check(t require.TestingT, got outcome) {
	texts := []string{got.logs}
	if got.err != nil {
		require.Nil(t, got.results, "an error and results at once")
		texts = append(texts, got.err.Error())
		if f, ok := errors.AsType[*source.Failure](got.err); ok {
			require.Contains(t, []source.Class{
				source.RateLimited, source.QuotaSpent, source.AuthFailed, source.BadRequest, source.Temporary,
			}, f.Class, "a class of one target stands for a whole call")
			require.NotEmpty(t, f.Detail)
		}
	} else {
		require.Len(t, got.results, len(h.Targets), "one result for each target")
	}
	for i, r := range got.results {
		require.Equal(t, h.Targets[i], r.Target, "results in the order of the targets")
		facts, others := r.Facts != nil, r.Account != nil
		if h.Targets[i].Kind == source.KindAccount {
			facts, others = others, facts
		}
		require.Equal(t, r.Class == source.OK, facts, "facts exactly when the class is ok, not with %q", r.Class)
		require.False(t, others, "facts of another kind than the target's")
		texts = append(texts, r.Detail)
	}
	for _, text := range texts {
		for _, form := range []string{Credential, url.QueryEscape(Credential), url.PathEscape(Credential)} {
			require.NotContains(t, text, form, "a credential leaked")
		}
	}
}
