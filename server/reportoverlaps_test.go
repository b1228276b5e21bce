package server_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

func TestCreateReport_namesEarlierReportsThatCountTheSameViews(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		launch, spring, other := c.createNamedCollection("Launch"), c.createNamedCollection("Spring"), c.createNamedCollection("Other")
		one, two, three, still, late := c.track(videoURL(1)), c.track(videoURL(2)), c.track(videoURL(3)), c.track(videoURL(4)), c.track(videoURL(5))
		c.addVideos(launch, one, two, still)
		c.addVideos(spring, two, three, still, late)
		c.addVideos(other, three)
		begin := a.daysAgo(0)
		for day := range int64(6) {
			a.fetch(viewsByVideo(map[byte]int64{'1': 1000 + 10*day, '2': 2000 + 10*day, '3': 3000 + 10*day, '4': 500, '5': 100 + 10*day}))
			if day == 2 {
				c.addVideos(launch, late) // so it gains views on other days than in a report of the first three days
			}
			a.Clock.Advance(24 * time.Hour)
		}
		period := func(from, to int) map[string]any {
			day := func(n int) string { return a.daysAgo(6 - n) }
			return map[string]any{"start_date": day(from), "end_date": day(to)}
		}
		require.Equal(t, begin, period(0, 5)["start_date"])

		ofLaunch, _ := c.createReportWith(launch, period(1, 2))
		require.Empty(t, ofLaunch.Overlaps, "the first report of an organisation has no earlier reports")
		ofSpring, _ := c.createReportWith(spring, period(1, 5))
		overlap := func(r client.ReportSummary, videos, gained int64) client.ReportOverlap {
			return client.ReportOverlap{ReportID: r.ID, Number: r.Number, CollectionName: r.CollectionName, StartDate: r.StartDate, EndDate: r.EndDate, Videos: videos, ViewsGained: gained}
		}
		require.Equal(t, []client.ReportOverlap{overlap(ofLaunch, 1, 50)}, ofSpring.Overlaps, "only video 2 gained views in both reports: video 4 gained none")
		later, _ := c.createReportWith(launch, period(3, 5))
		require.Equal(t, []client.ReportOverlap{overlap(ofSpring, 2, 60)}, later.Overlaps, "video 2 and the late video gained views on the same days as in the report of the other collection")
		ofOther, _ := c.createReportWith(other, period(1, 5))
		require.Equal(t, []client.ReportOverlap{overlap(ofSpring, 1, 50)}, ofOther.Overlaps)
		continued, _ := c.createReportWith(launch, map[string]any{"continues_report_id": ofLaunch.ID, "end_date": a.daysAgo(1)})
		require.Equal(t, []client.ReportOverlap{overlap(later, 3, 90), overlap(ofSpring, 2, 60)}, continued.Overlaps, "a report does not overlap with the report that it continues")
		again, _ := c.createReportWith(launch, map[string]any{"continues_report_id": ofLaunch.ID, "end_date": a.daysAgo(1)})
		require.Equal(t, []client.ReportOverlap{overlap(continued, 3, 90), overlap(later, 3, 90), overlap(ofSpring, 2, 60)}, again.Overlaps, "two reports that continue the same report count the same views")

		listed := decode[client.ReportPage](c.send(http.MethodGet, "/collections/"+launch.String()+"/reports", nil).requireStatus(http.StatusOK)).Data
		require.Equal(t, []client.ReportSummary{again, continued, later, ofLaunch}, listed)
		v := c.newSignedInVisitor(t)
		page := textOf(v.visit("/collection/report/" + ofSpring.ID.String()).parsePage())
		require.Contains(t, page, "This report counts some views that an earlier report counts, too. If you pay people by both, you pay twice for these views.")
		require.Contains(t, page, "Report 1 of Launch, "+ofLaunch.StartDate.String()+" to "+ofLaunch.EndDate.String()+": 1 video with views of the same days, and with 50 gained views in all of this report")
		require.NotContains(t, textOf(v.visit("/collection/report/"+ofLaunch.ID.String()).parsePage()), "pay twice")
		require.Contains(t, textOf(v.visit("/collection/"+spring.String()).parsePage()), "Report 2counts some views of report 1")
		ofCollection := textOf(v.visit("/collection/" + launch.String() + "?start=" + a.daysAgo(5) + "&end=" + a.daysAgo(5)).parsePage())
		require.Contains(t, ofCollection, "counts some views of 3 earlier reports")
		require.Contains(t, ofCollection, "continues report 1")
		require.Contains(t, ofCollection, "Days of this period are already in report 1 ("+ofLaunch.StartDate.String()+" to "+ofLaunch.EndDate.String()+").")
		require.Contains(t, ofCollection, "1 video was added after this period, so it has none of its views.")
		require.Contains(t, v.visit("/collection/"+launch.String()+"?csv=history").Header.Get("Content-Disposition"), "collection-launch-history-"+a.daysAgo(29)+"-to-"+a.daysAgo(0))
		for collection, notice := range map[uuid.UUID]string{launch: "The report was saved. It counts some views that earlier reports count, too: Report ", c.createNamedCollection("Empty"): "The report was saved: Report "} {
			target := v.post("/collection/"+collection.String()+"/freeze", "start", period(1, 5)["start_date"].(string), "end", period(1, 5)["end_date"].(string)).requireStatus(http.StatusSeeOther).Header.Get("Location")
			require.Contains(t, textOf(v.visit(target).parsePage()), notice)
		}
		shared := c.shareReport(spring, ofSpring.ID, map[string]any{"access": "public"})
		require.NotContains(t, string((&visitor{app: a, t: t}).visit(shared).requireStatus(http.StatusOK).body), "Launch", "visitors must not see the names of other collections")

		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
		a.Clock.Advance(2 * time.Second)
		masked := decode[client.ReportPage](c.send(http.MethodGet, "/collections/"+launch.String()+"/reports", nil).requireStatus(http.StatusOK)).Data
		require.Nil(t, masked[0].Overlaps)
		require.NotContains(t, textOf(v.visit("/collection/report/"+ofSpring.ID.String()).parsePage()), "pay twice")
		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierPremium))
		a.Clock.Advance(2 * time.Second)
		c.requireReportsOfOlderVersions(spring, period(1, 5))
	})
}

