package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// Requirements in docs/coverage.md: 11.1-01, 11.1-03, 11.1-06
func TestFetchStatus_filtersListsAndChangesETags(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.track(tiktokLink)
		stopped := c.track(videoURL(1))
		c.send(http.MethodDelete, "/videos/"+stopped.String(), nil).requireStatus(http.StatusOK)
		list := func(status string) client.VideoPage {
			page := c.listVideos("fetch_status=" + status)
			require.Equal(t, status, *page.Filters.FetchStatus)
			return page
		}
		require.Len(t, list("pending").Data, 1)
		require.Equal(t, id, list("pending").Data[0].AdID)
		require.Contains(t, *list("pending").Data[0].FetchDetail, "it is due on")
		require.Equal(t, stopped, list("stopped").Data[0].AdID, "with fetch_status=stopped, stopped videos must be listed although include_removed is not set")
		require.Empty(t, list("ok").Data)

		tag := func(target string) string {
			return c.send(http.MethodGet, target, nil).requireStatus(http.StatusOK).Header.Get("ETag")
		}
		targets := []string{"/videos", "/videos/" + id.String(), "/videos?fetch_status=delayed", "/statistics/videos"}
		before := map[string]string{}
		for _, target := range targets {
			before[target] = tag(target)
			c.send(http.MethodGet, target, nil, "If-None-Match", before[target]).requireStatus(http.StatusNotModified)
		}
		a.Clock.Advance(queue.DelayedAfter + time.Minute)
		require.Equal(t, id, list("delayed").Data[0].AdID)
		for _, target := range targets {
			require.NotEqual(t, before[target], tag(target), target)
		}
		a.fetch(factsWithViews(5))
		v := decode[client.Video](c.send(http.MethodGet, "/videos/"+id.String(), nil).requireStatus(http.StatusOK))
		require.Equal(t, client.FetchStatusOk, v.FetchStatus)
		require.Nil(t, v.FetchDetail)
		require.NotNil(t, v.LastAttemptAt)
		require.NotNil(t, v.NextFetchAt)
		counts := decode[client.Statistics](c.send(http.MethodGet, "/statistics/videos", nil).requireStatus(http.StatusOK))
		require.Equal(t, client.StatusCounts{Ok: 1, Stopped: 1}, counts.ByStatus)

		c.send(http.MethodPost, "/accounts", map[string]any{"link": "https://www.tiktok.com/@another.one"}).requireStatus(http.StatusOK)
		accounts := decode[[]client.Account](c.send(http.MethodGet, "/accounts?fetch_status=pending", nil).requireStatus(http.StatusOK))
		require.Len(t, accounts, 1)
		require.Equal(t, "pending", *accounts[0].FetchStatus)
		linked := decode[[]client.Account](c.send(http.MethodGet, "/accounts?include_linked=true&username=northwind.studio", nil).requireStatus(http.StatusOK))
		require.Nil(t, linked[0].FetchStatus, "an account that is only the author of tracked videos must have no fetch status, because it is not fetched")
		require.NotNil(t, linked[0].FetchDetail)
		require.Equal(t, "The account is not tracked but only linked from its videos, so it is not fetched. Track it to get its followers and its new videos.", *linked[0].FetchDetail)
		c.send(http.MethodGet, "/videos?fetch_status=broken", nil).problem(http.StatusBadRequest)
	})
}

