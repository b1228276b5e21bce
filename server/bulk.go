package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// immediateLinks is the maximum number of links in a bulk request for the items to be fetched immediately (spec.md 4.4, rule 3). The items of a
// larger request are fetched by the scheduled update.
const immediateLinks = 50

// bulkEntry is one video or account of a bulk request, or one refused link, and its result.
type bulkEntry struct {
	parsedLink
	url  string      // the first link of the request that means this item
	item trackedItem // zero if the link was refused
}

// bulkResult is the result of a bulk request to track videos or accounts.
type bulkResult struct {
	entries  []bulkEntry
	summary  api.TrackSummary
	enqueued bool // all items are fetched immediately
	warnings []string
	pending  []api.PendingItem // items that are tracked but not fetched, because the organisation has no subscription
}

// status returns 200 if every entry succeeded, 422 if every entry failed, and otherwise 207.
func (r bulkResult) status() int {
	switch {
	case r.summary.Failed == 0:
		return http.StatusOK
	case r.summary.Succeeded == 0:
		return http.StatusUnprocessableEntity
	}
	return http.StatusMultiStatus
}

// pendingQueue returns the tracked items that are not fetched, because the organisation has no subscription. It returns nil if the organisation
// has a subscription. kind is the kind of all items.
func (r bulkResult) pendingQueue(ctx context.Context, kind link.Kind) *api.PendingQueue {
	if CallerFrom(ctx).Organisation.Subscription != store.SubscriptionNone {
		return nil
	}
	queue := &api.PendingQueue{Accounts: []api.PendingItem{}, Videos: r.pending}
	if kind == link.Account {
		queue.Accounts, queue.Videos = queue.Videos, queue.Accounts
	}
	return queue
}

// bulkResponse is the response to a bulk request.
type bulkResponse struct {
	status int
	body   any
}

// VisitTrackVideosResponse writes the response of the operation trackVideos.
func (r bulkResponse) VisitTrackVideosResponse(w http.ResponseWriter) error { return r.write(w) }

// VisitTrackAccountsResponse writes the response of the operation trackAccounts.
func (r bulkResponse) VisitTrackAccountsResponse(w http.ResponseWriter) error { return r.write(w) }

// VisitStopVideosResponse writes the response of the operation stopVideos.
func (r bulkResponse) VisitStopVideosResponse(w http.ResponseWriter) error { return r.write(w) }

// VisitStopAccountsResponse writes the response of the operation stopAccounts.
func (r bulkResponse) VisitStopAccountsResponse(w http.ResponseWriter) error { return r.write(w) }

// write sends the status and the body as JSON.
func (r bulkResponse) write(w http.ResponseWriter) error {
	body, err := json.Marshal(r.body)
	if err != nil {
		return err
	}
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(r.status)
	_, err = w.Write(append(body, '\n'))
	return err
}

// trackAll tracks the videos or accounts of many links. If a link is refused, trackAll still tracks the items of the other links.
func (s *Server) trackAll(ctx context.Context, res resource, urls []string, r trackRequest) (bulkResult, error) {
	parsed, err := s.linksOf(ctx, res.kind, urls)
	if err != nil {
		return bulkResult{}, err
	}
	entries := distinct(urls, parsed)
	plan := s.planFetches(CallerFrom(ctx).Organisation, entries)
	if plan.accepted > 0 {
		r.plan = plan
		for _, e := range entries {
			if e.failure == nil {
				r.links = append(r.links, e.link)
			}
		}
		items, err := res.track(ctx, s, r)
		if err != nil {
			return bulkResult{}, unknownIDs(err, "collection", "/label_ids", r.collectionIDs)
		}
		entries, plan = assignItems(entries, items, plan)
	}
	return s.summarise(entries, plan), nil
}

// distinct removes duplicates: all links of the same item become one entry, and all refused links with the same text become one entry.
func distinct(urls []string, parsed []parsedLink) []bulkEntry {
	entries := make([]bulkEntry, 0, len(urls))
	seen := make(map[[2]string]bool, len(urls))
	for i, r := range parsed {
		key := [2]string{string(r.link.Platform), r.link.ID}
		switch {
		case r.failure != nil:
			key = [2]string{"", urls[i]}
		case r.link.ID == "": // a link to an account by its handle; the @ distinguishes handles from ids
			key[1] = "@" + r.link.Handle
		}
		if !seen[key] {
			seen[key] = true
			entries = append(entries, bulkEntry{parsedLink: r, url: urls[i]})
		}
	}
	return entries
}

