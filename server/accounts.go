package server

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/server/web"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// ListAccounts answers GET /accounts with the accounts of the caller's organisation.
func (s *Server) ListAccounts(ctx context.Context, r api.ListAccountsRequestObject) (api.ListAccountsResponseObject, error) {
	p := r.Params
	target, linkFaults, err := s.readLinkFilter(ctx, link.Account, p.Link)
	if err != nil {
		return nil, err
	}
	username, prefix := readUsernameFilter(ctx, p.Username)
	query := store.AccountQuery{
		Platform: (*link.Platform)(p.Platform), Username: username, UsernamePrefix: prefix, Collections: p.Collections, Link: target,
		IncludeLinked: isTrue(p.IncludeLinked), IncludeRemoved: isTrue(p.IncludeRemoved), Status: (*store.FetchStatus)(p.FetchStatus),
		Order: orderOf(p.OrderBy, api.AccountOrderCreatedAt, p.OrderDirection), WithoutLabels: isFromPage(ctx),
	}
	faults := append(checkPaginated(p.Paginated, p.Page, p.Cursor), linkFaults...)
	page, err := s.readPage(ctx, pageParams{page: p.Page, limit: p.Limit, cursor: p.Cursor, paginated: p.Paginated}, query.Order, faults, query)
	if err != nil {
		return nil, err
	}
	return answerList(ctx, s, listRequest[store.Account]{page: page, notInURL: []any{target}, encode: newRowEncoder(ToAPIAccount),
		find: func(o *store.Org, w store.Window, _ func(*store.Account) error) (*store.List[store.Account], error) {
			query.Window = w
			return o.ListAccounts(ctx, query)
		}})
}

// readUsernameFilter returns the folded username of the query parameter "username", or nil if the request lacks the parameter. If a page of this server
// sends a username that ends with web.AnyEnd, exact is nil, and prefix is the text before web.AnyEnd.
func readUsernameFilter(ctx context.Context, username *string) (exact *string, prefix string) {
	exact = normaliseOptionalText(username, link.FoldUsername)
	if exact == nil || !isFromPage(ctx) {
		return exact, ""
	}
	if beginning, ok := strings.CutSuffix(*exact, web.AnyEnd); ok {
		return nil, beginning
	}
	return exact, ""
}

// GetAccount answers GET /accounts/{account_id} with one account of the caller's organisation.
func (s *Server) GetAccount(ctx context.Context, r api.GetAccountRequestObject) (api.GetAccountResponseObject, error) {
	caller := callerFrom(ctx)
	ref, err := s.parseReference(ctx, link.Account, r.AccountID)
	if err != nil {
		return nil, err
	}
	a, err := caller.Org.Account(ctx, ref)
	if err != nil {
		return nil, err
	}
	return api.GetAccount200JSONResponse(ToAPIAccount(a, caller.View)), nil
}

// ListAccountVideos answers GET /accounts/{account_id}/videos with the videos of one account. Its requirements are in section 4.2 of docs/coverage.md.
func (s *Server) ListAccountVideos(ctx context.Context, r api.ListAccountVideosRequestObject) (api.ListAccountVideosResponseObject, error) {
	p := r.Params
	query := store.VideoQuery{UploadedFrom: fromAPIDatePtr(p.StartDate), UploadedTo: fromAPIDatePtr(p.EndDate),
		IncludeRemoved: isTrue(p.IncludeRemoved), Status: (*store.FetchStatus)(p.FetchStatus),
		Order: orderOf(p.OrderBy, api.AccountVideoOrderUploadedAt, p.OrderDirection), WithoutLabels: isFromPage(ctx)}
	faults := checkPaginated(p.Paginated, p.Page, p.Cursor)
	if p.StartDate != nil && p.EndDate != nil && p.StartDate.After(p.EndDate.Time) {
		faults = append(faults, queryFault("start_date", faultRange, "start_date %s is after end_date %s", p.StartDate, p.EndDate))
	}
	ref, err := s.parseReference(ctx, link.Account, r.AccountID)
	if err != nil && len(faults) == 0 {
		return nil, err
	}
	page, err := s.readPage(ctx, pageParams{page: p.Page, limit: p.Limit, cursor: p.Cursor, paginated: p.Paginated}, query.Order, faults,
		ref, p.StartDate, p.EndDate, query.IncludeRemoved, query.Status)
	if err != nil {
		return nil, err
	}
	return answerList(ctx, s, listRequest[store.Video]{page: page, notInURL: []any{ref}, encode: appendVideo,
		find: func(o *store.Org, w store.Window, each func(*store.Video) error) (*store.List[store.Video], error) {
			query.Window, query.Each = w, each
			return o.ListAccountVideos(ctx, ref, query)
		}})
}

// ToAPIAccount converts an account from the database to the JSON type of the API. If view masks metrics, the metrics are null.
func ToAPIAccount(a store.Account, view View) api.Account {
	out := api.Account{
		OrganisationID: a.OrganisationID, AccountID: a.ID, AccountLink: a.Link, Username: a.Username,
		DisplayUsername: link.DisplayUsername(a.Username), Platform: api.Platform(a.Platform), CreatedAt: toAPITime(a.CreatedAt),
		CheckedAt: toAPITimePtr(a.CheckedAt), Removed: a.Removed, Private: a.Private, Empty: a.Empty, Bio: a.Bio, Link: a.ProfileLink,
		TrackingType: (*string)(a.TrackingType), LastUploadedAt: toAPIDatePtr(a.LastUploadedAt),
		LabelIds: make([]uuid.UUID, len(a.Labels)), LabelNames: make([]string, len(a.Labels)),

		LatestFollowersCount: view.Count(a.LatestFollowersCount), LatestFollowingCount: view.Count(a.LatestFollowingCount),
		MeanViews: view.Ratio(a.MeanViews), MedianViews: view.Ratio(a.MedianViews), MedianViewsNonZero: view.Ratio(a.MedianViewsNonZero),
		MostViewed: view.Count(a.MostViewed), PercentOutperform10X: view.Ratio(a.PercentOutperform10x),
		PercentOutperform25X: view.Ratio(a.PercentOutperform25x), TotalVideosTracked: view.Count(&a.TotalVideosTracked),
		TotalViews: view.Count(a.Total.Views), TotalLikes: view.Count(a.Total.Likes), TotalComments: view.Count(a.Total.Comments),
		TotalBookmarks: view.Count(a.Total.Bookmarks), TotalShares: view.Count(a.Total.Shares), ViewsGained7D: view.Count(a.ViewsGained7d), MetricsMasked: view.MetricsMasked(),

		FetchDetail: view.ExplainFetchStatus(&a.FetchState, link.Account), LastAttemptAt: view.Text(toAPITimePtr(a.LastAttemptAt)),
		NextFetchAt: view.Text(toAPITimePtr(a.NextFetchAt)),
	}
	if a.FetchStatus != "" {
		out.FetchStatus = new(string(a.FetchStatus))
	} else {
		out.FetchDetail = new("The account is not tracked but only linked from its videos, so it is not fetched. Track it to get its followers and its new videos.")
	}
	for i, l := range a.Labels {
		out.LabelIds[i], out.LabelNames[i] = l.ID, l.Name
	}
	return out
}
