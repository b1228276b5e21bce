package facebook_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/facebook"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// graphTest has a test server that simulates the Graph API, and a source that uses the server.
type graphTest struct {
	*facebook.Source
	requests *[]string // the requests that the server received
	now      *atomic.Pointer[time.Time]
}

func newGraphTest(t *testing.T, own []string, answers map[string]string) graphTest {
	t.Helper()
	requests := &[]string{}
	now := &atomic.Pointer[time.Time]{}
	now.Store(&sourcetest.Now)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := strings.TrimPrefix(r.URL.Path, "/v25.0/") + " " + strings.TrimPrefix(r.URL.Query().Get("fields")+r.URL.Query().Get("metric"), "id,title,")
		request, _, _ = strings.Cut(request, ",length")
		*requests = append(*requests, request)
		// The server chooses the answer by the path and the fields or metrics of the request.
		body, ok := answers[request]
		if !ok {
			body = notThere
		}
		if strings.HasPrefix(body, `{"error"`) {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return graphTest{newSource(t, server.URL+"/v25.0", func(o *facebook.Options) {
		o.PageIDs, o.Now = own, func() time.Time { return *now.Load() }
	}), requests, now}
}

func (w graphTest) fetch(t *testing.T, target queue.Target) (source.Result, error) {
	t.Helper()
	batch := []queue.Target{target}
	results, err := w.Fetch(t.Context(), batch, source.NewCallBudget(w.Plan(batch)[0]))
	if err != nil {
		return source.Result{}, err
	}
	return results[0], nil
}

const (
	videoRequest    = pancakes + " description"
	handleRequest   = mira + " id,username"
	pagesRequest    = "me/accounts id,name,access_token"
	insightsRequest = pancakes + "/video_insights fb_reels_total_plays,post_video_social_actions"
)

func TestSource_requestsEachMetricSeparatelyIfFacebookDoesNotKnowAMetric(t *testing.T) {
	t.Parallel()
	renamed := graphError(100, 0, "(#100) The value must be a valid insights metric")
	w := newGraphTest(t, []string{mira}, map[string]string{
		videoRequest: reel, handleRequest: `{"id":"` + mira + `","username":"mira"}`, insightsRequest: renamed, pancakes + "/video_insights fb_reels_total_plays": renamed,
		pancakes + "/video_insights post_video_social_actions": `{"data":[{"name":"post_video_social_actions","values":[{"value":{"COMMENT":5}}]}]}`,
	})
	r, err := w.fetch(t, videoTarget(pancakes))
	require.NoError(t, err)
	require.Equal(t, source.OK, r.Class, r.Detail)
	require.Nil(t, r.Facts.Views, "the public views must not be used, because they are counted differently")
	require.Nil(t, r.Facts.Shares, "a missing count must be nil and not zero")
	require.Equal(t, int64(90211), *r.Facts.Likes)
	require.Contains(t, r.Detail, "an insight is missing: metric fb_reels_total_plays: ")
	require.Equal(t, []string{videoRequest, pagesRequest, insightsRequest, pancakes + "/video_insights fb_reels_total_plays", pancakes + "/video_insights post_video_social_actions", handleRequest}, *w.requests)

	other := strings.Replace(reel, "/reel/"+pancakes, "/mira/videos/"+pancakes, 1)
	w = newGraphTest(t, []string{mira}, map[string]string{videoRequest: other,
		pancakes + "/video_insights total_video_views,post_video_social_actions": `{"data":[{"name":"total_video_views","values":[{"value":7}]}]}`})
	target := videoTarget(pancakes)
	target.NeedDetails = false
	r, err = w.fetch(t, target)
	require.NoError(t, err)
	require.Equal(t, int64(7), *r.Facts.Views)
	require.Len(t, *w.requests, 3)
}

func TestSource_requestsConfiguredPageIfVideoIsNotReadable(t *testing.T) {
	t.Parallel()
	w := newGraphTest(t, []string{mira}, map[string]string{videoRequest: notReadable, mira + " id": `{"id":"` + mira + `"}`})
	r, err := w.fetch(t, videoTarget(pancakes))
	require.NoError(t, err)
	require.Equal(t, source.Unsupported, r.Class, "an error for a video of another page must concern only this video")

	w = newGraphTest(t, []string{mira}, map[string]string{videoRequest: notReadable, mira + " id": notReadable})
	_, err = w.fetch(t, videoTarget(pancakes))
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.AuthFailed, f.Class, "the class must be auth_failed because the configured page is not readable either")
}

