package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

func TestVideoPage_hidesTheOutlierMultiplierOfAStoppedVideo(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	_, videos := createDashboardData(a, c)
	v, page := c.newSignedInVisitor(t), "/video/tiktok/"+videos[2].String()
	require.Contains(t, string(v.visit(page).body), "the median of its account, 2,333 views")
	v.post(page + "/stop").requireStatus(http.StatusSeeOther)
	require.NotContains(t, string(v.visit(page).body), "median")
	require.NotContains(t, textOf(v.visit("/video?include_removed=true&fetch_status=stopped&columns=outlier_multiplier").parsePage()), "×")
}

func TestVideoPage_waitsForNewNumbersAfterTrackingIsRestarted(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	_, videos := createDashboardData(a, c)
	v, page := c.newSignedInVisitor(t), "/video/tiktok/"+videos[0].String()
	v.post(page + "/stop").requireStatus(http.StatusSeeOther)
	again := v.post(page + "/track").requireStatus(http.StatusSeeOther).Header.Get("Location")
	text := textOf(v.visit(again).parsePage())
	require.Contains(t, text, "Waiting for new numbers")
	require.Contains(t, text, "Tracking was started. The numbers so far are kept.")
	require.NotContains(t, text, "after a few seconds")
	require.Contains(t, textOf(v.visit("/video").parsePage()), "Waiting for new numbers")
	fresh := c.track(videoURL(9))
	require.Contains(t, textOf(v.visit("/video/tiktok/"+fresh.String()).parsePage()), "Waiting for first numbers")
}

func TestVideoPage_gainAgreesWithTheGainOfACollection(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, videos := createDashboardData(a, c)
	v := c.newSignedInVisitor(t)
	began := a.daysAgo(4) // the numbers in the database begin 5 days ago and end 2 days ago
	ended := a.Clock.Now().UTC().AddDate(0, 0, -2).Format(time.DateOnly)
	require.Contains(t, textOf(v.visit("/video/tiktok/"+videos[0].String()).parsePage()), "+333 from "+began+" to "+ended)
	require.Contains(t, textOf(v.visit("/collection/"+collection.String()).parsePage()), "+333 since "+began)

	c.send(http.MethodPost, "/videos/bulk", map[string]any{"links": []string{videoURL(7)}, "label_ids": []uuid.UUID{collection}}).requireStatus(http.StatusOK)
	a.fetch(func(target queue.Target) ingest.VideoFacts {
		return ingest.VideoFacts{Views: new(int64(7000)), Username: new("northwind.studio"), AccountID: new("7")}
	})
	text := textOf(v.visit("/collection/" + collection.String()).parsePage())
	require.NotContains(t, text, "since "+a.daysAgo(-1), "a video with numbers of only one day must have no gain")
	report := decode[client.ReportSummary](c.send(http.MethodPost, "/collections/"+collection.String()+"/reports", map[string]any{}).requireStatus(http.StatusCreated))
	require.NotContains(t, textOf(v.visit("/collection/report/"+report.ID.String()).parsePage()), "since "+a.daysAgo(-1), "an unknown gain must not name a day that has not begun")
}

func TestOverview_showsTheDateOfOldGains(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	_, videos := createDashboardData(a, c)
	a.Clock.Advance(5 * 24 * time.Hour)
	a.fetch(func(queue.Target) ingest.VideoFacts { return ingest.VideoFacts{Views: new(int64(9000))} })
	a.Clock.Advance(3 * 24 * time.Hour)
	v := c.newSignedInVisitor(t)
	updated := c.listVideos("limit=1").Data[0].LatestUpdatedAt.UTC()
	require.Contains(t, textOf(v.visit("/").parsePage()), "until "+updated.Format(time.DateOnly))
	require.Contains(t, textOf(v.visit("/video/tiktok/"+videos[0].String()).parsePage()), "up to "+updated.Format("2006-01-02 15:04 UTC"))
}