// TestTrackAgain_saysThatARecentlyFetchedItemWaitsAndHasOlderNumbers stops a video and an account and tracks them again. If their last fetch was
// recent, the video and the account are not fetched at once, and the API shows their earlier numbers.
func TestTrackAgain_saysThatARecentlyFetchedItemWaitsAndHasOlderNumbers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		video := c.trackVideos(http.StatusOK, []string{videoURL(1)}).Results[0].VideoID.String()
		account := c.trackAccounts(http.StatusOK, []string{"https://www.tiktok.com/@another.one"}).Results[0].AccountID.String()
		a.fetch(factsWithViews(5))
		storetest.DeliverAccount(t, a.DB, ingest.AccountFacts{Followers: new(int64(7))})
		a.Clock.Advance(10 * time.Minute)
		stop := func() {
			t.Helper()
			c.send(http.MethodDelete, "/videos/"+video, nil).requireStatus(http.StatusOK)
			c.send(http.MethodDelete, "/accounts/"+account, nil).requireStatus(http.StatusOK)
		}
		stop()
		require.False(t, c.trackVideos(http.StatusOK, []string{videoURL(1), videoURL(2)}).TrackingEnqueued)
		require.False(t, c.trackAccounts(http.StatusOK, []string{"https://www.tiktok.com/@another.one"}).TrackingEnqueued)
		shown := decode[client.Video](c.send(http.MethodGet, "/videos/"+video, nil).requireStatus(http.StatusOK))
		require.EqualValues(t, 5, *shown.LatestViews)
		require.Equal(t, client.FetchStatusPending, shown.FetchStatus)
		require.Contains(t, *shown.FetchDetail, "The video has not been fetched since tracking began, so its numbers are older")
		shownAccount := decode[client.Account](c.send(http.MethodGet, "/accounts/"+account, nil).requireStatus(http.StatusOK))
		require.Contains(t, *shownAccount.FetchDetail, "The account has not been fetched since tracking began, so its numbers are older")
		require.True(t, c.trackVideos(http.StatusOK, []string{videoURL(1)}).TrackingEnqueued, "a video that is already tracked counts as being fetched")

		stop()
		a.Clock.Advance(queue.RefreshPause)
		require.True(t, c.trackVideos(http.StatusOK, []string{videoURL(1)}).TrackingEnqueued)
		require.True(t, c.trackAccounts(http.StatusOK, []string{"https://www.tiktok.com/@another.one"}).TrackingEnqueued)
	})
}

// Requirements in docs/coverage.md: 11.1-01
func TestFetchDetail_saysThatAnOverdueVideoWaitsForACollector(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		video, account := "/videos/"+c.track(tiktokLink).String(), "/accounts/"+c.trackAccount(map[string]any{"link": "https://www.tiktok.com/@another.one"}).AccountID.String()
		due := a.Clock.Now().Format("2006-01-02 15:04")
		tags := map[string]string{}
		requireChange := func(detail string) {
			t.Helper()
			for kind, target := range map[string]string{"video": video, "account": account} {
				got := c.send(http.MethodGet, target, nil, "If-None-Match", tags[target]).requireStatus(http.StatusOK)
				require.Equal(t, "The "+kind+" has not been fetched since tracking began"+detail, decode[map[string]any](got)["fetch_detail"])
				tags[target] = got.Header.Get("ETag")
				c.send(http.MethodGet, target, nil, "If-None-Match", tags[target]).requireStatus(http.StatusNotModified)
			}
		}
		requireChange(", and no collector is running; it is due on " + due + " UTC.")
		a.Clock.Advance(6 * time.Second) // the server reads every five seconds whether a collector is running
		requireChange(", and no collector is running; it has been due since " + due + " UTC.")
		_, err := a.Heartbeat(t.Context(), store.NewID(), time.Minute, nil, queue.Form{Platform: link.TikTok, Kind: queue.KindVideo})
		require.NoError(t, err)
		a.Clock.Advance(6 * time.Second)
		requireChange("; it has been due since " + due + " UTC and waits for a collector, or for a source that is paused.")
		a.Clock.Advance(time.Minute)
		requireChange(", and no collector is running; it has been due since " + due + " UTC.")
		a.Clock.Advance(queue.DelayedAfter)
		require.Equal(t, "No collector has fetched the video in time, and no collector is running; it has been due since "+due+" UTC.",
			*decode[client.Video](c.send(http.MethodGet, video, nil, "If-None-Match", tags[video]).requireStatus(http.StatusOK)).FetchDetail)
	})
}

// Requirements in docs/coverage.md: 11.1-01
func TestFetchStatus_hidesTheFetchTimesFromLowerTiers(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierLimited)
	id := c.track(tiktokLink)
	a.fetch(factsWithViews(5))
	v := decode[client.Video](c.send(http.MethodGet, "/videos/"+id.String(), nil).requireStatus(http.StatusOK))
	require.True(t, *v.MetricsMasked)
	require.Equal(t, client.FetchStatusOk, v.FetchStatus)
	require.Nil(t, v.LastAttemptAt)
	require.Nil(t, v.NextFetchAt)
	require.Nil(t, v.FetchDetail)
}

