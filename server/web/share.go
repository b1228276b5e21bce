package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

const (
	// shareCookie is the name of the cookie that lets a browser open a protected share page without sending the password again.
	shareCookie = "reeltally_share"
	// ShareSessionLife is how long a browser can open a protected share page after it has sent the password.
	ShareSessionLife = 12 * time.Hour
)

// embedPolicy is the Content-Security-Policy of a share page that another web site shows in a frame.
const embedPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors *"

// Meanings returns the explanations of the columns whose labels need one, such as "Outlier: …". If several columns have the same
// explanation, one text names all of them.
func (p sharePage) Meanings() []string {
	var meanings, texts []string
	for _, m := range p.Metrics {
		meaning := m.Meaning()
		if meaning == "" {
			continue
		}
		if at := slices.Index(meanings, meaning); at >= 0 {
			texts[at] += ", " + m.Label
			continue
		}
		meanings, texts = append(meanings, meaning), append(texts, m.Label)
	}
	for n := range texts {
		texts[n] += ": " + meanings[n]
	}
	return texts
}

// sharePaths are the beginnings of the paths of share pages. The hash of the page follows.
var sharePaths = map[store.ShareKind]string{store.ShareCollection: "/c/", store.ShareReport: "/r/"}

// shareKind returns what the requested share page shows. It returns false if the visitor requested another page.
func (v *visit) shareKind() (store.ShareKind, bool) {
	for kind, path := range sharePaths {
		if strings.HasPrefix(v.r.URL.Path, path) {
			return kind, true
		}
	}
	return "", false
}

// shareVisit is the visit of a share page by a visitor who is allowed to see the page. Its methods read only data of the shared
// collection or report from the API.
type shareVisit struct {
	visit    *visit
	share    store.Share
	settings displaySettings
}

// getFromAPI reads data of the shared collection from the API into result, which must be a pointer.
// subPath is the path below the collection.
func (s *shareVisit) getFromAPI(subPath string, query url.Values, result any) error {
	return s.visit.getFromAPI("/collections/"+s.share.Collection.ID.String()+subPath, query, result)
}

// newShareVisit returns a visit of a share page. Its requests to the API have read access to the data of the organisation of the page.
func newShareVisit(v *visit, share store.Share) (*shareVisit, error) {
	visitCopy := *v // v itself must not change: error pages are rendered from v, and an error page must not show the organisation
	visitCopy.id = store.Identity{Organisation: share.Organisation, Token: store.Token{OrganisationID: share.Organisation.ID, Scopes: []store.Scope{store.ScopeRead}}}
	title := share.Collection.Name
	if share.Kind == store.ShareReport {
		title = reportHeading(&share.Report)
	}
	settings, err := settingsOf(share.DisplaySettings, title)
	return &shareVisit{&visitCopy, share, settings}, err
}

// sharePage is the data for the template of a share page.
type sharePage struct {
	Title       string
	Description string
	Theme       string // colour scheme: "light", "dark" or "auto"
	Address     string // URL of the page
	Card        string // URL of the preview image; "" if the page has none
	Summary     string // description that social networks show with a link to the page; "" if there is none
	Embedded    bool   // true if another web site shows the page in a frame
	MadeUp      bool   // true if the numbers are made up by the sandbox
	Masked      bool   // true if the organisation's tier hides numbers
	Locked      bool   // true if the visitor must send the password first
	Failed      bool   // true if this is an error page, which shows the field Problem and no data of the collection
	Problem     *Problem

	Report   *reportPage // the report; nil if the page shows the current numbers of a collection
	Refused  *Problem    // error of the API if the collection is too large for its numbers to be computed; nil otherwise
	Period   period
	Tiles    []tile
	Chart    *chart // nil if the page shows no history
	Metrics  []shareMetric
	Videos   []client.Video
	View     tableView
	Accounts []client.Account
	// AccountCount is the number of accounts of the collection. The page lists at most 50 of them.
	AccountCount int64
	Updated      *time.Time // time of the newest numbers in the list of videos
}

// UnlistedAccounts returns true if the page says that it lists only some of the accounts.
func (p sharePage) UnlistedAccounts() bool {
	return !p.Masked && p.AccountCount > int64(len(p.Accounts))
}

