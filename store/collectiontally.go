package store

import (
	"cmp"
	"slices"

	"github.com/reeltally/reeltally/store/internal/db"
)

// This file computes the sums of a collection from the points of its videos. It does not read the database.

// pointsForDays copies the points that determine the counts from firstDay to lastDay, and sets
// Quality in the copies. Pass all points of the video, the oldest first.
func pointsForDays(points []Point, firstDay, lastDay db.Date) []Point {
	kept := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.Source == nil }) // without the first views of a video, which are no stored point
	fillGaps(Counts{}, kept, firstDay, firstDay)
	// Include the last point on or before firstDay, and the first point on or after lastDay.
	first := 0
	for first+1 < len(kept) && kept[first+1].Day <= firstDay {
		first++
	}
	last := first
	for last < len(kept) && (last == 0 || kept[last-1].Day < lastDay) {
		last++
	}
	return kept[first:last]
}

// gainStartDay returns the later of two days: the day before periodStart, and the day when the
// video was added. Earlier views do not count for the video's gain.
func (v *CollectionVideo) gainStartDay(periodStart db.Date) db.Date {
	return max(periodStart-1, v.AddedAt.Day())
}

// tally has the sums of the counts of videos by day.
type tally struct {
	from, to db.Date
	days     []CollectionDay // the first element is for the day before the period
	previous *tally          // the sums of the previous period; nil if CollectionTotalsQuery.WithPrevious is false

	// previousGained is the sum of the gains of the previous period, without videos that were added after it; nil if no gain is known.
	previousGained *int64
}

func newTally(q CollectionTotalsQuery) *tally {
	t := &tally{from: q.From, to: q.To, days: make([]CollectionDay, q.To-q.From+2)}
	for n := range t.days {
		t.days[n].Day = q.From - 1 + db.Date(n)
	}
	if q.WithPrevious {
		t.previous = newTally(CollectionTotalsQuery{From: q.From - (q.To - q.From + 1), To: q.From - 1})
	}
	return t
}

// addVideo adds the counts of a video to the tally, and sets the video's fields from StartDay to Gained. The points must be ordered by day. If a count is
// unknown on a day, addVideo adds the last known count of an earlier day instead. If FrozenViews is not nil, it replaces the views of the day before the
// period. So the gain of the first day contains the views that the earlier report lacks. StartViews and EndViews point to copies: a pointer into the
// points would keep the memory of many points in use as long as the video.
func (t *tally) addVideo(v *CollectionVideo, points []Point) {
	if t.previous != nil && v.AddedAt.Day() <= t.previous.to {
		before := *v // a copy, because each period sets its own gain
		t.previous.addVideo(&before, points)
		t.previousGained = db.AddKnown(t.previousGained, before.Gained)
	}
	firstDay, addedDay := v.gainStartDay(t.from), v.AddedAt.Day()
	next := 0        // index of the first point after the day
	var known Counts // the last known counts of the points
	var endDay db.Date
	if v.FrozenViews != nil { // they count until a point has views: earlier points can have been deleted
		known.Views, endDay = v.FrozenViews, firstDay
	}
	for ; next < len(points) && points[next].Day < firstDay; next++ {
		known.Update(points[next].Counts)
		if points[next].Views != nil {
			endDay = points[next].Day
		}
	}
	before := known // the counts of the day before
	for day := firstDay; day <= t.to; day++ {
		for next < len(points) && points[next].Day <= day {
			next++
		}
		d := &t.days[day-t.from+1]
		ofDay := d.countVideo(points, next)
		known.Update(ofDay)
		counts := known
		if day < t.from && v.FrozenViews != nil {
			counts.Views = v.FrozenViews
		}
		if day == v.FrozenDay && v.FrozenViews != nil && ofDay.Views != nil {
			v.LateFrozenDay = *ofDay.Views != *v.FrozenViews
		}
		d.addCounts(counts)
		if day == addedDay {
			d.addNewVideo(counts)
		} else {
			d.addGain(before, counts)
		}
		before = counts
		if counts.Views != nil && v.StartViews == nil {
			v.StartDay, v.StartViews = &d.Day, new(*counts.Views)
		}
		if ofDay.Views != nil {
			if endDay = day; next == len(points) { // without a later point, the views are those of the last point
				endDay = points[next-1].Day
			}
		}
	}
	if known.Views != nil {
		v.EndDay, v.EndViews = &endDay, new(*known.Views)
		if endDay > *v.StartDay || v.FrozenViews != nil && *v.EndViews != *v.FrozenViews {
			gained := *v.EndViews - *v.StartViews
			v.Gained = &gained
		}
	}
}

