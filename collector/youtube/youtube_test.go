package youtube_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/collector/youtube"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	pancakes = "kJ4_q-Zx9W0"
	train    = "Tn8bVw2RfQ4"
)

func testdataText(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file + ".json")
	require.NoError(t, err)
	return string(text)
}

func videoTarget(id string, details bool) queue.Target {
	return queue.Target{
		Platform: link.YouTube, Kind: queue.KindVideo, ExternalID: id,
		Link: "https://www.youtube.com/watch?v=" + id, NeedDetails: details,
	}
}

func newSource(t testing.TB, base string, change func(*youtube.Options)) *youtube.Source {
	t.Helper()
	client := fetch.New(fetch.Options{Timeout: 10 * time.Second})
	t.Cleanup(client.Close)
	o := youtube.Options{
		BaseURL: base, APIKey: sourcetest.Credential, Client: client, Now: func() time.Time { return sourcetest.Now },
	}
	if change != nil {
		change(&o)
	}
	s, err := youtube.New(o)
	require.NoError(t, err)
	return s
}

func isVideosRequest(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/youtube/v3/videos")
}

func fileHandler(t testing.TB, status int, file string) http.Handler {
	text := testdataText(t, file)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	})
}

var midnight = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

func refusalAnswers(t *testing.T, budget string) map[sourcetest.Case]sourcetest.Answer {
	return map[sourcetest.Case]sourcetest.Answer{
		sourcetest.RateLimited: {Status: http.StatusForbidden, Body: testdataText(t, "rate_limited")},
		sourcetest.QuotaSpent:  {Status: http.StatusForbidden, Body: testdataText(t, "quota_spent"), RetryAt: midnight, Budget: budget},
		sourcetest.AuthFailed:  {Status: http.StatusBadRequest, Body: testdataText(t, "auth_failed")},
		sourcetest.ServerError: {Status: http.StatusServiceUnavailable, Body: testdataText(t, "server_error")},
	}
}

func newTestSource(t *testing.T, base string, client *fetch.Client) source.Source {
	return newSource(t, base, func(o *youtube.Options) { o.Client = client })
}

