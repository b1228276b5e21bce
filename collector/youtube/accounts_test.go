package youtube_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/collector/youtube"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

const mira = "UCk3mXo7Q2hJp0LwR9sVbT1A"

// accountTarget returns the target that the collector creates for the link of an account.
func accountTarget(t testing.TB, pasted string, depth int) queue.Target {
	t.Helper()
	l, err := link.Parse(pasted)
	require.NoError(t, err)
	require.Equal(t, link.Account, l.Kind)
	out := queue.Target{Platform: link.YouTube, Kind: queue.KindAccount, ExternalID: "@" + l.Handle, Handle: l.Handle, Link: l.Canonical, Depth: depth}
	if l.ID != "" {
		out.ExternalID, out.AccountID = l.ID, l.ID
	}
	return out
}

func channelList(items string) string {
	return `{"kind":"youtube#channelListResponse","etag":"x","pageInfo":{"totalResults":1,"resultsPerPage":5},"items":[` + items + `]}`
}

func channelItem(id, subscribers string) string {
	return fmt.Sprintf(`{"kind":"youtube#channel","id":%q,"snippet":{"title":"Mira Cooks","description":"Big pancakes, tiny kitchen.\nNew every Friday",
		"customUrl":"@MiraCooks","publishedAt":"2019-05-06T07:08:09Z"},"statistics":{"viewCount":"9007199254740993",
		"subscriberCount":%s,"hiddenSubscriberCount":false,"videoCount":"3"}}`, id, subscribers)
}

func playlistPage(next string, entries ...string) sourcetest.Reply {
	return sourcetest.Reply{Body: `{"kind":"youtube#playlistItemListResponse","nextPageToken":` + next + `,"items":[` + strings.Join(entries, ",") + `]}`}
}

func playlistItemJSON(id, published string) string {
	return fmt.Sprintf(`{"kind":"youtube#playlistItem","id":"VVVrM21Yb","contentDetails":{"videoId":%q,"videoPublishedAt":%q}}`, id, published)
}

func foundVideo(id string, at time.Time) ingest.FoundVideo {
	return ingest.FoundVideo{ID: id, Link: "https://www.youtube.com/watch?v=" + id, UploadedAt: new(store.InstantOf(at))}
}

