package store

import (
	"context"
	"math"
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

// Export returns up to q.Limit videos with their histories, ordered by id. It includes videos
// without points. If it returns fewer than q.Limit videos, no more follow.
func (o *Org) Export(ctx context.Context, q ExportQuery) ([]VideoHistory, error) {
	videos := o.scopedQuery(ctx, "videos").Order("videos.id").Limit(q.Limit)
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
	ids := make([]uuid.UUID, len(found))
	for n, v := range found {
		ids[n] = v.ID
	}
	out := make([]VideoHistory, len(found))
	for chunk := range slices.Chunk(ids, db.InsertChunk) {
		points, err := o.storedPointsOf(ctx, chunk, 0, 0, math.MaxInt64)
		if err != nil {
			return nil, err
		}
		for n, v := range found {
			if of, ok := points[v.ID]; ok {
				out[n].Points = q.pointsInRange(of)
			}
		}
	}
	for n, v := range found {
		out[n].Video = v
	}
	return out, nil
}

// pointsInRange returns the points of the days q.From to q.To, the oldest first. It includes interpolated points only if q.Interpolated is true.
func (q ExportQuery) pointsInRange(stored []Point) []Point {
	points := fillGaps(db.Counts{}, stored, q.From, q.To)
	slices.Reverse(points)
	if q.Interpolated {
		return points
	}
	return slices.DeleteFunc(points, func(p Point) bool { return p.Quality == QualityInterpolated })
}
