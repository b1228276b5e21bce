package server_test

import (
	"fmt"
	"net/http"
	"net/url"
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

func TestCollectionPage_listsTheVideosOfSubcollections(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	parent := c.createNamedCollection("Launch")
	child := c.createNamedCollection("Germany", parent)
	grandchild := c.createNamedCollection("Berlin", child)
	other := c.createNamedCollection("Autumn")
	v := c.newSignedInVisitor(t)
	page := "/collection/" + parent.String()
	require.Contains(t, string(v.visit(page).body), "The collection has no tracked videos.")
	require.Contains(t, string(v.visit(page+"?subtree=true").body), "The collection and its subcollections have no tracked videos.")

	c.addVideos(parent, c.track(videoURL(1)))
	c.addVideos(grandchild, c.track(videoURL(2)))
	c.addVideos(other, c.track(videoURL(3)))
	for query, count := range map[string]int{"": 1, "?subtree=true": 2} {
		got := v.visit(page + query).requireStatus(http.StatusOK)
		require.Equal(t, count, strings.Count(string(got.body), `class="pick noprint"`), query)
		separator := "?"
		if query != "" {
			separator = "&"
		}
		rows := v.visit(page + query + separator + "csv=videos").requireStatus(http.StatusOK)
		require.Equal(t, count+1, strings.Count(string(rows.body), "\n"), query)
	}
}

func TestCollectionPage_saysThatTheListLeavesOutSubcollections(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	parent := c.createNamedCollection("Launch")
	for n := range 101 {
		c.createNamedCollection("Part "+videoURL(n), parent)
		a.Clock.Advance(time.Minute)
	}
	page := "/collection/" + parent.String()
	v := c.newSignedInVisitor(t)
	require.Contains(t, string(v.visit(page+"?subtree=true").body), "leave out the videos of 2 subcollections")
	require.NotContains(t, string(v.visit(page).body), "leave out the videos")
}

func TestCollectionPage_saysThatOnlyTheVideosThatAreInTheCollectionNowCount(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v := c.newSignedInVisitor(t)
	link := c.shareCollection(collection, "public", map[string]any{"display_settings": map[string]any{"show_history": true}})
	for _, page := range []string{"/collection/" + collection.String(), link} {
		require.Contains(t, mainText(v.visit(page).requireStatus(http.StatusOK)), "the sum over the videos that are in the collection now, each from the day on which it was last added, or from the day that was chosen for it.", page)
	}
}

func TestCollectionPage_hasLinksToItsPartsIfItIsLong(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := c.createNamedCollection("Launch")
	v := c.newSignedInVisitor(t)
	for n := range 11 {
		require.NotContains(t, string(v.visit("/collection/"+collection.String()).body), `href="#reports"`)
		c.addVideos(collection, c.track(videoURL(n+1)))
	}
	page := string(v.visit("/collection/" + collection.String()).body)
	for _, part := range []string{"videos", "share", "reports"} {
		require.Contains(t, page, `href="#`+part+`"`)
		require.Contains(t, page, `id="`+part+`"`)
	}
	require.NotContains(t, page, `href="#accounts"`, "the collection has no accounts")
}

func TestCollectionPage_linksToTheVideosWithoutNumbers(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	below := c.createCollection(map[string]any{"name": "Below", "parent_id": collection})
	v, page := c.newSignedInVisitor(t), "/collection/"+collection.String()
	link := func(query string) string {
		for _, found := range findElements(v.visit(page+query).requireStatus(http.StatusOK).parsePage(), "a") {
			if textOf(found) == "Which videos have no numbers, and why" {
				return attributeValue(found, "href")
			}
		}
		return ""
	}
	require.Empty(t, link("?subtree=true"), "the views of all videos are known")
	pending := c.track(videoURL(7))
	c.addVideos(below, pending)
	require.Empty(t, link(""))
	list := v.visit(link("?subtree=true"))
	require.Contains(t, string(list.body), " selected>2 collections</option>")
	rows := list.rows()
	require.Len(t, rows, 2)
	require.Contains(t, rows[1].text, "Waiting for first numbers")
	require.Contains(t, rows[1].text, "it is due on", "the list must say why a video has no numbers")
	c.send(http.MethodDelete, "/videos/"+pending.String(), nil).requireStatus(http.StatusOK)
	require.Len(t, v.visit(link("?subtree=true")).rows(), 2, "the tiles also count stopped videos")
	require.Contains(t, string(v.visit("/video?has_metrics=false").body), "Videos of which only the views are unknown have other numbers")
}

func TestCollectionPage_sumsTheGainsOfEachAccountInThePeriod(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	parent := c.createNamedCollection("Launch")
	child := c.createNamedCollection("Berlin", parent)
	c.addVideos(parent, c.track(videoURL(1)), c.track(videoURL(2)))
	c.addVideos(child, c.track(videoURL(3)))
	// Every day, video n gains 10ⁿ views. Videos 1 and 2 are of the account "first", and video 3 is of the account "second".
	gains := map[string]int64{"1": 10, "2": 100, "3": 1000}
	for day := range int64(4) {
		a.fetch(func(target queue.Target) ingest.VideoFacts {
			n := target.ExternalID[len(target.ExternalID)-1:]
			facts := ingest.VideoFacts{Views: new(5000 + day*gains[n]), Username: new("first"), AccountID: new("71")}
			if n == "3" {
				facts.Username, facts.AccountID = new("second"), new("72")
			}
			return facts
		})
		a.Clock.Advance(24 * time.Hour)
	}
	v := c.newSignedInVisitor(t)
	page := "/collection/" + parent.String()
	period := "?start=" + a.daysAgo(3) + "&end=" + a.daysAgo(1)
	// accounts returns the lines of the CSV file of the accounts, without their ids.
	accounts := func(query string) []string {
		t.Helper()
		file := v.visit(page + query + "&csv=accounts").requireStatus(http.StatusOK)
		require.Contains(t, file.Header.Get("Content-Disposition"), "-accounts-"+a.daysAgo(3)+"-to-"+a.daysAgo(1))
		var lines []string
		for line := range strings.SplitSeq(strings.TrimSpace(string(file.body)), "\n") {
			_, rest, _ := strings.Cut(line, ",")
			lines = append(lines, rest)
		}
		return lines
	}
	const head = "username,platform,videos,views_gained,unknown_gains,views_at_end,unknown_views"
	first := "first,tiktok,2,330,0,10330,0"
	require.Equal(t, []string{head, first}, accounts(period))
	require.Equal(t, []string{head, "second,tiktok,1,3000,0,8000,0", first}, accounts(period+"&subtree=true"))
	shown := mainText(v.visit(page + period + "&subtree=true"))
	require.Contains(t, shown, "Gained by accountAccountPlatformVideosGainedAt the end@secondTikTok13,0008,000@firstTikTok233010,330 CSV of 2 accounts")
	require.NotContains(t, mainText(v.visit(page+period)), "Gained by account", "the sums of a single account are those of the collection")

	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
	a.Clock.Advance(time.Second)
	require.NotContains(t, mainText(v.visit(page+"?subtree=true")), "Gained by account")
	require.NotContains(t, string(v.visit(page+"?csv=accounts").requireStatus(http.StatusOK).body), "first")
}

func TestCollectionPage_comparesGainedViewsWithThePreviousPeriod(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		parent := c.createNamedCollection("Launch")
		child := c.createNamedCollection("Berlin", parent)
		stopped := c.createNamedCollection("Stopped")
		c.addVideos(parent, c.track(videoURL(1)))
		c.addVideos(child, c.track(videoURL(2)))
		ended := c.track(videoURL(3))
		c.addVideos(stopped, ended)
		// Every day, video n gains 10ⁿ views, and from the eighth day on three times as many.
		views := func(n string, day int64) int64 {
			return 5000 + (day+2*max(0, day-7))*map[string]int64{"1": 10, "2": 100, "3": 1000, "4": 10_000}[n]
		}
		fetch := func(day int64) {
			a.fetch(func(target queue.Target) ingest.VideoFacts {
				return ingest.VideoFacts{Views: new(views(target.ExternalID[len(target.ExternalID)-1:], day))}
			})
		}
		fetch(0)
		c.stopVideos(http.StatusOK, ended.String())
		for day := int64(1); day <= 14; day++ {
			a.Clock.Advance(24 * time.Hour)
			fetch(day)
		}
		v := c.newSignedInVisitor(t)
		gained := func(collection uuid.UUID, query string) string {
			t.Helper()
			return v.visit("/collection/" + collection.String() + query).requireStatus(http.StatusOK).tileTexts()[0]
		}
		v.visit("/collection/" + child.String()) // after a change of the data, the first list reads its order in an additional statement
		a.Guard.Statements()
		require.Equal(t, "Gained views 210 in 7 days +4.1 % of the views at the start 70 in the 7 days before", gained(parent, "?days=7"))
		reads := 0
		for _, statement := range a.Guard.Statements() {
			reads += strings.Count(statement, "wanted AS MATERIALIZED")
		}
		require.Equal(t, 1, reads, "the numbers of both periods must be read together")
		require.Equal(t, "Gained views 2,310 in 7 days +21.4 % of the views at the start 770 in the 7 days before", gained(parent, "?days=7&subtree=true"))
		past := "?start=" + a.daysAgo(9) + "&end=" + a.daysAgo(8)
		require.Equal(t, "Gained views 20 in 2 days +0.4 % of the views at the start 20 in the 2 days before", gained(parent, past))
		oneDay := "?start=" + a.daysAgo(8) + "&end=" + a.daysAgo(8)
		require.Equal(t, "Gained views 10 in 1 day +0.2 % of the views at the start 10 in the 1 day before", gained(parent, oneDay))
		for _, page := range []string{"/", "/video/tiktok/" + ended.String(), "/collection/" + stopped.String()} {
			require.NotContains(t, mainText(v.visit(page+oneDay).requireStatus(http.StatusOK)), "1 days", page)
		}
		require.Contains(t, gained(parent, "?start="+a.daysAgo(9)+"&end="+a.daysAgo(0)), "% of the views at the start not compared: no video counted yet when the 10 days before began", "the first video was added on the sixth day of the previous period")
		require.Equal(t, "Gained views – unknown for 1 video", gained(stopped, "?days=7"), "the gain of a period without fetches is not 0")

		added := c.track(videoURL(4))
		fetch(14)
		c.addVideos(parent, added)
		require.Equal(t, "Gained views 210 in 7 days, unknown for 1 video +4.1 % of the views at the start 70 in the 7 days before, which began with 1 video fewer", gained(parent, "?days=7"))
		require.Equal(t, "Gained views 20 in 2 days +0.4 % of the views at the start 20 in the 2 days before", gained(parent, past), "the video was added after the period")

		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
		a.Clock.Advance(time.Second)
		require.NotContains(t, gained(parent, "?days=7"), "before")
		require.NotContains(t, gained(parent, "?days=7"), "compared")
	})
}

