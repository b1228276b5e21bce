package collector_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// accountScenario is one way in which the platform changes its answers about two accounts. Before the change, one account was fetched
// ("known"), and the other was not ("unfetched").
type accountScenario struct {
	name   string
	tamper tamperFunc
	// the expected outcomes of fetching the two accounts
	known, unfetched outcome
	// If listsOnly is true, only answers with lists of videos are changed. Then onlyIf must select only sources
	// that request these lists by calls of their own.
	listsOnly bool
	onlyIf    func(testedSource) bool
}

// followerKeys are the JSON names of the number of followers in the answers of the platforms and vendors.
var followerKeys = []string{"subscriberCount", "followers_count", "follower_count", "followerCount", "fans"}

// setFollowers returns a tamperFunc that replaces every number of followers in an answer by the given value.
func setFollowers(value any) tamperFunc {
	return func(_ *tampering, s *response) {
		root := visitNodes(s.decodedBody(), func(key string, v any) any {
			if slices.Contains(followerKeys, key) {
				return value
			}
			if o, ok := v.(object); ok && key == "edge_followed_by" {
				o["count"] = value
			}
			return nil
		})
		s.encode(root)
	}
}

// falsifyFollowers sets every number of followers in an answer to n. It records n as a forged count, which the
// collector may store for the account "unfetched".
func falsifyFollowers(n int64) tamperFunc {
	return func(b *tampering, s *response) {
		setFollowers(n)(b, s)
		// At the first fetch of an account, the collector cannot detect a wrong number of
		// followers.
		b.addForgedCount("unfetched", n)
	}
}

// setTexts returns a tamperFunc that replaces texts in an answer. It replaces the value of each JSON member whose name is in names, if the
// value is a string.
func setTexts(text string, names ...string) tamperFunc {
	return func(_ *tampering, s *response) {
		root := visitNodes(s.decodedBody(), func(key string, v any) any {
			if _, is := v.(string); is && slices.Contains(names, key) {
				return text
			}
			return nil
		})
		s.encode(root)
	}
}

// replaceListedIDs replaces each id in tampering.listedIDs by newID(id), wherever the id occurs in an answer.
func replaceListedIDs(newID func(id string) string) tamperFunc {
	return func(b *tampering, s *response) {
		body := string(s.body)
		for _, id := range b.listedIDs {
			body = strings.ReplaceAll(body, id, newID(id))
		}
		s.body = []byte(body)
	}
}

