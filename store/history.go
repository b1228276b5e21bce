package store

import (
	"context"
	"slices"

	"github.com/google/uuid"
)

// Counts are the five counts of a point; nil where the source does not give one.
type Counts struct {
	Views     *int64
	Likes     *int64
	Comments  *int64
	Shares    *int64
	Bookmarks *int64
}

// Engagement is likes + comments + bookmarks + shares, of those that are known; nil when none is.
func (c Counts) Engagement() *int64 {
	var sum int64
	known := false
	for _, n := range []*int64{c.Likes, c.Comments, c.Bookmarks, c.Shares} {
		if n != nil {
			sum, known = sum+*n, true
		}
	}
	if !known {
		return nil
	}
	return &sum
}

// Point is a day of a video's history (spec.md 2.4): the last counts seen on that UTC day.
type Point struct {
	Day Date
	Counts
	// Interpolated is true for a day between two weekly points, which nobody measured.
	Interpolated bool
}

// DailyDays is for how many days every day's point is kept; older history has one point a week.
const DailyDays = 90

// History returns the points of the days from..to, both inclusive, the newest first. Days without a point are left
// out, but days that are older than DailyDays and lie between two points are interpolated. ErrNotFound when
// the organisation has no such video; an empty slice when it has no point in the range.
func (o *Org) History(ctx context.Context, ref VideoRef, from, to Date) ([]Point, error) {
	v, err := o.Video(ctx, ref)
	if err != nil {
		return nil, err
	}
	weeklyUntil := o.s.now().Day() - DailyDays - 1 // the last day that may be interpolated
	points, err := o.points(ctx, v.ID, from, to, weeklyUntil)
	if err != nil {
		return nil, err
	}
	return fill(points, from, to, weeklyUntil), nil
}

// points reads the stored points of the days from..to, the oldest first, and where days up to weeklyUntil are asked
// for also the neighbours just outside of the range.
func (o *Org) points(ctx context.Context, video uuid.UUID, from, to, weeklyUntil Date) ([]Point, error) {
	if from > weeklyUntil {
		return o.scanPoints(ctx, storedPoints+" ORDER BY day", video, from, to)
	}
	return o.scanPoints(ctx, `
SELECT * FROM (SELECT * FROM (`+storedPoints+`) AS older ORDER BY day DESC LIMIT 1) AS before_range
UNION ALL SELECT * FROM (`+storedPoints+`) AS in_range
UNION ALL SELECT * FROM (SELECT * FROM (`+storedPoints+`) AS newer ORDER BY day LIMIT 1) AS after_range
ORDER BY day`, video, Date(0), from-1, video, from, to, video, to+1, maxDate)
}

const maxDate Date = 2932896 // 9999-12-31

// storedPoints is the union of the daily and the weekly points of a video in a range of days. A week's point that is
// still there as a daily one as well (between roll-up and drop) counts once.
const storedPoints = `SELECT day, views, likes, comments, shares, bookmarks FROM snapshots_daily
 WHERE organisation_id = ? AND video_id = ? AND day BETWEEN ? AND ?
UNION
SELECT w.day, w.views, w.likes, w.comments, w.shares, w.bookmarks FROM snapshots_weekly w
 WHERE w.organisation_id = ? AND w.video_id = ? AND w.day BETWEEN ? AND ?
   AND NOT EXISTS (SELECT 1 FROM snapshots_daily d WHERE d.organisation_id = w.organisation_id AND d.video_id = w.video_id AND d.day = w.day)`

// scanPoints runs a statement made of storedPoints; each triple of ranges is (video, from, to).
func (o *Org) scanPoints(ctx context.Context, statement string, ranges ...any) ([]Point, error) {
	var args []any
	for i := 0; i+2 < len(ranges); i += 3 {
		for range 2 { // the two halves of the union
			args = append(args, o.id, ranges[i], ranges[i+1], ranges[i+2])
		}
	}
	var points []Point
	return points, translate(o.s.read.WithContext(ctx).Raw(statement, args...).Scan(&points).Error)
}

// fill turns stored points, the oldest first, into the points of the days from..to, the newest first.
func fill(stored []Point, from, to, weeklyUntil Date) []Point {
	out := make([]Point, 0, len(stored))
	for i, p := range slices.Backward(stored) {

		if p.Day >= from && p.Day <= to {
			out = append(out, p)
		}
		if i == 0 {
			break
		}
		earlier := stored[i-1]
		for day := min(p.Day-1, to, weeklyUntil); day > earlier.Day && day >= from; day-- {
			out = append(out, between(earlier, p, day))
		}
	}
	return out
}

// between interpolates in a straight line. Rounding down keeps a rising count from falling between the two points and
// from passing the later one.
func between(a, b Point, day Date) Point {
	at := func(x, y *int64) *int64 {
		if x == nil || y == nil {
			return nil
		}
		// In two parts, since difference times days may not fit where counts are near the largest number.
		span, passed, diff := int64(b.Day-a.Day), int64(day-a.Day), *y-*x
		n := *x + diff/span*passed + diff%span*passed/span
		return &n
	}
	return Point{Day: day, Interpolated: true, Counts: Counts{
		Views: at(a.Views, b.Views), Likes: at(a.Likes, b.Likes), Comments: at(a.Comments, b.Comments),
		Shares: at(a.Shares, b.Shares), Bookmarks: at(a.Bookmarks, b.Bookmarks)}}
}
