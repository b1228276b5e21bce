package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// createReportWith creates a report of a collection with the given request body. It returns the response to this request, and the report that
// GET /reports/{report_id} returns.
func (c *caller) createReportWith(collection uuid.UUID, body map[string]any, headers ...string) (client.ReportSummary, client.Report) {
	c.t.Helper()
	made := decode[client.ReportSummary](c.send(http.MethodPost, "/collections/"+collection.String()+"/reports", body, headers...).requireStatus(http.StatusCreated))
	return made, decode[client.Report](c.send(http.MethodGet, "/reports/"+made.ID.String(), nil).requireStatus(http.StatusOK))
}

// viewsByVideo returns a function for app.fetch that gives each video the views in the map. The key of the map is the last digit of the video's id. Videos
// that are not in the map get no views.
func viewsByVideo(views map[byte]int64) func(queue.Target) ingest.VideoFacts {
	return func(target queue.Target) ingest.VideoFacts {
		n, found := views[target.ExternalID[len(target.ExternalID)-1]]
		if !found {
			return ingest.VideoFacts{Username: new("maker")}
		}
		return ingest.VideoFacts{Views: &n, Username: new("maker")}
	}
}

// Requirements in docs/coverage.md: 11.5-06
func TestContinuedReports_addUpToTheLastViewsMinusTheFirst(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Launch")
		// Video 1 gets a new count after the first report. Video 2 is added later. Video 3 is removed and added again. The views of video 4 are
		// unknown in the first report. The views of video 5 fall.
		ids := map[uuid.UUID]byte{}
		var videos []uuid.UUID
		for n := range 5 {
			id := c.track(videoURL(n + 1))
			videos, ids[id] = append(videos, id), byte('1'+n)
		}
		c.addVideos(collection, videos[0], videos[2], videos[3], videos[4])
		day := 1
		fetchOn := func(d int, views map[byte]int64) {
			a.Clock.Advance(time.Duration(d-day) * 24 * time.Hour)
			day = d
			a.fetch(viewsByVideo(views))
		}
		fetchOn(1, map[byte]int64{'1': 1000, '3': 100, '5': 5000})
		begin := a.daysAgo(0)
		fetchOn(4, map[byte]int64{'1': 10_000, '3': 200, '5': 6000})
		a.Clock.Advance(48 * time.Hour)
		day = 6
		first, firstReport := c.createReportWith(collection, map[string]any{"start_date": begin, "end_date": a.daysAgo(1)})
		require.Nil(t, first.ContinuesReportID)
		require.Nil(t, firstReport.ContinuesReportID)

		c.changeMembers(http.MethodDelete, collection, "videos", []uuid.UUID{videos[2]}).requireStatus(http.StatusOK)
		c.addVideos(collection, videos[2])
		fetchOn(6, map[byte]int64{'3': 300})
		c.addVideos(collection, videos[1])
		fetchOn(7, map[byte]int64{'2': 500, '4': 50})
		fetchOn(8, map[byte]int64{'1': 16_000, '2': 700, '3': 450, '4': 80, '5': 5500})
		// The second report ends on the day on which it is saved, and the views rise later on that day.
		body := map[string]any{"continues_report_id": first.ID}
		second, secondReport := c.createReportWith(collection, body, "Idempotency-Key", "one")
		repeated, _ := c.createReportWith(collection, body, "Idempotency-Key", "one")
		require.Equal(t, second, repeated)
		a.Clock.Advance(2 * time.Hour)
		a.fetch(viewsByVideo(map[byte]int64{'1': 16_400, '2': 740, '3': 450, '4': 80, '5': 5400}))
		fetchOn(9, map[byte]int64{'1': 20_000, '2': 900, '3': 460, '4': 90, '5': 5800})
		third, thirdReport := c.createReportWith(collection, map[string]any{"continues_report_id": second.ID, "start_date": a.daysAgo(0)})
		require.Equal(t, []int64{1, 2, 3}, []int64{first.Number, second.Number, third.Number})

		type gain struct{ start, end, gained string }
		for n, want := range []map[byte]gain{
			{'1': {"1000", "10000", "9000"}, '3': {"100", "200", "100"}, '4': {"", "", ""}, '5': {"5000", "6000", "1000"}},
			// Without the first report, the views of the first video would begin with 11,500: a quarter of the way from 10,000 to 16,000.
			{'1': {"10000", "16000", "6000"}, '2': {"500", "700", "200"}, '3': {"300", "450", "150"}, '4': {"50", "80", "30"}, '5': {"6000", "5500", "-500"}},
			// Without the second report, the views of the first video would begin with 16,400: the last views of the day on which the second report was saved.
			{'1': {"16000", "20000", "4000"}, '2': {"700", "900", "200"}, '3': {"450", "460", "10"}, '4': {"80", "90", "10"}, '5': {"5500", "5800", "300"}},
		} {
			report := []client.Report{firstReport, secondReport, thirdReport}[n]
			got := map[byte]gain{}
			for _, v := range report.Videos {
				got[ids[v.AdID]] = gain{digits(v.ViewsAtStart), digits(v.ViewsAtEnd), digits(v.ViewsGained)}
			}
			require.Equal(t, want, got, "report %d", n+1)
			require.Equal(t, []int64{10_100, 5880, 4520}[n], *report.Statistics.ViewsGained)
			require.Equal(t, []int64{6100, 16_850, 22_730}[n], *report.Statistics.ViewsAtStart)
			var ofDays, ofAccounts, corrected int64
			for _, d := range report.Days {
				if d.ViewsGained != nil {
					ofDays += *d.ViewsGained
				}
				corrected += *d.ViewsCorrected
			}
			for _, account := range report.Accounts {
				ofAccounts += *account.ViewsGained
			}
			require.Equal(t, *report.Statistics.ViewsGained, ofDays, "the gains of the days must add up to the gain of report %d", n+1)
			require.Equal(t, *report.Statistics.ViewsGained, ofAccounts, "the gains of the accounts must add up to the gain of report %d", n+1)
			require.Equal(t, *report.Statistics.ViewsCorrected, corrected)
		}
		require.Equal(t, begin, firstReport.Statistics.StartDate.String())
		require.Equal(t, []string{a.daysAgo(3), a.daysAgo(1)}, []string{second.StartDate.String(), second.EndDate.String()})
		require.Equal(t, []string{a.daysAgo(0), a.daysAgo(0)}, []string{third.StartDate.String(), third.EndDate.String()})
		for _, v := range thirdReport.Videos {
			require.Equal(t, a.daysAgo(1), v.StartDay.String(), "the day before the period")
		}
		require.Equal(t, []*uuid.UUID{&first.ID, &second.ID}, []*uuid.UUID{secondReport.ContinuesReportID, thirdReport.ContinuesReportID})
		listed := decode[client.ReportPage](c.send(http.MethodGet, "/collections/"+collection.String()+"/reports", nil).requireStatus(http.StatusOK)).Data
		require.Equal(t, []*uuid.UUID{&second.ID, &first.ID, nil}, []*uuid.UUID{listed[0].ContinuesReportID, listed[1].ContinuesReportID, listed[2].ContinuesReportID})
	})
}

