package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/store/link"
)

// writeCounter is a strings.Builder that also counts the calls of Write and WriteString.
type writeCounter struct {
	strings.Builder
	writes int
}

func (w *writeCounter) Write(p []byte) (int, error) {
	w.writes++
	return w.Builder.Write(p)
}

func (w *writeCounter) WriteString(text string) (int, error) { return w.Write([]byte(text)) }

func TestWriteSettings_writesAllLinesInOneCall(t *testing.T) {
	t.Parallel()
	box := New(Options{})
	var w writeCounter
	require.NoError(t, box.WriteSettings(&w, "http://127.0.0.1:9090"))
	require.Equal(t, 1, w.writes)
	written := map[string]string{}
	for line := range strings.Lines(w.String()) {
		name, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		require.True(t, found, line)
		written[name] = value
	}
	require.Equal(t, box.Settings("http://127.0.0.1:9090"), written)
}

func TestSettings_configureEverySource(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{
		"REELTALLY_SANDBOX":                  "true",
		"REELTALLY_YOUTUBE_BASE_URL":         "http://127.0.0.1:9090/youtube/",
		"REELTALLY_YOUTUBE_API_KEY":          "sandbox-youtube-key",
		"REELTALLY_TIKTOK_BASE_URL":          "http://127.0.0.1:9090/tiktok/",
		"REELTALLY_TIKTOK_RESEARCH_BASE_URL": "http://127.0.0.1:9090/tiktok/",
		"REELTALLY_TIKTOK_CLIENT_KEY":        "sandbox-tiktok-key",
		"REELTALLY_TIKTOK_CLIENT_SECRET":     "sandbox-tiktok-secret",
		"REELTALLY_TIKTOK_REFRESH_TOKEN":     "rft.sandbox-tiktok-login",
		"REELTALLY_INSTAGRAM_BASE_URL":       "http://127.0.0.1:9090/instagram/v25.0/",
		"REELTALLY_INSTAGRAM_ACCESS_TOKEN":   "sandbox-instagram-token",
		"REELTALLY_INSTAGRAM_APP_SECRET":     "sandbox-meta-app-secret",
		"REELTALLY_INSTAGRAM_ACCOUNT_ID":     "17841400001000000",
		"REELTALLY_FACEBOOK_BASE_URL":        "http://127.0.0.1:9090/facebook/v25.0/",
		"REELTALLY_FACEBOOK_ACCESS_TOKEN":    "sandbox-facebook-token",
		"REELTALLY_FACEBOOK_APP_SECRET":      "sandbox-meta-app-secret",
		"REELTALLY_FACEBOOK_PAGE_ID":         "100016384004101",
		"REELTALLY_VENDOR":                   "sandbox",
		"REELTALLY_VENDOR_BASE_URL":          "http://127.0.0.1:9090/vendor",
		"REELTALLY_VENDOR_KEY":               "sandbox-vendor-key",
		"REELTALLY_SHORTLINK_BASE_URL":       "http://127.0.0.1:9090/shortlinks",
		"REELTALLY_THUMBNAIL_BASE_URL":       "http://127.0.0.1:9090/thumbnails",
	}, New(Options{}).Settings("http://127.0.0.1:9090/"))
}

func TestHandler_setsSandboxHeader(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	for _, path := range []string{"/", "/nothing", "/youtube/", "/instagram/", "/facebook/", "/vendor/", "/shortlinks/", "/_control/", "/_control/clock"} {
		r.mustSend(t, http.MethodGet, path, "") // r.mustSend fails the test if the response lacks the header of the sandbox
	}
	require.Equal(t, http.StatusNotFound, r.mustSend(t, http.MethodGet, "/nothing", "").StatusCode)
}

