package server

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// ListCollectionVideos answers GET /collections/{collection_id}/videos with the videos of a collection. Its requirements are in section 4.1 of docs/coverage.md.
func (s *Server) ListCollectionVideos(ctx context.Context, r api.ListCollectionVideosRequestObject) (api.ListCollectionVideosResponseObject, error) {
	p := r.Params
	query := store.VideoQuery{CollectionID: &r.CollectionID, IncludeRemoved: isTrue(p.IncludeRemoved), Status: (*store.FetchStatus)(p.FetchStatus),
		Order: orderOf(p.OrderBy, api.CollectionVideoOrderCreatedAt, p.OrderDirection), WithoutLabels: isFromPage(ctx)}
	page, err := s.readPage(ctx, pageParams{page: p.Page, limit: p.Limit, cursor: p.Cursor}, query.Order, nil,
		r.CollectionID, query.IncludeRemoved, query.Status)
	if err != nil {
		return nil, err
	}
	return answerList(ctx, s, listRequest[store.Video]{page: page, encode: appendVideo,
		find: func(o *store.Org, w store.Window, each func(*store.Video) error) (*store.List[store.Video], error) {
			query.Window, query.Each = w, each
			return o.ListVideos(ctx, query)
		}})
}

// AddCollectionVideos answers POST /collections/{collection_id}/videos: it adds videos to a collection. Its requirements are in section 4.1 of docs/coverage.md.
func (s *Server) AddCollectionVideos(ctx context.Context, r api.AddCollectionVideosRequestObject) (api.AddCollectionVideosResponseObject, error) {
	countsFrom, err := s.countsFrom(r.Body.CountsFrom)
	if err != nil {
		return nil, err
	}
	n, err := callerFrom(ctx).Org.AddVideos(ctx, r.CollectionID, r.Body.VideoIds, countsFrom)
	if err != nil {
		return nil, unknownIDsError(err, "video", "/video_ids", r.Body.VideoIds)
	}
	return api.AddCollectionVideos200JSONResponse(api.AddedVideos{Success: true, CollectionID: r.CollectionID, VideosAdded: int32(n)}), nil //nolint:gosec // no overflow, because n is at most the number of ids in the request
}

// earliestCountsFrom is the earliest allowed value of counts_from. No supported platform had videos before it.
var earliestCountsFrom = store.DateOf(time.Date(2005, time.January, 1, 0, 0, 0, 0, time.UTC))

// countsFrom converts the member counts_from of a request. The result is nil if the member is absent or null. It fails if the day is before
// earliestCountsFrom or after today.
func (s *Server) countsFrom(sent *openapi_types.Date) (*store.Date, error) {
	if sent == nil {
		return nil, nil //nolint:nilnil // an absent day is no error
	}
	day, today := store.DateOf(sent.Time), store.DateOf(s.now())
	if day < earliestCountsFrom || day > today {
		return nil, invalidRequest(bodyFault("/counts_from", faultRange, "counts_from is %s; it must be a day from %s to today, %s (UTC)", day, earliestCountsFrom, today))
	}
	return &day, nil
}

// RemoveCollectionVideos answers DELETE /collections/{collection_id}/videos: it removes videos from a collection. Its requirements are in section 4.1 of docs/coverage.md.
func (s *Server) RemoveCollectionVideos(ctx context.Context, r api.RemoveCollectionVideosRequestObject) (api.RemoveCollectionVideosResponseObject, error) {
	n, err := callerFrom(ctx).Org.RemoveVideos(ctx, r.CollectionID, r.Body.VideoIds)
	if err != nil {
		return nil, err
	}
	return api.RemoveCollectionVideos200JSONResponse(api.RemovedVideos{Success: true, CollectionID: r.CollectionID, VideosRemoved: int32(n)}), nil //nolint:gosec // no overflow, because n is at most the number of ids in the request
}

// ListCollectionAccounts answers GET /collections/{collection_id}/accounts with the accounts of a collection. Its requirements are in section 4.1 of docs/coverage.md.
func (s *Server) ListCollectionAccounts(ctx context.Context, r api.ListCollectionAccountsRequestObject) (api.ListCollectionAccountsResponseObject, error) {
	p := r.Params
	query := store.AccountQuery{CollectionID: &r.CollectionID, IncludeRemoved: isTrue(p.IncludeRemoved), Status: (*store.FetchStatus)(p.FetchStatus),
		Order: orderOf(p.OrderBy, api.AccountOrderCreatedAt, p.OrderDirection), WithoutLabels: isFromPage(ctx)}
	page, err := s.readPage(ctx, pageParams{page: p.Page, limit: p.Limit, cursor: p.Cursor}, query.Order, nil,
		r.CollectionID, query.IncludeRemoved, query.Status)
	if err != nil {
		return nil, err
	}
	return answerList(ctx, s, listRequest[store.Account]{page: page, encode: newRowEncoder(ToAPIAccount),
		find: func(o *store.Org, w store.Window, _ func(*store.Account) error) (*store.List[store.Account], error) {
			query.Window = w
			return o.ListAccounts(ctx, query)
		}})
}

// AddCollectionAccounts answers POST /collections/{collection_id}/accounts: it adds accounts to a collection. Its requirements are in section 4.1 of docs/coverage.md.
func (s *Server) AddCollectionAccounts(ctx context.Context, r api.AddCollectionAccountsRequestObject) (api.AddCollectionAccountsResponseObject, error) {
	n, err := callerFrom(ctx).Org.AddAccounts(ctx, r.CollectionID, r.Body.AccountIds)
	if err != nil {
		return nil, unknownIDsError(err, "account", "/account_ids", r.Body.AccountIds)
	}
	return api.AddCollectionAccounts200JSONResponse(api.AddedAccounts{Success: true, CollectionID: r.CollectionID, AccountsAdded: int32(n)}), nil //nolint:gosec // no overflow, because n is at most the number of ids in the request
}

// RemoveCollectionAccounts answers DELETE /collections/{collection_id}/accounts: it removes accounts from a collection. Its requirements are in section 4.1 of docs/coverage.md.
func (s *Server) RemoveCollectionAccounts(ctx context.Context, r api.RemoveCollectionAccountsRequestObject) (api.RemoveCollectionAccountsResponseObject, error) {
	n, err := callerFrom(ctx).Org.RemoveAccounts(ctx, r.CollectionID, r.Body.AccountIds)
	if err != nil {
		return nil, err
	}
	return api.RemoveCollectionAccounts200JSONResponse(api.RemovedAccounts{Success: true, CollectionID: r.CollectionID, AccountsRemoved: int32(n)}), nil //nolint:gosec // no overflow, because n is at most the number of ids in the request
}

// unknownIDsError converts a *store.NotFoundError of the kind itemKind into a response with a fault
// for each unknown id. Any other error is returned unchanged. arrayPointer is the JSON pointer of `ids` in the request body.
func unknownIDsError(err error, itemKind, arrayPointer string, ids []uuid.UUID) error {
	missing, ok := errors.AsType[*store.NotFoundError](err)
	if !ok || missing.Kind != itemKind {
		return err
	}
	e := toError(err)
	for i, id := range ids {
		if slices.Contains(missing.Names, id.String()) {
			e.Faults = append(e.Faults, bodyFault(arrayPointer+"/"+strconv.Itoa(i), string(CodeNotFound), "Your organisation has no %s %s.", itemKind, id))
		}
	}
	return e
}