func TestContinuedReport_isRefusedIfItCannotContinueTheReport(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, theirs := a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)
		collection, other := c.createNamedCollection("Launch"), c.createNamedCollection("Other")
		earlier, _ := c.createReportWith(collection, map[string]any{"end_date": a.daysAgo(3)})
		untilToday, _ := c.createReportWith(collection, map[string]any{})
		ofOther, _ := c.createReportWith(other, map[string]any{})
		ofOthers, _ := theirs.createReportWith(theirs.createNamedCollection("Launch"), map[string]any{})
		refused := func(body map[string]any, status int, code server.Code) client.Fault {
			t.Helper()
			p := c.send(http.MethodPost, "/collections/"+collection.String()+"/reports", body).requireProblem(status, code)
			require.Len(t, p.Errors, 1)
			require.Equal(t, strings.TrimSuffix(p.Detail, "."), strings.TrimSuffix(p.Errors[0].Detail, "."))
			return p.Errors[0]
		}
		for _, test := range []struct {
			body          map[string]any
			pointer, want string
		}{
			{map[string]any{"continues_report_id": earlier.ID, "start_date": a.daysAgo(3)}, "/start_date",
				"start_date is " + a.daysAgo(3) + "; it must be " + a.daysAgo(2) + ", the day after the end of report 1, which the new report continues"},
			{map[string]any{"continues_report_id": earlier.ID, "start_date": a.daysAgo(1)}, "/start_date",
				"start_date is " + a.daysAgo(1) + "; it must be " + a.daysAgo(2) + ", the day after the end of report 1, which the new report continues"},
			{map[string]any{"continues_report_id": earlier.ID, "end_date": a.daysAgo(3)}, "/end_date",
				"end_date is " + a.daysAgo(3) + "; it must not be before " + a.daysAgo(2) + ", the day after the end of report 1, which the new report continues"},
			{map[string]any{"continues_report_id": earlier.ID, "include_children": true}, "/include_children",
				"include_children is true; it must be false, as in report 1, which the new report continues"},
			{map[string]any{"continues_report_id": untilToday.ID}, "/continues_report_id",
				"report 2 ends on " + a.daysAgo(0) + "; a report can continue it from " + a.daysAgo(-1) + " on, and today is " + a.daysAgo(0)},
			{map[string]any{"continues_report_id": untilToday.ID, "start_date": a.daysAgo(-1)}, "/continues_report_id",
				"report 2 ends on " + a.daysAgo(0) + "; a report can continue it from " + a.daysAgo(-1) + " on, and today is " + a.daysAgo(0)},
		} {
			fault := refused(test.body, http.StatusConflict, server.CodeConflict)
			require.Equal(t, []string{test.pointer, test.want}, []string{*fault.Pointer, fault.Detail})
		}
		for _, id := range []uuid.UUID{ofOther.ID, ofOthers.ID, uuid.New()} {
			fault := refused(map[string]any{"continues_report_id": id}, http.StatusNotFound, server.CodeNotFound)
			require.Equal(t, []string{"/continues_report_id", "Collection " + collection.String() + " has no report " + id.String() + "."}, []string{*fault.Pointer, fault.Detail})
		}
		require.Len(t, decode[client.ReportPage](c.send(http.MethodGet, "/collections/"+collection.String()+"/reports", nil).requireStatus(http.StatusOK)).Data, 2)

		withChildren, _ := c.createReportWith(collection, map[string]any{"end_date": a.daysAgo(3), "include_children": true})
		c.createReportWith(collection, map[string]any{"continues_report_id": withChildren.ID, "include_children": true})
		again, _ := c.createReportWith(collection, map[string]any{"continues_report_id": earlier.ID})
		require.Equal(t, a.daysAgo(2), again.StartDate.String())
		c.createReportWith(collection, map[string]any{"continues_report_id": earlier.ID}) // several reports can continue the same report
		none, _ := c.createReportWith(collection, map[string]any{"continues_report_id": nil})
		require.Equal(t, a.daysAgo(30), none.StartDate.String())
		a.Clock.Advance(24 * time.Hour)
		tomorrow, _ := c.createReportWith(collection, map[string]any{"continues_report_id": untilToday.ID})
		require.Equal(t, a.daysAgo(0), tomorrow.StartDate.String())
	})
}

