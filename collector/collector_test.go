package collector_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/thumbnail"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/collector/youtube"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// testSystem has what a test of the collector needs: a database, a sandbox (simulated platforms) behind an HTTP server, an organisation and
// a log.
type testSystem struct {
	t       *testing.T
	db      *storetest.DB
	sandbox *sandbox.Sandbox
	handler atomic.Pointer[http.Handler]
	url     string
	org     *store.Org
	log     *storetest.Log

	intervals  schedule.Intervals // Options.Intervals of the collectors that startCollector runs
	thumbnails *thumbnail.Fetcher // Options.Thumbnails of the collectors that startCollector runs
}

func newTestSystem(t *testing.T, db *storetest.DB) *testSystem {
	t.Helper()
	box := sandbox.New(sandbox.Options{Now: db.Clock.Now})
	w := &testSystem{t: t, db: db, sandbox: box, log: &storetest.Log{}}
	w.setHandler(box.Handler())
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { (*w.handler.Load()).ServeHTTP(rw, r) }))
	t.Cleanup(server.Close)
	o, err := db.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	w.url, w.org = server.URL, db.Org(o.ID)
	return w
}

func (w *testSystem) setHandler(h http.Handler) { w.handler.Store(&h) }

// newSources returns the sources of YouTube and the named vendors. The name "meta" adds the sources
// of Instagram and Facebook. All sources call the sandbox.
func (w *testSystem) newSources(vendors ...string) []source.Source {
	w.t.Helper()
	client := fetch.New(fetch.Options{Timeout: 5 * time.Second, Transport: noKeepAlive{}})
	yt, err := youtube.New(youtube.Options{BaseURL: w.url + "/youtube/", APIKey: sandbox.YouTubeAPIKey, Client: client, Now: w.db.Clock.Now})
	require.NoError(w.t, err)
	sources := []source.Source{yt}
	for _, name := range vendors {
		if name == "meta" {
			sources = append(sources, w.metaSources()...)
			continue
		}
		config, err := vendor.Load(name)
		require.NoError(w.t, err)
		v, err := vendor.New(config, vendor.Options{BaseURL: w.url + "/vendor", Key: sandbox.VendorKey, Client: client, Now: w.db.Clock.Now})
		require.NoError(w.t, err)
		sources = append(sources, v)
	}
	return sources
}

// noKeepAlive closes each connection after its call, so that no connection is open when a test ends.
type noKeepAlive struct{}

func (noKeepAlive) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Close = true
	return http.DefaultTransport.RoundTrip(r)
}

// startCollector runs a collector with the sources of YouTube and of the named vendors until the test ends.
func (w *testSystem) startCollector(vendors ...string) {
	w.t.Helper()
	c, err := collector.New(collector.Options{Store: w.db.Store, Sources: w.newSources(vendors...), Now: w.db.Clock.Now,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)), Poll: 20 * time.Millisecond, Intervals: w.intervals, Thumbnails: w.thumbnails})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		require.NoError(w.t, <-done)
	})
}

func (w *testSystem) trackVideos(links ...string) []store.Tracked {
	w.t.Helper()
	parsed := make([]link.Link, len(links))
	for i, l := range links {
		p, err := link.Parse(l)
		require.NoError(w.t, err)
		parsed[i] = p
	}
	out, err := w.org.Track(w.t.Context(), store.TrackRequest{Links: parsed, Immediate: len(parsed)})
	require.NoError(w.t, err)
	return out
}

func (w *testSystem) video(t store.Tracked) store.Video {
	w.t.Helper()
	v, err := w.org.Video(w.t.Context(), store.Ref{ID: t.ID})
	require.NoError(w.t, err)
	return v
}

// waitForCounts waits until all videos have counts and no target has a running attempt.
func (w *testSystem) waitForCounts(tracked []store.Tracked) {
	w.t.Helper()
	w.waitUntil("all videos must have counts", func() bool {
		for _, t := range tracked {
			if w.video(t).Latest.Views == nil {
				return false
			}
		}
		return true
	})
	w.waitUntil("all attempts must have ended", func() bool {
		return storetest.Column[int](w.t, w.db, `SELECT COUNT(*) FROM fetch_targets WHERE answers LIKE '%"running":true%'`)[0] == 0
	})
}

// waitUntil waits until isTrue returns true. If this takes longer than three minutes, the test fails with the given message.
func (w *testSystem) waitUntil(message string, isTrue func() bool) {
	w.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	tooLong := time.After(3 * time.Minute) // the timeout is long, because the machine can be busy
	for !isTrue() {
		select {
		case <-look.C:
		case <-tooLong:
			require.Fail(w.t, fmt.Sprintf("timeout: %s; log of the collector:\n%s", message, w.log.String()))
		}
	}
}

// waitForLog waits until a single line of the collector's log contains all given parts.
func (w *testSystem) waitForLog(parts ...string) {
	w.t.Helper()
	w.waitUntil("a line of the log must contain "+strings.Join(parts, " "), func() bool {
		for line := range strings.Lines(w.log.String()) {
			all := true
			for _, p := range parts {
				all = all && strings.Contains(line, p)
			}
			if all {
				return true
			}
		}
		return false
	})
}