func TestVideoLists_showTheDateOfOldGains(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	begin := store.DateOf(a.Clock.Now())
	collection, videos := createDashboardData(a, c)
	a.Clock.Advance(5 * 24 * time.Hour)
	a.fetch(func(queue.Target) ingest.VideoFacts { return ingest.VideoFacts{Views: new(int64(9000))} })
	until := " until " + a.Clock.Now().UTC().Format(time.DateOnly)
	c.stopVideos(http.StatusOK, videos[0].String())
	v := c.newSignedInVisitor(t)
	paths := []string{"/video?columns=views_gained_7d,increase_7d&include_removed=true", "/collection/" + collection.String() + "?columns=views_gained_7d,increase_7d",
		c.shareCollection(collection, "public", map[string]any{"display_settings": map[string]any{"metrics": []string{"views_gained_7d", "increase_7d"}}})}
	for _, path := range paths {
		require.NotContains(t, textOf(v.visit(path).parsePage()), until)
	}
	a.Clock.Advance(3 * 24 * time.Hour)
	for _, path := range paths {
		for _, name := range []string{"Gained 7 d", "Change 7 d"} {
			for _, cell := range findElements(v.visit(path).parsePage(), "td") {
				if attributeValue(cell, "data-label") == name {
					require.Contains(t, textOf(cell), until, path)
				}
			}
		}
	}
	require.Equal(t, 6, strings.Count(textOf(v.visit(paths[0]).parsePage()), until))
	report := "/collection/report/" + c.createReport(collection).String()
	for path, want := range map[string]int{"/collection/" + collection.String(): 3, report: 3} {
		require.Equal(t, want, strings.Count(textOf(v.visit(path).parsePage()), " since "+(begin+1).String()+until), path)
	}
}

func TestPages_sayUntilWhichDayAGainCounts(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := c.createNamedCollection("Launch")
	c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(1), "collection_ids": []uuid.UUID{collection}}).requireStatus(http.StatusOK)
	for day := range int64(2) {
		a.fetch(func(queue.Target) ingest.VideoFacts {
			return ingest.VideoFacts{Views: new(1000 + 100*day), Username: new("northwind.studio"), AccountID: new("7")}
		})
		a.Clock.Advance(24 * time.Hour)
	}
	// The last fetch was yesterday.
	video := c.listVideos("").Data[0]
	account := "/account/tiktok/" + video.LinkedAccountID.String()
	period := "&start=" + a.daysAgo(1) + "&end=" + a.daysAgo(0)
	until := " until " + a.daysAgo(1)
	v := c.newSignedInVisitor(t)
	pages := []string{"/video/tiktok/" + video.AdID.String() + "?" + period, account + "?" + period, "/collection/" + collection.String() + "?" + period, "/compare?account=" + video.LinkedAccountID.String() + period}
	for _, page := range pages {
		text := mainText(v.visit(page).requireStatus(http.StatusOK))
		require.Contains(t, text, "+100", page)
		require.NotContains(t, text, until, "the fetch of today can still follow: %s", page)
	}
	saved := decode[client.ReportSummary](c.send(http.MethodPost, "/collections/"+collection.String()+"/reports", map[string]any{"start_date": a.daysAgo(1)}).requireStatus(http.StatusCreated))
	for _, page := range []string{"/collection/report/" + saved.ID.String(), c.shareReport(collection, saved.ID, map[string]any{"access": "public"})} {
		require.Contains(t, mainText(v.visit(page).requireStatus(http.StatusOK)), "+100"+until, page)
	}
	a.Clock.Advance(24 * time.Hour)
	for n, page := range pages {
		text := mainText(v.visit(page).requireStatus(http.StatusOK))
		require.Contains(t, text, until, page)
		if n < 3 {
			require.Regexp(t, `\+100 until`, text, page)
		}
	}
}

