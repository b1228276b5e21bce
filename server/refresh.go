package server

import (
	"context"
	"errors"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// RefreshVideo asks for a video to be fetched now.
func (s *Server) RefreshVideo(ctx context.Context, r api.RefreshVideoRequestObject) (api.RefreshVideoResponseObject, error) {
	ref, err := s.videoRef(ctx, r.Body.Link)
	if err != nil {
		return nil, err
	}
	done, err := CallerFrom(ctx).Org.RefreshVideo(ctx, ref)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, untracked(link.Video, r.Body.Link)
	case err != nil:
		return nil, err
	case done.Scheduled:
		return api.RefreshVideo202Response{}, nil
	}
	return api.RefreshVideo200JSONResponse(toRefreshNotDue(done)), nil
}

// RefreshAccount asks for an account to be fetched now.
func (s *Server) RefreshAccount(ctx context.Context, r api.RefreshAccountRequestObject) (api.RefreshAccountResponseObject, error) {
	ref, err := s.accountRef(ctx, r.Body.Link)
	if err != nil {
		return nil, err
	}
	done, err := CallerFrom(ctx).Org.RefreshAccount(ctx, ref)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, untracked(link.Account, r.Body.Link)
	case err != nil:
		return nil, err
	case done.Scheduled:
		return api.RefreshAccount202Response{}, nil
	}
	return api.RefreshAccount200JSONResponse(toRefreshNotDue(done)), nil
}

// toRefreshNotDue converts what was not scheduled, since it was fetched a short while ago.
func toRefreshNotDue(r store.Refreshed) api.RefreshNotDue {
	return api.RefreshNotDue{Message: "The numbers are less than 4 hours old; nothing was scheduled.",
		LatestUpdatedAt: toAPITime(*r.UpdatedAt), RefreshAfter: toAPITime(r.After)}
}
