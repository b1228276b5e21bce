package web

import (
	"cmp"
	"strings"

	"github.com/reeltally/reeltally/store"
)

// tile is a box of a page that shows one number and its change in the period.
type tile struct {
	Label  string
	Value  *int64   // the number that the tile shows; nil if it is unknown, or if the tile shows a percentage
	Reason string   // why Value is unknown; "" if it is known, or if another part of the page says why
	Ratio  *float64 // the percentage that the tile shows if IsRate is true
	IsRate bool     // true if the tile shows a percentage instead of a number
	Change *int64   // the change of Value in the period; nil if it is unknown
	// The field Before is the sum over the previous period if PerDay is true, and the change in the previous period if not. It is nil if unknown.
	Before *int64
	// FewerVideos says how many fewer videos counted on the day before the previous period than at the end of the period. It is 0 for tiles other than the
	// gained views of a collection.
	FewerVideos int64
	NotCompared string   // why the tile has no comparison with the previous period; "" if it has one, or needs none
	Gain        bool     // true if Value itself is the gain of the period, so that a text outside of the page must name the period
	OfTotal     bool     // true if Value is a sum over videos, so that Change is the change of this sum and not a gain
	Span        string   // the days that Change or a gain covers, in words, such as "since 2026-11-20"; "" for the whole period
	Plain       bool     // true if the tile does not show Change; it shows Percent and Details instead
	Percent     *float64 // the gain in percent of the views with which it begins; nil if it is unknown or not shown
	Unknown     *int64   // number of videos whose count is unknown and therefore missing in Value
	Stopped     *int64   // number of videos that are no longer tracked
	PerDay      bool     // if true, Value is the sum over the days of the period, and Before is the sum over the days of the previous period
	Spark       string   // points of a small line chart, as sparkline returns them
	Link        string   // URL query with which the same page shows a chart of this metric; "" if no chart can show the metric
	Shown       bool     // true if the chart shows the metric
	// NewCounts names the counts, such as "views", if Change and Before include the ones that videos already had when their tracking started. Such
	// changes are not gains. NewCounts is "" for other tiles.
	NewCounts string
	Also      string // what the number counts, too, such as "also counts videos no longer tracked"; "" if nothing
	// Members says how many videos joined or left the sum in the period, if the change of the sum contains their counts. Such a change is not a gain.
	// Members is "" for other tiles.
	Members string
}

// LabelWithPeriod returns the label of the tile. If the tile shows the gain of a period, the label says which days it covers.
func (t tile) LabelWithPeriod(days int32) string {
	if !t.Gain {
		return t.Label
	}
	span, _, _ := strings.Cut(t.spanText(days), " (")
	return t.Label + " " + span
}

// spanText returns the days that a gain or change covers, in words, such as "in 30 days". days is the length of the period.
func (t tile) spanText(days int32) string {
	return cmp.Or(t.Span, "in "+plural(days, "day", "days"))
}

// Details returns the line below the number of a tile whose field Plain is true, such as "in 30 days, unknown for 1 video". days is the length of the
// period.
func (t tile) Details(days int32) string {
	var parts []string
	if (t.Gain || t.PerDay) && t.Value != nil {
		parts = append(parts, t.spanText(days))
	}
	if note := t.Note(); note != "" {
		parts = append(parts, note)
	}
	return strings.Join(parts, ", ")
}

// Note says which videos are missing in the number of a tile, or how many of the counted videos are no longer tracked. It returns "" if
// there are no such videos.
func (t tile) Note() string {
	switch {
	case t.Unknown != nil && *t.Unknown > 0:
		return "unknown for " + plural(t.Unknown, "video", "videos")
	case t.Stopped != nil && *t.Stopped > 0:
		return formatCount(t.Stopped) + " no longer tracked"
	}
	return ""
}

// metricTiles returns one tile for each metric of the chart, with its count at the end of the period and its change in the period.
// latestValues are the counts of today. They have the same order as c.Metrics.
func metricTiles(c chart, points []point, p period, latestValues []*int64) []tile {
	tiles := make([]tile, len(c.Metrics))
	for m, shown := range c.Metrics {
		at := changeInPeriod(points, m, p, latestValues[m])
		tiles[m] = tile{Label: shown.Label, Value: at.Value, Change: at.Change, Span: at.Span,
			Link: c.MetricLink(shown.Name), Shown: c.Metric == m, Spark: sparkline(points, m, p.Start, p.End)}
	}
	return tiles
}

// metricChange is the number of a metric at the end of the period, and its change in the period. Span names the days of the change, if it does not
// cover the whole period.
type metricChange struct {
	Value, Change *int64
	Span          string
}

// changeInPeriod returns the number of the metric with index m at the end of the period, and its change in the period. latest is the number of today.
// The change is nil if the number at the end of the period is unknown.
func changeInPeriod(points []point, m int, p period, latest *int64) metricChange {
	if p.End < p.today {
		latest = lastKnownValue(points, m, p.End)
	}
	if latest == nil {
		return metricChange{}
	}
	change, span := computeChange(points, m, p)
	return metricChange{latest, change, span}
}

// lastKnownValue returns the newest known value of the metric with index m on the given day or before, or nil if no value is known. The points
// must be sorted by day, the newest first.
func lastKnownValue(points []point, m int, day store.Date) *int64 {
	for _, at := range points {
		if at.Day <= day && at.Values[m] != nil {
			return at.Values[m]
		}
	}
	return nil
}

// computeChange returns the change of a metric in the period, or nil if too few values are known. The
// points must be sorted by day, the newest first. The result `span` names the days that the change covers.
func computeChange(points []point, m int, p period) (change *int64, span string) {
	first, last := endsOfChange(points, m, p)
	if first == nil {
		return nil, ""
	}
	since, until := p.limits(first.Day, last.Day)
	switch {
	case since != "" && until != "":
		span = "from " + since + " to " + until
	case since != "":
		span = "since " + since
	case until != "":
		span = "until " + until
	}
	return difference(last.Values[m], first.Values[m]), span
}

// endsOfChange returns the two points whose difference is the change of a metric in the period. It uses only points with a known value of the metric,
// and not after the period: `last` is the newest of these points, and `first` is the newest one before the period. Without a point before the period,
// `first` is the oldest one in it. Both results are nil if the period has no known value, or if no earlier value is known. The points must be sorted by
// day, the newest first.
func endsOfChange(points []point, m int, p period) (first, last *point) {
	for n := range points {
		at := &points[n]
		if at.Day > p.End || at.Values[m] == nil {
			continue
		}
		if last == nil {
			last = at
		}
		if first = at; at.Day < p.Start {
			break
		}
	}
	// The change needs a known value in the period, and an earlier known value.
	if last == nil || last.Day < p.Start || first == last {
		return nil, nil
	}
	return first, last
}
