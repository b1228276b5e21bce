package collector

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// scriptedSource is a source of TikTok videos. A test decides which of its calls fail.
type scriptedSource struct {
	batch  int
	answer func(batch []queue.Target) error // returns the error of the call for a batch, or nil if the call succeeds; it may also panic

	mu    sync.Mutex
	calls [][]string // requested video ids of each call
}

func (*scriptedSource) Name() string                              { return "scripted" }
func (*scriptedSource) Timeout() time.Duration                    { return time.Minute }
func (*scriptedSource) Concurrency() int                          { return 1 }
func (*scriptedSource) Group(queue.Target) string                 { return "" }
func (*scriptedSource) NeedsHandle(queue.Target) bool             { return false }
func (*scriptedSource) OnlyAccounts() string                      { return "" }
func (*scriptedSource) Address() string                           { return "" }
func (*scriptedSource) Clock(context.Context) (time.Time, error)  { return time.Time{}, nil }
func (*scriptedSource) Budgets() []source.Budget                  { return nil }
func (*scriptedSource) Plan(batch []queue.Target) [][]source.Call { return [][]source.Call{{}} }
func (s *scriptedSource) Serves(t queue.Target) (int, bool) {
	return s.batch, t.Platform == link.TikTok && t.Kind == queue.KindVideo
}

func (s *scriptedSource) Fetch(_ context.Context, batch []queue.Target, _ *source.CallBudget) ([]source.Result, error) {
	ids := make([]string, len(batch))
	results := make([]source.Result, len(batch))
	for i, t := range batch {
		ids[i] = t.ExternalID
		results[i] = source.Result{Target: t, Class: source.OK, Facts: &source.Facts{Views: new(int64(100 + i))}}
	}
	s.mu.Lock()
	s.calls = append(s.calls, ids)
	s.mu.Unlock()
	if err := s.answer(batch); err != nil {
		return nil, err
	}
	return results, nil
}

// callCountForVideo returns how many calls to the source requested the video with the given id.
func (s *scriptedSource) callCountForVideo(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.calls), func(ids []string) bool { return !slices.Contains(ids, id) }))
}

func (s *scriptedSource) callCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// containsAny returns true if a target of the batch has one of the ids.
func containsAny(batch []queue.Target, ids ...string) bool {
	return slices.ContainsFunc(batch, func(t queue.Target) bool { return slices.Contains(ids, t.ExternalID) })
}

// refusalTest has a collector with one scriptedSource, and an organisation that tracks videos.
type refusalTest struct {
	t    *testing.T
	db   *storetest.DB
	org  *store.Org
	ids  []string
	logs *storetest.Log
	*scriptedSource
	*Collector
}

func videoIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("7106594312292%06d", 453000+i)
	}
	return ids
}

func newRefusalTest(t *testing.T, db *storetest.DB, batch, videos int) *refusalTest {
	t.Helper()
	s := &refusalTest{t: t, db: db, ids: videoIDs(videos), logs: &storetest.Log{}, scriptedSource: &scriptedSource{batch: batch, answer: func([]queue.Target) error { return nil }}}
	s.Collector = s.newCollector()
	o, err := db.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	s.org = db.Org(o.ID)
	links := make([]link.Link, videos)
	for i, id := range s.ids {
		links[i], err = link.Parse(fmt.Sprintf("https://www.tiktok.com/@some.body%d/video/%s", i%4, id))
		require.NoError(t, err)
	}
	_, err = s.org.Track(t.Context(), store.TrackRequest{Links: links, Immediate: videos})
	require.NoError(t, err)
	return s
}

// newCollector returns a new collector that uses the database and the source of the test. A new collector has no state in memory.
func (s *refusalTest) newCollector() *Collector {
	s.t.Helper()
	c, err := New(Options{Store: s.db.Store, Sources: []source.Source{s.scriptedSource}, Now: s.db.Clock.Now, Logger: slog.New(slog.NewTextHandler(s.logs, nil))})
	require.NoError(s.t, err)
	require.NoError(s.t, c.publishRoutes(s.t.Context()))
	return c
}

