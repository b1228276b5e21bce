package web

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

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

// reportRow is a video of a report with its caption and its account.
type reportRow struct {
	client.ReportVideo
	Title    string // caption of the video today; "" if the video is no longer in the collection, or has no caption
	Username string // name of the video's account today; "" if the video is no longer in the collection, or the account is unknown
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
	known := map[uuid.UUID]reportRow{}
	if err := eachListEntry(v, "/videos", query, maxCSVRows, func(video *client.Video) {
		known[video.AdID] = reportRow{Title: strings.TrimSpace(video.Title), Username: video.DisplayUsername}
	}); err != nil {
		return nil, err
	}
	out := make([]reportRow, len(r.Videos))
	for n, video := range r.Videos {
		out[n] = known[video.AdID]
		out[n].ReportVideo = video
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
	if part := v.csvPart(); part != "" && part != "videos" {
		return v.sendReportCSV(&content, true)
	}
	if content.Videos, err = v.reportRows(&content.Report); err != nil {
		return err
	}
	if v.csvPart() == "videos" {
		return v.sendReportCSV(&content, true)
	}
	summary, err := v.reportSummary(&content.Report)
	if err != nil {
		return err
	}
	content.ShareForm = refusedShare
	if err := content.fill(v, summary.Access, summary.Hash, summary.ShareExpiresAt, store.ShareReport); err != nil {
		return err
	}
	return v.renderPage(status, "report", "collections", "Report of "+content.Name, content)
}

// reportSummary returns the summary of a report from the list of the reports of its collection. Only the summary says who can open the share page.
func (v *visit) reportSummary(r *client.Report) (out client.ReportSummary, err error) {
	err = eachListEntry(v, "/collections/"+r.Statistics.CollectionID.String()+"/reports", url.Values{}, store.MaxReports, func(listed *client.ReportSummary) {
		if listed.ID == r.ID {
			out = *listed
		}
	})
	return out, err
}

// submitReportShareForm changes the share page of a report. If the form is refused, submitReportShareForm shows it again.
func submitReportShareForm(v *visit) error {
	id, err := v.itemID()
	if err != nil {
		return err
	}
	return v.submitShare("/collection/report/"+id, func() error {
		var report client.Report
		if err := v.getFromAPI("/reports/"+id, nil, &report); err != nil {
			return err
		}
		before, err := v.reportSummary(&report)
		if err != nil {
			return err
		}
		body, err := v.sharingMembers(before.ShareExpiresAt)
		if err != nil {
			return err
		}
		return v.sendShare("/reports/"+id, body)
	}, v.renderReport)
}

// loadReport reads the report at path from the API. The result has no rows of videos and no share panel.
func (v *visit) loadReport(path string) (content reportPage, err error) {
	var document []byte
	if err := v.getFromAPI(path, nil, &document); err != nil {
		return content, err
	}
	sum := sha256.Sum256(document)
	content.Checksum = hex.EncodeToString(sum[:])
	r := &content.Report
	if err := json.Unmarshal(document, r); err != nil {
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
