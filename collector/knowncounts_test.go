package collector

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// factsSource answers with the same facts for each video.
type factsSource struct {
	*scriptedSource
	facts source.Facts
}

func (s factsSource) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	results, err := s.scriptedSource.Fetch(ctx, batch, budget)
	for i := range results {
		facts := s.facts
		results[i].Facts = &facts
	}
	return results, err
}

// answerWith makes the source of the test answer with the given facts for each video.
func (s *refusalTest) answerWith(facts source.Facts) {
	s.Sources = []source.Source{factsSource{s.scriptedSource, facts}}
}

// importCounts imports the video of the test with the given counts, measured three days ago.
func (s *refusalTest) importCounts(counts store.Counts) {
	s.t.Helper()
	at := store.InstantOf(s.db.Clock.Now().AddDate(0, 0, -3))
	_, err := backfill.Import(s.t.Context(), s.org, []backfill.ImportVideo{{Link: storetest.VideoLink(s.t, 1), Points: []backfill.Point{{At: at, Counts: counts}}}}, false)
	require.NoError(s.t, err)
}

// fetchForHours fetches the due targets ten times, once an hour.
func (s *refusalTest) fetchForHours() {
	s.t.Helper()
	for range 10 {
		s.fetchAfter(time.Hour)
	}
}

// countsOf returns the latest counts that an organisation has for the test's video.
func countsOf(t *testing.T, o *store.Org) store.Counts {
	t.Helper()
	v := storetest.VideoOf(t, o, storetest.VideoLink(t, 1))
	return v.Latest
}

func TestCollector_holdsBackSuspiciousCountsOfAnImportedVideo(t *testing.T) {
	t.Parallel()
	counts := func(views, likes int64) store.Counts { return store.Counts{Views: &views, Likes: &likes} }
	for name, c := range map[string]struct {
		imported, answer store.Counts
		storedAtOnce     bool
		neverStored      bool
	}{
		"far fewer views":     {imported: counts(49_900_000, 900), answer: counts(63_892, 900)},
		"far fewer likes":     {imported: counts(9_000, 900), answer: counts(9_100, 1)},
		"an implausible rise": {imported: counts(1_000, 90), answer: counts(20_000_000, 900)},
		"zero views":          {imported: counts(5_000_000, 900), answer: counts(0, 0), neverStored: true},
		"a plausible rise":    {imported: counts(100_000, 900), answer: counts(300_000, 1_900), storedAtOnce: true},
		"a small fall":        {imported: counts(100_000, 900), answer: counts(99_000, 900), storedAtOnce: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				s := newRefusalTest(t, db, 1, 0)
				s.importCounts(c.imported)
				s.answerWith(source.Facts{Views: c.answer.Views, Likes: c.answer.Likes})
				_, err := s.org.RefreshVideo(t.Context(), store.Ref{Link: storetest.VideoLink(t, 1)}, nil)
				require.NoError(t, err)
				s.fetchDueTargets(s.Collector)
				require.Equal(t, 1, s.callCount())
				if c.storedAtOnce {
					require.Equal(t, c.answer, countsOf(t, s.org))
					return
				}
				require.Equal(t, c.imported, countsOf(t, s.org))
				s.fetchForHours()
				if c.neverStored {
					require.Equal(t, c.imported, countsOf(t, s.org))
					return
				}
				require.Equal(t, c.answer, countsOf(t, s.org))
			})
		})
	}
}

func TestCollector_holdsBackAFallOfAVideoThatIsTrackedAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := newRefusalTest(t, db, 1, 0)
		l := storetest.VideoLink(t, 1)
		storetest.Track(t, s.org, l)
		s.answerWith(source.Facts{Views: new(int64(5_000_000))})
		s.fetchDueTargets(s.Collector)
		require.EqualValues(t, 5_000_000, *countsOf(t, s.org).Views)

		storetest.StopVideos(t, s.org, l)
		s.fetchAfter(48 * time.Hour)
		require.Zero(t, s.countTargets("kind = 'video'"))
		storetest.Track(t, s.org, l)
		s.answerWith(source.Facts{Views: new(int64(4_000))})
		s.fetchDueTargets(s.Collector)
		require.Equal(t, 2, s.callCount())
		require.EqualValues(t, 5_000_000, *countsOf(t, s.org).Views)
		s.fetchForHours()
		require.EqualValues(t, 4_000, *countsOf(t, s.org).Views)
	})
}

func TestCollector_doesNotDelayOtherOrganisationsBecauseOfAnImport(t *testing.T) {
	t.Parallel()
	for name, views := range map[string]int64{"far fewer views": 63_892, "zero views of a new video": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				s := newRefusalTest(t, db, 1, 0)
				s.importCounts(store.Counts{Views: new(int64(49_900_000))})
				other := storetest.NewOrg(t, db)
				storetest.Track(t, other, storetest.VideoLink(t, 1))
				s.answerWith(source.Facts{Views: &views, UploadedAt: new(db.Clock.Now())})
				s.fetchAfter(0)
				require.Equal(t, 1, s.callCount())
				require.Equal(t, store.Counts{Views: &views}, countsOf(t, other))
			})
		})
	}
}
