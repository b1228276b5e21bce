package server_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// trackVideos sends POST /videos/bulk and requires the given status. The videos are added to the collections with the ids in collectionIDs.
func (c *caller) trackVideos(status int, links []string, collectionIDs ...string) client.TrackVideosResult {
	c.t.Helper()
	body := map[string]any{"links": links}
	if collectionIDs != nil {
		body["label_ids"] = collectionIDs
	}
	return decode[client.TrackVideosResult](c.send(http.MethodPost, "/videos/bulk", body).requireStatus(status))
}

// videoURLs returns videoURL(n) for each number n from first to last.
func videoURLs(first, last int) []string {
	var links []string
	for n := first; n <= last; n++ {
		links = append(links, videoURL(n))
	}
	return links
}

// claimDue claims all due TikTok videos or accounts, as a collector does. It counts the claimed items by lane. The lane of an item is its
// priority in the queue.
func (a *app) claimDue(kind queue.Kind) map[queue.Lane]int {
	a.t.Helper()
	due := map[queue.Lane]int{}
	for _, lane := range queue.Lanes {
		c, err := a.Claim(a.t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, kind, 1000, time.Hour, lane))
		require.NoError(a.t, err)
		if len(c.Targets) > 0 {
			due[lane] = len(c.Targets)
		}
	}
	return due
}

// Requirements in docs/coverage.md: 3-01, 3-05, 3-12, 3-13, 4.4-04, 4.4-05, 4.4-06, 4.4-07, 4.4-08, 4.4-10, 4.4-11, 4.4-12, 4.4-17, 4.4-18
// Requirements in docs/coverage.md: 4.4-19, 7-02, 7-03, 7-04, 7-05, 7-08, 11.10-01, 11.10-02
func TestBulkTrackVideos_returnsAResultForEachLink(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		known := c.track(videoURL(1))

		t.Run("status 200 if every link was tracked", func(t *testing.T) {
			got := c.trackVideos(http.StatusOK, []string{videoURL(1), videoURL(2)})
			require.True(t, got.Success)
			require.Equal(t, client.TrackSummary{Total: 2, Succeeded: 2, AlreadyExists: 1}, got.Summary)
			require.True(t, got.TrackingEnqueued)
			require.Empty(t, got.Warnings)
			require.NotNil(t, got.Warnings)
			require.Nil(t, got.PendingTmvQueue)
			require.Equal(t, client.TrackVideosEntry{Type: "video", URL: videoURL(1), Status: "already_tracked", Positions: []int32{0}, Success: true, VideoID: &known, WasExisting: true}, got.Results[0])
			second := got.Results[1]
			require.Equal(t, client.TrackStatus("tracked"), second.Status)
			require.False(t, second.WasExisting)
			require.Equal(t, *second.VideoID, c.track(videoURL(2)))
		})

		t.Run("status 207 if some links were tracked", func(t *testing.T) {
			got := c.trackVideos(http.StatusMultiStatus, []string{"https://example.com/x", videoURL(3), "", "https://www.tiktok.com/@northwind"})
			require.False(t, got.Success)
			require.Equal(t, client.TrackSummary{Total: 4, Succeeded: 1, Failed: 3}, got.Summary)
			require.True(t, got.TrackingEnqueued)
			for i, code := range map[int]string{0: "unsupported_platform", 2: "invalid_url", 3: "wrong_kind"} {
				e := got.Results[i]
				require.Equal(t, client.TrackStatusFailed, e.Status)
				require.Equal(t, code, string(*e.Code))
				require.NotEmpty(t, *e.Error)
				require.False(t, *e.Retryable)
				require.False(t, e.Success)
				require.Nil(t, e.VideoID)
			}
		})

		t.Run("status 422 if no link was tracked", func(t *testing.T) {
			a.platforms.redirect("https://vm.tiktok.com/ZMdown0001/", "")
			a.platforms.redirect("https://vm.tiktok.com/ZMbusy0001/", respond429)
			a.platforms.redirect("https://vm.tiktok.com/ZMself0001/", "https://vm.tiktok.com/ZMself0001/")
			want := []string{"invalid_url", "platform_unavailable", "rate_limited", "link_unresolved", "not_found", "unsupported_link"}
			got := c.trackVideos(http.StatusUnprocessableEntity, []string{"nonsense", "https://vm.tiktok.com/ZMdown0001/", "https://vm.tiktok.com/ZMbusy0001/",
				"https://vm.tiktok.com/ZMself0001/", "https://vm.tiktok.com/ZMdead0001/", "https://www.tiktok.com/about"})
			require.Equal(t, client.TrackSummary{Total: 6, Failed: 6, Retryable: 3}, got.Summary)
			require.False(t, got.TrackingEnqueued)
			for i, code := range want {
				require.Equal(t, code, string(*got.Results[i].Code))
				require.Equal(t, i >= 1 && i <= 3, *got.Results[i].Retryable, code)
			}
		})

		t.Run("several links of one video", func(t *testing.T) {
			a.platforms.redirect("https://vm.tiktok.com/ZMsame0001/", videoURL(4))
			got := c.trackVideos(http.StatusMultiStatus, []string{
				videoURL(4) + "?is_from_webapp=1", videoURL(4), "https://vm.tiktok.com/ZMsame0001/", "m.tiktok.com/v/7300000000000000004.html", "bad", "bad"})
			require.Equal(t, client.TrackSummary{Total: 2, Succeeded: 1, Failed: 1}, got.Summary)
			require.Equal(t, videoURL(4)+"?is_from_webapp=1", got.Results[0].URL, "if several links lead to one video, the result must contain the first link")
			require.Equal(t, "bad", got.Results[1].URL)
			require.Equal(t, []int32{0, 1, 2, 3}, got.Results[0].Positions)
			require.Equal(t, []int32{4, 5}, got.Results[1].Positions)
			require.Equal(t, []string{"2 links were sent more than once. The entry of each link lists all its positions in the request."}, got.Warnings)
		})

		t.Run("tracking a stopped video again", func(t *testing.T) {
			c.send(http.MethodDelete, "/videos/"+known.String(), nil).requireStatus(http.StatusOK)
			got := c.trackVideos(http.StatusOK, []string{videoURL(1)})
			require.Equal(t, client.TrackStatusTracked, got.Results[0].Status)
			require.True(t, got.Results[0].WasExisting)
			require.Equal(t, known, *got.Results[0].VideoID)
		})
	})
}

