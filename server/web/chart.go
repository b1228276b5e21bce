package web

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// metric is a count that a chart can show.
type metric struct {
	Name  string // name of the metric in the query of the page's address
	Label string
	// PerDay is true if the numbers are counts of one day, and false if they are totals so far.
	PerDay bool
}

// point contains the numbers of one day. The slices Values and Gains have one entry for each metric of the chart. An entry is nil if the
// number is unknown.
type point struct {
	Day    store.Date
	Values []*int64
	Gains  []*int64 // change of each metric since the day before; nil if the number of either day is unknown
	Joined *int64   // number of videos that were added to the collection on this day; nil if it is unknown
	// Interpolated and Carried are the numbers of videos of a collection whose counts were not measured on this day. Interpolated counts were
	// computed from the points before and after, and carried counts are those of an earlier point. A number is nil if it is unknown.
	Interpolated, Carried *int64
	Quality               string // "measured", "interpolated", "corrected" or "rounded"; for a collection, "interpolated" or "carried" if no video was measured; "" if the quality is not known
	Source                string
	Fetched               *time.Time
	// Computed says for each metric whether its value is interpolated. It is nil, except on the pages that compare videos or accounts.
	Computed []bool
}

// IsComputed returns true if the value of the metric with index m is interpolated.
func (p point) IsComputed(m int) bool { return m < len(p.Computed) && p.Computed[m] }

// chart contains the numbers of a period, which a page shows as a chart and as a table.
type chart struct {
	Caption string // how the numbers are computed; a page folds this text, but shows it in a comparison; "" if nothing needs an explanation
	Metrics []metric
	Points  []point // the points of the chart, sorted by day, the newest first
	Metric  int     // index of the shown metric
	Gain    bool    // true if the chart shows the change on each day instead of the total
	Quality bool    // true if each point has its quality, source and fetch time
	Joined  bool    // true if the table shows how many videos were added to the collection on each day
	// GainedColumn is true if a CSV file has the column "gained", because the gains of the views are not the differences of the totals.
	GainedColumn bool
	Sums         bool // true if the numbers are sums over the videos of a collection, so that each point has the fields Interpolated and Carried
	// Compared is true if the chart shows all metrics at the same time, each scaled so that its highest value is 100.
	Compared bool
	Choices  []metricChoice // links to the other metrics of a comparison; nil if the page has only one metric
	Subject  string         // what each line of a comparison shows, such as "Views of each video"
	// CSVNames are the names of the metrics' columns in a CSV file. If it is nil, the columns have the names of the metrics.
	CSVNames []string
	Masked   bool // true if the organisation's tier hides the numbers
	Missing  missingNumbers
	Period   period
	query    url.Values
}

// missingNumbers has the facts with which MissingReasons explains why the chart of a video or account lacks numbers.
type missingNumbers struct {
	AddedAt   time.Time  // when the organisation got the video or account
	Unfetched bool       // true if nothing was fetched yet
	FetchedAt *time.Time // when the newest numbers were fetched; nil if this is unknown or if nothing was fetched yet
	Unknown   string     // why the metric of the chart is unknown on a day with other numbers
	// Videos is the index of the metric with the number of videos over which the shown metric is a sum. It is 0 if the shown metric is no such sum.
	Videos int
}

// newChart returns a chart of the points with their gains. The points must be sorted by day, the
// newest first. The chart shows the metric that the visitor has chosen.
func (v *visit) newChart(caption string, p period, metrics []metric, points []point) chart {
	c := chart{Caption: caption, Metrics: metrics, Period: p, Masked: v.hidesNumbers(), query: v.r.URL.Query()}
	if p.Refused() {
		c.query = p.query
	}
	c.Gain = c.query.Get("view") == "gain"
	for n, gains := range gainsOf(points, len(metrics)) {
		points[n].Gains = gains
	}
	// Leave out the points before the period. They were needed to compute the gains of the first day.
	c.Points = slices.DeleteFunc(slices.Clone(points), func(at point) bool { return at.Day < p.Start })
	c.Metric = c.indexOf(c.query.Get("metric"))
	if c.Metric < 0 { // the visitor has chosen no metric, so the chart shows the first metric with numbers
		c.Metric = 0
		for m := range metrics {
			if slices.ContainsFunc(c.Points, func(at point) bool { return at.Values[m] != nil }) {
				c.Metric = m
				break
			}
		}
	}
	return c
}

