package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// accountsPage is the data for the template of the list of accounts.
type accountsPage struct {
	View        tableView
	Filter      url.Values
	Accounts    []client.Account
	Platforms   []string
	Statuses    []string
	Collections []client.Collection // collections to which the chosen accounts can be added
}

// accountFilters are the names of the filters for the list of accounts. The page takes them from its own query and sends them to the API.
var accountFilters = []string{"platform", "username", "fetch_status", "include_removed", "include_linked"}

func showAccounts(v *visit) error {
	content := accountsPage{Platforms: platformNames, Statuses: statusNames, Filter: url.Values{}}
	var err error
	if content.View, err = v.tableView("total_views"); err != nil {
		return err
	}
	for _, name := range accountFilters {
		if text := strings.TrimSpace(v.r.URL.Query().Get(name)); text != "" {
			content.Filter.Set(name, text)
		}
	}
	query := content.View.Query()
	maps.Copy(query, content.Filter)
	query.Set("paginated", "true")
	if text := content.Filter.Get("username"); text != "" {
		query.Set("username", usernamesWithBeginning(text))
	}
	if content.Filter.Get("fetch_status") == "stopped" {
		query.Set("include_removed", "true")
	}
	if part := v.csvPart(); part != "" {
		if part != "accounts" {
			return v.refuseCSV()
		}
		return v.sendAccounts(query)
	}
	var found client.AccountPage
	if err := v.refuseFilter(v.getFromAPI("/accounts", query, &found)); err != nil {
		return err
	}
	content.Accounts = found.Data
	content.View.setRowCount(found.Pagination.Total, found.Pagination.TotalPages)
	if v.redirectToLastPage(content.View) {
		return nil
	}
	if content.Collections, err = v.collections(); err != nil {
		return err
	}
	return v.renderPage(http.StatusOK, "accounts", "accounts", "Accounts", content)
}

// collectChosenAccounts adds the accounts that the visitor has chosen in the list to a collection, and shows the collection.
func collectChosenAccounts(v *visit) error {
	if err := v.r.ParseForm(); err != nil {
		return &Problem{Status: http.StatusBadRequest, Title: "Invalid form", Detail: "The form cannot be read."}
	}
	v.back = "/account"
	ids, err := idsToChange(v.r.PostForm, "account")
	if err != nil {
		return err
	}
	added, err := v.addToCollection("account", ids)
	if err != nil {
		return err
	}
	v.redirectTo("/collection/" + added.Collection + "?notice=" + added.notice("accounts-added"))
	return nil
}

// accountPage is the data for the template of an account's page.
type accountPage struct {
	Account     client.Account
	Tiles       []tile
	Chart       chart
	View        tableView
	Videos      []client.Video
	Highest     int64
	Uploads     *uploads // diagram of the latest uploads; nil if too few videos have a known upload day and known views
	Collections []client.Collection
	Best        []gainRow // videos that gained the most views in the period
	TooMany     bool      // true if the account has too many videos to compute their gains in the period
	Wait        int       // number of seconds after which the page reloads itself; 0 if the page does not wait for new numbers
}

var accountMetrics = []metric{{"followers", "Followers", false}, {"views", "Views", false}, {"likes", "Likes", false}, {"comments", "Comments", false}, {"videos", "Videos", false}}

// showAccount shows an account with its history and its videos.
func showAccount(v *visit) error {
	id, err := v.itemID()
	if err != nil {
		return err
	}
	p, err := v.period()
	if err != nil {
		return err
	}
	var content accountPage
	if content.View, err = v.tableView("uploaded_at"); err != nil {
		return err
	}
	if err := v.getFromAPI("/accounts/"+id, nil, &content.Account); err != nil {
		return err
	}
	account := &content.Account
	if string(account.Platform) != v.r.PathValue("platform") {
		return errNotFound
	}
	var history client.AccountHistory
	if err := v.getFromAPI("/accounts/"+id+"/history", v.historyQuery(p), &history); err != nil {
		return err
	}
	content.Chart = v.accountChart(account, history, p)
	query := content.View.Query()
	query.Set("paginated", "true")
	switch v.csvPart() {
	case "history":
		return v.sendHistory("account-history", content.Chart)
	case "videos":
		return v.sendVideos("account-videos", content.View, "/accounts/"+id+"/videos", query)
	case "":
	default:
		return v.refuseCSV()
	}
	var found client.AccountVideoPage
	if err := v.getFromAPI("/accounts/"+id+"/videos", query, &found); err != nil {
		return err
	}
	content.Videos, content.Highest = found.Data, highestViews(found.Data)
	content.View.setRowCount(found.Pagination.Total, found.Pagination.TotalPages)
	if v.redirectToLastPage(content.View) {
		return nil
	}
	latest, err := v.latestUploads(id)
	if err != nil {
		return err
	}
	content.Uploads = diagramOfUploads(latest.Data)
	if err := v.loadAccountGains(&content, p, slices.Concat(content.Videos, latest.Data)); err != nil {
		return err
	}
	content.setTiles(accountPoints(history), p, latest)
	if content.Collections, err = v.collections(); err != nil {
		return err
	}
	if textOrEmpty(account.FetchStatus) == string(client.FetchStatusPending) || v.awaitsNumbers(account.CheckedAt) {
		content.Wait = v.secondsToWait(account.NextFetchAt)
	}
	return v.renderPage(http.StatusOK, "account", "accounts", "@"+account.DisplayUsername, content)
}