// Requirements in docs/coverage.md: 4.4-13
func TestBulkTrackVideos_retryableLinkSucceedsWhenSentAgain(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		const short = "https://vm.tiktok.com/ZMdown0001/"
		c := a.newCaller(t, store.TierPremium)
		a.platforms.redirect(short, "")
		first := c.trackVideos(http.StatusMultiStatus, []string{videoURL(1), short})
		require.Equal(t, int32(1), first.Summary.Retryable)
		require.True(t, *first.Results[1].Retryable)
		a.platforms.redirect(short, videoURL(2))
		again := c.trackVideos(http.StatusOK, []string{first.Results[1].URL})
		require.Equal(t, client.TrackStatusTracked, again.Results[0].Status)
		require.Equal(t, *again.Results[0].VideoID, c.video(videoURL(2)).AdID)
		require.Len(t, c.listVideos("").Data, 2, "after the failed link was sent again, both videos must be tracked")
	})
}

// Requirements in docs/coverage.md: 3-02, 4.4-03
func TestBulkTrackVideos_addsEachVideoToTheGivenCollections(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(1), "collection_names": []string{"Launch"}}).requireStatus(http.StatusOK)
		label := (c.listVideos("").Data[0].LabelIds)[0].String()
		c.trackVideos(http.StatusOK, videoURLs(2, 4), label)
		require.Len(t, c.listVideos("collections=Launch").Data, 4)
		require.Len(t, c.listVideos("collections=other&collections=Launch").Data, 4)

		p := c.send(http.MethodPost, "/videos/bulk", map[string]any{"links": videoURLs(5, 6), "label_ids": []string{label, unknownID}}).
			requireProblem(http.StatusNotFound, server.CodeNotFound)
		require.Contains(t, p.Detail, unknownID)
		require.Equal(t, "/label_ids/1", *p.Errors[0].Pointer)
		require.Len(t, c.listVideos("").Data, 4, "if a collection is unknown, the server must track none of the links")
	})
}

