package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// overviewPage is the data for the template of the overview.
type overviewPage struct {
	Tiles         []tile
	Chart         chart
	Videos        trackedCounts
	StoppedVideos int64 // number of videos whose tracking was stopped
	Accounts      trackedCounts
	overviewLists
}

// overviewLists are the lists of the overview. Each has at most maxListed videos or accounts.
type overviewLists struct {
	FailingVideos   []client.Video   // videos whose fetches fail; the first one has the newest numbers
	FailingAccounts []client.Account // accounts whose fetches fail
	Latest          []client.Video
	Top             []client.Video   // the videos that gained the most views in 7 days, without those that can no longer be fetched
	TopAccounts     []client.Account // the tracked accounts that gained the most views in 7 days, without those that can no longer be fetched
}

// trackedCounts says how many videos or accounts are tracked, and how many of them get no new numbers.
type trackedCounts struct {
	Path     string // path of the list of the videos or accounts
	One      string // "video" or "account"
	Total    int64  // number of tracked videos or accounts
	Statuses []statusCount
}

// statusCount is the number of videos or accounts with a fetch status.
type statusCount struct {
	Status string
	Count  int64
}

// The metrics of the overview, as indexes of overviewMetrics.
const (
	overviewViews = iota
	overviewEngagements
	overviewFollowers
	overviewVideos
	overviewAccounts
	overviewUploads
)

var overviewMetrics = []metric{{"views", "Views", false}, {"engagements", "Engagements", false}, {"followers", "Followers", false},
	{"videos", "Videos tracked", false}, {"accounts", "Accounts tracked", false}, {"uploads", "Uploads", true}}

// CoversSevenDays returns true if the period of the page is that of the list of videos that gained most: the 7 days until today.
func (p overviewPage) CoversSevenDays() bool {
	return p.Chart.Period.Days == 7 && p.Chart.Period.EndsToday()
}

// WeekAgo returns the first of the 7 days that end today.
func (p overviewPage) WeekAgo() store.Date { return p.Chart.Period.Today() - 6 }

// showOverview shows the totals of the organisation, the videos whose fetches fail, the latest videos, and the videos that gained the most
// views.
func showOverview(v *visit) error {
	p, err := v.period()
	if err != nil {
		return err
	}
	points, gains, err := v.organisationPoints(p)
	if err != nil {
		return err
	}
	var videos, accounts client.Statistics
	if err := v.getFromAPI("/statistics/videos", nil, &videos); err != nil {
		return err
	}
	if err := v.getFromAPI("/statistics/accounts", nil, &accounts); err != nil {
		return err
	}
	updateCountsOfToday(points, p, videos.Total, accounts.Total)
	var content overviewPage
	content.Chart = v.newChart("Totals of all videos and accounts. Views, engagements and followers also count videos and accounts that are no longer tracked. When tracking of a video starts, all its views are added to the total of views, but not to the gain of views. A day without changes has the totals of the day before. The totals leave out unknown counts. So \"Engagements ÷ views\" is too high if the views of some videos are unknown, and too low if their engagements are unknown.",
		p, overviewMetrics, pointsForPeriod(points, p))
	content.Chart.setViewsGained(gains.byDay)
	// The total of views also rises by the views that newly tracked videos already have. So the chart shows the gains until the visitor chooses the total.
	if content.Chart.Metric == overviewViews && content.Chart.query.Get("view") == "" {
		content.Chart.Gain = slices.ContainsFunc(content.Chart.Points, func(at point) bool { return at.Gains[overviewViews] != nil })
	}
	if v.csvPart() != "" {
		return v.sendHistory("overview", content.Chart)
	}
	content.Tiles = overviewTiles(content.Chart, points, gains, p)

	content.Videos = trackedCounts{"/video", "video", videos.Total, statusesWithoutNewNumbers(videos.ByStatus)}
	content.StoppedVideos = videos.Removed
	if content.StoppedVideos > 0 {
		for _, n := range []int{overviewViews, overviewEngagements} { // the first tiles have the order of the metrics
			content.Tiles[n].Also = "also counts videos no longer tracked"
		}
	}
	content.Accounts = trackedCounts{"/account", "account", accounts.Total, statusesWithoutNewNumbers(accounts.ByStatus)}
	if content.overviewLists, err = v.loadOverviewLists(videos, accounts); err != nil {
		return err
	}
	return v.renderPage(http.StatusOK, "overview", "overview", "Overview", content)
}

