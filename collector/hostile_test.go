package collector_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// outcome says how one fetch ended: "ok" if counts were stored, suspicious, notNewer or, if the source returned
// no counts, the class of its result.
type outcome string

const (
	suspicious outcome = "suspicious" // the source returned suspicious counts, which were not stored
	notNewer   outcome = "not newer"  // the source returned counts that are older than the stored counts
)

// outcomes are the outcomes of three videos that are fetched together. Usually, only "unfetched" is
// new to the collector, and answers about "unaffected" stay correct.
type outcomes struct{ known, unfetched, unaffected outcome }

// scenarioRun is the state of a test that runs one scenario.
type scenarioRun struct {
	*hostileTest
	t         *testing.T
	org       *store.Org
	videos    [3]sandbox.VideoTruth // the three videos: "known", "unfetched" and "unaffected"
	callTimes []time.Time           // times at which targets were fetched
	tampering *tampering
	before    map[string]counts // the counts that were stored before the platform changed its answers; the key is the id of the video
}

// counts maps the names of the counts of a video, such as "views", to their values. A count that is null in the database has no entry.
type counts map[string]int64

var countNames = []string{"views", "likes", "comments", "shares", "bookmarks"}

func countsOf(c sandbox.Counts) counts {
	out := counts{"views": c.Views}
	for name, n := range map[string]*int64{"likes": c.Likes, "comments": c.Comments, "shares": c.Shares, "bookmarks": c.Bookmarks} {
		if n != nil {
			out[name] = *n
		}
	}
	return out
}

// beginScenario tracks three videos and fetches them, except "unfetched". It then makes all three
// videos due, 25 hours later.
func (h *hostileTest) beginScenario(t *testing.T) *scenarioRun {
	t.Helper()
	o, err := h.fast.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	run := &scenarioRun{hostileTest: h, t: t, org: h.fast.Org(o.ID)}
	run.videos = h.findVideos()
	first := []int{0, 2}
	// If only calls that request counts are tested, each of the three videos must have been fetched before with
	// its details, so all are fetched now.
	if h.testedSource.countsOnly {
		first = []int{0, 1, 2}
	}
	run.trackVideosAt(first...)
	run.fetchDueTargets()
	for _, i := range first {
		require.Equal(t, run.correctCounts(i, h.db.Clock.Now()), run.latestCounts(i), "the counts must be correct before the platform changes its answers: %s", h.logged)
	}
	h.db.Clock.Advance(25 * time.Hour)
	// In the next fetch, the videos that were fetched before need only counts. So one call can request several of these videos.
	h.db.Exec(t, "UPDATE fetch_targets SET next_at = ?, details_at = ?", store.InstantOf(h.db.Clock.Now()), store.InstantOf(h.db.Clock.Now()))
	if !h.testedSource.countsOnly {
		run.trackVideosAt(1)
	}
	run.before = map[string]counts{}
	for i, v := range run.videos {
		run.before[v.ID] = run.latestCounts(i)
	}
	return run
}

// endScenario empties the tables of the queue and of the budgets, so that the next scenario starts without pauses and targets.
func (r *scenarioRun) endScenario() {
	r.active.Store(nil)
	for _, table := range []string{"fetch_subscriptions", "fetch_targets", "source_pauses", "source_refusals", "quota_windows"} {
		r.db.Exec(r.t, "DELETE FROM "+table)
	}
}

func (r *scenarioRun) trackVideosAt(indexes ...int) {
	r.t.Helper()
	links := make([]link.Link, len(indexes))
	for i, at := range indexes {
		l, err := link.Parse(r.trackedLink(r.videos[at]))
		require.NoError(r.t, err)
		links[i] = l
	}
	_, err := r.org.Track(r.t.Context(), store.TrackRequest{Links: links, Immediate: len(links)})
	require.NoError(r.t, err)
}

// fetchDueTargets runs the collector until no target is due.
func (r *scenarioRun) fetchDueTargets() {
	r.t.Helper()
	r.callTimes = append(r.callTimes, r.db.Clock.Now())
	for busy := true; busy; {
		var err error
		busy, err = r.collector.ClaimAndFetch(r.t.Context())
		require.NoError(r.t, err, r.logged)
	}
}

// correctCounts returns the counts that the tested source must return for a video at the given time. Counts that the source never returns
// are left out.
func (r *scenarioRun) correctCounts(index int, at time.Time) counts {
	r.t.Helper()
	v, ok := r.sandbox.World().Video(r.testedSource.platform, r.videos[index].ID, at.Add(-r.testedSource.lag))
	require.True(r.t, ok)
	all := countsOf(v.Counts)
	if r.testedSource.rounds {
		for name, n := range all {
			all[name] = sandbox.RoundTikTokCount(n)
		}
	}
	maps.DeleteFunc(all, func(name string, _ int64) bool { return r.testedSource.counts[name] == nil })
	return all
}

