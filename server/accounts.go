package server

import (
	"context"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// ListAccounts lists accounts.
func (s *Server) ListAccounts(ctx context.Context, r api.ListAccountsRequestObject) (api.ListAccountsResponseObject, error) {
	caller := CallerFrom(ctx)
	list, err := s.readAccountList(ctx, r.Params)
	if err != nil {
		return nil, err
	}
	if err := s.unlessUnchanged(ctx, "listAccounts", r.Params, list.query, list.nowhere); err != nil {
		return nil, err
	}
	found := &store.List[store.Account]{}
	if !list.nowhere {
		if found, err = caller.Org.ListAccounts(ctx, list.query); err != nil {
			return nil, err
		}
	}
	return answerArrayOrPage(ctx, s, found, list.page, accountsIn(caller.View), isTrue(r.Params.Paginated))
}

// accountsIn returns a function that converts an account and masks what view hides.
func accountsIn(view View) func(store.Account) api.Account {
	return func(a store.Account) api.Account { return ToAPIAccount(a, view) }
}

// accountList is what a list of accounts was asked for.
type accountList struct {
	query   store.AccountQuery
	page    pageRequest
	nowhere bool // the link of the filter leads to no account at all
}

// readAccountList reads what the schemas have let pass, and checks what they cannot say.
func (s *Server) readAccountList(ctx context.Context, p api.ListAccountsParams) (accountList, error) {
	order, sorted := api.AccountOrderCreatedAt, direction(p.OrderDirection)
	if p.OrderBy != nil {
		order = *p.OrderBy
	}
	l := accountList{query: store.AccountQuery{
		Platform: (*link.Platform)(p.Platform), Username: folded(p.Username, link.FoldUsername), Collections: p.Collections,
		IncludeLinked: isTrue(p.IncludeLinked), IncludeRemoved: isTrue(p.IncludeRemoved),
		Order: store.Order{Column: string(order), Descending: sorted == api.OrderDirectionDesc},
	}}
	faults := pagesAsked(p.Paginated, p.Page, p.Cursor)
	if p.Link != nil {
		target, err := s.linkOf(ctx, link.Account, *p.Link)
		switch f := refusedLink(err); {
		case f == nil && err != nil:
			return l, err
		case f != nil && f.leadsNowhere():
			l.nowhere = true
		case f != nil:
			faults = append(faults, queryFault("link", f.Code, "%s", f.Detail))
		default:
			l.query.Link = &target
		}
	}
	page, pageFaults := s.readPage(p.Page, p.Limit, p.Cursor, scopeOf(ctx, "listAccounts", []any{l.query, order, sorted}))
	if faults = append(faults, pageFaults...); len(faults) > 0 {
		return l, invalid(faults...)
	}
	l.page, l.query.Window = page, page.window(CallerFrom(ctx).View)
	return l, nil
}

// GetAccount reads one account.
func (s *Server) GetAccount(ctx context.Context, r api.GetAccountRequestObject) (api.GetAccountResponseObject, error) {
	caller := CallerFrom(ctx)
	ref, err := s.accountRef(ctx, r.AccountID)
	if err != nil {
		return nil, err
	}
	a, err := caller.Org.Account(ctx, ref)
	if err != nil {
		return nil, err
	}
	return api.GetAccount200JSONResponse(ToAPIAccount(a, caller.View)), nil
}

// ListAccountVideos lists the videos of an account.
func (s *Server) ListAccountVideos(ctx context.Context, r api.ListAccountVideosRequestObject) (api.ListAccountVideosResponseObject, error) {
	caller, p := CallerFrom(ctx), r.Params
	order, sorted, removed := api.AccountVideoOrderUploadedAt, direction(p.OrderDirection), isTrue(p.IncludeRemoved)
	if p.OrderBy != nil {
		order = *p.OrderBy
	}
	faults := pagesAsked(p.Paginated, p.Page, p.Cursor)
	if p.StartDate != nil && p.EndDate != nil && p.StartDate.After(p.EndDate.Time) {
		faults = append(faults, queryFault("start_date", faultRange, "start_date %s is after end_date %s", p.StartDate, p.EndDate))
	}
	ref, err := s.accountRef(ctx, r.AccountID)
	if err != nil && len(faults) == 0 {
		return nil, err
	}
	bound := []any{ref, p.StartDate, p.EndDate, removed, order, sorted}
	page, pageFaults := s.readPage(p.Page, p.Limit, p.Cursor, scopeOf(ctx, "listAccountVideos", bound))
	if faults = append(faults, pageFaults...); len(faults) > 0 {
		return nil, invalid(faults...)
	}
	if err := s.unlessUnchanged(ctx, "listAccountVideos", ref, p); err != nil {
		return nil, err
	}
	found, err := caller.Org.ListAccountVideos(ctx, ref, store.VideoQuery{
		UploadedFrom: fromAPIDatePtr(p.StartDate), UploadedTo: fromAPIDatePtr(p.EndDate), IncludeRemoved: removed,
		Order:  store.Order{Column: string(order), Descending: sorted == api.OrderDirectionDesc},
		Window: page.window(caller.View),
	})
	if err != nil {
		return nil, err
	}
	return answerArrayOrPage(ctx, s, found, page, videosIn(caller.View), isTrue(p.Paginated))
}

// accountRef reads "a UUID or a URL". What can mean no account is not found.
func (s *Server) accountRef(ctx context.Context, raw string) (store.AccountRef, error) {
	id, l, err := s.reference(ctx, link.Account, raw)
	return store.AccountRef{ID: id, Link: l}, err
}

// ToAPIAccount converts an account, as far as the view shows it.
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
		TotalViews: view.Count(a.TotalViews), TotalLikes: view.Count(a.TotalLikes), TotalComments: view.Count(a.TotalComments),
		TotalBookmarks: view.Count(a.TotalBookmarks), TotalShares: view.Count(a.TotalShares), MetricsMasked: view.Mark(),
	}
	for i, l := range a.Labels {
		out.LabelIds[i], out.LabelNames[i] = l.ID, l.Name
	}
	return out
}
