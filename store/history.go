package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// Quality says how the counts of a point were determined.
type Quality string

// The qualities of points.
const (
	QualityMeasured     Quality = "measured"     // the source reported the counts
	QualityCorrected    Quality = "corrected"    // the source reported the counts, and at least one count is lower than its last known value
	QualityRounded      Quality = "rounded"      // the source reported the counts, but has probably rounded at least one of them
	QualityInterpolated Quality = "interpolated" // the counts were computed for a day between two days with stored points
)

// Provenance says where the counts of a point come from.
type Provenance struct {
	Quality   Quality
	Source    *string     // the source that reported the counts; nil for interpolated points
	FetchedAt *db.Instant // time of the call to the source; nil for interpolated points
}

// roundingMark is appended to the name of a source if the source has rounded a count of the stored point. Names of sources do not contain
// "~".
const roundingMark = "~rounded"

// StoredSource returns the source of a point in the form in which it is stored. If rounded is true, the source has probably rounded a count, and the
// stored form has a mark.
func StoredSource(source string, rounded bool) string {
	if rounded {
		return source + roundingMark
	}
	return source
}

// Point has the counts of a video on one UTC day. A stored point has the last counts that were fetched on that day.
type Point struct {
	Day db.Date
	Counts
	Provenance
}

// History returns the points of a video from the day "from" to the day "to", both inclusive, the newest first. It returns ErrNotFound for an unknown
// video.
//
// If a day between two stored points has no stored point, History interpolates the point of this day. There are no points before the first or after
// the last stored point.
func (o *Org) History(ctx context.Context, ref VideoRef, from, to db.Date) ([]Point, error) {
	video := ref.ID
	if video == uuid.Nil {
		var err error
		if video, err = o.videoID(ctx, ref); err != nil {
			return nil, err
		}
	}
	points, err := o.pointsAround(ctx, video, from, to)
	if err != nil {
		return nil, err
	}
	if len(points) == 0 { // if there are no points, the video may be unknown
		_, err := o.videoID(ctx, ref)
		return []Point{}, err
	}
	known, err := o.lastKnownCounts(ctx, video, points, from, to)
	if err != nil {
		return nil, err
	}
	return fillGaps(known, points, from, to), nil
}

// usualGap is the usual maximum number of days between two points of a tracked video. The search for the nearest points outside a range begins with
// this many days before and after the range.
const usualGap = 7

// pointsAround returns the stored points of the days from..to, the oldest first. It adds the nearest earlier point. If the last day has no point but
// an earlier day has one, pointsAround also adds the nearest later point. The result can have further points outside the range.
func (o *Org) pointsAround(ctx context.Context, video uuid.UUID, from, to db.Date) ([]Point, error) {
	points, err := o.scanPoints(ctx, o.s.queries.storedPoints, video, from-usualGap, to+usualGap)
	if err != nil {
		return nil, err
	}
	if len(points) == 0 || points[0].Day >= from {
		older, err := o.scanPoints(ctx, o.s.queries.newestPoints, video, 0, from-usualGap-1)
		if err != nil {
			return nil, err
		}
		if n := len(older); n > 0 {
			points = append(older[n-1:], points...)
		}
	}
	if n := len(points); n > 0 && points[n-1].Day < to && to+usualGap < o.s.db.Now().Day() {
		newer, err := o.scanPoints(ctx, o.s.queries.oldestPoints, video, to+usualGap+1, MaxDate)
		if err != nil {
			return nil, err
		}
		points = append(points, newer[:min(1, len(newer))]...)
	}
	return points, nil
}

// MaxDate is the last day that the store accepts: 9999-12-31.
const MaxDate db.Date = 2932896

// lastKnownCounts returns, for each count, the last exact value from a day before the first of the given points. The caller needs these values
// because a point gets the quality "corrected" if a count is lower than the last exact value. The values can come from days long before the
// requested range, so that the quality of a point does not depend on the range.
func (o *Org) lastKnownCounts(ctx context.Context, video uuid.UUID, points []Point, from, to db.Date) (Counts, error) {
	var seen, before Counts
	wanted := false
	for _, p := range points {
		if p.Source != nil && strings.HasSuffix(*p.Source, roundingMark) {
			continue
		}
		was := seen.All()
		for n, count := range p.All() {
			wanted = wanted || (count != nil && was[n] == nil && p.Day >= from && p.Day <= to)
		}
		seen.Update(p.Counts)
	}
	if !wanted || points[0].Day >= from { // pointsAround adds the nearest point before "from"; if it has added none, the video has no earlier points
		return before, nil
	}
	// Each subquery reads points of the video along the primary key, the newest first. It stops at the first point that has the count. In the worst
	// case, it reads all points of the video.
	const last = `(SELECT k.%[1]s FROM (
SELECT d.day, d.weekly, d.%[1]s FROM (SELECT day, 0 AS weekly, %[1]s FROM snapshots_daily WHERE organisation_id = ? AND video_id = ? AND day < ? AND %[1]s IS NOT NULL AND source NOT LIKE ? ORDER BY day DESC LIMIT 1) AS d
UNION ALL
SELECT w.day, w.weekly, w.%[1]s FROM (SELECT day, 1 AS weekly, %[1]s FROM snapshots_weekly WHERE organisation_id = ? AND video_id = ? AND day < ? AND %[1]s IS NOT NULL AND source NOT LIKE ? ORDER BY day DESC LIMIT 1) AS w
) AS k ORDER BY k.day DESC, k.weekly LIMIT 1) AS %[1]s`
	var lasts []string
	var args []any
	for _, count := range MetricNames("") {
		lasts = append(lasts, fmt.Sprintf(last, count))
		args = append(args, o.id, video, points[0].Day, "%"+roundingMark, o.id, video, points[0].Day, "%"+roundingMark)
	}
	err := o.s.db.Read(ctx).Raw("SELECT "+strings.Join(lasts, ", "), args...).Scan(&before).Error
	return before, db.Translate(err)
}

