package collector

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// vanishingSource answers that the videos in `gone` do not exist. For every other video, it answers like the scriptedSource.
type vanishingSource struct {
	*scriptedSource
	gone map[string]bool
}

func (s vanishingSource) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	results, err := s.scriptedSource.Fetch(ctx, batch, budget)
	for i, t := range batch {
		if s.gone[t.ExternalID] {
			results[i] = source.Result{Target: t, Class: source.Gone, Detail: "not found"}
		}
	}
	return results, err
}

// vanish makes the source of the test answer that the videos with the given ids do not exist.
func (s *refusalTest) vanish(ids ...string) {
	gone := map[string]bool{}
	for _, id := range ids {
		gone[id] = true
	}
	s.Sources = []source.Source{vanishingSource{s.scriptedSource, gone}}
}

// vanishOnNextDay fetches all videos. A day later, the given videos vanish, and all videos are due again.
func (s *refusalTest) vanishOnNextDay(ids ...string) {
	s.t.Helper()
	s.fetchAfter(0)
	require.Len(s.t, s.fetchedVideos(), len(s.ids))
	s.db.Clock.Advance(24 * time.Hour)
	s.makeTargetsDue(s.ids...)
	s.vanish(ids...)
}

// fetchAfter advances the clock and fetches the targets that are due then.
func (s *refusalTest) fetchAfter(d time.Duration) {
	s.t.Helper()
	s.db.Clock.Advance(d)
	s.fetchDueTargets(s.Collector)
}

func (s *refusalTest) countTargets(condition string) int {
	s.t.Helper()
	return len(storetest.Column[string](s.t, s.db, "SELECT external_id FROM fetch_targets WHERE "+condition))
}

func TestDisappearances_ofMostVideosAreHeldBack(t *testing.T) {
	t.Parallel()
	for name, batch := range map[string]int{"in one batch": 20, "in single calls": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				s := newRefusalTest(t, db, batch, 20)
				s.vanishOnNextDay(s.ids[:15]...)
				for range 30 {
					s.fetchAfter(time.Hour)
				}
				require.Zero(t, s.countTargets("state = 'gone'"))
				require.Contains(t, s.logs.String(), "answers held back: the source says of most targets that they do not exist")
				require.NoError(t, s.WriteHeartbeat(t.Context()))
				status, err := s.db.CollectingState(t.Context())
				require.NoError(t, err)
				require.Regexp(t, `^\d+ of the last \d+ answers say that a recently fetched video or account does not exist; such answers are held back since 20[^ ]+Z, until at most half of the answers say so$`, status.Sources[0].HeldBack)
				video := storetest.Column[string](t, db, "SELECT fetch_reason FROM videos WHERE external_id = ?", s.ids[0])
				require.Equal(t, []string{"The source scripted says of many videos or accounts at once that they do not exist, so its answers are held back"}, video)

				s.vanish()
				for range 48 {
					s.fetchAfter(time.Hour)
				}
				require.Equal(t, 20, s.countTargets("state = 'active' AND attempts = 0"))
				require.Contains(t, s.logs.String(), "answers no longer held back")
				require.NoError(t, s.WriteHeartbeat(t.Context()))
				status, err = s.db.CollectingState(t.Context())
				require.NoError(t, err)
				require.Empty(t, status.Sources[0].HeldBack)
			})
		})
	}
}

func TestDisappearances_ofSomeVideosCountAsGone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := newRefusalTest(t, db, 20, 20)
		s.vanishOnNextDay(s.ids[:8]...)
		for range 30 {
			s.fetchAfter(time.Hour)
		}
		require.Equal(t, 8, s.countTargets("state = 'gone'"))
		require.NotContains(t, s.logs.String(), "held back")
	})
}

func TestDisappearances_ofAllVideosOfOneAccountCountAsGone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := newRefusalTest(t, db, 20, 20)
		s.fetchAfter(0)
		ofOneAccount := storetest.Column[string](t, db, "SELECT external_id FROM videos WHERE link LIKE '%@some.body1/%'")
		require.Len(t, ofOneAccount, 5)
		// From now on, only this account is fetched, so all answers are about its videos.
		s.db.Exec(t, "DELETE FROM fetch_targets WHERE external_id NOT IN (?, ?, ?, ?, ?)", ofOneAccount[0], ofOneAccount[1], ofOneAccount[2], ofOneAccount[3], ofOneAccount[4])
		s.db.Clock.Advance(24 * time.Hour)
		s.makeTargetsDue(ofOneAccount...)
		s.vanish(ofOneAccount...)
		for range 20 {
			s.fetchAfter(time.Hour)
		}
		require.Equal(t, 5, s.countTargets("state = 'gone'"))
		require.NotContains(t, s.logs.String(), "held back")
	})
}

func TestDisappearances_ofMostVideosCountAsGoneAfterSomeDays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := newRefusalTest(t, db, 20, 20)
		s.fetchAfter(0)
		s.vanish(s.ids...)
		for range 6 * 24 {
			s.fetchAfter(time.Hour)
		}
		require.Equal(t, 20, s.countTargets("state = '"+queue.StateGone+"'"))
		require.Less(t, s.callCountForVideo(s.ids[0]), 18, "a source that fails for all videos gets few requests")
	})
}

func TestDisappearances_nextSourceIsAsked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := newRefusalTest(t, db, 20, 20)
		s.vanishOnNextDay(s.ids...)
		c, err := New(Options{Store: db.Store, Sources: []source.Source{s.Sources[0], otherSource{&scriptedSource{batch: 20, answer: func([]queue.Target) error { return nil }}}}, Now: db.Clock.Now, Logger: s.Logger})
		require.NoError(t, err)
		require.NoError(t, c.publishRoutes(t.Context()))
		s.fetchDueTargets(c)
		require.Equal(t, 20, s.countTargets("state = 'active' AND attempts = 0 AND fetched_at > 0"))
		require.Len(t, storetest.Column[string](t, db, "SELECT source FROM snapshots_daily WHERE source = 'other'"), 20)
	})
}

// otherSource is a scriptedSource with another name.
type otherSource struct{ *scriptedSource }

func (otherSource) Name() string { return "other" }