// addCounts adds a video and its last known counts to the sums of the day.
func (d *CollectionDay) addCounts(known Counts) {
	d.Videos++
	for n, count := range known.All() {
		if count == nil {
			*d.Unknown.Fields()[n]++
		} else {
			*d.Sums.Fields()[n] += *count
		}
	}
	if known.Engagement() == nil {
		d.UnknownEngagements++
	}
}

// addNewVideo counts a video that was added to the collection on the day.
func (d *CollectionDay) addNewVideo(known Counts) {
	d.Added++
	if known.Views != nil {
		d.ViewsFromAdded += *known.Views
	}
}

// addGain adds the views that a video gained on the day. The arguments are its last known counts before the day and at the end of the day.
func (d *CollectionDay) addGain(before, known Counts) {
	if before.Views != nil && known.Views != nil {
		gained := *known.Views - *before.Views
		d.ViewsGained += gained
		d.KnownGains++
		d.ViewsCorrected += min(0, gained)
	}
}

// countVideo returns a video's counts on d.Day, or no counts before the first point. It increments a field such as d.Measured that says where they
// come from. The points are ordered by day, and points[nextPoint] is the first point after d.Day.
func (d *CollectionDay) countVideo(points []Point, nextPoint int) Counts {
	switch {
	case nextPoint == 0:
		d.WithoutPoint++
		return Counts{}
	case points[nextPoint-1].Day == d.Day:
		d.Measured++
		if points[nextPoint-1].Quality == QualityRounded {
			d.Rounded++
		}
		return points[nextPoint-1].Counts
	case nextPoint == len(points):
		d.Carried++
		return points[nextPoint-1].Counts
	}
	d.Interpolated++
	var at interpolation
	at.appendBetween(&points[nextPoint-1], &points[nextPoint], d.Day, d.Day)
	if len(at.out) == 0 {
		return Counts{}
	}
	return at.out[0].Counts
}

// finishDays computes ViewsFromKnown of each day, and returns the days of the period. It leaves out the days before the first video was added.
func (t *tally) finishDays() []CollectionDay {
	for n := 1; n < len(t.days); n++ {
		d := &t.days[n]
		d.ViewsFromKnown = d.Views - t.days[n-1].Views - d.ViewsGained - d.ViewsFromAdded
	}
	days := t.days[1:]
	for len(days) > 0 && days[0].Videos == 0 {
		days = days[1:]
	}
	return days
}

// KnownSums returns the sum of each metric. Unknown counts add nothing. The sum is nil if the count of every video is unknown.
func (d *CollectionDay) KnownSums() Counts {
	var c Counts
	for n, field := range c.Fields() {
		if *d.Unknown.Fields()[n] < d.Videos {
			sum := *d.Sums.Fields()[n]
			*field = &sum
		}
	}
	return c
}

// KnownGain returns ViewsGained, or nil if the gains of all videos are unknown on this day.
func (d *CollectionDay) KnownGain() *int64 {
	if d.KnownGains == 0 {
		return nil
	}
	return &d.ViewsGained
}

// CollectionGains says how many views the videos of a collection gained in a period.
type CollectionGains struct {
	Removed    int64         // number of videos whose tracking was stopped
	Last       CollectionDay // the last day of the period
	StartViews *int64        // sum of CollectionVideo.StartViews of the videos whose gain is known; nil if no gain is known
	Gained     *int64        // sum of the known gains; nil if no gain is known
	Unknown    int64         // number of videos whose gain is unknown
	Corrected  int64         // sum of the negative changes of views in the period; at most 0
}

// Gains returns the total gain of the collection's videos in the period. Videos whose gain is unknown add nothing.
func (c *CollectionTotals) Gains() CollectionGains {
	var g CollectionGains
	var start, gained int64
	for i := range c.Videos {
		v := &c.Videos[i]
		if v.Removed {
			g.Removed++
		}
		if v.Gained != nil {
			start, gained = start+*v.StartViews, gained+*v.Gained
			g.StartViews, g.Gained = &start, &gained
		} else {
			g.Unknown++
		}
	}
	for i := range c.Days {
		g.Corrected += c.Days[i].ViewsCorrected
		g.Last = c.Days[i]
	}
	return g
}

// RankByGain returns up to n videos whose gain is known. If highestFirst is true, the highest gain comes
// first, otherwise the lowest. Videos with equal gains are ordered by id.
func (c *CollectionTotals) RankByGain(highestFirst bool, n int) []CollectionVideo {
	var known []CollectionVideo
	for i := range c.Videos {
		if c.Videos[i].Gained != nil {
			known = append(known, c.Videos[i])
		}
	}
	slices.SortStableFunc(known, func(a, b CollectionVideo) int {
		if highestFirst {
			return cmp.Compare(*b.Gained, *a.Gained)
		}
		return cmp.Compare(*a.Gained, *b.Gained)
	})
	return known[:min(n, len(known))]
}
