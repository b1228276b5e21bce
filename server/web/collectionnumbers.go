package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store"
)

// sumCaption is the text below the chart of a collection. It says which videos the sums of a day include.
const sumCaption = "The value of a day is the sum over the videos that are in the collection now, each from the day on which it was last added, or from the day that was chosen for it."

// describeJoined says which of the columns "per day" leave out the counts that a video already had when it was added to the collection, and which
// include them. metrics are the metrics of the chart. The result begins with a space if it is not empty.
func describeJoined(metrics []metric) string {
	var including []string
	subject := ""
	for _, m := range metrics {
		switch m.Name {
		case "gained":
			subject = "Gained views and views"
		case "views":
			subject = cmp.Or(subject, "Views")
		case "videos":
		default:
			including = append(including, strings.ToLower(m.Label))
		}
	}
	text := ""
	if subject != "" {
		text = " " + subject + " per day leave out the views that a video already had when it was added."
	}
	if len(including) == 0 {
		return text
	}
	names := words.JoinWithAnd(including)
	return text + " " + strings.ToUpper(names[:1]) + names[1:] + " per day include those that a video already had when it was added."
}

// collectionStatistics is the response of GET /collections/{collection_id}/statistics. It has the statistics that a report also has, and the videos that
// gained most and least.
type collectionStatistics struct {
	client.ReportStatistics
	Best  []client.CollectionGain `json:"best"`
	Worst []client.CollectionGain `json:"worst"`
}

// collectionNumbers are the numbers of a collection in a period.
type collectionNumbers struct {
	Statistics  collectionStatistics
	Refused     *Problem // error of the API if the collection is too large for its numbers to be computed; nil otherwise
	Tiles       []tile
	Chart       chart
	AccountSums []client.ReportAccount // sums over the videos of each account in the period, the account with the highest gain first
}

// shownGain is the gain of a video as a page shows it.
type shownGain struct {
	Views *int64
	Since string // first day that the gain counts; "" if this is the first day of the period
	Until string // last day that the gain counts; "" if this is the last day of the period
}

// gainWithDays returns the gain that the page shows for a video in the period p. `gained` is the gain from the API, which covers the days from
// startDay to endDay.
func gainWithDays(startDay, endDay *openapi_types.Date, gained *int64, p period) shownGain {
	if endDay == nil && startDay != nil && store.DateOf(startDay.Time) >= p.End {
		return shownGain{Since: (store.DateOf(startDay.Time) + 1).String()} // a report from before end_day existed has a gain of 0 here
	}
	if startDay == nil {
		return shownGain{Views: gained}
	}
	last := p.End // an unknown gain, and an older report, have no last day
	if endDay != nil && gained != nil {
		last = store.DateOf(endDay.Time)
	}
	out := shownGain{Views: gained}
	out.Since, out.Until = p.limits(store.DateOf(startDay.Time), last)
	return out
}

// gainRow is a video with the views that it gained in the period.
type gainRow struct {
	client.CollectionGain
	Video client.Video
}

var collectionMetrics = []metric{{"gained", "Gained views", true}, {"views", "Views", false}, {"engagements", "Engagements", false}, {"videos", "Videos", false}}

