package sandbox

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store/link"
)

func TestYouTube_returnsVideosInFormatOfYouTubeAPI(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	item := func(c Category, part string) object {
		body := r.getYouTube(t, "videos", "part", part, "id", r.World().Find(link.YouTube, c)).decodeJSON(t)
		return valueAt(t, body, "items", 0).(object)
	}
	t.Run("counts as decimal strings", func(t *testing.T) {
		t.Parallel()
		statistics := valueAt(t, item(Normal, "statistics"), "statistics").(object)
		for _, name := range []string{"viewCount", "likeCount", "commentCount"} {
			require.Regexp(t, `^[1-9][0-9]*$`, statistics[name])
		}
		require.Equal(t, "0", statistics["favoriteCount"])
	})
	t.Run("a request for two parts", func(t *testing.T) {
		t.Parallel()
		require.Subset(t, []string{"kind", "etag", "id", "status"}, memberNames(item(Normal, "id,status")))
	})
	t.Run("a video with hidden likes", func(t *testing.T) {
		t.Parallel()
		require.NotContains(t, valueAt(t, item(HiddenLikes, "statistics"), "statistics"), "likeCount")
	})
	t.Run("a video with comments turned off", func(t *testing.T) {
		t.Parallel()
		require.NotContains(t, valueAt(t, item(CommentsOff, "statistics"), "statistics"), "commentCount")
	})
	t.Run("a live broadcast", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, "P0D", valueAt(t, item(Live, "contentDetails"), "contentDetails", "duration"))
		require.Equal(t, "live", valueAt(t, item(Live, "snippet"), "snippet", "liveBroadcastContent"))
	})
	t.Run("unavailable videos", func(t *testing.T) {
		t.Parallel()
		r := newTestServer(t)
		gone, private := r.World().Find(link.YouTube, BecomesDeleted), r.World().Find(link.YouTube, BecomesPrivate)
		list := func() []any {
			return r.getYouTube(t, "videos", "part", "id", "id", gone+",dQw4w9WgXcQ,"+private+",not-an-id,dQw4w9WgXcQ").decodeJSON(t)["items"].([]any)
		}
		require.Len(t, list(), 3)
		r.mustSend(t, http.MethodPut, "/_control/clock", `{"now":"2028-01-01T00:00:00Z"}`)
		require.Len(t, list(), 1)
		stats := r.getYouTube(t, "videos:batchGetStats", "part", "id", "id", gone+","+private).decodeJSON(t)
		require.Empty(t, stats["items"])
	})
	t.Run("batches of 50 and 51 ids", func(t *testing.T) {
		t.Parallel()
		var ids []string
		for i := range 51 {
			ids = append(ids, exampleID(link.YouTube, i))
		}
		require.NotEmpty(t, r.getYouTube(t, "videos", "part", "id", "id", strings.Join(ids[:50], ",")).decodeJSON(t)["items"])
		a := r.getYouTube(t, "videos", "part", "id", "id", strings.Join(ids, ","))
		require.Equal(t, http.StatusBadRequest, a.StatusCode)
		require.Equal(t, "invalidFilters", valueAt(t, a.decodeJSON(t), "error", "errors", 0, "reason"))
	})
}

func memberNames(o object) []string {
	var out []string
	for name := range o {
		out = append(out, name)
	}
	return out
}

