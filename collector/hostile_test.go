package collector_test

import (
	"flag"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// fate is what became of a target at a turn: "ok" when its numbers were written, "held back" when they are doubted, else the class
// that its answer or the whole call had.
type outcome string

const (
	heldBack outcome = "held back"
	notNewer outcome = "not newer" // than what is known, from a source that lags
)

// fates are those of a video that was measured before, of one that never was, both of which the platform is after, and of an
// onlooker, which is asked for in the same turn and left alone.
type outcomes struct{ known, unfetched, unaffected outcome }

// turn is what one scenario has in its hands.
type scenarioRun struct {
	*hostileTest
	t         *testing.T
	org       *store.Org
	videos    [3]sandbox.VideoTruth // known, fresh, onlooker
	callTimes []time.Time           // at which calls were made
	tampering *tampering
	before    map[string]counts // by id
}

// counts are a video's numbers in the database, by their names there; what is null is absent.
type counts map[string]int64

var countNames = []string{"views", "likes", "comments", "shares", "bookmarks"}

func truthOf(c sandbox.Counts) counts {
	out := counts{"views": c.Views}
	for name, n := range map[string]*int64{"likes": c.Likes, "comments": c.Comments, "shares": c.Shares, "bookmarks": c.Bookmarks} {
		if n != nil {
			out[name] = *n
		}
	}
	return out
}

// begin measures the known video and the onlooker, and lets a day pass, until all three are due.
func (h *hostileTest) begin(t *testing.T) *scenarioRun {
	t.Helper()
	o, err := h.fast.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	run := &scenarioRun{hostileTest: h, t: t, org: h.fast.Org(o.ID)}
	run.videos = h.findVideos()
	first := []int{0, 2}
	if h.lane.countsOnly {
		first = []int{0, 1, 2}
	}
	run.track(first...)
	run.fetchDue()
	for _, i := range first {
		require.Equal(t, run.truth(i, h.db.Clock.Now()), run.latest(i), "the platform says the truth: %s", h.logged)
	}
	h.db.Clock.Advance(25 * time.Hour)
	// Of none are details due again, so that those which can share a call do.
	h.db.Exec(t, "UPDATE fetch_targets SET next_at = ?, details_at = ?", store.InstantOf(h.db.Clock.Now()), store.InstantOf(h.db.Clock.Now()))
	if !h.lane.countsOnly {
		run.track(1)
	}
	run.before = map[string]counts{}
	for i, v := range run.videos {
		run.before[v.ID] = run.latest(i)
	}
	return run
}

// end leaves nothing to be done for the next scenario.
func (r *scenarioRun) end() {
	r.active.Store(nil)
	for _, table := range []string{"fetch_subscriptions", "fetch_targets", "source_pauses", "source_refusals", "quota_windows"} {
		r.db.Exec(r.t, "DELETE FROM "+table)
	}
}

func (r *scenarioRun) track(indexes ...int) {
	r.t.Helper()
	links := make([]link.Link, len(indexes))
	for i, at := range indexes {
		l, err := link.Parse(r.linkOf(r.videos[at]))
		require.NoError(r.t, err)
		links[i] = l
	}
	_, err := r.org.Track(r.t.Context(), store.TrackRequest{Links: links, Lane: queue.LanePremium, Immediate: len(links), Enqueue: len(links)})
	require.NoError(r.t, err)
}

// rounds lets the collector do all that is due now.
func (r *scenarioRun) fetchDue() {
	r.t.Helper()
	r.callTimes = append(r.callTimes, r.db.Clock.Now())
	for busy := true; busy; {
		var err error
		busy, err = r.collector.Round(r.t.Context())
		require.NoError(r.t, err, r.logged)
	}
}

// truth is what the source would give of a video at a time.
func (r *scenarioRun) truth(index int, at time.Time) counts {
	r.t.Helper()
	v, ok := r.sandbox.World().Video(r.lane.platform, r.videos[index].ID, at.Add(-r.lane.lag))
	require.True(r.t, ok)
	all := truthOf(v.Counts)
	maps.DeleteFunc(all, func(name string, _ int64) bool { return r.lane.counts[name] == nil })
	return all
}

// latest are a video's latest counts in the database.
func (r *scenarioRun) latest(index int) counts {
	r.t.Helper()
	rows := r.rows("SELECT %s FROM videos WHERE organisation_id = ? AND external_id = ?", "latest_", r.org.ID(), r.videos[index].ID)
	if len(rows) == 0 {
		return counts{}
	}
	return rows[0]
}

// points are all of a video's points.
func (r *scenarioRun) points(index int) []counts {
	r.t.Helper()
	return r.rows("SELECT %s FROM snapshots_daily WHERE organisation_id = ? AND video_id = (SELECT id FROM videos WHERE organisation_id = ? AND external_id = ?)",
		"", r.org.ID(), r.org.ID(), r.videos[index].ID)
}

func (r *scenarioRun) rows(query, prefix string, args ...any) []counts {
	r.t.Helper()
	columns := prefix + strings.Join(countNames, ", "+prefix)
	rows, err := r.db.Raw(r.t).QueryContext(r.t.Context(), r.db.Bind(fmt.Sprintf(query, columns)), args...)
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, rows.Close()) }()
	var out []counts
	for rows.Next() {
		var n [5]*int64
		require.NoError(r.t, rows.Scan(&n[0], &n[1], &n[2], &n[3], &n[4]))
		c := counts{}
		for i, name := range countNames {
			if n[i] != nil {
				c[name] = *n[i]
			}
		}
		out = append(out, c)
	}
	require.NoError(r.t, rows.Err())
	return out
}

