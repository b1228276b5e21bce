package instagram_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/instagram"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// graphTest has a source that calls a simulated Graph API. The list `requests` has the path, fields
// and metrics of each received request.
type graphTest struct {
	*instagram.Source
	requests *[]string
}

// newGraphTest returns a graphTest. Its Graph API answers with the results of the function answer, except to requests for the profile. A request for
// insights has no fields; the parameter fields of answer is then the list of the requested metrics.
func newGraphTest(t *testing.T, answer func(path, fields string) (status int, body string)) graphTest {
	t.Helper()
	requests := &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, fields := strings.TrimPrefix(r.URL.Path, "/v25.0/"), r.URL.Query().Get("fields")
		// The fields of posts begin at "{id,shortcode". They are not recorded.
		short, _, _ := strings.Cut(fields, "{id,shortcode")
		*requests = append(*requests, strings.TrimSuffix(path+" "+short+" "+r.URL.Query().Get("metric"), " "))
		if fields == "id,username,name" {
			serveOtherRequests(w, r)
			return
		}
		status, body := answer(path, cmp.Or(fields, r.URL.Query().Get("metric")))
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return graphTest{newSource(t, server.URL+"/v25.0", nil), requests}
}

func (w graphTest) fetch(t *testing.T, batch ...queue.Target) []source.Result {
	t.Helper()
	results, err := w.Fetch(t.Context(), batch, source.NewCallBudget(w.Plan(batch)[0]))
	require.NoError(t, err)
	return results
}

const ownProfile = ownID + " id,username,name"

func TestSource_requestsListOfEachAccountOnce(t *testing.T) {
	t.Parallel()
	w := newGraphTest(t, func(_, fields string) (int, string) {
		if strings.Contains(fields, "(mira.cooks)") {
			return 200, discoveryAnswer(mira, mediaList("", postJSON(pancakes, reel), postJSON(train, night)))
		}
		return 400, noSuchAccount
	})
	batch := []queue.Target{videoTarget(pancakes, "mira.cooks"), videoTarget("DPWuK2sNkQ9", "rails"), videoTarget(train, "mira.cooks"), videoTarget(pancakes, "mira.cooks")}
	results := w.fetch(t, batch...)
	require.Equal(t, []source.Class{source.OK, source.Unsupported, source.OK, source.OK},
		[]source.Class{results[0].Class, results[1].Class, results[2].Class, results[3].Class})
	require.Equal(t, results[0].Facts, results[3].Facts)
	require.NotSame(t, results[0].Facts, results[3].Facts)
	require.Equal(t, []string{
		ownProfile, ownID + " business_discovery.username(mira.cooks){id,username,name,media_count,media.limit(50)", ownID + " business_discovery.username(rails){id,username,name,media_count,media.limit(50)",
	}, *w.requests)
	w.fetch(t, batch...)
	require.Len(t, *w.requests, 5, "the profile of the configured account must be cached for a day")
	require.Equal(t, [][]source.Call{{{Budget: graph.Budget, Units: 7}}}, w.Plan(batch))
}

func TestSource_stopsSearchAtPostsOlderThanVideo(t *testing.T) {
	t.Parallel()
	// page returns the requested page of an account's list. Each page has posts that are one month older than those of the page before it.
	page := func(fields string) string {
		at := 0
		if i := strings.Index(fields, "media.after(c"); i >= 0 {
			_, err := fmt.Sscanf(fields[i:], "media.after(c%d)", &at)
			require.NoError(t, err)
		}
		month := sourcetest.Now.AddDate(0, -at, 0).Format("2006-01-02T15:04:05-0700")
		posts := []string{postJSON("DPWuK2sNkQ9", `"comments_count":1,"timestamp":"`+month+`"`)}
		if at == 12 {
			posts = append(posts, postJSON(train, night))
		}
		return discoveryAnswer(mira, mediaList(fmt.Sprintf("c%d", at+1), posts...))
	}
	w := newGraphTest(t, func(_, fields string) (int, string) { return 200, page(fields) })
	r := w.fetch(t, videoTarget(train, "mira.cooks"))[0]
	require.Equal(t, source.OK, r.Class, r.Detail)
	require.Len(t, *w.requests, 1+13)

	at, ok := link.UploadTime(link.Link{Platform: link.Instagram, Kind: link.Video, ID: pancakes})
	require.True(t, ok)
	months := 0
	for sourcetest.Now.AddDate(0, -months, 0).After(at) {
		months++
	}
	w = newGraphTest(t, func(_, fields string) (int, string) { return 200, page(fields) })
	r = w.fetch(t, videoTarget(pancakes, "mira.cooks"))[0]
	require.Equal(t, source.Missing, r.Class, r.Detail)
	require.Len(t, *w.requests, 1+months+1, "the search must stop at posts that are older than the requested post")

	const oldest = "BDWuK2sNkQ1"
	w = newGraphTest(t, func(_, fields string) (int, string) { return 200, page(fields) })
	r = w.fetch(t, videoTarget(oldest, "mira.cooks"))[0]
	require.Equal(t, source.Unsupported, r.Class)
	require.Contains(t, r.Detail, "not among the newest 1000 posts")
	require.Len(t, *w.requests, 1+20)
}

