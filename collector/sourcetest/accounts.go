package sourcetest

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/queue"
)

// These are the test cases that only accounts have. An AccountHarness must have an answer for each case
// in answeredAccountCases and refusedCases.
const (
	PrivateAccount Case = "private account" // the profile or the list says that the account is private
	Empty          Case = "empty"           // the account has no videos
	Pinned         Case = "pinned"          // as in the case "OK", but one video is listed twice
	BrokenEntry    Case = "broken entry"    // as in the case "OK", but the list also has an entry without an id
	BrokenList     Case = "broken list"     // no entry of the account's list of videos has an id
)

// answeredAccountCases lists the cases in which the platform answers the requests for an account. In the cases of refusedCases, the
// platform refuses these requests.
var answeredAccountCases = []Case{OK, Bare, Gone, WrongTypes, Strings, Big, Foreign, PrivateAccount, Empty, Pinned, BrokenEntry, BrokenList}

// Reply is one answer of the platform.
type Reply struct {
	Status int    // HTTP status; 0 means 200
	Body   string // the body, in which the server replaces {{credential}} by Credential
}

// AccountAnswer has the platform's answers about an account and the expected result.
type AccountAnswer struct {
	Profile Reply
	// Pages are the pages of the account's list of videos, in the order of the requests. They are nil if the list must not be requested.
	Pages []Reply
	Class source.Class // expected class of the result, or of the failure if the platform refuses the request
	// Account is the data of the account that the source must return if Class is source.OK. nil means the Account of the test case "OK".
	Account *source.AccountFacts
	// RetryAt and Budget are the fields that the source.Failure must have after an answer without the header
	// Retry-After.
	RetryAt time.Time
	Budget  string
}

// AccountHarness has a source to test, an account, and the platform's answers about the account in each test case. RunAccountTests runs the
// tests.
type AccountHarness struct {
	New    func(t *testing.T, base string, client *fetch.Client) source.Source
	Target queue.Target
	// IsList returns true if r requests a page of the account's list of videos. It returns false if r requests the profile.
	IsList  func(r *http.Request) bool
	Answers map[Case]AccountAnswer // in the case Foreign, the profile belongs to another account
	// IsSide returns true if r requests neither the profile nor the list. The handler Side answers such
	// requests. IsSide is nil if the source sends no such requests.
	IsSide func(r *http.Request) bool
	Side   http.Handler
}