func TestVideoAndAccountPages_sayWhyNumbersAreMissing(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	begin := store.DateOf(a.Clock.Now())
	_, videos := createDashboardData(a, c)
	v := c.newSignedInVisitor(t)
	days := fmt.Sprintf("Of the days without a number, 24 were before %s, when tracking began, 2 were after the last fetch on %s.", begin, begin+3)
	page := "/video/tiktok/" + videos[2].String()
	require.Contains(t, textOf(v.visit(page).parsePage()), days)
	require.NotContains(t, textOf(v.visit(page).parsePage()), "are unknown")
	require.Contains(t, textOf(v.visit(page+"?metric=likes").parsePage()), days+" Likes are unknown on 4 of the days with numbers: the source did not give them, or the platform hid them.")

	video := decode[client.Video](c.send(http.MethodGet, "/videos/"+videos[0].String(), nil).requireStatus(http.StatusOK))
	text := textOf(v.visit("/account/tiktok/" + video.LinkedAccountID.String() + "?metric=followers").parsePage())
	require.Contains(t, text, "Followers are unknown on 4 of the days with numbers: the profile of the account was not fetched on these days, or the source did not give them.")

	pending := c.track(videoURL(7))
	detail := decode[client.Video](c.send(http.MethodGet, "/videos/"+pending.String(), nil).requireStatus(http.StatusOK)).FetchDetail
	page = "/video/tiktok/" + pending.String()
	shown := textOf(v.visit(page).parsePage())
	require.Contains(t, shown, "30 were without a number. Nothing was fetched yet.")
	require.Equal(t, 1, strings.Count(shown, *detail), "the page must give the reason once")
	require.Regexp(t, `it is due on <time datetime="[0-9T:-]+Z" title="[0-9: -]+ UTC" data-clock>`, string(v.visit(page).body), "the script must show the time in the time zone of the browser")
}

func TestAccountPage_doesNotSayThatNothingWasFetchedIfVideosWereFetched(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	begin := store.DateOf(a.Clock.Now())
	_, videos := createDashboardData(a, c) // the videos were fetched on four days, and the profile was not fetched
	video := decode[client.Video](c.send(http.MethodGet, "/videos/"+videos[0].String(), nil).requireStatus(http.StatusOK))
	v, page := c.newSignedInVisitor(t), "/account/tiktok/"+video.LinkedAccountID.String()
	before := fmt.Sprintf("?start=%s&end=%s", begin-6, begin-2)
	require.Contains(t, textOf(v.visit(page+before).parsePage()), fmt.Sprintf("Of the days without a number, 5 were before %s, when tracking began.", begin))
	a.Exec(t, "UPDATE accounts SET checked_at = ?", store.InstantOf(begin.Time().Add(time.Hour)))
	require.NotContains(t, textOf(v.visit(page).parsePage()), "after the last fetch", "the time of the last fetch of a video is unknown")
	a.Exec(t, "UPDATE accounts SET checked_at = ?", store.InstantOf((begin + 3).Time().Add(time.Hour)))
	require.Contains(t, textOf(v.visit(page).parsePage()), fmt.Sprintf("2 were after the last fetch on %s.", begin+3))
}

func TestOverview_showsTheSameCountsAsTheLists(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	_, videos := createDashboardData(a, c)
	c.track(videoURL(8))
	c.trackAccount(map[string]any{"link": "https://www.tiktok.com/@someone"})
	v := c.newSignedInVisitor(t)
	v.post("/video/tiktok/" + videos[0].String() + "/stop").requireStatus(http.StatusSeeOther)
	tiles := v.visit("/").tiles()
	require.Equal(t, "3", tiles["Videos tracked"])
	require.Equal(t, "1", tiles["Accounts tracked"])
	text := textOf(v.visit("/").parsePage())
	require.Contains(t, text, "of 3 tracked videos")
	require.Contains(t, text, "of 1 tracked account")
	require.Contains(t, textOf(v.visit("/video").parsePage()), "1–3 of 3")
}

