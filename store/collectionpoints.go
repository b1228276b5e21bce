package store

import (
	"context"
	"slices"
	"strings"

	"github.com/reeltally/reeltally/store/internal/db"
)

// The queries in this file read the stored points from which CollectionTotals computes its counts.

// totalsColumns replaces {columns} in collectionTotalsPoints and lastKnownPoints. For a report, readPoints adds the columns source and fetched_at. A video
// is named by its number in the list "listed", not by its id. On SQLite, the texts of ids and sources would need more memory than the counts.
var totalsColumns = "number, day, " + db.MetricColumns("{m}") + ", source LIKE '%" + roundingMark + "' AS rounded"

// collectionTotalsPoints is a SQL query for stored points of the videos in the list "listed". It selects the points that determine the counts of the
// days from @from to @to: the last daily and weekly point up to @from, the points after them, and the first ones from @to on. A weekly point
// has the counts of the last day of its week. For the first week of a video, the query adds a point with the views of the first day, because they are not computed from a point
// of an earlier week. The query does not sort the rows, because
// sorting takes longer than reading.
var collectionTotalsPoints = `, wanted AS MATERIALIZED (SELECT l.number, l.id,
  (SELECT MAX(bd.day) FROM snapshots_daily bd WHERE bd.organisation_id = @org AND bd.video_id = l.id AND bd.day <= @from) AS first_day,
  (SELECT MIN(ed.day) FROM snapshots_daily ed WHERE ed.organisation_id = @org AND ed.video_id = l.id AND ed.day >= @to) AS last_day,
  (SELECT MAX(bw.week) FROM snapshots_weekly bw WHERE bw.organisation_id = @org AND bw.video_id = l.id AND bw.week <= @before) AS first_week,
  (SELECT MIN(ew.week) FROM snapshots_weekly ew WHERE ew.organisation_id = @org AND ew.video_id = l.id AND ew.week >= @to) AS last_week
  FROM listed l)
SELECT FALSE AS weekly, {columns} FROM wanted
  CROSS JOIN snapshots_daily d WHERE d.organisation_id = @org AND d.video_id = wanted.id
   AND d.day >= COALESCE(wanted.first_day, @from) AND d.day <= COALESCE(wanted.last_day, @to)
UNION ALL
SELECT TRUE AS weekly, {columns} FROM wanted
  CROSS JOIN snapshots_weekly w WHERE w.organisation_id = @org AND w.video_id = wanted.id
   AND w.week >= COALESCE(wanted.first_week, @before) AND w.week <= COALESCE(wanted.last_week, @to)
UNION ALL
SELECT TRUE AS weekly, number, w.first_day AS day, w.first_day_views AS views` + strings.Repeat(", NULL", MetricCount-1) + `, FALSE AS rounded{unknown} FROM wanted
  CROSS JOIN snapshots_weekly w WHERE wanted.first_week IS NULL AND w.organisation_id = @org AND w.video_id = wanted.id
   AND w.week = (SELECT MIN(fw.week) FROM snapshots_weekly fw WHERE fw.organisation_id = @org AND fw.video_id = wanted.id)
   AND w.first_day < w.day AND w.first_day <= @to AND w.first_day_views IS NOT NULL`

// lastKnownPoints is a SQL query for points of the videos in the list "listed". For each video, it selects the last daily and the last weekly point up to
// @from that fulfil the condition {known}: see anyKnown.
var lastKnownPoints = `, known AS MATERIALIZED (SELECT l.number, l.id,
  (SELECT MAX(p.day) FROM snapshots_daily p WHERE p.organisation_id = @org AND p.video_id = l.id AND p.day <= @from AND ({known})) AS last_day,
  (SELECT MAX(p.week) FROM snapshots_weekly p WHERE p.organisation_id = @org AND p.video_id = l.id AND p.week <= @before AND ({known})) AS last_week
  FROM listed l)
SELECT FALSE AS weekly, {columns} FROM known CROSS JOIN snapshots_daily d
  WHERE d.organisation_id = @org AND d.video_id = known.id AND d.day = known.last_day
UNION ALL
SELECT TRUE AS weekly, {columns} FROM known CROSS JOIN snapshots_weekly w
  WHERE w.organisation_id = @org AND w.video_id = known.id AND w.week = known.last_week`

// totalsReader reads the points that determine the counts of videos in the period of a query and on the day before it.
type totalsReader struct {
	org    *Org
	query  CollectionTotalsQuery
	from   db.Date    // the first day whose counts are needed
	read   int        // number of points that were read
	points pointLists // the result of the last call of pointsOf
	found  pointLists // the result of the last search for counts
}

// newTotalsReader returns a totalsReader for the days from `from` to q.To, whose method pointsOf gets at most maxVideos videos.
func newTotalsReader(o *Org, q CollectionTotalsQuery, from db.Date, maxVideos int) *totalsReader {
	newLists := func() pointLists { return pointLists{make([][]Point, maxVideos), make([][]Point, maxVideos)} }
	return &totalsReader{org: o, query: q, from: from, points: newLists(), found: newLists()}
}

// pointLists has the points of several videos. The elements with the same index in both lists are the points of one video.
type pointLists struct{ daily, weekly [][]Point }

