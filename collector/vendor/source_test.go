package vendor_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// recorder is a server that returns the same text for every request and writes the requests to a channel.
type recorder struct {
	base     string
	requests chan string
}

func startRecorder(t *testing.T, text string) recorder {
	t.Helper()
	r := recorder{requests: make(chan string, 16)}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		sent, _ := io.ReadAll(req.Body)
		r.requests <- fmt.Sprintf("%s %s [%s %s] %s", req.Method, req.RequestURI, req.Header.Get("Authorization"), req.Header.Get("X-Api-Key"), sent)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(web.Close)
	r.base = web.URL
	return r
}

func TestSource_sendsVideoRequestsInFormatOfEachVendor(t *testing.T) {
	t.Parallel()
	const key = "s3cret%2BKey%2F42"
	batch := []queue.Target{tiktokTarget(pancakes, "mira.cooks"), tiktokTarget(train, ""), tiktokTarget(pancakes, "mira.cooks")}
	for name, tt := range map[string]struct {
		batch []queue.Target
		want  string
	}{
		"ensembledata": {batch, "GET /tt/post/multi-info?ids=7382991827364555321%3B7561000000000000001&token=" + key + " [ ] "},
		"scrapecreators": {
			batch[:1],
			"GET /v2/tiktok/video?url=https%3A%2F%2Fwww.tiktok.com%2F%40mira.cooks%2Fvideo%2F7382991827364555321 [ " + sourcetest.Credential + "] ",
		},
		"apify": {
			batch,
			"POST /acts/clockworks~tiktok-scraper/runs?timeout=540 [Bearer " + sourcetest.Credential + " ] " +
				`{"postURLs":["https://www.tiktok.com/@mira.cooks/video/7382991827364555321","https://www.tiktok.com/@/video/7561000000000000001"],` +
				`"resultsPerPage":1,"shouldDownloadCovers":false,"shouldDownloadSlideshowImages":false,"shouldDownloadSubtitles":false,"shouldDownloadVideos":false}`,
		},
		"testdata/newcomer/vendor.json": {
			batch,
			"POST /posts/lookup?fields=all&n=7382991827364555321%7C7561000000000000001 [Bearer " + sourcetest.Credential + " ] " +
				`{"by":"@mira.cooks|@","limit":9007199254740993,"posts":[{"ids":["7382991827364555321","7561000000000000001"]},` +
				`"https://www.tiktok.com/@mira.cooks/video/7382991827364555321","https://www.tiktok.com/@/video/7561000000000000001"]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := startRecorder(t, "{}")
			s := newSource(t, name, web.base, nil)
			_, _ = s.Fetch(t.Context(), tt.batch, source.NewCallBudget(s.Plan(tt.batch)[0]))
			require.Equal(t, tt.want, <-web.requests)
			require.Empty(t, web.requests)
		})
	}
	t.Run("requests an Instagram post by shortcode", func(t *testing.T) {
		t.Parallel()
		web := startRecorder(t, testdataText(t, "ensembledata_instagram/ok"))
		s := newSource(t, "ensembledata", web.base+"/apis/", nil)
		results, err := s.Fetch(t.Context(), []queue.Target{instagramTarget(reel), instagramTarget(reel)}, source.NewCallBudget(nil))
		require.NoError(t, err)
		require.Equal(t, "GET /apis/instagram/post/details?code=DHtWpRvMBiw&n_comments_to_fetch=0&token="+key+" [ ] ", <-web.requests)
		require.Empty(t, web.requests, "one video must cause one call")
		require.Equal(t, results[0], results[1])
		require.NotSame(t, results[0].Facts, results[1].Facts)
	})
}

func TestSource_fetchesVideosFromAVendorThatTheOperatorDescribed(t *testing.T) {
	t.Parallel()
	web := startRecorder(t, testdataText(t, "newcomer/ok"))
	s := newSource(t, "testdata/newcomer/vendor.json", web.base, nil)
	require.Equal(t, "vendor:newcomer", s.Name())
	batch := []queue.Target{tiktokTarget(train, "rails_rain"), tiktokTarget(pancakes, "mira.cooks"), tiktokTarget("7000000000000000000", "")}
	size, ok := s.Serves(batch[0])
	require.True(t, ok)
	require.Equal(t, 3, size)

	results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
	require.NoError(t, err)
	require.Equal(t, &source.Facts{
		Views: new(int64(1482337)), Likes: new(int64(90211)), Comments: new(int64(1204)), Shares: new(int64(877)), Bookmarks: new(int64(4310)),
		Title: new("pancakes"), Username: new("mira.cooks"), AccountID: new("6801234567890123456"), AccountName: new("Mira"),
		UploadedAt: new(time.Date(2024, 6, 21, 8, 53, 20, 0, time.UTC)), LengthSeconds: new(58.0),
		SongName: new("Sunny Side"), IsAd: new(true), // SongLink must be nil, because the vendor returned a javascript: link
	}, results[1].Facts)
	require.Equal(t, source.OK, results[0].Class)
	require.Equal(t, source.Gone, results[2].Class)

	require.Equal(t, [][]source.Call{{{Budget: "per minute", Units: 1}, {Budget: "per day", Units: 1}}}, s.Plan(batch))
	budgets := s.Budgets()
	require.Equal(t, int64(60), budgets[0].Limit)
	id, ends := budgets[0].Window(sourcetest.Now)
	require.Equal(t, "2026-11-21T15:30Z", id)
	require.Equal(t, sourcetest.Now.Add(time.Minute), ends)
	id, ends = budgets[1].Window(sourcetest.Now)
	require.Equal(t, "2026-11-21", id)
	require.Equal(t, time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), ends)
}

func TestSource_servesOnlyTargetsThatACallCanRequest(t *testing.T) {
	t.Parallel()
	ensemble := newSource(t, "ensembledata", "", nil)
	creators := newSource(t, "scrapecreators", "", nil)
	require.Equal(t, []source.Budget{{Name: "calls"}}, removeWindows(ensemble.Budgets()))

	size, ok := ensemble.Serves(tiktokTarget(pancakes, ""))
	require.True(t, ok)
	require.Equal(t, 50, size)
	size, ok = ensemble.Serves(instagramTarget(reel))
	require.True(t, ok)
	require.Equal(t, 1, size)
	_, ok = ensemble.Serves(queue.Target{Platform: link.TikTok, Kind: queue.KindVideo})
	require.True(t, ok, "a target without an id stands for all targets of its kind, so it must be served")

	account, noLink := tiktokTarget(pancakes, ""), tiktokTarget(pancakes, "")
	account.Kind, noLink.Link = queue.KindAccount, ""
	for _, bad := range []queue.Target{
		account, tiktokTarget("1;2", ""), tiktokTarget("1 2", ""), tiktokTarget(strings.Repeat("1", 200), ""),
		{Platform: link.YouTube, Kind: queue.KindVideo, ExternalID: "kJ4_q-Zx9W0"},
	} {
		_, ok := ensemble.Serves(bad)
		require.False(t, ok, "%+v", bad)
	}
	_, ok = creators.Serves(noLink)
	require.False(t, ok, "the vendor's call must not be used for a target without a link")

	web := startRecorder(t, "{}")
	results, err := newSource(t, "scrapecreators", web.base, nil).Fetch(t.Context(), []queue.Target{noLink, account, {}}, source.NewCallBudget(nil))
	require.NoError(t, err)
	for _, r := range results {
		require.Equal(t, source.Unsupported, r.Class)
	}
	require.Empty(t, web.requests)
}

func removeWindows(budgets []source.Budget) []source.Budget {
	for i := range budgets {
		budgets[i].Window = nil
	}
	return budgets
}

func TestSource_reducesBatchSizeAfterVendorRefusesBatch(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[time.Time]
	now.Store(&sourcetest.Now)
	for name, refusal := range map[string]struct {
		status int
		single source.Class
	}{
		"batch with too many targets":  {464, source.BadRequest},
		"batch with an invalid target": {462, source.Unsupported},
		"batch with a missing target":  {404, source.Gone},
		"batch with a private target":  {472, source.Private},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(refusal.status)
				_, _ = io.WriteString(w, `{"detail":"no"}`)
			}))
			defer web.Close()
			config, err := vendor.Load("ensembledata")
			require.NoError(t, err)
			client := fetch.New(fetch.Options{})
			defer client.Close()
			clock := sourcetest.Now
			s, err := vendor.New(config, vendor.Options{BaseURL: web.URL, Key: "k", Client: client, Now: func() time.Time { return clock }})
			require.NoError(t, err)

			batch := make([]queue.Target, 50)
			for i := range batch {
				batch[i] = tiktokTarget(fmt.Sprintf("73829918273645553%02d", i), "")
			}
			var f *source.Failure
			for _, want := range []int{25, 12, 6, 3, 1} {
				_, err := s.Fetch(t.Context(), batch, source.NewCallBudget(nil))
				require.ErrorAs(t, err, &f)
				require.Equal(t, source.Temporary, f.Class)
				require.False(t, f.OfSource, "OfSource must be false, because a target may be the cause of the failure")
				size, _ := s.Serves(batch[0])
				if refusal.single == source.BadRequest {
					require.Contains(t, f.Detail, fmt.Sprintf("%d targets are too many for one call; for now, a batch has at most %d targets", len(batch), want))
					require.Equal(t, want, size)
				} else {
					require.Contains(t, f.Detail, fmt.Sprintf("a call for %d targets was refused as %s", len(batch), refusal.single))
					require.Equal(t, 50, size, "one bad target must not reduce the batch size")
				}
				batch = batch[:want]
			}
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(nil))
			if refusal.single == source.BadRequest {
				require.ErrorAs(t, err, &f)
				require.Equal(t, source.BadRequest, f.Class)
			} else {
				require.NoError(t, err)
				require.Equal(t, refusal.single, results[0].Class)
			}
			clock = clock.Add(15 * time.Minute)
			size, _ := s.Serves(batch[0])
			require.Equal(t, 50, size, "the full batch size must be used again after smallBatchTime")
		})
	}
}

func TestSource_splitsBatchIntoSeveralCalls(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	var status atomic.Int32
	status.Store(http.StatusOK)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 1 {
			w.WriteHeader(int(status.Load()))
		}
		_, _ = fmt.Fprintf(w, `{"data":{"shortcode":%q,"video_play_count":5}}`, r.URL.Query().Get("code"))
	}))
	defer web.Close()
	s := newSource(t, "ensembledata", web.URL, nil)
	batch := []queue.Target{instagramTarget("AAAAAAAAAAA"), instagramTarget("BBBBBBBBBBB"), instagramTarget("CCCCCCCCCCC")}
	plan := s.Plan(batch)[0]
	require.Equal(t, []source.Call{{Budget: "calls", Units: 3}}, plan)
	results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(plan))
	require.NoError(t, err)
	for _, r := range results {
		require.Equal(t, source.OK, r.Class)
	}
	require.Equal(t, int32(3), calls.Swap(0))

	status.Store(http.StatusTooManyRequests)
	results, err = s.Fetch(t.Context(), batch, source.NewCallBudget(plan))
	require.NoError(t, err)
	require.Equal(t, source.OK, results[0].Class)
	for _, r := range results[1:] {
		require.Equal(t, source.Temporary, r.Class)
		require.Contains(t, r.Detail, "a call of the batch failed: rate_limited")
	}
	require.Equal(t, int32(2), calls.Load(), "Fetch must not make another call after a failure")
}

func TestSource_usesConcurrencyAndTimeoutOfDescription(t *testing.T) {
	t.Parallel()
	config, err := vendor.Load("ensembledata")
	require.NoError(t, err)
	client := fetch.New(fetch.Options{Timeout: 20 * time.Second})
	defer client.Close()
	options := vendor.Options{Key: "k", Client: client, Now: time.Now}
	config.Concurrency = 3
	s, err := vendor.New(config, options)
	require.NoError(t, err)
	require.Equal(t, 3, s.Concurrency())
	require.Equal(t, time.Minute, s.Timeout())

	config.Concurrency, config.Timeout = 0, 0
	s, err = vendor.New(config, options)
	require.NoError(t, err)
	require.Equal(t, 4, s.Concurrency(), "the default concurrency must be 4")
	require.Equal(t, 20*time.Second, s.Timeout(), "the default timeout must be the timeout of the client")
}

func TestSource_returnsErrorOfCancelledContext(t *testing.T) {
	t.Parallel()
	web := startRecorder(t, "{}")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newSource(t, "ensembledata", web.base, nil).Fetch(ctx, []queue.Target{tiktokTarget(train, "")}, source.NewCallBudget(nil))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, web.requests, "Fetch must not make a call")
}

func TestNew_refusesInvalidOptions(t *testing.T) {
	t.Parallel()
	config, err := vendor.Load("apify")
	require.NoError(t, err)
	_, err = vendor.New(config, vendor.Options{})
	require.EqualError(t, err, "vendor: the key of apify is missing")
	_, err = vendor.New(config, vendor.Options{Key: "k3y"})
	require.EqualError(t, err, "vendor: the options \"Client\" and \"Now\" are required")
	_, err = vendor.New(config, vendor.Options{Key: "k3y", BaseURL: "vendor.example/?x=k3y", Client: fetch.New(fetch.Options{}), Now: time.Now})
	require.EqualError(t, err, `vendor: apify: the base address must be an http or https address without credentials, query and fragment, not "vendor.example/?x=REDACTED"`)
}

func TestFormsOfFetchableTargets_includesTargetsOfAllVendorCalls(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"apify", "ensembledata", "sandbox", "scrapecreators"} {
		config, err := vendor.Load(name)
		require.NoError(t, err)
		forms := source.FormsOfFetchableTargets([]source.Source{newSource(t, name, "", nil)})
		for _, c := range config.Calls {
			require.Contains(t, forms, queue.Form{Platform: c.Platform, Kind: c.Kind, ByHandle: true}, "the vendor %s can fetch targets with the platform %s and the kind %s, so FormsOfFetchableTargets must return a form for them", name, c.Platform, c.Kind)
		}
	}
}
