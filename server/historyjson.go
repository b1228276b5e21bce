package server

import (
	"net/http"

	"github.com/reeltally/reeltally/store"
)

// videoHistoryResponse is the response of getVideoHistory.
type videoHistoryResponse struct {
	points  []store.Point // the history points, ordered by day, the newest first
	view    View
	quality bool // true if the response contains the quality, source and fetch time of each point
}

// VisitGetVideoHistoryResponse implements the generated response interface of getVideoHistory.
func (r videoHistoryResponse) VisitGetVideoHistoryResponse(w http.ResponseWriter) error {
	const usualBytes = 160 // approximate size of the JSON of a history point, in bytes
	out := append(make([]byte, 0, usualBytes*len(r.points)), '[')
	for i := range r.points {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendVideoHistoryPoint(out, &r.points[i], r.view, r.quality)
	}
	return writeJSON(w, http.StatusOK, append(out, ']'))
}

// appendVideoHistoryPoint appends the JSON of the counts of a video on one day. If view
// masks metrics, the counts are null.
func appendVideoHistoryPoint(out []byte, p *store.Point, view View, withQuality bool) []byte {
	// A masked response has no quality, source and fetch time.
	withQuality = withQuality && !view.masked
	out = appendCount(append(out, `{"bookmarks":`...), view.Count(p.Bookmarks))
	out = appendCount(append(out, `,"comments":`...), view.Count(p.Comments))
	out = appendDate(append(out, `,"date":`...), p.Day)
	out = appendCount(append(out, `,"engagements":`...), view.Count(p.Engagement()))
	if withQuality && p.FetchedAt != nil {
		out = appendTime(append(out, `,"fetched_at":`...), *p.FetchedAt)
	}
	if p.Quality == store.QualityInterpolated {
		out = append(out, `,"interpolated":true`...)
	}
	out = appendCount(append(out, `,"likes":`...), view.Count(p.Likes))
	if view.masked {
		out = append(out, `,"metrics_masked":true`...)
	}
	if withQuality {
		out = appendText(append(out, `,"quality":`...), string(p.Quality))
	}
	out = appendCount(append(out, `,"shares":`...), view.Count(p.Shares))
	if withQuality && p.Source != nil {
		out = appendText(append(out, `,"source":`...), *p.Source)
	}
	out = appendCount(append(out, `,"views":`...), view.Count(p.Views))
	return append(out, '}')
}