func TestHandler_answersAnyRequestWithoutServerError(t *testing.T) {
	t.Parallel()
	s := New(Options{Now: func() time.Time { return testNow }})
	handler := s.Handler()
	segment := rapid.SampledFrom([]string{
		"youtube", "v3", "videos", "videos:batchGetStats", "channels", "playlistItems", "vendor", "tt", "instagram", "facebook", "post", "info", "multi-info", "user", "posts",
		"reels", "details", "v1", "v2", "tiktok", "video", "profile", "acts", "clockworks~tiktok-scraper", "run-sync-get-dataset-items", "runs", "actor-runs", "dataset", "items", "shortlinks", "vm.tiktok.com",
		"fb.watch", "www.instagram.com", "share", "t", "ZMabc1234", "_control", "faults", "clock", "account", "..", "", "%00", "é",
	})
	value := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"1", "-1", "99999999999999999999", "id,snippet", "dQw4w9WgXcQ", scoutVideo, "https://vm.tiktok.com/ZMabc1234/", "UUX6OQ3DkcsbYNE6H8uQQuVA", "nasa~1", "items(id", "2026-01-01T00:00:00Z", "tiktok",
	}))
	rapid.Check(t, func(t *rapid.T) {
		values := url.Values{"key": {YouTubeAPIKey}, "token": {VendorKey}}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{
			"part", "id", "ids", "url", "username", "handle", "depth", "user_id", "start_cursor", "code", "fields", "forHandle", "playlistId", "pageToken", "maxResults", "platform", "category", "at", "source", "cursor",
		}), 0, 5).Draw(t, "names") {
			values.Add(name, value.Draw(t, name))
		}
		method := rapid.SampledFrom([]string{"GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE"}).Draw(t, "method")
		req := httptest.NewRequest(method, "/", strings.NewReader(value.Draw(t, "body")))
		req.URL.Path = "/" + strings.Join(rapid.SliceOfN(segment, 0, 6).Draw(t, "path"), "/")
		req.URL.RawQuery = values.Encode()
		req.Header.Set("x-api-key", VendorKey)
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		require.Equal(t, "true", w.Header().Get(reeltally.SandboxHeader))
		require.Less(t, w.Code, 500, "%s %s", method, req.URL)
	})
}

func TestControl_refusesInvalidFaults(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	for body, allowed := range map[string]string{
		``:                                     "fault",
		`[]`:                                   "fault",
		`{"fault":"slow","extra":1}`:           "extra",
		`{"fault":"slow"}{}`:                   "after",
		`{"source":"youtube"}`:                 "rate_limited",
		`{"source":"vimeo","fault":"slow"}`:    "instagram",
		`{"fault":"meteor"}`:                   "hostile",
		`{"fault":"slow","count":-1}`:          "count",
		`{"fault":"slow","count":"1"}`:         "count",
		`{"fault":"slow","retry_after":-1}`:    "retry_after",
		`{"fault":"slow","retry_after":90000}`: "86400",
	} {
		a := r.mustSend(t, http.MethodPut, "/_control/faults", body)
		require.Equal(t, http.StatusBadRequest, a.StatusCode, body)
		require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
		require.Contains(t, a.decodeJSON(t)["detail"], allowed)
	}
	require.Equal(t, http.StatusBadRequest, r.mustSend(t, http.MethodDelete, "/_control/faults?source=vimeo", "").StatusCode)
	a := r.mustSend(t, http.MethodPost, "/_control/faults", "")
	require.Equal(t, http.StatusMethodNotAllowed, a.StatusCode)
	require.Equal(t, "DELETE, GET, PUT", a.Header.Get("Allow"))
}

func TestControl_appliesMostSpecificFault(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	tiktok := func() int { return r.getEnsembleData(t, "tt/user/info", "username", "zachking").StatusCode }
	instagram := func() int { return r.getEnsembleData(t, "instagram/user/info", "username", "nike").StatusCode }
	youtube := func() int { return r.getYouTube(t, "videos", "part", "id", "id", "dQw4w9WgXcQ").StatusCode }
	require.Equal(t, []int{200, 200, 200}, []int{tiktok(), instagram(), youtube()})
	r.setFault(t, `{"source":"","fault":"rate_limited"}`)
	r.setFault(t, `{"source":"vendor","fault":"server_error"}`)
	r.setFault(t, `{"source":"tiktok","fault":"quota_spent","count":2}`)
	require.Equal(t, []int{495, 500, 429}, []int{tiktok(), instagram(), youtube()})
	list := r.mustSend(t, http.MethodGet, "/_control/faults", "").decodeJSON(t)["faults"].([]any)
	require.Len(t, list, 3)
	require.Equal(t, object{"source": "tiktok", "fault": "quota_spent", "count": json.Number("2"), "retry_after": nil, "used": json.Number("1")}, list[1])
	require.Equal(t, 495, tiktok())
	require.Equal(t, 500, tiktok(), "after the last call with the first fault, the next fault must apply")
	require.Equal(t, http.StatusNoContent, r.mustSend(t, http.MethodDelete, "/_control/faults?source=vendor", "").StatusCode)
	require.Equal(t, []int{429, 429}, []int{tiktok(), instagram()})
	require.Equal(t, http.StatusNoContent, r.mustSend(t, http.MethodDelete, "/_control/faults", "").StatusCode)
	require.Equal(t, []int{200, 200, 200}, []int{tiktok(), instagram(), youtube()})
}

