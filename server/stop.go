package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// stoppedMessage is the message of the response if the tracking of one video or account was stopped.
const stoppedMessage = "Tracking stopped. The collected data stays readable."

// StopVideo answers DELETE /videos: it stops the tracking of the video with the id or link in the request body. Its requirements are in section 4.3 of docs/coverage.md.
func (s *Server) StopVideo(ctx context.Context, r api.StopVideoRequestObject) (api.StopVideoResponseObject, error) {
	ref, err := s.parseReference(ctx, link.Video, r.Body.ID)
	if err != nil {
		return nil, err
	}
	if err := stopReferencedVideo(ctx, ref, r.Body.ID); err != nil {
		return nil, err
	}
	return api.StopVideo200JSONResponse{Message: stoppedMessage}, nil
}

// StopVideoByID answers DELETE /videos/{ad_id}: it stops the tracking of the video with the id in the path. Its requirements are in section 4.3 of docs/coverage.md.
func (s *Server) StopVideoByID(ctx context.Context, r api.StopVideoByIDRequestObject) (api.StopVideoByIDResponseObject, error) {
	if err := stopReferencedVideo(ctx, store.Ref{ID: r.AdID}, r.AdID.String()); err != nil {
		return nil, err
	}
	return api.StopVideoByID200JSONResponse{Message: stoppedMessage}, nil
}

// stopReferencedVideo stops the tracking of one video. If the organisation does not track it, the error has the code not_found. idOrLink is the id or
// link of the video as the caller sent it.
func stopReferencedVideo(ctx context.Context, ref store.Ref, idOrLink string) error {
	id, err := videoResource.trackedID(ctx, ref, idOrLink)
	if err != nil {
		return err
	}
	untracked, err := callerFrom(ctx).Org.StopVideos(ctx, []uuid.UUID{id})
	if err == nil && len(untracked) > 0 {
		return untrackedError(link.Video, idOrLink)
	}
	return err
}

// trackedID returns the id of the video or account that ref identifies. If ref is a link and the organisation does not track its video or account, the
// error has the code not_found. If ref is an id, trackedID returns it without a check. idOrLink is the id or link as the caller sent it.
func (res resource) trackedID(ctx context.Context, ref store.Ref, idOrLink string) (uuid.UUID, error) {
	if ref.ID != uuid.Nil {
		return ref.ID, nil
	}
	ids, err := res.trackedIDs(callerFrom(ctx).Org, ctx, []link.Link{ref.Link})
	switch {
	case err != nil:
		return uuid.Nil, err
	case ids[0] == uuid.Nil:
		return uuid.Nil, untrackedError(res.kind, idOrLink)
	}
	return ids[0], nil
}

// StopAccount answers DELETE /accounts: it stops the tracking of the account with the id or link in the request body.
func (s *Server) StopAccount(ctx context.Context, r api.StopAccountRequestObject) (api.StopAccountResponseObject, error) {
	ref, err := s.parseReference(ctx, link.Account, r.Body.ID)
	if err != nil {
		return nil, err
	}
	stopped, err := stopReferencedAccount(ctx, ref, r.Body.ID)
	return api.StopAccount200JSONResponse(stopped), err
}

// StopAccountByID answers DELETE /accounts/{account_id}: it stops the tracking of the account with the id in the path.
func (s *Server) StopAccountByID(ctx context.Context, r api.StopAccountByIDRequestObject) (api.StopAccountByIDResponseObject, error) {
	stopped, err := stopReferencedAccount(ctx, store.Ref{ID: r.AccountID}, r.AccountID.String())
	return api.StopAccountByID200JSONResponse(stopped), err
}

// stopReferencedAccount stops the tracking of one account. If the organisation does not track it, the error has the code not_found. idOrLink is the id
// or link of the account as the caller sent it. A tier that does not show metrics gets no numbers of videos,
// because they add up to the metric total_videos_tracked of the account.
func stopReferencedAccount(ctx context.Context, ref store.Ref, idOrLink string) (api.StoppedAccount, error) {
	caller := callerFrom(ctx)
	id, err := accountResource.trackedID(ctx, ref, idOrLink)
	if err != nil {
		return api.StoppedAccount{}, err
	}
	videos, found, err := caller.Org.StopAccount(ctx, id)
	switch {
	case err != nil:
		return api.StoppedAccount{}, err
	case !found:
		return api.StoppedAccount{}, untrackedError(link.Account, idOrLink)
	}
	return api.StoppedAccount{Message: stoppedMessage, VideosStopped: caller.View.Count(&videos.Stopped), VideosStillTracked: caller.View.Count(&videos.StillTracked)}, nil
}

// StopVideos answers DELETE /videos/bulk: it stops the tracking of many videos. Its requirements are in section 4.5 of docs/coverage.md.
func (s *Server) StopVideos(ctx context.Context, r api.StopVideosRequestObject) (api.StopVideosResponseObject, error) {
	return s.stopItems(ctx, videoResource, r.Body.Ids)
}

// StopAccounts answers DELETE /accounts/bulk: it stops the tracking of many accounts.
func (s *Server) StopAccounts(ctx context.Context, r api.StopAccountsRequestObject) (api.StopAccountsResponseObject, error) {
	return s.stopItems(ctx, accountResource, r.Body.Ids)
}

// untrackedError returns the error response for a video or account that the organisation does not track. idOrLink is its id or link as the
// caller sent it.
func untrackedError(kind link.Kind, idOrLink string) *Error {
	return problem(CodeNotFound, "Your organisation tracks no %s %s.", kind, idOrLink)
}

