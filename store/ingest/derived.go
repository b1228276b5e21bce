package ingest

import (
	"maps"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// CountUploads updates the table organisation_uploads after the upload dates of videos have changed. before[i] is the video after[i] before
// the change.
func CountUploads(tx *gorm.DB, before, after []store.Video) error {
	type orgDay struct {
		org uuid.UUID
		day db.Date
	}
	counts := map[orgDay]int64{}
	for i := range after {
		org, was, is := after[i].OrganisationID, before[i].UploadedAt, after[i].UploadedAt
		if is == nil || was != nil && *was == *is {
			continue
		}
		counts[orgDay{org, *is}]++
		if was != nil { // a later fetch has corrected the date
			counts[orgDay{org, *was}]--
		}
	}
	if len(counts) == 0 {
		return nil
	}
	rows, deletes := make([][]any, 0, len(counts)), []db.Write{}
	for of, n := range counts {
		rows = append(rows, []any{of.org, of.day, n})
		if n < 0 {
			// A day without uploads must have no row, because each row is a point of the history.
			deletes = append(deletes, db.Write{Statement: "DELETE FROM organisation_uploads WHERE organisation_id = ? AND day = ? AND uploads <= 0", Args: []any{of.org, of.day}})
		}
	}
	err := db.Insert(tx, "organisation_uploads", []string{"organisation_id uuid", "day date", "uploads bigint"}, rows,
		"ON CONFLICT (organisation_id, day) DO UPDATE SET uploads = organisation_uploads.uploads + excluded.uploads")
	if err != nil {
		return err
	}
	return db.RunWrites(tx, deletes...)
}

// StatementsForTotals returns the statements that update the organisations' totals after sums have changed. They change each total by the difference
// between the sum in sumsAfter and the sum in sumsBefore.
func StatementsForTotals(tx *gorm.DB, sumsBefore, sumsAfter map[uuid.UUID]store.VideoSums) []db.Write {
	columns := append([]string{"organisation_id uuid", "first_views bigint"}, db.MetricDefinitions("")...)
	orgs := db.Distinct(slices.Collect(maps.Keys(sumsAfter)))
	rows := make([][]any, len(orgs))
	for i, org := range orgs {
		change := sumsAfter[org]
		change.Subtract(sumsBefore[org].Sums)
		rows[i] = append([]any{org, change.FirstViews - sumsBefore[org].FirstViews}, change.Values()...)
	}
	return db.OrgRows{Name: "change", Columns: columns, Rows: rows}.StatementsForExec(tx, `UPDATE organisation_totals SET first_views = organisation_totals.first_views + change.first_views,
 `+db.MetricColumns("{m} = organisation_totals.{m} + change.{m}")+`
 FROM change WHERE organisation_totals.organisation_id = {org}`)
}

// GrowthPeriods are the periods of store.Growth in days.
var GrowthPeriods = [...]db.Date{1, 7, 14, 30}

// ViewsBefore has, for each of GrowthPeriods, the last known views of a video so many days before a fetch. They are nil if no views were known.
type ViewsBefore [len(GrowthPeriods)]*int64

// earlierViews has the views of a video before a fetch.
type earlierViews struct {
	video   db.RowKey
	before  ViewsBefore
	lastDay *db.Date // day of the last daily point that has views; if the fetch reports views, the query returns nil, and computeGrowth uses the day of the fetch
}

// earlierViewsColumns are the columns of the query in the method computeGrowth.
var earlierViewsColumns = []db.Column[earlierViews]{
	{Name: "organisation_id", Set: func(e *earlierViews, row *db.Values, i int) { e.video.Org = row.ID(i) }},
	{Name: "id", Set: func(e *earlierViews, row *db.Values, i int) { e.video.ID = row.ID(i) }},
	{Name: "v1", Set: func(e *earlierViews, row *db.Values, i int) { e.before[0] = row.OptionalInt(i) }},
	{Name: "v7", Set: func(e *earlierViews, row *db.Values, i int) { e.before[1] = row.OptionalInt(i) }},
	{Name: "v14", Set: func(e *earlierViews, row *db.Values, i int) { e.before[2] = row.OptionalInt(i) }},
	{Name: "v30", Set: func(e *earlierViews, row *db.Values, i int) { e.before[3] = row.OptionalInt(i) }},
	{Name: "last_day", Set: func(e *earlierViews, row *db.Values, i int) { e.lastDay = row.OptionalDate(i) }},
}

// computeGrowth sets the growth fields and the first views of the videos, without writing the videos to the database. The points of this fetch need not
// be stored yet.
func (w videoWriter) computeGrowth(videos []measuredVideo) error {
	if len(videos) == 0 {
		return nil
	}
	byKey := make(map[db.RowKey]measuredVideo, len(videos))
	for _, v := range videos {
		byKey[v.Key()] = v
	}
	keys := db.SortedKeys(byKey)
	rows := make([][]any, len(keys))
	for i, key := range keys {
		rows[i] = []any{key.Org, key.ID, w.outcomes[key].Facts.Views != nil}
	}
	wanted := db.OrgRows{Name: "wanted", Columns: []string{"organisation_id uuid", "id uuid", "reports_views boolean"}, Rows: rows}
	// The last daily point can be older than the last weekly point. If both are of the same day, the daily point counts.
	const before = `(SELECT p.views FROM (
 SELECT * FROM (SELECT d.day, d.views, 0 AS weekly FROM snapshots_daily d WHERE d.organisation_id = {org} AND d.video_id = wanted.id AND d.day <= ? AND d.views IS NOT NULL ORDER BY d.day DESC LIMIT 1) AS d
 UNION ALL SELECT * FROM (SELECT k.day, k.views, 1 AS weekly FROM snapshots_weekly k WHERE k.organisation_id = {org} AND k.video_id = wanted.id AND k.day <= ? AND k.views IS NOT NULL ORDER BY k.day DESC LIMIT 1) AS k
 ) AS p ORDER BY p.day DESC, p.weekly LIMIT 1)`
	// If the fetch reports no views, this expression finds the day of the last daily point with views. If the
	// fetch reports views, it is NULL, because then the day of the fetch is used.
	const lastDay = `CASE WHEN NOT wanted.reports_views THEN (SELECT d.day FROM snapshots_daily d WHERE d.organisation_id = {org} AND d.video_id = wanted.id AND d.views IS NOT NULL ORDER BY d.day DESC LIMIT 1) END`
	day := w.fetchedAt.Day()
	earlier, err := db.FindColumns(w.tx, wanted, earlierViewsColumns, `SELECT wanted.organisation_id, wanted.id, `+before+` AS v1, `+before+` AS v7, `+before+` AS v14, `+before+` AS v30, `+lastDay+` AS last_day FROM wanted`,
		day-1, day-1, day-7, day-7, day-14, day-14, day-30, day-30)
	for _, r := range earlier {
		v := byKey[r.video]
		if w.outcomes[r.video].Facts.Views != nil {
			r.lastDay = &day
		}
		// The first views are those at the end of the first day with views. This fetch sets them if the video had no views. It also replaces them if an
		// earlier fetch of today set them: then no earlier day has stored views (r.before[0] is nil), and the first views equal the latest views before
		// this fetch. Unknown first views of a video that had views stay unknown.
		if views := v.viewsBefore; views == nil || r.before[0] == nil && v.FirstViews != nil && *v.FirstViews == *views {
			v.FirstViews = v.Latest.Views
		}
		SetGrowth(v.Video, day, r.lastDay, r.before)
	}
	return err
}

// SetGrowth computes the fields of Growth after a fetch on fetchDay. The argument lastDayWithViews is nil if no point has views.
func SetGrowth(v *store.Video, fetchDay db.Date, lastDayWithViews *db.Date, before ViewsBefore) {
	for n, days := range GrowthPeriods {
		// The growth in a period is unknown if no point in the period has views.
		if lastDayWithViews == nil || *lastDayWithViews <= fetchDay-days {
			before[n] = nil
		}
	}
	v.Growth = store.Growth{
		Increase1d: Increase(v.Latest.Views, before[0]), Increase7d: Increase(v.Latest.Views, before[1]),
		Increase14d: Increase(v.Latest.Views, before[2]), Increase30d: Increase(v.Latest.Views, before[3]),
	}
	if b := before[1]; v.Latest.Views != nil && b != nil {
		v.ViewsGained7d = new(*v.Latest.Views - *b)
	}
}

// Increase returns the growth from the earlier to the latest number in percent. It returns nil if one of them is nil, or if the earlier number is 0.
func Increase(latest, earlier *int64) *float64 {
	if latest == nil || earlier == nil || *earlier == 0 {
		return nil
	}
	return new((float64(*latest) - float64(*earlier)) / float64(*earlier) * 100)
}