func TestSource_fetchesVideosWithDetails(t *testing.T) {
	t.Parallel()
	first := source.Facts{
		Views: new(int64(1482337)), Likes: new(int64(90211)), Comments: new(int64(1204)),
		Title:    new("Tiny kitchen, big pancakes 🥞"),
		Username: new("miracooks"), AccountID: new("UCk3mXo7Q2hJp0LwR9sVbT1A"), AccountName: new("Mira Cooks"),
		UploadedAt: new(time.Date(2026, 10, 3, 17, 4, 11, 0, time.UTC)), LengthSeconds: new(58.0),
		NotSafe: new(false), Private: new(false), HiddenStats: new(false), ThumbnailURL: new("https://i.ytimg.com/vi/kJ4_q-Zx9W0/default.jpg"),
	}
	second := source.Facts{
		Views: new(int64(0)), Title: new("Night train"),
		Username: new("UCz8RrW4eYtN1uXb6KqLcM2g"), AccountID: new("UCz8RrW4eYtN1uXb6KqLcM2g"), AccountName: new("Rails & Rain"),
		UploadedAt: new(time.Date(2025, 2, 1, 7, 59, 59, 0, time.UTC)), LengthSeconds: new(93603.0),
		NotSafe: new(false), Private: new(false), HiddenStats: new(true), ThumbnailURL: new("https://i.ytimg.com/vi/Tn8bVw2RfQ4/default.jpg"),
	}
	restricted := first
	restricted.NotSafe = new(true)
	bare := &source.Facts{Views: new(int64(5)), HiddenStats: new(true)}

	answers := refusalAnswers(t, youtube.BudgetCommon)
	ok := []source.Class{source.OK}
	maps.Copy(answers, map[sourcetest.Case]sourcetest.Answer{
		sourcetest.OK:          {Body: testdataText(t, "list/ok"), Classes: ok, Facts: []*source.Facts{&first, &second}},
		sourcetest.Bare:        {Body: testdataText(t, "list/bare"), Classes: ok, Facts: []*source.Facts{bare, bare}},
		sourcetest.Gone:        {Body: testdataText(t, "list/gone"), Classes: []source.Class{source.Gone, source.OK}},
		sourcetest.Private:     {Body: testdataText(t, "list/private"), Classes: []source.Class{source.Private, source.OK}},
		sourcetest.Restricted:  {Body: testdataText(t, "list/restricted"), Classes: ok, Facts: []*source.Facts{&restricted, &second}},
		sourcetest.WrongTypes:  {Body: testdataText(t, "list/wrong_types"), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.Strings:     {Body: testdataText(t, "list/strings"), Classes: ok},
		sourcetest.Big:         {Body: testdataText(t, "list/big"), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.Duplicates:  {Body: testdataText(t, "list/duplicates"), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.Foreign:     {Body: testdataText(t, "list/foreign"), Classes: ok},
		sourcetest.GoneForeign: {Body: testdataText(t, "list/strangers"), Classes: []source.Class{source.Temporary, source.OK}},
	})
	sourcetest.Run(t, sourcetest.Harness{
		New:     newTestSource,
		Targets: []queue.Target{videoTarget(pancakes, true), videoTarget(train, true)},
		IsMain:  isVideosRequest,
		Side:    fileHandler(t, http.StatusOK, "channels"),
		Answers: answers,
	})
}

func TestSource_fetchesCountsWithBatchGetStats(t *testing.T) {
	t.Parallel()
	first := source.Facts{
		Views: new(int64(1482337)), Likes: new(int64(90211)), Comments: new(int64(1204)),
		UploadedAt: new(time.Date(2026, 10, 3, 17, 4, 11, 0, time.UTC)), LengthSeconds: new(58.0), HiddenStats: new(false),
	}
	second := source.Facts{
		Views: new(int64(0)), UploadedAt: new(time.Date(2025, 2, 1, 7, 59, 59, 0, time.UTC)),
		LengthSeconds: new(93603.5), HiddenStats: new(true),
	}
	more := first
	more.Title, more.AccountName = new("Tiny kitchen, big pancakes 🥞"), new("Mira Cooks")
	more.AccountID, more.LengthSeconds = new("UCk3mXo7Q2hJp0LwR9sVbT1A"), new(58.25)
	bare := &source.Facts{Views: new(int64(5)), HiddenStats: new(true)}

	answers := refusalAnswers(t, youtube.BudgetStats)
	ok := []source.Class{source.OK}
	maps.Copy(answers, map[sourcetest.Case]sourcetest.Answer{
		sourcetest.OK:   {Body: testdataText(t, "stats/ok"), Classes: ok, Facts: []*source.Facts{&first, &second}},
		sourcetest.Bare: {Body: testdataText(t, "stats/bare"), Classes: ok, Facts: []*source.Facts{bare, bare}},
		sourcetest.Gone: {Body: testdataText(t, "stats/gone"), Classes: []source.Class{source.Temporary, source.OK}}, // the missing video gets the class Temporary, so that its next attempt calls videos.list
		// A private video is missing from the answer of batchGetStats.
		sourcetest.Private:     {Body: testdataText(t, "stats/gone"), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.Restricted:  {Body: testdataText(t, "stats/more"), Classes: ok, Facts: []*source.Facts{&more, &second}}, // this answer has members that YouTube does not send today, but may add
		sourcetest.WrongTypes:  {Body: testdataText(t, "stats/wrong_types"), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.Strings:     {Body: testdataText(t, "stats/strings"), Classes: ok},
		sourcetest.Big:         {Body: testdataText(t, "stats/big"), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.Duplicates:  {Body: testdataText(t, "stats/duplicates"), Classes: []source.Class{source.Temporary, source.OK}},
		sourcetest.Foreign:     {Body: testdataText(t, "stats/foreign"), Classes: ok},
		sourcetest.GoneForeign: {Body: testdataText(t, "stats/strangers"), Classes: []source.Class{source.Temporary, source.OK}},
	})
	sourcetest.Run(t, sourcetest.Harness{
		New:     newTestSource,
		Targets: []queue.Target{videoTarget(pancakes, false), videoTarget(train, false)},
		IsMain:  isVideosRequest,
		Answers: answers,
		// If batchGetStats is not enabled for a project, Google returns an HTML page with status 404.
		NotFoundClass: source.QuotaSpent,
	})
}

// server is a test server that records the requests. It answers a request with the handler for the API method.
type server struct {
	base string
	log  chan string
}

func startServer(t *testing.T, methods map[string]http.Handler) server {
	t.Helper()
	s := server{log: make(chan string, 64)}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.log <- r.Method + " " + r.RequestURI
		if h := methods[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(web.Close)
	s.base = web.URL
	return s
}

func (s server) calls() []string {
	var calls []string
	for len(s.log) > 0 {
		calls = append(calls, <-s.log)
	}
	return calls
}

func TestSource_sendsRequestsAsDocumented(t *testing.T) {
	t.Parallel()
	const key = "&key=s3cret%2BKey%2F42"
	web := startServer(t, map[string]http.Handler{
		"videos":               fileHandler(t, http.StatusOK, "list/ok"),
		"videos:batchGetStats": fileHandler(t, http.StatusOK, "stats/ok"),
		"channels":             fileHandler(t, http.StatusOK, "channels"),
	})
	batch := []queue.Target{videoTarget(pancakes, true), videoTarget(train, false), videoTarget(pancakes, false)}
	for name, base := range map[string]string{"": web.base, "/prefix": web.base + "/prefix/"} {
		s := newSource(t, base, nil)
		plans := s.Plan(batch)
		results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(plans[0]))
		require.NoError(t, err)
		require.Len(t, results, 3)
		require.Equal(t, results[0].Facts, results[2].Facts, "a video that the batch contains twice must get two results")
		require.NotSame(t, results[0].Facts, results[2].Facts)
		require.Equal(t, []string{
			"GET " + name + "/youtube/v3/videos?part=snippet,statistics,contentDetails,status&id=kJ4_q-Zx9W0,Tn8bVw2RfQ4" + key,
			"GET " + name + "/youtube/v3/channels?part=snippet,statistics,contentDetails&id=UCk3mXo7Q2hJp0LwR9sVbT1A,UCz8RrW4eYtN1uXb6KqLcM2g" + key,
		}, web.calls())

		_, err = s.Fetch(t.Context(), batch, source.NewCallBudget(plans[1]))
		require.NoError(t, err)
		require.Equal(t, []string{
			"GET " + name + "/youtube/v3/videos:batchGetStats?part=id,snippet,statistics,contentDetails&id=kJ4_q-Zx9W0,Tn8bVw2RfQ4" + key,
		}, web.calls())
	}
}

func TestSource_spendsNoUnitForHandlesThatAreCached(t *testing.T) {
	t.Parallel()
	web := startServer(t, map[string]http.Handler{"videos": fileHandler(t, http.StatusOK, "list/ok"), "channels": fileHandler(t, http.StatusOK, "channels")})
	batch := []queue.Target{videoTarget(pancakes, true), videoTarget(train, true)}
	s := newSource(t, web.base, nil)
	for _, units := range []int64{2, 1} {
		budget := source.NewCallBudget(s.Plan(batch)[0])
		_, err := s.Fetch(t.Context(), batch, budget)
		require.NoError(t, err)
		require.Len(t, web.calls(), int(units))
		require.Equal(t, []source.Call{{Budget: youtube.BudgetCommon, Units: units}}, budget.Spent())
	}
}

func TestSource_prefersVideosListIfDetailsAreNeeded(t *testing.T) {
	t.Parallel()
	s := newSource(t, "https://youtube.example", nil)
	list := func(units int64) []source.Call {
		return []source.Call{{Budget: youtube.BudgetCommon, Units: units}}
	}
	stats := []source.Call{{Budget: youtube.BudgetStats, Units: 1}}
	require.Equal(t, [][]source.Call{list(2), stats}, s.Plan([]queue.Target{videoTarget(train, false), videoTarget(pancakes, true)}))
	require.Equal(t, [][]source.Call{stats, list(1)}, s.Plan([]queue.Target{videoTarget(train, false)}))

	require.Equal(t, "youtube", s.Name())
	for _, b := range s.Budgets() {
		require.Equal(t, int64(10_000), b.Limit)
	}
	s = newSource(t, "https://youtube.example", func(o *youtube.Options) { o.CommonLimit, o.StatsLimit = 1_000_000, -1 })
	require.Equal(t, int64(1_000_000), s.Budgets()[0].Limit)
	require.Equal(t, int64(0), s.Budgets()[1].Limit)
}

func TestSource_countsQuotaPerPacificDay(t *testing.T) {
	t.Parallel()
	window := newSource(t, "https://youtube.example", nil).Budgets()[0].Window
	for now, want := range map[string][2]string{
		"2026-11-21T07:59:59Z": {"2026-11-20", "2026-11-21T08:00:00Z"},
		"2026-11-21T08:00:00Z": {"2026-11-21", "2026-11-22T08:00:00Z"},
		"2026-07-01T06:59:59Z": {"2026-06-30", "2026-07-01T07:00:00Z"},
		"2026-03-08T12:00:00Z": {"2026-03-08", "2026-03-09T07:00:00Z"}, // this day has 23 hours, because daylight saving time begins
		"2026-11-01T12:00:00Z": {"2026-11-01", "2026-11-02T08:00:00Z"}, // this day has 25 hours, because daylight saving time ends
		"2026-12-31T23:00:00Z": {"2026-12-31", "2027-01-01T08:00:00Z"},
		"2028-02-29T12:00:00Z": {"2028-02-29", "2028-03-01T08:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339, now)
		require.NoError(t, err)
		id, ends := window(at)
		require.Equal(t, want, [2]string{id, ends.UTC().Format(time.RFC3339)}, now)
	}
}

func TestSource_servesOnlyValidYouTubeTargets(t *testing.T) {
	t.Parallel()
	s := newSource(t, "https://youtube.example", nil)
	batch, ok := s.Serves(videoTarget(pancakes, false))
	require.True(t, ok)
	require.Equal(t, 50, batch)
	account, elsewhere := videoTarget(pancakes, false), videoTarget(pancakes, false)
	account.Kind = queue.KindAccount
	elsewhere.Platform = link.TikTok
	_, ok = s.Serves(queue.Target{Platform: link.YouTube, Kind: queue.KindVideo})
	require.True(t, ok, "a target without an id stands for all targets of its kind, so it must be served")
	for _, bad := range []queue.Target{account, elsewhere, videoTarget("kJ4_q-Zx9W", false), videoTarget("a,b&key=xxx", false), videoTarget("kJ4_q-Zx9Wé", false)} {
		_, ok := s.Serves(bad)
		require.False(t, ok, "%+v", bad)
	}
	t.Run("returns unsupported for other targets and makes no call", func(t *testing.T) {
		t.Parallel()
		web := startServer(t, nil)
		s := newSource(t, web.base, nil)
		results, err := s.Fetch(t.Context(), []queue.Target{account, videoTarget("", true)}, source.NewCallBudget([]source.Call{{Budget: youtube.BudgetStats, Units: 1}}))
		require.NoError(t, err)
		for _, r := range results {
			require.Equal(t, source.Unsupported, r.Class)
		}
		require.Empty(t, web.calls())
	})
	t.Run("refuses a batch that is too large", func(t *testing.T) {
		t.Parallel()
		_, err := s.Fetch(t.Context(), make([]queue.Target, 51), source.NewCallBudget([]source.Call{{Budget: youtube.BudgetStats, Units: 1}}))
		var f *source.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, source.BadRequest, f.Class)
		require.Equal(t, "targets in the batch: 51 (must be at most 50); planned calls: 1 (must be 1)", f.Detail)
	})
}

func TestSource_classifiesErrors(t *testing.T) {
	t.Parallel()
	batch := []queue.Target{videoTarget(pancakes, true)}
	for name, tt := range map[string]struct {
		status  int
		file    string
		class   source.Class
		budget  string
		retryAt time.Time
		detail  string
	}{
		"a spent daily quota in the newer quota system": {
			429, "quota_spent_new", source.QuotaSpent, "common", midnight,
			"HTTP 429 dailyLimitExceeded: Quota exceeded for quota metric 'Queries' and limit 'Queries per day' of service 'youtube.googleapis.com' for consumer 'project_number:1'.",
		},
		"an error with the reason `forbidden`":                  {403, "forbidden", source.AuthFailed, "", time.Time{}, "HTTP 403 forbidden: The caller does not have permission"},
		"a malformed request":                                   {400, "bad_request", source.BadRequest, "", time.Time{}, "HTTP 400 missingRequiredParameter: No filter selected."},
		"an error that is not in the format of Google's errors": {400, "channels", source.BadRequest, "", time.Time{}, "HTTP 400"},
		"status 429 without a reason":                           {429, "channels", source.RateLimited, "", time.Time{}, "HTTP 429"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource(t, startServer(t, map[string]http.Handler{"videos": fileHandler(t, tt.status, tt.file)}).base, nil)
			_, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			var f *source.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, tt.class, f.Class)
			require.Equal(t, tt.budget, f.Budget)
			require.True(t, tt.retryAt.Equal(f.RetryAt), "got %s", f.RetryAt)
			require.Equal(t, tt.detail, f.Detail)
		})
	}
}

func TestSource_callsVideosListIfBatchGetStatsIsDisabled(t *testing.T) {
	t.Parallel()
	batch := []queue.Target{videoTarget(pancakes, false), videoTarget(train, false)}
	for name, refusal := range map[string]http.Handler{
		"forbidden":        fileHandler(t, http.StatusForbidden, "forbidden"),
		"404 without JSON": http.NotFoundHandler(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var now atomic.Pointer[time.Time]
			now.Store(&sourcetest.Now)
			web := startServer(t, map[string]http.Handler{
				"videos": fileHandler(t, http.StatusOK, "list/ok"), "videos:batchGetStats": refusal,
			})
			s := newSource(t, web.base, func(o *youtube.Options) { o.Now = func() time.Time { return *now.Load() } })

			_, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			var f *source.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, source.QuotaSpent, f.Class, "the failure must pause the budget of batchGetStats only")
			require.Equal(t, youtube.BudgetStats, f.Budget)
			require.True(t, sourcetest.Now.Add(6*time.Hour).Equal(f.RetryAt))
			require.Contains(t, f.Detail, "batchGetStats is not available, so videos.list is used")

			plans := s.Plan(batch)
			require.Equal(t, [][]source.Call{{{Budget: youtube.BudgetCommon, Units: 1}}}, plans)
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(plans[0]))
			require.NoError(t, err)
			require.Equal(t, int64(1482337), *results[0].Facts.Views)
			require.Nil(t, results[0].Facts.Username, "handles must be missing if the budget has no unit for channels.list")
			require.Len(t, web.calls(), 2)

			later := sourcetest.Now.Add(6 * time.Hour)
			now.Store(&later)
			require.Len(t, s.Plan(batch), 2, "batchGetStats must be called again after the pause")
		})
	}
	t.Run("does not use videos.list as a fallback if the key is refused", func(t *testing.T) {
		t.Parallel()
		web := startServer(t, map[string]http.Handler{"videos:batchGetStats": fileHandler(t, http.StatusBadRequest, "auth_failed")})
		s := newSource(t, web.base, nil)
		_, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
		var f *source.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, source.AuthFailed, f.Class)
		require.Len(t, s.Plan(batch), 2)
	})
}