// correctCountsOfAllCalls returns the values that each count of a video had at the calls of the scenario so far.
func (r *scenarioRun) correctCountsOfAllCalls(index int) map[string][]int64 {
	r.t.Helper()
	values := map[string][]int64{}
	for _, at := range r.callTimes {
		for name, n := range r.correctCounts(index, at) {
			values[name] = append(values[name], n)
		}
	}
	return values
}

// requireLatestCounts checks that the latest counts of a video are those that the source reported last. If such a count looks rounded, a more
// exact count of an earlier call may be stored instead of it, also a forged count that the collector cannot detect. For example, the collector keeps 11375 if the source
// then reports 11400, because that can be 11.4K, and 11990 if the source then reports 11000, because that can be 11K.
func (r *scenarioRun) requireLatestCounts(index int, reported counts) {
	r.t.Helper()
	latest := r.latestCounts(index)
	for name, earlier := range r.correctCountsOfAllCalls(index) {
		earlier = append(earlier, r.forgedValues(r.videos[index].ID)...)
		if n := reported[name]; n >= 10_000 && n%100 == 0 && latest[name]%100 != 0 && slices.Contains(earlier, latest[name]) {
			reported[name] = latest[name]
		}
	}
	require.Equal(r.t, reported, latest, "video %d: %s", index, r.logged)
}

// latestCounts returns the latest counts of a video from the database.
func (r *scenarioRun) latestCounts(index int) counts {
	r.t.Helper()
	rows := r.readCounts("SELECT %s FROM videos WHERE organisation_id = ? AND external_id = ?", "latest_", r.org.ID(), r.videos[index].ID)
	if len(rows) == 0 {
		return counts{}
	}
	return rows[0]
}

// dailyPoints returns the counts of all daily history points of a video.
func (r *scenarioRun) dailyPoints(index int) []counts {
	r.t.Helper()
	return r.readCounts("SELECT %s FROM snapshots_daily WHERE organisation_id = ? AND video_id = (SELECT id FROM videos WHERE organisation_id = ? AND external_id = ?)",
		"", r.org.ID(), r.org.ID(), r.videos[index].ID)
}

func (r *scenarioRun) readCounts(query, prefix string, args ...any) []counts {
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

// target is the row of a video in the table fetch_targets.
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

// outcome returns the outcome of the last fetch of a video.
func (r *scenarioRun) outcome(index int) outcome {
	r.t.Helper()
	at := r.target(index)
	said := at.detail
	if at.attempts == 0 {
		// No failed attempt is counted for this video, for example because its source is paused. If said is "", findClasses
		// returns the class of the last failed call for any target.
		said = ""
	}
	class, failure := r.logged.findClasses(r.videos[index].ID, said)
	switch {
	case at.fetchedAt == store.InstantOf(r.db.Clock.Now()):
		require.Equal(r.t, 0, at.attempts)
		require.Empty(r.t, at.suspect)
		return "ok"
	case at.suspect != "":
		return suspicious
	case class == string(source.OK):
		return notNewer
	case class != "":
		return outcome(class)
	default:
		return outcome(failure)
	}
}

// requireTrueCounts checks that every stored count was correct at a fetch or is in tampering.forged.
// It also checks the totals of the organisation.
func (r *scenarioRun) requireTrueCounts() {
	r.t.Helper()
	r.requireTrueCountsWithMessage(r.logged.String())
}

func (r *scenarioRun) requireTrueCountsWithMessage(what string) {
	r.t.Helper()
	sum := counts{}
	for i, v := range r.videos {
		allowed := r.correctCountsOfAllCalls(i)
		for _, c := range append(r.dailyPoints(i), r.latestCounts(i)) {
			for name, n := range c {
				require.Contains(r.t, append(allowed[name], r.forgedValues(v.ID)...), n, "video %s must have a correct count of %s: %s", v.ID, name, what)
			}
		}
		for name, n := range r.latestCounts(i) {
			sum[name] += n
		}
	}
	totals := r.readCounts("SELECT %s FROM organisation_totals WHERE organisation_id = ?", "", r.org.ID())[0]
	maps.DeleteFunc(totals, func(_ string, n int64) bool { return n == 0 })
	require.Equal(r.t, sum, totals)
}

// requireRecovery lets the platform answer correctly again, and advances the clock until every video has been fetched. It then checks that
// every video has correct counts.
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
		r.db.Clock.Set(laterTime(next.Time(), r.db.Clock.Now().Add(time.Second)))
		r.fetchDueTargets()
	}
	for i, v := range r.videos {
		at := r.target(i)
		require.True(r.t, recovered(i), "video %s must have correct counts again after the platform answers correctly: %+v:\n%s", v.ID, at, r.logged)
		require.Equal(r.t, "active", at.state)
		r.requireLatestCounts(i, r.correctCounts(i, at.fetchedAt.Time()))
	}
	r.requireTrueCounts()
}