func accountScenarios() []accountScenario {
	const temporary outcome = "temporary"
	separate := func(l testedSource) bool { return l.listCalls }
	var all []accountScenario
	add := func(list ...accountScenario) { all = append(all, list...) }
	for name, value := range map[string]any{"negative": -5, "fractional": 1.5, "an object": object{"count": 7}, "a word": "many", "2^63-1": rawText("9223372036854775807"),
		"1e308": rawText("1e308"), "true": true, "abbreviated": "1.2K"} {
		add(accountScenario{name: "followers: " + name, tamper: setFollowers(value), known: temporary, unfetched: temporary})
	}
	add(
		accountScenario{name: "null instead of the followers", tamper: setFollowers(jsonNull), known: "ok", unfetched: "ok"},
		accountScenario{name: "zero followers", tamper: falsifyFollowers(0), known: suspicious, unfetched: "ok"},
		accountScenario{name: "a single follower", tamper: falsifyFollowers(1), known: suspicious, unfetched: "ok"},
		accountScenario{name: "a script in the bio", tamper: setTexts("<script>alert(1)</script>", "bio", "biography", "about", "signature", "description", "bio_description"), known: "ok", unfetched: "ok"},
		accountScenario{name: "a javascript: link", tamper: setTexts("javascript:alert(1)", "website", "external_url", "link", "bioLink"), known: "ok", unfetched: "ok"},
		accountScenario{name: "NUL in the names", tamper: setTexts("a\x00b", "display_name", "nickname", "full_name", "title"), known: "ok", unfetched: "ok"})
	for name, tamper := range map[string]tamperFunc{"an empty body": replaceBody(""), "an empty object": replaceBody("{}"), "a page of HTML": replaceBody(htmlPage), "null": replaceBody("null"), "garbage": replaceBody("\x00\xff"),
		"JSON with 10,000 levels":                   replaceBody(strings.Repeat(`{"items":[`, 5_000) + strings.Repeat(`]}`, 5_000)),
		"ten megabytes of spaces before the answer": changeBody(func(b []byte) []byte { return append(bytes.Repeat([]byte(" "), 10<<20), b...) }), "a gzip bomb": gzipBomb,
		"an answer cut in the middle": changeBody(func(b []byte) []byte { return b[:len(b)/2] }), "a body that has the answer twice": changeBody(func(b []byte) []byte { return append(bytes.Clone(b), b...) }),
		"a redirect": respondWithStatus(http.StatusFound, jsonError, "Location", "http://169.254.169.254/"), "a connection that is closed before the answer": closeConnection, "a connection that is closed in the middle of the answer": abortBody,
		"status 500": respondWithStatus(500, jsonError), "status 503 with HTML": respondWithStatus(503, htmlPage)} {
		add(accountScenario{name: name, tamper: tamper, known: temporary, unfetched: temporary},
			accountScenario{name: "a list with " + name, tamper: tamper, known: temporary, unfetched: temporary, listsOnly: true, onlyIf: separate})
	}
	add(
		accountScenario{name: "status 401", tamper: respondWithStatus(401, jsonError), known: "auth_failed", unfetched: "auth_failed"},
		accountScenario{name: "status 402", tamper: respondWithStatus(402, jsonError), known: "quota_spent", unfetched: "quota_spent"},
		accountScenario{name: "status 429", tamper: respondWithStatus(429, jsonError, "Retry-After", "99999999999"), known: "rate_limited", unfetched: "rate_limited"},
		accountScenario{name: "a list with status 429", tamper: respondWithStatus(429, jsonError), known: "rate_limited", unfetched: "rate_limited", listsOnly: true, onlyIf: separate},
		accountScenario{name: "a list with a million entries", tamper: replaceBody(`{"data":[` + strings.Repeat("0,", 1_000_000) + `0]}`), known: temporary, unfetched: temporary, listsOnly: true, onlyIf: separate},
		accountScenario{name: "a list whose pages repeat", tamper: (&repeatedPage{}).tamper, known: "ok", unfetched: "ok", listsOnly: true, onlyIf: separate},
		accountScenario{name: "a list without ids", tamper: replaceListedIDs(func(string) string { return "" }), known: temporary, unfetched: temporary, listsOnly: true, onlyIf: separate},
		accountScenario{name: "a list whose ids are file paths", tamper: replaceListedIDs(func(string) string { return "../../x" }), known: temporary, unfetched: temporary, listsOnly: true, onlyIf: separate},
		accountScenario{name: "a list whose ids are HTML tags", tamper: replaceListedIDs(func(string) string { return "<script>" }), known: temporary, unfetched: temporary, listsOnly: true, onlyIf: separate})
	return all
}

// repeatedPage replaces the body of every answer by the body of the first answer.
type repeatedPage struct{ first []byte }

func (e *repeatedPage) tamper(_ *tampering, s *response) {
	if e.first == nil {
		e.first = bytes.Clone(s.body)
	}
	s.body = bytes.Clone(e.first)
}

// accountRun is the state of a test that runs one accountScenario.
type accountRun struct {
	*hostileTest
	t         *testing.T
	org       *store.Org
	handles   [2]string
	refs      [2]store.Ref
	callTimes []time.Time
	tampering *tampering
}

func (r *accountRun) trackAccount(index int) {
	r.t.Helper()
	l, err := link.Parse(link.AccountURL(r.testedSource.platform, r.handles[index]))
	require.NoError(r.t, err)
	out, err := r.org.TrackAccounts(r.t.Context(), store.TrackRequest{Links: []link.Link{l}, Type: store.TrackLatest30, Immediate: 1})
	require.NoError(r.t, err)
	r.refs[index] = store.Ref{ID: out[0].ID}
}

func (r *accountRun) fetchDueTargets() {
	r.t.Helper()
	r.callTimes = append(r.callTimes, r.db.Clock.Now())
	for busy := true; busy; {
		var err error
		busy, err = r.collector.ClaimAndFetch(r.t.Context())
		require.NoError(r.t, err, r.logged)
	}
}

