package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// createReportForAmounts creates a report with four accounts. The account "most" gained 200,100 views, and "some" gained 1,005 with one of its two
// videos; the gain of the other is unknown. The views of "fewer" fell by 300. The gain of the fourth account, which has no name, is unknown.
func createReportForAmounts(a *app, c *caller) (collection, report uuid.UUID) {
	collection = c.createNamedCollection("Launch")
	c.addVideos(collection, c.track(videoURL(1)), c.track(videoURL(2)), c.track(videoURL(3)), c.track(videoURL(4)), c.track("https://www.instagram.com/reel/C0000000005/"))
	names := map[byte]string{'1': "most", '2': "some", '3': "some", '4': "fewer"}
	gains := map[byte]int64{'1': 200_100, '2': 1005, '4': -300}
	for day := range int64(2) {
		a.fetch(func(target queue.Target) ingest.VideoFacts {
			video := target.ExternalID[len(target.ExternalID)-1]
			if target.Platform == link.Instagram || video == '3' {
				facts := ingest.VideoFacts{Likes: new(int64(1))}
				if name := names[video]; target.Platform != link.Instagram {
					facts.Username, facts.AccountID = &name, &name
				}
				return facts
			}
			name := names[video]
			return ingest.VideoFacts{Views: new(1000 + day*gains[video]), Username: &name, AccountID: &name}
		})
		a.Clock.Advance(24 * time.Hour)
	}
	return collection, c.createReport(collection)
}