// Requirements in docs/coverage.md: 4.4-06, 4.4-07, 4.4-14, 4.4-15, 8-08
func TestBulkTrackVideos_fetchesUpTo50VideosImmediately(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		got := c.trackVideos(http.StatusOK, append(videoURLs(1, 50), videoURL(1)))
		require.Len(t, got.Results, 50)
		require.True(t, got.TrackingEnqueued)
		require.Equal(t, map[queue.Lane]int{queue.LaneInteractive: 50}, a.claimDue(queue.KindVideo))

		got = c.trackVideos(http.StatusOK, videoURLs(101, 151))
		require.False(t, got.TrackingEnqueued)
		require.Len(t, got.Warnings, 1)
		require.Equal(t, map[queue.Lane]int{queue.LanePremium: 51}, a.claimDue(queue.KindVideo), "if a request has more than 50 links, its videos must be in the lane 'premium', not in the lane 'interactive'")
	})
}

// Requirements in docs/coverage.md: 4.4-07, 4.4-08, 4.4-09, 4.4-16, 5-03
func TestBulkTrackVideos_fetchesOnly5VideosOfARequestIfTheOrganisationHasNoSubscription(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierLimited)
		require.NoError(t, a.SetSubscription(t.Context(), c.org.ID, store.SubscriptionNone))

		withinAllowance := c.trackVideos(http.StatusOK, videoURLs(1, 5))
		require.True(t, withinAllowance.TrackingEnqueued)
		require.Empty(t, withinAllowance.Warnings)
		require.Equal(t, &client.PendingQueue{Accounts: []client.PendingItem{}, Videos: []client.PendingItem{}}, withinAllowance.PendingTmvQueue)

		beyondAllowance := c.trackVideos(http.StatusMultiStatus, append([]string{"bad"}, videoURLs(11, 17)...))
		require.False(t, beyondAllowance.TrackingEnqueued)
		require.Len(t, beyondAllowance.Warnings, 1)
		require.Contains(t, beyondAllowance.Warnings[0], "first 5")
		require.Contains(t, beyondAllowance.Warnings[0], "other 2")
		require.Equal(t, []client.PendingItem{{ID: *beyondAllowance.Results[6].VideoID, Platform: "tiktok"}, {ID: *beyondAllowance.Results[7].VideoID, Platform: "tiktok"}},
			beyondAllowance.PendingTmvQueue.Videos)
		require.Equal(t, map[queue.Lane]int{queue.LaneInteractive: 10}, a.claimDue(queue.KindVideo))
	})
}

func TestBulkTrackVideos_listsPendingVideosOfEarlierRequests(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierLimited)
		require.NoError(t, a.SetSubscription(t.Context(), c.org.ID, store.SubscriptionNone))
		first := c.trackVideos(http.StatusOK, videoURLs(1, 12))
		require.Len(t, first.PendingTmvQueue.Videos, 7)

		again := c.trackVideos(http.StatusOK, videoURLs(1, 12))
		require.Equal(t, first.PendingTmvQueue, again.PendingTmvQueue)
		require.Equal(t, first.Warnings, again.Warnings)
		require.Equal(t, int32(12), again.Summary.AlreadyExists)
		require.False(t, again.TrackingEnqueued)

		onlyPending := c.trackVideos(http.StatusOK, videoURLs(8, 10))
		require.Len(t, onlyPending.PendingTmvQueue.Videos, 3)
		require.False(t, onlyPending.TrackingEnqueued, "no video of the request is fetched")
		require.Equal(t, []string{"Without an active subscription only the first 5 items of a request are fetched; no data is collected for the items in pendingTmvQueue: 3."}, onlyPending.Warnings)

		c.trackVideos(http.StatusOK, videoURLs(21, 25))
		fetched := c.trackVideos(http.StatusOK, append(videoURLs(1, 5), videoURLs(21, 25)...))
		require.Empty(t, fetched.PendingTmvQueue.Videos)
		require.False(t, fetched.TrackingEnqueued)
		require.Equal(t, []string{"Without an active subscription only the first 5 items of a request are fetched; this request fetches nothing for the other 5, which were tracked before."}, fetched.Warnings)

		require.NoError(t, a.SetSubscription(t.Context(), c.org.ID, store.SubscriptionActive))
		a.Clock.Advance(2 * time.Second) // requests see the new subscription within a second
		subscribed := c.trackVideos(http.StatusOK, videoURLs(1, 12))
		require.Nil(t, subscribed.PendingTmvQueue)
		require.Empty(t, subscribed.Warnings)
		require.True(t, subscribed.TrackingEnqueued)
	})
}

