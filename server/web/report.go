package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server/formula"
	"github.com/reeltally/reeltally/store"
)

// saveReport saves the numbers of the collection in a report, whose numbers never change. The form contains the period. saveReport returns the id
// of the report.
func (v *visit) saveReport(path string) (uuid.UUID, error) {
	body := map[string]any{"include_children": v.r.PostFormValue("subtree") == "true"}
	for member, field := range map[string]string{"start_date": "start", "end_date": "end"} {
		if text := v.r.PostFormValue(field); text != "" {
			body[member] = text
		}
	}
	var saved client.ReportSummary
	_, err := v.sendJSON(http.MethodPost, path+"/reports", body, &saved)
	return saved.ID, err
}

// reportPage is the data for the template of the page of a report.
type reportPage struct {
	Report   client.Report
	Name     string // name of the collection when the report was made
	Videos   []reportRow
	Checksum string // SHA-256 of the report
	Tiles    []tile
	Chart    chart
	sharePanel
}

// reportRow is a video of a report with its caption and its account. Its fields are not those of an embedded client.ReportVideo, because a template
// needs much more memory to find an embedded field.
type reportRow struct {
	AdLink                                string
	Removed                               bool
	AddedAt                               time.Time
	StartDay, EndDay                      *openapi_types.Date
	ViewsAtStart, ViewsGained, ViewsAtEnd *int64
	Title                                 string // caption of the video today; "" if the video is no longer in the collection, or has no caption
	Username                              string // name of the video's account today; "" if the video is no longer in the collection, or the account is unknown
}

// newReportRow returns the row of a video without its caption and its account.
func newReportRow(v client.ReportVideo) reportRow {
	return reportRow{AdLink: v.AdLink, Removed: v.Removed, AddedAt: v.AddedAt, StartDay: v.StartDay, EndDay: v.EndDay,
		ViewsAtStart: v.ViewsAtStart, ViewsGained: v.ViewsGained, ViewsAtEnd: v.ViewsAtEnd}
}

// reportRows returns a row for each video of a report. It reads the captions and the names of the accounts from the list of videos, because a
// report contains only links.
func (v *visit) reportRows(r *client.Report) ([]reportRow, error) {
	query := url.Values{"include_removed": {"true"}}
	for _, c := range r.Collections {
		if len(query["collections"]) < maxCollectionFilters {
			query.Add("collections", c.ID.String())
		}
	}
	// Decoding all members of a client.Video would need several times the memory.
	type namedVideo struct {
		AdID            uuid.UUID `json:"ad_id"`
		Title           string    `json:"title"`
		DisplayUsername string    `json:"display_username"`
	}
	known := map[uuid.UUID]namedVideo{}
	if err := eachListEntry(v, "/videos", query, maxCSVRows, func(video *namedVideo) {
		known[video.AdID] = *video
	}); err != nil {
		return nil, err
	}
	out := make([]reportRow, len(r.Videos))
	for n, video := range r.Videos {
		out[n] = newReportRow(video)
		out[n].Title, out[n].Username = strings.TrimSpace(known[video.AdID].Title), known[video.AdID].DisplayUsername
	}
	return out, nil
}

// sendReportCSV sends the videos of a report as a CSV file if the query of the page asks for them, and the days otherwise. The captions and account
// names of the videos are columns only if withNames is true.
func (v *visit) sendReportCSV(page *reportPage, withNames bool) error {
	if v.csvPart() != "videos" {
		return v.sendHistory("report", page.Chart)
	}
	head := []string{"link", "username", "title", "removed", "added_at", "start_day", "end_day", "views_at_start", "views_gained", "views_at_end"}
	rows := [][]string{head}
	for _, r := range page.Videos {
		rows = append(rows, []string{formula.Escape(r.AdLink), formula.Escape(r.Username), formula.Escape(r.Title), strconv.FormatBool(r.Removed), csvValue(r.AddedAt),
			csvValue(r.StartDay), csvValue(r.EndDay), csvNumber(r.ViewsAtStart), csvNumber(r.ViewsGained), csvNumber(r.ViewsAtEnd)})
	}
	if !withNames {
		for n := range rows {
			rows[n] = slices.Delete(rows[n], 1, 3)
		}
	}
	return v.sendCSV("report-videos", rows)
}

// showReport shows the page of a report. A report contains the numbers that a collection had when the report was made. These numbers never
// change.
func showReport(v *visit) error { return v.renderReport(http.StatusOK, form{}) }

