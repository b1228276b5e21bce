package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// maxRankedVideos is the maximum number of best videos and of worst videos in a collection's
// statistics. The best videos gained the most views.
const maxRankedVideos = 5

// GetCollectionHistory answers GET /collections/{collection_id}/history with the daily sums of a collection.
func (s *Server) GetCollectionHistory(ctx context.Context, r api.GetCollectionHistoryRequestObject) (api.GetCollectionHistoryResponseObject, error) {
	caller := callerFrom(ctx)
	from, to, err := s.historyRange(caller, r.Params.StartDate, r.Params.EndDate)
	if err != nil {
		return nil, err
	}
	query := store.CollectionTotalsQuery{Collection: r.CollectionID, IncludeChildren: isTrue(r.Params.IncludeChildren), From: from, To: to}
	org, err := s.orgAtVersion(ctx)
	if err != nil {
		return nil, err
	}
	totals, err := org.CollectionTotals(ctx, query)
	if err != nil {
		return nil, err
	}
	return api.GetCollectionHistory200JSONResponse(toAPICollectionDays(totals.Days, caller.View)), nil
}

// GetCollectionStatistics answers GET /collections/{collection_id}/statistics: the sums of the counts of a collection's videos, and how
// much the views grew in a period.
func (s *Server) GetCollectionStatistics(ctx context.Context, r api.GetCollectionStatisticsRequestObject) (api.GetCollectionStatisticsResponseObject, error) {
	caller := callerFrom(ctx)
	from, to, err := s.totalsPeriod(caller, r.Params.StartDate, r.Params.EndDate)
	if err != nil {
		return nil, err
	}
	query := store.CollectionTotalsQuery{Collection: r.CollectionID, IncludeChildren: isTrue(r.Params.IncludeChildren), From: from, To: to}
	org, err := s.orgAtVersion(ctx)
	if err != nil {
		return nil, err
	}
	totals, err := org.CollectionTotals(ctx, query)
	if err != nil {
		return nil, err
	}
	return statisticsResponse{toAPICollectionStatistics(query, totals, caller.View),
		toAPIRankedVideos(totals, true, caller.View), toAPIRankedVideos(totals, false, caller.View)}, nil
}

// statisticsResponse is the response of getCollectionStatistics: the statistics that a report has too, and the videos that gained most and least.
type statisticsResponse struct {
	api.ReportStatistics
	Best  []api.CollectionGain `json:"best"`
	Worst []api.CollectionGain `json:"worst"`
}

// VisitGetCollectionStatisticsResponse implements the generated response interface of getCollectionStatistics.
func (r statisticsResponse) VisitGetCollectionStatisticsResponse(w http.ResponseWriter) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, body)
}

// totalsPeriod returns the result of historyRange, but the last day is never after today. It also
// fails if startDate is in the future.
func (s *Server) totalsPeriod(caller Caller, startDate, endDate *openapi_types.Date) (from, to store.Date, err error) {
	if from, to, err = s.historyRange(caller, startDate, endDate); err != nil {
		return 0, 0, err
	}
	today := store.DateOf(s.now())
	if from > today {
		return 0, 0, invalidRequest(queryFault("start_date", faultRange, "start_date %s is in the future; the latest day allowed is today, %s", from, today))
	}
	return from, min(to, today), nil
}

