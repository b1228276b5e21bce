package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// tiles returns the tiles of a page: the number of each tile, by the label of the tile. An unknown number is "".
func (a response) tiles() map[string]string {
	a.t.Helper()
	out := map[string]string{}
	for _, name := range []string{"a", "div"} {
		for _, n := range findElements(a.parsePage(), name) {
			if attributeValue(n, "class") == "tile" {
				out[textOf(findElements(n, "span")[0])] = numbersIn(n)[0]
			}
		}
	}
	return out
}

func TestOverviewPage_showsTheQuotientOfEngagementsAndViews(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.track(tiktokLink)
	a.fetch(func(queue.Target) ingest.VideoFacts {
		return ingest.VideoFacts{Views: new(int64(200)), Likes: new(int64(7)), UploadedAt: new(a.Clock.Now())}
	})
	require.Contains(t, c.newSignedInVisitor(t).visit("/").tileTexts(), "Engagements ÷ views 3.50 %")
}

func TestOverviewPage_countsUploadsOfDaysBeforeTheFirstFetch(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		for n, daysAgo := range []int{2, 40} {
			c.track(videoURL(n + 1))
			a.fetch(func(queue.Target) ingest.VideoFacts {
				return ingest.VideoFacts{Views: new(int64(100)), UploadedAt: new(a.Clock.Now().AddDate(0, 0, -daysAgo))}
			})
		}
		page := c.newSignedInVisitor(t).visit("/")
		tiles := page.tiles()
		require.Equal(t, []string{"1", "200"}, []string{tiles["Uploads"], tiles["Views"]})
		require.Contains(t, string(page.body), "1 in the 30 days before")
		require.Contains(t, string(page.body), "change not known", "the views before the first fetch are not known, so their change is not known")
	})
}

func TestOverviewPage_showsTheTotalsOfTheLastFetchHoweverLongAgo(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		uploaded := map[string]time.Time{} // the time of upload of each video, by its external id
		fetch := func(video, daysAgo int) {
			c.track(videoURL(video))
			a.fetch(func(target queue.Target) ingest.VideoFacts {
				if _, known := uploaded[target.ExternalID]; !known {
					uploaded[target.ExternalID] = a.Clock.Now().AddDate(0, 0, -daysAgo)
				}
				return ingest.VideoFacts{Views: new(int64(100)), UploadedAt: new(uploaded[target.ExternalID])}
			})
		}
		fetch(1, 0)
		a.Clock.Advance(23 * 24 * time.Hour)
		v := c.newSignedInVisitor(t)
		for _, query := range []string{"?days=7", "?days=30", "?start=" + a.daysAgo(4) + "&end=" + a.daysAgo(2)} {
			require.Equal(t, "100", v.visit("/" + query).tiles()["Views"], query)
		}
		require.Contains(t, string(v.visit("/?days=7").body), `0</span> in 7 days</span><span class="small">0 in the 7 days before`)
		require.Empty(t, v.visit("/?start=" + a.daysAgo(30) + "&end=" + a.daysAgo(24)).tiles()["Views"], "the views before the first fetch are not known")

		fetch(2, 3)
		tiles := v.visit("/?start=" + a.daysAgo(4) + "&end=" + a.daysAgo(3)).tiles()
		require.Equal(t, []string{"1", "100"}, []string{tiles["Uploads"], tiles["Views"]}, "a day on which only uploads are known has the totals of the day before")
	})
}