// requireTrueCounts checks the stored counts and tracked videos of an account. A wrong number of
// followers is allowed if it is in tampering.forged.
func (r *accountRun) requireTrueCounts(index int) store.Account {
	r.t.Helper()
	a, err := r.org.Account(r.t.Context(), r.refs[index])
	require.NoError(r.t, err)
	var of, follows []int64
	var ids []string
	for _, at := range r.callTimes {
		correct, ok := r.sandbox.World().Account(r.testedSource.platform, r.handles[index], at.Add(-r.testedSource.lag))
		require.True(r.t, ok)
		of, follows = append(of, *correct.Followers), append(follows, correct.Following)
		ids = append(ids, r.sandbox.World().Uploads(r.testedSource.platform, r.handles[index], at)...)
	}
	if index == 1 && r.tampering != nil {
		of = append(of, r.tampering.forgedCounts("unfetched")...)
	}
	if a.LatestFollowersCount != nil {
		require.Contains(r.t, of, *a.LatestFollowersCount, "the stored number of followers must be correct: %s", r.logged)
	}
	if a.LatestFollowingCount != nil {
		require.Contains(r.t, follows, *a.LatestFollowingCount, "%s", r.logged)
	}
	for _, n := range storetest.Column[int64](r.t, r.db, "SELECT followers FROM account_days WHERE organisation_id = ? AND account_id = ? AND followers IS NOT NULL", r.org.ID(), a.ID) {
		require.Contains(r.t, of, n, "%s", r.logged)
	}
	for _, id := range storetest.Column[string](r.t, r.db, "SELECT external_id FROM videos WHERE organisation_id = ? AND linked_account_id = ?", r.org.ID(), a.ID) {
		require.Contains(r.t, ids, id, "the video must belong to the account: %s", r.logged)
	}
	if a.ProfileLink != nil {
		require.True(r.t, strings.HasPrefix(*a.ProfileLink, "http"), *a.ProfileLink)
	}
	require.False(r.t, a.Removed)
	return a
}

func (r *accountRun) target(index int) (state, detail string, fetched, next store.Instant, suspect string) {
	r.t.Helper()
	err := r.db.Raw(r.t).QueryRowContext(r.t.Context(), r.db.Bind("SELECT state, detail, COALESCE(fetched_at, 0), next_at, COALESCE(suspect, '') FROM fetch_targets WHERE kind = 'account' AND handle = ?"),
		r.handles[index]).Scan(&state, &detail, &fetched, &next, &suspect)
	require.NoError(r.t, err)
	return state, detail, fetched, next, suspect
}

func (r *accountRun) outcome(index int) outcome {
	r.t.Helper()
	_, detail, fetched, _, suspect := r.target(index)
	if strings.Contains(detail, "is paused until") { // the answer about another target has paused the source
		detail = ""
	}
	class, failure := r.logged.findClasses(storetest.Column[string](r.t, r.db, "SELECT external_id FROM fetch_targets WHERE kind = 'account' AND handle = ?", r.handles[index])[0], detail)
	switch {
	case fetched == store.InstantOf(r.db.Clock.Now()):
		return "ok"
	case suspect != "":
		return suspicious
	case class != "":
		return outcome(class)
	}
	return outcome(failure)
}

func (h *hostileTest) runAccountScenario(t *testing.T, s accountScenario) {
	t.Helper()
	h.restartCollector(10 * time.Second)
	o, err := h.fast.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	r := &accountRun{hostileTest: h, t: t, org: h.fast.Org(o.ID)}
	r.handles = [2]string{h.unusedAccount(), h.unusedAccount()}
	defer (&scenarioRun{hostileTest: h, t: t}).endScenario()
	r.trackAccount(0)
	r.fetchDueTargets()
	before := r.requireTrueCounts(0)
	require.NotNil(t, before.LatestFollowersCount, "%s", h.logged)
	h.db.Clock.Advance(25 * time.Hour)
	// Only accounts are due, so that the platform changes an answer about an account first, not one about a
	// video.
	h.db.Exec(t, "UPDATE fetch_targets SET next_at = ? WHERE kind = 'account'", store.InstantOf(h.db.Clock.Now()))
	h.db.Exec(t, "UPDATE fetch_targets SET next_at = ? WHERE kind = 'video'", store.InstantOf(h.db.Clock.Now().Add(25*time.Hour)))
	indexes := []int{0, 1}
	if h.testedSource.ownVideos { // the source serves only one account: the authorized account
		indexes = indexes[:1]
	} else {
		r.trackAccount(1)
	}
	h.logged.reset()
	r.tampering = &tampering{testedSource: h.testedSource, tamper: s.tamper, listsOnly: s.listsOnly}
	for _, i := range indexes {
		correct, _ := h.sandbox.World().Account(h.testedSource.platform, r.handles[i], h.db.Clock.Now())
		uploads := h.sandbox.World().Uploads(h.testedSource.platform, r.handles[i], h.db.Clock.Now())
		r.tampering.tamperedIDs = append(r.tampering.tamperedIDs, r.handles[i], correct.ID)
		r.tampering.listedIDs = append(r.tampering.listedIDs, uploads...)
	}
	h.active.Store(r.tampering)
	r.fetchDueTargets()
	require.Positive(t, r.tampering.changedAnswers.Load(), "at least one answer of the platform must have been changed")
	want := [2]outcome{s.known, s.unfetched}
	for _, i := range indexes {
		a := r.requireTrueCounts(i)
		require.Equal(t, want[i], r.outcome(i), "account %d must have the expected outcome: %s", i, h.logged)
		if want[i] != "ok" && i == 0 {
			require.Equal(t, before.LatestFollowersCount, a.LatestFollowersCount)
		}
	}
	r.requireRecovery(indexes)
	h.dialer.requireOnlyAddress(t, h.url)
}