// indexOf returns the index of the metric with the given name, or -1 if the chart does not have this metric.
func (c *chart) indexOf(name string) int {
	return slices.IndexFunc(c.Metrics, func(m metric) bool { return m.Name == name })
}

// setViewsGained replaces the gains of the metric "views" on the days that the map contains. Unlike the changes of the total, the gains in the map
// exclude views from before a video was tracked or was added to the collection.
func (c *chart) setViewsGained(gained map[store.Date]*int64) {
	m := c.indexOf("views")
	if m < 0 {
		return
	}
	c.GainedColumn = c.indexOf("gained") < 0
	for n := range c.Points {
		if gain, known := gained[c.Points[n].Day]; known {
			c.Points[n].Gains[m] = gain
		}
	}
}

// collectionGains returns the gains of views in the history of a collection, by day.
func collectionGains(history []client.CollectionHistoryPoint) map[store.Date]*int64 {
	gained := make(map[store.Date]*int64, len(history))
	for _, h := range history {
		gained[store.DateOf(h.Date.Time)] = gainOfDay(&h)
	}
	return gained
}

// gainOfDay returns the views that the videos of a collection gained on a day. It returns nil if all of them were added on this day. For such a day,
// reports of earlier releases have the gain 0.
func gainOfDay(h *client.CollectionHistoryPoint) *int64 {
	if h.Videos != nil && h.VideosAdded != nil && *h.Videos > 0 && *h.VideosAdded >= *h.Videos {
		return nil
	}
	return h.ViewsGained
}

// gainsOf returns the gains of each point: the change of each metric since the day before. The
// points must be sorted by day, the newest first.
func gainsOf(points []point, metrics int) [][]*int64 {
	out := make([][]*int64, len(points))
	for n := range points {
		out[n] = make([]*int64, metrics)
		if n+1 == len(points) || points[n].Day-points[n+1].Day != 1 {
			continue
		}
		for m := range metrics {
			out[n][m] = difference(points[n].Values[m], points[n+1].Values[m])
		}
	}
	return out
}

// ShownMetric returns the metric that the chart shows.
func (c chart) ShownMetric() metric { return c.Metrics[c.Metric] }

// Heading says in words what the chart shows, for example "Views: daily change". Printed pages show it in place of the links with which
// visitors choose the metric.
func (c chart) Heading() string {
	switch {
	case c.Compared:
		return c.Subject + " in percent of its highest value"
	case c.ShownMetric().PerDay:
		return fmt.Sprintf("%s: daily value", c.ShownMetric().Label)
	case c.Gain:
		return fmt.Sprintf("%s: daily change", c.ShownMetric().Label)
	}
	return fmt.Sprintf("%s: total", c.ShownMetric().Label)
}

// EmptyReason says why the chart shows nothing. It returns "" if the chart shows at least one known number.
func (c chart) EmptyReason() string {
	shows := func(at point) bool {
		values := at.Values[c.Metric : c.Metric+1]
		switch {
		case c.Compared:
			values = at.Values
		case c.Gain && !c.ShownMetric().PerDay:
			values = at.Gains[c.Metric : c.Metric+1]
		}
		return slices.ContainsFunc(values, func(n *int64) bool { return n != nil })
	}
	switch {
	case slices.ContainsFunc(c.Points, shows):
		return ""
	case c.Masked:
		return "The organisation's tier hides the numbers."
	case c.Joined && len(c.Points) == 0:
		return "The collection had no videos in this period. A video counts from the day on which it is added, unless you choose another day."
	case c.Gain && !c.Compared && !c.ShownMetric().PerDay:
		return "No change is known in this period. A change of a day needs the numbers of this day and of the day before."
	}
	return "There are no numbers in this period."
}

