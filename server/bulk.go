package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// If a bulk request has at most immediateLinks different links, their videos or accounts are fetched with the highest priority. If it has more, they are
// fetched with the priority of the organisation's tier.
const immediateLinks = 50

// bulkEntry is the result for one video or account of a bulk request, or for one refused link.
type bulkEntry struct {
	parsedLink
	url       string        // the first link in the request that leads to this video or account
	positions []int32       // indexes of all links in the request that lead to this video or account, counted from 0, ascending
	item      store.Tracked // result of tracking the video or account; zero if the link was refused
}

// bulkResult is the result of a bulk request to track videos or accounts.
type bulkResult struct {
	entries             []bulkEntry
	summary             api.TrackSummary
	enqueued            bool // true if all accepted videos or accounts are fetched with the highest priority, and the running collectors can fetch them
	warnings            []string
	pendingItems        []api.PendingItem // videos or accounts that are saved but not fetched, because the organisation has no subscription
	withoutSubscription bool              // true if the organisation has no subscription; then at most previewAllowance items of the request are fetched
}

// status returns the HTTP status of the response: 200 if every entry succeeded, 422 if every entry failed, and otherwise 207.
func (r bulkResult) status() int {
	switch {
	case r.summary.Failed == 0:
		return http.StatusOK
	case r.summary.Succeeded == 0:
		return http.StatusUnprocessableEntity
	}
	return http.StatusMultiStatus
}

// pendingQueue returns the videos or accounts that are saved but not fetched. It returns nil if the
// organisation has a subscription.
func (r bulkResult) pendingQueue(itemKind link.Kind) *api.PendingQueue {
	if !r.withoutSubscription {
		return nil
	}
	queue := &api.PendingQueue{Accounts: []api.PendingItem{}, Videos: r.pendingItems}
	if itemKind == link.Account {
		queue.Accounts, queue.Videos = queue.Videos, queue.Accounts
	}
	return queue
}

// bulkResponse is the HTTP response to a request that tracks many videos or accounts, or that stops their tracking.
type bulkResponse struct {
	status int
	body   any
}

// VisitTrackVideosResponse implements the generated response interface of trackVideos.
func (r bulkResponse) VisitTrackVideosResponse(w http.ResponseWriter) error { return r.write(w) }

// VisitTrackAccountsResponse implements the generated response interface of trackAccounts.
func (r bulkResponse) VisitTrackAccountsResponse(w http.ResponseWriter) error { return r.write(w) }

// VisitStopVideosResponse implements the generated response interface of stopVideos.
func (r bulkResponse) VisitStopVideosResponse(w http.ResponseWriter) error { return r.write(w) }

// VisitStopAccountsResponse implements the generated response interface of stopAccounts.
func (r bulkResponse) VisitStopAccountsResponse(w http.ResponseWriter) error { return r.write(w) }

// write sends the response with its status and with its body as JSON.
func (r bulkResponse) write(w http.ResponseWriter) error {
	body, err := json.Marshal(r.body)
	if err != nil {
		return err
	}
	return writeJSON(w, r.status, body)
}

// trackLinks tracks the videos or accounts to which the links in urls lead. If some links are refused, trackLinks still tracks the videos
// or accounts of the accepted links.
func (s *Server) trackLinks(ctx context.Context, res resource, urls []string, r store.TrackRequest) (bulkResult, error) {
	parsed, err := s.parseLinks(ctx, res.kind, urls)
	if err != nil {
		return bulkResult{}, err
	}
	entries := mergeDuplicates(urls, parsed)
	for _, e := range entries {
		if e.failure == nil {
			r.Links = append(r.Links, e.link)
		}
	}
	if len(r.Links) == 0 {
		return s.summariseBulk(ctx, entries, 0, callerFrom(ctx).Organisation.Subscription == store.SubscriptionNone), nil
	}
	fetchable, err := s.fetchable.readFetchable(ctx)
	if err != nil {
		return bulkResult{}, err
	}
	if r.Allowance = s.previewAllowance; len(entries) <= immediateLinks {
		r.Immediate = len(r.Links)
	}
	items, err := s.startTracking(ctx, res, r, fetchable)
	if err != nil {
		return bulkResult{}, unknownIDsError(err, "collection", "/label_ids", r.CollectionIDs)
	}
	// items[0].WithoutSubscription is current, while the subscription in the caller's cached identity can be outdated.
	done := s.summariseBulk(ctx, assignItems(entries, items), r.Immediate, items[0].WithoutSubscription)
	unsupported := unsupportedReasons(fetchable)
	done.enqueued = done.enqueued && !slices.ContainsFunc(r.Links, func(l link.Link) bool { return unsupported(l) != "" })
	done.warnings = append(append(done.warnings, warningsAboutLinks(fetchable, r.Links)...), warningsAboutKeptTypes(items)...)
	return done, nil
}