// pointColumns are the columns of a stored point.
var pointColumns = "day, " + MetricColumns("{m}") + ", source, fetched_at"

// storedPoints is a SQL query for the daily and weekly points of a video in a range of days.
var storedPoints = "SELECT " + pointColumns + `, 0 AS weekly FROM snapshots_daily WHERE organisation_id = @org AND video_id = @video AND day BETWEEN @from AND @to
UNION ALL
SELECT ` + pointColumns + ", 1 AS weekly FROM snapshots_weekly WHERE organisation_id = @org AND video_id = @video AND day BETWEEN @from AND @to"

// outermostPoints is a SQL query for one daily and one weekly point of a video in a range of days. Replace {order} by ASC for the oldest points, and
// by DESC for the newest points. The daily and the weekly point can be of the same day.
var outermostPoints = "SELECT " + pointColumns + ", weekly FROM (SELECT " + pointColumns + `, 0 AS weekly FROM snapshots_daily
 WHERE organisation_id = @org AND video_id = @video AND day BETWEEN @from AND @to ORDER BY day {order} LIMIT 1) AS d
UNION ALL
SELECT ` + pointColumns + ", weekly FROM (SELECT " + pointColumns + `, 1 AS weekly FROM snapshots_weekly
 WHERE organisation_id = @org AND video_id = @video AND day BETWEEN @from AND @to ORDER BY day {order} LIMIT 1) AS w`

// pointsInOrder is the ORDER BY clause of the queries storedPoints and outermostPoints.
const pointsInOrder = " ORDER BY day, weekly"

// scanPoints returns stored points of a video, the oldest first. The query must be the text of storedPoints or outermostPoints, followed by
// pointsInOrder. The points are of the days from..to. If a day has a daily and a weekly point, appendPoint joins them to one point.
func (o *Org) scanPoints(ctx context.Context, query db.StaticQuery, video uuid.UUID, from, to db.Date) ([]Point, error) {
	var points []Point
	args := map[string]any{"org": o.id, "video": video, "from": from, "to": to}
	err := o.eachRow(ctx, query.Select(func(name string) any { return args[name] }, func(row *db.Values) error {
		points = appendPoint(points, readPoint(row))
		return nil
	}))
	return points, err
}

// setStoredQuality sets the quality of a stored point to QualityRounded if its source ends with roundingMark, and otherwise to QualityMeasured. It
// also removes the mark from the source.
func (p *Point) setStoredQuality() {
	p.Quality = QualityMeasured
	if p.Source == nil {
		return
	}
	if name, rounded := strings.CutSuffix(*p.Source, roundingMark); rounded {
		p.Quality, p.Source = QualityRounded, new(name)
	}
}

// fillGaps returns the stored and interpolated points of the days from..to, the newest first. The given stored points must be ordered by day, the
// oldest first. The parameter knownBefore has the last known value of each count before the first stored point.
//
// fillGaps also sets the quality of the stored points: "rounded" if the source has rounded a count, "corrected" if a count is lower than its last
// exact value, and otherwise "measured".
func fillGaps(knownBefore Counts, stored []Point, from, to db.Date) []Point {
	for i := range stored {
		p := &stored[i]
		p.setStoredQuality()
		if p.Quality == QualityRounded {
			continue // rounded counts are not compared with counts of other days
		}
		if p.hasLowerCountThan(knownBefore) {
			p.Quality = QualityCorrected
		}
		knownBefore.Update(p.Counts)
	}
	if len(stored) == 0 {
		return []Point{}
	}
	days := max(0, min(to, stored[len(stored)-1].Day)-max(from, stored[0].Day)+1) // highest number of points that can be returned
	i := interpolation{out: make([]Point, 0, days), counts: make([]int64, 0, MetricCount*int(days))}
	for n := len(stored) - 1; n >= 0; n-- {
		if day := stored[n].Day; day >= from && day <= to {
			i.out = append(i.out, stored[n])
		}
		if n > 0 {
			i.appendBetween(&stored[n-1], &stored[n], from, to)
		}
	}
	return i.out
}

// interpolation collects interpolated points. The memory of its two slices is allocated once, for all points. Allocating each count separately would
// take longer than computing it.
type interpolation struct {
	out    []Point
	counts []int64 // the counts of the interpolated points; the pointers in the points lead to elements of this slice
}

// appendBetween appends interpolated points for the days between two stored points, the newest first. It leaves out days before "from" and days after
// "to". The counts are interpolated linearly and rounded down. So the values of a rising count never fall and never exceed the count of the later
// point.
func (i *interpolation) appendBetween(a, b *Point, from, to db.Date) {
	before, after, span := a.All(), b.All(), int64(b.Day-a.Day)
	for day := min(b.Day-1, to); day > a.Day && day >= from; day-- {
		i.out = append(i.out, Point{Day: day, Provenance: Provenance{Quality: QualityInterpolated}})
		for n, count := range i.out[len(i.out)-1].Fields() {
			if before[n] == nil || after[n] == nil {
				continue
			}
			// The multiplication has two parts, because diff*passed can overflow for very large counts.
			passed, diff := int64(day-a.Day), *after[n]-*before[n]
			i.counts = append(i.counts, *before[n]+diff/span*passed+diff%span*passed/span)
			*count = &i.counts[len(i.counts)-1]
		}
	}
}