// assignItems sets the items of the entries whose links were not refused. items are in the order of these entries. Two entries can turn out to
// be the same account: one link contains its id and the other its handle. assignItems then removes the later entry and reduces plan.
func assignItems(entries []bulkEntry, items []trackedItem, plan fetchPlan) ([]bulkEntry, fetchPlan) {
	kept := make([]bulkEntry, 0, len(entries))
	seen := make(map[uuid.UUID]bool, len(items))
	for _, e := range entries {
		if e.failure == nil {
			e.item, items = items[0], items[1:]
			if seen[e.item.id] {
				continue
			}
			seen[e.item.id] = true
		}
		kept = append(kept, e)
	}
	plan.accepted = len(seen)
	plan.enqueue, plan.immediate = min(plan.enqueue, plan.accepted), min(plan.immediate, plan.accepted)
	return kept, plan
}

// fetchPlan says how many items of a tracking request are fetched. The first items of the request are fetched, in the order of the links.
type fetchPlan struct {
	accepted  int // number of items whose links were not refused
	enqueue   int // number of items that are fetched
	immediate int // number of items that are fetched immediately, and not by the scheduled update
}

// planFetches returns how many items of a request are fetched. This depends on the number of entries and on the organisation's subscription.
func (s *Server) planFetches(o store.Organisation, entries []bulkEntry) fetchPlan {
	var p fetchPlan
	for _, e := range entries {
		if e.failure == nil {
			p.accepted++
		}
	}
	p.enqueue = p.accepted
	if o.Subscription == store.SubscriptionNone {
		p.enqueue = min(p.accepted, s.previewAllowance)
	}
	if len(entries) <= immediateLinks {
		p.immediate = p.enqueue
	}
	return p
}

// summarise returns the result of a bulk request: the counts of its entries, the warnings and the items that are not fetched.
func (s *Server) summarise(entries []bulkEntry, plan fetchPlan) bulkResult {
	r := bulkResult{entries: entries, enqueued: plan.accepted > 0 && plan.immediate == plan.accepted, warnings: s.warnings(len(entries), plan),
		pending: []api.PendingItem{}}
	accepted := 0
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
			if accepted >= plan.enqueue {
				r.pending = append(r.pending, api.PendingItem{ID: e.item.id, Platform: api.Platform(e.link.Platform)})
			}
		}
		r.summary.Succeeded++
		accepted++
	}
	return r
}

// warnings returns a sentence for the caller if some items are not fetched, and one if the items are not fetched immediately.
func (s *Server) warnings(entries int, plan fetchPlan) []string {
	notes := []string{}
	if plan.enqueue < plan.accepted {
		notes = append(notes, fmt.Sprintf("Without an active subscription only the first %d items of a request are fetched; no data is collected for the other %d.",
			s.previewAllowance, plan.accepted-plan.enqueue))
	}
	if entries > immediateLinks && plan.accepted > 0 {
		notes = append(notes, fmt.Sprintf("A request of more than %d links is not fetched at once; the scheduled update collects the data.", immediateLinks))
	}
	return notes
}

// status returns the status of the entry in the response.
func (e bulkEntry) status() api.TrackStatus {
	switch {
	case e.failure != nil:
		return api.TrackStatusFailed
	case e.item.already:
		return api.TrackStatusAlreadyTracked
	}
	return api.TrackStatusTracked
}

// itemID returns the id of the tracked item; nil if the entry failed.
func (e bulkEntry) itemID() *uuid.UUID {
	if e.failure != nil {
		return nil
	}
	return &e.item.id
}

// failureFields returns the members error, code and retryable of the entry in the response. All are nil if the entry did not fail.
func (e bulkEntry) failureFields() (text *string, code *api.TrackFailure, retryable *bool) {
	if e.failure == nil {
		return nil, nil, nil
	}
	return &e.failure.Detail, new(api.TrackFailure(e.failure.Code)), &e.failure.Retryable
}

// maxShownURL is the maximum length, in characters, of a link in a response. It equals the maximum length of a valid link.
const maxShownURL = 2048

// shownURL returns the link as it was sent, cut to maxShownURL characters.
func (e bulkEntry) shownURL() string {
	if utf8.RuneCountInString(e.url) <= maxShownURL {
		return e.url
	}
	return string([]rune(e.url)[:maxShownURL]) + "…"
}

// toTrackVideosEntry converts an entry for the response of trackVideos.
func toTrackVideosEntry(e bulkEntry) api.TrackVideosEntry {
	out := api.TrackVideosEntry{Type: api.EntryTypeVideo, URL: e.shownURL(), Status: e.status(), Success: e.failure == nil,
		VideoID: e.itemID(), WasExisting: e.item.existing}
	out.Error, out.Code, out.Retryable = e.failureFields()
	return out
}

// toTrackAccountsEntry converts an entry for the response of trackAccounts.
func toTrackAccountsEntry(e bulkEntry) api.TrackAccountsEntry {
	out := api.TrackAccountsEntry{Type: api.EntryTypeAccount, URL: e.shownURL(), Status: e.status(), Success: e.failure == nil,
		AccountID: e.itemID(), WasExisting: e.item.existing}
	out.Error, out.Code, out.Retryable = e.failureFields()
	return out
}
