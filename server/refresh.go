package server

import (
	"context"
	"errors"
	"time"

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
	return api.RefreshVideo200JSONResponse(toRefreshNotDue(CallerFrom(ctx), done)), nil
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
	return api.RefreshAccount200JSONResponse(toRefreshNotDue(CallerFrom(ctx), done)), nil
}

// toRefreshNotDue converts a refresh that was not scheduled because the last fetch was too recent. Some tiers must not learn the time of
// that fetch. For them, the earliest time of the next refresh is rounded up to the full hour, which hides it.
func toRefreshNotDue(caller Caller, r store.Refreshed) api.RefreshNotDue {
	out := api.RefreshNotDue{Message: "The numbers are less than 4 hours old; nothing was scheduled."}
	after := r.After
	if caller.facts.masked {
		after = store.InstantOf(after.Time().Add(time.Hour - time.Microsecond).Truncate(time.Hour))
	} else {
		out.LatestUpdatedAt = toAPITimePtr(r.UpdatedAt)
	}
	out.RefreshAfter = toAPITime(after)
	return out
}