func TestSource_fetchesAccounts(t *testing.T) {
	t.Parallel()
	const third = "aB3dE6gH9jk"
	first := []string{playlistItemJSON(pancakes, "2026-10-03T17:04:11Z"), `{"contentDetails":{"videoId":"` + third + `"}}`}
	ok := source.AccountFacts{
		ID: new(mira), Username: new("miracooks"), Name: new("Mira Cooks"), Bio: new("Big pancakes, tiny kitchen.\nNew every Friday"),
		Followers: new(int64(1230000)), Private: new(false), Listed: true,
		Videos: []ingest.FoundVideo{
			foundVideo(pancakes, time.Date(2026, 10, 3, 17, 4, 11, 0, time.UTC)), foundVideo(train, time.Date(2025, 2, 1, 7, 59, 59, 0, time.UTC)),
		},
	}
	profile := sourcetest.Reply{Body: channelList(channelItem(mira, `"1230000"`))}
	second := playlistPage(`null`, playlistItemJSON(train, "2025-01-31T23:59:59-08:00"))
	pages := []sourcetest.Reply{playlistPage(`"EAAaBlBUOkNESQ"`, first...), second}
	none := []sourcetest.Reply{{Status: http.StatusNotFound, Body: `{"error":{"code":404,"errors":[{"reason":"playlistNotFound"}]}}`}}
	closed := []sourcetest.Reply{{Status: http.StatusForbidden, Body: `{"error":{"code":403,"errors":[{"reason":"playlistItemsNotAccessible"}]}}`}}
	bare := source.AccountFacts{ID: new(mira), Username: new(mira), Private: new(false), Listed: true}
	empty, unlisted := ok, ok
	empty.Videos = nil
	unlisted.Videos, unlisted.Listed = nil, false

	answers := map[sourcetest.Case]sourcetest.AccountAnswer{
		sourcetest.OK: {Profile: profile, Pages: pages, Class: source.OK, Account: &ok},
		sourcetest.Bare: {Profile: sourcetest.Reply{Body: channelList(`{"id":"` + mira + `","snippet":{},"statistics":{"hiddenSubscriberCount":true,"subscriberCount":"0"}}`)},
			Pages: none, Class: source.OK, Account: &bare},
		sourcetest.Gone:           {Profile: sourcetest.Reply{Body: `{"kind":"youtube#channelListResponse","pageInfo":{"totalResults":0}}`}, Class: source.Gone},
		sourcetest.WrongTypes:     {Profile: sourcetest.Reply{Body: channelList(channelItem(mira, `["1230000"]`))}, Class: source.Temporary},
		sourcetest.Strings:        {Profile: sourcetest.Reply{Body: channelList(channelItem(mira, `1230000`))}, Pages: pages, Class: source.OK},
		sourcetest.Big:            {Profile: sourcetest.Reply{Body: channelList(channelItem(mira, `"9007199254740993"`))}, Class: source.Temporary},
		sourcetest.Foreign:        {Profile: sourcetest.Reply{Body: channelList(channelItem("UCz8RrW4eYtN1uXb6KqLcM2g", `"1"`))}, Class: source.Temporary},
		sourcetest.PrivateAccount: {Profile: profile, Pages: closed, Class: source.OK, Account: &unlisted},
		sourcetest.Empty:          {Profile: profile, Pages: []sourcetest.Reply{playlistPage(`null`)}, Class: source.OK, Account: &empty},
		sourcetest.Pinned:         {Profile: profile, Pages: []sourcetest.Reply{pages[0], playlistPage(`null`, playlistItemJSON(train, "2025-02-01T07:59:59Z"), first[0])}, Class: source.OK},
		sourcetest.BrokenEntry:    {Profile: profile, Pages: []sourcetest.Reply{playlistPage(`"EAAaBlBUOkNESQ"`, append(first, `{"contentDetails":{"videoId":7}}`)...), second}, Class: source.OK},
		sourcetest.BrokenList:     {Profile: profile, Pages: []sourcetest.Reply{playlistPage(`null`, `{"contentDetails":{"videoId":["x"]}}`)}, Class: source.Temporary},
	}
	for c, refusal := range refusalAnswers(t, youtube.BudgetCommon) {
		answers[c] = sourcetest.AccountAnswer{Profile: sourcetest.Reply{Status: refusal.Status, Body: refusal.Body}, RetryAt: refusal.RetryAt, Budget: refusal.Budget}
	}
	sourcetest.RunAccountTests(t, sourcetest.AccountHarness{
		New: newTestSource, Target: accountTarget(t, "https://www.youtube.com/channel/"+mira, 120), Answers: answers,
		IsList: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/playlistItems") },
	})
}

// recordRequests starts a test server with the given handler and returns its base URL. The server
// appends the path and query of each request to *requests.
func recordRequests(t *testing.T, handler http.HandlerFunc) (base string, requests *[]string) {
	t.Helper()
	requests = &[]string{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		// The tests do not compare these parameters.
		q.Del("key")
		q.Del("part")
		q.Del("maxResults")
		*requests = append(*requests, r.URL.Path[len("/youtube/v3/"):]+"?"+q.Encode())
		handler(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL, requests
}

func TestSource_derivesRequestParameterFromLink(t *testing.T) {
	t.Parallel()
	for pasted, want := range map[string][]string{
		"https://www.youtube.com/@MiraCooks":       {"channels?forHandle=%40miracooks"},
		"https://www.youtube.com/@吃货Mira":          {"channels?forHandle=%40%E5%90%83%E8%B4%A7mira"},
		"https://www.youtube.com/user/MiraCooks":   {"channels?forUsername=miracooks"},
		"https://www.youtube.com/c/MiraCooks":      {"channels?forHandle=%40miracooks"},
		"https://www.youtube.com/MiraCooks":        {"channels?forHandle=%40miracooks"},
		"https://www.youtube.com/channel/" + mira:  {"channels?id=" + mira},
		"https://www.youtube.com/@MiraCooks/about": {"channels?forHandle=%40miracooks"},
	} {
		t.Run(pasted, func(t *testing.T) {
			t.Parallel()
			base, requests := recordRequests(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`{"kind":"youtube#channelListResponse"}`))
			})
			s := newSource(t, base, nil)
			batch := []queue.Target{accountTarget(t, pasted, 0)}
			plan := s.Plan(batch)
			require.Len(t, plan, 1)
			require.Equal(t, []source.Call{{Budget: youtube.BudgetCommon, Units: int64(len(want)) + 1}}, plan[0], "the plan must have one unit for each request by name, and one unit for a page of uploads")
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(plan[0]))
			require.NoError(t, err)
			require.Equal(t, source.Gone, results[0].Class)
			require.Equal(t, want, *requests)
		})
	}
	t.Run("requests the account by id if the id is known", func(t *testing.T) {
		t.Parallel()
		base, requests := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "channels") {
				_, _ = w.Write([]byte(channelList(channelItem(mira, `"5"`))))
				return
			}
			_, _ = w.Write([]byte(playlistPage(`"next"`, playlistItemJSON(pancakes, "2026-10-03T17:04:11Z")).Body))
		})
		s := newSource(t, base, nil)
		known := accountTarget(t, "https://www.youtube.com/@old.handle", 0)
		known.AccountID = mira
		results, err := s.Fetch(t.Context(), []queue.Target{known}, source.NewCallBudget(s.Plan([]queue.Target{known})[0]))
		require.NoError(t, err)
		require.Equal(t, "miracooks", *results[0].Account.Username, "the result must have the new handle of the account")
		require.Equal(t, []string{"channels?id=" + mira, "playlistItems?playlistId=UU" + mira[2:]}, *requests, "the source must not request a second page of uploads")
	})
}

