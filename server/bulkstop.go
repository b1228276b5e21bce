package server

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// stopEntry is a distinct video or account of a bulk stop.
type stopEntry struct {
	id  uuid.UUID
	url *string // as sent, when it was sent as a link
}

// bulkStop is how a kind of thing is stopped.
type bulkStop struct {
	kind link.Kind
	// find returns the ids of what is being tracked and links mean, in their order; the zero id where there is none.
	find func(context.Context, []link.Link) ([]uuid.UUID, error)
	// stop stops what the ids name and returns those that name nothing that is being tracked.
	stop func(context.Context, []uuid.UUID) ([]uuid.UUID, error)
}

// StopVideos stops the tracking of many videos.
func (s *Server) StopVideos(ctx context.Context, r api.StopVideosRequestObject) (api.StopVideosResponseObject, error) {
	org := CallerFrom(ctx).Org
	result, err := s.stopAll(ctx, r.Body.Ids, bulkStop{link.Video, org.TrackedVideoIDs, func(ctx context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
		refs := make([]store.VideoRef, len(ids))
		for i, id := range ids {
			refs[i].ID = id
		}
		refs, err := org.StopVideos(ctx, refs, false)
		unmatched := make([]uuid.UUID, len(refs))
		for i, ref := range refs {
			unmatched[i] = ref.ID
		}
		return unmatched, err
	}})
	if err != nil {
		return nil, err
	}
	if !result.Success {
		return api.StopVideos207JSONResponse(result), nil
	}
	return api.StopVideos200JSONResponse(result), nil
}

// StopAccounts stops the tracking of many accounts.
func (s *Server) StopAccounts(ctx context.Context, r api.StopAccountsRequestObject) (api.StopAccountsResponseObject, error) {
	org := CallerFrom(ctx).Org
	result, err := s.stopAll(ctx, r.Body.Ids, bulkStop{link.Account, org.TrackedAccountIDs, func(ctx context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
		refs := make([]store.AccountRef, len(ids))
		for i, id := range ids {
			refs[i].ID = id
		}
		refs, err := org.StopAccounts(ctx, refs, false)
		unmatched := make([]uuid.UUID, len(refs))
		for i, ref := range refs {
			unmatched[i] = ref.ID
		}
		return unmatched, err
	}})
	if err != nil {
		return nil, err
	}
	if !result.Success {
		return api.StopAccounts207JSONResponse(result), nil
	}
	return api.StopAccounts200JSONResponse(result), nil
}

func (s *Server) stopAll(ctx context.Context, sent []string, b bulkStop) (api.StopResult, error) {
	entries, err := s.readStopEntries(ctx, sent, b)
	if err != nil {
		return api.StopResult{}, err
	}
	ids := make([]uuid.UUID, len(entries))
	for i, e := range entries {
		ids[i] = e.id
	}
	unmatched, err := b.stop(ctx, ids)
	return toStopResult(b.kind, entries, unmatched), err
}

// readStopEntries looks the links up, all before anything is stopped: one that matches nothing fails the request. Ids
// are taken as they are. Entries that mean the same become one.
func (s *Server) readStopEntries(ctx context.Context, sent []string, b bulkStop) ([]stopEntry, error) {
	ids := make([]uuid.UUID, len(sent))
	var raws []string
	var at []int // where each of raws was sent
	for i, text := range sent {
		if canonicalUUID.MatchString(text) {
			ids[i] = uuid.MustParse(text)
			continue
		}
		raws, at = append(raws, text), append(at, i)
	}
	found, err := s.trackedByLink(ctx, raws, b)
	if err != nil {
		return nil, err
	}
	var faults []api.Fault
	for i, id := range found {
		if ids[at[i]] = id; id == uuid.Nil {
			faults = append(faults, bodyFault("/ids/"+strconv.Itoa(at[i]), string(CodeNotFound), "Your organisation tracks no %s %s.", b.kind, raws[i]))
		}
	}
	if len(faults) > 0 {
		return nil, unmatchedLinks(faults)
	}
	entries := make([]stopEntry, 0, len(sent))
	seen := make(map[uuid.UUID]bool, len(sent))
	isLink := make(map[int]bool, len(at))
	for _, i := range at {
		isLink[i] = true
	}
	for i, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		e := stopEntry{id: id}
		if isLink[i] {
			e.url = &sent[i]
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// trackedByLink returns the ids of what is being tracked and links mean, in their order; the zero id where there is
// none. A link that cannot be resolved right now is an error: nobody can say what it matches.
func (s *Server) trackedByLink(ctx context.Context, raws []string, b bulkStop) ([]uuid.UUID, error) {
	read, err := s.linksOf(ctx, b.kind, raws)
	if err != nil {
		return nil, err
	}
	links := make([]link.Link, len(read))
	for i, r := range read {
		if r.failure != nil && r.failure.Retryable {
			return nil, r.failure
		}
		if r.failure == nil {
			links[i] = r.link
		}
	}
	return b.find(ctx, links)
}

func unmatchedLinks(faults []api.Fault) *Error {
	const told = 10
	details := make([]string, 0, told)
	for _, f := range faults[:min(told, len(faults))] {
		details = append(details, f.Detail)
	}
	e := problem(CodeNotFound, "Nothing was stopped. %s", strings.Join(details, " "))
	if len(faults) > told {
		e.Detail += " The others stand in errors."
	}
	e.Faults = faults[:min(maxFaults, len(faults))]
	return e
}

func toStopResult(kind link.Kind, entries []stopEntry, unmatched []uuid.UUID) api.StopResult {
	failed := make(map[uuid.UUID]bool, len(unmatched))
	for _, id := range unmatched {
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
			out.Error, out.Code = new("Your organisation tracks no "+string(kind)+" with this id."), new(api.StopEntryCodeNotFound)
		}
		result.Results[i] = out
	}
	return result
}