// Requirements in docs/coverage.md: 11.1-01
func TestFetchDetail_hidesTheTimeOfTheNextFetchFromLowerTiers(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	for _, status := range []queue.FetchStatus{queue.FetchPending, queue.FetchFailing, queue.FetchPrivate, queue.FetchRestricted, queue.FetchGone, queue.FetchDelayed} {
		c := a.newCaller(t, store.TierLimited)
		next := store.InstantOf(a.Clock.Now().Add(time.Hour))
		video := store.Video{FetchState: store.FetchState{FetchStatus: status, NextFetchAt: &next}}
		require.NotContains(t, *server.MaskedView.ExplainFetchStatus(&video.FetchState, link.Video), " UTC", status)
		require.Contains(t, *server.FullView.ExplainFetchStatus(&video.FetchState, link.Video), " UTC", status)
		account := server.ToAPIAccount(store.Account{FetchState: video.FetchState}, server.MaskedView)
		require.NotContains(t, *account.FetchDetail, " UTC", status)
		if status != queue.FetchPending {
			continue
		}
		id := c.track(tiktokLink)
		for _, read := range []struct{ target, format string }{{"/videos/" + id.String(), "application/json"}, {"/videos", "application/json"}, {"/videos", "text/csv"}} {
			body := string(c.send(http.MethodGet, read.target, nil, "Accept", read.format).requireStatus(http.StatusOK).body)
			require.Contains(t, body, "The video has not been fetched since tracking began, and no collector is running.", read)
		}
	}
}

// Requirements in docs/coverage.md: 11.1-05
func TestTracking_warnsOfLinksThatNoConfiguredSourceCanFetch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		a := newApp(t, db)
		c := a.newCaller(t, store.TierPremium)
		warnings := func(raw string) []string {
			return decode[client.TrackVideoResult](c.send(http.MethodPost, "/videos", map[string]any{"link": raw}).requireStatus(http.StatusOK)).Warnings
		}
		require.Empty(t, warnings("https://www.facebook.com/reel/1234567890123456"), "without a running collector, the server does not know which links can be fetched, so it must not warn")
		a.Clock.Advance(time.Minute)
		_, err := db.Heartbeat(t.Context(), store.NewID(), time.Minute, nil,
			queue.Form{Platform: link.TikTok, Kind: queue.KindVideo}, queue.Form{Platform: link.TikTok, Kind: queue.KindVideo, ByHandle: true},
			queue.Form{Platform: link.Instagram, Kind: queue.KindVideo, ByHandle: true}, queue.Form{Platform: link.YouTube, Kind: queue.KindVideo, ByHandle: true})
		require.NoError(t, err)
		require.Empty(t, warnings(tiktokLink))
		never := []string{"No configured source can fetch videos of Facebook; the operator can configure one."}
		require.Equal(t, never, warnings("https://www.facebook.com/reel/1234567890123457"))
		require.Empty(t, warnings("https://www.instagram.com/northwind/reel/C3xYz12AbCd/"))
		account := []string{"The configured sources find a video of Instagram only if they know its account. Track the account, or send a link that contains the account's handle. The operator's own videos need no handle."}
		require.Equal(t, account, warnings("https://www.instagram.com/reel/C3xYz12AbCe/"))
		account = []string{"The configured sources find a video of YouTube only if they know its account. Track the account, or send a link that contains the account's handle."}
		require.Equal(t, account, warnings("https://www.youtube.com/shorts/abcdefghijk"))
		bulk := decode[client.TrackVideosResult](c.send(http.MethodPost, "/videos/bulk", map[string]any{"links": []string{
			"https://www.facebook.com/reel/1234567890123458", "https://www.facebook.com/reel/1234567890123459", videoURL(3)}}).requireStatus(http.StatusOK))
		require.Equal(t, never, bulk.Warnings)
		require.False(t, bulk.TrackingEnqueued, "no configured source can fetch two of the videos")
		require.Equal(t, int64(3), c.listVideos("fetch_status=unsupported").Pagination.Total)
		refused := c.send(http.MethodPost, "/refresh/videos", map[string]any{"link": "https://www.facebook.com/reel/1234567890123458"}).requireProblem(http.StatusConflict, server.CodeConflict)
		require.Contains(t, refused.Detail, "No configured source can fetch videos of Facebook; the operator can configure one. No fetch was scheduled.")
		c.send(http.MethodPost, "/refresh/videos", map[string]any{"link": videoURL(3)}).requireStatus(http.StatusAccepted)
		accounts := decode[client.TrackAccountResult](c.send(http.MethodPost, "/accounts", map[string]any{"link": "https://www.tiktok.com/@another.one"}).requireStatus(http.StatusOK))
		require.Equal(t, []string{"No configured source can fetch accounts of TikTok; the operator can configure one."}, accounts.Warnings)

		a.Clock.Advance(time.Minute)
		require.Empty(t, warnings("https://www.facebook.com/reel/1234567890123460"), "after the only collector has ended, the server does not know which links can be fetched, so it must not warn")
	})
}
