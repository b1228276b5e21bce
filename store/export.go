package store

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// VideoHistory is a video with the points of its history.
type VideoHistory struct {
	Video  Video
	Points []Point // the points by day, the oldest first
}

// ExportQuery selects the videos and days that Export returns.
type ExportQuery struct {
	From, To       db.Date   // first and last day of the histories
	Interpolated   bool      // include interpolated points for days without a stored point
	IncludeRemoved bool      // include videos whose tracking was stopped
	After          uuid.UUID // start after the video with this id; the zero id means start with the first video
	Limit          int       // highest number of videos to return
}

// Export returns up to q.Limit videos with their histories, ordered by the videos' ids. It includes videos without points. If it returns
// fewer than q.Limit videos, there are no more videos.
func (o *Org) Export(ctx context.Context, q ExportQuery) ([]VideoHistory, error) {
	videos := o.q(ctx, "videos").Order("videos.id").Limit(q.Limit)
	if q.After != uuid.Nil {
		videos = videos.Where("videos.id > ?", q.After)
	}
	if !q.IncludeRemoved {
		videos = videos.Where("NOT videos.removed")
	}
	var found []Video
	if err := videos.Find(&found).Error; err != nil {
		return nil, db.Translate(err)
	}
	out, at := make([]VideoHistory, len(found)), make(map[uuid.UUID]int, len(found))
	ids := make([]uuid.UUID, len(found))
	for n, v := range found {
		out[n].Video, at[v.ID], ids[n] = v, n, v.ID
	}
	for chunk := range slices.Chunk(ids, db.InsertChunk) {
		// One statement reads all points of a video. So a roll-up that runs at the same time neither hides nor duplicates points.
		columns := "video_id, day, " + MetricColumns("{m}") + ", fetched_at, source"
		var rows []struct {
			VideoID uuid.UUID
			Point
		}
		err := o.s.db.Read(ctx).Raw(`SELECT `+columns+`, 0 AS weekly FROM snapshots_daily WHERE organisation_id = ? AND video_id IN ?
UNION ALL SELECT `+columns+`, 1 AS weekly FROM snapshots_weekly WHERE organisation_id = ? AND video_id IN ? ORDER BY day, weekly`,
			o.id, chunk, o.id, chunk).Scan(&rows).Error
		if err != nil {
			return nil, db.Translate(err)
		}
		for _, r := range rows {
			of := &out[at[r.VideoID]]
			// While a week is rolled up, snapshots_daily and snapshots_weekly can both have a point of one day. Counts that the daily point
			// lacks come from the weekly point.
			if n := len(of.Points); n > 0 && of.Points[n-1].Day == r.Day {
				r.Update(of.Points[n-1].Counts)
				of.Points[n-1].Counts = r.Counts
				continue
			}
			of.Points = append(of.Points, r.Point)
		}
	}
	for n := range out {
		out[n].Points = q.filled(out[n].Points)
	}
	return out, nil
}

// filled returns the points of the days q.From to q.To, the oldest first. It includes interpolated points only if q.Interpolated is true.
func (q ExportQuery) filled(stored []Point) []Point {
	points := fill(Counts{}, stored, q.From, q.To)
	slices.Reverse(points)
	if q.Interpolated {
		return points
	}
	return slices.DeleteFunc(points, func(p Point) bool { return p.Quality == QualityInterpolated })
}