// stopEntry is one video or account in a request to stop the tracking of many videos or accounts.
type stopEntry struct {
	id  uuid.UUID
	url *string // link of the video or account as the caller sent it; nil if the caller sent an id
}

// stopItems stops the tracking of the videos or accounts with the given ids or links.
func (s *Server) stopItems(ctx context.Context, res resource, idsOrLinks []string) (bulkResponse, error) {
	entries, err := s.resolveIDsOrLinks(ctx, res, idsOrLinks)
	if err != nil {
		return bulkResponse{}, err
	}
	ids := convertAll(entries, func(e stopEntry) uuid.UUID { return e.id })
	untracked, err := res.stopTracking(callerFrom(ctx).Org, ctx, ids)
	if err != nil {
		return bulkResponse{}, err
	}
	result := toStopResult(res.kind, entries, untracked)
	if !result.Success {
		return bulkResponse{http.StatusMultiStatus, result}, nil
	}
	return bulkResponse{http.StatusOK, result}, nil
}

// resolveIDsOrLinks converts ids and links of videos or accounts to entries without duplicates. It
// fails if a link leads to no tracked video or account.
func (s *Server) resolveIDsOrLinks(ctx context.Context, res resource, idsOrLinks []string) ([]stopEntry, error) {
	ids := make([]uuid.UUID, len(idsOrLinks))
	var urls []string
	var positions []int // for each link in urls, its index in idsOrLinks
	isLink := make([]bool, len(idsOrLinks))
	for i, text := range idsOrLinks {
		if canonicalUUID.MatchString(text) {
			// The id is not checked here. An untracked id is reported when the tracking is stopped.
			ids[i] = uuid.MustParse(text)
			continue
		}
		urls, positions, isLink[i] = append(urls, text), append(positions, i), true
	}
	found, refused, err := s.trackedIDsOfLinks(ctx, res, urls)
	if err != nil {
		return nil, err
	}
	var faults []api.Fault
	for i, id := range found {
		if ids[positions[i]] = id; id == uuid.Nil {
			detail := untrackedError(res.kind, urls[i]).Detail
			if refused[i] != nil {
				detail += " " + refused[i].explainReference(res.kind)
			}
			faults = append(faults, bodyFault("/ids/"+strconv.Itoa(positions[i]), string(CodeNotFound), "%s", detail))
		}
	}
	if len(faults) > 0 {
		return nil, untrackedLinksError(faults)
	}
	entries := make([]stopEntry, 0, len(idsOrLinks))
	seen := make(map[uuid.UUID]bool, len(idsOrLinks))
	for i, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		e := stopEntry{id: id}
		if isLink[i] {
			e.url = &idsOrLinks[i]
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// trackedIDsOfLinks returns the ids of videos or accounts, in the order of urls. An id is zero if
// the link is refused, or its video or account is not tracked. The result refused has the reason for each refused link, and nil for the others.
func (s *Server) trackedIDsOfLinks(ctx context.Context, res resource, urls []string) (ids []uuid.UUID, refused []*linkFailure, err error) {
	parsed, err := s.parseLinks(ctx, res.kind, urls)
	if err != nil {
		return nil, nil, err
	}
	links := make([]link.Link, len(parsed))
	refused = make([]*linkFailure, len(parsed))
	for i, p := range parsed {
		if p.failure != nil && p.failure.Retryable {
			// The short link cannot be resolved now, but it could lead to a tracked video or
			// account.
			return nil, nil, p.failure
		}
		if refused[i] = p.failure; p.failure == nil {
			links[i] = p.link
		}
	}
	ids, err = res.trackedIDs(callerFrom(ctx).Org, ctx, links)
	return ids, refused, err
}

// untrackedLinksError returns the error response for a bulk request with links that lead to no tracked video or account. faults has one
// fault for each such link.
func untrackedLinksError(faults []api.Fault) *Error {
	const shown, maxBytes = 10, 15_000 // the contract allows 20,000 characters
	details, size := make([]string, 0, shown), 0
	for _, f := range faults[:min(shown, len(faults))] {
		if size += len(f.Detail); size > maxBytes {
			break
		}
		details = append(details, f.Detail)
	}
	e := problem(CodeNotFound, "Nothing was stopped. %s", strings.Join(details, " "))
	if len(faults) > len(details) {
		e.Detail += " The member \"errors\" lists the other links."
	}
	e.Faults = faults[:min(maxFaults, len(faults))]
	return e
}

// toStopResult returns the response to a request to stop the tracking of many videos or accounts. "untracked" has the ids of the videos or accounts
// that were not tracked before the request.
func toStopResult(kind link.Kind, entries []stopEntry, untracked []uuid.UUID) api.StopResult {
	failed := make(map[uuid.UUID]bool, len(untracked))
	for _, id := range untracked {
		failed[id] = true
	}
	result := api.StopResult{Success: len(failed) == 0, Results: make([]api.StopEntry, len(entries))}
	for i, e := range entries {
		out := api.StopEntry{ID: e.id, Type: api.EntryType(kind), Success: !failed[e.id], URL: e.url}
		result.Summary.Total++
		if out.Success {
			result.Summary.Succeeded++
		} else {
			result.Summary.Failed++
			out.Error, out.Code = new(fmt.Sprintf("Your organisation tracks no %s with this id.", kind)), new(api.StopEntryCodeNotFound)
		}
		result.Results[i] = out
	}
	return result
}
