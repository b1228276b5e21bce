package collector_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/tiktok"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// displayAPISource returns a source for TikTok's Display API. The source serves only the videos of the account that has authorized it.
func (w *testSystem) displayAPISource() source.Source {
	w.t.Helper()
	d, err := tiktok.NewDisplay(tiktok.DisplayOptions{BaseURL: w.url + "/tiktok", ClientKey: sandbox.TikTokClientKey, ClientSecret: sandbox.TikTokClientSecret,
		RefreshToken: sandbox.TikTokRefreshToken, Client: fetch.New(fetch.Options{Timeout: 5 * time.Second, Transport: noKeepAlive{}}), Tokens: w.db.Queue, Now: w.db.Clock.Now})
	require.NoError(w.t, err)
	return d
}

func (w *testSystem) researchAPISource() source.Source {
	w.t.Helper()
	r, err := tiktok.NewResearch(tiktok.ResearchOptions{BaseURL: w.url + "/tiktok", ClientKey: sandbox.TikTokResearchClientKey,
		ClientSecret: sandbox.TikTokResearchClientSecret, Client: fetch.New(fetch.Options{Timeout: 5 * time.Second, Transport: noKeepAlive{}}), Now: w.db.Clock.Now})
	require.NoError(w.t, err)
	return r
}

// startCollectorWith runs a collector with the given sources. The returned function stops the collector.
func (w *testSystem) startCollectorWith(sources ...source.Source) (stop func()) {
	w.t.Helper()
	c, err := collector.New(collector.Options{Store: w.db.Store, Sources: sources, Now: w.db.Clock.Now, Logger: slog.New(slog.NewTextHandler(w.log, nil)), Poll: 20 * time.Millisecond})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(w.t, <-done)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *testSystem) requireCounts(t store.Tracked, at time.Time) store.Video {
	w.t.Helper()
	v := w.video(t)
	correct, ok := w.sandbox.World().Video(v.Platform, v.ExternalID, at)
	require.True(w.t, ok)
	require.Equal(w.t, correct.Views, *v.Latest.Views)
	require.Equal(w.t, correct.Likes, v.Latest.Likes)
	require.Equal(w.t, correct.Comments, v.Latest.Comments)
	require.Equal(w.t, correct.Shares, v.Latest.Shares)
	return v
}

func TestFallback_nextSourceIsAskedForVideosThatTheFirstSourceCannotFetch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		handle := w.sandbox.TikTokAccount()
		own := w.sandbox.World().Uploads(link.TikTok, handle, db.Clock.Now())
		otherAccount := w.sandbox.World().Find(link.TikTok, sandbox.Normal)
		tracked := w.trackVideos("https://www.tiktok.com/@"+handle+"/video/"+own[0], "https://www.tiktok.com/@/video/"+own[1],
			"https://www.tiktok.com/@/video/"+otherAccount)
		w.startCollectorWith(append([]source.Source{w.displayAPISource()}, w.newSources("ensembledata")...)...)
		w.waitForCounts(tracked)
		for i, source := range []bool{true, true, false} {
			v := w.requireCounts(tracked[i], db.Clock.Now())
			require.Equal(t, source, v.Latest.Bookmarks == nil, "the Display API must give no bookmarks, and the vendor must give bookmarks")
			require.NotEmpty(t, v.Title)
			require.NotEmpty(t, v.Username)
			require.NotNil(t, v.UploadedAt)
		}
		require.Equal(t, handle, w.video(tracked[1]).Username)

		ref := w.trackAccount(w.accountLink(link.TikTok, handle), store.TrackAll)
		w.waitForFetchedVideos(ref, own)
		other := w.trackAccount(w.accountLink(link.TikTok, w.accountWithUploads(link.TikTok, 12)), store.TrackLatest30)
		w.waitForAccountFetch(other, 0)
		require.Greater(t, w.storedAccount(other).TotalVideosTracked, int64(11))
	})
}

