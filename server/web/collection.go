package web

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store"
)

// maxCollectionFilters is the maximum number of collections by which the API filters a list of videos.
const maxCollectionFilters = 100

// maxReports is the maximum number of reports that the page of a collection lists, and maxAccounts is the maximum number of its accounts.
const (
	maxReports  = 5000
	maxAccounts = 50
)

// collectionPage is the data for the template of the page of a collection.
type collectionPage struct {
	shownCollection
	collectionMembers
	collectionNumbers
	collectionSharePanel
	editPanel
	Best        []gainRow
	Worst       []gainRow
	SameGains   bool // true if Best and Worst have the same videos, so that the page shows only Best
	Reports     []client.ReportSummary
	ReportCount int64  // number of reports of the collection; the page can list fewer
	ReportKey   string // random text that identifies the form for a new report
}

// shownCollection is a collection and the part of it that the visitor requested.
type shownCollection struct {
	Collection client.Collection
	ETag       string    // ETag of the collection; the forms send it as If-Match
	Subtree    bool      // true if the numbers include the collections below this one
	View       tableView // the list of videos
}

// path returns the path of the collection in the API.
func (c shownCollection) path() string { return "/collections/" + c.Collection.ID.String() }

// fileName returns the beginning of the names of the CSV files of the collection.
func (c shownCollection) fileName() string {
	return strings.TrimSuffix("collection-"+wordsForFileName(c.Collection.Name), "-")
}

// SubtreeLink returns the URL query of the same page with the opposite value of Subtree.
func (c shownCollection) SubtreeLink() string {
	other := "true"
	if c.Subtree {
		other = ""
	}
	return "?" + withParameters(c.View.query, "subtree", other).Encode()
}

// collectionMembers are the videos and accounts of a collection, and the collections around it.
type collectionMembers struct {
	Videos                 []client.Video
	Highest                int64
	UnlistedSubcollections int64 // number of subcollections whose videos the list of videos leaves out, because there are too many subcollections
	Accounts               []client.Account
	AccountCount           int64               // number of accounts in the collection; the page can list fewer
	Collections            []client.Collection // all collections of the organisation, to which the selected videos can be added
	Parent                 *client.Collection
	Children               []client.Collection
	VideosBelow            int64             // number of tracked videos in the collections below this one, if the collection itself has none and Subtree is false; 0 if unknown
	ShareOmits             string            // warning that the share page leaves out the videos of subcollections; "" if it leaves out none, or if this is unknown
	pagination             client.Pagination // pagination of Videos
}

// showCollection shows a collection: the views that it gained in a period, its history, its videos and its accounts.
func showCollection(v *visit) error {
	return v.renderCollection(http.StatusOK, collectionForms{})
}

// collectionForms are the forms on the page of a collection that were refused. Their values are those that the visitor sent.
type collectionForms struct{ edit, share form }