// requireReportsOfOlderVersions makes all reports of the organisation look like reports of a version of ReelTally that did not compare reports, and requires
// that their overlaps are unknown, and that a new report with the given request body names none of them.
func (c *caller) requireReportsOfOlderVersions(collection uuid.UUID, body map[string]any) {
	c.t.Helper()
	c.app.Exec(c.t, "UPDATE reports SET gained_days = NULL, first_gain_date = NULL, overlaps_json = NULL")
	created, _ := c.createReportWith(collection, body)
	require.Empty(c.t, created.Overlaps)
	reports := decode[client.ReportPage](c.send(http.MethodGet, "/collections/"+collection.String()+"/reports", nil).requireStatus(http.StatusOK)).Data
	require.NotNil(c.t, reports[0].Overlaps)
	require.Nil(c.t, reports[1].Overlaps)
}

// A count that arrives after a report belongs to the days after the last count of the report, also if its period ended later. The report that continues it
// pays these views, so a report of another collection that has these days overlaps with it.
func TestCreateReport_namesReportsThatPayLateCountsOfEarlierDays(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		one, two := c.createNamedCollection("One"), c.createNamedCollection("Two")
		video := c.track(videoURL(1))
		c.addVideos(one, video)
		c.addVideos(two, video)
		fetchAfter := func(days int, views int64) {
			a.Clock.Advance(time.Duration(days) * 24 * time.Hour)
			a.fetch(viewsByVideo(map[byte]int64{'1': views}))
		}
		fetchAfter(0, 1000)
		fetchAfter(2, 10_000) // the last count of the first report
		a.Clock.Advance(3 * 24 * time.Hour)
		first, _ := c.createReportWith(one, map[string]any{"start_date": a.daysAgo(5), "end_date": a.daysAgo(1)})
		fetchAfter(1, 16_000)
		lateDays := map[string]any{"start_date": a.daysAgo(3), "end_date": a.daysAgo(2)} // between the last count and the end of the first report
		continued, _ := c.createReportWith(one, map[string]any{"continues_report_id": first.ID})
		require.Empty(t, continued.Overlaps)
		other, report := c.createReportWith(two, lateDays)
		require.Equal(t, int64(3000), *report.Videos[0].ViewsGained)
		require.Equal(t, []client.ReportOverlap{{ReportID: continued.ID, Number: 2, CollectionName: "One", StartDate: continued.StartDate, EndDate: continued.EndDate, Videos: 1, ViewsGained: 3000}}, other.Overlaps)
		again, _ := c.createReportWith(one, map[string]any{"continues_report_id": first.ID})
		require.Len(t, again.Overlaps, 2, "the report of the other collection has days before the period of the new report")
	})
}

