package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server/formula"
	"github.com/reeltally/reeltally/store"
)

// comparedAccount is an account in a comparison, with its changes in the period.
type comparedAccount struct {
	client.Account
	Followers metricChange
	Views     metricChange
	Members   string // how many videos joined or left the sum of views in the period; "" if none did
	Remove    string // query of a link that removes this account from the comparison
}

// metricChoice is a link that makes the page show another metric.
type metricChoice struct {
	Label, Link string
	Shown       bool
}

// comparedMetrics are the metrics by which accounts can be compared, with the index of the metric in accountMetrics.
var comparedMetrics = []struct {
	index int
	noun  string
}{{0, "followers"}, {1, "views"}}

// showAccountComparison shows the followers or the views of up to five accounts in one chart, and the changes of both in the period.
func showAccountComparison(v *visit) error {
	p, err := v.period()
	if err != nil {
		return err
	}
	query := v.r.URL.Query()
	content := comparePage{Max: maxCompared, ForAccounts: true}
	chosen, err := v.readCompared("account")
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(query.Get("link")); text != "" {
		var found client.AccountPage
		err := v.getFromAPI("/accounts", url.Values{"link": {text}, "limit": {"1"}, "include_linked": {"true"}, "include_removed": {"true"}, "paginated": {"true"}}, &found)
		added := ""
		if err == nil && len(found.Data) > 0 {
			added = found.Data[0].AccountID.String()
		}
		if done, err := v.addCompared("account", added, text, err); done || err != nil {
			return err
		}
		content.Link = text
	}
	histories := make([][]point, len(chosen))
	for n, id := range chosen {
		compared, points, err := v.readComparedAccount(id, p)
		if err != nil {
			return err
		}
		compared.Remove = linkWithout(query, "account", chosen, n)
		content.Accounts, histories[n] = append(content.Accounts, compared), points
	}
	shown := comparedMetrics[metricToCompare(query.Get("metric"), histories, p)]
	lines := newComparedLines(len(chosen))
	for n, compared := range content.Accounts {
		lines.metrics = append(lines.metrics, metric{Name: fmt.Sprintf("account-%d", n+1), Label: accountName(compared.Account)})
		lines.csvNames = append(lines.csvNames, formula.Escape(compared.AccountLink)+" "+shown.noun)
		for _, at := range histories[n] {
			lines.setValue(at.Day, n, at.Values[shown.index], at.Quality == "interpolated")
		}
	}
	if len(chosen) > 0 {
		content.Chart = v.newComparedChart(lines, p, accountMetrics[shown.index].Label+" of each account",
			"Each line is scaled: 100 is the highest value of the account in the period. The table has the "+shown.noun+" themselves.")
		for _, m := range comparedMetrics {
			content.Chart.Choices = append(content.Chart.Choices, metricChoice{accountMetrics[m.index].Label, content.Chart.MetricLink(m.noun), m == shown})
		}
		if v.csvPart() != "" {
			return v.sendHistory("comparison", content.Chart)
		}
	}
	content.HiddenFields = hiddenFields(withParameters(query, "link", ""))
	return v.renderPage(http.StatusOK, "compare", "accounts", "Compare accounts", content)
}

// metricToCompare returns an index in comparedMetrics: that of the metric with the given name or, if there is no such metric, that of the first metric
// of which an account has a number in the period.
func metricToCompare(name string, histories [][]point, p period) int {
	for n, m := range comparedMetrics {
		if m.noun == name {
			return n
		}
	}
	for n, m := range comparedMetrics {
		for _, at := range slices.Concat(histories...) {
			if at.Day >= p.Start && at.Day <= p.End && at.Values[m.index] != nil {
				return n
			}
		}
	}
	return 0
}

// readComparedAccount reads an account and its history. The points have the values of accountMetrics, the newest first.
func (v *visit) readComparedAccount(id string, p period) (compared comparedAccount, points []point, err error) {
	if err := v.getFromAPI("/accounts/"+id, nil, &compared.Account); err != nil {
		return compared, nil, err
	}
	var history client.AccountHistory
	if err := v.getFromAPI("/accounts/"+id+"/history", v.historyQuery(p), &history); err != nil {
		return compared, nil, err
	}
	points = accountPoints(history)
	compared.Followers = changeInPeriod(points, 0, p, compared.LatestFollowersCount)
	compared.Views = changeInPeriod(points, 1, p, compared.TotalViews)
	latest, err := v.latestUploads(id)
	compared.Members = describeMembers(points, p, latest.Data, latest.Pagination.Total)
	return compared, points, err
}

// accountPoints returns the points of an account's history, with the values of accountMetrics.
func accountPoints(history client.AccountHistory) []point {
	points := make([]point, len(history))
	for n, h := range history {
		points[n] = point{Day: store.DateOf(h.Date.Time), Values: []*int64{h.Followers, h.Views, h.Likes, h.Comments, h.Videos}, Quality: textOrEmpty(h.Quality), Source: textOrEmpty(h.Source), Fetched: h.FetchedAt}
	}
	return points
}

// HasMembers returns true if the change of the views of an account contains the counts of videos that joined or left its sum.
func (p comparePage) HasMembers() bool {
	return slices.ContainsFunc(p.Accounts, func(a comparedAccount) bool { return a.Members != "" })
}

// accountName returns the username of an account with "@", or its link if the username is unknown.
func accountName(account client.Account) string {
	if account.DisplayUsername == "" {
		return account.AccountLink
	}
	return "@" + account.DisplayUsername
}