// loadNumbers reads the history and the gained views of a collection, and the sums over the videos of each account in it. If the collection has too many
// videos for the period, a call fails with status 409. loadNumbers then stores this error in Refused and returns no error.
func (v *visit) loadNumbers(c shownCollection, p period) (n collectionNumbers, err error) {
	query := url.Values{"start_date": {p.Start.String()}, "end_date": {p.End.String()}}
	if c.Subtree {
		query.Set("include_children", "true")
	}
	var history client.CollectionHistory
	var previous *store.PreviousPeriod
	// The calls run one after the other, so that the store reads the counts only once: the first call reads them, also for the previous period, and the next
	// calls use them from memory.
	if v.csvPart() != "history" {
		totals := store.CollectionTotalsQuery{Collection: c.Collection.ID, IncludeChildren: c.Subtree, From: p.Start, To: p.End}
		if _, _, shown := p.previous(); shown {
			totals.WithPrevious = v.csvPart() == ""
		}
		n.AccountSums, previous, err = v.Backend.CollectionAccounts(v.r.Context(), v.id, totals)
	}
	if err == nil {
		err = v.getFromAPI(c.path()+"/statistics", query, &n.Statistics)
	}
	if err == nil {
		err = v.getFromAPI(c.path()+"/history", query, &history)
	}
	if problem, ok := err.(*Problem); ok && problem.Status == http.StatusConflict { //nolint:errorlint // getFromAPI returns a *Problem itself
		n.Refused = problem
	} else if err != nil {
		return n, err
	}
	points := make([]point, len(history))
	for i := range history {
		h := &history[i]
		points[i] = pointOfCollection(h, gainOfDay(h), h.Views, h.Engagements, h.Videos)
	}
	n.Chart = v.newChart(sumCaption+describeJoined(collectionMetrics), p, collectionMetrics, points)
	n.Chart.setViewsGained(collectionGains(history))
	n.Chart.Joined, n.Chart.Sums = true, true
	n.Tiles = collectionTiles(n.Statistics.ReportStatistics, n.Chart, points, p, previous)
	n.Tiles[0].Span = spanOfGain(history, p)
	n.Tiles[0].NotCompared = reasonNotCompared(n.Statistics.ReportStatistics, p, previous)
	return n, nil
}

// spanOfGain returns the days that the gained views of a collection cover, such as "since 2026-10-31 (2 of 31 days)". It returns "" if the
// gain of the first day of the period is known, or if the gain of no day is known.
func spanOfGain(history []client.CollectionHistoryPoint, p period) string {
	first := p.End + 1
	for n := range history {
		if gainOfDay(&history[n]) != nil {
			first = min(first, store.DateOf(history[n].Date.Time))
		}
	}
	if first <= p.Start || first > p.End {
		return ""
	}
	return fmt.Sprintf("since %s (%d of %d days)", first, p.End-first+1, p.Days)
}

// reasonNotCompared says why the gained views of a collection are not compared with those of the previous period. It returns "" if they are compared, or
// if the gain of the period itself is unknown, so that there is nothing to compare.
func reasonNotCompared(s client.ReportStatistics, p period, previous *store.PreviousPeriod) string {
	if s.ViewsGained == nil || previous != nil && previous.Counted > 0 && previous.Gained != nil {
		return ""
	}
	days := plural(p.Days, "day", "days")
	before := "the " + days + " before"
	_, _, shown := p.previous()
	switch {
	case !shown:
		return "not compared: the tier does not show all of " + before
	case *s.Videos*2*int64(p.Days) > store.MaxTotalsVideoDays:
		return "not compared: too many videos for 2 × " + days
	case previous == nil || previous.Counted == 0:
		return "not compared: no video counted yet when " + before + " began"
	}
	return "not compared: the gain of " + before + " is unknown"
}

// ListedAccountSums returns the accounts that the page lists: the first maxAccounts of AccountSums. It returns none if no gain is known, or if
// the collection has a single account, whose sums are those of the collection.
func (n collectionNumbers) ListedAccountSums() []client.ReportAccount {
	if len(n.AccountSums) < 2 || n.AccountSums[0].ViewsGained == nil { // accounts without a known gain come last
		return nil
	}
	return n.AccountSums[:min(len(n.AccountSums), maxAccounts)]
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
	// The tile shows the gain of the previous period only if a video with known views was in the collection during that whole period. If there is no such
	// video, that gain covers only some days of the previous period.
	if previous != nil && previous.Counted > 0 && s.ViewsGained != nil {
		tiles[0].Before = previous.Gained
		tiles[0].FewerVideos = max(0, *s.Videos-*s.UnknownViews-previous.Counted)
	}
	return tiles
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