// fetchDueTargets runs a collector until no target is due.
func (s *refusalTest) fetchDueTargets(c *Collector) {
	s.t.Helper()
	for busy := true; busy; {
		var err error
		busy, err = c.ClaimAndFetch(s.t.Context())
		require.NoError(s.t, err)
	}
}

// makeTargetsDue makes the targets with the given ids due now, and all other targets due in two days.
func (s *refusalTest) makeTargetsDue(ids ...string) {
	s.t.Helper()
	now := store.InstantOf(s.db.Clock.Now())
	s.db.Exec(s.t, "UPDATE fetch_targets SET next_at = ?", now.Add(48*time.Hour))
	for _, id := range ids {
		s.db.Exec(s.t, "UPDATE fetch_targets SET next_at = ? WHERE external_id = ?", now, id)
	}
}

// fetchedVideos returns the ids of the videos that have counts.
func (s *refusalTest) fetchedVideos() []string {
	s.t.Helper()
	ids := storetest.Column[string](s.t, s.db, "SELECT external_id FROM videos WHERE organisation_id = ? AND latest_views IS NOT NULL", s.org.ID())
	slices.Sort(ids)
	return ids
}

func (s *refusalTest) failedAttempts(id string) int {
	s.t.Helper()
	return storetest.Column[int](s.t, s.db, "SELECT attempts FROM fetch_targets WHERE external_id = ?", id)[0]
}

// pauseClass returns the class of the source's pause. It returns "" if the source is not paused.
func (s *refusalTest) pauseClass() source.Class {
	s.t.Helper()
	pauses, err := s.db.Pauses(s.t.Context())
	require.NoError(s.t, err)
	if p, ok := pauses["scripted"]; ok && p.BlockedUntil > store.InstantOf(s.db.Clock.Now()) {
		return source.Class(p.Class)
	}
	return ""
}

// otherIDs returns the ids of all tracked videos except the excluded ones.
func (s *refusalTest) otherIDs(excludedIDs ...string) []string {
	return slices.DeleteFunc(slices.Clone(s.ids), func(id string) bool { return slices.Contains(excludedIDs, id) })
}

func TestRefusals_ofOneTargetDoNotPauseTheSource(t *testing.T) {
	t.Parallel()
	for _, class := range []source.Class{source.AuthFailed, source.BadRequest, source.Temporary} {
		for _, batch := range []int{1, 50} {
			t.Run(fmt.Sprintf("class %s, %d targets per call", class, batch), func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, db *storetest.DB) {
					s := newRefusalTest(t, db, batch, map[int]int{1: 21, 50: 101}[batch])
					bad := s.ids[17]
					s.answer = func(asked []queue.Target) error {
						if containsAny(asked, bad) {
							return &source.Failure{Class: class, Detail: "refused"}
						}
						return nil
					}
					s.fetchDueTargets(s.Collector)
					require.Equal(t, s.otherIDs(bad), s.fetchedVideos(), "all other videos must be fetched without delay")
					require.Empty(t, s.pauseClass())
					require.Equal(t, 1, s.failedAttempts(bad), "the target must be retried later")
					require.LessOrEqual(t, s.callCount(), map[int]int{1: 21, 50: 3 + 2*6}[batch], "the refused target must be found with only a few calls")
				})
			})
		}
	}
}

func TestPanicInASource_affectsOnlyTheTargetThatCausesIt(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 50} {
		t.Run(fmt.Sprintf("%d targets per call", batch), func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				s := newRefusalTest(t, db, batch, map[int]int{1: 11, 50: 101}[batch])
				bad := s.ids[7]
				var panics atomic.Int64
				s.Panicked = func() { panics.Add(1) }
				s.answer = func(asked []queue.Target) error {
					if containsAny(asked, bad) {
						panic("unexpected answer")
					}
					return nil
				}
				s.fetchDueTargets(s.Collector)
				require.Equal(t, s.otherIDs(bad), s.fetchedVideos())
				require.Empty(t, s.pauseClass())
				require.Equal(t, 1, s.failedAttempts(bad), "the target must be retried later")
				require.Positive(t, panics.Load(), "each panic must be counted")
				require.LessOrEqual(t, panics.Load(), int64(7), "the target that causes the panic must be found with only a few calls")
				for _, part := range []string{"panic recovered", "unexpected answer", "source=scripted", bad, "refusals_test.go"} {
					require.Contains(t, s.logs.String(), part)
				}
				for range schedule.FailuresUntilParked + 1 {
					s.db.Clock.Advance(48 * time.Hour)
					s.makeTargetsDue(bad)
					s.fetchDueTargets(s.Collector)
				}
				require.Equal(t, []string{queue.StateParked}, storetest.Column[string](t, db, "SELECT state FROM fetch_targets WHERE external_id = ?", bad), "the target must be parked after repeated failures")
				require.Empty(t, s.pauseClass())
			})
		})
	}
}