func TestSource_limitsBatchSizeOfAccounts(t *testing.T) {
	t.Parallel()
	s := newSource(t, "http://127.0.0.1:1", nil)
	size := func(target queue.Target) int {
		n, ok := s.Serves(target)
		require.Equal(t, n > 0, ok)
		return n
	}
	byID := accountTarget(t, "https://www.youtube.com/channel/"+mira, 0)
	deep := byID
	deep.Depth = 51
	require.Equal(t, 50, size(queue.Target{Platform: link.YouTube, Kind: queue.KindAccount}))
	require.Equal(t, 50, size(byID))
	require.Equal(t, 1, size(deep))
	require.Equal(t, 1, size(accountTarget(t, "https://www.youtube.com/@MiraCooks", 0)))
	require.Zero(t, size(queue.Target{Platform: link.YouTube, Kind: queue.KindAccount, ExternalID: "@a b"}))
	require.Zero(t, size(queue.Target{Platform: link.TikTok, Kind: queue.KindAccount, ExternalID: "@mira"}))

	deep.Depth = 5000
	require.Equal(t, int64(101), s.Plan([]queue.Target{deep})[0][0].Units)
	require.Equal(t, int64(3), s.Plan([]queue.Target{byID, byID})[0][0].Units)
}

func TestSource_classifiesErrorsOfAccounts(t *testing.T) {
	t.Parallel()
	for reason, tt := range map[string]struct {
		status int
		class  source.Class
	}{
		"channelNotFound": {http.StatusNotFound, source.Gone}, "channelClosed": {http.StatusForbidden, source.Gone},
		"channelSuspended": {http.StatusForbidden, source.Gone}, "channelForbidden": {http.StatusForbidden, source.Private},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			base, _ := recordRequests(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = fmt.Fprintf(w, `{"error":{"code":%d,"message":"…","errors":[{"reason":%q}]}}`, tt.status, reason)
			})
			s := newSource(t, base, nil)
			one := []queue.Target{accountTarget(t, "https://www.youtube.com/@MiraCooks", 0)}
			results, err := s.Fetch(t.Context(), one, source.NewCallBudget(s.Plan(one)[0]))
			require.NoError(t, err)
			require.Equal(t, tt.class, results[0].Class)

			two := []queue.Target{accountTarget(t, "https://www.youtube.com/channel/"+mira, 0), accountTarget(t, "https://www.youtube.com/channel/UCz8RrW4eYtN1uXb6KqLcM2g", 0)}
			results, err = s.Fetch(t.Context(), two, source.NewCallBudget(s.Plan(two)[0]))
			require.NoError(t, err)
			for _, r := range results {
				require.Equal(t, source.Temporary, r.Class, "the class must be temporary, because the error does not say which account it concerns")
			}
		})
	}
}