func TestCollectionPage_comparesOnlyWithAPeriodThatTheTierShows(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := c.createNamedCollection("Launch")
	c.addVideos(collection, c.track(videoURL(1)))
	for day, days := range []int{0, 400, 500} {
		a.Clock.Advance(time.Duration(24*days) * time.Hour)
		a.fetch(factsWithViews(int64(5000 + 1000*day)))
	}
	v := c.newSignedInVisitor(t)
	for days, compared := range map[int]bool{365: true, 366: false} {
		tile := v.visit(fmt.Sprintf("/collection/%s?start=%s&end=%s", collection, a.daysAgo(days-1), a.daysAgo(0))).requireStatus(http.StatusOK).tileTexts()[0]
		require.Equal(t, compared, strings.Contains(tile, fmt.Sprintf("in the %d days before", days)), tile)
		require.Equal(t, !compared, strings.Contains(tile, "not compared: the tier does not show all of the 366 days before"), tile)
	}
}

func TestCollectionPage_namesTheBestVideosThatAreOnOtherPagesOfItsList(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := c.createNamedCollection("Launch")
	for n := range 51 { // a page of the list has 50 videos
		c.addVideos(collection, c.track(videoURL(n)))
	}
	for day := range int64(2) {
		a.fetch(func(target queue.Target) ingest.VideoFacts {
			facts := ingest.VideoFacts{Title: new("One of many"), Views: new(5000 + day)}
			if strings.HasSuffix(videoURL(7), "/"+target.ExternalID) {
				facts = ingest.VideoFacts{Title: new("Small but growing"), Views: new(10 + 1000*day)}
			}
			return facts
		})
		a.Clock.Advance(24 * time.Hour)
	}
	require.Contains(t, mainText(c.newSignedInVisitor(t).visit("/collection/"+collection.String())), "Gained mostVideoGainedAt the endSmall but growing")
}