// target is what the queue knows of a video.
type target struct {
	state, suspect, detail string
	attempts               int
	fetchedAt, nextAt      store.Instant
}

func (r *scenarioRun) target(index int) target {
	r.t.Helper()
	var out target
	query := `SELECT state, COALESCE(suspect, ''), detail, attempts, COALESCE(fetched_at, 0), next_at FROM fetch_targets WHERE kind = 'video' AND external_id = ?`
	err := r.db.Raw(r.t).QueryRowContext(r.t.Context(), r.db.Bind(query), r.videos[index].ID).
		Scan(&out.state, &out.suspect, &out.detail, &out.attempts, &out.fetchedAt, &out.nextAt)
	require.NoError(r.t, err)
	return out
}

// fate is what became of a video at the last turn.
func (r *scenarioRun) outcome(index int) outcome {
	r.t.Helper()
	at := r.target(index)
	said := at.detail
	if at.attempts == 0 { // the call was refused, and says nothing of the video
		said = ""
	}
	class, failure := r.logged.classOf(r.videos[index].ID, said)
	switch {
	case at.fetchedAt == store.InstantOf(r.db.Clock.Now()):
		require.Equal(r.t, 0, at.attempts)
		require.Empty(r.t, at.suspect)
		return "ok"
	case at.suspect != "":
		return heldBack
	case class == string(source.OK):
		return notNewer
	case class != "":
		return outcome(class)
	default:
		return outcome(failure)
	}
}

// honest checks that every number in the database is one that the platform truly had for this video when it was asked, and
// that the organisation's sums are those of its videos.
func (r *scenarioRun) requireTrueCounts() {
	r.t.Helper()
	r.requireTrueCountsAfter(r.logged.String())
}

func (r *scenarioRun) requireTrueCountsAfter(what string) {
	r.t.Helper()
	sum := counts{}
	for i, v := range r.videos {
		allowed := map[string][]int64{}
		for _, at := range r.callTimes {
			for name, n := range r.truth(i, at) {
				allowed[name] = append(allowed[name], n)
			}
		}
		for _, c := range append(r.points(i), r.latest(i)) {
			for name, n := range c {
				require.Contains(r.t, append(allowed[name], r.forgedValues(v.ID)...), n, "%s: a false number of %s: %s", v.ID, name, what)
			}
		}
		for name, n := range r.latest(i) {
			sum[name] += n
		}
	}
	totals := r.rows("SELECT %s FROM organisation_totals WHERE organisation_id = ?", "", r.org.ID())[0]
	delete(totals, "version") // not a sum
	maps.DeleteFunc(totals, func(_ string, n int64) bool { return n == 0 })
	require.Equal(r.t, sum, totals)
}