// tableBelow returns the text of each cell of the table in the section with the given heading.
func tableBelow(page *html.Node, heading string) (rows [][]string) {
	for _, section := range findElements(page, "section") {
		if headings := findElements(section, "h2"); len(headings) == 0 || textOf(headings[0]) != heading {
			continue
		}
		for _, row := range findElements(section, "tr") {
			var cells []string
			for cell := range row.ChildNodes() {
				cells = append(cells, textOf(cell))
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

func TestReportPage_showsTheAmountsToPay(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		_, report := createReportForAmounts(a, c)
		api, page, v := "/reports/"+report.String(), "/collection/report/"+report.String(), c.newSignedInVisitor(t)
		before := c.send(http.MethodGet, api, nil).requireStatus(http.StatusOK)
		plain := v.visit(page + "?metric=likes").requireStatus(http.StatusOK)
		plainFile := v.visit(page + "?csv=accounts").requireStatus(http.StatusOK)
		require.Contains(t, string(plain.body), `name="rate"`)
		require.NotContains(t, textOf(plain.parsePage()), "Total:")
		require.Equal(t, []string{"Account", "Platform", "Videos", "Gained", "At the end"}, tableBelow(plain.parsePage(), "Accounts")[0])
		require.Equal(t, "?csv=accounts", linkWithText(plain.parsePage(), "CSV of 4 accounts"))

		shown := v.visit(page + "?metric=likes&rate=1&cap=200&currency=eur").requireStatus(http.StatusOK).parsePage()
		require.Equal(t, [][]string{
			{"Account", "Platform", "Videos", "Gained", "At the end", "Amount (EUR)"},
			{"@most", "TikTok", "1", "200,100", "201,100", "200.00 cap reached"},
			{"@some", "TikTok", "2", "1,005 unknown for 1", "2,005 unknown for 1", "1.01 unknown for 1"},
			{"@fewer", "TikTok", "1", "−300", "700", "0.00 gain below 0"},
			{"unknown", "Instagram", "1", "– unknown for 1", "– unknown for 1", "– unknown for 1"},
		}, tableBelow(shown, "Accounts"))
		text := textOf(shown)
		require.Contains(t, text, "Total: 201.01 EUR for 3 accounts. Rate: 1.00 EUR for each 1,000 views gained, at most 200.00 EUR for each account.")
		require.Contains(t, text, "1 account has no amount, because its gain is unknown. 1 amount leaves out videos whose gain is unknown. 1 account has a gain below 0, so its amount is 0.00. When the lost views return, a report that continues this one does not pay them again. 1 account reached the cap.")
		require.Contains(t, text, "The amounts are computed from the report and are not saved.")
		fields := map[string]string{}
		for _, input := range findElements(shown, "input") {
			fields[attributeValue(input, "name")] = attributeValue(input, "value")
		}
		require.Equal(t, []string{"likes", "1", "200", "eur"}, []string{fields["metric"], fields["rate"], fields["cap"], fields["currency"]}, "the form must keep its values and the metric of the chart")

		var actions []string
		for _, f := range findElements(shown, "form") {
			if attributeValue(f, "class") == "fields" {
				actions = append(actions, attributeValue(f, "action"))
			}
		}
		require.Equal(t, []string{"#accounts", "?cap=200&currency=eur&metric=likes&rate=1"}, actions, "the address of the second form, for the share page, must have no fragment")

		file := v.visit(page + linkWithText(shown, "CSV of 4 accounts with the amounts")).requireStatus(http.StatusOK).table()
		require.Equal(t, []string{"report", "period_start", "period_end", "account_id", "username", "platform", "videos", "views_gained", "unknown_gains", "views_at_end", "unknown_views", "amount", "currency", "rate_per_1000_views", "cap", "amount_note", "paid_views"}, file[0])
		for n, want := range [][]string{
			{"most", "200.00", "EUR", "1.00", "200.00", "cap reached", "200100"},
			{"some", "1.01", "EUR", "1.00", "200.00", "unknown for 1", "1005"},
			{"fewer", "0.00", "EUR", "1.00", "200.00", "gain below 0", "-300"},
			{"", "", "EUR", "1.00", "200.00", "unknown for 1", ""},
		} {
			require.Equal(t, want, append([]string{file[n+1][4]}, file[n+1][11:]...))
		}
		file = v.visit(page + "?csv=accounts&rate=0.0001").requireStatus(http.StatusOK).table()
		require.Equal(t, []string{"0.02", "", "0.0001", "", "", "200100"}, file[1][11:])

		for _, without := range []string{"", "&rate=", "&rate=&cap=5&currency=EUR"} {
			require.Equal(t, string(plainFile.body), string(v.visit(page+"?csv=accounts"+without).requireStatus(http.StatusOK).body), "without a rate, the file must not change")
		}
		require.Equal(t, plain.body, v.visit(page+"?metric=likes").requireStatus(http.StatusOK).body, "the terms must not be stored")
		require.Equal(t, before.body, c.send(http.MethodGet, api, nil).requireStatus(http.StatusOK).body)
	})
}

func TestReportPage_paysTheViewsAtTheStartOfNewVideos(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := c.createNamedCollection("Launch")
	c.addVideos(collection, c.track(videoURL(1)), c.track(videoURL(2)))
	uploaded := map[byte]time.Time{'1': a.Clock.Now(), '2': a.Clock.Now().AddDate(-1, 0, 0)}
	for day := range int64(2) {
		a.fetch(func(target queue.Target) ingest.VideoFacts {
			video := target.ExternalID[len(target.ExternalID)-1]
			return ingest.VideoFacts{Views: new(5000 + 1000*day), Username: new("name" + string(video)), AccountID: new(string(video)), UploadedAt: new(uploaded[video])}
		})
		a.Clock.Advance(24 * time.Hour)
	}
	report := c.createReport(collection)
	page, v := "/collection/report/"+report.String(), c.newSignedInVisitor(t)
	const sentence = "1 video that was uploaded in the period had 5,000 views at the start. These are not gained views."
	plain := v.visit(page + "?rate=2").requireStatus(http.StatusOK).parsePage()
	require.Contains(t, textOf(plain), sentence)
	require.NotContains(t, textOf(plain), "The amounts pay them, too.")
	require.Equal(t, []string{"Video", "Account", "Uploaded", "At the start", "Gained", "At the end"}, tableBelow(plain, "Videos")[0])
	require.Contains(t, []string{tableBelow(plain, "Videos")[1][2], tableBelow(plain, "Videos")[2][2]}, uploaded['1'].Format(time.DateOnly))

	shown := v.visit(page + "?rate=2&start_views=true").requireStatus(http.StatusOK)
	rows := tableBelow(shown.parsePage(), "Accounts")
	require.Equal(t, []string{"Account", "Platform", "Videos", "Gained", "At the end", "Paid views", "Amount"}, rows[0])
	require.ElementsMatch(t, [][]string{{"@name1", "TikTok", "1", "1,000", "6,000", "6,000", "12.00"}, {"@name2", "TikTok", "1", "1,000", "6,000", "1,000", "2.00"}}, rows[1:])
	require.Contains(t, textOf(shown.parsePage()), sentence+" The amounts pay them, too.")
	require.Contains(t, string(shown.body), `name="start_views" value="true" checked`)
	file := v.visit(page + linkWithText(shown.parsePage(), "CSV of 2 accounts with the amounts")).requireStatus(http.StatusOK).table()
	require.Equal(t, "paid_views", file[0][len(file[0])-1])
	require.ElementsMatch(t, []string{"6000", "1000"}, []string{file[1][len(file[1])-1], file[2][len(file[2])-1]})

	shared := (&visitor{app: a, t: t}).visit(c.shareReport(collection, report, map[string]any{"access": "public", "display_settings": map[string]any{"show_accounts": true}}) + "?rate=2&start_views=true")
	require.NotContains(t, string(shared.requireStatus(http.StatusOK).body), "at the start.")
	require.NotContains(t, string(shared.body), "Paid views")
}

func TestReportPage_saysWhichViewsAtTheStartNoReportPays(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := c.createNamedCollection("Launch")
	uploaded := map[byte]time.Time{}
	track := func(n int) {
		uploaded[byte('0'+n)] = a.Clock.Now()
		c.addVideos(collection, c.track(videoURL(n)))
	}
	fetch := func(views map[byte]int64) {
		a.fetch(func(target queue.Target) ingest.VideoFacts {
			video := target.ExternalID[len(target.ExternalID)-1]
			facts := ingest.VideoFacts{Username: new("late"), AccountID: new("late"), UploadedAt: new(uploaded[video])}
			if video != '2' {
				facts.Username, facts.AccountID = new("first"), new("first")
			}
			if n, found := views[video]; found {
				facts.Views = &n
			}
			return facts
		})
		a.Clock.Advance(24 * time.Hour)
	}
	track(1)
	fetch(map[byte]int64{'1': 5000})
	track(2) // its views are unknown until the first report has ended
	fetch(map[byte]int64{'1': 6000})
	first, _ := c.createReportWith(collection, map[string]any{"start_date": a.daysAgo(2), "end_date": a.daysAgo(1)})
	track(3)
	fetch(map[byte]int64{'1': 7000, '2': 300, '3': 40})
	second, _ := c.createReportWith(collection, map[string]any{"continues_report_id": first.ID, "end_date": a.daysAgo(1)})
	v := c.newSignedInVisitor(t)
	const unpaid = "1 video was uploaded in the period of the continued report, but first counted in this one, with 300 views at the start. The amounts of neither report pay these views."
	require.NotContains(t, textOf(v.visit("/collection/report/"+first.ID.String()).parsePage()), "neither report")
	page := "/collection/report/" + second.ID.String() + "?rate=2"
	plain := v.visit(page).requireStatus(http.StatusOK).parsePage()
	require.Contains(t, textOf(plain), unpaid)
	require.Equal(t, []string{"@first", "TikTok", "2", "1,000 unknown for 1", "7,040", "2.00 unknown for 1"}, tableBelow(plain, "Accounts")[1])
	require.Contains(t, textOf(plain), "1 amount leaves out videos whose gain is unknown.")
	withStart := v.visit(page + "&start_views=true").requireStatus(http.StatusOK).parsePage()
	require.Contains(t, textOf(withStart), unpaid)
	require.Equal(t, []string{"@first", "TikTok", "2", "1,000 unknown for 1", "7,040", "1,040", "2.08"}, tableBelow(withStart, "Accounts")[1])
	require.NotContains(t, textOf(withStart), "leaves out videos whose gain is unknown", "the views at the start of the video without a gain are paid")
}

// TestReportPage_saysWhichViewsNoReportCounts removes a video from a collection and adds it again, between two reports. It then begins anew.
func TestReportPage_saysWhichViewsNoReportCounts(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, video, uploaded := c.createNamedCollection("Launch"), c.track(videoURL(1)), a.Clock.Now()
	c.addVideos(collection, video)
	fetch := func(views int64) {
		a.fetch(func(queue.Target) ingest.VideoFacts {
			return ingest.VideoFacts{Views: &views, Username: new("some"), AccountID: new("some"), UploadedAt: &uploaded}
		})
	}
	fetch(300)
	a.Clock.Advance(24 * time.Hour)
	fetch(10_000)
	a.Clock.Advance(24 * time.Hour)
	first, _ := c.createReportWith(collection, map[string]any{"end_date": a.daysAgo(1)})
	c.changeMembers(http.MethodDelete, collection, "videos", []uuid.UUID{video}).requireStatus(http.StatusOK)
	c.addVideos(collection, video)
	fetch(11_000)
	a.Clock.Advance(24 * time.Hour)
	fetch(12_000)
	second, report := c.createReportWith(collection, map[string]any{"continues_report_id": first.ID})
	require.Equal(t, []int64{10_000, 11_000, 1000}, []int64{*report.Videos[0].ContinuedViewsAtEnd, *report.Videos[0].ViewsAtStart, *report.Videos[0].ViewsGained})
	page := textOf(c.newSignedInVisitor(t).visit("/collection/report/" + second.ID.String()).parsePage())
	require.Contains(t, page, "1 video of the continued report begins anew in this report, because of a later addition to the collection. 1,000 views between the two reports are in neither of them.")
	require.NotContains(t, page, "first counted in this one")
}

// TestReportPage_paysNoRegainedViewsAgain makes four reports of a series. A video loses views in the second report, in which another video is new, and regains them in the
// third and fourth.
func TestReportPage_paysNoRegainedViewsAgain(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Launch")
		c.addVideos(collection, c.track(videoURL(1)))
		fetch := func(views map[byte]int64) {
			uploaded := a.Clock.Now()
			a.fetch(func(target queue.Target) ingest.VideoFacts {
				n := views[target.ExternalID[len(target.ExternalID)-1]]
				return ingest.VideoFacts{Views: &n, Username: new("some"), AccountID: new("some"), UploadedAt: &uploaded}
			})
			a.Clock.Advance(24 * time.Hour)
		}
		fetch(map[byte]int64{'1': 1000})
		fetch(map[byte]int64{'1': 10_000})
		first, _ := c.createReportWith(collection, map[string]any{"start_date": a.daysAgo(1), "end_date": a.daysAgo(1)})
		c.addVideos(collection, c.track(videoURL(2)))
		fetch(map[byte]int64{'1': 5000, '2': 3000})
		second, _ := c.createReportWith(collection, map[string]any{"continues_report_id": first.ID, "end_date": a.daysAgo(1)})
		fetch(map[byte]int64{'1': 9000, '2': 3000})
		third, _ := c.createReportWith(collection, map[string]any{"continues_report_id": second.ID, "end_date": a.daysAgo(1)})
		fetch(map[byte]int64{'1': 12_000, '2': 3000})
		fourth, _ := c.createReportWith(collection, map[string]any{"continues_report_id": third.ID, "end_date": a.daysAgo(1)})
		alone, _ := c.createReportWith(collection, map[string]any{"start_date": a.daysAgo(1), "end_date": a.daysAgo(1)})

		v := c.newSignedInVisitor(t)
		for _, want := range []struct {
			report                          client.ReportSummary
			gained, toRegain, withStart     int64
			amount, amountWithStart, remark string
		}{
			{first, 9000, 0, 0, "9.00", "9.00", ""},
			{second, -5000, 0, 0, "0.00 gain below 0, unknown for 1", "0.00 gain below 0", "When the lost views return, a report that continues this one does not pay them again."},
			{third, 4000, 5000, 2000, "0.00 4,000 regained", "2.00 2,000 regained", "1 account regained 4,000 views lost in reports that this report continues. These views are not paid again."},
			{fourth, 3000, 1000, 0, "2.00 1,000 regained", "3.00", "1 account regained 1,000 views lost in reports that this report continues. These views are not paid again."},
			{alone, 3000, 0, 0, "3.00", "3.00", ""},
		} {
			account := decode[client.Report](c.send(http.MethodGet, "/reports/"+want.report.ID.String(), nil).requireStatus(http.StatusOK)).Accounts[0]
			require.Equal(t, []int64{want.gained, want.toRegain, want.withStart}, []int64{*account.ViewsGained, *account.ViewsToRegain, *account.ViewsToRegainWithStart}, "report %d", want.report.Number)
			page := "/collection/report/" + want.report.ID.String() + "?rate=1"
			shown := v.visit(page).requireStatus(http.StatusOK).parsePage()
			rows := tableBelow(shown, "Accounts")
			require.Equal(t, want.amount, rows[1][len(rows[1])-1], "report %d", want.report.Number)
			require.Equal(t, strings.Contains(want.amount, "regained"), rows[0][5] == "Paid views")
			require.Contains(t, textOf(shown), want.remark)
			rows = tableBelow(v.visit(page+"&start_views=true").requireStatus(http.StatusOK).parsePage(), "Accounts")
			require.Equal(t, want.amountWithStart, rows[1][len(rows[1])-1], "report %d with the views at the start", want.report.Number)
		}
	})
}

