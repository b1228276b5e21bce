package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// RefreshVideo answers POST /refresh/videos: it schedules an immediate fetch of a video.
func (s *Server) RefreshVideo(ctx context.Context, r api.RefreshVideoRequestObject) (api.RefreshVideoResponseObject, error) {
	earlyResponse, err := s.refreshItem(ctx, videoResource, r.Body.Link)
	switch {
	case err != nil:
		return nil, err
	case earlyResponse == nil:
		return api.RefreshVideo202Response{}, nil
	}
	return api.RefreshVideo200JSONResponse(*earlyResponse), nil
}

// RefreshAccount answers POST /refresh/accounts: it schedules an immediate fetch of an account.
func (s *Server) RefreshAccount(ctx context.Context, r api.RefreshAccountRequestObject) (api.RefreshAccountResponseObject, error) {
	earlyResponse, err := s.refreshItem(ctx, accountResource, r.Body.Link)
	switch {
	case err != nil:
		return nil, err
	case earlyResponse == nil:
		return api.RefreshAccount202Response{}, nil
	}
	return api.RefreshAccount200JSONResponse(*earlyResponse), nil
}

// refreshItem schedules an immediate fetch of a video or account, and returns nil. If the last successful fetch is less than four hours old,
// refreshItem schedules nothing and returns earlyResponse. It returns an error for an item that is saved but not fetched, for an item that no
// configured source can fetch, and for an account that has lost its handle to another account.
func (s *Server) refreshItem(ctx context.Context, res resource, idOrLink string) (earlyResponse *api.RefreshNotDue, err error) {
	ref, err := s.parseIDOrLink(ctx, res.kind, idOrLink)
	if f := permanentFailure(err); f != nil {
		if f.Code == failedWrongKind {
			return nil, refusedLinkError("/link", err)
		}
		return nil, problem(CodeNotFound, "Your organisation tracks no %s %s. %s", res.kind, idOrLink, f.explainReference(res.kind))
	}
	if err != nil {
		return nil, err
	}
	fetchable, err := s.fetchable.readFetchable(ctx)
	if err != nil {
		return nil, err
	}
	done, err := res.scheduleFetch(callerFrom(ctx).Org, ctx, ref, unsupportedReasons(fetchable))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, untrackedError(res.kind, idOrLink)
	case errors.Is(err, store.ErrNotFetched):
		return nil, problem(CodeConflict, "The %s %q is saved but not fetched, because the organisation has no active subscription. It is fetched when a subscription begins.", res.kind, idOrLink)
	case errors.Is(err, store.ErrHandleLost):
		return nil, problem(CodeConflict, "The handle of the account %q belongs to another account now, and the id of the account is not known. Track the account with its new handle. No fetch was scheduled.", idOrLink)
	case err != nil || done.Scheduled:
		return nil, err
	case done.Unsupported != "":
		return nil, problem(CodeConflict, "%s; the operator can configure one. No fetch was scheduled.", done.Unsupported)
	}
	return responseToEarlyRefresh(callerFrom(ctx), done), nil
}

// responseToEarlyRefresh returns the response to a refresh request that came less than four hours after the last successful fetch.
func responseToEarlyRefresh(caller Caller, r store.Refreshed) *api.RefreshNotDue {
	out := &api.RefreshNotDue{}
	after := r.After
	if caller.rules.masked {
		// Rounding up to a full hour hides the time of the last fetch.
		after = store.InstantOf(after.Time().Add(time.Hour - time.Microsecond).Truncate(time.Hour))
	} else {
		out.LatestUpdatedAt = toAPITimePtr(r.UpdatedAt)
	}
	out.RefreshAfter = toAPITime(after)
	from := after.Time().UTC().Add(time.Minute - time.Microsecond) // the message has no seconds, so the time is rounded up
	out.Message = fmt.Sprintf("The numbers are less than 4 hours old; nothing was scheduled. They can be refreshed from %s UTC on.", from.Format("2006-01-02 15:04"))
	return out
}