func TestControl_countsCallsToEachSource(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	read := func(source, member string) any {
		return valueAt(t, r.mustSend(t, http.MethodGet, "/_control/calls", "").decodeJSON(t), source, member)
	}
	require.Equal(t, json.Number("0"), read("facebook", "calls"))
	r.getYouTube(t, "videos", "part", "id", "id", "dQw4w9WgXcQ,jNQXAC9IVRw")
	r.getYouTube(t, "videos", "part", "id", "id", "dQw4w9WgXcQ")
	r.getYouTube(t, "channels", "part", "id", "forHandle", "@nasa")
	r.mustSend(t, http.MethodGet, "/youtube/youtube/v3/videos?part=id&id=x", "") // the call log counts refused calls as well
	r.getEnsembleData(t, "tt/post/multi-info", "ids", "7106594312292453675;7004270927972852994")
	r.getEnsembleData(t, "instagram/post/details", "code", "DOq6eV6iIgD")
	r.getScrapeCreators(t, "v1/youtube/video", "url", "https://youtu.be/dQw4w9WgXcQ")
	r.mustSend(t, http.MethodGet, "/shortlinks/vm.tiktok.com/ZMabc1234/", "")
	require.Equal(t, json.Number("4"), read("youtube", "calls"))
	require.Equal(t, json.Number("4"), read("youtube", "ids"))
	require.Equal(t, json.Number("2"), read("youtube", "max_batch"))
	require.Equal(t, object{"videos.list": json.Number("3"), "channels.list": json.Number("1")}, read("youtube", "by_method"))
	require.Equal(t, []any{"dQw4w9WgXcQ", "jNQXAC9IVRw"}, valueAt(t, read("youtube", "batches"), 0))
	require.Equal(t, json.Number("3"), read("vendor", "calls"))
	require.Equal(t, json.Number("4"), read("vendor", "ids"))
	require.Equal(t, json.Number("1"), read("tiktok", "calls"))
	require.Equal(t, json.Number("2"), read("tiktok", "ids"))
	require.Equal(t, json.Number("1"), read("instagram", "calls"))
	require.Equal(t, json.Number("1"), read("shortlinks", "calls"))
	require.Equal(t, http.StatusNoContent, r.mustSend(t, http.MethodDelete, "/_control/calls", "").StatusCode)
	require.Equal(t, json.Number("0"), read("youtube", "calls"))
}

func TestCallLog_keepsOnlyNewestBatches(t *testing.T) {
	t.Parallel()
	l := newCallLog()
	for range maxLoggedCalls + 5 {
		l.recordCall(&call{source: sourceYouTube, method: "videos.list", ids: []string{"a"}})
	}
	log := l.copyCalls()[sourceYouTube]
	require.Equal(t, maxLoggedCalls+5, log.Calls)
	require.Len(t, log.Batches, maxLoggedCalls)
	require.Equal(t, 5, log.BatchesDropped)
}

