package server

import (
	"context"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// alreadyTrackedAccount is what programs find in the answer for an account that is tracked already.
const alreadyTrackedAccount = "This account is already tracked by your organisation."

// TrackAccount tracks one account.
func (s *Server) TrackAccount(ctx context.Context, r api.TrackAccountRequestObject) (api.TrackAccountResponseObject, error) {
	caller := CallerFrom(ctx)
	l, err := s.linkOf(ctx, link.Account, r.Body.Link)
	if err != nil {
		return nil, atPointer(err, "/link")
	}
	tracked, err := caller.Org.TrackAccounts(ctx, store.TrackAccountsRequest{
		Links: []link.Link{l}, Type: trackingType(r.Body.TrackingType), CollectionIDs: r.Body.CollectionIds,
		CollectionNames: r.Body.CollectionNames, CreatedBy: caller.Token.ID, Lane: store.LaneOf(caller.Organisation), Immediate: 1, Enqueue: 1,
	})
	if err != nil {
		return nil, unknownCollections(err, "/collection_ids", r.Body.CollectionIds)
	}
	out := api.TrackAccountResult{AccountID: tracked[0].AccountID, DirectURL: s.directURL(link.Account, l.Platform, tracked[0].AccountID)}
	if tracked[0].Already {
		out.Error = new(alreadyTrackedAccount)
	}
	return api.TrackAccount200JSONResponse(out), nil
}

func trackingType(t *api.TrackingType) store.TrackingType {
	if t == nil {
		return store.TrackLatest30
	}
	return store.TrackingType(*t)
}

// StopAccount stops the tracking of an account named by id or link.
func (s *Server) StopAccount(ctx context.Context, r api.StopAccountRequestObject) (api.StopAccountResponseObject, error) {
	ref, err := s.accountRef(ctx, r.Body.ID)
	if err != nil {
		return nil, err
	}
	if err := stopOneAccount(ctx, ref, r.Body.ID); err != nil {
		return nil, err
	}
	return api.StopAccount200JSONResponse(api.Message{Message: stopped}), nil
}

// StopAccountByID stops the tracking of an account named by id.
func (s *Server) StopAccountByID(ctx context.Context, r api.StopAccountByIDRequestObject) (api.StopAccountByIDResponseObject, error) {
	if err := stopOneAccount(ctx, store.AccountRef{ID: r.AccountID}, r.AccountID.String()); err != nil {
		return nil, err
	}
	return api.StopAccountByID200JSONResponse(api.Message{Message: stopped}), nil
}

// stopOneAccount stops one account; named is how the caller names it.
func stopOneAccount(ctx context.Context, ref store.AccountRef, named string) error {
	unmatched, err := CallerFrom(ctx).Org.StopAccounts(ctx, []store.AccountRef{ref}, true)
	if err == nil && len(unmatched) > 0 {
		return untracked(link.Account, named)
	}
	return err
}