func TestFallback_targetWaitsUntilThePauseOfTheNextSourceEnds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		w.callControlInterface(http.MethodPut, "/_control/faults", map[string]any{"source": "vendor", "fault": "rate_limited", "retry_after": 3600})
		otherAccount := w.sandbox.World().Find(link.TikTok, sandbox.Normal)
		tracked := w.trackVideos("https://www.tiktok.com/@/video/" + otherAccount)
		w.startCollectorWith(append([]source.Source{w.displayAPISource()}, w.newSources("ensembledata")...)...)
		w.waitForLog("source paused", "class=rate_limited")
		until := db.Clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		w.waitUntil("the target must wait for the vendor", func() bool {
			return storetest.Column[string](t, db, "SELECT detail FROM fetch_targets WHERE external_id = ?", otherAccount)[0] == "vendor:ensembledata is paused until "+until
		})
		require.Equal(t, "active", storetest.Column[string](t, db, "SELECT state FROM fetch_targets WHERE external_id = ?", otherAccount)[0], "a target with a paused source must not be parked")
		before := w.callCount("tiktok_display")
		w.callControlInterface(http.MethodDelete, "/_control/faults", nil)
		db.Clock.Advance(65 * time.Minute)
		w.waitForCounts(tracked)
		require.Equal(t, before, w.callCount("tiktok_display"), "a source must not be asked again after it refused the video")
		w.requireCounts(tracked[0], db.Clock.Now())
	})
}

// A target whose source is paused is due again four to five minutes later. If it were due immediately, collectors would claim it again and
// again until the pause ends.
func TestFallback_targetOfAPausedSourceIsDeferredForMinutes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		handle := w.sandbox.TikTokAccount()
		w.startCollectorWith(append([]source.Source{w.displayAPISource()}, w.newSources("ensembledata")...)...)
		w.waitForAccountFetch(w.trackAccount(w.accountLink(link.TikTok, handle), store.TrackNewOnly), 0) // in this fetch, the source of the Display API learns the id of the authorized account
		w.callControlInterface(http.MethodPut, "/_control/faults", map[string]any{"source": "vendor", "fault": "rate_limited", "retry_after": 3600})
		otherAccount := w.accountWithUploads(link.TikTok, 12)
		ref := w.trackAccount(w.accountLink(link.TikTok, otherAccount), store.TrackLatest30)
		w.waitForLog("source paused", "class=rate_limited")
		w.waitUntil("the target must be deferred for four to five minutes", func() bool {
			db.Clock.Advance(50 * time.Millisecond) // the first retry may be due after less than a second
			left := storetest.Column[store.Instant](t, db, "SELECT next_at FROM fetch_targets WHERE external_id = ?", "@"+otherAccount)[0].Time().Sub(db.Clock.Now())
			return left > 4*time.Minute && left <= 5*time.Minute
		})
		w.callControlInterface(http.MethodDelete, "/_control/faults", nil)
		db.Clock.Advance(65 * time.Minute)
		w.waitForAccountFetch(ref, 0)
	})
}

func TestFallback_parksUnsupportedTarget(t *testing.T) {
	t.Parallel()
	w := newTestSystem(t, storetest.New(t, "sqlite"))
	otherAccount := w.sandbox.World().Find(link.TikTok, sandbox.Normal)
	w.trackVideos("https://www.tiktok.com/@/video/" + otherAccount)
	w.startCollectorWith(w.displayAPISource())
	w.waitUntil("the target must be parked", func() bool {
		return storetest.Column[string](t, w.db, "SELECT state FROM fetch_targets WHERE external_id = ?", otherAccount)[0] == "parked"
	})
}

func TestFallback_missingVideoIsGoneOnlyIfNoOtherSourceReturnsIt(t *testing.T) {
	t.Parallel()
	otherAccount := func(w *testSystem) string {
		return "https://www.tiktok.com/@" + w.sandbox.TikTokAccount() + "/video/" + w.sandbox.World().Find(link.TikTok, sandbox.Normal)
	}
	t.Run("a second source that has the video", func(t *testing.T) {
		t.Parallel()
		w := newTestSystem(t, storetest.New(t, "sqlite"))
		tracked := w.trackVideos(otherAccount(w)) // TikTok accepts this link, although the handle in it is not the handle of the video's account
		w.startCollectorWith(append([]source.Source{w.displayAPISource()}, w.newSources("scrapecreators")...)...)
		w.waitForCounts(tracked)
		require.NotNil(t, w.requireCounts(tracked[0], w.db.Clock.Now()).Latest.Bookmarks)
	})
	t.Run("a link with a confirmed handle, and no second source", func(t *testing.T) {
		t.Parallel()
		db := storetest.New(t, "sqlite")
		c := newHandleTest(t, db, link.TikTok, func(w *testSystem) []source.Source { return []source.Source{w.displayAPISource()} })
		c.newTenant(otherAccount(c.testSystem))
		db.Exec(t, "UPDATE fetch_targets SET handle = ?", c.sandbox.TikTokAccount())
		for range 3 {
			c.advanceAndFetch()
		}
		require.Equal(t, []string{"gone"}, storetest.Column[string](t, db, "SELECT state FROM fetch_targets"))
		require.EqualValues(t, 3, storetest.Column[int64](t, db, "SELECT attempts FROM fetch_targets")[0])
	})
}