func TestSource_cachesHandlesOfChannels(t *testing.T) {
	t.Parallel()
	batch := []queue.Target{videoTarget(pancakes, true), videoTarget(train, true)}
	var now atomic.Pointer[time.Time]
	now.Store(&sourcetest.Now)
	web := startServer(t, map[string]http.Handler{
		"videos": fileHandler(t, http.StatusOK, "list/ok"), "channels": fileHandler(t, http.StatusOK, "channels"),
	})
	s := newSource(t, web.base, func(o *youtube.Options) { o.Now = func() time.Time { return *now.Load() } })
	fetchOnce := func() []string {
		results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
		require.NoError(t, err)
		require.Equal(t, "miracooks", *results[0].Facts.Username)
		require.Equal(t, "UCz8RrW4eYtN1uXb6KqLcM2g", *results[1].Facts.Username, "a channel without a handle must get its id as handle")
		return web.calls()
	}
	require.Len(t, fetchOnce(), 2)
	require.Len(t, fetchOnce(), 1, "cached handles must not be requested again")
	later := sourcetest.Now.Add(24 * time.Hour)
	now.Store(&later)
	require.Len(t, fetchOnce(), 2, "expired handles must be requested again")
}

func TestSource_returnsCountsIfRequestForHandlesFails(t *testing.T) {
	t.Parallel()
	batch := []queue.Target{videoTarget(pancakes, true), videoTarget(train, true)}
	for name, channels := range map[string]http.Handler{
		"quota":   fileHandler(t, http.StatusForbidden, "quota_spent"),
		"key":     fileHandler(t, http.StatusBadRequest, "auth_failed"),
		"garbage": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"items":{}}`)) }),
		"abort":   http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource(t, startServer(t, map[string]http.Handler{"videos": fileHandler(t, http.StatusOK, "list/ok"), "channels": channels}).base, nil)
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			require.NoError(t, err)
			for _, r := range results {
				require.Equal(t, source.OK, r.Class)
				require.NotNil(t, r.Facts.Views)
				require.Nil(t, r.Facts.Username)
				require.Contains(t, r.Detail, "the account's handle is unknown")
				require.NotContains(t, r.Detail, sourcetest.Credential)
			}
		})
	}
}

func TestSource_returnsTemporaryIfAnUnexpectedAnswerLacksAVideo(t *testing.T) {
	t.Parallel()
	item := `{"id":"` + train + `","statistics":{"viewCount":"5"}}`
	for answer, want := range map[string][2]source.Class{
		`{"kind":"KIND"}`:                                                                                     {source.Gone, source.Gone},
		`{"kind":"KIND","items":null}`:                                                                        {source.Gone, source.Gone},
		`{"kind":"KIND","items":[` + item + `]}`:                                                              {source.Gone, source.OK},
		`{"kind":"youtube#searchListResponse","items":[` + item + `]}`:                                        {source.Temporary, source.OK},
		`{"items":[` + item + `]}`:                                                                            {source.Temporary, source.OK},
		`{"kind":"KIND","items":[{"statistics":{}},` + item + `]}`:                                            {source.Temporary, source.OK},
		`{"kind":"KIND","items":[7,` + item + `]}`:                                                            {source.Temporary, source.OK},
		`{"kind":"KIND","items":[{"id":"` + train + `","statistics":{"viewCount":1.5}}]}`:                     {source.Gone, source.Temporary},
		`{"kind":"KIND","items":[{"id":"` + train + `","statistics":{"viewCount":"1","likeCount":[]}}]}`:      {source.Gone, source.Temporary},
		`{"kind":"KIND","items":[{"id":"` + train + `","statistics":{"viewCount":"1","commentCount":"-1"}}]}`: {source.Gone, source.Temporary},
		`{"kind":"KIND","items":[{"id":7},` + item + `]}`:                                                     {source.Temporary, source.OK},
		`{"kind":"KIND","items":[{"id":"` + train + `"}]}`:                                                    {source.Gone, source.Temporary},
	} {
		for _, plan := range []struct {
			method, kind string
			retry        bool
			missing      source.Class
		}{
			{"videos", "youtube#videoListResponse", true, source.Gone},
			{"videos:batchGetStats", "youtube#batchGetStatsResponse", false, source.Temporary},
		} {
			body := strings.Replace(answer, "KIND", plan.kind, 1)
			s := newSource(t, startServer(t, map[string]http.Handler{
				plan.method: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }),
			}).base, nil)
			batch := []queue.Target{videoTarget(pancakes, false), videoTarget(train, false)}
			if plan.retry {
				batch[0].Attempts = 1
			}
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			require.NoError(t, err, body)
			for i, class := range want {
				if class == source.Gone {
					class = plan.missing
				}
				require.Equal(t, class, results[i].Class, "%s: %s", batch[i].ExternalID, body)
			}
		}
	}
}

func TestNew_refusesInvalidOptions(t *testing.T) {
	t.Parallel()
	_, err := youtube.New(youtube.Options{})
	require.EqualError(t, err, "youtube: the API key is missing")
	_, err = youtube.New(youtube.Options{APIKey: "k"})
	require.EqualError(t, err, "youtube: the options \"Client\" and \"Now\" are required")
	client := fetch.New(fetch.Options{})
	for _, base := range []string{"youtube.googleapis.com", "ftp://x/", "https://", "https://x/?a=b", "https://x/#a", "://"} {
		_, err := youtube.New(youtube.Options{APIKey: "k", BaseURL: base, Client: client, Now: time.Now})
		require.ErrorContains(t, err, fmt.Sprintf("youtube: the base address must be an http or https address without credentials, query and fragment, not %q", base))
	}
	s, err := youtube.New(youtube.Options{APIKey: "k", Client: client, Now: time.Now})
	require.NoError(t, err)
	_, err = s.Fetch(canceledContext(t), []queue.Target{videoTarget(train, false)}, source.NewCallBudget([]source.Call{{Budget: youtube.BudgetStats, Units: 1}}))
	require.ErrorIs(t, err, context.Canceled)
}

func canceledContext(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