func TestSource_ignoresDotsInTheHandleOfAPage(t *testing.T) {
	t.Parallel()
	for username, class := range map[string]source.Class{"MiraCooks": source.OK, "m.ira.cooks": source.OK, "mira.cook": source.Temporary} {
		w := newGraphTest(t, nil, map[string]string{"mira.cooks id,name,username,about,website,followers_count": `{"id":"` + mira + `","username":"` + username + `"}`})
		r, err := w.fetch(t, accountTarget("mira.cooks", 1))
		require.NoError(t, err)
		require.Equal(t, class, r.Class, "%s: %s", username, r.Detail)
	}
}

func TestSource_cachesHandlesOfPagesForOneDay(t *testing.T) {
	t.Parallel()
	w := newGraphTest(t, nil, map[string]string{videoRequest: reel, handleRequest: `{"id":"` + mira + `"}`})
	for range 2 {
		r, err := w.fetch(t, videoTarget(pancakes))
		require.NoError(t, err)
		require.Equal(t, mira, *r.Facts.Username, "a page without a handle must get its id as handle")
	}
	require.Equal(t, []string{videoRequest, handleRequest, videoRequest}, *w.requests, "the handle must be cached for a day")
	later := sourcetest.Now.Add(24 * time.Hour)
	w.now.Store(&later)
	_, err := w.fetch(t, videoTarget(pancakes))
	require.NoError(t, err)
	require.Len(t, *w.requests, 5)

	w = newGraphTest(t, nil, map[string]string{videoRequest: reel, handleRequest: graphError(190, 0, "expired")})
	r, err := w.fetch(t, videoTarget(pancakes))
	require.NoError(t, err)
	require.Equal(t, int64(1482337), *r.Facts.Views, "the counts must be returned even if the handle is unknown")
	require.Nil(t, r.Facts.Username)
	require.Contains(t, r.Detail, "the page's handle is unknown: auth_failed")

	w = newGraphTest(t, []string{mira}, map[string]string{videoRequest: reel, insightsRequest: graphError(10, 0, "(#10) Not enough viewers"), handleRequest: graphError(100, 0, "broken")})
	r, err = w.fetch(t, videoTarget(pancakes))
	require.NoError(t, err)
	require.Regexp(t, "no insights: .*; the page's handle is unknown: ", r.Detail, "both reasons must be given")
}

func TestSource_servesOnlyValidFacebookTargets(t *testing.T) {
	t.Parallel()
	s := newSource(t, "https://graph.example/v25.0", nil)
	require.Equal(t, "facebook", s.Name())
	elsewhere := videoTarget(pancakes)
	elsewhere.Platform = link.Instagram
	for _, bad := range []queue.Target{elsewhere, videoTarget("12345678"), videoTarget("me/accounts"), accountTarget("a/b", 1), accountTarget("", 1), accountTarget("ö", 1)} {
		_, ok := s.Serves(bad)
		require.False(t, ok, "%+v", bad)
	}
	numbered := accountTarget("", 30)
	numbered.ExternalID, numbered.AccountID = mira, mira
	for _, good := range []queue.Target{videoTarget(pancakes), accountTarget("mira.cooks", 30), accountTarget("mira.cooks~"+mira, 30), numbered,
		{Platform: link.Facebook, Kind: queue.KindVideo}, {Platform: link.Facebook, Kind: queue.KindAccount}} {
		size, ok := s.Serves(good)
		require.True(t, ok, "%+v", good)
		require.Equal(t, 1, size)
	}
	require.Equal(t, [][]source.Call{{{Budget: graph.Budget, Units: 2}}}, s.Plan([]queue.Target{videoTarget(pancakes)}))
	results, err := s.Fetch(t.Context(), []queue.Target{elsewhere}, source.NewCallBudget([]source.Call{{Budget: graph.Budget, Units: 1}}))
	require.NoError(t, err)
	require.Equal(t, source.Unsupported, results[0].Class)
	_, err = s.Fetch(t.Context(), []queue.Target{videoTarget(pancakes)}, source.NewCallBudget(nil))
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.BadRequest, f.Class)
}

func TestNew_refusesInvalidOptions(t *testing.T) {
	t.Parallel()
	o := facebook.Options{Token: "t0k", Client: fetch.New(fetch.Options{}), Now: time.Now, PageIDs: []string{mira, "natgeo"}}
	_, err := facebook.New(o)
	require.EqualError(t, err, `facebook: a page id must be up to 20 digits, such as 100064550044307, not "natgeo"`)
	o.PageIDs, o.VideoMetric = nil, "views,likes"
	_, err = facebook.New(o)
	require.EqualError(t, err, `facebook: a metric must be one name of lower-case letters, digits and underscores, such as total_video_views, not "views,likes"`)
	o.Token = ""
	_, err = facebook.New(o)
	require.EqualError(t, err, "facebook: the access token is missing")
}