func TestControl_stopsClockAtGivenTime(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	views := func() any {
		return valueAt(t, r.getYouTube(t, "videos", "part", "statistics", "id", "dQw4w9WgXcQ").decodeJSON(t), "items", 0, "statistics", "viewCount")
	}
	before := views()
	a := r.mustSend(t, http.MethodPut, "/_control/clock", `{"now":"2027-06-01T12:00:00+02:00"}`)
	require.Equal(t, object{"now": "2027-06-01T10:00:00Z", "frozen": true}, a.decodeJSON(t))
	require.NotEqual(t, before, views())
	require.Equal(t, http.StatusNoContent, r.mustSend(t, http.MethodDelete, "/_control/clock", "").StatusCode)
	require.Equal(t, before, views())
	require.Equal(t, object{"now": "2026-11-21T08:00:00Z", "frozen": false}, r.mustSend(t, http.MethodGet, "/_control/clock", "").decodeJSON(t))
	for _, body := range []string{``, `{}`, `{"now":"yesterday"}`, `{"now":"2026-11-21"}`, `{"now":"1999-01-01T00:00:00Z"}`, `{"now":1}`, `{"then":"2027-06-01T12:00:00Z"}`} {
		require.Equal(t, http.StatusBadRequest, r.mustSend(t, http.MethodPut, "/_control/clock", body).StatusCode, body)
	}
}

func TestControl_returnsGeneratedDataOfVideosAndAccounts(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	get := func(query string) answer { return r.mustSend(t, http.MethodGet, "/_control/"+query, "") }
	truth, _ := r.World().Video(link.YouTube, "dQw4w9WgXcQ", testNow)
	want, err := json.Marshal(truth)
	require.NoError(t, err)
	require.JSONEq(t, string(want), get("video?platform=youtube&id=dQw4w9WgXcQ").text)
	require.Equal(t, json.Number(decimalText(truth.Views)), get("video?platform=youtube&id=dQw4w9WgXcQ").decodeJSON(t)["views"])
	require.Equal(t, "shop_ad", get("video?platform=tiktok&category=shop_ad").decodeJSON(t)["category"])
	require.Equal(t, "private", get("account?platform=tiktok&category=private").decodeJSON(t)["state"])
	account := get("account?platform=tiktok&handle=zachking").decodeJSON(t)
	require.Len(t, account["uploads"], len(r.World().Uploads(link.TikTok, "zachking", testNow)))
	require.Equal(t, "zachking", account["handle"])
	earlier := get("video?platform=youtube&id=dQw4w9WgXcQ&at=2026-10-02T00:00:00Z").decodeJSON(t)["views"]
	require.NotEqual(t, json.Number(decimalText(truth.Views)), earlier)
	for query, status := range map[string]int{
		"video?platform=vimeo&id=1": 400, "video?platform=youtube&id=short": 404, "video?platform=youtube&category=shop_ad": 400,
		"video?platform=youtube&id=dQw4w9WgXcQ&at=noon": 400, "account?platform=youtube&handle=x": 404, "account?platform=tiktok&category=no_handle": 400, "nothing": 404,
	} {
		require.Equal(t, status, get(query).StatusCode, query)
	}
}

func TestFaults_returnErrorsInFormatOfSource(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request                                                func(*testing.T, testServer) answer
		rateLimitedStatus, quotaSpentStatus, serverErrorStatus int
		message                                                []any // path of the member with the error text in the JSON body
	}{
		"youtube": {func(t *testing.T, r testServer) answer {
			return r.getYouTube(t, "videos", "part", "id", "id", "dQw4w9WgXcQ")
		},
			429, 403, 503, []any{"error", "message"}},
		"ensembledata": {func(t *testing.T, r testServer) answer {
			return r.getEnsembleData(t, "tt/post/info", "url", scoutVideo)
		}, 429, 495, 500, []any{"detail"}},
		"scrapecreators": {func(t *testing.T, r testServer) answer {
			return r.getScrapeCreators(t, "v2/tiktok/video", "url", scoutVideo)
		}, 429, 402, 500, []any{"message"}},
		"apify": {func(t *testing.T, r testServer) answer { return r.runApify(t, `{"postURLs":["`+scoutVideo+`"]}`) }, 429, 402, 500, []any{"error", "message"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTestServer(t)
			for fault, status := range map[string]int{"rate_limited": c.rateLimitedStatus, "quota_spent": c.quotaSpentStatus, "server_error": c.serverErrorStatus} {
				r.setFault(t, `{"source":"*","fault":"`+fault+`","count":1}`)
				a := c.request(t, r)
				require.Equal(t, status, a.StatusCode, fault)
				require.NotEmpty(t, valueAt(t, a.decodeJSON(t), c.message...))
				require.Empty(t, a.Header.Get("Retry-After"))
			}
			r.setFault(t, `{"source":"*","fault":"rate_limited","count":1,"retry_after":0}`)
			require.Equal(t, "0", c.request(t, r).Header.Get("Retry-After"))
			require.Less(t, c.request(t, r).StatusCode, 300)
		})
	}
}