func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// forgedValues returns the wrong counts that the platform returned for a video and that the collector cannot detect.
func (r *scenarioRun) forgedValues(id string) []int64 {
	if r.tampering == nil {
		return nil
	}
	return r.tampering.forgedCounts(id)
}

// fetchTamperedAnswers fetches the due videos once. During this fetch, the test server falsifies answers of the platform.
func (r *scenarioRun) fetchTamperedAnswers(s scenario) {
	r.t.Helper()
	r.tampering = &tampering{testedSource: r.testedSource, tamper: s.tamper, otherCalls: s.otherCalls}
	for i, v := range r.videos {
		if s.affectsVideo(i) {
			r.tampering.tamperedIDs = append(r.tampering.tamperedIDs, v.ID)
		}
	}
	r.logged.reset()
	r.active.Store(r.tampering)
	r.fetchDueTargets()
	require.Positive(r.t, r.tampering.changedAnswers.Load(), "at least one answer of the platform must have been changed")
}

// requireNotGone checks that no video is marked as gone after a single answer.
func (r *scenarioRun) requireNotGone() {
	r.t.Helper()
	for i, v := range r.videos {
		require.Contains(r.t, []string{"active", "parked"}, r.target(i).state, v.ID)
	}
}

func (h *hostileTest) runScenario(t *testing.T, s scenario) {
	t.Helper()
	if s.timeout > 0 {
		h.restartCollector(s.timeout)
		defer h.restartCollector(10 * time.Second)
	}
	r := h.beginScenario(t)
	defer r.endScenario()
	r.fetchTamperedAnswers(s)
	r.requireTrueCounts()
	r.requireNotGone()
	now, want := h.db.Clock.Now(), s.wantedOutcomes(h.testedSource)
	alsoCorrect := s.alsoCorrect[h.testedSource.name]
	for i, expected := range []outcome{want.known, want.unfetched, want.unaffected} {
		v := r.videos[i]
		if also := []outcome{alsoCorrect.known, alsoCorrect.unfetched, alsoCorrect.unaffected}[i]; r.outcome(i) == also {
			expected = also
		}
		if i == 2 && r.outcome(i) == "ok" {
			expected = "ok" // the collector repeated the call without the refused videos, so the unaffected video was fetched
		}
		if at := r.target(2); i == 2 && at.attempts == 0 && strings.Contains(at.detail, "is paused until") {
			expected = r.outcome(i) // the unaffected video was not fetched, because it waits until the pause of the source ends
		}
		require.Equal(t, expected, r.outcome(i), "%s, video %d: %+v\n%s", v.ID, i, r.target(i), h.logged)
		before := r.before[v.ID]
		if expected != "ok" {
			require.Equal(t, before, r.latestCounts(i), "video %d", i)
			require.Greater(t, r.target(i).nextAt, store.InstantOf(now), "the target must be due again later")
			continue
		}
		if len(r.forgedValues(v.ID)) > 0 {
			continue
		}
		correct := r.correctCounts(i, now)
		for _, name := range s.missingCounts {
			if delete(correct, name); i < 2 && before[name] != 0 {
				correct[name] = before[name]
			} else if i == 2 {
				correct[name] = r.correctCounts(i, now)[name]
			}
		}
		maps.DeleteFunc(correct, func(name string, _ int64) bool { return r.testedSource.counts[name] == nil })
		r.requireLatestCounts(i, correct)
	}
	r.requireRecovery()
	h.dialer.requireOnlyAddress(t, h.url)
}

// allCombinations makes each scenario run with every source and database engine, which takes 15
// minutes. Without this flag, each scenario runs at most three times.
var allCombinations = flag.Bool("hostile.everywhere", false, "run every scenario with every source on every database engine")

// TestHostile_changedVideoAnswersHaveTheExpectedOutcome lets the platform send invalid and wrong answers to each source. It checks the
// state of the queue, the stored counts, and the recovery after correct answers.
func TestHostile_changedVideoAnswersHaveTheExpectedOutcome(t *testing.T) {
	t.Parallel()
	tables := map[string][]scenario{} // maps a source name and a database engine to the scenarios to run
	all := testedSources()
	for n, s := range scenarios() {
		for i, l := range all {
			offset := (i + n) % len(all)
			for _, engine := range storetest.Engines {
				chosen := offset == 0 || offset == len(all)/3
				if engine == "postgres" {
					chosen = offset == 2*len(all)/3
				}
				if (chosen || *allCombinations) && (s.onlyIf == nil || s.onlyIf(l)) {
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
				h := newHostileTest(t, engine, l)
				for _, s := range table { // all scenarios use one database, which is much faster than a new database for each scenario
					t.Run(s.name, func(t *testing.T) { h.runScenario(t, s) })
				}
			})
		}
	}
	t.Logf("%d scenarios", total)
	require.GreaterOrEqual(t, total, 200)
}
