package collector_test

import (
	"flag"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// fate is what became of a target at a turn: "ok" when its numbers were written, "held back" when they are doubted, else the class
// that its answer or the whole call had.
type fate string

const (
	heldBack fate = "held back"
	notNewer fate = "not newer" // than what is known, from a source that lags
)

// fates are those of a video that was measured before, of one that never was, both of which the platform is after, and of an
// onlooker, which is asked for in the same turn and left alone.
type fates struct{ known, fresh, onlooker fate }

// turn is what one scenario has in its hands.
type turn struct {
	*hostile
	t        *testing.T
	org      *store.Org
	videos   [3]sandbox.VideoTruth // known, fresh, onlooker
	instants []time.Time           // at which calls were made
	trick    *bending
	before   map[string]counts // by id
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
func (h *hostile) begin(t *testing.T) *turn {
	t.Helper()
	o, err := h.fast.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	turn := &turn{hostile: h, t: t, org: h.fast.Org(o.ID)}
	turn.videos = h.fresh()
	first := []int{0, 2}
	if h.lane.counting {
		first = []int{0, 1, 2}
	}
	turn.track(first...)
	turn.rounds()
	for _, i := range first {
		require.Equal(t, turn.truth(i, h.db.Clock.Now()), turn.latest(i), "the platform says the truth: %s", h.said)
	}
	h.db.Clock.Advance(25 * time.Hour)
	// Of none are details due again, so that those which can share a call do.
	h.db.Exec(t, "UPDATE fetch_targets SET next_at = ?, details_at = ?", store.InstantOf(h.db.Clock.Now()), store.InstantOf(h.db.Clock.Now()))
	if !h.lane.counting {
		turn.track(1)
	}
	turn.before = map[string]counts{}
	for i, v := range turn.videos {
		turn.before[v.ID] = turn.latest(i)
	}
	return turn
}

// end leaves nothing to be done for the next scenario.
func (r *turn) end() {
	r.bending.Store(nil)
	for _, table := range []string{"fetch_subscriptions", "fetch_targets", "source_pauses", "source_refusals", "quota_windows"} {
		r.db.Exec(r.t, "DELETE FROM "+table)
	}
}

func (r *turn) track(which ...int) {
	r.t.Helper()
	links := make([]link.Link, len(which))
	for i, at := range which {
		l, err := link.Parse(r.linkOf(r.videos[at]))
		require.NoError(r.t, err)
		links[i] = l
	}
	_, err := r.org.Track(r.t.Context(), store.TrackRequest{Links: links, Lane: queue.LanePremium, Immediate: len(links), Enqueue: len(links)})
	require.NoError(r.t, err)
}

// rounds lets the collector do all that is due now.
func (r *turn) rounds() {
	r.t.Helper()
	r.instants = append(r.instants, r.db.Clock.Now())
	for busy := true; busy; {
		var err error
		busy, err = r.collector.Round(r.t.Context(), r.lane.platform, collector.KindVideo)
		require.NoError(r.t, err, r.said)
	}
}

// truth is what the source would give of a video at a time.
func (r *turn) truth(which int, at time.Time) counts {
	r.t.Helper()
	v, ok := r.sandbox.World().Video(r.lane.platform, r.videos[which].ID, at.Add(-r.lane.lag))
	require.True(r.t, ok)
	all := truthOf(v.Counts)
	maps.DeleteFunc(all, func(name string, _ int64) bool { return r.lane.counts[name] == nil })
	return all
}

// latest are a video's latest counts in the database.
func (r *turn) latest(which int) counts {
	r.t.Helper()
	rows := r.rows("SELECT %s FROM videos WHERE organisation_id = ? AND external_id = ?", "latest_", r.org.ID(), r.videos[which].ID)
	if len(rows) == 0 {
		return counts{}
	}
	return rows[0]
}

// points are all of a video's points.
func (r *turn) points(which int) []counts {
	r.t.Helper()
	return r.rows("SELECT %s FROM snapshots_daily WHERE organisation_id = ? AND video_id = (SELECT id FROM videos WHERE organisation_id = ? AND external_id = ?)",
		"", r.org.ID(), r.org.ID(), r.videos[which].ID)
}

func (r *turn) rows(query, prefix string, args ...any) []counts {
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

func (r *turn) target(which int) target {
	r.t.Helper()
	var out target
	query := `SELECT state, COALESCE(suspect, ''), detail, attempts, COALESCE(fetched_at, 0), next_at FROM fetch_targets WHERE kind = 'video' AND external_id = ?`
	err := r.db.Raw(r.t).QueryRowContext(r.t.Context(), r.db.Bind(query), r.videos[which].ID).
		Scan(&out.state, &out.suspect, &out.detail, &out.attempts, &out.fetchedAt, &out.nextAt)
	require.NoError(r.t, err)
	return out
}

// fate is what became of a video at the last turn.
func (r *turn) fate(which int) fate {
	r.t.Helper()
	at := r.target(which)
	said := at.detail
	if at.attempts == 0 { // the call was refused, and says nothing of the video
		said = ""
	}
	class, failure := r.said.of(r.videos[which].ID, said)
	switch {
	case at.fetchedAt == store.InstantOf(r.db.Clock.Now()):
		require.Equal(r.t, 0, at.attempts)
		require.Empty(r.t, at.suspect)
		return "ok"
	case at.suspect != "":
		return heldBack
	case class == string(collector.OK):
		return notNewer
	case class != "":
		return fate(class)
	default:
		return fate(failure)
	}
}

// honest checks that every number in the database is one that the platform truly had for this video when it was asked, and
// that the organisation's sums are those of its videos.
func (r *turn) honest() {
	r.t.Helper()
	r.honestAfter(r.said.String())
}

func (r *turn) honestAfter(what string) {
	r.t.Helper()
	sum := counts{}
	for i, v := range r.videos {
		allowed := map[string][]int64{}
		for _, at := range r.instants {
			for name, n := range r.truth(i, at) {
				allowed[name] = append(allowed[name], n)
			}
		}
		for _, c := range append(r.points(i), r.latest(i)) {
			for name, n := range c {
				require.Contains(r.t, append(allowed[name], r.lies(v.ID)...), n, "%s: a false number of %s: %s", v.ID, name, what)
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
func (r *turn) heal() {
	r.t.Helper()
	r.bending.Store(nil)
	broken := store.InstantOf(r.db.Clock.Now())
	healed := func(i int) bool { return r.target(i).fetchedAt > broken }
	for range 60 {
		next := store.Instant(0)
		for i := range r.videos {
			if at := r.target(i).nextAt; !healed(i) && (next == 0 || at < next) {
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
		r.rounds()
	}
	for i, v := range r.videos {
		at := r.target(i)
		require.True(r.t, healed(i), "%s does not heal: %+v:\n%s", v.ID, at, r.said)
		require.Equal(r.t, "active", at.state)
		require.Equal(r.t, r.truth(i, at.fetchedAt.Time()), r.latest(i), "%s", r.said)
	}
	r.honest()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lies are numbers of a video that are believed, since nobody can tell them from true ones.
func (r *turn) lies(id string) []int64 {
	if r.trick == nil {
		return nil
	}
	return r.trick.liesOf(id)
}

// play has the platform bend its answers for one turn.
func (r *turn) play(s scenario) {
	r.t.Helper()
	r.trick = &bending{lane: r.lane, bend: s.bend, side: s.side}
	for i, v := range r.videos {
		if s.after(i) {
			r.trick.victims = append(r.trick.victims, v.ID)
		}
	}
	r.said.reset()
	r.bending.Store(r.trick)
	r.rounds()
	require.Positive(r.t, r.trick.bent.Load(), "the platform was not asked: nothing was tried")
}

// notGivenUp checks what no single answer may bring about, whatever it says.
func (r *turn) notGivenUp() {
	r.t.Helper()
	for i, v := range r.videos {
		require.Contains(r.t, []string{"active", "parked"}, r.target(i).state, v.ID)
	}
}

func (h *hostile) run(t *testing.T, s scenario) {
	t.Helper()
	if s.timeout > 0 {
		h.restart(s.timeout)
		defer h.restart(10 * time.Second)
	}
	r := h.begin(t)
	defer r.end()
	r.play(s)
	r.honest()
	r.notGivenUp()
	now, want := h.db.Clock.Now(), s.of(h.lane)
	for i, expected := range []fate{want.known, want.fresh, want.onlooker} {
		v := r.videos[i]
		if i == 2 && r.fate(i) == "ok" {
			expected = "ok" // the collector asked again without the bad targets, so this target is unaffected
		}
		require.Equal(t, expected, r.fate(i), "%s, video %d: %+v\n%s", v.ID, i, r.target(i), h.said)
		before := r.before[v.ID]
		if expected != "ok" {
			require.Equal(t, before, r.latest(i), "video %d", i)
			require.Greater(t, r.target(i).nextAt, store.InstantOf(now), "it is asked for again")
			continue
		}
		if len(r.lies(v.ID)) > 0 {
			continue
		}
		truth := r.truth(i, now)
		for _, name := range s.silent {
			if delete(truth, name); i < 2 && before[name] != 0 {
				truth[name] = before[name]
			} else if i == 2 {
				truth[name] = r.truth(i, now)[name]
			}
		}
		maps.DeleteFunc(truth, func(name string, _ int64) bool { return r.lane.counts[name] == nil })
		require.Equal(t, truth, r.latest(i), "video %d: %s", i, h.said)
	}
	r.heal()
	h.dialed.stayed(t, h.url)
}

// everywhere has each scenario run in every lane on every engine, which takes a quarter of an hour. Else each runs in two lanes on SQLite and in a
// third on PostgreSQL, in turns.
var everywhere = flag.Bool("hostile.everywhere", false, "every scenario in every lane on every engine")

// TestHostile_videos sends each source answers that no platform should send, over the whole way from the queue to the points.
func TestHostile_videos(t *testing.T) {
	t.Parallel()
	tables := map[string][]scenario{} // by lane and engine
	all := lanes()
	for n, s := range scenarios() {
		for i, l := range all {
			turn := (i + n) % len(all)
			for _, engine := range storetest.Engines {
				chosen := turn == 0 || turn == len(all)/3
				if engine == "postgres" {
					chosen = turn == 2*len(all)/3
				}
				if (chosen || *everywhere) && (s.lanes == nil || s.lanes(l)) {
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