func TestFaultTruncated_returnsHalfOfBody(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	r.setFault(t, `{"source":"youtube","fault":"truncated"}`)
	request := func() answer { return r.getYouTube(t, "videos", "part", "snippet", "id", "dQw4w9WgXcQ") }
	first := request()
	require.Equal(t, http.StatusOK, first.StatusCode)
	require.NoError(t, first.err)
	require.NotEmpty(t, first.text)
	require.False(t, json.Valid([]byte(first.text)))
	second := request()
	require.Equal(t, http.StatusOK, second.StatusCode)
	require.Error(t, second.err, "the second truncated answer must have the Content-Length of the whole body")
}

func TestFaultZeros_setsAllCountsToZero(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	r.setFault(t, `{"source":"*","fault":"zeros"}`)
	statistics := valueAt(t, r.getYouTube(t, "videos", "part", "statistics", "id", "dQw4w9WgXcQ").decodeJSON(t), "items", 0, "statistics").(object)
	require.Equal(t, object{"viewCount": "0", "likeCount": "0", "commentCount": "0", "favoriteCount": "0"}, statistics)
	aweme := valueAt(t, r.getEnsembleData(t, "tt/post/info", "url", scoutVideo).decodeJSON(t), "data", 0)
	for _, name := range []string{"play_count", "digg_count", "comment_count", "share_count", "collect_count"} {
		require.Equal(t, json.Number("0"), valueAt(t, aweme, "statistics", name))
	}
	require.Equal(t, "6718335390845095173", valueAt(t, aweme, "aweme_id"))
	require.NotEqual(t, json.Number("0"), valueAt(t, aweme, "video", "duration"))
	post := r.getEnsembleData(t, "instagram/post/details", "code", "DOq6eV6iIgD").decodeJSON(t)["data"]
	require.Equal(t, json.Number("0"), valueAt(t, post, "edge_media_preview_like", "count"))
	require.Equal(t, json.Number("0"), valueAt(t, post, "video_play_count"))
	hidden := valueAt(t, r.getYouTube(t, "videos", "part", "statistics", "id", r.World().Find(link.YouTube, HiddenLikes)).decodeJSON(t), "items", 0, "statistics")
	require.NotContains(t, hidden, "likeCount", "hidden counts must stay absent")
}

func TestFaults_slowAnswerEndsIfCallerCancels(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	r.setFault(t, `{"source":"youtube","fault":"slow","count":1,"retry_after":0}`)
	require.Equal(t, http.StatusOK, r.getYouTube(t, "videos", "part", "id", "id", "dQw4w9WgXcQ").StatusCode)
	r.setFault(t, `{"source":"youtube","fault":"slow","count":1}`)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan answer)
	go func() {
		done <- r.send(ctx, http.MethodGet, "/youtube/youtube/v3/videos?part=id&id=dQw4w9WgXcQ&key="+YouTubeAPIKey, "")
	}()
	require.Eventually(t, func() bool {
		r.Sandbox.faults.mu.Lock()
		defer r.Sandbox.faults.mu.Unlock()
		return len(r.Sandbox.faults.rules) == 0 // the fault has the count 1, so the sandbox deletes it as soon as the first call begins
	}, 10e9, 1e6)
	cancel()
	require.ErrorIs(t, (<-done).err, context.Canceled)
}