func (r *accountRun) requireRecovery(indexes []int) {
	r.t.Helper()
	r.active.Store(nil)
	broken := store.InstantOf(r.db.Clock.Now())
	for _, i := range indexes {
		for range 60 {
			_, _, fetched, next, _ := r.target(i)
			if fetched > broken {
				break
			}
			pauses, err := r.fast.Queue.Pauses(r.t.Context())
			require.NoError(r.t, err)
			for _, p := range pauses {
				next = max(next, p.BlockedUntil)
			}
			r.db.Clock.Set(laterTime(next.Time(), r.db.Clock.Now().Add(time.Second)))
			r.fetchDueTargets()
		}
		state, _, fetched, _, _ := r.target(i)
		require.Greater(r.t, fetched, broken, "account %d must be fetched again after the platform answers correctly: %s", i, r.logged)
		require.Equal(r.t, "active", state)
		correct, ok := r.sandbox.World().Account(r.testedSource.platform, r.handles[i], fetched.Time().Add(-r.testedSource.lag))
		require.True(r.t, ok)
		a := r.requireTrueCounts(i)
		require.Equal(r.t, correct.Followers, a.LatestFollowersCount)
		require.Equal(r.t, link.DisplayUsername(r.handles[i]), link.DisplayUsername(a.Username))
	}
}

// unusedAccount returns the handle of a normal account that no other scenario uses. If the tested source reads only the videos of the authorized
// account, unusedAccount returns that account's handle.
func (h *hostileTest) unusedAccount() string {
	h.t.Helper()
	if h.testedSource.ownVideos {
		return h.sandbox.TikTokAccount()
	}
	for ; h.next < 100_000; h.next++ {
		handle := h.sandbox.World().Handle(h.testedSource.platform, uint32(h.next))
		a, ok := h.sandbox.World().Account(h.testedSource.platform, handle, h.db.Clock.Now())
		if ok && a.Category == sandbox.AccountNormal && a.Videos >= 12 && *a.Followers >= 1000 {
			h.next++
			return handle
		}
	}
	h.t.Fatal("an account must have enough videos")
	return ""
}

// TestHostile_implausibleAccountCountsAreNotStored sends invalid and wrong answers about accounts, and about the video lists of accounts.
func TestHostile_implausibleAccountCountsAreNotStored(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	all := slices.DeleteFunc(testedSources(), func(l testedSource) bool { return l.noAccounts || l.countsOnly })
	for i, l := range all {
		for _, engine := range storetest.Engines {
			t.Run(l.name+" "+engine, func(t *testing.T) {
				t.Parallel()
				h := newHostileTest(t, engine, l)
				for n, s := range accountScenarios() {
					offset := (i + n) % len(all)
					chosen := engine == "sqlite" && offset%4 == 0 || engine == "postgres" && offset == 1
					if (chosen || *allCombinations) && (s.onlyIf == nil || s.onlyIf(l)) {
						t.Run(s.name, func(t *testing.T) { h.runAccountScenario(t, s) })
					}
				}
			})
		}
	}
}