// renderReport shows the page of a report. If the form of the share page was refused, the page shows the values of refusedShare in it.
func (v *visit) renderReport(status int, refusedShare form) error {
	id, err := v.itemID()
	if err != nil {
		return err
	}
	content, err := v.loadReport("/reports/" + id)
	if err != nil {
		return err
	}
	if v.needsReportVideos() {
		if content.Videos, err = v.reportRows(&content.Report); err != nil {
			return err
		}
	}
	if v.csvPart() != "" {
		return v.sendReportCSV(&content, true)
	}
	saved, err := v.findReport(id)
	if err != nil {
		return err
	}
	content.Checksum, content.ShareForm = saved.Checksum, refusedShare
	if err := content.fill(v, client.Access(saved.Access), saved.Hash, shareCloses(saved), store.ShareReport); err != nil {
		return err
	}
	return v.renderPage(status, "report", "collections", "Report of "+content.Name, content)
}

// findReport returns the report with the given id, without its numbers, from the list of all reports. The numbers do not say who can open the share
// page.
func (v *visit) findReport(id string) (store.Report, error) {
	reports, err := v.Backend.Reports(v.r.Context(), v.id)
	if err != nil {
		return store.Report{}, err
	}
	for _, r := range reports {
		if r.ID.String() == id {
			return r, nil
		}
	}
	return store.Report{}, errNotFound
}

// shareCloses returns when the share page of a report closes. It returns nil if the page stays open.
func shareCloses(r store.Report) *time.Time {
	if r.ShareExpiresAt == nil {
		return nil
	}
	return new(r.ShareExpiresAt.Time())
}

// submitReportShareForm changes the share page of a report. If the form is refused, submitReportShareForm shows it again.
func submitReportShareForm(v *visit) error {
	id, err := v.itemID()
	if err != nil {
		return err
	}
	return v.submitShare("/collection/report/"+id, func() error {
		before, err := v.findReport(id)
		if err != nil {
			return err
		}
		body, err := v.sharingMembers(shareCloses(before))
		if err != nil {
			return err
		}
		return v.sendShare("/reports/"+id, body)
	}, v.renderReport)
}

// needsReportVideos returns true if the answer contains the videos of the report. The answer to HEAD has no body.
func (v *visit) needsReportVideos() bool {
	return v.csvPart() == "videos" || v.csvPart() == "" && v.r.Method != http.MethodHead
}

// loadReport reads the report at path from the API, without the points of its videos. The result has no rows of videos and no share panel. It has no
// videos if needsReportVideos returns false.
func (v *visit) loadReport(path string) (content reportPage, err error) {
	query := url.Values{"include_points": {"false"}, "include_videos": {strconv.FormatBool(v.needsReportVideos())}}
	r := &content.Report
	if err := v.getFromAPI(path, query, r); err != nil {
		return content, err
	}
	for _, c := range r.Collections {
		if c.ID == r.Statistics.CollectionID {
			content.Name = c.Name
		}
	}
	slices.SortStableFunc(r.Videos, compareGains)
	p := period{Start: store.DateOf(r.Statistics.StartDate.Time), End: store.DateOf(r.Statistics.EndDate.Time)}
	p.Days = int32(p.End-p.Start) + 1
	points := make([]point, len(r.Days))
	for n := range r.Days {
		h := &r.Days[n]
		points[n] = pointOfCollection(h, gainOfDay(h), h.Views, h.Engagements, h.Videos)
	}
	slices.SortFunc(points, func(a, b point) int { return int(b.Day - a.Day) })
	content.Chart = v.newChart("The value of a day is the sum over the videos that were in the collection on that day. The report has the values that were known when it was saved. Days are UTC.", p, collectionMetrics, points)
	content.Chart.setViewsGained(collectionGains(r.Days))
	content.Chart.Joined, content.Chart.Sums = true, true
	content.Tiles = collectionTiles(r.Statistics, content.Chart, points, p)
	return content, nil
}

// compareGains orders two videos of a report by their gained views, the highest first. Videos with unknown gained views come last.
func compareGains(a, b client.ReportVideo) int {
	switch {
	case a.ViewsGained == nil && b.ViewsGained == nil:
		return 0
	case a.ViewsGained == nil:
		return 1
	case b.ViewsGained == nil:
		return -1
	}
	return cmp.Compare(*b.ViewsGained, *a.ViewsGained)
}
