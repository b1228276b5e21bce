package server

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// immediateLinks is up to how many links a request is fetched at once (spec.md 4.4, rule 3).
const immediateLinks = 50

// bulkEntry is a distinct link of a bulk request, and what became of it.
type bulkEntry struct {
	readLink
	url  string // as first sent
	item bulkItem
}

// bulkItem is the video or account that a good link means.
type bulkItem struct {
	id       uuid.UUID
	existing bool // the organisation had it before
	already  bool // and was tracking it
}

// bulkResult is what became of a bulk request, whichever kind it was about.
type bulkResult struct {
	entries  []bulkEntry
	summary  api.TrackSummary
	enqueued bool
	warnings []string
	pending  []api.PendingItem // saved, and not fetched for want of a subscription
}

// TrackVideos tracks many videos.
func (s *Server) TrackVideos(ctx context.Context, r api.TrackVideosRequestObject) (api.TrackVideosResponseObject, error) {
	caller := CallerFrom(ctx)
	done, err := s.trackAll(ctx, link.Video, r.Body.Links, func(links []link.Link, plan fetchPlan) ([]bulkItem, error) {
		tracked, err := caller.Org.Track(ctx, store.TrackRequest{
			Links: links, CollectionIDs: r.Body.LabelIds, CreatedBy: caller.Token.ID, Lane: store.LaneOf(caller.Organisation),
			Immediate: plan.immediate, Enqueue: plan.enqueue,
		})
		items := make([]bulkItem, len(tracked))
		for i, t := range tracked {
			items[i] = bulkItem{t.VideoID, t.Existing, t.Already}
		}
		return items, err
	})
	if err != nil {
		return nil, unknownCollections(err, "/label_ids", r.Body.LabelIds)
	}
	result := api.TrackVideosResult{Success: done.summary.Failed == 0, Summary: done.summary, TrackingEnqueued: done.enqueued,
		Warnings: done.warnings, Results: make([]api.TrackVideosEntry, len(done.entries))}
	for i, e := range done.entries {
		result.Results[i] = toTrackVideosEntry(e)
	}
	if caller.Organisation.Subscription == store.SubscriptionNone {
		result.PendingTmvQueue = &api.PendingQueue{Accounts: []api.PendingItem{}, Videos: done.pending}
	}
	switch {
	case done.summary.Failed == 0:
		return api.TrackVideos200JSONResponse(result), nil
	case done.summary.Succeeded == 0:
		return api.TrackVideos422JSONResponse(result), nil
	}
	return api.TrackVideos207JSONResponse(result), nil
}

// TrackAccounts tracks many accounts.
func (s *Server) TrackAccounts(ctx context.Context, r api.TrackAccountsRequestObject) (api.TrackAccountsResponseObject, error) {
	caller := CallerFrom(ctx)
	done, err := s.trackAll(ctx, link.Account, r.Body.Links, func(links []link.Link, plan fetchPlan) ([]bulkItem, error) {
		tracked, err := caller.Org.TrackAccounts(ctx, store.TrackAccountsRequest{
			Links: links, Type: trackingType(r.Body.TrackingType), CollectionIDs: r.Body.LabelIds, CreatedBy: caller.Token.ID,
			Lane: store.LaneOf(caller.Organisation), Preview: s.previewAllowance, Immediate: plan.immediate, Enqueue: plan.enqueue,
		})
		items := make([]bulkItem, len(tracked))
		for i, t := range tracked {
			items[i] = bulkItem{t.AccountID, t.Existing, t.Already}
		}
		return items, err
	})
	if err != nil {
		return nil, unknownCollections(err, "/label_ids", r.Body.LabelIds)
	}
	result := api.TrackAccountsResult{Success: done.summary.Failed == 0, Summary: done.summary, TrackingEnqueued: done.enqueued,
		Warnings: done.warnings, Results: make([]api.TrackAccountsEntry, len(done.entries))}
	for i, e := range done.entries {
		result.Results[i] = toTrackAccountsEntry(e)
	}
	if caller.Organisation.Subscription == store.SubscriptionNone {
		result.PendingTmvQueue = &api.PendingQueue{Accounts: done.pending, Videos: []api.PendingItem{}}
	}
	switch {
	case done.summary.Failed == 0:
		return api.TrackAccounts200JSONResponse(result), nil
	case done.summary.Succeeded == 0:
		return api.TrackAccounts422JSONResponse(result), nil
	}
	return api.TrackAccounts207JSONResponse(result), nil
}

// trackAll reads the links of a bulk request about one kind, hands the good ones, if any, to save, which tracks them and
// returns in their order what they mean, and sums up.
func (s *Server) trackAll(ctx context.Context, kind link.Kind, urls []string, save func([]link.Link, fetchPlan) ([]bulkItem, error)) (bulkResult, error) {
	read, err := s.linksOf(ctx, kind, urls)
	if err != nil {
		return bulkResult{}, err
	}
	entries := distinct(urls, read)
	plan := s.planFetches(CallerFrom(ctx).Organisation, entries)
	if plan.good > 0 {
		links := make([]link.Link, 0, plan.good)
		for _, e := range entries {
			if e.failure == nil {
				links = append(links, e.link)
			}
		}
		items, err := save(links, plan)
		if err != nil {
			return bulkResult{}, err
		}
		entries, plan = settle(entries, items, plan)
	}
	return s.sumUp(entries, plan), nil
}