func TestSource_fetchesAccountsFromSandbox(t *testing.T) {
	t.Parallel()
	for _, category := range sandbox.AccountCategories(link.YouTube) {
		t.Run(string(category), func(t *testing.T) {
			t.Parallel()
			s, world, _ := startSandbox(t)
			truth, ok := world.Account(link.YouTube, world.FindAccount(link.YouTube, category), sourcetest.Now)
			require.True(t, ok)
			for _, pasted := range []string{"https://www.youtube.com/@" + truth.Handle, "https://www.youtube.com/channel/" + truth.ID} {
				batch := []queue.Target{accountTarget(t, pasted, 5000)}
				results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
				require.NoError(t, err)
				r := results[0]
				require.True(t, r.Sandbox)
				if category == sandbox.AccountGone {
					require.Equal(t, source.Gone, r.Class)
					continue
				}
				require.Equal(t, source.OK, r.Class, r.Detail)
				require.Equal(t, truth.ID, *r.Account.ID)
				require.Equal(t, truth.Followers, r.Account.Followers)
				require.Nil(t, r.Account.Following)
				require.True(t, r.Account.Listed)
				var ids []string
				for _, v := range r.Account.Videos {
					ids = append(ids, v.ID)
				}
				require.Equal(t, world.Uploads(link.YouTube, truth.ID, sourcetest.Now), ids)
			}
		})
	}
	t.Run("returns a failure for the batch if the first call fails", func(t *testing.T) {
		t.Parallel()
		s, world, base := startSandbox(t)
		var batch []queue.Target
		for number := range uint32(3) {
			truth, ok := world.Account(link.YouTube, world.Handle(link.YouTube, 100+number), sourcetest.Now)
			require.True(t, ok)
			batch = append(batch, accountTarget(t, "https://www.youtube.com/channel/"+truth.ID, 0))
		}
		results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
		require.NoError(t, err)
		for _, r := range results {
			require.Equal(t, source.OK, r.Class)
		}
		sourcetest.SendControlRequest(t, base, "faults", `{"source":"youtube","fault":"server_error"}`)
		_, err = s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
		var f *source.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, source.Temporary, f.Class)
	})
}

func TestSource_returnsAccountsFetchedBeforeFailure(t *testing.T) {
	t.Parallel()
	const rails = "UCz8RrW4eYtN1uXb6KqLcM2g"
	base, _ := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "channels"):
			_, _ = w.Write([]byte(channelList(channelItem(mira, `"5"`) + "," + channelItem(rails, `"6"`))))
		case strings.Contains(r.URL.RawQuery, rails[2:]):
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = w.Write([]byte(playlistPage(`null`, playlistItemJSON(pancakes, "2026-10-03T17:04:11Z")).Body))
		}
	})
	s := newSource(t, base, nil)
	batch := []queue.Target{accountTarget(t, "https://www.youtube.com/channel/"+mira, 0), accountTarget(t, "https://www.youtube.com/channel/"+rails, 0)}
	results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(s.Plan(batch)[0]))
	require.NoError(t, err)
	require.Equal(t, source.OK, results[0].Class)
	require.Equal(t, source.Temporary, results[1].Class)
	require.NotNil(t, results[1].Failed)
}

func TestSource_stopsRequestingListPagesWhenBudgetIsSpent(t *testing.T) {
	t.Parallel()
	page := 0
	base, requests := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "channels") {
			_, _ = w.Write([]byte(channelList(channelItem(mira, `"5"`))))
			return
		}
		page++
		_, _ = w.Write([]byte(playlistPage(fmt.Sprintf(`"page %d"`, page), playlistItemJSON(fmt.Sprintf("aB3dE6gH9j%d", page), "2026-10-03T17:04:11Z")).Body))
	})
	s := newSource(t, base, nil)
	deep := []queue.Target{accountTarget(t, "https://www.youtube.com/channel/"+mira, 5000)}
	budget := source.NewCallBudget([]source.Call{{Budget: youtube.BudgetCommon, Units: 3}})
	results, err := s.Fetch(t.Context(), deep, budget)
	require.NoError(t, err)
	require.Equal(t, source.OK, results[0].Class)
	require.True(t, results[0].Account.Listed)
	require.Len(t, results[0].Account.Videos, 2)
	require.True(t, results[0].Account.ListContinues)
	require.True(t, results[0].Account.Unfinished)
	require.Len(t, *requests, 3, "there must be as many requests as the budget has units")
	require.EqualValues(t, 3, budget.Spent()[0].Units)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	budget = source.NewCallBudget(s.Plan(deep)[0])
	_, err = s.Fetch(ctx, deep, budget)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, budget.Spent()[0].Units, "units must not be spent if no call was made")
	require.Len(t, *requests, 3)
}
