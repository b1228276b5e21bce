package server

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// alreadyTracked is what programs find in the answer for a video that is tracked already; they look for the word "already".
const alreadyTracked = "This video is already tracked by your organisation."

// TrackVideo tracks one video.
func (s *Server) TrackVideo(ctx context.Context, r api.TrackVideoRequestObject) (api.TrackVideoResponseObject, error) {
	caller := CallerFrom(ctx)
	l, err := s.linkOf(ctx, link.Video, r.Body.Link)
	if err != nil {
		return nil, atPointer(err, "/link")
	}
	tracked, err := caller.Org.Track(ctx, store.TrackRequest{
		Links: []link.Link{l}, CollectionIDs: r.Body.CollectionIds, CollectionNames: r.Body.CollectionNames,
		CreatedBy: caller.Token.ID, Lane: store.LaneOf(caller.Organisation), Immediate: 1, Enqueue: 1,
	})
	if err != nil {
		return nil, unknownCollections(err, "/collection_ids", r.Body.CollectionIds)
	}
	out := api.TrackVideoResult{VideoID: tracked[0].VideoID, DirectURL: s.directURL(link.Video, l.Platform, tracked[0].VideoID)}
	if tracked[0].Already {
		out.Error = new(alreadyTracked)
	}
	return api.TrackVideo200JSONResponse(out), nil
}

// directURL is the page of a video or account on the dashboard.
func (s *Server) directURL(kind link.Kind, p link.Platform, id uuid.UUID) string {
	return fmt.Sprintf("%s/%s/%s/%s", s.appURL, kind, p, id)
}

const stopped = "Tracking stopped. What was collected stays readable."

// StopVideo stops the tracking of a video named by id or link.
func (s *Server) StopVideo(ctx context.Context, r api.StopVideoRequestObject) (api.StopVideoResponseObject, error) {
	ref, err := s.videoRef(ctx, r.Body.ID)
	if err != nil {
		return nil, err
	}
	if err := stopOne(ctx, ref, r.Body.ID); err != nil {
		return nil, err
	}
	return api.StopVideo200JSONResponse(api.Message{Message: stopped}), nil
}

// StopVideoByID stops the tracking of a video named by id.
func (s *Server) StopVideoByID(ctx context.Context, r api.StopVideoByIDRequestObject) (api.StopVideoByIDResponseObject, error) {
	if err := stopOne(ctx, store.VideoRef{ID: r.AdID}, r.AdID.String()); err != nil {
		return nil, err
	}
	return api.StopVideoByID200JSONResponse(api.Message{Message: stopped}), nil
}

// stopOne stops one video; named is how the caller names it.
func stopOne(ctx context.Context, ref store.VideoRef, named string) error {
	unmatched, err := CallerFrom(ctx).Org.StopVideos(ctx, []store.VideoRef{ref}, true)
	if err == nil && len(unmatched) > 0 {
		return untracked(link.Video, named)
	}
	return err
}

// untracked says that nothing is being tracked that the caller could have named so.
func untracked(kind link.Kind, named string) *Error {
	return problem(CodeNotFound, "Your organisation tracks no %s %s.", kind, named)
}

// atPointer turns the refusal of a link into the problem of the member that held it; other errors pass.
func atPointer(err error, pointer string) error {
	f := refusedLink(err)
	if f == nil {
		return err
	}
	e := f.problem()
	e.Faults = []api.Fault{bodyFault(pointer, f.Code, "%s", f.Detail)}
	return e
}