func TestVideoAndAccountPages_showTheCountsOfTheLastDayOfThePeriod(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		_, videos := createDashboardData(a, c) // the videos were fetched five, four, three and two days ago
		video := decode[client.Video](c.send(http.MethodGet, "/videos/"+videos[0].String(), nil).requireStatus(http.StatusOK))
		v := c.newSignedInVisitor(t)
		for _, page := range []struct {
			path  string
			views [4]string // the views on each of the four days
		}{
			{"/video/tiktok/" + videos[0].String(), [4]string{"1000", "1111", "1222", "1333"}},
			{"/account/tiktok/" + video.LinkedAccountID.String(), [4]string{"6000", "6333", "6666", "6999"}},
		} {
			for query, views := range map[string]string{
				"":        page.views[3],
				"?days=7": page.views[3],
				"?start=" + a.daysAgo(1) + "&end=" + a.daysAgo(0): page.views[3],
				"?start=" + a.daysAgo(9) + "&end=" + a.daysAgo(1): page.views[3],
				"?start=" + a.daysAgo(9) + "&end=" + a.daysAgo(3): page.views[2],
				"?start=" + a.daysAgo(4) + "&end=" + a.daysAgo(4): page.views[1],
				"?start=" + a.daysAgo(1) + "&end=" + a.daysAgo(1): page.views[3], // nothing was fetched on this day
				"?start=" + a.daysAgo(9) + "&end=" + a.daysAgo(6): "",
			} {
				require.Equal(t, views, v.visit(page.path + query).tiles()["Views"], page.path+query)
			}
		}
	})
}

// TestVideoPage_showsTheLastFetchInEachPeriod requires that the entry "Numbers" of the page describes the last fetch. If the page shows a past period,
// the entry must not describe the newest point of this period.
func TestVideoPage_showsTheLastFetchInEachPeriod(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	_, videos := createDashboardData(a, c) // the videos were fetched five, four, three and two days ago
	video := decode[client.Video](c.send(http.MethodGet, "/videos/"+videos[0].String(), nil).requireStatus(http.StatusOK))
	v, page := c.newSignedInVisitor(t), "/video/tiktok/"+videos[0].String()
	numbers := func(query string) string {
		for _, dd := range findElements(v.visit(page+query).parsePage(), "dd") {
			for _, at := range findElements(dd, "time") {
				return attributeValue(at, "datetime") + " " + textOf(dd)
			}
		}
		return ""
	}
	latest := video.LatestUpdatedAt.UTC().Format("2006-01-02T15:04")
	require.Contains(t, numbers(""), latest)
	require.Contains(t, numbers(""), "from ", "if the period includes the last fetch, the page must name the source")
	for _, query := range []string{"?start=" + a.daysAgo(9) + "&end=" + a.daysAgo(3), "?start=" + a.daysAgo(9) + "&end=" + a.daysAgo(7)} {
		require.Contains(t, numbers(query), latest, query)
	}
}

func TestVideoPage_doesNotContradictItselfIfTheTierHidesNumbers(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	_, videos := createDashboardData(a, c)
	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
	a.Clock.Advance(time.Second)
	v := c.newSignedInVisitor(t)
	text := textOf(v.visit("/video/tiktok/" + videos[0].String()).parsePage())
	require.Contains(t, text, "hidden by the tier of your organisation")
	for _, wrong := range []string{"none yet", "not planned", "were measured"} {
		require.NotContains(t, text, wrong)
	}
}

func TestVideoPage_tilesOfUnknownCountsShowTheReasonAndNoChange(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v, page := c.newSignedInVisitor(t), "/video/tiktok/"+c.track(videoURL(1)).String()
	require.Equal(t, []string{"Views –", "Likes –", "Comments –", "Shares –", "Bookmarks –"}, v.visit(page).tileTexts(), "the status of the video says why nothing is known yet")
	a.fetch(func(queue.Target) ingest.VideoFacts {
		return ingest.VideoFacts{Views: new(int64(1200)), Comments: new(int64(0)), HiddenStats: new(true)}
	})
	require.Equal(t, []string{"Views 1,200 change not known", "Likes – not given by test, or hidden by the platform", "Comments 0 change not known", "Shares – not given by test, or hidden by the platform",
		"Bookmarks – not given by test, or hidden by the platform"},
		v.visit(page).tileTexts())
	a.Clock.Advance(24 * time.Hour)
	a.fetch(func(queue.Target) ingest.VideoFacts {
		return ingest.VideoFacts{Views: new(int64(1300)), Likes: new(int64(50)), Comments: new(int64(0)), HiddenStats: new(false)}
	})
	require.Equal(t, "Shares – not given by test", v.visit(page).tileTexts()[3])
	require.Equal(t, "Shares –", v.visit(page + "?start=" + a.daysAgo(9) + "&end=" + a.daysAgo(8)).tileTexts()[3], "the numbers of an earlier day are those of another fetch")
}