// mergeDuplicates converts links to entries. Links with the same id or handle get a single entry. Refused links
// get a single entry if their texts are equal. parsedLinks[i] is the result for urls[i].
func mergeDuplicates(urls []string, parsedLinks []parsedLink) []bulkEntry {
	entries := make([]bulkEntry, 0, len(urls))
	seen := make(map[[2]string]int, len(urls)) // the value is an index in entries; the key is the platform and id, or the text of a refused link
	for i, r := range parsedLinks {
		key := [2]string{string(r.link.Platform), r.link.ID}
		switch {
		case r.failure != nil:
			key = [2]string{"", urls[i]}
		case r.link.ID == "": // the link contains the handle of an account instead of its id; the prefix @ prevents a handle from being mistaken for an id
			key[1] = "@" + r.link.Handle
		}
		at, found := seen[key]
		if !found {
			at = len(entries)
			seen[key], entries = at, append(entries, bulkEntry{parsedLink: r, url: urls[i]})
		}
		entries[at].positions = append(entries[at].positions, int32(i))
	}
	return entries
}

// assignItems sets bulkEntry.item of the accepted entries and merges entries with the same item.
// trackedItems has one item for each accepted entry, in the same order.
func assignItems(entries []bulkEntry, trackedItems []store.Tracked) []bulkEntry {
	keptEntries := make([]bulkEntry, 0, len(entries))
	seen := make(map[uuid.UUID]int, len(trackedItems)) // for each id of a video or account, the index of its entry in keptEntries
	for _, e := range entries {
		if e.failure == nil {
			e.item, trackedItems = trackedItems[0], trackedItems[1:]
			if at, found := seen[e.item.ID]; found {
				keptEntries[at].positions = append(keptEntries[at].positions, e.positions...)
				slices.Sort(keptEntries[at].positions)
				continue
			}
			seen[e.item.ID] = len(keptEntries)
		}
		keptEntries = append(keptEntries, e)
	}
	return keptEntries
}

// summariseBulk returns the result of a bulk request: its entries, their counts by status, the warnings, and the videos or accounts that are
// saved but not fetched. immediate is the number of links that are fetched with the highest priority. If withoutSubscription is true, only
// the first previewAllowance accepted videos or accounts of the request are fetched.
func (s *Server) summariseBulk(ctx context.Context, entries []bulkEntry, immediate int, withoutSubscription bool) bulkResult {
	r := bulkResult{entries: entries, pendingItems: []api.PendingItem{}, withoutSubscription: withoutSubscription}
	newFetched := 0      // number of newly tracked videos or accounts that are fetched
	hasDeferred := false // true if a video or account was fetched recently, and is therefore not fetched now
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
		case api.TrackStatusTracked:
			if !e.item.Pending && !e.item.Deferred {
				newFetched++
			}
			hasDeferred = hasDeferred || e.item.Deferred
		}
		if e.item.Pending {
			r.pendingItems = append(r.pendingItems, api.PendingItem{ID: e.item.ID, Platform: api.Platform(e.link.Platform)})
		}
		r.summary.Succeeded++
	}
	accepted := int(r.summary.Succeeded)
	aboveAllowance := 0 // number of accepted videos or accounts that this request does not fetch, because they are above the allowance
	if withoutSubscription {
		aboveAllowance = max(0, accepted-s.previewAllowance)
	}
	r.enqueued = accepted > 0 && immediate >= accepted && aboveAllowance == 0 && len(r.pendingItems) == 0 && !hasDeferred
	r.warnings = s.warnings(ctx, entries, aboveAllowance, newFetched, len(r.pendingItems))
	return r
}

