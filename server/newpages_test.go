package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

func TestSearchPage_listsTheFirstTrackedAccountsAndNoStoppedVideos(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	var ids []string
	for n := range 8 {
		ids = append(ids, c.trackAccountLink(fmt.Sprintf("https://www.tiktok.com/@abc%d", n)).String())
	}
	// found returns the positions in ids of the accounts to which the page has links, in the order of the page.
	found := func(path string) (out []int) {
		t.Helper()
		for _, link := range findElements(v.visit(path).requireStatus(http.StatusOK).parseHTML(), "a") {
			for n, id := range ids {
				if strings.HasSuffix(attributeValue(link, "href"), "/account/tiktok/"+id) {
					out = append(out, n)
				}
			}
		}
		return out
	}
	require.Equal(t, []int{0, 1, 2, 3, 4, 5}, found("/search?q=abc"))
	c.stopAccounts(http.StatusOK, ids[0])
	require.Equal(t, []int{1, 2, 3, 4, 5, 6}, found("/search?q=abc"), "stopped accounts are left out")
	require.Len(t, found("/account?username=abc"), 7)
	require.Len(t, found("/account?username=abc&include_removed=true"), 8)
	require.Len(t, found("/account?username=abc&platform=tiktok"), 7)
	require.Empty(t, found("/account?username=abc&platform=youtube"))

	video := c.track(videoURL(1)).String()
	search := "/search?q=" + url.QueryEscape(videoURL(1))
	require.Contains(t, string(v.visit(search).requireStatus(http.StatusOK).body), "/video/tiktok/"+video)
	c.stopVideos(http.StatusOK, video)
	require.NotContains(t, string(v.visit(search).requireStatus(http.StatusOK).body), "/video/tiktok/"+video)
}

func TestPages_haveOneLinkToThePageTrackAndThePageTrackHasNone(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	c.track(videoURL(1))
	c.trackAccountLink("https://www.tiktok.com/@someone")
	for path, want := range map[string]int{"/video": 1, "/account": 1, "/": 1, "/track": 0, "/track?links=youtu.be": 0} {
		page := v.visit(path).requireStatus(http.StatusOK)
		require.Equal(t, want, strings.Count(string(page.body), `href="/track"`), path)
	}
	require.NotContains(t, string(v.post("/track", "links", videoURL(1)).requireStatus(http.StatusOK).body), `href="/track"`)
}

func TestChosenVideos_saysHowManyVideosItDoesNotName(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	chosen := url.Values{"back": {"/video"}}
	fields := []string{"back", "/video"}
	for n := range 12 {
		id := c.track(videoURL(n)).String()
		chosen.Add("video", id)
		fields = append(fields, "video", id)
	}
	require.Contains(t, mainText(v.visit("/video/chosen?"+chosen.Encode()).requireStatus(http.StatusOK)), "and 2 other videos")
	require.NotContains(t, mainText(v.visit("/video/chosen?back=%2Fvideo&video="+fields[3]).requireStatus(http.StatusOK)), "other video")
	stopped := mainText(v.post("/video/chosen/stop", fields...).requireStatus(http.StatusOK))
	require.Contains(t, stopped, "Tracking stopped: 12 videos")
	require.Contains(t, stopped, "and 2 other videos")
}

func TestChosenVideos_cannotBeChangedByOtherSites(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	id := c.track(videoURL(1)).String()
	v.headers = []string{"Sec-Fetch-Site", "cross-site"}
	for _, action := range []string{"stop", "track", "refresh", "collect"} {
		v.post("/video/chosen/"+action, "video", id, "back", "/video").requireStatus(http.StatusForbidden)
	}
	require.False(t, decode[client.Video](c.send(http.MethodGet, "/videos/"+id, nil).requireStatus(http.StatusOK)).Removed)
}

func TestAccountComparison_showsTheNumbersOfThePeriodAndRemovesTheNamedAccount(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	query := url.Values{}
	var ids []string
	for _, name := range []string{"ann", "bob", "eve"} {
		ids = append(ids, c.trackAccountLink("https://www.tiktok.com/@"+name).String())
		query.Add("account", ids[len(ids)-1])
	}
	a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return ingest.AccountFacts{Followers: new(int64(7))} })
	c.track("https://www.tiktok.com/@ann/video/7300000000000000099")
	a.fetch(factsWithViews(4321))
	a.Clock.Advance(48 * time.Hour)
	for _, id := range ids {
		c.send(http.MethodPost, "/refresh/accounts", map[string]string{"link": id}).requireStatus(http.StatusAccepted)
	}
	a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return ingest.AccountFacts{Followers: new(int64(17))} })
	page := v.visit("/compare?" + query.Encode()).requireStatus(http.StatusOK)
	require.Contains(t, mainText(page), "17")
	require.Contains(t, numbersIn(page.parsePage()), "4321")
	past := v.visit("/compare?" + query.Encode() + "&start=" + a.daysAgo(5) + "&end=" + a.daysAgo(2)).requireStatus(http.StatusOK)
	require.Contains(t, numbersIn(past.parsePage()), "7")
	require.Contains(t, numbersIn(past.parsePage()), "4321")
	require.NotContains(t, numbersIn(past.parsePage()), "17", "the numbers of today are not those of the period")
	// For each account, the page has a link to the same comparison without this account.
	var removed []string
	for _, link := range findElements(page.parseHTML(), "a") {
		target, err := url.Parse(attributeValue(link, "href"))
		require.NoError(t, err)
		left := target.Query()["account"]
		if len(left) != len(ids)-1 {
			continue
		}
		for _, id := range ids {
			if !slices.Contains(left, id) {
				removed = append(removed, id)
			}
		}
	}
	require.Equal(t, ids, removed)
}