// Provenance says on how many days the numbers were measured, interpolated, corrected, rounded or
// missing. It returns "" if the field Quality is false, or if the tier hides the numbers.
func (c chart) Provenance() string {
	if !c.Quality || c.Masked {
		return ""
	}
	counts, withNumbers := map[string]int{}, 0
	for _, at := range c.Points {
		if at.Quality != "" || slices.ContainsFunc(at.Values, func(n *int64) bool { return n != nil }) {
			counts[at.Quality]++
			withNumbers++
		}
	}
	measured := counts["measured"] + counts["corrected"] + counts["rounded"]
	parts := []string{fmt.Sprintf("%d %s measured", measured, wasOrWere(measured))}
	for _, part := range []struct {
		n    int
		text string
	}{
		{counts["interpolated"], "calculated from the fetches before and after"},
		{counts["corrected"], "lower than before"},
		{counts["rounded"], "rounded by the source"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s %s", part.n, wasOrWere(part.n), part.text))
		}
	}
	if missing := int(c.Period.Days) - withNumbers; missing > 0 {
		parts = append(parts, fmt.Sprintf("%d %s without a number", missing, wasOrWere(missing)))
	}
	return fmt.Sprintf("Of the %s in the period, %s.", plural(c.Period.Days, "day", "days"), strings.Join(parts, ", "))
}

// Unmeasured says on how many days the sums contain counts that were not measured on that day. It returns "" if the field Sums is false, if the
// tier hides the numbers, or if there are no such days.
func (c chart) Unmeasured() string {
	if !c.Sums || c.Masked {
		return ""
	}
	var interpolated, carried, unmeasured int64
	for _, at := range c.Points {
		if isPositive(at.Interpolated) {
			interpolated++
		}
		if isPositive(at.Carried) {
			carried++
		}
		if at.Quality != "" {
			unmeasured++
		}
	}
	var sentences []string
	if interpolated > 0 {
		sentences = append(sentences, fmt.Sprintf("On %s, counts of some videos are calculated from the fetches before and after.", plural(interpolated, "day", "days")))
	}
	if carried > 0 {
		sentences = append(sentences, fmt.Sprintf("On %s, counts of some videos are those of an earlier day, because nothing was fetched since then.", plural(carried, "day", "days")))
	}
	if unmeasured > 0 {
		sentences = append(sentences, fmt.Sprintf("On %s, no video was fetched.", plural(unmeasured, "day", "days")))
	}
	return strings.Join(sentences, " ")
}

// isPositive returns true if n is known and more than 0.
func isPositive(n *int64) bool { return n != nil && *n > 0 }

// Note says of how many videos the counts of the day were not measured, for example "2 videos calculated, 1 video with counts of an earlier day". It returns "" if there are none.
func (p point) Note() string {
	var parts []string
	if isPositive(p.Interpolated) {
		parts = append(parts, plural(p.Interpolated, "video", "videos")+" calculated")
	}
	if isPositive(p.Carried) {
		parts = append(parts, plural(p.Carried, "video", "videos")+" with counts of an earlier day")
	}
	return strings.Join(parts, ", ")
}

// pointOfCollection returns the point of a day of a collection's history, with the given values.
func pointOfCollection(h *client.CollectionHistoryPoint, values ...*int64) point {
	p := point{Day: store.DateOf(h.Date.Time), Joined: h.VideosAdded, Interpolated: h.Interpolated, Carried: h.Carried, Values: values}
	switch {
	case h.Measured == nil || *h.Measured > 0:
	case isPositive(h.Interpolated):
		p.Quality = "interpolated"
	case isPositive(h.Carried):
		p.Quality = "carried"
	}
	return p
}

