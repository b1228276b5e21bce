package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	openapi_types "github.com/oapi-codegen/runtime/types"
	"golang.org/x/sync/errgroup"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// maxCollectionFilters is the maximum number of collections by which the API filters a list of videos.
const maxCollectionFilters = 100

// maxReports is the maximum number of reports that the page of a collection lists, and maxAccounts is the maximum number of its accounts.
const (
	maxReports  = 5000
	maxAccounts = 50
)

// sumCaption is the text below the chart of a collection. It says which videos the sums of a day include.
const sumCaption = "The value of a day is the sum over the videos that are in the collection now, each from the day on which it was added. If a video was removed and added again, it counts from the day on which it was added again."

// collectionStatistics are the statistics of a collection: those of a report, and the videos that gained most and least.
type collectionStatistics struct {
	client.ReportStatistics
	Best  []client.CollectionGain `json:"best"`
	Worst []client.CollectionGain `json:"worst"`
}

// collectionPage is the data for the template of the page of a collection.
type collectionPage struct {
	Collection             client.Collection
	Parent                 *client.Collection
	Children               []client.Collection
	Subtree                bool // true if the numbers include the collections below this one
	Statistics             collectionStatistics
	Refused                *Problem // error of the API if the collection is too large for its numbers to be computed; nil otherwise
	Tiles                  []tile
	Chart                  chart
	Best                   []gainRow
	Worst                  []gainRow
	AccountSums            []client.ReportAccount // sums over the videos of each account in the period, the account with the highest gain first
	SameGains              bool                   // true if Best and Worst have the same videos, so that the page shows only Best
	View                   tableView
	Videos                 []client.Video
	Highest                int64
	UnlistedSubcollections int64 // number of subcollections whose videos the list of videos leaves out, because there are too many subcollections
	Accounts               []client.Account
	AccountCount           int64 // number of accounts in the collection; the page can list fewer
	Reports                []client.ReportSummary
	ReportCount            int64               // number of reports of the collection; the page can list fewer
	VideosBelow            int64               // number of tracked videos in the collections below this one, if the collection itself has none and Subtree is false; 0 if unknown
	ShareOmits             string              // warning that the share page leaves out the videos of subcollections; "" if it leaves out none, or if this is unknown
	Collections            []client.Collection // collections to which the selected videos can be added
	Link                   string              // URL query of the same page with the opposite value of Subtree

	sharePanel
	EditForm     form                // form that changes the name, the parent and the hashtags
	Parents      []client.Collection // collections that can be the parent
	ETag         string              // ETag of the collection; the forms send it as If-Match
	ShareTitle   string              // heading of the share page; "" for the name of the collection
	ShareShows   string              // what visitors of the share page see, as text
	ShareMetrics []columnChoice
}

// shownGain is the gain of a video as a page shows it.
type shownGain struct {
	Views *int64
	Since string // day on which the gain begins; "" if the gain begins with the period
	Until string // day on which the gain ends; "" if the gain ends with the period
}

// gainWithDays returns the gain that the page shows for a video in the period p. `gained` is the gain from the API, which covers the days from
// startDay to endDay.
func gainWithDays(startDay, endDay *openapi_types.Date, gained *int64, p period) shownGain {
	if endDay == nil && startDay != nil && store.DateOf(startDay.Time) >= p.End {
		return shownGain{Since: startDay.String()} // a report from before end_day existed has a gain of 0 here
	}
	out := shownGain{Views: gained}
	if startDay != nil && store.DateOf(startDay.Time) >= p.Start {
		out.Since = startDay.String()
	}
	// The last day may have no number yet, because its fetch can still be due. So a gain that ends on the day before needs no note.
	if endDay != nil && gained != nil && store.DateOf(endDay.Time) < p.End-1 {
		out.Until = endDay.String()
	}
	return out
}

// gainRow is a video with the views that it gained in the period.
type gainRow struct {
	client.CollectionGain
	Video client.Video
}