// renderCollection shows the page of a collection. The page shows the refused forms again.
func (v *visit) renderCollection(status int, refused collectionForms) error {
	id, err := v.itemID()
	if err != nil {
		return err
	}
	p, err := v.period()
	if err != nil {
		return err
	}
	c := shownCollection{Subtree: v.r.URL.Query().Get("subtree") == "true"}
	if c.View, err = v.tableView("latest_views"); err != nil {
		return err
	}
	if c.Collection, c.ETag, err = v.getCollection("/collections/" + id); err != nil {
		return err
	}
	if v.csvPart() != "" {
		return v.sendCollectionCSV(c, p)
	}
	content := collectionPage{shownCollection: c}
	var calls errgroup.Group // these calls run at the same time, because each takes long for a large collection
	calls.Go(func() (err error) {
		content.collectionMembers, err = v.loadMembers(c)
		return err
	})
	calls.Go(func() (err error) {
		content.collectionNumbers, err = v.loadNumbers(c, p)
		return err
	})
	if err := calls.Wait(); err != nil {
		return err
	}
	content.View.setRowCount(content.pagination.Total, content.pagination.TotalPages)
	if v.redirectToLastPage(content.View) {
		return nil
	}
	content.editPanel = newEditPanel(c, content.Collections, refused.edit)
	if content.collectionSharePanel, err = v.loadSharePanel(c, refused.share); err != nil {
		return err
	}
	if content.Best, err = v.rowsForGains(content.Statistics.Best, content.Videos); err != nil {
		return err
	}
	if content.Worst, err = v.rowsForGains(content.Statistics.Worst, content.Videos); err != nil {
		return err
	}
	content.SameGains = haveSameVideos(content.Statistics.Best, content.Statistics.Worst)
	var reports client.ReportPage
	if err := v.getFromAPI(c.path()+"/reports", url.Values{"limit": {strconv.Itoa(maxReports)}}, &reports); err != nil {
		return err
	}
	content.Reports, content.ReportCount, content.ReportKey = reports.Data, reports.Pagination.Total, rand.Text()
	for _, report := range reports.Data {
		if v.r.URL.Query().Get("notice") == savedReport+report.ID.String() {
			v.notice, v.noticeLink = "The report was saved:", noticeLink{fmt.Sprintf("Report %d", report.Number), "/collection/report/" + report.ID.String()}
			if len(report.Overlaps) > 0 {
				v.notice = "The report was saved. It counts some views that earlier reports count, too:"
			}
		}
	}
	return v.renderPage(status, "collection", "collections", c.Collection.Name, content)
}

// savedReport is the first part of the value of the query parameter "notice" after a report was saved. The id of the report follows.
const savedReport = "report-saved-"

// sendCollectionCSV sends the days, the accounts or the videos of a collection as a CSV file.
func (v *visit) sendCollectionCSV(c shownCollection, p period) error {
	switch v.csvPart() {
	case "history", "accounts":
		numbers, err := v.loadNumbers(c, p)
		if err != nil {
			return err
		}
		if numbers.Refused != nil {
			return numbers.Refused
		}
		if v.csvPart() == "accounts" {
			return v.sendCSV(fmt.Sprintf("%s-accounts-%s-to-%s", c.fileName(), p.Start, p.End), accountSumRows(numbers.AccountSums, nil, true))
		}
		return v.sendHistory(fmt.Sprintf("%s-history-%s-to-%s", c.fileName(), p.Start, p.End), numbers.Chart)
	case "videos":
		list, query, _, err := v.videoList(c)
		if err != nil {
			return err
		}
		name := c.fileName() + "-videos"
		if !p.EndsToday() {
			name += "-now"
		}
		return v.sendVideos(name, c.View, list, query)
	}
	return v.refuseCSV()
}

// videoList returns the API path and query that list the videos of a collection. If c.Subtree is true, the list also has the videos of up to
// maxCollectionFilters-1 subcollections. `unlisted` is the number of the other subcollections.
func (v *visit) videoList(c shownCollection) (path string, query url.Values, unlisted int64, err error) {
	query = c.View.Query()
	if !c.Subtree {
		return c.path() + "/videos", query, 0, nil
	}
	var below client.CollectionList
	err = v.getFromAPI("/collections", url.Values{"parent_id": {c.Collection.ID.String()}, "include_children": {"true"}, "order_by": {"name"},
		"order_direction": {"asc"}, "paginated": {"true"}, "limit": {strconv.Itoa(maxCollectionFilters - 1)}}, &below)
	ids := []string{c.Collection.ID.String()}
	for _, child := range below.Data {
		ids = append(ids, child.ID.String())
	}
	query.Set("collections", strings.Join(ids, ","))
	return "/videos", query, max(0, below.Pagination.Total-int64(len(below.Data))), err
}