func TestAccountPage_tilesOfUnknownCountsShowTheReason(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v, account := c.newSignedInVisitor(t), c.trackAccountLink("https://www.tiktok.com/@northwind.studio")
	page := "/account/tiktok/" + account.String()
	tiles := func() []string {
		t.Helper()
		return v.visit(page).tileTexts()
	}
	require.Equal(t, "Followers –", tiles()[0], "the status of the account says why nothing is known yet")
	a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return ingest.AccountFacts{Listed: true} })
	require.Equal(t, []string{"Followers – not given by the source of the profile", "Views – no video is tracked"}, tiles()[:2])
	c.track("https://www.tiktok.com/@northwind.studio/video/7300000000000000001")
	a.fetch(func(queue.Target) ingest.VideoFacts {
		return ingest.VideoFacts{Views: new(int64(1200)), Username: new("northwind.studio")}
	})
	require.Contains(t, tiles()[1], "1,200")
	require.Equal(t, "Likes – not known of any of its videos", tiles()[2])
	require.Equal(t, "Likes –", v.visit(page + "?start=" + a.daysAgo(9) + "&end=" + a.daysAgo(8)).tileTexts()[2])

	other := c.track("https://www.tiktok.com/@other/video/7300000000000000002").String()
	a.fetch(func(queue.Target) ingest.VideoFacts {
		return ingest.VideoFacts{Views: new(int64(5)), Username: new("other")}
	})
	linked := decode[client.Video](c.send(http.MethodGet, "/videos/"+other, nil).requireStatus(http.StatusOK)).LinkedAccountID.String()
	require.Equal(t, "Followers – the account is not tracked", v.visit("/account/tiktok/" + linked).tileTexts()[0])
}

func TestDashboardPages_haveNoButtonsForChangesIfTheTokenMayOnlyRead(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, videos := createDashboardData(a, c)
	account := c.trackAccount(map[string]any{"link": "https://www.tiktok.com/@someone"}).AccountID
	reader, writer := a.newToken(t, c.org, store.ScopeRead).newSignedInVisitor(t), c.newSignedInVisitor(t)
	for _, page := range []string{"/", "/track", "/video", "/video/tiktok/" + videos[0].String(), "/account", "/account/tiktok/" + account.String(), "/collection",
		"/collection/" + collection.String()} {
		require.NotContains(t, string(writer.visit(page).body), "a token without the scope write")
		got := reader.visit(page)
		require.Contains(t, string(got.body), "a token without the scope write", page)
		for _, form := range findElements(got.parsePage(), "form") {
			if attributeValue(form, "method") == "post" {
				require.Equal(t, "/logout", attributeValue(form, "action"), page)
			}
		}
		require.NotContains(t, string(got.body), `href="/track`, page)
		require.NotContains(t, string(got.body), `formmethod="post"`, page)
		require.NotContains(t, string(got.body), "<textarea", page)
	}
}

func TestVideosPage_saysWhyTheGainOfANewVideoIsUnknown(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	c.track(videoURL(1))
	since := a.daysAgo(0)
	reason := func() string {
		t.Helper()
		return string(v.visit("/video").requireStatus(http.StatusOK).body)
	}
	require.NotContains(t, reason(), "tracked only since", "a video without any numbers has another reason")
	a.fetch(factsWithViews(100))
	a.Clock.Advance(5 * 24 * time.Hour)
	a.fetch(factsWithViews(616_184))
	require.Contains(t, reason(), `<span class="trend" title="tracked only since `+since+`">–<span class="hidden">, tracked only since `+since+`</span></span>`)
	a.Clock.Advance(3 * 24 * time.Hour)
	a.fetch(factsWithViews(616_200))
	require.NotContains(t, reason(), "tracked only since")
	require.Contains(t, mainText(v.visit("/video")), "+616,100")
}