var collectionMetrics = []metric{{"gained", "Gained views", true}, {"views", "Views", false}, {"engagements", "Engagements", false}, {"videos", "Videos", false}}

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
	content := collectionPage{Subtree: v.r.URL.Query().Get("subtree") == "true", EditForm: refused.edit, sharePanel: sharePanel{ShareForm: refused.share}}
	if content.View, err = v.tableView("latest_views"); err != nil {
		return err
	}
	path := "/collections/" + id
	if content.Collection, content.ETag, err = v.getCollection(path); err != nil {
		return err
	}
	if err := content.fillShareForm(v); err != nil {
		return err
	}
	other := "true"
	if content.Subtree {
		other = ""
	}
	content.Link = "?" + withParameters(v.r.URL.Query(), "subtree", other).Encode()
	switch v.csvPart() {
	case "history", "accounts":
		if err := v.loadGains(path, p, &content); err != nil {
			return err
		}
		if content.Refused != nil {
			return content.Refused
		}
		if v.csvPart() == "accounts" {
			return v.sendAccountSums(fmt.Sprintf("collection-accounts-%s-to-%s", p.Start, p.End), content.AccountSums, nil, true)
		}
		return v.sendHistory("collection-history", content.Chart)
	case "videos":
		list, query, err := v.videoList(path, &content)
		if err != nil {
			return err
		}
		name := "collection-videos"
		if !p.EndsToday() {
			name += "-now"
		}
		return v.sendVideos(name, content.View, list, query)
	case "":
	default:
		return v.refuseCSV()
	}
	var calls errgroup.Group // these calls run at the same time, because each takes long for a large collection; they fill different fields of content
	calls.Go(func() error { return v.loadMembers(path, &content) })
	calls.Go(func() error { return v.loadGains(path, p, &content) })
	if err := calls.Wait(); err != nil {
		return err
	}
	if v.redirectToLastPage(content.View) {
		return nil
	}
	content.fillEditForm()
	if content.Best, err = v.rowsForGains(content.Statistics.Best, content.Videos); err != nil {
		return err
	}
	if content.Worst, err = v.rowsForGains(content.Statistics.Worst, content.Videos); err != nil {
		return err
	}
	content.SameGains = haveSameVideos(content.Statistics.Best, content.Statistics.Worst)
	var reports client.ReportPage
	if err := v.getFromAPI(path+"/reports", url.Values{"limit": {strconv.Itoa(maxReports)}}, &reports); err != nil {
		return err
	}
	content.Reports, content.ReportCount = reports.Data, reports.Pagination.Total
	for _, report := range reports.Data {
		if v.r.URL.Query().Get("notice") == savedReport+report.ID.String() {
			v.notice, v.noticeLink = "The report was saved:", noticeLink{fmt.Sprintf("Report %d", report.Number), "/collection/report/" + report.ID.String()}
		}
	}
	return v.renderPage(status, "collection", "collections", content.Collection.Name, content)
}

// videoList returns the API path and query that list the videos of a collection. The argument path is the API path of the collection. If
// content.Subtree is true, the list also has the videos of up to maxCollectionFilters-1 subcollections. videoList then sets
// content.UnlistedSubcollections to the number of the other subcollections.
func (v *visit) videoList(path string, content *collectionPage) (string, url.Values, error) {
	query := content.View.Query()
	if !content.Subtree {
		return path + "/videos", query, nil
	}
	var below client.CollectionList
	err := v.getFromAPI("/collections", url.Values{"parent_id": {content.Collection.ID.String()}, "include_children": {"true"}, "order_by": {"name"},
		"order_direction": {"asc"}, "paginated": {"true"}, "limit": {strconv.Itoa(maxCollectionFilters - 1)}}, &below)
	ids := []string{content.Collection.ID.String()}
	for _, c := range below.Data {
		ids = append(ids, c.ID.String())
	}
	query.Set("collections", strings.Join(ids, ","))
	content.UnlistedSubcollections = max(0, below.Pagination.Total-int64(len(below.Data)))
	return "/videos", query, err
}