func TestCollectionPage_listsAllReports(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	for range 21 {
		c.createReport(collection)
		a.Clock.Advance(time.Minute)
	}
	v := c.newSignedInVisitor(t)
	require.Contains(t, string(v.visit("/collection/"+collection.String()).body), ">Report 1<")
}

func TestReportPage_linksToASearchForEachVideo(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, videos := createDashboardData(a, c)
	v := c.newSignedInVisitor(t)
	page := string(v.visit("/collection/report/" + c.createReport(collection).String()).requireStatus(http.StatusOK).body)
	for _, id := range videos {
		path := "/video?q=" + url.QueryEscape(c.video(id.String()).AdLink)
		require.Contains(t, page, `href="`+path+`"`)
		require.Contains(t, string(v.visit(path).requireStatus(http.StatusOK).body), `href="/video/tiktok/`+id.String()+`"`)
	}
	require.NotContains(t, page, `href="/account/tiktok/`, "the record of the account can be merged with another one after the report")
}

func TestReportPage_showsNoChecksumOfAMaskedReport(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	page := "/collection/report/" + c.createReport(collection).String()
	v := c.newSignedInVisitor(t)
	require.Contains(t, string(v.visit(page).body), "Checksum (SHA-256) of the report in the API. It proves that the report was not changed")
	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
	a.Clock.Advance(2 * time.Second)
	body := string(v.visit(page).requireStatus(http.StatusOK).body)
	require.Contains(t, body, "The checksum in the list of reports belongs to the report with all numbers.")
	require.NotContains(t, body, "It proves that the report was not changed")
}