// toAPICollectionDays returns the daily sums of a collection, the newest day first. If view
// masks metrics, it returns only the newest day, whose numbers are null.
func toAPICollectionDays(days []store.CollectionDay, view View) []api.CollectionHistoryPoint {
	newest := slices.Clone(days)
	slices.Reverse(newest)
	out := make([]api.CollectionHistoryPoint, len(visiblePoints(newest, view)))
	for i := range out {
		d := &newest[i]
		sums := d.KnownSums()
		out[i] = api.CollectionHistoryPoint{
			Date: toAPIDate(d.Day), Videos: view.Count(&d.Videos), VideosAdded: view.Count(&d.Added), Measured: view.Count(&d.Measured),
			Rounded: view.Count(&d.Rounded), Interpolated: view.Count(&d.Interpolated), Carried: view.Count(&d.Carried), WithoutPoint: view.Count(&d.WithoutPoint),
			Views: view.Count(sums.Views), Likes: view.Count(sums.Likes), Comments: view.Count(sums.Comments), Shares: view.Count(sums.Shares),
			Bookmarks: view.Count(sums.Bookmarks), Engagements: view.Count(sums.Engagement()),
			UnknownViews: view.Count(&d.Unknown.Views), UnknownLikes: view.Count(&d.Unknown.Likes), UnknownComments: view.Count(&d.Unknown.Comments),
			UnknownShares: view.Count(&d.Unknown.Shares), UnknownBookmarks: view.Count(&d.Unknown.Bookmarks),
			ViewsGained: view.Count(d.KnownGain()), ViewsCorrected: view.Count(&d.ViewsCorrected), ViewsFromAdded: view.Count(&d.ViewsFromAdded),
			ViewsFromKnown: view.Count(&d.ViewsFromKnown), MetricsMasked: view.MetricsMasked(),
		}
	}
	return out
}

// toAPICollectionStatistics converts the sums and gains of a collection to the JSON type of the API. If view masks metrics, the numbers are
// null.
func toAPICollectionStatistics(q store.CollectionTotalsQuery, c store.CollectionTotals, view View) api.ReportStatistics {
	g := c.Gains()
	sums, unknown := g.Last.KnownSums(), g.Last.Unknown
	return api.ReportStatistics{
		CollectionID: q.Collection, StartDate: toAPIDate(q.From), EndDate: toAPIDate(q.To), IncludeChildren: q.IncludeChildren,
		Videos: view.Count(&g.Last.Videos), VideosRemoved: view.Count(&g.Removed),
		Views: view.Count(sums.Views), Likes: view.Count(sums.Likes), Comments: view.Count(sums.Comments), Shares: view.Count(sums.Shares),
		Bookmarks: view.Count(sums.Bookmarks), Engagements: view.Count(sums.Engagement()),
		UnknownViews: view.Count(&unknown.Views), UnknownLikes: view.Count(&unknown.Likes), UnknownComments: view.Count(&unknown.Comments),
		UnknownShares: view.Count(&unknown.Shares), UnknownBookmarks: view.Count(&unknown.Bookmarks),
		UnknownEngagements: view.Count(&g.Last.UnknownEngagements), UnknownGains: view.Count(&g.Unknown),
		ViewsAtStart: view.Count(g.StartViews), ViewsGained: view.Count(g.Gained), ViewsCorrected: view.Count(&g.Corrected),
		Increase: view.Ratio(percentOf(g.Gained, g.StartViews)), MetricsMasked: view.MetricsMasked(),
	}
}

// percentOf returns gained/start in percent. If gained is 5 and start is 10, it returns 50. The result is nil if gained or start is nil, or if start
// is 0.
func percentOf(gained, start *int64) *float64 {
	if gained == nil || start == nil || *start == 0 {
		return nil
	}
	percent := float64(*gained) / float64(*start) * 100
	return &percent
}

// toAPIRankedVideos returns the best or worst videos of a collection. If view masks metrics, it returns no
// videos, because their order would reveal which videos gained more.
func toAPIRankedVideos(c store.CollectionTotals, wantBest bool, view View) []api.CollectionGain {
	out := []api.CollectionGain{}
	if view.masked {
		return out
	}
	for _, v := range c.RankByGain(wantBest, maxRankedVideos) {
		out = append(out, toAPICollectionGain(v, view))
	}
	return out
}

// toAPICollectionGain converts the views that a video gained in a period to the JSON type of the API. If view masks metrics, the numbers are
// null.
func toAPICollectionGain(v store.CollectionVideo, view View) api.CollectionGain {
	return api.CollectionGain{AdID: v.ID, AdLink: v.Link, Removed: v.Removed, AddedAt: toAPITime(v.AddedAt), StartDay: toAPIDatePtr(v.StartDay), EndDay: toAPIDatePtr(v.EndDay),
		ViewsAtStart: view.Count(v.StartViews), ViewsAtEnd: view.Count(v.EndViews), ViewsGained: view.Count(v.Gained),
		Increase: view.Ratio(percentOf(v.Gained, v.StartViews))}
}