// loadMembers reads the videos, the accounts, the parent and the direct children of a collection, and all collections.
func (v *visit) loadMembers(c shownCollection) (m collectionMembers, err error) {
	list, query, unlisted, err := v.videoList(c)
	if err != nil {
		return m, err
	}
	var videos client.CollectionVideoPage
	if err := v.getFromAPI(list, query, &videos); err != nil {
		return m, err
	}
	m.Videos, m.Highest, m.UnlistedSubcollections, m.pagination = videos.Data, highestViews(videos.Data), unlisted, videos.Pagination
	var accounts client.CollectionAccountPage
	if err := v.getFromAPI(c.path()+"/accounts", url.Values{"limit": {strconv.Itoa(maxAccounts)}, "order_by": {"total_views"}}, &accounts); err != nil {
		return m, err
	}
	m.Accounts, m.AccountCount = accounts.Data, accounts.Pagination.Total
	if m.Collections, err = v.collections(); err != nil {
		return m, err
	}
	for n, other := range m.Collections {
		switch {
		case c.Collection.ParentID != nil && other.ID == *c.Collection.ParentID:
			m.Parent = &m.Collections[n]
		case other.ParentID != nil && *other.ParentID == c.Collection.ID:
			m.Children = append(m.Children, other)
		}
	}
	if len(m.Children) == 0 || c.View.Masked || !c.Subtree && m.pagination.Total > 0 {
		return m, nil
	}
	opposite := c
	opposite.Subtree = !c.Subtree
	count, err := v.countVideos(opposite)
	own, withBelow := m.pagination.Total, count // numbers of videos of the collection itself, and with its subcollections
	if c.Subtree {
		own, withBelow = withBelow, own
	} else {
		m.VideosBelow = withBelow
	}
	m.ShareOmits = describeOmittedVideos(own, withBelow-own)
	return m, err
}

// countVideos returns the number of videos in the list of a collection's videos. It returns 0 if the list leaves out some of the subcollections.
func (v *visit) countVideos(c shownCollection) (int64, error) {
	list, query, unlisted, err := v.videoList(c)
	if err != nil || unlisted > 0 {
		return 0, err
	}
	var videos client.CollectionVideoPage
	err = v.getFromAPI(list, url.Values{"collections": query["collections"], "limit": {"1"}}, &videos)
	return videos.Pagination.Total, err
}

// continuableReport is a report that a new report of the period can continue.
type continuableReport struct {
	client.ReportSummary
	NextDay store.Date // the day after the report, on which the new report begins
}

// ContinuableReport returns the report with the videos of the same collections that ends on the day before the period, or else the newest one. It returns
// nil if there is no such report, if that report does not end before the last day of the period, or if the tier does not show the day after it.
func (p collectionPage) ContinuableReport() *continuableReport {
	sameVideos := func(r client.ReportSummary) bool { return r.IncludeChildren == p.Subtree }
	adjoins := func(r client.ReportSummary) bool {
		return sameVideos(r) && store.DateOf(r.EndDate.Time)+1 == p.Chart.Period.Start
	}
	n := slices.IndexFunc(p.Reports, adjoins)
	if n < 0 {
		n = slices.IndexFunc(p.Reports, sameVideos)
	}
	if n < 0 {
		return nil
	}
	next := store.DateOf(p.Reports[n].EndDate.Time) + 1
	if next > p.Chart.Period.End || next < p.Chart.Period.Oldest {
		return nil
	}
	return &continuableReport{p.Reports[n], next}
}

// LaterVideos returns the number of tracked videos that were added after the period, so that it has none of their views. It returns 0 if the period ends
// today, or if the number is unknown.
func (p collectionPage) LaterVideos() int64 {
	s := p.Statistics
	if p.Chart.Period.EndsToday() || p.Refused != nil || p.UnlistedSubcollections > 0 || s.Videos == nil || s.VideosRemoved == nil {
		return 0
	}
	return max(0, p.pagination.Total-(*s.Videos-*s.VideosRemoved))
}

// SavedReportsText names the saved reports with the videos of the same collections whose periods have a day in common with the shown period. It returns ""
// if there are none.
func (p collectionPage) SavedReportsText() string {
	var names []string
	for _, r := range p.Reports {
		if r.IncludeChildren == p.Subtree && store.DateOf(r.StartDate.Time) <= p.Chart.Period.End && store.DateOf(r.EndDate.Time) >= p.Chart.Period.Start {
			names = append(names, fmt.Sprintf("report %d (%s to %s)", r.Number, r.StartDate, r.EndDate))
		}
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n > 3:
		names = append(names[:3], fmt.Sprintf("%d older reports", n-3))
	}
	return "Days of this period are already in " + words.JoinWithAnd(names) + "."
}