func TestRefusals_pauseSourceIfSeveralTargetsAreRefused(t *testing.T) {
	t.Parallel()
	for class, calls := range map[source.Class]int{source.AuthFailed: 2, source.BadRequest: 3, source.Temporary: 3} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				s := newRefusalTest(t, db, 1, 5)
				s.answer = func([]queue.Target) error { return &source.Failure{Class: class, Detail: "refused"} }
				other := s.newCollector() // fetch with a second collector, which reads the refusals of the first collector from the database
				for i := range calls {
					require.Empty(t, s.pauseClass(), "the source must not be paused after %d calls", i)
					s.makeTargetsDue(s.ids[i])
					s.fetchDueTargets([]*Collector{s.Collector, other}[i%2])
				}
				require.Equal(t, class, s.pauseClass())
				require.Equal(t, calls, s.callCount())
				if class == source.AuthFailed {
					require.Equal(t, 0, s.failedAttempts(s.ids[1]), "the refusal that pauses the source must not count as a failed attempt of the target")
				}
				require.Equal(t, "active", storetest.Column[string](t, db, "SELECT state FROM fetch_targets WHERE external_id = ?", s.ids[0])[0])
			})
		})
	}
}

func TestRefusals_doNotPauseSourceIfAllConcernOneTarget(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := newRefusalTest(t, db, 1, 2)
		s.answer = func([]queue.Target) error { return &source.Failure{Class: source.AuthFailed, Detail: "refused"} }
		for range schedule.FailuresUntilParked + 3 {
			s.makeTargetsDue(s.ids[0])
			s.fetchDueTargets(s.Collector)
			require.Empty(t, s.pauseClass())
		}
		require.Equal(t, []string{queue.StateActive}, storetest.Column[string](t, db, "SELECT state FROM fetch_targets WHERE external_id = ?", s.ids[0]),
			"the target must not be parked: the credential may be the cause")
	})
}

func TestRefusals_areCountedFromZeroAfterAnyCollectorGetsAnAnswer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := newRefusalTest(t, db, 1, 5)
		bad := []string{s.ids[0], s.ids[2]}
		s.answer = func(asked []queue.Target) error {
			if containsAny(asked, bad...) {
				return &source.Failure{Class: source.AuthFailed, Detail: "refused"}
			}
			return nil
		}
		other := s.newCollector()
		for i, c := range []*Collector{s.Collector, other, s.Collector} {
			s.makeTargetsDue(s.ids[i])
			s.fetchDueTargets(c)
		}
		require.Equal(t, []string{s.ids[1]}, s.fetchedVideos())
		require.Empty(t, s.pauseClass())
		require.Equal(t, 1, s.callCountForVideo(bad[1]))
	})
}

func TestRefusals_pauseSourceAtOnceIfCredentialIsRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := newRefusalTest(t, db, 50, 50)
		s.answer = func([]queue.Target) error {
			return &source.Failure{Class: source.AuthFailed, OfSource: true, Detail: "the key is invalid"}
		}
		s.fetchDueTargets(s.Collector)
		require.Equal(t, source.AuthFailed, s.pauseClass())
		require.Equal(t, 1, s.callCount())
		require.Equal(t, 0, s.failedAttempts(s.ids[0]))
	})
}

