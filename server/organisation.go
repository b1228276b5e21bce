package server

import (
	"context"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// GetOrganisationHistory answers GET /organisation/history with the daily totals of the caller's organisation.
func (s *Server) GetOrganisationHistory(ctx context.Context, r api.GetOrganisationHistoryRequestObject) (api.GetOrganisationHistoryResponseObject, error) {
	caller := callerFrom(ctx)
	from, to, err := s.historyRange(caller, r.Params.StartDate, r.Params.EndDate)
	if err != nil {
		return nil, err
	}
	to = min(to, store.DateOf(s.now())) // a source can report an upload day in the future; the numbers at the end of that day are not known
	org, err := s.orgAtVersionOfFirstQuery(ctx)
	if err != nil {
		return nil, err
	}
	points, err := store.FromReplica(ctx, org, func(org *store.Org) ([]store.OrganisationPoint, error) { return org.OrganisationHistory(ctx, from, to) })
	if err != nil {
		return nil, err
	}
	out := make(api.OrganisationHistory, len(visiblePoints(points, caller.View)))
	for i := range out {
		out[i] = toAPIOrganisationHistoryPoint(points[i], caller.View)
	}
	return api.GetOrganisationHistory200JSONResponse(out), nil
}

// toAPIOrganisationHistoryPoint converts the totals of an organisation on one day to the JSON type of the API. If view masks metrics, the
// totals are null. If p.UploadsOnly is true, all totals except the uploads are null.
func toAPIOrganisationHistoryPoint(p store.OrganisationPoint, view View) api.OrganisationHistoryPoint {
	out := api.OrganisationHistoryPoint{Date: toAPIDate(p.Day), Uploads: view.Count(&p.Uploads), MetricsMasked: view.MetricsMasked()}
	if p.UploadsOnly {
		return out
	}
	out.Accounts, out.Videos = view.Count(&p.Accounts), view.Count(&p.Videos)
	out.Followers, out.Following = view.Count(p.Followers), view.Count(p.Following)
	out.Views, out.Likes, out.Comments = view.Count(p.Views), view.Count(p.Likes), view.Count(p.Comments)
	out.Shares, out.Bookmarks = view.Count(p.Shares), view.Count(p.Bookmarks)
	out.Engagements, out.ViewsGained = view.Count(p.Engagement()), view.Count(p.ViewsGained)
	return out
}

// GetVideoStatistics answers GET /statistics/videos with the number of the organisation's videos, in total, by platform and by fetch status.
func (s *Server) GetVideoStatistics(ctx context.Context, _ api.GetVideoStatisticsRequestObject) (api.GetVideoStatisticsResponseObject, error) {
	org, err := s.orgAtVersion(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := org.VideoStatistics(ctx)
	if err != nil {
		return nil, err
	}
	return api.GetVideoStatistics200JSONResponse(toAPIStatistics(counts)), nil
}

// GetAccountStatistics answers GET /statistics/accounts with the number of the organisation's accounts, in total, by platform and by fetch status.
func (s *Server) GetAccountStatistics(ctx context.Context, _ api.GetAccountStatisticsRequestObject) (api.GetAccountStatisticsResponseObject, error) {
	org, err := s.orgAtVersion(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := org.AccountStatistics(ctx)
	if err != nil {
		return nil, err
	}
	return api.GetAccountStatistics200JSONResponse(toAPIStatistics(counts)), nil
}

// toAPIStatistics converts the numbers of videos or accounts, by platform and by fetch status, to the JSON type of the API.
func toAPIStatistics(s store.Statistics) api.Statistics {
	return api.Statistics{Total: s.Total, Removed: s.Removed, ByPlatform: api.PlatformCounts{
		Tiktok: s.ByPlatform[link.TikTok], Instagram: s.ByPlatform[link.Instagram],
		Youtube: s.ByPlatform[link.YouTube], Facebook: s.ByPlatform[link.Facebook],
	}, ByStatus: api.StatusCounts{
		Pending: s.ByStatus[queue.FetchPending], Ok: s.ByStatus[queue.FetchOK], Delayed: s.ByStatus[queue.FetchDelayed],
		Failing: s.ByStatus[queue.FetchFailing], Private: s.ByStatus[queue.FetchPrivate], Restricted: s.ByStatus[queue.FetchRestricted],
		Gone: s.ByStatus[queue.FetchGone], Unsupported: s.ByStatus[queue.FetchUnsupported], Stopped: s.ByStatus[queue.FetchStopped],
	}}
}