// loadMembers reads the videos, the accounts, the parent and the direct children of a collection, and all collections.
func (v *visit) loadMembers(path string, content *collectionPage) error {
	list, query, err := v.videoList(path, content)
	if err != nil {
		return err
	}
	var videos client.CollectionVideoPage
	if err := v.getFromAPI(list, query, &videos); err != nil {
		return err
	}
	content.Videos, content.Highest = videos.Data, highestViews(videos.Data)
	content.View.setRowCount(videos.Pagination.Total, videos.Pagination.TotalPages)
	var accounts client.CollectionAccountPage
	if err := v.getFromAPI(path+"/accounts", url.Values{"limit": {strconv.Itoa(maxAccounts)}, "order_by": {"total_views"}}, &accounts); err != nil {
		return err
	}
	content.Accounts, content.AccountCount = accounts.Data, accounts.Pagination.Total
	if content.Collections, err = v.collections(); err != nil {
		return err
	}
	for n, c := range content.Collections {
		switch {
		case content.Collection.ParentID != nil && c.ID == *content.Collection.ParentID:
			content.Parent = &content.Collections[n]
		case c.ParentID != nil && *c.ParentID == content.Collection.ID:
			content.Children = append(content.Children, c)
		}
	}
	if len(content.Children) == 0 || content.View.Masked {
		return nil
	}
	if content.Subtree {
		return v.countSharedVideos(path, content)
	}
	if videos.Pagination.Total > 0 {
		return nil
	}
	if err := v.countVideosBelow(path, content); err != nil {
		return err
	}
	content.ShareOmits = describeOmittedVideos(0, content.VideosBelow)
	return nil
}