func TestPages_sayThatTrackingWasStopped(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	require.Contains(t, string(v.visit("/").body), "No videos yet")
	video := c.track(tiktokLink)
	a.fetch(factsWithViews(5))
	account := c.trackAccount(map[string]any{"link": "https://www.tiktok.com/@someone"}).AccountID
	c.send(http.MethodDelete, "/videos/"+video.String(), nil).requireStatus(http.StatusOK)
	c.send(http.MethodDelete, "/accounts/"+account.String(), nil).requireStatus(http.StatusOK)
	body := string(v.visit("/").body)
	require.NotContains(t, body, "No videos yet")
	require.Contains(t, body, "No video is tracked now.")
	body = string(v.visit("/account/tiktok/" + account.String()).requireStatus(http.StatusOK).body)
	require.Contains(t, body, "<dt>Tracking</dt><dd>stopped</dd>")
	require.NotContains(t, body, "only as the account of tracked videos")
	require.Contains(t, body, "None of this account's videos is tracked now.")
}

func TestOverviewPage_comparesUploadsOnlyWithAWholePeriod(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.track(tiktokLink)
	a.fetch(func(queue.Target) ingest.VideoFacts {
		return ingest.VideoFacts{Views: new(int64(100)), UploadedAt: new(a.Clock.Now().AddDate(0, 0, -600))}
	})
	v := c.newSignedInVisitor(t)
	start := func(days int) string { return "/?start=" + a.daysAgo(days-1) + "&end=" + a.daysAgo(0) }
	require.NotContains(t, string(v.visit(start(501)).requireStatus(http.StatusOK).body), "in the 501 days before")
	require.Contains(t, string(v.visit(start(310)).requireStatus(http.StatusOK).body), "1 in the 310 days before")
}

