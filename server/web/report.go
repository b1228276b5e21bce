package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server/formula"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// saveReport saves the numbers of the collection in a report, whose numbers never change. The form contains the period. If the form names a report to
// continue, the new report begins where that report ended, and not on the first day of the period. saveReport returns the report.
func (v *visit) saveReport(path string) (saved client.ReportSummary, err error) {
	body := map[string]any{"include_children": v.r.PostFormValue("subtree") == "true"}
	for member, field := range map[string]string{"start_date": "start", "end_date": "end"} {
		if text := v.r.PostFormValue(field); text != "" {
			body[member] = text
		}
	}
	if continued := v.r.PostFormValue("continues"); continued != "" {
		body["continues_report_id"] = continued
		delete(body, "start_date")
	}
	err = v.sendJSONOnce(path+"/reports", body, &saved)
	return saved, err
}

// reportPage is the data for the template of the page of a report.
type reportPage struct {
	Report client.Report
	Name   string // name of the collection when the report was made
	// Continues is the report that this report continues; nil if it continues none.
	Continues *store.Report
	// Overlaps are the earlier reports that count some of the same views. They are only on the page for members, and if the tier shows numbers.
	Overlaps []store.ReportOverlap
	Videos   []reportRow // rows of the table that the page shows; for a CSV file, all rows
	View     tableView   // shown page of the table; not set for a CSV file
	Checksum string      // SHA-256 of the report
	Tiles    []tile
	Chart    chart
	Amounts  *amounts // amounts to pay to the accounts; nil if the query of the page has no rate, or if the terms were refused
	// AmountsForm has the query of the page as its values, of which the rate, the cap, the currency and start_views are fields of the form "Amounts to pay".
	AmountsForm form
	StartViews  startViews
	// WithCaptions and WithAccounts are true if the page and its CSV files show the captions of the videos and the accounts. They are always true on the
	// page for members.
	WithCaptions, WithAccounts bool
	// ShareShows and ShareHides name what visitors of the share page see and do not see.
	ShareShows, ShareHides string
	DefaultHeading         string // heading of the share page if the member chooses none
	sharePanel
}

// reportRow is a video of a report with its caption and its account. The page of an older report, which has no captions and accounts, shows those of
// today. reportRow does not embed client.ReportVideo, because a template needs much more memory to find an embedded field.
type reportRow struct {
	AdLink                                string
	Removed                               bool
	AddedAt                               time.Time
	UploadedAt                            *openapi_types.Date
	StartDay, EndDay                      *openapi_types.Date
	ViewsAtStart, ViewsGained, ViewsAtEnd *int64
	Title                                 string // caption of the video; "" if it has none, or if it is unknown
	Username                              string // name of the video's account; "" if it is unknown
}

// newReportRow returns the row of a video. It does not set the caption and the account.
func newReportRow(v client.ReportVideo) reportRow {
	return reportRow{AdLink: v.AdLink, Removed: v.Removed, AddedAt: v.AddedAt, UploadedAt: v.UploadedAt, StartDay: v.StartDay, EndDay: v.EndDay,
		ViewsAtStart: v.ViewsAtStart, ViewsGained: v.ViewsGained, ViewsAtEnd: v.ViewsAtEnd}
}

// Platform returns the platform of the video.
func (r reportRow) Platform() link.Platform {
	parsed, err := link.Parse(r.AdLink)
	if err != nil { // the stored link of a video is always valid, except in a damaged report
		return ""
	}
	return parsed.Platform
}