// distinct makes one entry of links that mean the same, and of bad links that are spelled the same.
func distinct(urls []string, read []readLink) []bulkEntry {
	entries := make([]bulkEntry, 0, len(urls))
	seen := make(map[[2]string]bool, len(urls))
	for i, r := range read {
		key := [2]string{string(r.link.Platform), r.link.ID}
		switch {
		case r.failure != nil:
			key = [2]string{"", urls[i]}
		case r.link.ID == "": // an account by its handle, which no id begins like
			key[1] = "@" + r.link.Handle
		}
		if !seen[key] {
			seen[key] = true
			entries = append(entries, bulkEntry{readLink: r, url: urls[i]})
		}
	}
	return entries
}

// settle writes into the entries of good links what they mean. Two links can turn out to mean the same account, one by its id and
// one by its handle: the first entry stands for both.
func settle(entries []bulkEntry, items []bulkItem, plan fetchPlan) ([]bulkEntry, fetchPlan) {
	settled := make([]bulkEntry, 0, len(entries))
	seen := make(map[uuid.UUID]bool, len(items))
	for _, e := range entries {
		if e.failure == nil {
			e.item, items = items[0], items[1:]
			if seen[e.item.id] {
				continue
			}
			seen[e.item.id] = true
		}
		settled = append(settled, e)
	}
	plan.good = len(seen)
	plan.enqueue, plan.immediate = min(plan.enqueue, plan.good), min(plan.immediate, plan.good)
	return settled, plan
}

// fetchPlan is how many of the good links of a request, from the first on, are fetched.
type fetchPlan struct {
	good      int // links that mean what is wanted
	enqueue   int // fetched at all
	immediate int // fetched at once
}

// planFetches applies the rules on the size of a request and on the subscription.
func (s *Server) planFetches(o store.Organisation, entries []bulkEntry) fetchPlan {
	var p fetchPlan
	for _, e := range entries {
		if e.failure == nil {
			p.good++
		}
	}
	p.enqueue = p.good
	if o.Subscription == store.SubscriptionNone {
		p.enqueue = min(p.good, s.previewAllowance)
	}
	if len(entries) <= immediateLinks {
		p.immediate = p.enqueue
	}
	return p
}

// sumUp counts, and lists what is not fetched.
func (s *Server) sumUp(entries []bulkEntry, plan fetchPlan) bulkResult {
	r := bulkResult{entries: entries, enqueued: plan.good > 0 && plan.immediate == plan.good, warnings: s.warnings(len(entries), plan),
		pending: []api.PendingItem{}}
	good := 0
	for _, e := range entries {
		r.summary.Total++
		switch e.status() {
		case api.TrackStatusFailed:
			r.summary.Failed++
			if e.failure.Retryable {
				r.summary.Retryable++
			}
			continue
		case api.TrackStatusAlreadyTracked:
			r.summary.AlreadyExists++
		default:
			if good >= plan.enqueue {
				r.pending = append(r.pending, api.PendingItem{ID: e.item.id, Platform: api.Platform(e.link.Platform)})
			}
		}
		r.summary.Succeeded++
		good++
	}
	return r
}

// warnings are the notes on what is not fetched at once.
func (s *Server) warnings(entries int, plan fetchPlan) []string {
	notes := []string{}
	if plan.enqueue < plan.good {
		notes = append(notes, fmt.Sprintf("Without an active subscription only the first %d items of a request are fetched; no data is collected for the other %d.",
			s.previewAllowance, plan.good-plan.enqueue))
	}
	if entries > immediateLinks && plan.good > 0 {
		notes = append(notes, fmt.Sprintf("A request of more than %d links is not fetched at once; the scheduled update collects the data.", immediateLinks))
	}
	return notes
}

func (e bulkEntry) status() api.TrackStatus {
	switch {
	case e.failure != nil:
		return api.TrackStatusFailed
	case e.item.already:
		return api.TrackStatusAlreadyTracked
	}
	return api.TrackStatusTracked
}

// saved is the id of what was saved; nil for an entry that failed.
func (e bulkEntry) saved() *uuid.UUID {
	if e.failure != nil {
		return nil
	}
	return &e.item.id
}

// told is a failure as the answer tells it; nothing for an entry that was saved.
func (e bulkEntry) told() (text *string, code *api.TrackFailure, retryable *bool) {
	if e.failure == nil {
		return nil, nil, nil
	}
	return &e.failure.Detail, new(api.TrackFailure(e.failure.Code)), &e.failure.Retryable
}

// maxShownURL is how many characters of a link an entry repeats. It is the greatest length of a link.
const maxShownURL = 2048

// shownURL returns the link as it was first sent. A longer one cannot be a link and is cut, so that the answer is not as long as the
// request.
func (e bulkEntry) shownURL() string {
	if utf8.RuneCountInString(e.url) <= maxShownURL {
		return e.url
	}
	return string([]rune(e.url)[:maxShownURL]) + "…"
}

func toTrackVideosEntry(e bulkEntry) api.TrackVideosEntry {
	out := api.TrackVideosEntry{Type: api.EntryTypeVideo, URL: e.shownURL(), Status: e.status(), Success: e.failure == nil,
		VideoID: e.saved(), WasExisting: e.item.existing}
	out.Error, out.Code, out.Retryable = e.told()
	return out
}

func toTrackAccountsEntry(e bulkEntry) api.TrackAccountsEntry {
	out := api.TrackAccountsEntry{Type: api.EntryTypeAccount, URL: e.shownURL(), Status: e.status(), Success: e.failure == nil,
		AccountID: e.saved(), WasExisting: e.item.existing}
	out.Error, out.Code, out.Retryable = e.told()
	return out
}

// unknownCollections points at the members that name unknown collections; other errors pass.
func unknownCollections(err error, pointer string, ids []uuid.UUID) error {
	return unknownIDs(err, "collection", pointer, ids)
}