func TestCollectionPage_keepsItsViewAndLinksToTheReportAfterSaving(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v := c.newSignedInVisitor(t)
	page := "/collection/" + collection.String()
	form := func(body response) map[string]string {
		fields := map[string]string{}
		for _, f := range findElements(body.parsePage(), "form") {
			if strings.HasSuffix(attributeValue(f, "action"), "/freeze") {
				for _, input := range findElements(f, "input") {
					fields[attributeValue(input, "name")] = attributeValue(input, "value")
				}
			}
		}
		return fields
	}
	fields := form(v.visit(page + "?days=7&subtree=true"))
	saved := v.post(page+"/freeze", "start", fields["start"], "end", fields["end"], "subtree", fields["subtree"], "back", fields["back"]).requireStatus(http.StatusSeeOther)
	target := saved.Header.Get("Location")
	require.Contains(t, target, "days=7")
	require.Contains(t, target, "subtree=true")
	shown := v.visit(target)
	require.Contains(t, textOf(shown.parsePage()), "The report was saved: Report 1")
	require.Contains(t, linkWithText(shown.parseHTML(), "Report 1"), "/collection/report/")
	require.Equal(t, fields["back"], form(shown)["back"], "the message must not stay in the address")

	require.Contains(t, textOf(shown.parsePage()), "with subcollections")
	report := v.visit(linkWithText(shown.parseHTML(), "Report 1"))
	require.Contains(t, textOf(report.parsePage()), "With subcollections")
	v.post(page+"/freeze", "start", fields["start"], "end", fields["end"], "subtree", fields["subtree"], "back", fields["back"], "key", fields["key"]).requireStatus(http.StatusSeeOther)
	v.post(page+"/freeze", "start", fields["start"], "end", fields["end"], "subtree", fields["subtree"], "back", fields["back"], "key", fields["key"]).requireStatus(http.StatusSeeOther)
	require.Contains(t, textOf(v.visit(page).parsePage()), "Report 2")
	require.NotContains(t, textOf(v.visit(page).parsePage()), "Report 3", "the same form makes one report")
	v.post(page+"/freeze", "subtree", "false").requireStatus(http.StatusSeeOther)
	require.Contains(t, textOf(v.visit(page).parsePage()), "without subcollections")
	for _, wrong := range []string{"", "https://example.com/", "//example.com/", "/video"} {
		saved := v.post(page+"/freeze", "back", wrong).requireStatus(http.StatusSeeOther)
		require.True(t, strings.HasPrefix(saved.Header.Get("Location"), page+"?"), wrong)
	}
}

func TestCollectionPage_saysThatTheVideosAreInSubcollections(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		parent := c.createNamedCollection("Launch")
		child := c.createNamedCollection("Germany", parent)
		c.addVideos(child, c.track(videoURL(1)), c.track(videoURL(2)))
		v := c.newSignedInVisitor(t)
		page := "/collection/" + parent.String()
		shown := v.visit(page + "?days=7")
		require.Contains(t, textOf(shown.parsePage()), "The collection itself has no tracked videos. 2 videos are in its subcollections.")
		require.Equal(t, "?days=7&subtree=true", linkWithText(shown.parseHTML(), "Include subcollections"))
		require.NotContains(t, textOf(v.visit(page+"?subtree=true").parsePage()), "videos are in its subcollections")
		require.Equal(t, page+"?subtree=true", linkWithText(v.visit("/collection").parseHTML(), "Launch"), "the list must open the numbers at once")
		require.Contains(t, findRow(t, v.visit("/collection").rows(), page+"?subtree=true").text, "in subcollections")
		require.NotContains(t, findRow(t, v.visit("/collection").rows(), "/collection/"+child.String()).text, "in subcollections")
		require.Equal(t, "/collection/"+child.String(), linkWithText(v.visit("/collection").parseHTML(), "Germany"))
		c.addVideos(parent, c.track(videoURL(3)))
		require.Equal(t, page, linkWithText(v.visit("/collection").parseHTML(), "Launch"))
		require.NotContains(t, textOf(v.visit(page).parsePage()), "videos are in its subcollections")
	})
}