// TestChosenVideos_canRefreshTheVideosThatTheRateLimitLeftOut requests a refresh of chosen videos. Because of the rate limit, the server refuses some of
// them. The page must then have a button that requests a refresh of only the refused videos.
func TestChosenVideos_canRefreshTheVideosThatTheRateLimitLeftOut(t *testing.T) {
	t.Parallel()
	a, rates := newAppWithExceededLimit(t)
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	var ids []string
	for _, r := range c.trackVideos(http.StatusOK, videoURLs(1, 7)).Results {
		ids = append(ids, r.VideoID.String())
	}
	a.fetch(factsWithViews(10))
	a.Clock.Advance(5 * time.Hour)
	rates.limitName.Store("refreshVideo")
	for _, round := range []struct {
		allowed         int64
		requested, left string
	}{{3, "3 videos", "4 videos"}, {0, "", "4 videos"}, {3, "3 videos", "1 video"}, {1, "1 video", ""}} {
		fields := []string{"back", "/video?platform=tiktok"}
		for _, id := range ids {
			fields = append(fields, "video", id)
		}
		rates.left.Store(round.allowed)
		page := v.post("/video/chosen/refresh", fields...).requireStatus(http.StatusOK)
		text := mainText(page)
		ids = ids[round.allowed:]
		require.Equal(t, round.requested != "", strings.Contains(text, "Refresh requested: "+round.requested+" New numbers"), text)
		require.NotContains(t, text, "less than 4 hours old")
		var offered []string
		for _, field := range findElements(page.parseHTML(), "input") {
			if attributeValue(field, "name") == "video" {
				offered = append(offered, attributeValue(field, "value"))
			}
		}
		if round.left == "" {
			require.NotContains(t, text, "Not refreshed")
			require.NotContains(t, text, "Refresh the other")
			require.Empty(t, offered)
			continue
		}
		require.Contains(t, text, "Not refreshed: "+round.left+" Your organisation can do this at most")
		require.Contains(t, text, "Try again in 42 seconds.")
		require.Contains(t, text, "Refresh the other "+round.left)
		require.Equal(t, ids, offered)
		require.Equal(t, "/video?platform=tiktok", fieldValue(page.parseHTML(), "back"))
	}
	require.Empty(t, ids)
}

func TestChosenVideos_nameTenDifferentReasonsAndTheNumberOfTheOthers(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	fields, unknown := []string{"back", "/video"}, []string{}
	for range 12 {
		unknown = append(unknown, store.NewID().String())
		fields = append(fields, "video", unknown[len(unknown)-1])
	}
	// The reasons differ, because each one has the id of its video.
	text := mainText(v.post("/video/chosen/refresh", fields...).requireStatus(http.StatusOK))
	require.Contains(t, text, "Not refreshed: 12 videos")
	for n, id := range unknown {
		require.Equal(t, n < 10, strings.Contains(text, id+" Your organisation tracks no video "+id), n)
	}
	require.Contains(t, text, "and 2 other videos")
	eleven := mainText(v.post("/video/chosen/refresh", fields[:24]...).requireStatus(http.StatusOK))
	require.Contains(t, eleven, "and 1 other video")
	require.NotContains(t, eleven, "and 1 other videos")
	require.NotContains(t, mainText(v.post("/video/chosen/refresh", fields[:22]...).requireStatus(http.StatusOK)), "other video")

	// All 12 videos have the same reason. The page then shows the reason once for all videos, and lists none of them.
	text = mainText(v.post("/video/chosen/track", fields...).requireStatus(http.StatusOK))
	require.Contains(t, text, "Not tracked: 12 videos Your organisation has no video with this id.")
	require.NotContains(t, text, "other videos")
}

func TestComparison_saysThatAnAccountOrVideoIsStopped(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	accounts, videos := url.Values{}, url.Values{}
	for _, name := range []string{"ann", "bob"} {
		accounts.Add("account", c.trackAccountLink("https://www.tiktok.com/@"+name).String())
	}
	a.fetchProfiles(func(target queue.Target) ingest.AccountFacts {
		id := map[string]string{"ann": "7300000000000000098", "bob": "7300000000000000099"}[target.Handle]
		return ingest.AccountFacts{Followers: new(int64(7)), Listed: true, Videos: []ingest.FoundVideo{{ID: id, Link: "https://www.tiktok.com/@" + target.Handle + "/video/" + id}}}
	})
	a.fetch(factsWithViews(4321))
	for _, video := range c.listVideos("").Data {
		videos.Add("video", video.AdID.String())
	}
	compare := func(query url.Values) string {
		t.Helper()
		return mainText(v.visit("/compare?" + query.Encode()).requireStatus(http.StatusOK))
	}
	require.Contains(t, compare(accounts), "2@bobTikTok · 1 tracked video7")
	require.NotContains(t, compare(videos), "Not tracked")

	a.Clock.Advance(48 * time.Hour)
	c.stopAccounts(http.StatusOK, accounts["account"][1])
	stopped := compare(accounts)
	require.Contains(t, stopped, "1@annTikTok · 1 tracked video7")
	require.Contains(t, stopped, "2@bobTikTok · 0 tracked videos · Not tracked70 since", "the last known number of followers stays")
	require.Contains(t, stopped, "–– 1 video no longer tracked", "no video of a stopped account is in the sum of its views")
	require.Equal(t, 1, strings.Count(compare(videos), "Not tracked"), compare(videos))
	past := compare(url.Values{"account": accounts["account"], "start": {a.daysAgo(5)}, "end": {a.daysAgo(2)}})
	require.Contains(t, past, "2@bobTikTok · 0 tracked videos · Not tracked7–4,321–", "the numbers of days before the stop stay")
}