func TestOverviewPage_listsOnlyVideosWithAKnownGain(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		v := c.newSignedInVisitor(t)
		topVideos := func() string {
			t.Helper()
			for _, section := range findElements(v.visit("/").parsePage(), "section") {
				if text := textOf(section); strings.HasPrefix(text, "Most views gained in 7 days") {
					return text
				}
			}
			return ""
		}
		fetch := func(views int64) {
			a.fetch(func(queue.Target) ingest.VideoFacts {
				return ingest.VideoFacts{Views: new(views), Title: new("Spring sale")}
			})
		}
		c.track(videoURL(1))
		const none = "No gain is known. A gain needs numbers that are at least 7 days apart."
		require.Contains(t, topVideos(), none)
		fetch(100)
		require.Contains(t, topVideos(), none)
		require.Contains(t, string(v.visit("/").body), `data-view="total"`, "the chart must not be empty while no gain is known")
		a.Clock.Advance(8 * 24 * time.Hour)
		fetch(130)
		const keeps = "The period above does not change this list."
		for query, isShown := range map[string]bool{"": true, "?days=90": true, "?days=7": false, "?start=" + a.daysAgo(12) + "&end=" + a.daysAgo(6): true} {
			require.Equal(t, isShown, strings.Contains(mainText(v.visit("/"+query)), keeps), query)
		}
		c.track(videoURL(2))
		require.Contains(t, topVideos(), "+30")
		require.NotContains(t, topVideos(), "–")
		a.Exec(t, "UPDATE videos SET fetch_status = 'gone' WHERE views_gained_7d = 30")
		a.Exec(t, "UPDATE organisation_totals SET version = version + 1")
		require.NotContains(t, topVideos(), "+30", "the gain of a video that is gone can be from long ago")
	})
}

func TestOverviewPage_listsTheTrackedAccountsThatGainedMost(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := newCallerWithFiveAccounts(t, a)
		v := c.newSignedInVisitor(t)
		const heading = "Accounts that gained most in 7 days"
		require.NotContains(t, mainText(v.visit("/")), heading, "no gain is known yet")
		a.Exec(t, "UPDATE accounts SET views_gained_7d = CASE username WHEN 'anna' THEN 900 WHEN 'bert' THEN 1234 WHEN 'dora' THEN -5 END")
		a.Exec(t, "UPDATE organisation_totals SET version = version + 1")
		_, list, _ := strings.Cut(mainText(v.visit("/")), heading)
		require.Regexp(t, `^AccountGainedViews @bert\+1,234200@anna\+900300@dora−5100If an account was not fetched for some days, its period is longer than 7 days. Show all accounts`, list)
		require.NotContains(t, list, "@cora")
		a.Exec(t, "UPDATE accounts SET fetch_status = 'gone' WHERE username = 'bert'")
		a.Exec(t, "UPDATE organisation_totals SET version = version + 1")
		_, list, _ = strings.Cut(mainText(v.visit("/")), heading)
		require.Regexp(t, `^AccountGainedViews @anna\+900`, list)
		table := v.visit("/account?order_by=views_gained_7d&csv=accounts").table()
		require.Equal(t, "views_gained_7d", table[0][5])
		require.Equal(t, []string{"1234", "900", "-5", "", ""}, []string{table[1][5], table[2][5], table[3][5], table[4][5], table[5][5]})
		require.Contains(t, string(v.visit("/account").body), `title="views that the videos of the account gained while they were tracked, also those that are stopped now, since`)
		require.Regexp(t, `Gained 7 d ↓.*@bert.*\+1,234.*@anna.*\+900`, mainText(v.visit("/account?order_by=views_gained_7d")))
	})
}

func TestOverviewPage_listsFailingAccounts(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := newCallerWithFiveAccounts(t, a)
	a.Exec(t, "UPDATE accounts SET fetch_status = 'failing', fetch_reason = 'The source is slow' WHERE username = 'bert'")
	require.Regexp(t, `Collecting.*@bert.*The source is slow`, mainText(c.newSignedInVisitor(t).visit("/").requireStatus(http.StatusOK)))
}