func TestReportPage_namesTheAccountOfEachVideo(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	id := c.createReport(collection)
	page := "/collection/report/" + id.String()
	v := c.newSignedInVisitor(t)
	shown := v.visit(page)
	require.Equal(t, 1+3, strings.Count(string(shown.body), ">@northwind.studio</"), "the account has a row, and so has each of its videos")
	require.Equal(t, "?csv=videos", linkWithText(shown.parseHTML(), "CSV of 3 videos"))
	table := v.visit(page + "?csv=videos").requireStatus(http.StatusOK).table()
	require.Equal(t, []string{"link", "username", "title", "removed", "uploaded_at", "added_at", "start_day", "end_day", "views_at_start", "views_gained", "views_at_end"}, table[0])
	require.Len(t, table, 4)
	for _, row := range table[1:] {
		require.Equal(t, "northwind.studio", row[1])
		require.Equal(t, "333", row[9])
	}
	days := decode[client.Report](c.send(http.MethodGet, "/reports/"+id.String(), nil).requireStatus(http.StatusOK)).Statistics
	period := days.StartDate.String() + "-to-" + days.EndDate.String()
	for part, ending := range map[string]string{"history": "", "videos": "-videos", "accounts": "-accounts"} {
		require.Contains(t, v.visit(page+"?csv="+part).Header.Get("Content-Disposition"), "filename=report-1-spring-"+period+ending+"-2", "the name of the file must say which report it is")
		shared := (&visitor{app: a, t: t}).visit(c.shareReport(collection, id, map[string]any{"access": "public", "display_settings": map[string]any{"title": "Our launch", "show_accounts": true}}) + "?csv=" + part)
		require.Contains(t, shared.requireStatus(http.StatusOK).Header.Get("Content-Disposition"), "filename=report-1-"+period+ending+"-2", "visitors must not learn the name of the collection")
	}
	accounts := v.visit(page + "?csv=accounts").requireStatus(http.StatusOK).table()
	require.Equal(t, []string{"report", "period_start", "period_end", "account_id", "username", "platform", "videos", "views_gained", "unknown_gains", "views_at_end", "unknown_views"}, accounts[0])
	require.Equal(t, []string{"1", days.StartDate.String(), days.EndDate.String()}, accounts[1][:3])
	require.Equal(t, []string{"northwind.studio", "tiktok", "3", "999", "0", "6999", "0"}, accounts[1][4:])
	require.Len(t, accounts, 2)
	v.visit(page + "?csv=collections").requireStatus(http.StatusBadRequest)
}

func TestCollectionPage_listsTheLowestGainsOnlyIfTheyAreOfOtherVideos(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := c.createNamedCollection("Launch")
	v := c.newSignedInVisitor(t)
	views := int64(0) // each fetch returns more views, so that each video gains a different number of views
	// With five videos, the lists of the highest and of the lowest gains would have the same videos, so the page shows only one list. With six
	// videos, it shows both lists.
	for n, lists := range []string{"Gained views", "Gained most, Gained least"} {
		for video := n * 5; video < 5+n; video++ {
			c.addVideos(collection, c.track(videoURL(video)))
		}
		for range 2 {
			a.fetch(func(target queue.Target) ingest.VideoFacts {
				views += int64(target.ExternalID[len(target.ExternalID)-1])
				return ingest.VideoFacts{Views: new(views)}
			})
			a.Clock.Advance(24 * time.Hour)
		}
		var headings []string
		for _, heading := range findElements(v.visit("/collection/"+collection.String()).parsePage(), "h2") {
			if text := textOf(heading); strings.HasPrefix(text, "Gained") {
				headings = append(headings, text)
			}
		}
		require.Equal(t, lists, strings.Join(headings, ", "))
	}
}

