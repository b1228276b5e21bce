package server

import (
	"context"
	"net/http"
	"time"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// shortestFetch is the minimum for the assumed duration of a fetch of videos. An export ends at least shortestFetch before now, even if no
// collector is running.
const shortestFetch = time.Minute

// ExportHistory answers GET /history/export with the stored history points of all videos. A point has the counts of one day.
func (s *Server) ExportHistory(ctx context.Context, r api.ExportHistoryRequestObject) (api.ExportHistoryResponseObject, error) {
	p := r.Params
	since, err := fromAPITimePtr(p.UpdatedSince)
	if err != nil {
		return nil, err
	}
	page, err := s.readPage(ctx, pageParams{limit: p.Limit, cursor: p.Cursor}, store.Order{Column: "latest_updated_at"}, nil, since)
	if err != nil {
		return nil, err
	}
	if page.until == 0 { // page.until is 0 only for the first page; the cursors of later pages contain it
		// A point has the time at which its fetch began, but is stored after the fetch. So the export must end before the oldest fetch whose point
		// may be missing.
		oldest, err := s.store.Queue.OldestFetch(ctx, shortestFetch)
		if err != nil {
			return nil, err
		}
		page.until = store.InstantOf(oldest.Time().Truncate(time.Minute)) // a whole minute, so that the ETag stays the same for a minute
	}
	query := store.PointsQuery{Until: page.until, From: s.oldestDay(callerFrom(ctx))}
	if since != nil {
		query.Since = *since
	}
	until := toAPITime(query.Until)
	list, err := answerList(ctx, s, listRequest[store.VideoPoints]{page: page, notInURL: []any{query.Until}, encode: appendVideoPoints,
		find: func(o *store.Org, w store.Window, _ func(*store.VideoPoints) error) (*store.List[store.VideoPoints], error) {
			query.Window = w
			return o.ListPoints(ctx, query)
		},
		otherMembers: func(_ *store.List[store.VideoPoints], p api.Pagination) (any, error) {
			return struct {
				ExportedUntil string  `json:"exported_until"`
				NextCursor    *string `json:"next_cursor"`
			}{until, p.NextCursor}, nil
		}})
	return exportResponse{list, until}, err
}

// exportResponse is the response of exportHistory.
type exportResponse struct {
	listResponse
	until string // time up to which the export is complete
}

// VisitExportHistoryResponse implements the generated response interface of exportHistory.
func (r exportResponse) VisitExportHistoryResponse(w http.ResponseWriter) error {
	w.Header().Set("Exported-Until", r.until)
	return r.write(w)
}

// appendVideoPoints appends the points of a video as JSON, separated by commas. If view masks metrics, it appends only the last point, and the
// counts are null.
func appendVideoPoints(out []byte, v *store.VideoPoints, view View) ([]byte, error) {
	points := v.Points
	if view.masked && len(points) > 1 {
		points = points[len(points)-1:]
	}
	for i := range points {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendExportedPoint(out, v, &points[i], view)
	}
	return out, nil
}

// appendExportedPoint appends the JSON of a point of a video. If view masks metrics, the counts are null.
func appendExportedPoint(out []byte, v *store.VideoPoints, p *store.Point, view View) []byte {
	out = appendID(append(out, `{"ad_id":`...), v.ID)
	out = appendText(append(out, `,"ad_link":`...), v.Link)
	out = appendCount(append(out, `,"bookmarks":`...), view.Count(p.Bookmarks))
	out = appendCount(append(out, `,"comments":`...), view.Count(p.Comments))
	out = appendDate(append(out, `,"date":`...), p.Day)
	out = appendMaskedTime(append(out, `,"fetched_at":`...), p.FetchedAt, view)
	out = appendCount(append(out, `,"likes":`...), view.Count(p.Likes))
	if view.masked {
		out = append(out, `,"metrics_masked":true`...)
	}
	out = appendText(append(out, `,"platform":`...), string(v.Platform))
	rounded, source := p.Quality == store.QualityRounded, p.Source
	if view.masked {
		out, source = append(out, `,"rounded":null`...), nil
	} else if rounded {
		out = append(out, `,"rounded":true`...)
	} else {
		out = append(out, `,"rounded":false`...)
	}
	out = appendCount(append(out, `,"shares":`...), view.Count(p.Shares))
	out = appendOrNull(append(out, `,"source":`...), source, appendText)
	out = appendCount(append(out, `,"views":`...), view.Count(p.Views))
	return append(out, '}')
}