func TestFaultHostile_returnsEachVariantInTurn(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	r.setFault(t, `{"source":"*","fault":"hostile"}`)
	bodies := map[string]string{}
	for i, variant := range hostileVariants() {
		a := r.getEnsembleData(t, "tt/post/info", "url", scoutVideo)
		require.Equal(t, http.StatusOK, a.StatusCode, variant.name)
		require.NoError(t, a.err)
		bodies[variant.name] = a.text
		if variant.name == "HTML instead of JSON" {
			require.Contains(t, a.Header.Get("Content-Type"), "text/html")
		}
		if i == 0 {
			require.Contains(t, a.text, `"play_count":[`)
		}
	}
	require.Len(t, bodies, 13)
	require.Contains(t, bodies["numbers as strings and strings as numbers"], `"aweme_id":6718335390845095173`)
	require.Contains(t, bodies["ids beyond 2^53, as numbers"], `"aweme_id":6718335390845095173`)
	require.Greater(t, len(bodies["a body of ten megabytes"]), 10<<20)
	require.True(t, json.Valid([]byte(bodies["a body of ten megabytes"])))
	require.False(t, utf8.ValidString(bodies["NUL, lone surrogates and invalid UTF-8 in texts"]))
	require.Contains(t, bodies["NUL, lone surrogates and invalid UTF-8 in texts"], `\u0000`)
	require.NotContains(t, bodies["no ids"], "aweme_id")
	require.Contains(t, bodies["impossible numbers"], "1e400")
	require.Contains(t, bodies["null instead of every value"], `"play_count":null`)
	require.Empty(t, bodies["an empty body"])
	swapped := decodeJSON([]byte(bodies["views swapped with likes, and ids swapped with texts"]))
	views, _ := valueAt(t, swapped, "data", 0, "statistics", "play_count").(json.Number).Int64()
	likes, _ := valueAt(t, swapped, "data", 0, "statistics", "digg_count").(json.Number).Int64()
	require.Less(t, views, likes)
	require.Contains(t, r.getEnsembleData(t, "tt/post/info", "url", scoutVideo).text, `"play_count":[`, "after the last variant, the first variant must be returned again")
	r.mustSend(t, http.MethodDelete, "/_control/faults", "")
	require.True(t, json.Valid([]byte(r.getEnsembleData(t, "tt/post/info", "url", scoutVideo).text)))
}

func TestFaults_doNotApplyToCallsWithoutValidKey(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	r.setFault(t, `{"fault":"server_error"}`)
	require.Equal(t, 400, r.mustSend(t, http.MethodGet, "/youtube/youtube/v3/videos?part=id&id=dQw4w9WgXcQ&key=wrong", "").StatusCode)
	require.Equal(t, 491, r.mustSend(t, http.MethodGet, "/vendor/tt/user/info?username=a&token=wrong", "").StatusCode)
}

func TestFaults_applyToGivenNumberOfCalls(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := faults{rules: map[string]*rule{}}
		count := rapid.IntRange(1, 20).Draw(t, "count")
		f.setRule(rule{Source: "tiktok", Fault: faultZeros, Count: count})
		var counts []int
		for range count + 5 {
			if _, earlier, ok := f.takeRule("vendor", "tiktok", nil); ok {
				counts = append(counts, earlier)
			}
		}
		require.Len(t, counts, count)
		require.True(t, slices.IsSorted(counts))
		require.Equal(t, count-1, counts[count-1])
	})
}

func TestSandbox_servesConcurrentRequests(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	ctx := context.Background()
	const token = "&token=" + VendorKey
	failed := make(chan string, 40)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			var a answer
			switch i % 5 {
			case 0:
				a = r.send(ctx, http.MethodPut, "/_control/faults", `{"source":"instagram","fault":"zeros","count":3}`)
			case 1:
				a = r.send(ctx, http.MethodGet, "/_control/calls", "")
			case 2:
				a = r.send(ctx, http.MethodPut, "/_control/clock", `{"now":"2027-01-01T00:00:00Z"}`)
			case 3:
				a = r.send(ctx, http.MethodGet, "/vendor/instagram/user/info?username=user"+decimalText(int64(i))+token, "")
			default:
				a = r.send(ctx, http.MethodGet, "/vendor/tt/post/info?url=https://www.tiktok.com/@name"+decimalText(int64(i))+"/video/6718335390845095173"+token, "")
			}
			if a.err != nil || a.StatusCode != http.StatusOK {
				failed <- fmt.Sprint(i, a.err, a.text)
			}
		})
	}
	all.Wait()
	close(failed)
	for failure := range failed {
		t.Error(failure)
	}
}

