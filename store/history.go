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

// StoredSource returns the stored form of a point's source. If the source has probably rounded a
// count, the form ends with roundingMark.
func StoredSource(source string, rounded bool) string {
	if rounded {
		return source + roundingMark
	}
	return source
}

// Point has the counts of a video on one UTC day. A stored point has the last counts that were fetched on that day.
type Point struct {
	Day db.Date
	db.Counts
	Provenance
	// EngagementUnknown is true for an interpolated point if one of its two neighbours has a count of likes, comments, bookmarks or shares that the
	// other lacks. Without this count, the engagement would be too low.
	EngagementUnknown bool
}

// Engagement returns the engagement of the point's counts, or nil if it is unknown.
func (p *Point) Engagement() *int64 {
	if p.EngagementUnknown {
		return nil
	}
	return p.Counts.Engagement()
}

// History returns the points of the days "from" to "to", the newest first. It interpolates missing
// days between two stored points. For an unknown video, it returns ErrNotFound.
func (o *Org) History(ctx context.Context, ref Ref, from, to db.Date) ([]Point, error) {
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

// usualGap is the usual maximum number of days between two points of a tracked video. pointsAround
// first reads this many days before and after the range.
const usualGap = 7

// pointsAround returns the stored points of the days from..to, the oldest first. It adds the
// nearest earlier point, the nearest later point if necessary, and possibly further points.
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
	// The nearest later point is necessary only to interpolate the days after the last point.
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

// lastKnownCounts returns the last exact (not rounded) value of each count before points[0]. The caller compares
// these values with the points of the days from..to. If this comparison needs no earlier value, all values are nil.
func (o *Org) lastKnownCounts(ctx context.Context, video uuid.UUID, points []Point, from, to db.Date) (db.Counts, error) {
	var seen, before db.Counts
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
	// Each subquery reads the video's points by primary key, the newest first, until a point has
	// the count. In the worst case, it reads all points.
	const last = `(SELECT k.%[1]s FROM (
SELECT d.day, d.weekly, d.%[1]s FROM (SELECT day, 0 AS weekly, %[1]s FROM snapshots_daily WHERE organisation_id = ? AND video_id = ? AND day < ? AND %[1]s IS NOT NULL AND source NOT LIKE ? ORDER BY day DESC LIMIT 1) AS d
UNION ALL
SELECT w.day, w.weekly, w.%[1]s FROM (SELECT day, 1 AS weekly, %[1]s FROM snapshots_weekly WHERE organisation_id = ? AND video_id = ? AND day < ? AND %[1]s IS NOT NULL AND source NOT LIKE ? ORDER BY day DESC LIMIT 1) AS w
) AS k ORDER BY k.day DESC, k.weekly LIMIT 1) AS %[1]s`
	var lasts []string
	var args []any
	for _, count := range db.MetricNames("") {
		lasts = append(lasts, fmt.Sprintf(last, count))
		args = append(args, o.id, video, points[0].Day, "%"+roundingMark, o.id, video, points[0].Day, "%"+roundingMark)
	}
	err := o.s.db.Read(ctx).Raw("SELECT "+strings.Join(lasts, ", "), args...).Scan(&before).Error
	return before, db.Translate(err)
}

// pointColumns are the columns of a stored point.
var pointColumns = "day, " + db.MetricColumns("{m}") + ", source, fetched_at"

// storedPoints is a SQL query for the daily and weekly points of a video in a range of days.
var storedPoints = "SELECT " + pointColumns + `, 0 AS weekly FROM snapshots_daily WHERE organisation_id = @org AND video_id = @video AND day BETWEEN @from AND @to
UNION ALL
SELECT ` + pointColumns + ", 1 AS weekly FROM snapshots_weekly WHERE organisation_id = @org AND video_id = @video AND day BETWEEN @from AND @to"

// outermostPoints is a SQL query for the oldest or newest daily and weekly point in a range.
// Replace {order} by ASC (oldest) or DESC (newest).
var outermostPoints = "SELECT " + pointColumns + ", weekly FROM (SELECT " + pointColumns + `, 0 AS weekly FROM snapshots_daily
 WHERE organisation_id = @org AND video_id = @video AND day BETWEEN @from AND @to ORDER BY day {order} LIMIT 1) AS d
UNION ALL
SELECT ` + pointColumns + ", weekly FROM (SELECT " + pointColumns + `, 1 AS weekly FROM snapshots_weekly
 WHERE organisation_id = @org AND video_id = @video AND day BETWEEN @from AND @to ORDER BY day {order} LIMIT 1) AS w`

// pointsInOrder is the ORDER BY clause of the queries storedPoints and outermostPoints.
const pointsInOrder = " ORDER BY day, weekly"

// scanPoints returns a video's stored points of the days from..to, the oldest first. The query must
// be storedPoints or outermostPoints, followed by pointsInOrder.
func (o *Org) scanPoints(ctx context.Context, query db.StaticQuery, video uuid.UUID, from, to db.Date) ([]Point, error) {
	var points []Point
	args := map[string]any{"org": o.id, "video": video, "from": from, "to": to}
	err := o.eachRow(ctx, query.Select(args, func(row *db.Values) error {
		points = appendPoint(points, readPoint(row))
		return nil
	}))
	return points, err
}

// readPoint returns the point in a row. The columns of the row begin with pointColumns.
func readPoint(row *db.Values) Point {
	p := Point{Day: row.Day(0), Provenance: Provenance{Source: row.OptionalText(db.MetricCount + 1), FetchedAt: row.OptionalInstant(db.MetricCount + 2)}}
	for i, count := range p.Fields() {
		*count = row.OptionalInt(1 + i)
	}
	return p
}

// appendPoint adds the next point of a video to points. If p has the same day as the last point,
// appendPoint only fills missing counts of the last point.
func appendPoint(points []Point, p Point) []Point {
	last := len(points) - 1
	if last < 0 || points[last].Day != p.Day {
		return append(points, p)
	}
	// The last point and p are of the same day: the last point is the daily point, and p is the weekly point.
	p.Update(points[last].Counts)
	points[last].Counts = p.Counts
	return points
}

// setStoredQuality sets the quality of a stored point: QualityRounded if the name of the source ends with
// roundingMark, otherwise QualityMeasured. It removes the mark from this name.
func (p *Point) setStoredQuality() {
	p.Quality = QualityMeasured
	if p.Source == nil {
		return
	}
	if name, rounded := strings.CutSuffix(*p.Source, roundingMark); rounded {
		p.Quality, p.Source = QualityRounded, new(name)
	}
}

// fillGaps returns the stored and interpolated points of the days from..to, the newest first. It
// also sets the quality of the given points, which must be ordered by day.
func fillGaps(knownBefore db.Counts, stored []Point, from, to db.Date) []Point {
	for i := range stored {
		p := &stored[i]
		p.setStoredQuality()
		if p.Quality == QualityRounded {
			continue // rounded counts are not compared with counts of other days
		}
		// knownBefore has the last exact value of each count before p.
		if p.HasLowerCountThan(knownBefore) {
			p.Quality = QualityCorrected
		}
		knownBefore.Update(p.Counts)
	}
	if len(stored) == 0 {
		return []Point{}
	}
	days := max(0, min(to, stored[len(stored)-1].Day)-max(from, stored[0].Day)+1) // highest number of points that can be returned
	i := interpolation{out: make([]Point, 0, days), counts: make([]int64, 0, db.MetricCount*int(days))}
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

// appendBetween appends interpolated points for the days between two stored points, the newest
// first. It leaves out days outside from..to. The counts are interpolated linearly. If no count is known in both
// points, appendBetween appends nothing.
func (i *interpolation) appendBetween(a, b *Point, from, to db.Date) {
	before, after, span := a.All(), b.All(), int64(b.Day-a.Day)
	anyCount, engagementUnknown := false, false
	for n := range before {
		anyCount = anyCount || before[n] != nil && after[n] != nil
	}
	if !anyCount {
		return
	}
	addendsAfter := b.EngagementCounts()
	for n, addend := range a.EngagementCounts() {
		engagementUnknown = engagementUnknown || (addend == nil) != (addendsAfter[n] == nil)
	}
	for day := min(b.Day-1, to); day > a.Day && day >= from; day-- {
		i.out = append(i.out, Point{Day: day, Provenance: Provenance{Quality: QualityInterpolated}, EngagementUnknown: engagementUnknown})
		for n, count := range i.out[len(i.out)-1].Fields() {
			if before[n] == nil || after[n] == nil {
				continue
			}
			// The multiplication has two parts, because diff*passed can overflow for very large counts.
			passed, diff := int64(day-a.Day), *after[n]-*before[n]
			// The division rounds the change toward zero, so an interpolated count never lies beyond the count
			// of the later point.
			i.counts = append(i.counts, *before[n]+diff/span*passed+diff%span*passed/span)
			*count = &i.counts[len(i.counts)-1]
		}
	}
}