// callControlInterface sends a request to the sandbox's control interface, which sets faults and reports the received calls.
func (w *testSystem) callControlInterface(method, path string, body any) *http.Response {
	w.t.Helper()
	content, err := json.Marshal(body)
	require.NoError(w.t, err)
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader(content))
	require.NoError(w.t, err)
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = answer.Body.Close() })
	require.Less(w.t, answer.StatusCode, 300, "%s %s", method, path)
	return answer
}

func TestCollector_storesCountsAndDetailsOfVideosOfAllPlatforms(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		ids := map[link.Platform]string{}
		for _, p := range link.Platforms {
			ids[p] = w.sandbox.World().Find(p, sandbox.Normal)
		}
		tracked := w.trackVideos("https://youtu.be/"+ids[link.YouTube], "https://www.tiktok.com/@/video/"+ids[link.TikTok],
			"https://www.instagram.com/reel/"+ids[link.Instagram]+"/", "https://www.facebook.com/reel/"+ids[link.Facebook])
		w.startCollector("sandbox")
		w.waitForCounts(tracked)
		for i, p := range []link.Platform{link.YouTube, link.TikTok, link.Instagram, link.Facebook} {
			v := w.video(tracked[i])
			correct, ok := w.sandbox.World().Video(p, ids[p], db.Clock.Now())
			require.True(t, ok)
			require.Equal(t, correct.Views, *v.Latest.Views, p)
			require.NotEmpty(t, v.Title, p)
			require.NotEmpty(t, v.Username, p)
			require.NotNil(t, v.UploadedAt, p)
			require.NotNil(t, v.VideoLength, p)
			require.NotNil(t, v.LinkedAccountID, p)
		}
	})
}

func TestCollector_storesThumbnailsOfVideosOfAllPlatforms(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		var err error
		w.thumbnails, err = thumbnail.New(thumbnail.Options{BaseURL: w.url + "/thumbnails"})
		require.NoError(t, err)
		t.Cleanup(w.thumbnails.Close)
		find := func(p link.Platform) string { return w.sandbox.World().Find(p, sandbox.Normal) }
		tracked := w.trackVideos("https://youtu.be/"+find(link.YouTube), "https://www.tiktok.com/@/video/"+find(link.TikTok),
			"https://www.instagram.com/reel/"+find(link.Instagram)+"/", "https://www.facebook.com/reel/"+find(link.Facebook))
		w.startCollector("sandbox")
		w.waitForCounts(tracked)
		for _, v := range tracked {
			v := w.video(v)
			truth, _ := w.sandbox.World().Video(v.Platform, v.ExternalID, db.Clock.Now())
			require.Equal(t, truth.ThumbnailURL(), *v.ThumbnailURL)
			require.Eventually(t, func() bool {
				image, err := db.ThumbnailImage(t.Context(), v.Platform, v.ExternalID)
				return err == nil && len(image) > 500
			}, 10*time.Second, 20*time.Millisecond, v.Platform)
		}
	})
}

// Requirements in docs/coverage.md: 11.8-09
func TestCollector_schedulesTheNextFetchAfterTheConfiguredInterval(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		var err error
		w.intervals, err = schedule.ParseIntervals(map[string]time.Duration{"premium": schedule.MaxInterval})
		require.NoError(t, err)
		var links []string
		for _, id := range w.sandbox.World().Uploads(link.YouTube, w.sandbox.World().FindAccount(link.YouTube, sandbox.AccountNormal), db.Clock.Now())[:12] {
			links = append(links, "https://youtu.be/"+id)
		}
		tracked := w.trackVideos(links...)
		w.startCollector()
		w.waitForCounts(tracked)
		later := 0
		for _, next := range storetest.Column[store.Instant](t, db, "SELECT next_at FROM fetch_targets WHERE kind = 'video'") {
			wait := next.Sub(store.InstantOf(db.Clock.Now()))
			// The next fetch is at the video's fixed time of the day, so it can be up to a day
			// later than the interval says.
			require.Less(t, wait, schedule.MaxInterval+24*time.Hour)
			if wait > 25*time.Hour {
				later++
			}
		}
		require.Greater(t, later, len(links)/2, "more than half of the videos must be due only after 25 hours; with the default interval, all would be due earlier")
	})
}

func TestCollector_keepsTheAuthorOfAVideoIfOnlyCountsAreRequested(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newTestSystem(t, db)
		tracked := w.trackVideos("https://www.tiktok.com/@a.real.person/video/7301234567890123456")
		w.startCollector("sandbox")
		w.waitForCounts(tracked)
		v := w.video(tracked[0])
		require.Equal(t, "a.real.person", v.Username)
		account := *v.LinkedAccountID

		// The test replaces the sandbox by a new one, which makes up another author for the video. On the next
		// day, the collector requests only counts, so the stored author must stay.
		w.sandbox = sandbox.New(sandbox.Options{Now: db.Clock.Now})
		first := *v.LatestUpdatedAt
		w.setHandler(w.sandbox.Handler())
		db.Clock.Advance(25 * time.Hour)
		w.waitUntil("the video must get the next day's counts", func() bool { return *w.video(tracked[0]).LatestUpdatedAt > first })
		v = w.video(tracked[0])
		require.Equal(t, "a.real.person", v.Username)
		require.Equal(t, account, *v.LinkedAccountID)
	})
}