// showShare shows the share page of a collection or report, sends its numbers as a CSV file, or shows the form for the password.
func showShare(v *visit) error {
	share, err := v.openShare()
	if err != nil {
		return err
	}
	embedded := v.r.URL.Query().Get("embed") == "1" && share.Access == store.AccessPublic
	if embedded {
		v.w.Header().Set("Content-Security-Policy", embedPolicy)
	}
	if share.Access == store.AccessProtected {
		cookie, err := v.r.Cookie(shareCookie)
		if err != nil || !v.Backend.HasSharePass(share, cookie.Value) {
			return v.askForPassword(share, http.StatusOK, nil)
		}
	}
	v.Backend.RecordShareVisit(v.r.Context(), share)
	s, err := newShareVisit(v, share)
	if err != nil {
		return err
	}
	page := s.page()
	page.Embedded = embedded
	if err := s.loadContent(&page); err != nil {
		return err
	}
	if v.csvPart() == "" && v.redirectToLastPage(page.View) {
		return nil
	}
	if v.csvPart() != "" {
		switch {
		case page.Report != nil && (page.Chart != nil || v.csvPart() != "history"):
			return s.visit.sendReportCSV(page.Report, false)
		case page.Chart == nil:
			return v.refuseCSV()
		}
		return v.sendHistory(strings.TrimPrefix(wordsForFileName(page.Title)+"-history", "-")+"-"+page.Period.Start.String()+"-to-"+page.Period.End.String(), *page.Chart)
	}
	status := http.StatusOK
	if page.Problem = s.visit.refused; page.Problem != nil {
		status = page.Problem.Status
	}
	return v.executeTemplate(status, "share", "shared", page)
}

// errShareNotFound is the only error for an unknown address, a private collection or report, and an expired share
// page. Visitors cannot tell these cases apart.
var errShareNotFound = &Problem{Status: http.StatusNotFound, Title: "This page is not shared", Detail: "Nothing is shared at this address now. Check the address, or ask the sender of the link for a new one."}

// renderShareError sends the error page for a share page. The error page has no link to the dashboard,
// because visitors may have no token.
func (v *visit) renderShareError(problem *Problem) {
	if problem.Status == http.StatusNotFound {
		problem = errShareNotFound
	}
	page := sharePage{Title: problem.Title, Failed: true, Problem: problem, Theme: "auto"}
	if problem.Status == http.StatusBadRequest {
		kind, _ := v.shareKind()
		page.Address = v.AppURL + sharePaths[kind] + url.PathEscape(v.r.PathValue("hash"))
	}
	if err := v.executeTemplate(problem.Status, "share", "shared", page); err != nil {
		v.Logger.ErrorContext(v.r.Context(), "cannot render the error page", "error", err)
	}
}

// openShare finds the shared collection or report by the hash in the path. If the share page is missing, private
// or expired, the error is a *Problem with status 404.
func (v *visit) openShare() (store.Share, error) {
	v.w.Header().Set("X-Robots-Tag", "noindex, nofollow")
	kind, _ := v.shareKind()
	return v.Backend.FindShare(v.r.Context(), kind, v.r.PathValue("hash"))
}

// askForPassword shows the form for the password of a share page. This page shows nothing of the collection or report.
func (v *visit) askForPassword(share store.Share, status int, problem *Problem) error {
	return v.executeTemplate(status, "share", "shared", sharePage{Title: "This page is protected", Locked: true, Problem: problem, Theme: "auto", Address: v.shareURL(share)})
}

// submitSharePassword checks the password in the form and gives the browser a cookie that opens the share page.
func submitSharePassword(v *visit) error {
	share, err := v.openShare()
	if err != nil {
		return err
	}
	target := sharePaths[share.Kind] + url.PathEscape(*share.Hash)
	if share.Access != store.AccessProtected {
		v.redirectTo(target)
		return nil
	}
	pass, err := v.Backend.CheckSharePassword(v.r.Context(), share, v.r.PostFormValue("password"))
	if problem, ok := errors.AsType[*Problem](err); ok && problem.Status < http.StatusInternalServerError {
		v.setRetryAfter(problem)
		return v.askForPassword(share, problem.Status, problem)
	}
	if err != nil {
		return err
	}
	http.SetCookie(v.w, &http.Cookie{ //nolint:gosec // Secure is false only if the dashboard has an http URL, over which browsers would not send a secure cookie
		Name: shareCookie, Value: pass, Path: v.base + target, MaxAge: int(ShareSessionLife.Seconds()), HttpOnly: true, Secure: v.Secure, SameSite: http.SameSiteLaxMode})
	v.redirectTo(target)
	return nil
}