func TestFallback_olderCountsDoNotReplaceNewerCountsOfAnotherSource(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		handle := w.sandbox.TikTokAccount()
		id := w.sandbox.World().Uploads(link.TikTok, handle, db.Clock.Now())[5]
		otherAccount := w.sandbox.World().Find(link.TikTok, sandbox.Normal)
		tracked := w.trackVideos("https://www.tiktok.com/@"+handle+"/video/"+id, "https://www.tiktok.com/@/video/"+otherAccount)
		stop := w.startCollectorWith(w.displayAPISource(), w.researchAPISource())
		w.waitForCounts(tracked)
		w.requireCounts(tracked[0], db.Clock.Now())
		v := w.requireCounts(tracked[1], db.Clock.Now().Add(-sandbox.ResearchLag))
		require.NotNil(t, v.Latest.Bookmarks)
		stop()

		// Start a collector that uses only the Research API. This API returns counts that are two days old, so
		// they are older than the stored counts of tracked[0].
		before := w.video(tracked[0])
		w.startCollectorWith(w.researchAPISource())
		db.Clock.Advance(26 * time.Hour)
		db.Exec(t, "UPDATE fetch_targets SET next_at = ?", store.InstantOf(db.Clock.Now()))
		w.waitForLog("no numbers stored for the target", "id="+id, "the answer is older than the stored numbers")
		require.Equal(t, before.Latest.Views, w.video(tracked[0]).Latest.Views)
		require.Equal(t, before.LatestUpdatedAt, w.video(tracked[0]).LatestUpdatedAt)
		w.waitUntil("the video of the other account must get the next day's counts", func() bool { return *w.video(tracked[1]).LatestUpdatedAt > *v.LatestUpdatedAt })
		db.Clock.Advance(52 * time.Hour) // advance by more than ResearchLag, so that the returned counts are newer than the stored counts
		w.waitUntil("the video of the authorized account must get newer counts", func() bool { return *w.video(tracked[0]).Latest.Views > *before.Latest.Views })
	})
}

// chainedSource is a source of TikTok videos. A test decides with which failure its calls end.
type chainedSource struct {
	name   string
	failed *source.Failure // the failure of each call; nil if the calls succeed
	calls  int
}

func (s *chainedSource) Name() string                            { return s.name }
func (*chainedSource) Timeout() time.Duration                    { return time.Minute }
func (*chainedSource) Concurrency() int                          { return 1 }
func (*chainedSource) Group(queue.Target) string                 { return "" }
func (*chainedSource) NeedsHandle(queue.Target) bool             { return false }
func (*chainedSource) OnlyAccounts() string                      { return "" }
func (*chainedSource) Address() string                           { return "" }
func (*chainedSource) Clock(context.Context) (time.Time, error)  { return time.Time{}, nil }
func (*chainedSource) Budgets() []source.Budget                  { return nil }
func (*chainedSource) Plan(batch []queue.Target) [][]source.Call { return [][]source.Call{{{}}} }
func (*chainedSource) Serves(t queue.Target) (int, bool) {
	return 1, t.Platform == link.TikTok && t.Kind == queue.KindVideo
}

func (s *chainedSource) Fetch(_ context.Context, batch []queue.Target, _ *source.CallBudget) ([]source.Result, error) {
	s.calls++
	if s.failed != nil {
		return nil, s.failed
	}
	return []source.Result{{Target: batch[0], Class: source.OK, Facts: &source.Facts{Views: new(int64(100))}}}, nil
}