// RunAccountTests tests a source with answers about an account. The source must return exactly the data
// in the answers. Broken answers must give a temporary failure.
func RunAccountTests(t *testing.T, h AccountHarness) {
	t.Helper()
	for _, c := range append(append([]Case{}, answeredAccountCases...), refusedCases...) {
		require.Contains(t, h.Answers, c, "the harness must have an answer for each case")
	}
	require.Greater(t, len(h.Answers[OK].Pages), 1, "the case \"ok\" must have several pages")
	for _, c := range answeredAccountCases {
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
	h.testRandomChanges(t)
}

// requireExpectedResults serves the answers of a test case. It requires that the source returns the expected class and the expected
// account.
func (h AccountHarness) requireExpectedResults(t *testing.T, c Case) {
	want := h.Answers[c]
	got := h.fetch(t, want.newHandlers(nil))
	if want.Class == source.Temporary {
		h.requireTemporary(t, got)
		return
	}
	require.NoError(t, got.err)
	r := got.results[0]
	require.Equal(t, want.Class, r.Class, r.Detail)
	require.False(t, r.Sandbox)
	if r.Class != source.OK {
		return
	}
	account := want.Account
	if account == nil {
		account = h.Answers[OK].Account
	}
	require.Equal(t, account, r.Account)
}

// testRefusedCase calls Fetch three times. The server first refuses the profile, then the first page of
// the list, and then the second page.
func (h AccountHarness) testRefusedCase(t *testing.T, c Case) {
	want := h.Answers[c]
	class := classOf(c, want.Class)
	ok, pages := h.Answers[OK], []Reply{want.Profile}
	if c == AuthFailed { // a source with expiring tokens repeats the request with a new token
		pages = append(pages, want.Profile)
	}
	for _, answer := range []AccountAnswer{
		{Profile: want.Profile},
		{Profile: ok.Profile, Pages: pages},
		{Profile: ok.Profile, Pages: append([]Reply{ok.Pages[0]}, pages...)},
	} {
		got := h.fetch(t, answer.newHandlers(nil))
		require.NotNil(t, got.failure, "Fetch must return a failure")
		require.Equal(t, class, got.failure.Class, got.failure.Detail)
		require.Equal(t, want.Budget, got.failure.Budget)
		require.True(t, want.RetryAt.Equal(got.failure.RetryAt), "RetryAt: want %s, got %s", want.RetryAt, got.failure.RetryAt)
	}
}

// testBrokenAnswers serves broken answers for the profile or for the list, and requires that each of them gives a temporary failure.
func (h AccountHarness) testBrokenAnswers(t *testing.T) {
	ok := h.Answers[OK]
	for name, broken := range map[string]func(body string) Reply{
		"garbage":                            func(string) Reply { return Reply{Body: "\x00\xff\x1f\x8b garbage"} },
		"an empty body":                      func(string) Reply { return Reply{} },
		"null":                               func(string) Reply { return Reply{Body: "null"} },
		"a truncated answer":                 func(body string) Reply { return Reply{Body: body[:len(body)/2]} },
		"very deep nesting":                  func(string) Reply { return Reply{Body: strings.Repeat(`{"items":[`, 1<<19)} },
		"status 200 with a page of HTML":     func(string) Reply { return Reply{Body: "<!DOCTYPE html><html></html>"} },
		"status 502 with a page of HTML":     func(string) Reply { return Reply{Status: http.StatusBadGateway, Body: "<html></html>"} },
		"10 MB of spaces before the answer":  func(body string) Reply { return Reply{Body: strings.Repeat(" ", 10<<20) + body} },
		"a list with a million entries":      func(string) Reply { return Reply{Body: `{"items":[` + strings.Repeat("0,", 1<<20) + "0]}"} },
		"a JSON string instead of an object": func(string) Reply { return Reply{Body: `"ok"`} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.requireTemporary(t, h.fetch(t, AccountAnswer{Profile: broken(ok.Profile.Body)}.newHandlers(nil)))
			h.requireTemporary(t, h.fetch(t, AccountAnswer{Profile: ok.Profile, Pages: []Reply{broken(ok.Pages[0].Body)}}.newHandlers(nil)))
		})
	}
	t.Run("an answer of a sandbox", func(t *testing.T) {
		t.Parallel()
		got := h.fetch(t, ok.newHandlers(http.Header{reeltally.SandboxHeader: {"true"}}))
		require.NoError(t, got.err)
		require.True(t, got.results[0].Sandbox, "Sandbox must be true in the result")
	})
	t.Run("a list without end", func(t *testing.T) {
		t.Parallel()
		// The server returns the first page of the list for every request, so the list never ends. Fetch must still return a result.
		endless := AccountAnswer{Profile: ok.Profile}
		for range 10_000 {
			endless.Pages = append(endless.Pages, ok.Pages[0])
		}
		got := h.fetch(t, endless.newHandlers(nil))
		require.NoError(t, got.err)
		require.Equal(t, source.OK, got.results[0].Class)
	})
}

// requireTemporary requires that Fetch returned a temporary failure or the class source.Temporary.
func (h AccountHarness) requireTemporary(t *testing.T, got outcome) {
	t.Helper()
	if got.failure != nil {
		require.Equal(t, source.Temporary, got.failure.Class, got.failure.Detail)
		return
	}
	require.NoError(t, got.err)
	require.Equal(t, source.Temporary, got.results[0].Class, got.results[0].Detail)
}