func TestPages_sayThatTheVideosOfAPastPeriodHaveTheNumbersOfToday(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v, share := c.newSignedInVisitor(t), c.shareCollection(collection, "public", nil)
	page := "/collection/" + collection.String()
	past := "?start=" + a.daysAgo(3) + "&end=" + a.daysAgo(1)
	today := "?start=" + a.daysAgo(3) + "&end=" + a.daysAgo(0)
	for _, path := range []string{page, share} {
		body := string(v.visit(path + past).requireStatus(http.StatusOK).body)
		require.Contains(t, body, "<h2>Videos now</h2>")
		require.Contains(t, body, "The table has the videos and numbers of today. The numbers above are those of the period until "+a.daysAgo(1)+".")
		for _, query := range []string{"", today} {
			body = string(v.visit(path + query).requireStatus(http.StatusOK).body)
			require.Contains(t, body, "<h2>Videos</h2>")
			require.NotContains(t, body, "numbers of today")
		}
	}
	require.Contains(t, v.visit(page+past+"&csv=videos").Header.Get("Content-Disposition"), "-videos-now-")
	require.NotContains(t, v.visit(page+today+"&csv=videos").Header.Get("Content-Disposition"), "now")
}

func TestPages_sayOnHowManyDaysSumsOfACollectionWereNotMeasured(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, videos := createDashboardData(a, c) // nothing was fetched on the last two days
	v, share := c.newSignedInVisitor(t), c.shareCollection(collection, "public", nil)
	pages := []string{"/collection/" + collection.String(), share, "/collection/report/" + c.createReport(collection).String()}
	for _, page := range pages {
		got := v.visit(page).requireStatus(http.StatusOK)
		text := textOf(got.parsePage())
		require.Contains(t, text, "On 2 days, counts of some videos are those of an earlier day, because nothing was fetched since then. On 2 days, no video was fetched.", page)
		require.NotContains(t, text, "are calculated from the fetches", page)
		require.Equal(t, 2, strings.Count(string(got.body), `data-quality="carried" data-note="3 videos with counts of an earlier day"`), page)
		rows := v.visit(page + "?csv=history").table()
		require.Equal(t, []string{"videos_interpolated", "videos_carried"}, rows[0][len(rows[0])-2:], page)
		require.Equal(t, []string{"0", "0"}, rows[len(rows)-3][len(rows[0])-2:], page)
		require.Equal(t, []string{"0", "3"}, rows[len(rows)-1][len(rows[0])-2:], page)
	}
	c.stopVideos(http.StatusOK, videos[0].String())
	a.fetch(factsWithViews(9000))
	for _, page := range pages[:2] {
		got := v.visit(page).requireStatus(http.StatusOK)
		text := textOf(got.parsePage())
		require.Contains(t, text, "On 1 day, counts of some videos are calculated from the fetches before and after. On 2 days, counts of some videos are those of an earlier day", page)
		require.Contains(t, text, "On 1 day, no video was fetched.", page)
		require.Contains(t, string(got.body), `data-quality="interpolated" data-note="2 videos calculated, 1 video with counts of an earlier day"`, page)
		require.Contains(t, string(got.body), `" data-note="1 video with counts of an earlier day"`, page)
	}
	require.NotContains(t, textOf(v.visit(pages[0]+"?start="+a.daysAgo(5)+"&end="+a.daysAgo(2)).parsePage()), "no video was fetched")
}
