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
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// accountScenario is one kind of hostility against the answers for an account: one that was asked for before, and one that is new.
type accountScenario struct {
	name string
	bend bend
	// known and fresh are what becomes of the two.
	known, fresh fate
	list         bool // it bends the pages of the list alone, where they are calls of their own
	lanes        func(lane) bool
}

// followerKeys are the members that hold followers in any of the wire formats, those of TikTok's videos' authors included.
var followerKeys = []string{"subscriberCount", "followers_count", "follower_count", "followerCount", "fans"}

// followers puts a value in the place of every number of followers.
func followers(value any) bend {
	return func(_ *bending, s *sent) {
		root := visitNodes(s.decoded(), func(key string, v any) any {
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

// fewFollowers is a lie that nobody can tell of an account that is new.
func fewFollowers(n int64) bend {
	return func(b *bending, s *sent) {
		followers(n)(b, s)
		b.lie("fresh", n)
	}
}

// texted puts a text in the place of members of these names.
func texted(text string, names ...string) bend {
	return func(_ *bending, s *sent) {
		root := visitNodes(s.decoded(), func(key string, v any) any {
			if _, is := v.(string); is && slices.Contains(names, key) {
				return text
			}
			return nil
		})
		s.encode(root)
	}
}

// entriesOf changes the ids of videos wherever they stand in an answer.
func entriesOf(change func(id string) string) bend {
	return func(b *bending, s *sent) {
		body := string(s.body)
		for _, id := range b.entries {
			body = strings.ReplaceAll(body, id, change(id))
		}
		s.body = []byte(body)
	}
}

func accountScenarios() []accountScenario {
	const temporary fate = "temporary"
	separate := func(l lane) bool { return l.lists }
	var all []accountScenario
	add := func(list ...accountScenario) { all = append(all, list...) }
	for name, value := range map[string]any{"negative": -5, "a fraction": 1.5, "an object": object{"count": 7}, "a text": "many", "2^63-1": raw("9223372036854775807"),
		"1e308": raw("1e308"), "true": true, "short for thousands": "1.2K"} {
		add(accountScenario{name: "followers are " + name, bend: followers(value), known: temporary, fresh: temporary})
	}
	add(
		accountScenario{name: "followers are null", bend: followers(null), known: "ok", fresh: "ok"},
		accountScenario{name: "followers are zero", bend: fewFollowers(0), known: heldBack, fresh: "ok"},
		accountScenario{name: "a single follower", bend: fewFollowers(1), known: heldBack, fresh: "ok"},
		accountScenario{name: "a script in the bio", bend: texted("<script>alert(1)</script>", "bio", "biography", "about", "signature", "description", "bio_description"), known: "ok", fresh: "ok"},
		accountScenario{name: "a javascript: link", bend: texted("javascript:alert(1)", "website", "external_url", "link", "bioLink"), known: "ok", fresh: "ok"},
		accountScenario{name: "NUL in the names", bend: texted("a\x00b", "display_name", "nickname", "full_name", "title"), known: "ok", fresh: "ok"})
	for name, bend := range map[string]bend{"an empty body": text(""), "an empty object": text("{}"), "a page of HTML": text(page), "null": text("null"), "garbage": text("\x00\xff"),
		"10,000 levels deep": text(strings.Repeat(`{"items":[`, 5_000) + strings.Repeat(`]}`, 5_000)),
		"ten megabytes":      bytesOf(func(b []byte) []byte { return append(bytes.Repeat([]byte(" "), 10<<20), b...) }), "a gzip bomb": bomb,
		"cut in the middle": bytesOf(func(b []byte) []byte { return b[:len(b)/2] }), "two answers at once": bytesOf(func(b []byte) []byte { return append(bytes.Clone(b), b...) }),
		"a redirect": status(http.StatusFound, problem, "Location", "http://169.254.169.254/"), "a closed connection": hungUp, "a connection that breaks off": brokenOff,
		"500": status(500, problem), "503 with HTML": status(503, page)} {
		add(accountScenario{name: name, bend: bend, known: temporary, fresh: temporary},
			accountScenario{name: "a list with " + name, bend: bend, known: temporary, fresh: temporary, list: true, lanes: separate})
	}
	add(
		accountScenario{name: "401", bend: status(401, problem), known: "auth_failed", fresh: "auth_failed"},
		accountScenario{name: "402", bend: status(402, problem), known: "quota_spent", fresh: "quota_spent"},
		accountScenario{name: "429", bend: status(429, problem, "Retry-After", "99999999999"), known: "rate_limited", fresh: "rate_limited"},
		accountScenario{name: "a list with 429", bend: status(429, problem), known: "rate_limited", fresh: "rate_limited", list: true, lanes: separate},
		accountScenario{name: "a list with a million entries", bend: text(`{"data":[` + strings.Repeat("0,", 1_000_000) + `0]}`), known: temporary, fresh: temporary, list: true, lanes: separate},
		accountScenario{name: "a list that begins again and again", bend: (&endless{}).bend, known: "ok", fresh: "ok", list: true, lanes: separate},
		accountScenario{name: "a list without ids", bend: entriesOf(func(string) string { return "" }), known: temporary, fresh: temporary, list: true, lanes: separate},
		accountScenario{name: "a list of paths", bend: entriesOf(func(string) string { return "../../x" }), known: temporary, fresh: temporary, list: true, lanes: separate},
		accountScenario{name: "a list of scripts", bend: entriesOf(func(string) string { return "<script>" }), known: temporary, fresh: temporary, list: true, lanes: separate})
	return all
}

// endless gives the first page that it sees for every page.
type endless struct{ first []byte }

func (e *endless) bend(b *bending, s *sent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.first == nil {
		e.first = bytes.Clone(s.body)
	}
	s.body = bytes.Clone(e.first)
}

// accountTurn is what one scenario with accounts has in its hands.
type accountTurn struct {
	*hostile
	t        *testing.T
	org      *store.Org
	handles  [2]string
	refs     [2]store.AccountRef
	instants []time.Time
	trick    *bending
}

func (r *accountTurn) trackAccount(which int) {
	r.t.Helper()
	l, err := link.Parse(link.AccountURL(r.lane.platform, r.handles[which]))
	require.NoError(r.t, err)
	out, err := r.org.TrackAccounts(r.t.Context(), store.TrackAccountsRequest{Links: []link.Link{l}, Type: store.TrackLatest30, Lane: queue.LanePremium, Immediate: 1, Enqueue: 1})
	require.NoError(r.t, err)
	r.refs[which] = store.AccountRef{ID: out[0].AccountID}
}

func (r *accountTurn) rounds() {
	r.t.Helper()
	r.instants = append(r.instants, r.db.Clock.Now())
	for busy := true; busy; {
		var err error
		busy, err = r.collector.Round(r.t.Context())
		require.NoError(r.t, err, r.said)
	}
}

// honest checks that followers, and the videos that are tracked, are the account's own.
func (r *accountTurn) honest(which int) store.Account {
	r.t.Helper()
	a, err := r.org.Account(r.t.Context(), r.refs[which])
	require.NoError(r.t, err)
	var of, follows []int64
	var ids []string
	for _, at := range r.instants {
		truth, ok := r.sandbox.World().Account(r.lane.platform, r.handles[which], at.Add(-r.lane.lag))
		require.True(r.t, ok)
		of, follows = append(of, *truth.Followers), append(follows, truth.Following)
		ids = append(ids, r.sandbox.World().Uploads(r.lane.platform, r.handles[which], at)...)
	}
	if which == 1 && r.trick != nil {
		of = append(of, r.trick.liesOf("fresh")...)
	}
	if a.LatestFollowersCount != nil {
		require.Contains(r.t, of, *a.LatestFollowersCount, "false followers: %s", r.said)
	}
	if a.LatestFollowingCount != nil {
		require.Contains(r.t, follows, *a.LatestFollowingCount, "%s", r.said)
	}
	for _, n := range storetest.Column[int64](r.t, r.db, "SELECT followers FROM account_days WHERE organisation_id = ? AND account_id = ? AND followers IS NOT NULL", r.org.ID(), a.ID) {
		require.Contains(r.t, of, n, "%s", r.said)
	}
	for _, id := range storetest.Column[string](r.t, r.db, "SELECT external_id FROM videos WHERE organisation_id = ? AND linked_account_id = ?", r.org.ID(), a.ID) {
		require.Contains(r.t, ids, id, "a video of somebody else: %s", r.said)
	}
	if a.ProfileLink != nil {
		require.True(r.t, strings.HasPrefix(*a.ProfileLink, "http"), *a.ProfileLink)
	}
	require.False(r.t, a.Removed)
	return a
}

func (r *accountTurn) target(which int) (state, detail string, fetched, next store.Instant, suspect string) {
	r.t.Helper()
	err := r.db.Raw(r.t).QueryRowContext(r.t.Context(), r.db.Bind("SELECT state, detail, COALESCE(fetched_at, 0), next_at, COALESCE(suspect, '') FROM fetch_targets WHERE kind = 'account' AND handle = ?"),
		r.handles[which]).Scan(&state, &detail, &fetched, &next, &suspect)
	require.NoError(r.t, err)
	return state, detail, fetched, next, suspect
}

func (r *accountTurn) fate(which int) fate {
	r.t.Helper()
	_, detail, fetched, _, suspect := r.target(which)
	if strings.Contains(detail, "is paused until") { // the source failed, and not this account
		detail = ""
	}
	class, failure := r.said.of(storetest.Column[string](r.t, r.db, "SELECT external_id FROM fetch_targets WHERE kind = 'account' AND handle = ?", r.handles[which])[0], detail)
	switch {
	case fetched == store.InstantOf(r.db.Clock.Now()):
		return "ok"
	case suspect != "":
		return heldBack
	case class != "":
		return fate(class)
	}
	return fate(failure)
}

func (h *hostile) runAccounts(t *testing.T, s accountScenario) {
	t.Helper()
	h.restart(10 * time.Second)
	o, err := h.fast.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	r := &accountTurn{hostile: h, t: t, org: h.fast.Org(o.ID)}
	r.handles = [2]string{h.account(), h.account()}
	defer (&turn{hostile: h, t: t}).end()
	r.trackAccount(0)
	r.rounds()
	before := r.honest(0)
	require.NotNil(t, before.LatestFollowersCount, "%s", h.said)
	h.db.Clock.Advance(25 * time.Hour)
	h.db.Exec(t, "UPDATE fetch_targets SET next_at = ?", store.InstantOf(h.db.Clock.Now()))
	which := []int{0, 1}
	if h.lane.own { // which has logged in alone
		which = which[:1]
	} else {
		r.trackAccount(1)
	}
	h.said.reset()
	r.trick = &bending{lane: h.lane, bend: s.bend, list: s.list}
	for _, i := range which {
		truth, _ := h.sandbox.World().Account(h.lane.platform, r.handles[i], h.db.Clock.Now())
		uploads := h.sandbox.World().Uploads(h.lane.platform, r.handles[i], h.db.Clock.Now())
		r.trick.victims = append(r.trick.victims, r.handles[i], truth.ID)
		r.trick.entries = append(r.trick.entries, uploads...)
	}
	h.bending.Store(r.trick)
	r.rounds()
	require.Positive(t, r.trick.bent.Load(), "the platform was not asked: nothing was tried")
	want := [2]fate{s.known, s.fresh}
	for _, i := range which {
		a := r.honest(i)
		require.Equal(t, want[i], r.fate(i), "account %d: %s", i, h.said)
		if want[i] != "ok" && i == 0 {
			require.Equal(t, before.LatestFollowersCount, a.LatestFollowersCount)
		}
	}
	r.heal(which)
	h.dialed.stayed(t, h.url)
}

func (r *accountTurn) heal(which []int) {
	r.t.Helper()
	r.bending.Store(nil)
	broken := store.InstantOf(r.db.Clock.Now())
	for _, i := range which {
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
			r.db.Clock.Set(later(next.Time(), r.db.Clock.Now().Add(time.Second)))
			r.rounds()
		}
		state, _, fetched, _, _ := r.target(i)
		require.Greater(r.t, fetched, broken, "account %d does not heal: %s", i, r.said)
		require.Equal(r.t, "active", state)
		truth, ok := r.sandbox.World().Account(r.lane.platform, r.handles[i], fetched.Time().Add(-r.lane.lag))
		require.True(r.t, ok)
		a := r.honest(i)
		require.Equal(r.t, truth.Followers, a.LatestFollowersCount)
		require.Equal(r.t, link.DisplayUsername(r.handles[i]), link.DisplayUsername(a.Username))
	}
}

// account is the handle of an ordinary account that was not used yet.
func (h *hostile) account() string {
	h.t.Helper()
	if h.lane.own {
		return h.sandbox.TikTokAccount()
	}
	for ; h.next < 100_000; h.next++ {
		handle := h.sandbox.World().Handle(h.lane.platform, uint32(h.next))
		a, ok := h.sandbox.World().Account(h.lane.platform, handle, h.db.Clock.Now())
		if ok && a.Category == sandbox.AccountNormal && a.Videos >= 12 && *a.Followers >= 1000 {
			h.next++
			return handle
		}
	}
	h.t.Fatal("no account has enough videos")
	return ""
}

// TestHostile_accounts is TestHostile_videos for accounts and the lists of their videos.
func TestHostile_accounts(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	all := slices.DeleteFunc(lanes(), func(l lane) bool { return l.noAccounts || l.counting })
	for i, l := range all {
		for _, engine := range storetest.Engines {
			t.Run(l.name+" "+engine, func(t *testing.T) {
				t.Parallel()
				h := newHostile(t, engine, l)
				for n, s := range accountScenarios() {
					turn := (i + n) % len(all)
					chosen := engine == "sqlite" && turn%4 == 0 || engine == "postgres" && turn == 1
					if (chosen || *everywhere) && (s.lanes == nil || s.lanes(l)) {
						t.Run(s.name, func(t *testing.T) { h.runAccounts(t, s) })
					}
				}
			})
		}
	}
}
