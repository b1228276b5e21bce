package server

import (
	"context"
	"slices"

	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// defaultHistoryDays is how many days before today a history starts if the request has no start_date.
const defaultHistoryDays = 30

// GetVideoHistory answers GET /videos/{ad_id}/history with the daily counts of a video. Its requirements are in section 4.2 of docs/coverage.md.
func (s *Server) GetVideoHistory(ctx context.Context, r api.GetVideoHistoryRequestObject) (api.GetVideoHistoryResponseObject, error) {
	caller := callerFrom(ctx)
	from, to, err := s.historyRange(caller, r.Params.StartDate, r.Params.EndDate)
	if err != nil {
		return nil, err
	}
	ref, err := s.parseReference(ctx, link.Video, r.AdID)
	if err != nil {
		return nil, err
	}
	org, err := s.orgAtVersionOfFirstQuery(ctx, ref)
	if err != nil {
		return nil, err
	}
	points, err := store.FromReplica(ctx, org, func(org *store.Org) ([]store.Point, error) { return org.History(ctx, ref, from, to) })
	if err != nil {
		return nil, err
	}
	return videoHistoryResponse{visiblePoints(points, caller.View), caller.View, asksForQuality(r.Params.Include)}, nil
}

// GetAccountHistory answers GET /accounts/{account_id}/history with the daily counts of an account.
func (s *Server) GetAccountHistory(ctx context.Context, r api.GetAccountHistoryRequestObject) (api.GetAccountHistoryResponseObject, error) {
	caller := callerFrom(ctx)
	from, to, err := s.historyRange(caller, r.Params.StartDate, r.Params.EndDate)
	if err != nil {
		return nil, err
	}
	ref, err := s.parseReference(ctx, link.Account, r.AccountID)
	if err != nil {
		return nil, err
	}
	org, err := s.orgAtVersion(ctx, ref)
	if err != nil {
		return nil, err
	}
	points, err := store.FromReplica(ctx, org, func(org *store.Org) ([]store.AccountPoint, error) { return org.AccountHistory(ctx, ref, from, to) })
	if err != nil {
		return nil, err
	}
	out := make(api.AccountHistory, len(visiblePoints(points, caller.View)))
	for i := range out {
		out[i] = toAPIAccountHistoryPoint(points[i], caller.View)
		if asksForQuality(r.Params.Include) {
			out[i].Quality, out[i].Source, out[i].FetchedAt = toAPIProvenance(points[i].Provenance, caller.View)
		}
	}
	return api.GetAccountHistory200JSONResponse(out), nil
}

// visiblePoints returns the history points that a response shows: all points, or only the latest one if view masks metrics. The points must
// be sorted, the latest first.
func visiblePoints[P any](points []P, view View) []P {
	if view.masked && len(points) > 1 {
		return points[:1]
	}
	return points
}

// oldestDay returns the first day that histories and reports of the caller's tier can have.
func (s *Server) oldestDay(caller Caller) store.Date {
	return store.DateOf(s.now()) - store.Date(caller.rules.historyDays) //nolint:gosec // no overflow, because historyDays is at most 730
}

// historyRange returns the first and the last day of a history. It fails if startDate is too old
// for the caller's tier, or if endDate is before the first day.
func (s *Server) historyRange(caller Caller, startDate, endDate *openapi_types.Date) (from, to store.Date, err error) {
	today := store.DateOf(s.now())
	// These are the default values of start_date and end_date.
	from, to = today-defaultHistoryDays, today
	oldest := s.oldestDay(caller)
	var faults []api.Fault
	if startDate != nil {
		if from = store.DateOf(startDate.Time); from < oldest {
			faults = append(faults, queryFault("start_date", faultRange, "start_date %s is too old; for the tier %s the oldest day allowed is %s (%d days ago)",
				from, caller.Organisation.Tier, oldest, caller.rules.historyDays))
		}
	}
	if endDate != nil {
		if to = store.DateOf(endDate.Time); from > to {
			if startDate != nil {
				faults = append(faults, queryFault("end_date", faultRange, "end_date %s is before start_date, which is %s", to, from))
			} else {
				faults = append(faults, queryFault("end_date", faultRange,
					"end_date %s is before the default start_date, which is %s (%d days ago); send a start_date that is not after end_date", to, from, defaultHistoryDays))
			}
		}
	} else if from > to {
		to = from // startDate is in the future, so the period is the single day startDate, and the history is empty
	}
	if len(faults) > 0 {
		return 0, 0, invalidRequest(faults...)
	}
	return from, to, nil
}

// asksForQuality returns true if the query parameter "include" contains "quality".
func asksForQuality(include []api.HistoryInclude) bool {
	return slices.Contains(include, api.HistoryIncludeQuality)
}

// toAPIProvenance converts the quality, source and fetch time of a history point to the JSON types
// of the API. If view masks metrics, all results are nil.
func toAPIProvenance(p store.Provenance, view View) (quality *api.HistoryQuality, source, fetchedAt *string) {
	if view.masked {
		return nil, nil, nil
	}
	return new(api.HistoryQuality(p.Quality)), p.Source, toAPITimePtr(p.FetchedAt)
}

// toAPIAccountHistoryPoint converts the counts of an account on one day to the JSON type of the API. If view masks metrics, the counts are
// null.
func toAPIAccountHistoryPoint(p store.AccountPoint, view View) api.AccountHistoryPoint {
	return api.AccountHistoryPoint{
		Date: toAPIDate(p.Day), Followers: view.Count(p.Followers), Following: view.Count(p.Following), Views: view.Count(p.Views),
		Likes: view.Count(p.Likes), Comments: view.Count(p.Comments), Shares: view.Count(p.Shares), Bookmarks: view.Count(p.Bookmarks),
		Engagements: view.Count(p.Engagement()), Videos: view.Count(&p.Videos), MetricsMasked: view.MetricsMasked(),
	}
}
