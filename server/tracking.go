package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// resource contains the tracking functions for one kind of item. There is one value for videos and
// one for accounts.
type resource struct {
	kind link.Kind
	// startTracking tracks the videos or accounts of a request and returns them in the order of its links. Server.startTracking
	// calls it.
	startTracking func(*store.Org, context.Context, store.TrackRequest) ([]store.Tracked, error)
	// trackedIDs returns one id for each link, in the same order. The id is zero if the
	// organisation does not track the link's video or account.
	trackedIDs func(*store.Org, context.Context, []link.Link) ([]uuid.UUID, error)
	// stopTracking stops the tracking of videos or accounts. It returns the ids without a tracked video or account.
	stopTracking func(_ *store.Org, _ context.Context, ids []uuid.UUID) (untracked []uuid.UUID, err error)
	// scheduleFetch schedules an immediate fetch of a video or account, unless `unsupported` returns a reason why no configured source can fetch it.
	scheduleFetch func(_ *store.Org, _ context.Context, _ store.Ref, unsupported func(link.Link) string) (store.Refreshed, error)
}

// startTracking calls res.startTracking in the name of the caller. It sets those fields of the request that are the same for all operations.
func (s *Server) startTracking(ctx context.Context, res resource, r store.TrackRequest, fetchable queue.Fetchable) ([]store.Tracked, error) {
	caller := callerFrom(ctx)
	r.CreatedBy, r.Preview, r.Unsupported = caller.Token.ID, s.previewAllowance, unsupportedReasons(fetchable)
	return res.startTracking(caller.Org, ctx, r)
}

// trackingTypeOf returns the tracking type that a request names, or "" if it names none.
func trackingTypeOf(named *api.TrackingType) store.TrackingType {
	if named == nil {
		return ""
	}
	return store.TrackingType(*named)
}

// warningsAboutKeptTypes returns a warning for each tracking type that accounts keep, although the request names another type.
func warningsAboutKeptTypes(items []store.Tracked) []string {
	var warnings []string
	for _, item := range items {
		warning := fmt.Sprintf("An account that is already tracked keeps its tracking type %s. To change the type, stop the account and track it again.", item.KeptType)
		if item.KeptType != "" && !slices.Contains(warnings, warning) {
			warnings = append(warnings, warning)
		}
	}
	return warnings
}

var videoResource = resource{
	kind:          link.Video,
	startTracking: (*store.Org).Track,
	trackedIDs:    (*store.Org).TrackedVideoIDs,
	stopTracking:  (*store.Org).StopVideos,
	scheduleFetch: (*store.Org).RefreshVideo,
}

var accountResource = resource{
	kind:          link.Account,
	startTracking: (*store.Org).TrackAccounts,
	trackedIDs:    (*store.Org).TrackedAccountIDs,
	stopTracking:  (*store.Org).StopAccounts,
	scheduleFetch: (*store.Org).RefreshAccount,
}

// TrackVideo answers POST /videos: it tracks one video. Its requirements are in section 4.3 of docs/coverage.md.
func (s *Server) TrackVideo(ctx context.Context, r api.TrackVideoRequestObject) (api.TrackVideoResponseObject, error) {
	one, err := s.trackItem(ctx, videoResource, r.Body.Link,
		store.TrackRequest{CollectionIDs: r.Body.CollectionIds, CollectionNames: r.Body.CollectionNames})
	if err != nil {
		return nil, err
	}
	return api.TrackVideo200JSONResponse{VideoID: one.id, DirectURL: one.directURL, Error: one.notice, Warnings: one.warnings}, nil
}

// TrackAccount answers POST /accounts: it tracks one account.
func (s *Server) TrackAccount(ctx context.Context, r api.TrackAccountRequestObject) (api.TrackAccountResponseObject, error) {
	one, err := s.trackItem(ctx, accountResource, r.Body.Link,
		store.TrackRequest{Type: trackingTypeOf(r.Body.TrackingType), CollectionIDs: r.Body.CollectionIds, CollectionNames: r.Body.CollectionNames})
	if err != nil {
		return nil, err
	}
	return api.TrackAccount200JSONResponse{AccountID: one.id, DirectURL: one.directURL, Error: one.notice, Warnings: one.warnings}, nil
}

// trackOneResult is the result of a request that tracks one video or account.
type trackOneResult struct {
	id        uuid.UUID
	directURL string  // URL of the dashboard page of the video or account
	notice    *string // nil, or a sentence if the organisation already tracked the item; it contains "already", because clients search for this word
	warnings  []string
}

// trackItem tracks the video or account of one link.
func (s *Server) trackItem(ctx context.Context, res resource, raw string, r store.TrackRequest) (one trackOneResult, err error) {
	l, err := s.parseLink(ctx, res.kind, raw)
	if err != nil {
		return one, refusedLinkError("/link", err)
	}
	fetchable, err := s.fetchable.readFetchable(ctx)
	if err != nil {
		return one, err
	}
	r.Links, r.Immediate, r.Allowance = []link.Link{l}, 1, 1
	items, err := s.startTracking(ctx, res, r, fetchable)
	if err != nil {
		return one, unknownIDsError(err, "collection", "/collection_ids", r.CollectionIDs)
	}
	if items[0].Already {
		one.notice = new(fmt.Sprintf("This %s is already tracked by your organisation.", res.kind))
	}
	one.id, one.directURL = items[0].ID, fmt.Sprintf("%s/%s/%s/%s", s.appURL, res.kind, l.Platform, items[0].ID)
	one.warnings = append(warningsAboutLinks(fetchable, r.Links), warningsAboutKeptTypes(items)...)
	return one, nil
}

// refusedLinkError converts the error of a permanently refused link to an error response. Any other
// error is returned unchanged. linkPointer is the JSON pointer of the link.
func refusedLinkError(linkPointer string, err error) error {
	f := permanentFailure(err)
	if f == nil {
		return err
	}
	e := f.problem()
	e.Faults = []api.Fault{bodyFault(linkPointer, f.Code, "%s", f.Detail)}
	return e
}

// TrackVideos answers POST /videos/bulk: it tracks many videos. Its requirements are in section 4.4 of docs/coverage.md.
func (s *Server) TrackVideos(ctx context.Context, r api.TrackVideosRequestObject) (api.TrackVideosResponseObject, error) {
	done, err := s.trackLinks(ctx, videoResource, r.Body.Links, store.TrackRequest{CollectionIDs: r.Body.LabelIds})
	if err != nil {
		return nil, err
	}
	return bulkResponse{done.status(), api.TrackVideosResult{
		Success: done.summary.Failed == 0, Summary: done.summary, TrackingEnqueued: done.enqueued, Warnings: done.warnings,
		PendingTmvQueue: done.pendingQueue(link.Video), Results: convertAll(done.entries, toTrackVideosEntry)}}, nil
}

// TrackAccounts answers POST /accounts/bulk: it tracks many accounts.
func (s *Server) TrackAccounts(ctx context.Context, r api.TrackAccountsRequestObject) (api.TrackAccountsResponseObject, error) {
	done, err := s.trackLinks(ctx, accountResource, r.Body.Links, store.TrackRequest{Type: trackingTypeOf(r.Body.TrackingType), CollectionIDs: r.Body.LabelIds})
	if err != nil {
		return nil, err
	}
	return bulkResponse{done.status(), api.TrackAccountsResult{
		Success: done.summary.Failed == 0, Summary: done.summary, TrackingEnqueued: done.enqueued, Warnings: done.warnings,
		PendingTmvQueue: done.pendingQueue(link.Account), Results: convertAll(done.entries, toTrackAccountsEntry)}}, nil
}
