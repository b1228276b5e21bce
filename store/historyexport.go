package store

import (
	"context"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// VideoPoints is a video with stored points of its history.
type VideoPoints struct {
	ID        uuid.UUID
	Platform  link.Platform
	Link      string
	UpdatedAt db.Instant // time of the last fetch that gave counts
	Points    []Point    // the points by day, the oldest first; their quality is QualityRounded or QualityMeasured
}

// PointsQuery says which points of which videos are exported.
type PointsQuery struct {
	// The query returns points that were fetched from Since to Until, both inclusive. It lists only
	// videos whose last fetch with counts was at Since or later.
	Since, Until db.Instant
	From         db.Date   // first day of the points
	Window       db.Window // which part of the list of videos is returned
}

// pointOrders are the columns by which ListPoints orders videos.
var pointOrders = db.SortColumns{"latest_updated_at": VideoOrders["latest_updated_at"]}

// pointVideoColumns lists the columns that are read from the table "videos" into a VideoPoints.
var pointVideoColumns = []db.Column[VideoPoints]{
	{Name: "id", Set: func(v *VideoPoints, row *db.Values, i int) { v.ID = row.ID(i) }},
	{Name: "platform", Set: func(v *VideoPoints, row *db.Values, i int) { v.Platform = link.Platform(row.String(i)) }},
	{Name: "link", Set: func(v *VideoPoints, row *db.Values, i int) { v.Link = row.String(i) }},
	{Name: "latest_updated_at", Set: func(v *VideoPoints, row *db.Values, i int) { v.UpdatedAt = row.Instant(i) }},
}

// pointBytes is an upper bound of the number of bytes that a point takes in JSON. It includes the fields of the point's video, except the
// link.
const pointBytes = 512

// ListPoints returns videos with stored points, ordered by their last fetch, the oldest first. If a
// video is fetched while pages are read, a later page lists it again.
func (o *Org) ListPoints(ctx context.Context, query PointsQuery) (*db.List[VideoPoints], error) {
	// The list includes stopped videos, and has no total.
	videos := o.scopedQuery(ctx, "videos").Where("videos.latest_updated_at >= ?", query.Since)
	spec := db.ListSpec[VideoPoints]{Sort: pointOrders, Table: "videos", Columns: pointVideoColumns, ID: func(v *VideoPoints) uuid.UUID { return v.ID },
		Complete: func(ctx context.Context, rows []VideoPoints, _ int64) (completed int, bytes int64, err error) {
			ids := make([]uuid.UUID, len(rows))
			for n := range rows {
				ids[n] = rows[n].ID
			}
			// The caller passes the same Until for all pages. So the pages leave out only points that were
			// changed by fetches after Until.
			points, err := o.storedPointsOf(ctx, ids, query.From, query.Since, query.Until)
			for n := range rows {
				rows[n].Points = points[rows[n].ID]
				for i := range rows[n].Points {
					rows[n].Points[i].setStoredQuality()
				}
				bytes += int64(len(rows[n].Points)) * (pointBytes + int64(len(rows[n].Link)))
			}
			return len(rows), bytes, err
		}}
	return db.ReadList(ctx, o.s.db, videos, spec, db.Order{Column: "latest_updated_at"}, query.Window)
}

// storedPointsOf returns a map from video ids to stored points, the oldest day first. Quality is
// not set, and Source can end with roundingMark.
func (o *Org) storedPointsOf(ctx context.Context, videos []uuid.UUID, firstDay db.Date, since, until db.Instant) (map[uuid.UUID][]Point, error) {
	q := o.s.db.Read(ctx)
	ofVideos, ids := db.AnyOf(q, "video_id", "@videos", videos)
	condition := " WHERE organisation_id = @org AND " + ofVideos + " AND day >= @from AND fetched_at BETWEEN @since AND @until"
	points := make(map[uuid.UUID][]Point, len(videos))
	// One statement reads all points. So a roll-up that runs at the same time neither hides nor duplicates points.
	q = q.Raw("SELECT "+pointColumns+", video_id, 0 AS weekly FROM snapshots_daily"+condition+
		" UNION ALL SELECT "+pointColumns+", video_id, 1 AS weekly FROM snapshots_weekly"+condition+" ORDER BY video_id, day, weekly",
		map[string]any{"org": o.id, "videos": ids, "from": firstDay, "since": since, "until": until})
	err := o.s.db.EachRow(ctx, q, func(row *db.Values) error {
		p, video := readPoint(row), row.ID(db.MetricCount+3)
		points[video] = appendPoint(points[video], p)
		return nil
	})
	return points, db.Translate(err)
}
