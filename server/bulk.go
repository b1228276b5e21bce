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

// immediateLinks is the largest number of links in a request whose items are fetched at once (spec.md 4.4, rule 3).
const immediateLinks = 50

// bulkEntry is a distinct link of a bulk request and its result.
type bulkEntry struct {
	parsedLink
	url  string // as first sent
	item trackedItem
}

// bulkResult is the result of a bulk request to track videos or accounts.
type bulkResult struct {
	entries  []bulkEntry
	summary  api.TrackSummary
	enqueued bool
	warnings []string
	pending  []api.PendingItem // tracked, but not fetched because the organisation has no subscription
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

// pendingQueue returns the items that are not fetched; nil if the organisation has a subscription.
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

// bulkResponse is the answer to a bulk request.
type bulkResponse struct {
	status int
	body   any
}

// VisitTrackVideosResponse writes the response.
func (r bulkResponse) VisitTrackVideosResponse(w http.ResponseWriter) error { return r.write(w) }

// VisitTrackAccountsResponse writes the response.
func (r bulkResponse) VisitTrackAccountsResponse(w http.ResponseWriter) error { return r.write(w) }

// VisitStopVideosResponse writes the response.
func (r bulkResponse) VisitStopVideosResponse(w http.ResponseWriter) error { return r.write(w) }

// VisitStopAccountsResponse writes the response.
func (r bulkResponse) VisitStopAccountsResponse(w http.ResponseWriter) error { return r.write(w) }

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

// trackAll tracks the items of many links. Links that are refused do not prevent the others from being tracked.
func (s *Server) trackAll(ctx context.Context, res resource, urls []string, r trackRequest) (bulkResult, error) {
	parsed, err := s.linksOf(ctx, res.kind, urls)
	if err != nil {
		return bulkResult{}, err
	}
	entries := distinct(urls, parsed)
	plan := s.planFetches(CallerFrom(ctx).Organisation, entries)
	if plan.good > 0 {
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

// distinct returns one entry for all links that mean the same item, and one for all refused links with the same text.
func distinct(urls []string, parsed []parsedLink) []bulkEntry {
	entries := make([]bulkEntry, 0, len(urls))
	seen := make(map[[2]string]bool, len(urls))
	for i, r := range parsed {
		key := [2]string{string(r.link.Platform), r.link.ID}
		switch {
		case r.failure != nil:
			key = [2]string{"", urls[i]}
		case r.link.ID == "": // an account by its handle; no id begins with @
			key[1] = "@" + r.link.Handle
		}
		if !seen[key] {
			seen[key] = true
			entries = append(entries, bulkEntry{parsedLink: r, url: urls[i]})
		}
	}
	return entries
}

// assignItems sets the items of the entries that did not fail. One link may name an account by its id and another one the same account by
// its handle. Only the first entry of an account is kept.
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
	plan.good = len(seen)
	plan.enqueue, plan.immediate = min(plan.enqueue, plan.good), min(plan.immediate, plan.good)
	return kept, plan
}

// fetchPlan counts the links of a request that are tracked, and how many of them, from the first on, are fetched.
type fetchPlan struct {
	good      int // links that were not refused
	enqueue   int // good links that are fetched
	immediate int // good links that are fetched at once, instead of by the scheduled update
}

// planFetches decides how many items are fetched, by the size of the request and the organisation's subscription.
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

// summarise counts the entries and lists the items that are not fetched.
func (s *Server) summarise(entries []bulkEntry, plan fetchPlan) bulkResult {
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

// warnings tells which items are not fetched, or not at once.
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

// status returns the status of the entry in the answer.
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

// failureFields returns the fields of the answer that describe a failure; nil if the entry did not fail.
func (e bulkEntry) failureFields() (text *string, code *api.TrackFailure, retryable *bool) {
	if e.failure == nil {
		return nil, nil, nil
	}
	return &e.failure.Detail, new(api.TrackFailure(e.failure.Code)), &e.failure.Retryable
}

// maxShownURL is the greatest length, in characters, of a link in an answer. It is also the greatest length of a valid link.
const maxShownURL = 2048

// shownURL returns the text of the link as it was first sent. A text longer than maxShownURL cannot be a link and is cut.
func (e bulkEntry) shownURL() string {
	if utf8.RuneCountInString(e.url) <= maxShownURL {
		return e.url
	}
	return string([]rune(e.url)[:maxShownURL]) + "…"
}

func toTrackVideosEntry(e bulkEntry) api.TrackVideosEntry {
	out := api.TrackVideosEntry{Type: api.EntryTypeVideo, URL: e.shownURL(), Status: e.status(), Success: e.failure == nil,
		VideoID: e.itemID(), WasExisting: e.item.existing}
	out.Error, out.Code, out.Retryable = e.failureFields()
	return out
}

func toTrackAccountsEntry(e bulkEntry) api.TrackAccountsEntry {
	out := api.TrackAccountsEntry{Type: api.EntryTypeAccount, URL: e.shownURL(), Status: e.status(), Success: e.failure == nil,
		AccountID: e.itemID(), WasExisting: e.item.existing}
	out.Error, out.Code, out.Retryable = e.failureFields()
	return out
}