// MissingReasons says why days have no number, and why the shown metric is unknown on other days. It returns "" if no reason is known, if the
// field Quality is false, or if the tier hides the numbers.
func (c chart) MissingReasons() string {
	if !c.Quality || c.Masked {
		return ""
	}
	withNumbers, unknownDays, untrackedDays := map[store.Date]bool{}, 0, 0
	for _, at := range c.Points {
		switch {
		case at.Values[c.Metric] != nil:
			withNumbers[at.Day] = true
		case at.Quality != "" || slices.ContainsFunc(at.Values, func(n *int64) bool { return n != nil }):
			withNumbers[at.Day] = true
			if m := c.Missing.Videos; m > 0 && at.Values[m] != nil && *at.Values[m] == 0 {
				untrackedDays++
			} else {
				unknownDays++
			}
		}
	}
	if len(withNumbers) == 0 && c.Missing.Unfetched {
		return "Nothing was fetched yet." // a notice at the top of the page has the reason
	}
	early, late := 0, 0
	for day := c.Period.Start; day <= c.Period.End; day++ {
		switch {
		case withNumbers[day]:
		case day < store.DateOf(c.Missing.AddedAt):
			early++
		case c.Missing.FetchedAt != nil && day > store.DateOf(*c.Missing.FetchedAt):
			late++
		}
	}
	var reasons, sentences []string
	if early > 0 {
		reasons = append(reasons, fmt.Sprintf("%d %s before %s, when tracking began", early, wasOrWere(early), store.DateOf(c.Missing.AddedAt)))
	}
	if late > 0 {
		reasons = append(reasons, fmt.Sprintf("%d %s after the last fetch on %s", late, wasOrWere(late), store.DateOf(*c.Missing.FetchedAt)))
	}
	if len(reasons) > 0 {
		sentences = append(sentences, fmt.Sprintf("Of the days without a number, %s.", strings.Join(reasons, ", ")))
	}
	for _, part := range []struct {
		days   int
		reason string
	}{{unknownDays, c.Missing.Unknown}, {untrackedDays, "no video of the account was tracked"}} {
		if part.days > 0 {
			sentences = append(sentences, fmt.Sprintf("%s are unknown on %d of the days with numbers: %s.", c.ShownMetric().Label, part.days, part.reason))
		}
	}
	return strings.Join(sentences, " ")
}

// wasOrWere returns "was" if n is 1, and "were" otherwise.
func wasOrWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// MetricLink returns the URL query that makes the page show a chart of the metric with this name. The query begins with a question mark.
func (c chart) MetricLink(name string) string {
	return "?" + withParameters(c.query, "metric", name).Encode()
}

// TotalsLink returns the URL query that makes the page show a chart of totals. The query begins with a question mark.
func (c chart) TotalsLink() string { return "?" + withParameters(c.query, "view", "total").Encode() }

// DailyChangesLink returns the URL query that makes the page show a chart of daily changes. The query begins with a question mark.
func (c chart) DailyChangesLink() string {
	return "?" + withParameters(c.query, "view", "gain").Encode()
}

// valueAt returns a metric's value on the given day, or on the last earlier day with a point. The
// newest point must be first. The result is nil if the value is unknown or if all points are later.
func valueAt(points []point, m int, day store.Date) *int64 {
	for _, p := range points {
		if p.Day <= day {
			return p.Values[m]
		}
	}
	return nil
}

// difference returns a−b, or nil if one of them is unknown.
func difference(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	d := *a - *b
	return &d
}

// sparkline returns the metric with index m as points of an SVG polyline, 100 units wide and 24
// high. It returns "" if fewer than two values are known.
func sparkline(points []point, m int, firstDay, lastDay store.Date) string {
	type mark struct {
		x, y float64
	}
	var marks []mark
	lowest, highest := 0.0, 0.0
	for _, p := range points {
		if p.Day < firstDay || p.Day > lastDay || p.Values[m] == nil {
			continue
		}
		y := float64(*p.Values[m])
		if len(marks) == 0 {
			lowest, highest = y, y
		}
		lowest, highest = min(lowest, y), max(highest, y)
		marks = append(marks, mark{float64(p.Day - firstDay), y})
	}
	if len(marks) < 2 {
		return ""
	}
	var out strings.Builder
	for _, at := range marks {
		y := 12.0
		if highest > lowest {
			y = 22 - 20*(at.y-lowest)/(highest-lowest)
		}
		fmt.Fprintf(&out, "%.1f,%.1f ", 100*at.x/float64(max(1, lastDay-firstDay)), y)
	}
	return strings.TrimSpace(out.String())
}
