package server

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// defaultMemberLimit is the page size of a collection's lists when their limit is not given.
const defaultMemberLimit = 100

func memberLimit(limit *int32) *int32 {
	if limit == nil {
		return new(int32(defaultMemberLimit))
	}
	return limit
}

// ListCollectionVideos lists the videos of a collection.
func (s *Server) ListCollectionVideos(ctx context.Context, r api.ListCollectionVideosRequestObject) (api.ListCollectionVideosResponseObject, error) {
	caller, p := CallerFrom(ctx), r.Params
	order, sorted, removed := api.CollectionVideoOrderCreatedAt, direction(p.OrderDirection), isTrue(p.IncludeRemoved)
	if p.OrderBy != nil {
		order = *p.OrderBy
	}
	page, faults := s.readPage(p.Page, memberLimit(p.Limit), p.Cursor, scopeOf(ctx, "listCollectionVideos", []any{r.CollectionID, removed, order, sorted}))
	if len(faults) > 0 {
		return nil, invalid(faults...)
	}
	if err := s.unlessUnchanged(ctx, "listCollectionVideos", r.CollectionID, p); err != nil {
		return nil, err
	}
	found, err := caller.Org.ListVideos(ctx, store.VideoQuery{
		CollectionID: &r.CollectionID, IncludeRemoved: removed, Window: page.window(caller.View),
		Order: store.Order{Column: string(order), Descending: sorted == api.OrderDirectionDesc},
	})
	if err != nil {
		return nil, err
	}
	return answerPage(ctx, s, found, page, videosIn(caller.View))
}

// AddCollectionVideos adds videos to a collection.
func (s *Server) AddCollectionVideos(ctx context.Context, r api.AddCollectionVideosRequestObject) (api.AddCollectionVideosResponseObject, error) {
	n, err := CallerFrom(ctx).Org.AddVideos(ctx, r.CollectionID, r.Body.VideoIds)
	if err != nil {
		return nil, unknownIDs(err, "video", "/video_ids", r.Body.VideoIds)
	}
	return api.AddCollectionVideos200JSONResponse(api.AddedVideos{Success: true, CollectionID: r.CollectionID, VideosAdded: int32(n)}), nil //nolint:gosec // at most what was sent
}

// RemoveCollectionVideos takes videos out of a collection.
func (s *Server) RemoveCollectionVideos(ctx context.Context, r api.RemoveCollectionVideosRequestObject) (api.RemoveCollectionVideosResponseObject, error) {
	n, err := CallerFrom(ctx).Org.RemoveVideos(ctx, r.CollectionID, r.Body.VideoIds)
	if err != nil {
		return nil, err
	}
	return api.RemoveCollectionVideos200JSONResponse(api.RemovedVideos{Success: true, CollectionID: r.CollectionID, VideosRemoved: int32(n)}), nil //nolint:gosec // at most what was sent
}

// ListCollectionAccounts lists the accounts of a collection.
func (s *Server) ListCollectionAccounts(ctx context.Context, r api.ListCollectionAccountsRequestObject) (api.ListCollectionAccountsResponseObject, error) {
	caller, p := CallerFrom(ctx), r.Params
	order, sorted, removed := api.AccountOrderCreatedAt, direction(p.OrderDirection), isTrue(p.IncludeRemoved)
	if p.OrderBy != nil {
		order = *p.OrderBy
	}
	page, faults := s.readPage(p.Page, memberLimit(p.Limit), p.Cursor, scopeOf(ctx, "listCollectionAccounts", []any{r.CollectionID, removed, order, sorted}))
	if len(faults) > 0 {
		return nil, invalid(faults...)
	}
	if err := s.unlessUnchanged(ctx, "listCollectionAccounts", r.CollectionID, p); err != nil {
		return nil, err
	}
	found, err := caller.Org.ListAccounts(ctx, store.AccountQuery{
		CollectionID: &r.CollectionID, IncludeRemoved: removed, Window: page.window(caller.View),
		Order: store.Order{Column: string(order), Descending: sorted == api.OrderDirectionDesc},
	})
	if err != nil {
		return nil, err
	}
	return answerPage(ctx, s, found, page, accountsIn(caller.View))
}

// AddCollectionAccounts adds accounts to a collection.
func (s *Server) AddCollectionAccounts(ctx context.Context, r api.AddCollectionAccountsRequestObject) (api.AddCollectionAccountsResponseObject, error) {
	n, err := CallerFrom(ctx).Org.AddAccounts(ctx, r.CollectionID, r.Body.AccountIds)
	if err != nil {
		return nil, unknownIDs(err, "account", "/account_ids", r.Body.AccountIds)
	}
	return api.AddCollectionAccounts200JSONResponse(api.AddedAccounts{Success: true, CollectionID: r.CollectionID, AccountsAdded: int32(n)}), nil //nolint:gosec // at most what was sent
}

// RemoveCollectionAccounts takes accounts out of a collection.
func (s *Server) RemoveCollectionAccounts(ctx context.Context, r api.RemoveCollectionAccountsRequestObject) (api.RemoveCollectionAccountsResponseObject, error) {
	n, err := CallerFrom(ctx).Org.RemoveAccounts(ctx, r.CollectionID, r.Body.AccountIds)
	if err != nil {
		return nil, err
	}
	return api.RemoveCollectionAccounts200JSONResponse(api.RemovedAccounts{Success: true, CollectionID: r.CollectionID, AccountsRemoved: int32(n)}), nil //nolint:gosec // at most what was sent
}

// unknownIDs points at the entries of an array that name unknown things of a kind; other errors pass.
func unknownIDs(err error, kind, pointer string, ids []uuid.UUID) error {
	missing, ok := errors.AsType[*store.NotFoundError](err)
	if !ok || missing.Kind != kind {
		return err
	}
	e := asError(err)
	for i, id := range ids {
		if slices.Contains(missing.Names, id.String()) {
			e.Faults = append(e.Faults, bodyFault(pointer+"/"+strconv.Itoa(i), string(CodeNotFound), "Your organisation has no %s %s.", kind, id))
		}
	}
	return e
}