// fillReportRows sets the rows of the page to the videos on the requested page of the table, with the captions and the names of the accounts that the page
// shows. For a CSV file, it sets them to all videos. If the requested page is after the last one, the page has no rows.
func (v *visit) fillReportRows(p *reportPage) error {
	videos := p.Report.Videos
	if v.needsReportVideos() && v.csvPart() == "" {
		n, err := v.pageNumber()
		if err != nil {
			return err
		}
		p.View = tableView{Page: n, query: v.r.URL.Query()}
		p.View.setRowCount(int64(len(videos)), int64(len(videos)+pageSize-1)/pageSize)
		if int64(n) > max(1, p.View.TotalPages) {
			return nil
		}
		videos = videos[(n-1)*pageSize : min(len(videos), n*pageSize)]
	}
	p.Videos = make([]reportRow, len(videos))
	for n, video := range videos {
		row := newReportRow(video)
		if p.WithCaptions {
			row.Title = strings.TrimSpace(textOf(video.Title))
		}
		if p.WithAccounts {
			row.Username = textOf(video.Username)
		}
		p.Videos[n] = row
	}
	return nil
}

// hasNames returns true if a report has the captions and the names of the accounts. Older reports have only links.
func hasNames(r *client.Report) bool { return len(r.Accounts) > 0 || len(r.Videos) == 0 }

// addPresentNames sets the captions and the names of the accounts in the rows of a report to those of today. They are unknown for videos that are no
// longer in the collections of the report.
func (v *visit) addPresentNames(r *client.Report, rows []reportRow) error {
	query := url.Values{"include_removed": {"true"}}
	for _, c := range r.Collections {
		if len(query["collections"]) < maxCollectionFilters {
			query.Add("collections", c.ID.String())
		}
	}
	// Decoding all members of a client.Video would need several times the memory.
	type namedVideo struct {
		AdLink          string `json:"ad_link"`
		Title           string `json:"title"`
		DisplayUsername string `json:"display_username"`
	}
	known := map[string]namedVideo{}
	if err := eachListEntry(v, "/videos", query, maxCSVRows, func(video *namedVideo) {
		known[video.AdLink] = *video
	}); err != nil {
		return err
	}
	for n := range rows {
		rows[n].Title, rows[n].Username = strings.TrimSpace(known[rows[n].AdLink].Title), known[rows[n].AdLink].DisplayUsername
	}
	return nil
}

// SavedOnLastDay returns true if the report was saved on the last day of its period. It then lacks the views that were gained later on this day.
func (p reportPage) SavedOnLastDay() bool {
	return p.Chart.Period.End >= store.DateOf(p.Report.CreatedAt)
}

// ListedAccounts returns the accounts that the share page lists: at most the first maxAccounts accounts of the report.
func (p reportPage) ListedAccounts() []client.ReportAccount {
	return p.Report.Accounts[:min(maxAccounts, len(p.Report.Accounts))]
}

// sendReportCSV sends the videos or accounts of a report as a CSV file if the query of the page asks for them, and the days otherwise. forMembers says
// whether the file of the accounts has their ids, and whether the name of the file has the name of the collection. A share page can have another heading.
func (v *visit) sendReportCSV(page *reportPage, forMembers bool) error {
	name := fmt.Sprintf("report-%d", page.Report.Number)
	if words := wordsForFileName(page.Name); forMembers && words != "" {
		name += "-" + words
	}
	name += fmt.Sprintf("-%s-to-%s", page.Chart.Period.Start, page.Chart.Period.End)
	switch {
	case v.csvPart() == "accounts" && page.WithAccounts:
		if page.AmountsForm.Refused != nil {
			return page.AmountsForm.Refused
		}
		rows := accountSumRows(page.Report.Accounts, page.Amounts, forMembers)
		for n := range rows {
			of := []string{strconv.FormatInt(page.Report.Number, 10), page.Chart.Period.Start.String(), page.Chart.Period.End.String()}
			if n == 0 {
				of = []string{"report", "period_start", "period_end"}
			}
			rows[n] = append(of, rows[n]...)
		}
		return v.sendCSV(name+"-accounts", rows)
	case v.csvPart() != "videos":
		return v.sendHistory(name, page.Chart)
	}
	head := []string{"link", "username", "title", "removed", "uploaded_at", "added_at", "start_day", "end_day", "views_at_start", "views_gained", "views_at_end"}
	rows := [][]string{head}
	for _, r := range page.Videos {
		rows = append(rows, []string{formula.Escape(r.AdLink), formula.Escape(r.Username), formula.Escape(r.Title), strconv.FormatBool(r.Removed), csvValue(r.UploadedAt), csvValue(r.AddedAt),
			csvValue(r.StartDay), csvValue(r.EndDay), csvNumber(r.ViewsAtStart), csvNumber(r.ViewsGained), csvNumber(r.ViewsAtEnd)})
	}
	for n := range rows {
		if !page.WithCaptions {
			rows[n] = slices.Delete(rows[n], 2, 3)
		}
		if !page.WithAccounts {
			rows[n] = slices.Delete(rows[n], 1, 2)
		}
	}
	return v.sendCSV(name+"-videos", rows)
}