func TestRefusals_pauseSourceIfWholeBatchIsRefused(t *testing.T) {
	t.Parallel()
	for _, class := range []source.Class{source.AuthFailed, source.BadRequest, source.Temporary} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t, "sqlite")
			s := newRefusalTest(t, db, 50, 50)
			s.answer = func([]queue.Target) error { return &source.Failure{Class: class, Detail: "refused"} }
			s.fetchDueTargets(s.Collector)
			require.Equal(t, class, s.pauseClass())
			require.LessOrEqual(t, s.callCount(), 11, "after enough targets were refused, the batch must not be divided further")
			asked := s.callCount()
			s.db.Clock.Advance(10 * time.Minute)
			s.makeTargetsDue(s.ids...)
			s.fetchDueTargets(s.Collector)
			require.Equal(t, asked+1, s.callCount(), "the next batch must be requested by a single call, without a division")
			require.Equal(t, class, s.pauseClass())
		})
	}
}

// If the answer for a batch is too large, this does not count as a refusal, and the source is not paused. The
// collector requests each half of the batch.
//
// Requirements in docs/coverage.md: 11.12-07
func TestAnswersThatAreTooLarge_halveTheBatch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := newRefusalTest(t, db, 50, 50)
		// After these refusals, one more refusal would pause the source.
		for _, id := range []string{"1", "2", "3"} {
			_, err := db.RecordRefusal(t.Context(), s.Name(), string(source.Temporary), id)
			require.NoError(t, err)
		}
		s.answer = func(batch []queue.Target) error {
			if len(batch) > 20 {
				return &source.Failure{Class: source.Temporary, Cause: fetch.ErrTooLarge}
			}
			return nil
		}
		s.fetchDueTargets(s.Collector)
		require.Len(t, s.fetchedVideos(), 50)
		require.Equal(t, 7, s.callCount(), "the collector must make one call for 50 targets, two calls for 25 targets each, and four calls for 12 or 13 targets each")
		require.Empty(t, s.pauseClass())
	})
}

func TestCallWithoutAnswer_otherTargetsOfTheBatchAreFetchedLater(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	s := newRefusalTest(t, db, 50, 50)
	bad := s.ids[9]
	s.answer = func(asked []queue.Target) error {
		if containsAny(asked, bad) {
			return &source.Failure{Class: source.Temporary, Detail: "no answer", Cause: source.ErrNoAnswer}
		}
		return nil
	}
	s.fetchDueTargets(s.Collector)
	require.Equal(t, 1, s.callCount(), "a call without an answer must not be repeated immediately")
	for range 8 {
		s.db.Clock.Advance(10 * time.Minute)
		s.fetchDueTargets(s.Collector)
	}
	require.Equal(t, s.otherIDs(bad), s.fetchedVideos())
}

func TestRunSafely_returnsAPanicAsAnError(t *testing.T) {
	t.Parallel()
	s := newRefusalTest(t, storetest.New(t, "sqlite"), 1, 1)
	err := s.runSafely(t.Context(), func() error { panic("broken") })
	var p *panicError
	require.ErrorAs(t, err, &p)
	require.ErrorContains(t, err, "broken")
}

// partlyLimitedSource is a source that answers for the first target of a batch. It then reaches its rate limit.
type partlyLimitedSource struct{ *scriptedSource }

func (s partlyLimitedSource) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	results, err := s.scriptedSource.Fetch(ctx, batch, budget)
	for i, t := range batch[1:] {
		results[i+1] = source.UnansweredResult(t, &source.Failure{Class: source.RateLimited})
	}
	return results, err
}

func TestPause_isShortIfTheSourceAnsweredForAnotherTargetOfTheBatch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := newRefusalTest(t, db, 2, 2)
		s.Sources = []source.Source{partlyLimitedSource{s.scriptedSource}}
		ended := store.InstantOf(db.Clock.Now().Add(-time.Minute))
		require.NoError(t, db.PauseSource(t.Context(), queue.Pause{Source: "scripted", Class: string(source.RateLimited), PausesSinceSuccess: 8, BlockedUntil: ended}))
		s.fetchDueTargets(s.Collector)
		require.Len(t, s.fetchedVideos(), 1)
		pauses, err := db.Pauses(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, pauses["scripted"].PausesSinceSuccess, "the pauses before the answer must not count")
	})
}