// warnings returns the warnings of the response. aboveAllowance is the number of accepted items above the allowance of an organisation without a
// subscription, newFetched is the number of new items that are fetched, and pendingCount is the number of items that are saved but not fetched.
func (s *Server) warnings(ctx context.Context, entries []bulkEntry, aboveAllowance, newFetched, pendingCount int) []string {
	notes := []string{}
	switch {
	case pendingCount > 0 && pendingCount == aboveAllowance:
		notes = append(notes, fmt.Sprintf("Without an active subscription only the first %d items of a request are fetched; no data is collected for the other %d.",
			s.previewAllowance, aboveAllowance))
	case pendingCount > 0:
		notes = append(notes, fmt.Sprintf("Without an active subscription only the first %d items of a request are fetched; no data is collected for the items in pendingTmvQueue: %d.",
			s.previewAllowance, pendingCount))
	case aboveAllowance > 0: // the items above the allowance were tracked before this request, so their data is still collected
		notes = append(notes, fmt.Sprintf("Without an active subscription only the first %d items of a request are fetched; this request fetches nothing for the other %d, which were tracked before.",
			s.previewAllowance, aboveAllowance))
	}
	if isFromPage(ctx) {
		return notes
	}
	if len(entries) > immediateLinks && newFetched > 0 {
		notes = append(notes, fmt.Sprintf("The request has more than %d links, so its new items are fetched by the scheduled update. It begins immediately, but first fetches the items of smaller requests.", immediateLinks))
	}
	repeated := 0
	for _, e := range entries {
		if len(e.positions) > 1 {
			repeated++
		}
	}
	switch {
	case repeated == 1:
		notes = append(notes, "1 link was sent more than once. Its entry lists all its positions in the request.")
	case repeated > 1:
		notes = append(notes, fmt.Sprintf("%d links were sent more than once. The entry of each link lists all its positions in the request.", repeated))
	}
	return notes
}

// status returns whether the video or account is newly tracked, was already tracked, or could not be tracked.
func (e bulkEntry) status() api.TrackStatus {
	switch {
	case e.failure != nil:
		return api.TrackStatusFailed
	case e.item.Already:
		return api.TrackStatusAlreadyTracked
	}
	return api.TrackStatusTracked
}

// itemID returns the id of the tracked video or account. It returns nil if the entry failed.
func (e bulkEntry) itemID() *uuid.UUID {
	if e.failure != nil {
		return nil
	}
	return &e.item.ID
}

// failureFields returns the values of "error", "code" and "retryable" for an entry of the response. All three are nil if the entry did not
// fail.
func (e bulkEntry) failureFields() (text *string, code *api.TrackFailure, retryable *bool) {
	if e.failure == nil {
		return nil, nil, nil
	}
	return &e.failure.Detail, new(api.TrackFailure(e.failure.Code)), &e.failure.Retryable
}

// maxShownURL is the maximum number of characters of a caller's link that are repeated in a response. It equals the maximum length of a
// valid link.
const maxShownURL = 2048

// shownURL returns the link as the caller sent it. A longer link is cut after maxShownURL characters.
func (e bulkEntry) shownURL() string {
	if utf8.RuneCountInString(e.url) <= maxShownURL {
		return e.url
	}
	return string([]rune(e.url)[:maxShownURL]) + "…"
}

// toTrackVideosEntry converts the result for one link to the JSON type of the operation trackVideos.
func toTrackVideosEntry(e bulkEntry) api.TrackVideosEntry {
	out := api.TrackVideosEntry{Type: api.EntryTypeVideo, URL: e.shownURL(), Positions: e.positions, Status: e.status(), Success: e.failure == nil,
		VideoID: e.itemID(), WasExisting: e.item.Existing}
	out.Error, out.Code, out.Retryable = e.failureFields()
	return out
}

// toTrackAccountsEntry converts the result for one link to the JSON type of the operation trackAccounts.
func toTrackAccountsEntry(e bulkEntry) api.TrackAccountsEntry {
	out := api.TrackAccountsEntry{Type: api.EntryTypeAccount, URL: e.shownURL(), Positions: e.positions, Status: e.status(), Success: e.failure == nil,
		AccountID: e.itemID(), WasExisting: e.item.Existing}
	out.Error, out.Code, out.Retryable = e.failureFields()
	return out
}