func TestBulkTrackVideos_fetchesAllVideosIfTheSubscriptionHasJustBegun(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		require.NoError(t, a.SetSubscription(t.Context(), c.org.ID, store.SubscriptionNone))
		c.trackVideos(http.StatusOK, videoURLs(1, 1)) // the server now has the organisation in memory, without a subscription
		require.NoError(t, a.SetSubscription(t.Context(), c.org.ID, store.SubscriptionActive))
		got := c.trackVideos(http.StatusOK, videoURLs(2, 9))
		require.Nil(t, got.PendingTmvQueue)
		require.Empty(t, got.Warnings)
		require.True(t, got.TrackingEnqueued)
		require.Zero(t, storetest.Column[int64](t, a.DB, "SELECT COUNT(*) FROM videos WHERE pending")[0])
	})
}

func TestBulkTrackVideos_mentionsTheScheduledUpdateOnlyIfAVideoIsNew(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.trackVideos(http.StatusOK, videoURLs(1, 40))
	c.trackVideos(http.StatusOK, videoURLs(41, 60))
	again := c.trackVideos(http.StatusOK, videoURLs(1, 60))
	require.Empty(t, again.Warnings, "nothing is fetched, because all videos are tracked already")
	require.False(t, again.TrackingEnqueued)
	require.Contains(t, fmt.Sprint(c.trackVideos(http.StatusOK, videoURLs(1, 61)).Warnings), "scheduled update")
}

func TestBulkTrackVideos_fetchesOneVideoIfPreviewAllowanceIsOne(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.PreviewAllowance = 1 })
	c := a.newCaller(t, store.TierPremium)
	require.NoError(t, a.SetSubscription(t.Context(), c.org.ID, store.SubscriptionNone))
	require.Len(t, c.trackVideos(http.StatusOK, videoURLs(1, 3)).PendingTmvQueue.Videos, 2)
}

// Requirements in docs/coverage.md: 4.4-02, 8-06
func TestBulkTrackVideos_refusesTooManyLinks(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	require.Equal(t, int32(500), c.trackVideos(http.StatusOK, videoURLs(1, 500)).Summary.Total)
	long := "https://www.tiktok.com/" + strings.Repeat("a", 3000)
	failed := c.trackVideos(http.StatusUnprocessableEntity, []string{long}).Results[0]
	require.Equal(t, "invalid_url", string(*failed.Code), "a link that is too long must get the code invalid_url in its result, and the request as a whole must not be refused")
	require.Equal(t, long[:2048]+"…", failed.URL, "the result must shorten a long link to 2048 characters")
	for name, body := range map[string]any{
		"no links":                             map[string]any{"links": []string{}},
		"501 links":                            map[string]any{"links": videoURLs(1, 501)},
		"a body without links":                 map[string]any{},
		"a number as a link":                   map[string]any{"links": []any{7}},
		"null as a link":                       map[string]any{"links": []any{nil}},
		"links that are not an array":          map[string]any{"links": tiktokLink},
		"a name instead of an id in label_ids": map[string]any{"links": []string{tiktokLink}, "label_ids": []string{"Launch"}},
	} {
		require.NotEmpty(t, c.send(http.MethodPost, "/videos/bulk", body).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest).Errors, name)
	}
}

// stopVideos sends DELETE /videos/bulk and requires the given status. idsOrLinks contains ids or links of videos.
func (c *caller) stopVideos(status int, idsOrLinks ...string) client.StopResult {
	c.t.Helper()
	return decode[client.StopResult](c.send(http.MethodDelete, "/videos/bulk", map[string]any{"ids": idsOrLinks}).requireStatus(status))
}