func TestYouTube_refusesInvalidRequests(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	const key = "&key=" + YouTubeAPIKey
	for _, c := range []struct {
		name, path string
		status     int
		reason     string
	}{
		{"no key", "videos?part=id&id=dQw4w9WgXcQ", 403, "forbidden"},
		{"a wrong key", "videos?part=id&id=dQw4w9WgXcQ&key=AIza", 400, "badRequest"},
		{"no part", "videos?id=dQw4w9WgXcQ" + key, 400, "missingRequiredParameter"},
		{"no filter", "videos?part=id" + key, 400, "missingRequiredParameter"},
		{"an empty filter", "videos?part=id&id=" + key, 400, "missingRequiredParameter"},
		{"two filters", "videos?part=id&id=dQw4w9WgXcQ&chart=mostPopular" + key, 400, "incompatibleParameters"},
		{"the parameter maxResults together with id", "videos?part=id&id=dQw4w9WgXcQ&maxResults=5" + key, 400, "incompatibleParameters"},
		{"an unknown part", "videos?part=statistic&id=dQw4w9WgXcQ" + key, 400, "unknownPart"},
		{"a part that only the owner may request", "videos?part=fileDetails&id=dQw4w9WgXcQ" + key, 403, "forbidden"},
		{`the part "status", which batchGetStats does not accept`, "videos:batchGetStats?part=status&id=dQw4w9WgXcQ" + key, 400, "unknownPart"},
		{"an unknown parameter", "videos?part=id&id=dQw4w9WgXcQ&ids=x" + key, 400, "unexpectedParameter"},
		{"a repeated parameter", "channels?part=id&forHandle=abc&forHandle=abd" + key, 400, "unexpectedParameter"},
		{`the filter parameter "chart", which the sandbox does not support`, "videos?part=id&chart=mostPopular" + key, 400, "videoChartNotFound"},
		{`the filter parameter "myRating" without a login`, "videos?part=id&myRating=like" + key, 401, "authError"},
		{`the filter parameter "mine" without a login`, "channels?part=id&mine=true" + key, 401, "authError"},
		{"a malformed query", "videos?part=id&id=%zz" + key, 400, "badRequest"},
		{"a malformed field mask", "videos?part=id&id=dQw4w9WgXcQ&fields=items(id" + key, 400, "invalidParameter"},
		{"an unsupported value of alt", "videos?part=id&id=dQw4w9WgXcQ&alt=media" + key, 400, "invalid"},
		{"a value of maxResults that is too large", "playlistItems?part=id&playlistId=UUX6OQ3DkcsbYNE6H8uQQuVA&maxResults=51" + key, 400, "invalidParameter"},
		{"an invalid page token", "playlistItems?part=id&playlistId=UUX6OQ3DkcsbYNE6H8uQQuVA&pageToken=CAUQAA" + key, 400, "invalidPageToken"},
		{"an unknown playlist", "playlistItems?part=id&playlistId=PL123" + key, 404, "playlistNotFound"},
		{"a private playlist", "playlistItems?part=id&playlistId=WL" + key, 403, "playlistItemsNotAccessible"},
		{"no playlist", "playlistItems?part=id" + key, 400, "missingRequiredParameter"},
		{"an unknown method", "search?part=id&q=x" + key, 404, "notFound"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := r.mustSend(t, http.MethodGet, "/youtube/youtube/v3/"+c.path, "")
			require.Equal(t, c.status, a.StatusCode, a.text)
			body := a.decodeJSON(t)
			require.Equal(t, json.Number(fmt.Sprint(c.status)), valueAt(t, body, "error", "code"))
			require.Equal(t, c.reason, valueAt(t, body, "error", "errors", 0, "reason"))
			require.NotEmpty(t, valueAt(t, body, "error", "message"))
			require.NotEmpty(t, valueAt(t, body, "error", "errors", 0, "domain"))
		})
	}
}

func TestYouTube_returnsChannelsOfEveryCategory(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	channel := func(c AccountCategory) object {
		return r.getYouTube(t, "channels", "part", "snippet,statistics", "forHandle", "@"+r.World().FindAccount(link.YouTube, c)).decodeJSON(t)
	}
	require.NotContains(t, valueAt(t, channel(AccountNoHandle), "items", 0, "snippet"), "customUrl")
	hidden := valueAt(t, channel(FollowersHidden), "items", 0, "statistics").(object)
	require.Equal(t, true, hidden["hiddenSubscriberCount"])
	require.NotContains(t, hidden, "subscriberCount")
	gone := channel(AccountGone)
	require.NotContains(t, gone, "items", "the answer of channels.list must have no items if no channel is found")
	require.Equal(t, json.Number("0"), valueAt(t, gone, "pageInfo", "totalResults"))
	for _, c := range []AccountCategory{AccountGone, AccountEmpty} {
		truth, _ := r.World().Account(link.YouTube, r.World().FindAccount(link.YouTube, c), testNow)
		require.Equal(t, http.StatusNotFound, r.getYouTube(t, "playlistItems", "part", "id", "playlistId", "UU"+truth.ID[2:]).StatusCode)
	}
	require.NotContains(t, r.getYouTube(t, "channels", "part", "id", "id", "UCtooshort").decodeJSON(t), "items")
}

func TestYouTube_pageTokensSelectNextAndPreviousPage(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	truth, _ := r.World().Account(link.YouTube, "pagetest", testNow)
	list := "UU" + truth.ID[2:]
	first := r.getYouTube(t, "playlistItems", "part", "contentDetails", "playlistId", list, "maxResults", "2").decodeJSON(t)
	require.NotContains(t, first, "prevPageToken")
	second := r.getYouTube(t, "playlistItems", "part", "contentDetails", "playlistId", list, "maxResults", "2", "pageToken", first["nextPageToken"].(string)).decodeJSON(t)
	require.NotEqual(t, first["items"], second["items"])
	back := r.getYouTube(t, "playlistItems", "part", "contentDetails", "playlistId", list, "maxResults", "2", "pageToken", second["prevPageToken"].(string)).decodeJSON(t)
	require.Equal(t, first["items"], back["items"])
	require.Len(t, r.getYouTube(t, "playlistItems", "part", "id", "playlistId", list).decodeJSON(t)["items"], 5, "the default size of a page must be 5")
}