// A target must not wait for a paused source while an earlier source works again.
func TestFallback_targetOfAPausedSourceReturnsToAnEarlierSource(t *testing.T) {
	t.Parallel()
	quotaSpent := source.Failure{Class: source.QuotaSpent, OfSource: true, Detail: "no credits"}
	for name, tt := range map[string]struct {
		firstFailure *source.Failure // the failure of the first source's call
		firstPause   time.Duration   // the length of the first source's pause at the beginning; 0 if it is not paused
		secondPause  time.Duration   // the length of the second source's pause at the beginning; 0 if it is not paused
		scheduled    bool            // true if the fetch is a scheduled one, for which no organisation waits
		back         time.Duration   // the time after which the target must have counts
		wantCalls    [2]int          // the calls of both sources until then
	}{
		"first source failed, second source is paused": {
			firstFailure: &source.Failure{Class: source.Temporary, Detail: "HTTP 500"}, secondPause: 30 * 24 * time.Hour, back: 10 * time.Second, wantCalls: [2]int{2, 0}},
		"first source failed, second source refuses the call": {
			firstFailure: &source.Failure{Class: source.Temporary, Detail: "HTTP 500"}, back: 10 * time.Second, wantCalls: [2]int{2, 1}},
		"first source is paused, second source is paused longer": {
			firstPause: 15 * time.Minute, secondPause: 30 * 24 * time.Hour, back: 20 * time.Minute, wantCalls: [2]int{1, 0}},
		"first source is paused for a week, second source is paused longer, scheduled fetch": {
			firstPause: 7 * 24 * time.Hour, secondPause: 30 * 24 * time.Hour, scheduled: true, back: 7*24*time.Hour + 10*time.Minute, wantCalls: [2]int{1, 0}},
		"first source is paused, second source is paused shorter": {
			firstPause: 7 * 24 * time.Hour, secondPause: 15 * time.Minute, back: 20 * time.Minute, wantCalls: [2]int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				w := newTestSystem(t, db)
				first, second := &chainedSource{name: "first", failed: tt.firstFailure}, &chainedSource{name: "second"}
				c, err := collector.New(collector.Options{Store: db.Store, Sources: []source.Source{first, second}, Now: db.Clock.Now, Logger: slog.New(slog.NewTextHandler(w.log, nil))})
				require.NoError(t, err)
				require.NoError(t, c.Start(t.Context()))
				tracked := w.trackVideos("https://www.tiktok.com/@some.body/video/7106594312292453675")
				start := db.Clock.Now()
				if tt.scheduled {
					db.Exec(t, "UPDATE fetch_targets SET lane = base_lane")
				}
				for sourceName, pause := range map[string]time.Duration{"first": tt.firstPause, "second": tt.secondPause} {
					if pause > 0 {
						require.NoError(t, db.PauseSource(t.Context(), queue.Pause{Source: sourceName, Class: string(source.RateLimited), Detail: "limited", BlockedUntil: store.InstantOf(start.Add(pause))}))
					}
				}
				if tt.secondPause == 0 {
					second.failed = &quotaSpent
				}
				claims := 0
				fetchUntil := func(end time.Time, step time.Duration) {
					for now := start; now.Before(end); now = now.Add(step) {
						db.Clock.Advance(now.Sub(db.Clock.Now()))
						for busy := true; busy; claims++ {
							busy, err = c.ClaimAndFetch(t.Context())
							require.NoError(t, err)
							require.Less(t, claims, 20000, "a paused target must not be claimed again and again")
						}
					}
				}
				fetchUntil(start.Add(time.Second), time.Second)
				require.Nil(t, w.video(tracked[0]).Latest.Views)
				require.LessOrEqual(t, claims, 4, "a paused target must not be claimed again and again")
				require.LessOrEqual(t, first.calls+second.calls, 2)
				first.failed = nil // the first source works again
				fetchUntil(start.Add(tt.back), min(time.Hour, max(time.Second, tt.back/100)))
				require.NotNil(t, w.video(tracked[0]).Latest.Views, w.log.String())
				require.Equal(t, tt.wantCalls[0], first.calls)
				require.Equal(t, tt.wantCalls[1], second.calls)
			})
		})
	}
}