// heal lets the platform say the truth again, and time pass, until every video has its true numbers.
func (r *scenarioRun) requireRecovery() {
	r.t.Helper()
	r.active.Store(nil)
	broken := store.InstantOf(r.db.Clock.Now())
	recovered := func(i int) bool { return r.target(i).fetchedAt > broken }
	for range 60 {
		next := store.Instant(0)
		for i := range r.videos {
			if at := r.target(i).nextAt; !recovered(i) && (next == 0 || at < next) {
				next = at
			}
		}
		if next == 0 {
			break
		}
		pauses, err := r.fast.Queue.Pauses(r.t.Context())
		require.NoError(r.t, err)
		for _, p := range pauses {
			next = max(next, p.BlockedUntil)
		}
		r.db.Clock.Set(later(next.Time(), r.db.Clock.Now().Add(time.Second)))
		r.fetchDue()
	}
	for i, v := range r.videos {
		at := r.target(i)
		require.True(r.t, recovered(i), "%s does not heal: %+v:\n%s", v.ID, at, r.logged)
		require.Equal(r.t, "active", at.state)
		require.Equal(r.t, r.truth(i, at.fetchedAt.Time()), r.latest(i), "%s", r.logged)
	}
	r.requireTrueCounts()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lies are numbers of a video that are believed, since nobody can tell them from true ones.
func (r *scenarioRun) forgedValues(id string) []int64 {
	if r.tampering == nil {
		return nil
	}
	return r.tampering.forgedFor(id)
}

// play has the platform bend its answers for one turn.
func (r *scenarioRun) fetchTampered(s scenario) {
	r.t.Helper()
	r.tampering = &tampering{lane: r.lane, tamper: s.tamper, otherCalls: s.otherCalls}
	for i, v := range r.videos {
		if s.affects(i) {
			r.tampering.victims = append(r.tampering.victims, v.ID)
		}
	}
	r.logged.reset()
	r.active.Store(r.tampering)
	r.fetchDue()
	require.Positive(r.t, r.tampering.tampered.Load(), "the platform was not asked: nothing was tried")
}

// notGivenUp checks what no single answer may bring about, whatever it says.
func (r *scenarioRun) requireNotGone() {
	r.t.Helper()
	for i, v := range r.videos {
		require.Contains(r.t, []string{"active", "parked"}, r.target(i).state, v.ID)
	}
}

func (h *hostileTest) run(t *testing.T, s scenario) {
	t.Helper()
	if s.timeout > 0 {
		h.restart(s.timeout)
		defer h.restart(10 * time.Second)
	}
	r := h.begin(t)
	defer r.end()
	r.fetchTampered(s)
	r.requireTrueCounts()
	r.requireNotGone()
	now, want := h.db.Clock.Now(), s.wantIn(h.lane)
	for i, expected := range []outcome{want.known, want.unfetched, want.unaffected} {
		v := r.videos[i]
		if i == 2 && r.outcome(i) == "ok" {
			expected = "ok" // the collector asked again without the bad targets, so this target is unaffected
		}
		if at := r.target(2); i == 2 && at.attempts == 0 && strings.Contains(at.detail, "is paused until") {
			expected = r.outcome(i) // it was not asked for: it waits until the pause of the source ends
		}
		require.Equal(t, expected, r.outcome(i), "%s, video %d: %+v\n%s", v.ID, i, r.target(i), h.logged)
		before := r.before[v.ID]
		if expected != "ok" {
			require.Equal(t, before, r.latest(i), "video %d", i)
			require.Greater(t, r.target(i).nextAt, store.InstantOf(now), "it is asked for again")
			continue
		}
		if len(r.forgedValues(v.ID)) > 0 {
			continue
		}
		truth := r.truth(i, now)
		for _, name := range s.missing {
			if delete(truth, name); i < 2 && before[name] != 0 {
				truth[name] = before[name]
			} else if i == 2 {
				truth[name] = r.truth(i, now)[name]
			}
		}
		maps.DeleteFunc(truth, func(name string, _ int64) bool { return r.lane.counts[name] == nil })
		require.Equal(t, truth, r.latest(i), "video %d: %s", i, h.logged)
	}
	r.requireRecovery()
	h.dialer.requireOnly(t, h.url)
}

// everywhere has each scenario run in every lane on every engine, which takes a quarter of an hour. Else each runs in two lanes on SQLite and in a
// third on PostgreSQL, in turns.
var allCombinations = flag.Bool("hostile.everywhere", false, "every scenario in every lane on every engine")

// TestHostile_videos sends each source answers that no platform should send, over the whole way from the queue to the points.
func TestHostile_videos(t *testing.T) {
	t.Parallel()
	tables := map[string][]scenario{} // by lane and engine
	all := lanes()
	for n, s := range scenarios() {
		for i, l := range all {
			offset := (i + n) % len(all)
			for _, engine := range storetest.Engines {
				chosen := offset == 0 || offset == len(all)/3
				if engine == "postgres" {
					chosen = offset == 2*len(all)/3
				}
				if (chosen || *allCombinations) && (s.lanes == nil || s.lanes(l)) {
					tables[l.name+" "+engine] = append(tables[l.name+" "+engine], s)
				}
			}
		}
	}
	total := 0
	for _, l := range all {
		for _, engine := range storetest.Engines {
			table := tables[l.name+" "+engine]
			total += len(table)
			t.Run(l.name+" "+engine, func(t *testing.T) {
				t.Parallel()
				h := newHostile(t, engine, l)
				for _, s := range table { // one after the other on one database, which is much faster than one each
					t.Run(s.name, func(t *testing.T) { h.run(t, s) })
				}
			})
		}
	}
	t.Logf("%d scenarios", total)
	require.GreaterOrEqual(t, total, 200)
}
