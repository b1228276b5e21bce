package facebook_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/queue"
)

// serveLists starts a server with one Facebook account. The functions videos and reels return the answers to requests for the two lists of
// the account.
func serveLists(t *testing.T, videos, reels func(r *http.Request) string) (base string) {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"id":"` + mira + `","username":"mira.cooks"}`
		switch {
		case strings.HasSuffix(r.URL.Path, "/videos"):
			answer = videos(r)
		case strings.HasSuffix(r.URL.Path, "/video_reels"):
			answer = reels(r)
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(web.Close)
	return web.URL + "/v25.0"
}

// emptyList returns a list without videos.
func emptyList(*http.Request) string { return `{"data":[]}` }

// endlessList returns a function that returns the pages of a list that never ends. entriesOfPage returns the entries of a page as JSON. The
// function counts its calls in calls.
func endlessList(calls *atomic.Int32, entriesOfPage func(page int) []string) func(r *http.Request) string {
	return func(r *http.Request) string {
		calls.Add(1)
		page, _ := strconv.Atoi(r.URL.Query().Get("after"))
		return fmt.Sprintf(`{"data":[%s],"paging":{"cursors":{"before":"%d","after":"%d"},"next":"https://graph.facebook.com%s?after=%d"}}`,
			strings.Join(entriesOfPage(page), ","), page, page+1, r.URL.Path, page+1)
	}
}

// serveEndlessList starts a server with one Facebook account, whose list of reels never ends.
// idsOfPage returns the ids of the reels on a page of the list.
func serveEndlessList(t *testing.T, idsOfPage func(page int) []string) (base string, calls *atomic.Int32) {
	t.Helper()
	calls = &atomic.Int32{} // number of requests for the list of reels
	return serveLists(t, emptyList, endlessList(calls, func(page int) (entries []string) {
		for _, id := range idsOfPage(page) {
			entries = append(entries, `{"id":"`+id+`"}`)
		}
		return entries
	})), calls
}

func TestSource_limitsNumberOfListRequests(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		depth        int
		videos       func(page int) []string
		calls, found int
	}{
		"an empty first page": {1, func(page int) []string { return idsFrom(page, 25)[:25*min(page, 1)] }, 2, 25},
		"one page, which has at least 10 videos unless the list ends": {0, func(page int) []string { return idsFrom(page, 6) }, 2, 12},
		"a list with more videos than requested":                      {60, func(page int) []string { return idsFrom(page, 25) }, 3, 75},
		"the longest list":                                            {5000, func(page int) []string { return idsFrom(page, 40) }, 100, 4000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, calls := serveEndlessList(t, tt.videos)
			s := newSource(t, base, nil)
			batch := []queue.Target{accountTarget("mira.cooks", tt.depth)}
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
			require.NoError(t, err)
			require.Equal(t, source.OK, results[0].Class, results[0].Detail)
			require.True(t, results[0].Account.Listed)
			require.Len(t, results[0].Account.Videos, tt.found)
			require.EqualValues(t, tt.calls, calls.Load())
			require.GreaterOrEqual(t, s.Plan(batch)[0][0].Units, int64(2+tt.calls), "the plan must reserve a unit for every call")
		})
	}
}

// idsFrom returns n ids of reels on a page of a list.
func idsFrom(page, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(1139247764231800 + n*page + i)
	}
	return ids
}

// An incomplete list must not be taken as complete: the videos that it lacks would never be found.
func TestSource_refusesListThatTheAllowedRequestsDoNotReachTheEndOf(t *testing.T) {
	t.Parallel()
	for name, videos := range map[string]func(page int) []string{
		"only empty pages":             func(int) []string { return nil },
		"pages with one video":         func(page int) []string { return idsFrom(page, 1) },
		"the same videos on each page": func(int) []string { return idsFrom(0, 25) },
	} {
		base, calls := serveEndlessList(t, videos)
		s := newSource(t, base, nil)
		batch := []queue.Target{accountTarget("mira.cooks", 30)}
		_, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
		var failure *source.Failure
		require.ErrorAs(t, err, &failure, name)
		require.Equal(t, source.Temporary, failure.Class, name)
		require.Contains(t, failure.Detail, "too few videos of the page", name)
		require.EqualValues(t, 4, calls.Load(), name)
	}
}

// Videos of other pages must not count towards the number of videos that are requested.
func TestSource_requestsMorePagesIfListHasVideosOfOtherPages(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	base := serveLists(t, endlessList(&calls, func(page int) (entries []string) {
		for i, id := range idsFrom(page, 50) {
			owner := mira
			if i >= 10 {
				owner = "100000000000001"
			}
			entries = append(entries, `{"id":"`+id+`","from":{"id":"`+owner+`"}}`)
		}
		return entries
	}), emptyList)
	require.Len(t, fetchedIDs(t, base), 30)
	require.EqualValues(t, 3, calls.Load())
}

// fetchedIDs requests a list of 30 videos of an account from the server at the URL `base`. It returns the ids of the videos in the order of the list.
func fetchedIDs(t *testing.T, base string) (ids []string) {
	t.Helper()
	s := newSource(t, base, nil)
	batch := []queue.Target{accountTarget("mira.cooks", 30)}
	results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
	require.NoError(t, err)
	require.Equal(t, source.OK, results[0].Class, results[0].Detail)
	for _, v := range results[0].Account.Videos {
		ids = append(ids, v.ID)
	}
	return ids
}

// listedIDs returns the ids of the videos of a Facebook page, in the order in which Fetch returns them. videosJSON and reelsJSON are the
// page's two lists.
func listedIDs(t *testing.T, videosJSON, reelsJSON string) []string {
	t.Helper()
	list := func(entriesJSON string) func(*http.Request) string {
		return func(r *http.Request) string {
			if !slices.Contains(strings.Split(r.URL.Query().Get("fields"), ","), "from") {
				t.Error("the request must ask which page published each video")
			}
			return `{"data":` + entriesJSON + `}`
		}
	}
	return fetchedIDs(t, serveLists(t, list(videosJSON), list(reelsJSON)))
}

func TestSource_sortsVideosOfBothListsByUploadTime(t *testing.T) {
	t.Parallel()
	ids := listedIDs(t, `[{"id":"1139247764231801","created_time":"2026-11-01T10:00:00+0000"},{"id":"1139247764231802"},{"id":"1139247764231803","created_time":"2026-10-01T10:00:00+0000"}]`,
		`[{"id":"1139247764231804","created_time":"2026-11-02T10:00:00+0000"},{"id":"1139247764231801","created_time":"2026-11-01T10:00:00+0000"}]`)
	require.Equal(t, []string{"1139247764231804", "1139247764231801", "1139247764231803", "1139247764231802"}, ids,
		"the newest video must come first, and the video without an upload time must come last")
}

func TestSource_skipsListedVideosOfOtherPages(t *testing.T) {
	t.Parallel()
	ids := listedIDs(t, `[{"id":"1139247764231801","from":{"id":"`+mira+`"}},{"id":"1139247764231802","from":{"id":"100000000000001"}},{"id":"1139247764231803"}]`,
		`[{"id":"1139247764231804","from":{"id":"100000000000001"}}]`)
	require.Equal(t, []string{"1139247764231801", "1139247764231803"}, ids, "Fetch must not return videos of other pages")
}

func TestSource_requestsSmallerPagesIfAPageHasTooMuchData(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		largest int // the largest page that Facebook returns
		limits  []string
		listed  bool
	}{
		"a page of 12 can be read": {20, []string{"50", "25", "12", "12"}, true},
		"no page can be read":      {0, []string{"50", "25", "12", "6", "6"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var limits []string
			base := serveLists(t, func(r *http.Request) string {
				limit := r.URL.Query().Get("limit")
				limits = append(limits, limit)
				if n, _ := strconv.Atoi(limit); n > tt.largest {
					return graphError(1, 0, "Please reduce the amount of data you're asking for, then retry your request")
				}
				return `{"data":[{"id":"` + pancakes + `"}]}`
			}, func(*http.Request) string { return notReadable })
			s := newSource(t, base, nil)
			for range 2 {
				batch := []queue.Target{accountTarget("mira.cooks", 1)}
				results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
				require.NoError(t, err)
				if !tt.listed {
					require.Equal(t, source.Temporary, results[0].Class, "a list that cannot be read must be requested again")
					require.Nil(t, results[0].Account)
					continue
				}
				require.Equal(t, source.OK, results[0].Class)
				require.True(t, results[0].Account.Listed)
			}
			require.Equal(t, tt.limits, limits)
		})
	}
}