func TestLists_sayThatTheBoxForStoppedItemsAddsThem(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	v := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
	for _, path := range []string{"/video", "/account"} {
		require.Contains(t, string(v.visit(path).requireStatus(http.StatusOK).body), `<input type="checkbox" name="include_removed" value="true">Also show those no longer tracked</label>`, path)
	}
}

func TestTrackPage_showsTheNumbersOfVideosThatWereTrackedBefore(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	_, _ = createDashboardData(a, c)
	c.track(videoURL(8))
	v := c.newSignedInVisitor(t)
	rows := v.post("/track", "links", videoURL(1)+"\n"+videoURL(8)).rows()
	require.Contains(t, rows[1].text, "1,333 views")
	require.Contains(t, rows[2].text, "Waiting for numbers")
	id := strings.TrimPrefix(rows[2].link, "/video/tiktok/")
	a.fetch(factsWithViews(4321))
	require.Contains(t, string(v.post("/track/progress", "total", "1", "rounds", "0", "waiting", "video:"+id).requireStatus(http.StatusOK).body), "The link has been fetched.")
}

func TestCollectionPage_showsTheFirstMetricWithNumbers(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := c.createNamedCollection("Launch")
	c.addVideos(collection, c.track(videoURL(1)))
	a.fetch(factsWithViews(1000))
	v := c.newSignedInVisitor(t)
	page := "/collection/" + collection.String()
	// On the day on which the video was added, its gain is unknown.
	require.Contains(t, string(v.visit(page).body), `<figure class="chart" data-metric="views"`)
	require.Contains(t, string(v.visit(page+"?metric=gained").body), `<figure class="chart" data-metric="gained"`)
	a.Clock.Advance(24 * time.Hour)
	a.fetch(factsWithViews(1500))
	require.Contains(t, string(v.visit(page).body), `<figure class="chart" data-metric="gained"`)
}

func TestPages_sayThatAReportUntilTodayLacksTheRestOfTheDay(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v := c.newSignedInVisitor(t)
	page := "/collection/" + collection.String()
	past := "?start=" + a.daysAgo(3) + "&end=" + a.daysAgo(1)
	const before = "Views gained after you save the report will not be in it. They will be in the next report if that one begins where this one ended."
	require.Contains(t, mainText(v.visit(page)), before)
	require.NotContains(t, mainText(v.visit(page+past)), before)
	require.NotContains(t, mainText(a.newToken(t, c.org, store.ScopeRead).newSignedInVisitor(t).visit(page)), before, "a visitor who cannot save a report")
	for day, want := range map[string]bool{a.daysAgo(0): true, a.daysAgo(1): false} {
		saved := decode[client.ReportSummary](c.send(http.MethodPost, "/collections/"+collection.String()+"/reports", map[string]any{"end_date": day}).requireStatus(http.StatusCreated))
		text := mainText(v.visit("/collection/report/" + saved.ID.String()).requireStatus(http.StatusOK))
		require.Equal(t, want, strings.Contains(text, "Views gained later on that day are in neither this report nor one that begins on the next day, unless that one begins where this report ended."), day)
	}
}

func TestPages_sayWhichCountsPerDayIncludeThoseFromBeforeAVideoWasAdded(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v := c.newSignedInVisitor(t)
	report := c.createReport(collection)
	const views, others = "iews per day leave out the views that a video already had when it was added.", " per day include those that a video already had when it was added."
	for _, page := range []string{"/collection/" + collection.String(), "/collection/report/" + report.String(), c.shareReport(collection, report, map[string]any{"access": "public"})} {
		require.Contains(t, mainText(v.visit(page)), "Gained views and v"+views+" Engagements"+others, page)
	}
	shared := func(metrics ...string) string {
		return mainText(v.visit(c.shareCollection(collection, "public", map[string]any{"display_settings": map[string]any{"metrics": metrics}})))
	}
	require.Contains(t, shared("views", "likes", "comments"), "V"+views+" Likes and comments"+others)
	require.NotContains(t, shared("likes"), views)
	require.NotContains(t, shared("views"), others)
}