func TestControl_renamesAccounts(t *testing.T) {
	t.Parallel()
	for _, p := range link.Platforms {
		for _, reuse := range []bool{false, true} {
			t.Run(fmt.Sprint(p, " reuse ", reuse), func(t *testing.T) {
				t.Parallel()
				r := newTestServer(t)
				w := r.World()
				old := w.Handle(p, 77)
				before, ok := w.Account(p, old, testNow)
				require.True(t, ok)
				uploads := w.Uploads(p, old, testNow)
				put := func(handle, to string) int {
					return r.mustSend(t, http.MethodPut, "/_control/account", fmt.Sprintf(`{"platform":%q,"handle":%q,"new_handle":%q,"reuse":%t}`, p, handle, to, reuse)).StatusCode
				}
				require.Equal(t, http.StatusOK, put(old, "Quite.Another"))

				after, ok := w.Account(p, "quite.another", testNow)
				require.True(t, ok)
				require.Equal(t, before.ID, after.ID)
				require.Equal(t, "quite.another", after.Handle)
				require.Equal(t, before.Followers, after.Followers)
				require.Equal(t, uploads, w.Uploads(p, "quite.another", testNow))
				v, ok := w.Video(p, uploads[0], testNow)
				require.True(t, ok)
				require.Equal(t, "quite.another", v.Account.Handle)
				require.Equal(t, reuse, w.AssignAuthor(p, uploads[0], old), "AssignAuthor must return true only if another account has the old handle")
				v, _ = w.Video(p, uploads[0], testNow)
				require.Equal(t, before.ID, v.Account.ID, "a link with the old handle must not change the author")
				byID, ok := w.accountByID(p, before.ID)
				require.True(t, ok)
				require.Equal(t, "quite.another", byID.handle)

				now, known := w.Account(p, old, testNow)
				require.Equal(t, reuse, known)
				if reuse {
					require.NotEqual(t, before.ID, now.ID)
					require.Equal(t, old, now.Handle)
					require.Equal(t, AccountNormal, now.Category)
					require.NotContains(t, w.Uploads(p, old, testNow), uploads[0])
				}

				require.Equal(t, http.StatusConflict, put(w.Handle(p, 78), "quite.another"))
				require.Equal(t, http.StatusConflict, put("quite.another", w.Handle(p, 79)))
				require.Equal(t, http.StatusBadRequest, put("quite.another", "not a valid handle"))
				require.Equal(t, http.StatusNotFound, put("not a valid handle", "somebody"))
				require.Equal(t, map[bool]int{true: http.StatusConflict, false: http.StatusOK}[reuse], put("quite.another", old), "a rename to the old handle must be refused only if another account has this handle")
			})
		}
	}
	require.Equal(t, http.StatusBadRequest, newTestServer(t).mustSend(t, http.MethodPut, "/_control/account", `{"platform":"vine","handle":"a","new_handle":"b"}`).StatusCode)
}

func TestFaultRefused_appliesOnlyToCallsWithGivenIDs(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	const link = "https://www.youtube.com/watch?v=aaaaaaaaaaA"
	r.setFault(t, `{"source":"vendor","fault":"refused","ids":["aaaaaaaaaaA"],"status":403,"body":{"success":false,"error":"forbidden","errorStatus":403,"message":"This video is age restricted"}}`)
	refused := r.getScrapeCreators(t, "v1/youtube/video", "url", link)
	require.Equal(t, http.StatusForbidden, refused.StatusCode)
	require.Equal(t, "This video is age restricted", valueAt(t, refused.decodeJSON(t), "message"))
	require.Equal(t, http.StatusOK, r.getScrapeCreators(t, "v1/youtube/video", "url", "https://www.youtube.com/watch?v=bbbbbbbbbbA").StatusCode)

	r.setFault(t, `{"source":"youtube","fault":"refused","ids":["aaaaaaaaaaA"],"status":400,"body":{"error":{"code":400}}}`)
	require.Equal(t, http.StatusBadRequest, r.getYouTube(t, "videos", "part", "id", "id", "bbbbbbbbbbA,aaaaaaaaaaA").StatusCode, "the whole batch must be refused")
	require.Equal(t, http.StatusOK, r.getYouTube(t, "videos", "part", "id", "id", "bbbbbbbbbbA").StatusCode)
	for _, bad := range []string{`{"fault":"refused"}`, `{"fault":"refused","ids":["a"],"status":200,"body":{}}`, `{"fault":"zeros","ids":["a"]}`} {
		require.Equal(t, http.StatusBadRequest, r.mustSend(t, http.MethodPut, "/_control/faults", bad).StatusCode, bad)
	}
}
