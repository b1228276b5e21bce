package store

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// VideoHistory is a video with its points.
type VideoHistory struct {
	Video  Video
	Points []Point // the oldest first
}

// ExportQuery says which histories are wanted.
type ExportQuery struct {
	From, To       db.Date // both inclusive
	Interpolated   bool    // also the days between two points that nobody measured
	IncludeRemoved bool
	After          uuid.UUID // go on after the video of that id; the zero id begins
	Limit          int       // of videos
}

// Export returns the next videos, in the order of their ids, with their histories, also those that have none. Fewer than
// Limit mean that there are no more.
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
		// All of a video's points in one statement, so that a roll-up in between shows them once.
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
			// A week's point that is still there as a daily one as well counts once, with what it has from days that are dropped.
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

// filled keeps the days that are wanted, the oldest first, and interpolates where that is.
func (q ExportQuery) filled(stored []Point) []Point {
	points := fill(Counts{}, stored, q.From, q.To)
	slices.Reverse(points)
	if q.Interpolated {
		return points
	}
	return slices.DeleteFunc(points, func(p Point) bool { return p.Quality == QualityInterpolated })
}