// ContinuedNumber returns the number of the report that a report of the list continues. It returns 0 if it continues none, or if the list lacks that report.
func (p collectionPage) ContinuedNumber(r client.ReportSummary) int64 {
	for _, other := range p.Reports {
		if r.ContinuesReportID != nil && other.ID == *r.ContinuesReportID {
			return other.Number
		}
	}
	return 0
}

// WithoutNumbersPath returns the path and the query of the list of the collection's videos that were never fetched. It returns "" if the views of all
// videos are known, if the period does not end today, or if a list cannot have the videos of all collections on the page.
func (p collectionPage) WithoutNumbersPath() string {
	if p.Statistics.UnknownViews == nil || *p.Statistics.UnknownViews == 0 || !p.Chart.Period.EndsToday() {
		return ""
	}
	ids, shown := []string{p.Collection.ID.String()}, map[uuid.UUID]bool{p.Collection.ID: true}
	if p.Subtree {
		for _, c := range collectionTree(p.Collections) { // in the tree, a collection comes after its parent
			if c.ParentID != nil && shown[*c.ParentID] {
				shown[c.ID] = true
				ids = append(ids, c.ID.String())
			}
		}
	}
	if len(ids) > maxCollectionFilters {
		return ""
	}
	return "/video?" + url.Values{"collections": {strings.Join(ids, ",")}, "has_metrics": {"false"}, "include_removed": {"true"}, "order_by": {"created_at"}}.Encode()
}

// describeOmittedVideos returns the warning that a share page shows only the `shown` videos of its collection, and not the `omitted` videos that
// are only in subcollections. It returns "" if no video is omitted.
func describeOmittedVideos(shown, omitted int64) string {
	switch {
	case omitted <= 0:
		return ""
	case shown > 0:
		return fmt.Sprintf("Visitors will see %s of %d. The others are in subcollections, which share pages leave out.", plural(shown, "video", "videos"), shown+omitted)
	case omitted == 1:
		return "Visitors will see 0 videos: the only video is in a subcollection, which share pages leave out."
	}
	return fmt.Sprintf("Visitors will see 0 videos: the %s are in subcollections, which share pages leave out.", plural(omitted, "video", "videos"))
}

// DeleteEffects says what happens to the share page, the subcollections and the reports of the collection if it is deleted.
func (p collectionPage) DeleteEffects() []string {
	var effects []string
	if p.ShareURL != "" {
		effects = append(effects, "Its share page closes immediately, and its address never opens again.")
	}
	if n := len(p.Children); n > 0 {
		place := "the top level"
		if p.Parent != nil {
			place = strconv.Quote(p.Parent.Name)
		}
		effects = append(effects, plural(n, "subcollection moves", "subcollections move")+" up to "+place+".")
	}
	if p.ReportCount > 0 {
		effects = append(effects, plural(p.ReportCount, "report stays", "reports stay")+" in the list of reports on the page Collections.")
	}
	return effects
}

// changeCollection performs the action of a button on the page of a collection, and redirects to a page with a notice.
func changeCollection(v *visit) error {
	id, err := v.itemID()
	if err != nil {
		return err
	}
	path := "/collections/" + id
	var notice string
	target := "/collection/" + id
	var view url.Values // query of the page to which the browser returns
	switch v.r.PathValue("action") {
	case "remove":
		notice = "account-removed"
		err = v.removeAccount(path)
	case "edit":
		return v.editCollection(id)
	case "undo":
		return v.undoAddition(id)
	case "freeze":
		var report client.ReportSummary
		report, err = v.saveReport(path)
		notice = savedReport + report.ID.String()
		// Only the query of the field is used, so the browser cannot be sent to another page.
		if back, invalid := url.Parse(v.r.PostFormValue("back")); invalid == nil {
			view = back.Query()
		}
	case "delete":
		target, notice = "/collection", "deleted"
		_, err = v.callAPI(APIRequest{Method: http.MethodDelete, Target: path}, nil)
	default:
		return errNotFound
	}
	if err != nil {
		return err
	}
	v.redirectTo(target + "?" + withParameters(view, "notice", notice).Encode())
	return nil
}