func TestOverviewPage_doesNotShowTheViewsOfNewlyTrackedVideosAsAGain(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		for _, views := range []int64{100, 5000} {
			c.track(videoURL(int(views)))
			a.fetch(func(queue.Target) ingest.VideoFacts {
				return ingest.VideoFacts{Views: new(views), Likes: new(views / 10)}
			})
			a.Clock.Advance(30 * 24 * time.Hour)
		}
		a.Clock.Advance(-24 * time.Hour)
		v := c.newSignedInVisitor(t)
		for query, view := range map[string]string{"": "gain", "?view=total": "total", "?metric=followers": "total"} {
			require.Contains(t, string(v.visit("/"+query).body), `data-view="`+view+`"`, query)
		}
		tiles := v.visit("/").tileTexts()
		require.Contains(t, tiles[0], "+4,900 in 30 days", "the gain must have only the views that the first video gained")
		require.NotContains(t, tiles[0], "before tracking")
		require.Contains(t, v.visit("/?days=90").tileTexts()[0], "+4,900 since "+a.daysAgo(58))
		require.Contains(t, v.visit("/?days=7").tileTexts()[0], "0 in 7 days")
		require.Contains(t, tiles[1], "with engagements from before tracking")
		for _, n := range findElements(v.visit("/").parsePage(), "a") {
			if attributeValue(n, "class") != "tile" {
				continue
			}
			for _, span := range findElements(n, "span") {
				if attributeValue(span, "class") == "trend up" {
					require.NotContains(t, textOf(span), "990", "the page must not colour the change of the engagements like a gain")
				}
			}
		}
	})
}

func TestOverviewPage_saysWhichVideosTheListOfGainsLeavesOut(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.track(videoURL(1))
	a.fetch(factsWithViews(100))
	a.Clock.Advance(8 * 24 * time.Hour)
	a.fetch(factsWithViews(130))
	page := c.newSignedInVisitor(t).visit("/")
	require.Contains(t, mainText(page), "Most views gained in 7 daysThe list has only videos with numbers of at least 7 days. A newer video is missing, however many views it gained: see the videos uploaded in the last 7 days by views and "+
		"the newest videos of your organisation. Videos that can no longer be fetched are missing, too.")
	require.Equal(t, "/video?order_by=created_at", linkWithText(page.parseHTML(), "the newest videos of your organisation"))
	require.Equal(t, "/video?order_by=latest_views&uploaded_at_start="+a.daysAgo(6), linkWithText(page.parseHTML(), "the videos uploaded in the last 7 days by views"))
}

func TestOverviewPage_saysThatTheTotalsCountStoppedVideos(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	stopped := c.track(videoURL(1)).String()
	c.track(videoURL(2))
	a.fetch(factsWithViews(100))
	v := c.newSignedInVisitor(t)
	const also = "also counts videos no longer tracked"
	require.NotContains(t, mainText(v.visit("/")), also)
	c.stopVideos(http.StatusOK, stopped)
	page := v.visit("/")
	require.Equal(t, "200", page.tiles()["Views"])
	require.Equal(t, "1", page.tiles()["Videos tracked"])
	require.Equal(t, 2, strings.Count(mainText(page), also), "the tiles of views and engagements must say it")
}

func TestPages_doNotContradictThemselvesIfTheTierHidesNumbers(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v := c.newSignedInVisitor(t)
	for _, path := range []string{"/video", "/collection/" + collection.String()} {
		text := textOf(v.visit(path).parsePage())
		require.Contains(t, text, "1–3 of 3", path)
		require.Contains(t, text, "CSV of 3 videos", path)
	}
	const hidden = "The organisation's tier hides the numbers."
	require.NotContains(t, textOf(v.visit("/").parsePage()), hidden)
	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
	a.Clock.Advance(2 * time.Second)
	for _, path := range []string{"/video", "/collection/" + collection.String()} {
		text := textOf(v.visit(path).parsePage())
		require.NotContains(t, text, "of 1", path)
		require.Contains(t, text, "CSV of the first video", path)
	}
	overview := v.visit("/")
	require.Contains(t, textOf(overview.parsePage()), hidden)
	require.NotContains(t, string(overview.body), `class="plot"`, "an empty chart must not take up space")
	require.Contains(t, textOf(overview.parsePage()), "Most views gained in 7 daysThe tier of your organisation hides gains.")
}
