package web

// tile is a box of a page that shows one number and its change in the period.
type tile struct {
	Label  string
	Value  *int64   // the number that the tile shows; nil if it is unknown, or if the tile shows a percentage
	Ratio  *float64 // the percentage that the tile shows if IsRate is true
	IsRate bool     // true if the tile shows a percentage instead of a number
	Change *int64   // the change of Value in the period; nil if it is unknown
	// The field Before is the sum over the previous period if PerDay is true, and the change in the previous period if not. It is nil if unknown.
	Before *int64
	// NoBefore is true if the tile does not show the field Before.
	NoBefore bool
	Gain     bool     // true if Value itself is the gain of the period, so that a text outside of the page must name the period
	Span     string   // the days that Change covers, in words, such as "since 2026-11-20"; "" for the whole period
	Plain    bool     // true if the tile does not show Change; it shows Percent or Note instead, if one of them is set
	Percent  *float64 // the change of Value in the period, in percent; nil if it is unknown or not shown
	Unknown  *int64   // number of videos whose count is unknown and therefore missing in Value
	Stopped  *int64   // number of videos that are no longer tracked
	PerDay   bool     // if true, Value is the sum over the days of the period, and Before is the sum over the days of the previous period
	Spark    string   // points of a small line chart, as sparkline returns them
	Link     string   // URL query with which the same page shows a chart of this metric; "" if no chart can show the metric
	Shown    bool     // true if the chart shows the metric
	// NewCounts names the counts, such as "views", if Change and Before include the ones that videos already had when their tracking started. Such
	// changes are not gains. NewCounts is "" for other tiles.
	NewCounts string
	// Members says how many videos joined or left the sum in the period, if the change of the sum contains their counts. Such a change is not a gain.
	// Members is "" for other tiles.
	Members string
}

// LabelWithPeriod returns the label of the tile. If the tile shows the gain of a period, the label says how many days the period has.
func (t tile) LabelWithPeriod(days int32) string {
	if !t.Gain {
		return t.Label
	}
	return t.Label + " in " + plural(days, "day", "days")
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