// pointsOf returns the points of each video, the oldest first. They are valid until the next call.
func (r *totalsReader) pointsOf(ctx context.Context, videos []CollectionVideo) ([][]Point, error) {
	listed := make([][]any, len(videos))
	for n := range videos {
		listed[n] = []any{n, videos[n].ID}
	}
	// A weekly point can be up to 6 days after the Monday of its week, and the queries compare these Mondays with lastWeek.
	lastWeek := r.from - 6
	if err := r.readPoints(ctx, &r.points, collectionTotalsPoints, listed, r.from, lastWeek); err != nil {
		return nil, err
	}
	points := r.points.daily[:len(videos)]
	// If the last point up to the day r.from lacks counts, search for the last point that has at least one of these counts. Repeat the search for the
	// counts that this point lacks.
	searches := map[countSet]pointSearch{}
	add := func(n int, of []Point, wanted countSet) {
		if missing, last := missingCounts(of, r.from, wanted); missing != (countSet{}) {
			s := searches[missing]
			searches[missing] = pointSearch{append(s.listed, listed[n]), max(s.until, last)}
		}
	}
	for n := range videos {
		add(n, points[n], videos[n].counted)
	}
	for len(searches) > 0 {
		for wanted, s := range searches {
			delete(searches, wanted)
			query := strings.ReplaceAll(lastKnownPoints, "{known}", wanted.anyKnown("p."))
			if err := r.readPoints(ctx, &r.found, query, s.listed, s.until, min(s.until, lastWeek)); err != nil {
				return nil, err
			}
			for n, of := range r.found.daily[:len(videos)] {
				add(n, of, wanted)
				points[n] = mergePoints(append(points[n], of...))
			}
		}
	}
	return points, nil
}

// countSet is a set of metrics. The element n is true if the set contains the metric with index n in Counts.Fields.
type countSet [MetricCount]bool

// pointSearch is a search for points with at least one of certain counts. For each listed video, it finds the last such point up to the day "until".
type pointSearch struct {
	listed [][]any // the videos, as rows of the list "listed"
	until  db.Date
}

// missingCounts returns which of the wanted counts the last point up to a day lacks, and the day of this point. If there is no such point, it returns an
// empty set. The points are ordered by day.
func missingCounts(points []Point, until db.Date, wanted countSet) (missing countSet, last db.Date) {
	n := len(points)
	for n > 0 && points[n-1].Day > until {
		n--
	}
	if n == 0 {
		return missing, 0
	}
	for m, count := range points[n-1].All() {
		missing[m] = wanted[m] && count == nil
	}
	return missing, points[n-1].Day
}

// anyKnown returns a SQL condition that is true if a point has at least one of the counts. The prefix is that of the columns, such as "p.".
func (s countSet) anyKnown(prefix string) string {
	var conditions []string
	for n, column := range db.MetricNames(prefix) {
		if s[n] {
			conditions = append(conditions, column+" IS NOT NULL")
		}
	}
	return strings.Join(conditions, " OR ")
}

// readPoints runs one of the queries collectionTotalsPoints and lastKnownPoints. It empties the lists of into, and then stores the points of the video
// with the number n in into.daily[n], the oldest first. Each element of listed has the number and the id of a video. If there are too many points for a
// report, the error is a *LimitError.
func (r *totalsReader) readPoints(ctx context.Context, into *pointLists, query string, listed [][]any, from, before db.Date) error {
	into.clear()
	columns, unknown := totalsColumns, ""
	if r.query.ForReport {
		columns, unknown = columns+", source, fetched_at", ", NULL, NULL"
	}
	d := r.org.s.db
	list, args := db.WithRows(d.Read(ctx), "listed", []string{"number bigint", "id uuid"}, listed)
	q := d.Read(ctx).Raw(list+strings.NewReplacer("{columns}", columns, "{unknown}", unknown).Replace(query),
		append(args, map[string]any{"org": r.org.id, "from": from, "before": before, "to": r.query.To})...)
	err := d.EachRow(ctx, q, func(row *db.Values) error {
		if r.read++; r.query.ForReport && r.read > MaxReportPoints {
			return limitError(LimitTotals, "the videos of the collection have more than %d stored points; a report can contain at most %[1]d points. "+
				"Make one report for each of several smaller collections", MaxReportPoints)
		}
		p := Point{Day: row.Day(2)}
		for m, count := range p.Fields() {
			*count = row.OptionalInt(3 + m)
		}
		if row.IsTrue(3 + MetricCount) {
			p.Quality = QualityRounded
		}
		if r.query.ForReport {
			p.Source, p.FetchedAt = row.OptionalText(4+MetricCount), row.OptionalInstant(5+MetricCount)
		}
		of := &into.daily[row.Count(1)]
		if row.IsTrue(0) {
			of = &into.weekly[row.Count(1)]
		}
		*of = append(*of, p)
		return nil
	})
	for n, weekly := range into.weekly {
		into.daily[n] = mergePoints(append(into.daily[n], weekly...))
	}
	return err
}

// clear empties all lists. Points that are added later use the same memory again.
func (l *pointLists) clear() {
	for n := range l.daily {
		l.daily[n], l.weekly[n] = l.daily[n][:0], l.weekly[n][:0]
	}
}

// mergePoints sorts points by day, and makes one point of the points of the same day: the first one, with the counts that it lacks from the others.
// While a week is rolled up, a day can have two points. The weekly point then supplies the counts that the daily point lacks.
func mergePoints(points []Point) []Point {
	slices.SortStableFunc(points, func(a, b Point) int { return int(a.Day - b.Day) })
	merged := points[:0]
	for _, p := range points {
		merged = appendPoint(merged, p)
	}
	return merged
}