// testRandomChanges changes the valid answers of the test case "OK" at random. All counts and video ids that the source returns must occur
// in the changed answers.
func (h AccountHarness) testRandomChanges(t *testing.T) {
	t.Run("hostile answers", func(t *testing.T) {
		t.Parallel()
		var current atomic.Pointer[AccountAnswer]
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.routeRequests(current.Load().newHandlers(nil))(w, r)
		}))
		defer server.Close()
		client := fetch.New(fetch.Options{})
		defer client.Close()
		src := h.New(t, server.URL, client)
		batch := []queue.Target{h.Target}
		rapid.Check(t, func(rt *rapid.T) {
			ok := h.Answers[OK]
			mutated := AccountAnswer{Profile: ok.Profile, Pages: ok.Pages[:1]}
			if rapid.Bool().Draw(rt, "profile") {
				mutated.Profile.Body = string(mutateJSON(rt, []byte(ok.Profile.Body)))
			} else {
				mutated.Pages = []Reply{{Body: string(mutateJSON(rt, []byte(ok.Pages[0].Body)))}}
			}
			current.Store(&mutated)
			results, err := src.Fetch(t.Context(), batch, source.NewCallBudget(src.Plan(batch)[0]))
			h.videoHarness().checkOutcome(rt, outcome{results: results, err: err})
			if err != nil {
				var f *source.Failure
				require.ErrorAs(rt, err, &f)
				require.Equal(rt, source.Temporary, f.Class, f.Detail)
				return
			}
			if a := results[0].Account; a != nil {
				mutated.requireContainsFacts(rt, a)
			}
		})
	})
}

// requireContainsFacts requires that the counts in f occur in the answer with the profile. The ids of the
// videos in f must occur there or in a page of the account's list.
func (a AccountAnswer) requireContainsFacts(t require.TestingT, f *source.AccountFacts) {
	for name, count := range map[string]*int64{"followers": f.Followers, "following": f.Following} {
		if count != nil {
			require.Contains(t, a.Profile.Body, strconv.FormatInt(*count, 10), "the profile must contain the number of %s that the source returned", name)
		}
	}
	var pages strings.Builder
	pages.WriteString(a.Profile.Body) // some platforms send the first page of the list with the profile
	for _, p := range a.Pages {
		pages.WriteString(p.Body)
	}
	for _, v := range f.Videos {
		require.Contains(t, pages.String(), v.ID, "the answers must contain the id of each returned video")
		require.Contains(t, v.Link, v.ID)
	}
}

// newHandlers returns a function that creates the handler for one request. If isList is true, the
// handler sends the next page of the list. Otherwise, it sends the profile.
func (a AccountAnswer) newHandlers(additional http.Header) func(isList bool) http.HandlerFunc {
	var requested atomic.Int64
	return func(isList bool) http.HandlerFunc {
		reply := a.Profile
		if isList {
			n := int(requested.Add(1))
			if n > len(a.Pages) {
				reply = Reply{Status: http.StatusTeapot, Body: `"the test account's list has no more pages"`}
			} else {
				reply = a.Pages[n-1]
			}
		}
		return Answer{Status: reply.Status, Body: reply.Body}.newHandler(additional)
	}
}

// routeRequests returns a handler that passes each request on. If h.IsSide returns true for the request, h.Side gets the request. Otherwise, the
// handler from newHandler gets it.
func (h AccountHarness) routeRequests(newHandler func(list bool) http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h.IsSide != nil && h.IsSide(r) {
			h.Side.ServeHTTP(w, r)
			return
		}
		newHandler(h.IsList(r))(w, r)
	}
}

// fetch calls Fetch of a new source for the account. newHandler creates the handlers that answer the requests
// for the profile and for the list of videos.
func (h AccountHarness) fetch(t *testing.T, newHandler func(list bool) http.HandlerFunc) outcome {
	t.Helper()
	var calls atomic.Int64
	answer := h.routeRequests(newHandler)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.IsSide == nil || !h.IsSide(r) {
			calls.Add(1)
		}
		answer(w, r)
	}))
	defer web.Close()
	got := h.videoHarness().fetchFrom(t, web.URL, fetch.Options{})
	require.NotEmpty(t, got.spent)
	for _, call := range got.spent {
		require.Equal(t, calls.Load(), call.Units, "each call must spend one unit, and there must be no more calls than planned")
	}
	return got
}

// videoHarness returns a Harness with the same source and target, but without answers.
func (h AccountHarness) videoHarness() Harness {
	return Harness{New: h.New, Targets: []queue.Target{h.Target}}
}