func TestYouTube_listsNewUploadsAfterClockAdvances(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	truth, _ := r.World().Account(link.YouTube, "pagetest", testNow)
	total := func() string {
		return valueAt(t, r.getYouTube(t, "playlistItems", "part", "id", "playlistId", "UU"+truth.ID[2:]).decodeJSON(t), "pageInfo", "totalResults").(json.Number).String()
	}
	before := total()
	r.mustSend(t, http.MethodPut, "/_control/clock", `{"now":"2027-02-21T08:00:00Z"}`)
	require.NotEqual(t, before, total())
}

func TestYouTube_limitsQuotaUnitsPerBucketAndPacificDay(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 11, 21, 7, 59, 0, 0, time.UTC) // one minute before midnight in California
	s := New(Options{Now: func() time.Time { return clock }})
	handler := s.Handler()
	request := func(method string) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/youtube/youtube/v3/"+method+"&key="+YouTubeAPIKey, nil))
		return w.Code
	}
	for range dailyQuota {
		request("videos?part=wrong") // a failed request also costs one quota unit
	}
	require.Equal(t, http.StatusForbidden, request("channels?part=id&forHandle=abc"))
	require.Equal(t, http.StatusOK, request("videos:batchGetStats?part=id&id=dQw4w9WgXcQ"))
	clock = clock.Add(time.Minute)
	require.Equal(t, http.StatusOK, request("channels?part=id&forHandle=abc"))
}

func TestYouTube_compressesResponseIfClientAcceptsGzip(t *testing.T) {
	t.Parallel()
	handler := New(Options{}).Handler()
	req := httptest.NewRequest(http.MethodGet, "/youtube/youtube/v3/videos?part=id&id=dQw4w9WgXcQ&key="+YouTubeAPIKey, nil)
	req.Header.Set("Accept-Encoding", "br, gzip;q=0.8")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, req)
	require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
	unzipped, err := gzip.NewReader(w.Body)
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(unzipped).Decode(&object{}))
	req.Header.Set("Accept-Encoding", "gzip;q=0")
	w = httptest.NewRecorder()
	handler.ServeHTTP(w, req)
	require.Empty(t, w.Header().Get("Content-Encoding"))
	require.True(t, json.Valid(w.Body.Bytes()))
}

func TestISODuration_formatsLengths(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int64]string{
		0: "P0D", 58: "PT58S", 951: "PT15M51S", 3600: "PT1H", day: "P1D", day + 2*3600 + 3: "P1DT2H3S", 60: "PT1M", 3*day + 61: "P3DT1M1S",
	} {
		require.Equal(t, want, isoDuration(seconds))
	}
}

func TestReadPageToken_acceptsOnlyGeneratedTokens(t *testing.T) {
	t.Parallel()
	require.Equal(t, "EAAaBlBUOkNESQ", pageToken(50, true), "the page token must equal the one that YouTube uses for the offset 50")
	rapid.Check(t, func(t *rapid.T) {
		offset, forward := rapid.IntRange(0, 5000).Draw(t, "offset"), rapid.Bool().Draw(t, "forward")
		gotOffset, gotForward, ok := readPageToken(pageToken(offset, forward))
		require.True(t, ok)
		require.Equal(t, offset, gotOffset)
		require.Equal(t, forward, gotForward)
	})
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.String().Draw(t, "token")
		if offset, forward, ok := readPageToken(token); ok {
			require.Equal(t, pageToken(offset, forward), token)
		}
	})
}

func TestFieldMask_selectsMembersOfResponse(t *testing.T) {
	t.Parallel()
	body := decodeJSON([]byte(`{"kind":"k","items":[{"id":"a","s":{"v":1,"l":2}},{"id":"b","s":{"v":3}}],"n":{"x":1}}`))
	for mask, want := range map[string]string{
		"kind":              `{"kind":"k"}`,
		"items/id":          `{"items":[{"id":"a"},{"id":"b"}]}`,
		"items(id,s/v),n":   `{"items":[{"id":"a","s":{"v":1}},{"id":"b","s":{"v":3}}],"n":{"x":1}}`,
		"items(s(l))":       `{"items":[{"s":{"l":2}},{"s":{}}]}`,
		"*":                 `{"kind":"k","items":[{"id":"a","s":{"v":1,"l":2}},{"id":"b","s":{"v":3}}],"n":{"x":1}}`,
		"items/s/v, kind":   `{"kind":"k","items":[{"s":{"v":1}},{"s":{"v":3}}]}`,
		"items(id),items/s": `{"items":[{"id":"a","s":{"v":1,"l":2}},{"id":"b","s":{"v":3}}]}`,
	} {
		f, err := parseFields(mask)
		require.NoError(t, err, mask)
		got, err := json.Marshal(f.selectFrom(body))
		require.NoError(t, err)
		require.JSONEq(t, want, string(got), mask)
	}
	for _, mask := range []string{"", ",", "a,", "a(", "a(b", "a()", "a)b", "a/", "a//b", "(a)"} {
		_, err := parseFields(mask)
		require.Error(t, err, mask)
	}
}