func (v *visit) shareURL(share store.Share) string {
	return v.AppURL + sharePaths[share.Kind] + *share.Hash
}

// page returns the data for the template, without the fields that need a request to the API.
func (s *shareVisit) page() sharePage {
	page := sharePage{Title: s.settings.Title, Description: s.settings.Description, Theme: s.settings.Theme, Address: s.visit.shareURL(s.share), Metrics: s.settings.metrics(),
		MadeUp: s.visit.Backend.IsDataMadeUp(), Masked: s.visit.hidesNumbers()}
	if page.Theme != "light" && page.Theme != "dark" {
		page.Theme = "auto"
	}
	if s.share.Access == store.AccessPublic {
		page.Card = page.Address + "/card.png"
	}
	return page
}

// period returns the period that the page shows. If the page shows no history, visitors cannot choose the period: the sums of chosen days
// would give them the history.
func (s *shareVisit) period() (period, error) {
	if !s.settings.ShowHistory {
		return s.visit.requestedPeriod(nil)
	}
	return s.visit.period()
}

// loadContent sets the fields of page whose values come from the API.
func (s *shareVisit) loadContent(page *sharePage) error {
	if s.share.Kind == store.ShareReport {
		if err := s.loadReport(page); err != nil {
			return err
		}
		err := s.visit.fillReportRows(page.Report)
		page.View = page.Report.View
		return err
	}
	if err := s.loadSums(page); err != nil {
		return err
	}
	if err := s.loadVideos(page); err != nil {
		return err
	}
	if s.settings.ShowAccounts {
		var accounts client.CollectionAccountPage
		if err := s.getFromAPI("/accounts", url.Values{"limit": {"50"}, "order_by": {"total_views"}}, &accounts); err != nil {
			return err
		}
		page.Accounts, page.AccountCount = accounts.Data, accounts.Pagination.Total
	}
	page.Summary = page.Description
	// The list of a masked page has at most one video, so its length is not the number of videos.
	if page.Summary == "" && !page.Masked {
		page.Summary = summarise(page.Tiles, page.Period.Days, page.View.Total)
	}
	return nil
}

// loadReport sets the fields of page for a report, without the rows of the table. It reads only the report, and the number of the report that it
// continues. So the page shows nothing that was not frozen when the report was made.
func (s *shareVisit) loadReport(page *sharePage) error {
	report, err := s.visit.loadReport("/reports/" + s.share.Report.ID.String())
	if err != nil {
		return err
	}
	report.Checksum = s.share.Report.Checksum
	report.WithCaptions, report.WithAccounts = s.settings.ShowCaptions && hasNames(&report.Report), s.settings.ShowAccounts && len(report.Report.Accounts) > 0
	page.Report, page.Metrics, page.Chart, page.Tiles, page.Period = &report, nil, &report.Chart, report.Tiles, report.Chart.Period
	if !s.settings.ShowHistory {
		page.Chart = nil
		for n := range page.Tiles {
			page.Tiles[n].Spark, page.Tiles[n].Link, page.Tiles[n].Shown = "", "", false
		}
	}
	switch {
	case page.Description != "":
		page.Summary = page.Description
	case page.Masked:
		page.Summary = page.Period.Text()
	default:
		// The first text of a summary is the number of videos, which is the last tile of a report.
		page.Summary = page.Period.Text() + " · " + summarise(slices.Concat(page.Tiles[len(page.Tiles)-1:], page.Tiles[:len(page.Tiles)-1]), page.Period.Days, 0)
	}
	return nil
}