func TestContinuedReport_showsNoNumbersToTheBasicTier(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierBasic)
	collection := c.createNamedCollection("Launch")
	c.addVideos(collection, c.track(videoURL(1)))
	a.fetch(factsWithViews(1000))
	first, _ := c.createReportWith(collection, map[string]any{})
	a.Clock.Advance(24 * time.Hour)
	a.fetch(factsWithViews(1500))
	second, masked := c.createReportWith(collection, map[string]any{"continues_report_id": first.ID})
	require.Nil(t, second.Checksum)
	require.Equal(t, &first.ID, masked.ContinuesReportID)
	require.Nil(t, masked.Statistics.ViewsAtStart)
	require.Empty(t, masked.Videos)
	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierPremium))
	a.Clock.Advance(2 * time.Second)
	shown := decode[client.Report](c.send(http.MethodGet, "/reports/"+second.ID.String(), nil).requireStatus(http.StatusOK))
	require.Equal(t, []int64{1000, 500}, []int64{*shown.Statistics.ViewsAtStart, *shown.Statistics.ViewsGained})
}

func TestCollectionPage_offersToBeginWhereTheNewestReportEnded(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v := c.newSignedInVisitor(t)
	page := "/collection/" + collection.String()
	checked := false
	// choice returns the value and the text of the checkbox, or "" if the page has none. It also sets checked.
	choice := func(query string) (id, label string) {
		for _, l := range findElements(v.visit(page+query).requireStatus(http.StatusOK).parsePage(), "label") {
			for _, input := range findElements(l, "input") {
				if attributeValue(input, "name") == "continues" {
					checked = slices.ContainsFunc(input.Attr, func(a html.Attribute) bool { return a.Key == "checked" })
					return attributeValue(input, "value"), textOf(l)
				}
			}
		}
		return "", ""
	}
	id, _ := choice("")
	require.Empty(t, id, "there is no report yet")
	earlier, _ := c.createReportWith(collection, map[string]any{"end_date": a.daysAgo(4)})
	id, label := choice("")
	require.Equal(t, []string{earlier.ID.String(), "Begin where report 1 ended (" + a.daysAgo(4) + ")"}, []string{id, label})
	id, _ = choice("?subtree=true")
	require.Empty(t, id, "the report has no subcollections")
	id, _ = choice("?start=" + a.daysAgo(9) + "&end=" + a.daysAgo(4))
	require.Empty(t, id, "the report ends with the period")
	id, _ = choice("?start=" + a.daysAgo(9) + "&end=" + a.daysAgo(3))
	require.NotEmpty(t, id)
	require.False(t, checked, "the period does not begin on the day after the report")
	require.Contains(t, textOf(v.visit(page).parsePage()), "the gains of both add up. Its first day is then "+a.daysAgo(3)+". The period ends today.")
	id, _ = choice("?start=" + a.daysAgo(3) + "&end=" + a.daysAgo(2))
	require.NotEmpty(t, id)
	require.True(t, checked, "the period begins on the day after the report")
	next := textOf(v.visit(page + "?start=" + a.daysAgo(3) + "&end=" + a.daysAgo(2)).parsePage())
	require.NotContains(t, next, "Its first day is then")
	require.NotContains(t, next, "The period ends today")

	v.post(page+"/freeze", "start", a.daysAgo(9), "end", a.daysAgo(3), "subtree", "false", "continues", id).requireStatus(http.StatusSeeOther)
	saved := decode[client.ReportPage](c.send(http.MethodGet, "/collections/"+collection.String()+"/reports", nil).requireStatus(http.StatusOK)).Data[0]
	require.Equal(t, &earlier.ID, saved.ContinuesReportID)
	require.Equal(t, []string{a.daysAgo(3), a.daysAgo(3)}, []string{saved.StartDate.String(), saved.EndDate.String()})
	id, _ = choice("")
	require.Equal(t, saved.ID.String(), id, "the newest report")
	refused := v.post(page+"/freeze", "subtree", "true", "continues", id).requireStatus(http.StatusConflict)
	require.Contains(t, textOf(refused.parseHTML()), "include_children is true; it must be false")

	const continues = "Continues report 1"
	shown := v.visit("/collection/report/" + saved.ID.String()).requireStatus(http.StatusOK)
	require.Contains(t, textOf(shown.parsePage()), continues)
	require.Equal(t, "/collection/report/"+earlier.ID.String(), linkWithText(shown.parseHTML(), "report 1"))
	require.NotContains(t, textOf(v.visit("/collection/report/"+earlier.ID.String()).parsePage()), "Continues")
	visitor := &visitor{app: a, t: t}
	shared := visitor.visit(c.shareReport(collection, saved.ID, map[string]any{"access": "public"})).requireStatus(http.StatusOK)
	require.Contains(t, textOf(shared.parsePage()), continues)
	require.NotContains(t, string(shared.body), earlier.ID.String(), "a share page must show no ids")
	other := visitor.visit(c.shareReport(collection, earlier.ID, map[string]any{"access": "public"})).requireStatus(http.StatusOK)
	require.NotContains(t, textOf(other.parsePage()), "Continues")

	id, _ = choice("?start=" + a.daysAgo(3) + "&end=" + a.daysAgo(2))
	require.Equal(t, earlier.ID.String(), id, "this report ends on the day before the period")
	require.True(t, checked)

	old, _ := c.createReportWith(collection, map[string]any{"start_date": a.daysAgo(120), "end_date": a.daysAgo(100)})
	id, _ = choice("")
	require.Equal(t, old.ID.String(), id)
	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
	a.Clock.Advance(2 * time.Second)
	id, _ = choice("")
	require.Empty(t, id, "a report of this tier can begin at most 90 days ago")
	p := c.send(http.MethodPost, "/collections/"+collection.String()+"/reports", map[string]any{"continues_report_id": old.ID, "end_date": a.daysAgo(95)}).
		requireProblem(http.StatusConflict, server.CodeConflict)
	require.Equal(t, fmt.Sprintf("report %d ends on %s; for the tier basic, a report can begin on %s at the earliest.", old.Number, a.daysAgo(100), a.daysAgo(90)), p.Detail)
}