func TestSource_returnsPostEvenIfInsightsAreMissing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		class  source.Class
		views  *int64
	}{
		"insights without a metric":                                    {200, `{"data":[]}`, source.OK, nil},
		"two metrics, one of them without a value":                     {200, `{"data":[{"name":"views","values":[{"value":7}]},{"name":"saved","values":[]}]}`, source.OK, new(int64(7))},
		"error for a post with too few viewers":                        {400, graphError(10, 0, "(#10) Not enough viewers for the media to show insights"), source.OK, nil},
		"error for a post that is older than the professional account": {400, graphError(100, 2108006, "Media Posted Before Business Account Conversion"), source.OK, nil},
		"metric with a value that is not a number":                     {200, `{"data":[{"name":"views","values":[{"value":"many"}]}]}`, source.Temporary, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGraphTest(t, func(path, _ string) (int, string) {
				if strings.HasSuffix(path, "/insights") {
					return tt.status, tt.body
				}
				return 200, mediaList("", postJSON(pancakes, strings.Replace(reel, `"view_count":1482337,`, "", 1)))
			})
			r := w.fetch(t, videoTarget(pancakes, ""))[0]
			require.Equal(t, tt.class, r.Class, r.Detail)
			require.Equal(t, "17000000000000079/insights  views,shares,saved", (*w.requests)[2])
			if r.Class == source.OK {
				require.Equal(t, tt.views, r.Facts.Views)
				require.Nil(t, r.Facts.Bookmarks)
				require.Equal(t, int64(90211), *r.Facts.Likes)
			}
		})
	}
	w := newGraphTest(t, func(path, _ string) (int, string) {
		if strings.HasSuffix(path, "/insights") {
			return 400, graphError(10, 0, "(#10) Application does not have permission for this action")
		}
		return 200, mediaList("", postJSON(pancakes, reel))
	})
	_, err := w.Fetch(t.Context(), []queue.Target{videoTarget(pancakes, "")}, source.NewCallBudget(w.Plan(nil)[0]))
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.AuthFailed, f.Class, f.Detail)
}

func TestSource_requestsEachMetricSeparatelyIfInstagramRefusesAMetric(t *testing.T) {
	t.Parallel()
	const first, second = "17000000000000079", "17000000000000080"
	refusal := graphError(100, 0, "(#100) The Media Insights API does not support the shares metric for this media product type.")
	posts := mediaList("", postJSON(pancakes, strings.Replace(reel, `"view_count":1482337,`, "", 1)),
		strings.Replace(postJSON(train, night), first, second, 1))
	for name, tt := range map[string]struct {
		refused                  []string // metrics that Instagram refuses, also together with other metrics
		views, shares, bookmarks *int64
		requests                 int
		detail                   string // the beginning of the result's detail
	}{
		"no metric":   {nil, new(int64(7)), new(int64(8)), new(int64(9)), 1, ""},
		"one metric":  {[]string{"shares"}, new(int64(7)), nil, new(int64(9)), 4, "an insight is missing: metric shares: "},
		"all metrics": {[]string{"views", "shares", "saved"}, nil, nil, nil, 4, "no insights: metric saved: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			w := newGraphTest(t, func(path, metrics string) (int, string) {
				if !strings.HasSuffix(path, "/insights") {
					return 200, posts
				}
				var data []string
				if path == first+"/insights" {
					asked++
					for metric := range strings.SplitSeq(metrics, ",") {
						if slices.Contains(tt.refused, metric) {
							return 400, refusal
						}
						data = append(data, fmt.Sprintf(`{"name":%q,"values":[{"value":%d}]}`, metric, map[string]int{"views": 7, "shares": 8, "saved": 9}[metric]))
					}
				}
				return 200, `{"data":[` + strings.Join(data, ",") + `]}`
			})
			results := w.fetch(t, videoTarget(pancakes, ""), videoTarget(train, ""))
			require.Equal(t, source.OK, results[0].Class, results[0].Detail)
			require.Equal(t, source.OK, results[1].Class, "the other post of the batch must be returned: "+results[1].Detail)
			f := results[0].Facts
			require.Equal(t, []*int64{tt.views, tt.shares, tt.bookmarks}, []*int64{f.Views, f.Shares, f.Bookmarks})
			require.Equal(t, []int64{90211, 1204}, []int64{*f.Likes, *f.Comments})
			require.Equal(t, tt.requests, asked)
			require.Equal(t, tt.refused != nil, strings.Contains(results[0].Detail, "does not support the shares metric"), results[0].Detail)
			require.True(t, strings.HasPrefix(results[0].Detail, tt.detail), results[0].Detail)
		})
	}
}