// summarise returns the numbers of the tiles as one line of text, for example "2 videos · 10.5k views". The first tile must have the number of
// videos. The text has the length of the period in days. Without tiles, the line has only listedVideos, the number of videos in the list.
func summarise(tiles []tile, days int32, listedVideos int64) string {
	if len(tiles) == 0 {
		return plural(listedVideos, "video", "videos")
	}
	// The sums include stopped videos, but the list does not. So the number of videos must also come from the tiles.
	texts := []string{plural(tiles[0].Value, "video", "videos")}
	for _, t := range tiles[1:] {
		if t.Value != nil {
			texts = append(texts, formatShort(t.Value)+" "+strings.ToLower(t.LabelWithPeriod(days)))
		}
	}
	return strings.Join(texts, " · ")
}

// loadVideos reads one page of the videos. Visitors cannot choose the order: sorting by a hidden
// metric would show which video has the higher count.
func (s *shareVisit) loadVideos(page *sharePage) error {
	n, err := s.visit.pageNumber()
	if err != nil {
		return err
	}
	page.View = tableView{Column: s.settings.Sort.By, Ascending: s.settings.Sort.Direction == "asc", Page: n, query: s.visit.r.URL.Query()}
	var videos client.CollectionVideoPage
	if err := s.getFromAPI("/videos", page.View.Query(), &videos); err != nil {
		return err
	}
	page.View.setRowCount(videos.Pagination.Total, videos.Pagination.TotalPages)
	page.Videos = videos.Data
	for _, video := range videos.Data {
		if at := video.LatestUpdatedAt; at != nil && (page.Updated == nil || at.After(*page.Updated)) {
			page.Updated = at
		}
	}
	return nil
}

// loadSums sets the period of the page, and reads the sums of the collection. If the page shows the history, loadSums also makes its chart.
func (s *shareVisit) loadSums(page *sharePage) error {
	p, err := s.period()
	if err != nil {
		return err
	}
	page.Period = p
	var sums []shareMetric
	for _, m := range page.Metrics {
		if m.currentSum != nil {
			sums = append(sums, m)
		}
	}
	query := url.Values{"start_date": {p.Start.String()}, "end_date": {p.End.String()}}
	var now client.ReportStatistics
	err = s.getFromAPI("/statistics", query, &now)
	// The API refuses the request with status 409 if the collection has too many videos for the length of the period.
	if problem, ok := errors.AsType[*Problem](err); ok && problem.Status == http.StatusConflict {
		page.Refused = problem
		return nil
	}
	if err != nil {
		return err
	}
	var history client.CollectionHistory
	if err := s.getFromAPI("/history", query, &history); err != nil {
		return err
	}
	page.Tiles = []tile{{Label: "Videos", Value: now.Videos, Stopped: now.VideosRemoved, Plain: true}}
	for _, m := range sums {
		sum, unknownCount := m.currentSum(&now)
		page.Tiles = append(page.Tiles, tile{Label: m.Label, Value: sum, Unknown: unknownCount, Plain: true})
		if m.Name == "views" {
			page.Tiles = append(page.Tiles, tile{Label: "Gained views", Value: now.ViewsGained, Percent: now.Increase, Unknown: now.UnknownGains, Plain: true, Gain: true, Span: spanOfGain(history, p)})
		}
	}
	if s.settings.ShowHistory && len(sums) > 0 {
		s.addHistoryChart(page, sums, history)
	}
	return nil
}

// addHistoryChart adds the chart of the given metrics to the page, and small charts to their tiles.
func (s *shareVisit) addHistoryChart(page *sharePage, sums []shareMetric, history client.CollectionHistory) {
	p := page.Period
	points := make([]point, len(history))
	for n := range history {
		points[n] = pointOfCollection(&history[n])
		points[n].Joined = nil // a share page does not mark the days on which videos joined
		for _, m := range sums {
			points[n].Values = append(points[n].Values, m.sumOfDay(&history[n]))
		}
	}
	var names []metric
	for m, sum := range sums {
		names = append(names, metric{Name: sum.Name, Label: sum.Label})
		for t := range page.Tiles {
			if page.Tiles[t].Label == sum.Label {
				page.Tiles[t].Spark = sparkline(points, m, p.Start, p.End)
			}
		}
	}
	c := s.visit.newChart(sumCaption+describeJoined(names), p, names, points)
	c.setViewsGained(collectionGains(history))
	c.Sums = true
	page.Chart = &c
}