// wordsForFileName returns the letters and digits of a name for the name of a file: in lower case, with a hyphen in place of other characters. It cuts the
// result after 50 characters.
func wordsForFileName(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	letters := []rune(strings.Join(words, "-"))
	return strings.Trim(string(letters[:min(len(letters), 50)]), "-")
}

// accountSumRows returns the rows of a CSV file with the accounts of a report or a collection. toPay are the amounts of the accounts; if it is nil, the
// file has no amounts. The ids of the accounts are a column only if withIDs is true.
func accountSumRows(accounts []client.ReportAccount, toPay *amounts, withIDs bool) [][]string {
	head := []string{"account_id", "username", "platform", "videos", "views_gained", "unknown_gains", "views_at_end", "unknown_views"}
	rows := [][]string{append(head, toPay.csvColumns()...)}
	for n, a := range accounts {
		id := ""
		if a.AccountID != nil {
			id = a.AccountID.String()
		}
		row := []string{id, formula.Escape(textOf(a.Username)), string(a.Platform), csvValue(a.Videos), csvNumber(a.ViewsGained), csvValue(a.UnknownGains),
			csvNumber(a.ViewsAtEnd), csvValue(a.UnknownViews)}
		rows = append(rows, append(row, toPay.csvFields(n)...))
	}
	if !withIDs {
		for n := range rows {
			rows[n] = rows[n][1:]
		}
	}
	return rows
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
	content.WithCaptions, content.WithAccounts = true, true
	if err := v.fillReportRows(&content); err != nil {
		return err
	}
	if v.redirectToLastPage(content.View) {
		return nil
	}
	if !hasNames(&content.Report) {
		if err := v.addPresentNames(&content.Report, content.Videos); err != nil {
			return err
		}
	}
	query := v.r.URL.Query()
	content.AmountsForm.Values = query
	if len(content.Report.Accounts) > 0 { // older reports, and reports with hidden numbers, have no accounts
		content.StartViews = newStartViews(&content.Report, content.Chart.Period, content.Continues)
		if content.Amounts, content.AmountsForm.Refused = newAmounts(query, content.Report.Accounts, content.StartViews); content.AmountsForm.Refused != nil && status == http.StatusOK {
			status = content.AmountsForm.Refused.Status
		}
	}
	if v.csvPart() != "" {
		return v.sendReportCSV(&content, true)
	}
	saved, err := v.Backend.Report(v.r.Context(), v.id, uuid.MustParse(id))
	if err != nil {
		return err
	}
	content.Checksum, content.ShareForm = saved.Checksum, refusedShare
	if !v.hidesNumbers() {
		if content.Overlaps, err = saved.ListOverlaps(); err != nil {
			return err
		}
	}
	settings, err := settingsOf(saved.DisplaySettings, "")
	if err != nil {
		return err
	}
	content.DefaultHeading = reportHeading(&saved)
	content.ShareShows, content.ShareHides = settings.describeReport(hasNames(&content.Report))
	if err := content.fill(v, client.Access(saved.Access), saved.Hash, shareCloses(saved), store.ShareReport); err != nil {
		return err
	}
	if refusedShare.Refused == nil {
		maps.Copy(content.ShareForm.Values, settings.formValues())
	}
	return v.renderPage(status, "report", "collections", "Report of "+content.Name, content)
}