// loadOverviewLists reads the lists of the overview. The arguments are the statistics of all videos and of all accounts.
func (v *visit) loadOverviewLists(videos, accounts client.Statistics) (overviewLists, error) {
	var failingVideos, latest, topVideos client.VideoPage
	var failingAccounts, topAccounts client.AccountPage
	for _, list := range []struct {
		wanted bool
		path   string
		query  url.Values
		limit  int
		found  any
	}{
		{videos.ByStatus.Failing > 0, "/videos", url.Values{"fetch_status": {"failing"}, "order_by": {"latest_updated_at"}}, maxListed, &failingVideos},
		{accounts.ByStatus.Failing > 0, "/accounts", url.Values{"fetch_status": {"failing"}, "paginated": {"true"}}, maxListed, &failingAccounts},
		{true, "/videos", url.Values{"order_by": {"uploaded_at"}}, maxListed, &latest},
		{true, "/videos", url.Values{"order_by": {"views_gained_7d"}}, topCandidates, &topVideos},
		{accounts.Total > 0, "/accounts", url.Values{"order_by": {"views_gained_7d"}, "paginated": {"true"}}, topCandidates, &topAccounts},
	} {
		if !list.wanted {
			continue
		}
		list.query.Set("limit", strconv.Itoa(list.limit))
		if err := v.getFromAPI(list.path, list.query, list.found); err != nil {
			return overviewLists{}, err
		}
	}
	shownVideos := slices.DeleteFunc(topVideos.Data, func(video client.Video) bool { return !hasPresentGain(video.ViewsGained7D, video.FetchStatus) })
	shownAccounts := slices.DeleteFunc(topAccounts.Data, func(account client.Account) bool {
		return !hasPresentGain(account.ViewsGained7D, client.FetchStatus(textOf(account.FetchStatus)))
	})
	return overviewLists{FailingVideos: failingVideos.Data, FailingAccounts: failingAccounts.Data, Latest: latest.Data,
		Top: shownVideos[:min(len(shownVideos), maxListed)], TopAccounts: shownAccounts[:min(len(shownAccounts), maxListed)]}, nil
}

const (
	maxListed = 8 // maximum number of videos or accounts in each list of the overview
	// topCandidates is the number of videos and of accounts with the highest gains that the overview reads, to list maxListed of those that can still
	// be fetched.
	topCandidates = 100
)

// hasPresentGain returns true if the gain of a video or account in 7 days is known, and the video or account can still be fetched. If it cannot be
// fetched any more, its gain is that of its last seven days with numbers, which can be long ago.
func hasPresentGain(gain *int64, status client.FetchStatus) bool {
	switch status {
	case client.FetchStatusGone, client.FetchStatusPrivate, client.FetchStatusRestricted, client.FetchStatusStopped, client.FetchStatusUnsupported:
		return false
	}
	return gain != nil
}

// organisationPoints returns the points of the organisation in the period and in the previous period, the newest first, and older points. A
// day without totals has the totals of the last earlier day with totals.
func (v *visit) organisationPoints(p period) ([]point, viewGains, error) {
	gains := viewGains{byDay: map[store.Date]*int64{}}
	read := func(first, last store.Date) ([]point, error) {
		var history client.OrganisationHistory
		err := v.getFromAPI("/organisation/history", url.Values{"start_date": {first.String()}, "end_date": {last.String()}}, &history)
		points := make([]point, len(history))
		for n, h := range history {
			points[n] = point{Day: store.DateOf(h.Date.Time), Values: []*int64{h.Views, h.Engagements, h.Followers, h.Videos, h.Accounts, h.Uploads}}
			if h.Videos != nil {
				gains.byDay[points[n].Day] = h.ViewsGained
			}
		}
		return points, err
	}
	first, _, _ := p.previous()
	before := first - 1 // the last day before the previous period
	from := max(p.Oldest, before-6)
	points, err := read(from, p.End)
	if err != nil {
		return nil, gains, err
	}
	// Usually, one of the seven days up to `before` has totals. If not, the last day with totals can be much older.
	hasTotals := slices.ContainsFunc(points, func(at point) bool { return at.Day <= before && at.Values[overviewVideos] != nil })
	if from > p.Oldest && !hasTotals {
		older, err := read(p.Oldest, from-1)
		if err != nil {
			return nil, gains, err
		}
		points = append(points, older...)
	}
	return fillMissingDays(points, p.End), gains, nil
}

// viewGains are the views that the videos of the organisation gained. The value of a day with totals is the gain since the previous day with totals; it
// is nil if the gain is unknown. A day without totals is not in the map.
type viewGains struct{ byDay map[store.Date]*int64 }

// between returns the gain from firstDay to lastDay, or nil if the gain of no day is known. If the gains of the first days are unknown, `since` is the
// last of these days; otherwise it is 0.
func (g viewGains) between(firstDay, lastDay store.Date) (gained *int64, since store.Date) {
	var sum int64
	known := false
	for _, day := range slices.Sorted(maps.Keys(g.byDay)) {
		gain := g.byDay[day]
		switch {
		case day > lastDay:
		case gain == nil:
			sum, known, since = 0, day < lastDay, day
		case day < firstDay:
			known = true
		default:
			sum, known = sum+*gain, true
		}
	}
	if since < firstDay {
		since = 0
	}
	if !known {
		return nil, since
	}
	return &sum, since
}

// updateCountsOfToday replaces the numbers of tracked videos and accounts in today's point, which can be out of
// date. points[0] must be the newest point.
func updateCountsOfToday(points []point, p period, videos, accounts int64) {
	if len(points) == 0 || points[0].Day != p.today {
		return
	}
	for m, n := range map[int]int64{overviewVideos: videos, overviewAccounts: accounts} {
		// A count that the tier hides stays unknown.
		if points[0].Values[m] != nil {
			points[0].Values[m] = &n
		}
	}
}

