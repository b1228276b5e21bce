package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// createLargeReport creates a report of a collection with 5,000 videos, each with 14 stored points. It returns the report and the bytes of its
// document.
func (c *caller) createLargeReport(collection client.Collection) (store.Report, []byte) {
	c.t.Helper()
	createVideosWithManyLabels(c.t, c, 5_000, 0)
	small := decode[client.Report](c.send(http.MethodGet, "/reports/"+c.createReport(collection.ID).String(), nil).requireStatus(http.StatusOK))
	require.Len(c.t, small.Videos, 5_000)
	quality := client.HistoryQuality("measured")
	for n := range small.Videos {
		v := &small.Videos[n]
		v.StartDay, v.EndDay = &small.Statistics.StartDate, &small.Statistics.EndDate
		v.ViewsAtStart, v.ViewsAtEnd, v.ViewsGained = new(int64(1_000_000+n)), new(int64(2_000_000+2*n)), new(int64(1_000_000+n))
		for day := range 14 {
			count := new(int64(1_000_000 + 10_000*day + n))
			v.Points = append(v.Points, client.ReportPoint{Date: small.Statistics.StartDate, Views: count, Likes: count, Comments: count, Shares: count, Bookmarks: count, Quality: quality,
				Source: "sandbox", FetchedAt: c.app.Clock.Now().Add(time.Duration(day) * time.Minute)})
		}
	}
	var document []byte
	day := store.DateOf(small.Statistics.EndDate.Time)
	made, err := c.app.Org(c.org.ID).CreateReport(c.t.Context(), store.NewReport{CollectionID: collection.ID, From: day, To: day,
		Document: func(w io.Writer, r store.Report, _ store.CollectionTotals) (err error) {
			small.ID, small.Number = r.ID, r.Number
			if document, err = json.Marshal(small); err == nil {
				_, err = w.Write(document)
			}
			return err
		}})
	require.NoError(c.t, err)
	return made, document
}

// TestRequestCost_theLargestReportUsesLittleTimeAndMemory creates a report of 5,000 videos with 15 points each, which are
// together the 75,000 points that a report can have at most.
//
//nolint:paralleltest // the test measures the time and memory of the whole process
func TestRequestCost_theLargestReportUsesLittleTimeAndMemory(t *testing.T) {
	storetest.SkipIfShort(t)
	for _, engine := range storetest.StoreEngines() {
		t.Run(engine, func(t *testing.T) {
			a := newApp(t, storetest.New(t, engine))
			c := a.newCaller(t, store.TierPremium)
			id := c.createNamedCollection("Launch")
			c.seedHistories(id, store.MaxReportPoints/store.MaxTotalsVideos-1)
			first := c.createReport(id)
			for n := range store.MaxReportOverlaps - 1 { // further reports of the same videos, with which the measured report is compared
				a.Exec(t, `INSERT INTO reports (organisation_id, id, number, collection_id, collection_name, include_children, start_date, end_date, created_by, created_at, checksum, bytes, content, access, gained_days, first_gain_date)
					SELECT organisation_id, ?, ?, collection_id, collection_name, include_children, start_date, end_date, created_by, created_at, checksum, bytes, gained_days, access, gained_days, first_gain_date FROM reports WHERE id = ?`, store.NewID(), n+2, first)
			}
			if engine != "sqlite" {
				a.Exec(t, "VACUUM ANALYZE") // as autovacuum does
			}
			c.send(http.MethodGet, "/collections/"+id.String(), nil).requireStatus(http.StatusOK) // open a connection before the measurement
			before, databaseBefore := measureCost(t), a.databaseCPU()
			made := c.send(http.MethodPost, "/collections/"+id.String()+"/reports", map[string]any{"start_date": a.daysAgo(30)}).requireStatus(http.StatusCreated)
			inDatabase := a.databaseCPU() - databaseBefore
			after := measureCost(t)
			used, allocated := after.cpu-before.cpu+inDatabase, after.bytes-before.bytes
			t.Logf("%v of processor time, of which %v in PostgreSQL, %.1f MiB allocated", used, inDatabase, float64(allocated)/(1<<20))
			overlaps := decode[client.ReportSummary](made).Overlaps
			require.Len(t, overlaps, store.MaxReportOverlaps)
			require.Equal(t, int64(store.MaxTotalsVideos), overlaps[0].Videos)
			require.Less(t, used, 2*maxRequestCPU)                                // a slow machine needs up to a second, as docs/evidence/reads.md says
			require.Less(t, allocated, uint64(maxRequestBytes+maxRequestBytes/2)) // not all of it is in memory at the same time
		})
	}
}