// reportHeading returns the heading of the share page of a report if the member has chosen none.
func reportHeading(r *store.Report) string {
	return fmt.Sprintf("Report %d: %s", r.Number, r.CollectionName)
}

// AccountsCSVLink returns the URL query that downloads the accounts of the report as a CSV file, with the amounts to pay that the page shows.
func (p reportPage) AccountsCSVLink() string {
	if p.Amounts == nil {
		return "?csv=accounts"
	}
	terms := p.AmountsForm
	return "?" + withParameters(nil, "csv", "accounts", "rate", terms.Get("rate"), "cap", terms.Get("cap"), "currency", terms.Get("currency"), "start_views", terms.Get("start_views")).Encode()
}

// HiddenAmountFields returns the hidden inputs of the form "Amounts to pay". They keep the metric and the view of the chart.
func (p reportPage) HiddenAmountFields() []hiddenField {
	return hiddenFields(withParameters(p.AmountsForm.Values, "rate", "", "cap", "", "currency", "", "start_views", ""))
}

// ShareAction returns the address to which the form of the share page is sent. If the form had no address, the browser would keep the fragment #accounts
// of the form "Amounts to pay", and would then scroll past the response to the share page's form.
func (p reportPage) ShareAction() string { return "?" + withParameters(p.AmountsForm.Values).Encode() }

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
		before, err := v.Backend.Report(v.r.Context(), v.id, uuid.MustParse(id))
		if err != nil {
			return err
		}
		body, err := v.sharingMembers(shareCloses(before))
		if err != nil {
			return err
		}
		stored := json.RawMessage("null")
		if before.DisplaySettings != nil {
			stored = json.RawMessage(*before.DisplaySettings)
		}
		if body["display_settings"], err = v.changedSettings(stored, "show_history", "show_captions", "show_accounts"); err != nil {
			return err
		}
		return v.sendShare("/reports/"+id, "", body)
	}, v.renderReport)
}

// needsReportVideos returns true if the response needs the videos of the report. The response to a HEAD request for the page has no body.
func (v *visit) needsReportVideos() bool {
	return v.csvPart() == "videos" || v.csvPart() == "accounts" && paysStartViews(v.r.URL.Query()) || v.csvPart() == "" && v.r.Method != http.MethodHead
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
	if r.ContinuesReportID != nil {
		continued, err := v.Backend.Report(v.r.Context(), v.id, *r.ContinuesReportID)
		if err != nil {
			return content, err
		}
		content.Continues = &continued
	}
	slices.SortStableFunc(r.Videos, func(a, b client.ReportVideo) int { return store.CompareGains(a.ViewsGained, b.ViewsGained) })
	p := period{Start: store.DateOf(r.Statistics.StartDate.Time), End: store.DateOf(r.Statistics.EndDate.Time)}
	p.Days = int32(p.End-p.Start) + 1
	points := make([]point, len(r.Days))
	for n := range r.Days {
		h := &r.Days[n]
		points[n] = pointOfCollection(h, gainOfDay(h), h.Views, h.Engagements, h.Videos)
	}
	slices.SortFunc(points, func(a, b point) int { return int(b.Day - a.Day) })
	content.Chart = v.newChart("The value of a day is the sum over the videos of the report that were in the collection on that day. The report has the values that were known when it was saved."+describeJoined(collectionMetrics), p, collectionMetrics, points)
	content.Chart.setViewsGained(collectionGains(r.Days))
	content.Chart.Joined, content.Chart.Sums = true, true
	content.Tiles = collectionTiles(r.Statistics, content.Chart, points, p, nil)
	content.Tiles[0].Span = spanOfGain(r.Days, p)
	return content, nil
}