// fillMissingDays gives each day up to lastDay the totals of the last earlier day with totals. It adds a
// point for a day that has none. The points and the result have the newest day first.
func fillMissingDays(points []point, lastDay store.Date) []point {
	var out []point
	var totals []*int64 // the values of the last day with totals
	for n, at := range slices.Backward(points) {
		end := lastDay
		if n > 0 {
			end = points[n-1].Day - 1
		}
		// A point of a day on which only uploads are known has no totals.
		at.Values = withTotals(at.Values, totals)
		out = append(out, at)
		if totals = at.Values; totals[overviewVideos] == nil {
			continue
		}
		for day := at.Day + 1; day <= end; day++ {
			out = append(out, point{Day: day, Values: withTotals(make([]*int64, len(overviewMetrics)), totals)})
		}
	}
	slices.Reverse(out)
	return out
}

// withTotals returns a copy of `values`. If `values` has no totals, the copy has those of `earlier`. The metrics that count only one day stay the same.
func withTotals(values, earlier []*int64) []*int64 {
	out := slices.Clone(values)
	if out[overviewVideos] != nil { // the day has totals; a total that is nil is unknown
		return out
	}
	for m := range earlier {
		if !overviewMetrics[m].PerDay {
			out[m] = earlier[m]
		}
	}
	return out
}

// pointsForPeriod returns the points in the period and the last point before the period. This last point is necessary to compute the gain
// of the first day.
func pointsForPeriod(points []point, p period) []point {
	var out []point
	for _, at := range points {
		if at.Day <= p.End {
			out = append(out, at)
		}
		if at.Day < p.Start {
			break
		}
	}
	return out
}

// overviewTiles returns the tiles of the overview page for the period p. The points and gains must also cover the time
// before p, because the tiles show changes.
func overviewTiles(c chart, points []point, gains viewGains, p period) []tile {
	first, last, shown := p.previous()
	var tiles []tile
	for _, m := range []int{overviewViews, overviewEngagements, overviewVideos, overviewAccounts, overviewUploads} {
		t := tile{Label: overviewMetrics[m].Label, PerDay: overviewMetrics[m].PerDay, Link: c.MetricLink(overviewMetrics[m].Name), Shown: c.Metric == m,
			Spark: sparkline(points, m, p.Start, p.End)}
		if t.PerDay {
			t.Value = sumOf(points, m, p.Start, p.End)
			if shown {
				t.Before = sumOf(points, m, first, last)
			}
			t.Change = difference(t.Value, t.Before)
		} else {
			t.Value = valueAt(points, m, p.End)
			t.Change = difference(t.Value, valueAt(points, m, last))
			t.Before = difference(valueAt(points, m, last), valueAt(points, m, first-1))
		}
		switch m {
		case overviewViews:
			var since store.Date
			if t.Change, since = gains.between(p.Start, p.End); since > 0 {
				t.Span = "since " + (since + 1).String() // the first day with a known gain
			}
			if t.Before, since = gains.between(first, last); since > 0 || !shown {
				t.Before = nil // the gain of the whole previous period is not known
			}
			// Without known views at its end, no gain of a period is known.
			if t.Value == nil {
				t.Change, t.Span = nil, ""
			}
			if valueAt(points, m, last) == nil {
				t.Before = nil
			}
		case overviewEngagements:
			t.NewCounts = overviewMetrics[m].Name
		}
		tiles = append(tiles, t)
		if m == overviewEngagements {
			rate := tile{Label: "Engagements ÷ views", IsRate: true}
			views := valueAt(points, overviewViews, p.End)
			if engagements := valueAt(points, overviewEngagements, p.End); views != nil && *views > 0 && engagements != nil {
				share := 100 * float64(*engagements) / float64(*views)
				rate.Ratio = &share
			}
			tiles = append(tiles, rate)
		}
	}
	return tiles
}

// sumOf adds up the values of the metric with index m on the days from firstDay to lastDay. It returns nil if no value is known.
func sumOf(points []point, m int, firstDay, lastDay store.Date) *int64 {
	var sum *int64
	for _, p := range points {
		if p.Day < firstDay || p.Day > lastDay || p.Values[m] == nil {
			continue
		}
		if sum == nil {
			sum = new(int64)
		}
		*sum += *p.Values[m]
	}
	return sum
}

// statusesWithoutNewNumbers returns the fetch statuses, except "stopped", that mean no new numbers, and how many videos or accounts have
// each of them. It leaves out statuses with the count 0.
func statusesWithoutNewNumbers(s client.StatusCounts) []statusCount {
	var out []statusCount
	for _, c := range []statusCount{{"failing", s.Failing}, {"delayed", s.Delayed}, {"unsupported", s.Unsupported}, {"private", s.Private},
		{"restricted", s.Restricted}, {"gone", s.Gone}, {"pending", s.Pending}} {
		if c.Count > 0 {
			out = append(out, c)
		}
	}
	return out
}