// WithoutNumbersPath returns the path and the query of the list of the collection's videos that were never fetched. It returns "" if the views of all
// videos are known, or if a list cannot have the videos of all collections on the page.
func (p collectionPage) WithoutNumbersPath() string {
	if p.Statistics.UnknownViews == nil || *p.Statistics.UnknownViews == 0 {
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

// countSharedVideos sets content.ShareOmits of a page whose list has the videos of all subcollections.
func (v *visit) countSharedVideos(path string, content *collectionPage) error {
	var own client.CollectionVideoPage
	if err := v.getFromAPI(path+"/videos", url.Values{"limit": {"1"}}, &own); err != nil {
		return err
	}
	content.ShareOmits = describeOmittedVideos(own.Pagination.Total, content.View.Total-own.Pagination.Total)
	return nil
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

// countVideosBelow sets content.VideosBelow to the number of videos in the collection and its subcollections. If one request cannot
// list the videos of all subcollections, it leaves content.VideosBelow unchanged.
func (v *visit) countVideosBelow(path string, content *collectionPage) error {
	withBelow := collectionPage{Collection: content.Collection, Subtree: true}
	list, query, err := v.videoList(path, &withBelow)
	if err != nil || withBelow.UnlistedSubcollections > 0 {
		return err
	}
	var videos client.CollectionVideoPage
	if err := v.getFromAPI(list, url.Values{"collections": query["collections"], "limit": {"1"}}, &videos); err != nil {
		return err
	}
	content.VideosBelow = videos.Pagination.Total
	return nil
}

// loadGains reads the history and the gained views of a collection and of its accounts. If the API refuses the period
// because the collection has too many videos, loadGains sets content.Refused.
func (v *visit) loadGains(path string, p period, content *collectionPage) error {
	query := url.Values{"start_date": {p.Start.String()}, "end_date": {p.End.String()}}
	if content.Subtree {
		query.Set("include_children", "true")
	}
	var history client.CollectionHistory
	var previous *store.PreviousPeriod
	var err error
	// The calls run one after the other, so that the store reads the counts for all of them only once: in the first call, with those of the previous period.
	if v.csvPart() != "history" {
		totals := store.CollectionTotalsQuery{Collection: content.Collection.ID, IncludeChildren: content.Subtree, From: p.Start, To: p.End}
		if _, _, shown := p.previous(); shown {
			totals.WithPrevious = v.csvPart() == ""
		}
		content.AccountSums, previous, err = v.Backend.CollectionAccounts(v.r.Context(), v.id, totals)
	}
	if err == nil {
		err = v.getFromAPI(path+"/statistics", query, &content.Statistics)
	}
	if err == nil {
		err = v.getFromAPI(path+"/history", query, &history)
	}
	if problem, ok := err.(*Problem); ok && problem.Status == http.StatusConflict { //nolint:errorlint // getFromAPI returns a *Problem itself
		content.Refused = problem
	} else if err != nil {
		return err
	}
	points := make([]point, len(history))
	for n := range history {
		h := &history[n]
		points[n] = pointOfCollection(h, gainOfDay(h), h.Views, h.Engagements, h.Videos)
	}
	content.Chart = v.newChart(sumCaption+" Gained views do not include the views that a video already had when it was added. Days are UTC.",
		p, collectionMetrics, points)
	content.Chart.setViewsGained(collectionGains(history))
	content.Chart.Joined, content.Chart.Sums = true, true
	content.Tiles = collectionTiles(content.Statistics.ReportStatistics, content.Chart, points, p, previous)
	content.Tiles[0].NotCompared = reasonNotCompared(content.Statistics.ReportStatistics, p, previous)
	return nil
}

// reasonNotCompared says why the gained views of a collection are not compared with those of the previous period. It returns "" if they are compared, or
// if the gain of the period itself is unknown, so that there is nothing to compare.
func reasonNotCompared(s client.ReportStatistics, p period, previous *store.PreviousPeriod) string {
	if s.ViewsGained == nil || previous != nil && previous.Counted > 0 && previous.Gained != nil {
		return ""
	}
	before := fmt.Sprintf("the %d days before", p.Days)
	_, _, shown := p.previous()
	switch {
	case !shown:
		return "not compared: the tier does not show all of " + before
	case *s.Videos*2*int64(p.Days) > store.MaxTotalsVideoDays:
		return fmt.Sprintf("not compared: too many videos for 2 × %d days", p.Days)
	case previous == nil || previous.Counted == 0:
		return "not compared: no video counted yet when " + before + " began"
	}
	return "not compared: the gain of " + before + " is unknown"
}

// ListedAccountSums returns the accounts that the page lists: the first maxAccounts of AccountSums. It returns none if no gain is known, or if
// the collection has a single account, whose sums are those of the collection.
func (p collectionPage) ListedAccountSums() []client.ReportAccount {
	if len(p.AccountSums) < 2 || p.AccountSums[0].ViewsGained == nil { // accounts without a known gain come last
		return nil
	}
	return p.AccountSums[:min(len(p.AccountSums), maxAccounts)]
}

// collectionTiles returns the four tiles at the top of a collection or report: gained views, views at the end, engagements and videos. The tile of the
// gained views compares them with the previous period if `previous` is not nil.
func collectionTiles(s client.ReportStatistics, c chart, points []point, p period, previous *store.PreviousPeriod) []tile {
	tiles := []tile{
		{Label: "Gained views", Value: s.ViewsGained, Percent: s.Increase, Unknown: s.UnknownGains},
		{Label: "Views at the end", Value: s.Views, Unknown: s.UnknownViews, Spark: sparkline(points, 1, p.Start, p.End)},
		{Label: "Engagements", Value: s.Engagements, Unknown: s.UnknownEngagements, Spark: sparkline(points, 2, p.Start, p.End)},
		{Label: "Videos", Value: s.Videos, Stopped: s.VideosRemoved, Spark: sparkline(points, 3, p.Start, p.End)},
	}
	if s.ViewsGained != nil {
		tiles[0].Spark = sparkline(points, 0, p.Start, p.End)
	}
	for m, shown := range c.Metrics { // the tiles and the metrics are in the same order
		tiles[m].Plain, tiles[m].PerDay, tiles[m].Link, tiles[m].Shown = true, shown.PerDay, c.MetricLink(shown.Name), c.Metric == m
	}
	// The previous period is left out if no video counted on all of its days: its gain would only be that of the days since the first video was added.
	if previous != nil && previous.Counted > 0 && s.ViewsGained != nil {
		tiles[0].Before = previous.Gained
		tiles[0].FewerVideos = max(0, *s.Videos-*s.UnknownViews-previous.Counted)
	}
	return tiles
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

// rowsForGains returns one row for each gain. It reads the videos that are not among knownVideos from the API.
func (v *visit) rowsForGains(gains []client.CollectionGain, knownVideos []client.Video) ([]gainRow, error) {
	out := make([]gainRow, len(gains))
	for n, g := range gains {
		out[n].CollectionGain = g
		if at := slices.IndexFunc(knownVideos, func(video client.Video) bool { return video.AdID == g.AdID }); at >= 0 {
			out[n].Video = knownVideos[at]
		} else if err := v.getFromAPI("/videos/"+g.AdID.String(), nil, &out[n].Video); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// haveSameVideos returns true if both lists have the same videos, in any order.
func haveSameVideos(a, b []client.CollectionGain) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x client.CollectionGain) bool {
		return !slices.ContainsFunc(b, func(y client.CollectionGain) bool { return x.AdID == y.AdID })
	})
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
		var report uuid.UUID
		report, err = v.saveReport(path)
		notice = savedReport + report.String()
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