func TestReportPage_refusesInvalidTermsOfAmounts(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	_, report := createReportForAmounts(a, c)
	page, v := "/collection/report/"+report.String(), c.newSignedInVisitor(t)
	const query = "rate=2,50&cap=%3Cb%3E&currency=EUR"
	refused := v.visit(page + "?" + query).requireStatus(http.StatusBadRequest)
	shown := refused.parseHTML()
	const rule = `The rate is "2,50"; it must be a number from 0.0001 to 1,000,000 such as 2.50, with at most 4 decimals after a point.`
	require.Contains(t, alerts(shown), rule+` The cap is "<b>"; it must be`)
	require.Contains(t, string(refused.body), `value="2,50"`)
	require.Len(t, tableBelow(shown, "Accounts")[0], 5, "the page must show no amounts")
	require.NotContains(t, textOf(shown), "Total:")
	require.Equal(t, "?csv=accounts", linkWithText(shown, "CSV of 4 accounts"))
	require.Contains(t, string(v.visit(page+"?csv=accounts&"+query).requireStatus(http.StatusBadRequest).body), "The rate is &#34;2,50&#34;")
	for _, part := range []string{"videos", "history"} {
		v.visit(page + "?" + query + "&csv=" + part).requireStatus(http.StatusOK)
	}
	require.Equal(t, http.StatusConflict, v.post(page+"?rate=x", "access", "protected").StatusCode, "the status must be the one of the submitted form")
}

func TestReportPage_hasNoAmountsWithoutAccounts(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, report := createReportForAmounts(a, c)
	page, v := "/collection/report/"+report.String(), c.newSignedInVisitor(t)
	const query = "?rate=1&currency=EUR"
	shared := c.shareReport(collection, report, map[string]any{"access": "public"})
	visitor := &visitor{app: a, t: t}
	require.NotContains(t, string(visitor.visit(shared+query).requireStatus(http.StatusOK).body), "mount")
	visitor.visit(shared + query + "&csv=accounts").requireStatus(http.StatusBadRequest)
	empty := "/collection/report/" + c.createReport(c.createNamedCollection("Empty")).String()
	require.NotContains(t, string(v.visit(empty+query).requireStatus(http.StatusOK).body), "mount")

	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
	a.Clock.Advance(2 * time.Second)
	for _, terms := range []string{query, "?rate=x"} {
		require.NotContains(t, strings.ToLower(string(v.visit(page+terms).requireStatus(http.StatusOK).body)), "amount", "the tier hides the numbers")
	}
	require.Len(t, v.visit(page+query+"&csv=accounts").requireStatus(http.StatusOK).table(), 1)
}