// TestRequestCost_pagesOfLargeReportsUseLittleMemory requires that requests for the pages of a report of 13 MB allocate little memory.
//
//nolint:paralleltest // the test measures the time and memory of the whole process
func TestRequestCost_pagesOfLargeReportsUseLittleMemory(t *testing.T) {
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := decode[client.Collection](c.send(http.MethodPost, "/collections", map[string]any{"name": "Launch"}).requireStatus(http.StatusCreated))
	report, document := c.createLargeReport(collection)
	require.Greater(t, len(document), 12<<20)
	shared, page, api := c.shareReport(collection.ID, report.ID, map[string]any{"access": "public", "display_settings": map[string]any{"show_captions": true, "show_accounts": true}}), "/collection/report/"+report.ID.String(), "/reports/"+report.ID.String()
	a.send(t, http.MethodGet, "/r/unknown", nil).requireStatus(http.StatusNotFound) // parse the templates before the measurement
	member := c.newSignedInVisitor(t).cookie.String()
	for _, test := range []struct {
		path, header, value string
		status, maxBytes    int
	}{
		{api, "Authorization", "Bearer " + c.token, http.StatusOK, 20 << 20},
		{api + "?include_points=false", "Authorization", "Bearer " + c.token, http.StatusOK, maxRequestBytes / 2},
		{api + "?include_videos=false", "Authorization", "Bearer " + c.token, http.StatusOK, maxRequestBytes / 4},
		{shared, "", "", http.StatusOK, maxRequestBytes},
		{shared + "?page=100", "", "", http.StatusOK, maxRequestBytes},
		{shared + "?csv=videos", "", "", http.StatusOK, maxRequestBytes},
		{shared + "?csv=accounts", "", "", http.StatusOK, maxRequestBytes / 4},
		{shared + "?csv=history", "", "", http.StatusOK, maxRequestBytes / 4},
		{shared + "?csv=x", "", "", http.StatusBadRequest, maxRequestBytes / 4},
		{page, "Cookie", member, http.StatusOK, maxRequestBytes},
		{page + "?csv=videos", "Cookie", member, http.StatusOK, maxRequestBytes},
		{page + "?csv=history", "Cookie", member, http.StatusOK, maxRequestBytes / 4},
		{page + "?csv=x", "Cookie", member, http.StatusBadRequest, maxRequestBytes / 4},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			maxBytes := test.maxBytes
			if method == http.MethodHead && !strings.Contains(test.path, "csv=") {
				maxBytes = min(maxBytes, maxRequestBytes/2)
			}
			r := httptest.NewRequestWithContext(t.Context(), method, test.path, nil)
			status := test.status
			if method == http.MethodPost {
				if test.path != page {
					continue
				}
				r = httptest.NewRequestWithContext(t.Context(), method, page, strings.NewReader(url.Values{"access": {"protected"}, "password": {"short"}}.Encode()))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				status = http.StatusBadRequest
			}
			r.Header.Set(test.header, test.value)
			w := httptest.NewRecorder()
			w.Body = bytes.NewBuffer(make([]byte, 0, 16<<20)) // the buffer is allocated before the measurement, so that its memory is not measured
			before := measureCost(t)
			a.server.Handler().ServeHTTP(w, r)
			after := measureCost(t)
			cpu, allocated := after.cpu-before.cpu, after.bytes-before.bytes
			t.Logf("%s %s: %v of CPU time, %.1f MiB allocated, %d bytes", method, test.path, cpu.Round(time.Millisecond), float64(allocated)/(1<<20), w.Body.Len())
			require.Equal(t, status, w.Code, test.path)
			require.Less(t, cpu, maxRequestCPU, test.path)
			require.Less(t, allocated, uint64(maxBytes), "%s %s", method, test.path)
		}
	}
}