// Requirements in docs/coverage.md: 3-06, 4.5-02, 4.5-03, 4.5-04, 4.5-05, 4.5-06, 7-06, 7-07
func TestBulkStopVideos_acceptsIDsAndLinks(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		var ids []string
		for n := range 6 {
			ids = append(ids, c.track(videoURL(n)).String())
		}
		a.fetch(factsWithViews(100))
		t.Run("status 200 if all entries were stopped; duplicate entries count once", func(t *testing.T) {
			got := c.stopVideos(http.StatusOK, ids[0], videoURL(0)+"?x=1", videoURL(1), strings.ToUpper(ids[1]))
			require.True(t, got.Success)
			require.Equal(t, client.StopSummary{Total: 2, Succeeded: 2}, got.Summary)
			require.Equal(t, ids[0], got.Results[0].ID.String())
			require.Nil(t, got.Results[0].URL)
			require.Equal(t, ids[1], got.Results[1].ID.String())
			require.Equal(t, videoURL(1), *got.Results[1].URL)
			require.Equal(t, client.EntryTypeVideo, got.Results[1].Type)
			for _, id := range ids[:2] {
				require.True(t, c.video(id).Removed)
				require.Equal(t, int64(100), *c.videoHistory(id, "")[0].Views, "the history of a stopped video must be kept")
			}
		})
		t.Run("status 404 if some links lead to no tracked video", func(t *testing.T) {
			p := c.send(http.MethodDelete, "/videos/bulk", map[string]any{"ids": []string{ids[2], videoURL(77), videoURL(3), "nonsense", videoURL(0)}}).
				requireProblem(http.StatusNotFound, server.CodeNotFound)
			var pointers []string
			for _, e := range p.Errors {
				pointers = append(pointers, *e.Pointer)
			}
			require.Equal(t, []string{"/ids/1", "/ids/3", "/ids/4"}, pointers, "the error must list the id of the stopped video, at /ids/4")
			require.Contains(t, p.Detail, videoURL(77))
			require.Len(t, c.listVideos("").Data, 4)
		})
		t.Run("status 207 if an id is unknown", func(t *testing.T) {
			got := c.stopVideos(http.StatusMultiStatus, ids[2], unknownID, videoURL(3))
			require.False(t, got.Success)
			require.Equal(t, client.StopSummary{Total: 3, Succeeded: 2, Failed: 1}, got.Summary)
			require.False(t, got.Results[1].Success)
			require.NotEmpty(t, *got.Results[1].Error)
			require.Len(t, c.listVideos("").Data, 2)
			require.Equal(t, int32(1), c.stopVideos(http.StatusMultiStatus, unknownID).Summary.Failed)
		})
		t.Run("status 503 if resolving a short link fails temporarily", func(t *testing.T) {
			a.platforms.redirect("https://vm.tiktok.com/ZMdown0001/", "")
			c.send(http.MethodDelete, "/videos/bulk", map[string]any{"ids": []string{ids[4], "https://vm.tiktok.com/ZMdown0001/"}}).
				requireProblem(http.StatusServiceUnavailable, server.CodeLinkUnresolved)
			require.Len(t, c.listVideos("").Data, 2)
		})
	})
}

// Requirements in docs/coverage.md: 4.5-01, 8-07
func TestBulkStopVideos_refusesTooManyEntries(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.trackVideos(http.StatusOK, videoURLs(1, 500))
	require.Equal(t, int32(500), c.stopVideos(http.StatusOK, videoURLs(1, 500)...).Summary.Succeeded)
	p := c.send(http.MethodDelete, "/videos/bulk", map[string]any{"ids": videoURLs(1, 500)}).requireProblem(http.StatusNotFound, server.CodeNotFound)
	require.Len(t, p.Errors, 500, "the response must list every unknown link")
	for name, ids := range map[string][]string{"no ids": {}, "501 ids": videoURLs(1, 501), "an empty id": {""}, "an id of 2049 characters": {strings.Repeat("a", 2049)}} {
		p := c.send(http.MethodDelete, "/videos/bulk", map[string]any{"ids": ids}).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Contains(t, *p.Errors[0].Pointer, "/ids", name)
	}
}

func TestBulkTrackVideos_mergesShortLinksOfTheSameVideo(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	var links []string
	for n := range 100 {
		short := fmt.Sprintf("https://vm.tiktok.com/ZM%07d/", n)
		a.platforms.redirect(short, videoURL(n/2))
		links = append(links, short)
	}
	got := c.trackVideos(http.StatusOK, links)
	require.Equal(t, int32(50), got.Summary.Total)
	for i, e := range got.Results {
		require.Equal(t, links[2*i], e.URL, strconv.Itoa(i))
	}
}