// accountChart returns the chart of an account's history in the period p.
func (v *visit) accountChart(account *client.Account, history client.AccountHistory, p period) chart {
	c := v.newChart("Followers are counted for the account. The other numbers are sums over its tracked videos. When a video is tracked, the sums rise by the counts that it already has. When its tracking is stopped, the sums fall by its counts.", p, accountMetrics, pointsForPeriod(accountPoints(history), p))
	c.Quality = true
	c.Missing = missingNumbers{AddedAt: account.CreatedAt, Unfetched: account.CheckedAt == nil && account.TotalViews == nil, FetchedAt: account.CheckedAt,
		Unknown: notGiven, Videos: len(accountMetrics) - 1}
	if len(history) > 0 && account.CheckedAt != nil && history[0].Date.After(*account.CheckedAt) {
		// The newest point has a later day than the last fetch of the account. So its numbers come from fetches of the account's videos, and the history
		// does not say when these were.
		c.Missing.FetchedAt = nil
	}
	if c.Metric == 0 {
		c.Missing.Unknown, c.Missing.Videos = "the profile of the account was not fetched on these days, or the source did not give them", 0
	}
	return c
}

// setTiles sets the tiles of the page. latest is the first page of the account's videos, the latest upload first.
func (p *accountPage) setTiles(points []point, shown period, latest client.AccountVideoPage) {
	a := &p.Account
	p.Tiles = metricTiles(p.Chart, points, shown, []*int64{a.LatestFollowersCount, a.TotalViews, a.TotalLikes, a.TotalComments, a.TotalVideosTracked})
	for m := range p.Tiles {
		if name := accountMetrics[m].Name; name != "followers" && name != "videos" {
			p.Tiles[m].OfTotal, p.Tiles[m].Members = true, describeMembers(points, shown, latest.Data, latest.Pagination.Total)
		}
	}
	if shown.End == shown.today {
		p.explainUnknownCounts()
	}
}

// explainUnknownCounts sets the reason of each tile whose number is unknown today. It sets none if the tier hides the numbers, or if nothing was
// fetched yet: other parts of the page then say why.
func (p *accountPage) explainUnknownCounts() {
	videos := p.Account.TotalVideosTracked
	if videos == nil {
		return
	}
	hasSums := slices.ContainsFunc([]*int64{p.Account.TotalViews, p.Account.TotalLikes, p.Account.TotalComments}, func(n *int64) bool { return n != nil })
	for m := range p.Tiles {
		t := &p.Tiles[m]
		switch {
		case t.Value != nil:
		case accountMetrics[m].Name == "followers":
			if p.Account.TrackingType == nil {
				t.Reason = "the account is not tracked"
			} else if p.Account.CheckedAt != nil {
				t.Reason = "not given by the source of the profile"
			}
		case *videos == 0:
			t.Reason = "no video is tracked"
		case hasSums:
			t.Reason = "not known of any of its videos"
		}
	}
}

// loadAccountGains sets the fields Best and TooMany of the page.
func (v *visit) loadAccountGains(content *accountPage, p period, knownVideos []client.Video) error {
	gains, tooMany, err := v.Backend.AccountGains(v.r.Context(), v.id, content.Account.AccountID, p.Start, p.End)
	if err != nil {
		return err
	}
	content.TooMany = tooMany
	best := make([]client.CollectionGain, len(gains))
	for n, g := range gains {
		best[n] = client.CollectionGain{AdID: g.ID, StartDay: dateOrNil(g.StartDay), EndDay: dateOrNil(g.EndDay), ViewsAtEnd: g.EndViews, ViewsGained: g.Gained}
	}
	content.Best, err = v.rowsForGains(best, knownVideos)
	return err
}

// dateOrNil converts a day to the type of the API's client.
func dateOrNil(day *store.Date) *openapi_types.Date {
	if day == nil {
		return nil
	}
	return &openapi_types.Date{Time: day.Time()}
}

// describeMembers says how many videos joined or left the sums of an account in the period. It returns "" if none did. The points must be sorted
// by day, the newest first. `listed` are tracked videos of the account, and `total` is the number of all its tracked videos.
func describeMembers(points []point, p period, listed []client.Video, total int64) string {
	m := len(accountMetrics) - 1 // the metric "videos" is the last one
	first, last := endsOfChange(points, m, p)
	if first == nil {
		return ""
	}
	change := *last.Values[m] - *first.Values[m]
	if p.End < p.today || int64(len(listed)) < total { // the list lacks videos of the period, so only the difference is known
		switch {
		case change > 0:
			return "with " + plural(change, "more video", "more videos")
		case change < 0:
			return "with " + plural(-change, "video fewer", "videos fewer")
		}
		return "with the same number of videos"
	}
	var created int64
	for _, video := range listed {
		if day := store.DateOf(video.CreatedAt); day > first.Day && day <= last.Day {
			created++
		}
	}
	// A video that was tracked again has an old creation time. So the number of joined videos comes from the difference, and can be higher than created.
	left := max(0, created-change)
	joined := change + left
	switch {
	case joined > 0 && left > 0:
		return plural(joined, "video", "videos") + " newly tracked, " + formatCount(left) + " no longer tracked"
	case joined > 0:
		return plural(joined, "video", "videos") + " newly tracked"
	case left > 0:
		return plural(left, "video", "videos") + " no longer tracked"
	}
	return ""
}

// StillTracked returns the number of videos that stay tracked although the tracking of the account was stopped. It returns 0 if the account is tracked,
// was never tracked, or if the tier hides the number.
func (p accountPage) StillTracked() int64 {
	if !p.Account.Removed || p.View.Masked {
		return 0
	}
	return p.View.Total
}

// IsTracked returns true if the organisation tracks the account itself. It returns false if the organisation tracks only some of the
// account's videos.
func (p accountPage) IsTracked() bool { return p.Account.TrackingType != nil && !p.Account.Removed }