// The report that continues a report of a day that was not over pays the views of that evening, so a report of another collection with this day overlaps with it.
func TestCreateReport_namesReportsThatPayTheRestOfADay(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		one, two := c.createNamedCollection("One"), c.createNamedCollection("Two")
		video := c.track(videoURL(1))
		c.addVideos(one, video)
		c.addVideos(two, video)
		a.fetch(viewsByVideo(map[byte]int64{'1': 1000}))
		a.Clock.Advance(18 * time.Hour) // 06:00 of the next day
		a.fetch(viewsByVideo(map[byte]int64{'1': 1000}))
		first, _ := c.createReportWith(one, map[string]any{"start_date": a.daysAgo(0)})
		a.Clock.Advance(12 * time.Hour)
		a.fetch(viewsByVideo(map[byte]int64{'1': 50_000}))
		evening := map[string]any{"start_date": a.daysAgo(0), "end_date": a.daysAgo(0)}
		a.Clock.Advance(24 * time.Hour)
		a.fetch(viewsByVideo(map[byte]int64{'1': 60_000}))
		continued, _ := c.createReportWith(one, map[string]any{"continues_report_id": first.ID})
		other, _ := c.createReportWith(two, evening)
		require.Equal(t, []client.ReportOverlap{{ReportID: continued.ID, Number: 2, CollectionName: "One", StartDate: continued.StartDate, EndDate: continued.EndDate, Videos: 1, ViewsGained: 49_000}}, other.Overlaps)
		again, _ := c.createReportWith(one, map[string]any{"continues_report_id": first.ID})
		require.Len(t, again.Overlaps, 2)
	})
}

// The amounts to pay can include the views at the start of videos that were uploaded in the period, so two reports can pay these views twice.
func TestCreateReport_namesReportsThatCountTheSameViewsAtTheStart(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	one, two := c.createNamedCollection("One"), c.createNamedCollection("Two")
	video, uploaded := c.track(videoURL(1)), a.Clock.Now()
	c.addVideos(one, video)
	c.addVideos(two, video)
	fetch := func(views int64) {
		a.fetch(func(queue.Target) ingest.VideoFacts { return ingest.VideoFacts{Views: &views, UploadedAt: &uploaded} })
	}
	fetch(500_000)
	first, _ := c.createReportWith(one, map[string]any{})
	a.Clock.Advance(24 * time.Hour)
	fetch(500_050)
	second, _ := c.createReportWith(two, map[string]any{})
	require.Equal(t, []client.ReportOverlap{{ReportID: first.ID, Number: 1, CollectionName: "One", StartDate: first.StartDate, EndDate: first.EndDate, Videos: 1, ViewsGained: 50, ViewsAtStart: 500_000}}, second.Overlaps)
	page := textOf(c.newSignedInVisitor(t).visit("/collection/report/" + second.ID.String()).parsePage())
	require.Contains(t, page, ": 1 video with views of the same days, and with 50 gained views in all of this report. New videos of them had 500,000 views at the start")
	third, _ := c.createReportWith(one, map[string]any{"start_date": a.daysAgo(0)})
	require.Len(t, third.Overlaps, 1, "the video is not new in this period, so the report does not count the views of the day before")
}

func TestCreateReport_namesReportsThatAreMadeAtTheSameTime(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Launch")
		c.addVideos(collection, c.track(videoURL(1)))
		for day := range int64(3) {
			a.fetch(viewsByVideo(map[byte]int64{'1': 1000 + 10*day}))
			a.Clock.Advance(24 * time.Hour)
		}
		const reports = 6
		var group sync.WaitGroup
		made := make([]response, reports)
		for n := range made {
			group.Go(func() {
				made[n] = c.send(http.MethodPost, "/collections/"+collection.String()+"/reports", map[string]any{})
			})
		}
		group.Wait()
		for _, response := range made {
			report := decode[client.ReportSummary](response.requireStatus(http.StatusCreated))
			require.Len(t, report.Overlaps, int(report.Number-1), "each report must name all earlier reports")
		}
	})
}

func TestMCP_createReportNamesEarlierReportsThatCountTheSameViews(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := c.createNamedCollection("Launch")
	c.addVideos(collection, c.track(videoURL(1)))
	for day := range int64(3) {
		a.fetch(viewsByVideo(map[byte]int64{'1': 1000 + 10*day}))
		a.Clock.Advance(24 * time.Hour)
	}
	assistant := c.openAssistant()
	for _, want := range []string{
		"never changes: done. The data is",
		`never changes: done. It counts some views that earlier reports count, too: report 1 of "Launch" (1 of the videos). People who are paid by both are paid twice for these views.`,
	} {
		require.Contains(t, textBlocks(t, assistant.callTool("create_report", map[string]any{"collection_id": collection}))[0], want)
	}
}