func TestSource_returnsTemporaryFailureIfAnswerHasNoListOfPosts(t *testing.T) {
	t.Parallel()
	w := newGraphTest(t, func(string, string) (int, string) { return 200, discoveryAnswer(mira+`,"media_count":4`, "") })
	require.Equal(t, source.Temporary, w.fetch(t, videoTarget(pancakes, "mira.cooks"))[0].Class)
	_, err := w.Fetch(t.Context(), []queue.Target{accountTarget("mira.cooks", 30)}, source.NewCallBudget(w.Plan(nil)[0]))
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.Temporary, f.Class)
	w = newGraphTest(t, func(string, string) (int, string) { return 200, discoveryAnswer(mira+`,"media_count":0`, "") })
	require.Equal(t, source.Missing, w.fetch(t, videoTarget(pancakes, "mira.cooks"))[0].Class)
}

func TestSource_returnsFailureIfConfiguredAccountIsNotReadable(t *testing.T) {
	t.Parallel()
	hidden := graphError(100, 33, "Unsupported get request. Object with ID '17841405822304914' does not exist")
	w := newGraphTest(t, func(string, string) (int, string) { return 400, hidden })
	for _, target := range []queue.Target{videoTarget(pancakes, "mira.cooks"), videoTarget(pancakes, ""), accountTarget("mira.cooks", 30)} {
		_, err := w.Fetch(t.Context(), []queue.Target{target}, source.NewCallBudget(w.Plan(nil)[0]))
		var f *source.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, source.AuthFailed, f.Class, "the failure must concern the source, because the configured account is not readable")
	}
}

func TestSource_returnsMissingIfListOfConfiguredAccountIsEmpty(t *testing.T) {
	t.Parallel()
	w := newGraphTest(t, func(string, string) (int, string) { return 200, `{"data":[]}` })
	require.Equal(t, source.Missing, w.fetch(t, videoTarget(pancakes, "our.kitchen"))[0].Class)
	results := w.fetch(t, videoTarget(pancakes, ""))
	require.Equal(t, source.Unsupported, results[0].Class)
	require.Contains(t, results[0].Detail, "track a link that contains the account")
}

func TestSource_servesOnlyValidInstagramTargets(t *testing.T) {
	t.Parallel()
	s := newSource(t, "https://graph.example/v25.0", nil)
	require.Equal(t, "instagram", s.Name())
	size, ok := s.Serves(videoTarget(pancakes, ""))
	require.True(t, ok)
	require.Equal(t, 25, size)
	size, ok = s.Serves(accountTarget("mira.cooks", 30))
	require.True(t, ok)
	require.Equal(t, 1, size)
	for _, k := range []queue.Kind{queue.KindVideo, queue.KindAccount} {
		_, ok = s.Serves(queue.Target{Platform: link.Instagram, Kind: k})
		require.True(t, ok, "a target without an id stands for all targets of its kind, so it must be served")
	}
	elsewhere := videoTarget(pancakes, "")
	elsewhere.Platform = link.Facebook
	for _, bad := range []queue.Target{elsewhere, videoTarget("x){id},id", ""), videoTarget("../me", ""), accountTarget("a){id", 1), accountTarget("", 1), accountTarget("Ä", 1)} {
		_, ok := s.Serves(bad)
		require.False(t, ok, "%+v", bad)
	}
	injected := s.Plan([]queue.Target{videoTarget(pancakes, "a){id}}")})
	require.Equal(t, int64(3), injected[0][0].Units)
	w := newGraphTest(t, func(string, string) (int, string) { return 200, `{"data":[]}` })
	require.Equal(t, source.Unsupported, w.fetch(t, videoTarget(pancakes, "a){id}}"))[0].Class, "an impossible handle must not be requested")
	require.Equal(t, ownID+"/media id,shortcode,caption,comments_count,like_count,media_type,media_product_type,permalink,timestamp,thumbnail_url", (*w.requests)[1])

	_, err := s.Fetch(t.Context(), make([]queue.Target, 26), source.NewCallBudget([]source.Call{{Budget: graph.Budget, Units: 1}}))
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.BadRequest, f.Class)
}

func TestNew_refusesInvalidOptions(t *testing.T) {
	t.Parallel()
	o := instagram.Options{Token: "t0k", Client: fetch.New(fetch.Options{}), Now: time.Now}
	for _, id := range []string{"", "natgeo", "1/2", "t0k", strings.Repeat("1", 21)} {
		o.AccountID = id
		_, err := instagram.New(o)
		require.ErrorContains(t, err, "instagram: the account id must be up to 20 digits")
		require.NotContains(t, err.Error(), "t0k")
	}
	o.Token = ""
	_, err := instagram.New(o)
	require.EqualError(t, err, "instagram: the access token is missing")
}
