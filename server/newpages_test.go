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
	// Each account has a link to the same comparison without it.
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
