package collector_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// lateSource is a source whose fetches advance the clock of the test by the duration takes.
type lateSource struct {
	source.Source
	clock *storetest.Clock
	takes time.Duration
}

func (s *lateSource) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	s.clock.Advance(s.takes)
	return s.Source.Fetch(ctx, batch, budget)
}

// An export of histories waits for answers until a minute after the time limit of the fetch: see queue.Queue.OldestFetch. A later
// answer must not be stored, and the target must be fetched again.
//
// Requirements in docs/coverage.md: 14.3-03
func TestCollector_fetchesAgainIfAnAnswerIsTooOldToBeStored(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		tracked := w.trackVideos("https://youtu.be/" + w.sandbox.World().Find(link.YouTube, sandbox.Normal))
		late := &lateSource{Source: w.newSources()[0], clock: db.Clock}
		limit := source.FetchTimeout(late) + time.Minute
		late.takes = limit + time.Second
		c := w.newCollectorOf(db.Store, late)
		busy, err := c.ClaimAndFetch(t.Context())
		require.NoError(t, err)
		require.True(t, busy)
		require.Nil(t, w.video(tracked[0]).Latest.Views)

		late.takes = limit
		began := store.InstantOf(db.Clock.Now())
		_, err = c.ClaimAndFetch(t.Context())
		require.NoError(t, err)
		require.NotNil(t, w.video(tracked[0]).Latest.Views)
		require.Equal(t, began, *w.video(tracked[0]).LatestUpdatedAt)
	})
}

func TestCollector_claimsNothingAfterManyFailedHeartbeats(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		w.trackVideos("https://youtu.be/" + w.sandbox.World().Find(link.YouTube, sandbox.Normal))
		c := w.newCollectorOf(db.Store, w.newSources()...)
		require.NoError(t, c.WriteHeartbeat(t.Context()))
		fetch := func() bool {
			t.Helper()
			busy, err := c.ClaimAndFetch(t.Context())
			require.NoError(t, err)
			return busy
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		for range collector.MaxMissedHeartbeats {
			require.Error(t, c.WriteHeartbeat(cancelled))
		}
		require.False(t, fetch())
		require.NoError(t, c.WriteHeartbeat(t.Context()))
		require.True(t, fetch())
	})
}

// stoppingSource is a source during whose fetch the collector is stopped. It then has an answer for only the first target.
type stoppingSource struct {
	source.Source
	stop context.CancelFunc
}

func (s *stoppingSource) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	results, err := s.Source.Fetch(ctx, batch, budget)
	s.stop()
	for i := range results[1:] {
		results[i+1] = source.Result{Target: batch[i+1], Class: source.Temporary, Detail: "missing from the vendor's answer"}
	}
	return results, err
}

func TestCollector_releasesTargetsWithoutAnAnswerIfItStopsDuringAFetch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		world := w.sandbox.World()
		tracked := w.trackVideos("https://youtu.be/"+world.Find(link.YouTube, sandbox.Normal), "https://youtu.be/"+world.Find(link.YouTube, sandbox.Viral))
		ctx, stop := context.WithCancel(t.Context())
		c := w.newCollectorOf(db.Store, &stoppingSource{w.newSources()[0], stop})
		_, err := c.ClaimAndFetch(ctx)
		require.NoError(t, err)
		answered := 0
		for _, v := range tracked {
			if w.video(v).Latest.Views != nil {
				answered++
				continue
			}
			require.Empty(t, w.video(v).FetchReason, "the attempt must not count as failed")
		}
		require.Equal(t, 1, answered)
		require.Equal(t, []int{0, 0}, storetest.Column[int](t, db, "SELECT attempts FROM fetch_targets"))
		require.Equal(t, []int{1}, storetest.Column[int](t, db, "SELECT COUNT(*) FROM fetch_targets WHERE claimed_by IS NULL AND next_at <= ?", store.InstantOf(db.Clock.Now())))
	})
}

// hookedSource is a source that calls beforeReturn at the end of each fetch.
type hookedSource struct {
	source.Source
	beforeReturn func()
}

func (s *hookedSource) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	results, err := s.Source.Fetch(ctx, batch, budget)
	s.beforeReturn()
	return results, err
}

func TestCollector_sendsHeartbeatsUntilItsFetchesHaveEnded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		w.trackVideos("https://youtu.be/" + w.sandbox.World().Find(link.YouTube, sandbox.Normal))
		ctx, stop := context.WithCancel(t.Context())
		var seen bool
		slow := &hookedSource{w.newSources()[0], func() {
			stop()
			db.Clock.Advance(8 * time.Second)
			after := store.InstantOf(db.Clock.Now())
			for tries := 0; !seen && tries < 20_000; tries++ { // each try is a query, so all tries take many seconds
				seen = storetest.Column[int](t, db, "SELECT COUNT(*) FROM collectors WHERE seen_at >= ?", after)[0] == 1
			}
		}}
		c, err := collector.New(collector.Options{Store: db.Store, Sources: []source.Source{slow}, Now: db.Clock.Now, Logger: slog.New(slog.DiscardHandler),
			Poll: 10 * time.Millisecond, Heartbeat: 10 * time.Millisecond})
		require.NoError(t, err)
		require.NoError(t, c.Run(ctx))
		require.True(t, seen, "other collectors must not claim the targets of a fetch that is still ending")
	})
}

// newCollectorOf returns a collector with the given sources, prepared as by Run. It fetches only when the test calls ClaimAndFetch.
func (w *testSystem) newCollectorOf(s *store.Store, sources ...source.Source) *collector.Collector {
	w.t.Helper()
	c, err := collector.New(collector.Options{Store: s, Sources: sources, Now: w.db.Clock.Now, Logger: slog.New(slog.NewTextHandler(w.log, nil))})
	require.NoError(w.t, err)
	require.NoError(w.t, c.Start(w.t.Context()))
	return c
}
