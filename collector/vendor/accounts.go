package vendor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// wantedEntries returns the number of newest videos to request from an account's list. It is the maximum of required (the number that the
// collector requires), l.Fresh and l.Page.
func (l *List) wantedEntries(required int) int {
	return max(required, l.Fresh, l.Page)
}

// unitsForEntries returns how many units to request in one call to get the given number of entries.
// A unit has l.Page entries.
func (l *List) unitsForEntries(entries int) int {
	return max(1, min((entries+l.Page-1)/l.Page, l.MaxUnits))
}

// maxCalls returns the maximum number of calls to get the given number of list entries. It is 0 if the answer with the profile already contains the
// list.
func (l *List) maxCalls(entries int) int {
	switch {
	case l.Path == "":
		// The list is in the same answer as the profile.
		return 0
	case len(l.Next) == 0:
		return 1
	}
	size := l.Page * l.unitsForEntries(entries)
	full := (entries + size - 1) / size
	// Allow some additional calls, because a page can have fewer entries than `size` although more pages
	// follow.
	return full + full/10 + 2
}

// maxAccountCalls returns the largest number of calls that a batch of accounts can need. Each account needs one call for its profile, and
// further calls for its list of videos.
func (s *Source) maxAccountCalls(batch []queue.Target) int {
	calls := 0
	for _, t := range batch {
		at := s.callIndexFor(t)
		if at < 0 {
			continue
		}
		calls++
		if l := s.config.Calls[at].List; l != nil {
			calls += l.maxCalls(l.wantedEntries(t.Depth))
		}
	}
	return calls
}

// fetchAccount requests the profile of an account, and the list of its videos if the vendor has one and the account is not private.
func (s *Source) fetchAccount(ctx context.Context, budget *source.CallBudget, t queue.Target) (source.Result, error) {
	at := s.callIndexFor(t)
	if at < 0 || t.ExternalID == "" {
		return source.Result{Class: source.Unsupported, Detail: fmt.Sprintf("%s has no call for this target", s.config.Name)}, nil
	}
	call := s.config.Calls[at]
	v := placeholderValues(t)
	if l := call.List; l != nil {
		v.count = l.wantedEntries(t.Depth)
		if l.Path == "" { // one answer has the whole list, and a longer list could not be read
			v.count = min(v.count, maxEntries)
		}
	}
	page, err := s.fetchPage(ctx, budget, call.Request, v)
	if err != nil {
		return source.Result{}, err
	}
	if page.class != source.OK {
		return page.errorResult(), nil
	}
	items, err := findItems(page.body, call.Items, call.Unwrap)
	if err != nil {
		return source.Result{}, &source.Failure{Class: source.Temporary, Detail: err.Error()}
	}
	r := call.accountResult(items, t, v)
	r.Sandbox = page.sandbox
	if r.Class != source.OK || call.List == nil || r.Account.Private != nil && *r.Account.Private {
		return r, nil
	}
	if r.Account.ID != nil {
		v.id = *r.Account.ID
	}
	if r.Account.Username != nil {
		v.handle = *r.Account.Username
	}
	if call.List.Path == "" {
		entries, err := call.List.decodeEntries(page.body, call.Platform, v.handle, r.Account, s.now())
		if err != nil {
			return source.Result{}, err
		}
		r.Account.Videos, r.Account.Listed = videosOfAccount(removeDuplicates(entries)), true
		return r, nil
	}
	return s.addVideos(ctx, budget, call, v, t.Depth, r)
}

// accountResult returns the result for the account in the first item, and ignores other items.
// requestedValues are the placeholder values of the request.
func (c Call) accountResult(items []gjson.Result, t queue.Target, requestedValues values) source.Result {
	if len(items) == 0 {
		return c.missingResult(items)
	}
	item := items[0]
	if state, ok := c.unavailableResult(item); ok {
		return state
	}
	f := &source.AccountFacts{
		ID: c.Fields["account_id"].readID(item), Username: fetch.ParseHandle(c.Fields["username"].readText(item)),
		Name: fetch.CleanName(c.Fields["account_name"].readText(item)), Bio: fetch.CleanName(c.Fields["bio"].readText(item)),
		ProfileLink: fetch.ParseLink(c.Fields["profile_link"].readText(item)), Private: c.Fields["private"].readBoolean(item),
	}
	for name, count := range map[string]**int64{"followers": &f.Followers, "following": &f.Following} {
		n, _, wrong := c.Fields[name].readCount(item)
		if wrong {
			return source.Result{Class: source.Temporary, Detail: fmt.Sprintf("the item's %s are an invalid count", name)}
		}
		*count = n
	}
	if f.ID == nil && f.Username == nil {
		return source.Result{Class: source.Temporary, Detail: "the item has neither an id nor a handle of an account"}
	}
	switch {
	case source.IsOtherAccount(t, f):
		return source.ResultForReusedHandle(t, false) // the caller sets the field Sandbox of the result
	case (t.AccountID != "" || t.SourceID != "") && f.ID == nil && c.uses("{handle}"):
		return source.Result{Class: source.Temporary, Detail: "the item has no id, so that the account cannot be verified"}
	// A request without an id identifies the account by its handle, either alone or in a link.
	case t.AccountID == "" && requestedValues.handle != "" && f.Username != nil && !link.IsSameHandle(c.Platform, *f.Username, requestedValues.handle):
		return source.Result{Class: source.Temporary, Detail: "the answer has an account that was not requested"}
	}
	return source.Result{Class: source.OK, Account: f}
}

// addVideos requests the v.count newest videos of an account and adds them to r. If the list has entries of other authors, addVideos requests
// further pages, but makes at most l.maxCalls calls. `required` is the number of videos that the collector needs.
func (s *Source) addVideos(ctx context.Context, budget *source.CallBudget, call Call, v values, required int, r source.Result) (source.Result, error) {
	l := call.List
	if !v.hasAllValuesFor(l.Request) {
		r.Detail = "the profile lacks a value that the request for the list needs"
		return r, nil
	}
	var found []listEntry
	read := 0      // number of entries on the requested pages
	ended := false // true if no further page is needed or can be requested
	calls := l.maxCalls(v.count)
	for n := 0; n < calls && !ended; n++ {
		v.units = l.unitsForEntries(v.count - len(videosOfAccount(found)))
		page, err := s.fetchPage(ctx, budget, l.Request, v)
		switch {
		case err != nil:
			return source.Result{}, err
		case page.class == source.Private:
			yes := true
			r.Account.Private = &yes
			return r, nil
		case page.class != source.OK && v.cursor != "":
			return source.Result{Class: source.Temporary, Detail: "a later page of the list failed: " + page.detail, Sandbox: page.sandbox}, nil
		case page.class != source.OK: // the request for the list failed, so the result has the profile but no videos
			r.Detail = "no list: " + page.detail
			return r, nil
		}
		entries, err := l.decodeEntries(page.body, call.Platform, v.handle, r.Account, s.now())
		if err != nil {
			return source.Result{}, err
		}
		if at := completeSince(entries, read); at != nil {
			r.Account.CompleteSince = at
		}
		read += len(entries)
		known := len(found)
		found = removeDuplicates(append(found, entries...))
		next := l.nextCursor(page.body)
		// If a page only repeats earlier entries, the vendor has ignored the cursor. The list goes on, but its next page cannot be requested.
		isRepeated := next != "" && next == v.cursor && len(entries) > 0 && len(found) == known
		r.Account.ListContinues = next != "" && next != v.cursor || isRepeated
		outOfBudget := n+1 < calls && budget.Exhausted() // true if the budget does not allow the call for the next page; no more pages are then requested
		r.Account.Unfinished = r.Account.ListContinues && outOfBudget && budget.EndedEarly(s.budgets)
		ended = !r.Account.ListContinues || isRepeated || outOfBudget || len(videosOfAccount(found)) >= v.count
		v.cursor, v.page = next, readCursor(page.body, l.NextPage)
	}
	// found also has the reposted videos of other authors. Without them, the list of an account with many reposts would seem too short.
	if !ended && len(found) < required {
		return source.Result{Class: source.Temporary, Detail: "the vendor's pages are so short that the list cannot be read to its end", Sandbox: r.Sandbox}, nil
	}
	r.Account.Videos, r.Account.Listed = videosOfAccount(found), true
	return r, nil
}

// completeSince returns the upload time of the last video on a page that is not by another author and cannot be pinned, or nil if there is none.
// All newer videos of the account are on this page, or on earlier pages. The first ingest.MaxPinned entries of the list can be pinned. `before` is the
// number of entries on earlier pages. Reposts do not count, because they can have any upload time.
func completeSince(entries []listEntry, before int) *store.Instant {
	for i, e := range slices.Backward(entries) {
		if before+i >= ingest.MaxPinned && !e.otherAuthor && e.UploadedAt != nil {
			return e.UploadedAt
		}
	}
	return nil
}

// removeDuplicates removes the second entry of each video that the list contains twice. A pinned video occurs twice: at the top of the
// list, and at its place by date.
func removeDuplicates(found []listEntry) []listEntry {
	seen := make(map[string]bool, len(found))
	return slices.DeleteFunc(found, func(v listEntry) bool {
		twice := seen[v.ID]
		seen[v.ID] = true
		return twice
	})
}

// listEntry is a video in the list of an account.
type listEntry struct {
	ingest.FoundVideo
	otherAuthor bool // true if another account published the video, for example a reposted video
}

// videosOfAccount returns the videos of the entries, without the videos of other authors.
func videosOfAccount(entries []listEntry) []ingest.FoundVideo {
	var out []ingest.FoundVideo
	for _, e := range entries {
		if !e.otherAuthor {
			out = append(out, e.FoundVideo)
		}
	}
	return out
}

// isByOtherAuthor returns true if the author of an entry is known and is not the given account. If both ids are known, they decide.
func (l *List) isByOtherAuthor(item gjson.Result, p link.Platform, account *source.AccountFacts) bool {
	if id := l.Fields["account_id"].readID(item); id != nil && account.ID != nil {
		return *id != *account.ID
	}
	username := fetch.ParseHandle(l.Fields["username"].readText(item))
	return username != nil && account.Username != nil && !link.IsSameHandle(p, *username, *account.Username)
}

// decodeEntries returns the videos on a page of the account's list. It leaves out malformed entries, and returns a failure if all entries are
// malformed.
func (l *List) decodeEntries(body gjson.Result, p link.Platform, handle string, account *source.AccountFacts, now time.Time) ([]listEntry, error) {
	items, err := findItems(body, l.Items, l.Unwrap)
	if err != nil {
		return nil, &source.Failure{Class: source.Temporary, Detail: err.Error()}
	}
	out := make([]listEntry, 0, len(items))
	placeholders := 0
	for _, item := range items {
		if l.Empty != nil && l.Empty.isTrue(item) {
			placeholders++
			continue
		}
		id := l.Fields["id"].readID(item)
		if id == nil {
			continue
		}
		parsed, err := link.Parse(videoLink(p, *id, handle))
		if err != nil || parsed.Kind != link.Video || parsed.ID != *id {
			continue
		}
		v := listEntry{ingest.FoundVideo{ID: parsed.ID, Link: parsed.Canonical}, l.isByOtherAuthor(item, p, account)}
		if at := l.Fields["uploaded_at"].readTime(item, now); at != nil {
			instant := store.InstantOf(*at)
			v.UploadedAt = &instant
		}
		out = append(out, v)
	}
	if len(out) == 0 && len(items) > placeholders {
		return nil, &source.Failure{Class: source.Temporary, Detail: "no entry of the list is a video with an id"}
	}
	return out, nil
}

// videoLink returns the URL of the video with the given id. TikTok's URL also contains the handle of the account.
func videoLink(p link.Platform, id, handle string) string {
	switch p {
	case link.TikTok:
		return "https://www.tiktok.com/@" + handle + "/video/" + id
	case link.Instagram:
		return "https://www.instagram.com/reel/" + id + "/"
	case link.YouTube:
		return "https://www.youtube.com/watch?v=" + id
	default:
		return "https://www.facebook.com/reel/" + id
	}
}

// maxCursor is the maximum length in bytes of a cursor that is sent back to the vendor.
const maxCursor = 2048

// nextCursor returns the cursor of the next page from the answer with the current page, or "" on the last page.
func (l *List) nextCursor(body gjson.Result) string {
	if l.More != nil && !l.More.isTrue(body) {
		return ""
	}
	return readCursor(body, l.Next)
}

// readCursor returns the first text or number at the given paths of an answer, or "" if there is none.
func readCursor(body gjson.Result, paths []string) string {
	for _, path := range paths {
		v := body.Get(path)
		if v.Type != gjson.String && v.Type != gjson.Number {
			continue
		}
		if text, _ := scalarText(v); len(text) <= maxCursor {
			return text
		}
	}
	return ""
}

// page is the answer to one call for one account. It is either a success or an error that concerns only this account, such as "private".
type page struct {
	body    gjson.Result
	class   source.Class // class of the error, or OK if the answer is a success
	detail  string
	sandbox bool
}

// errorResult returns the result for an account if the answer is an error, such as "private".
func (p page) errorResult() source.Result {
	return source.Result{Class: p.class, Detail: p.detail, Sandbox: p.sandbox}
}

// fetchPage makes one call for one account. It returns a *source.Failure if no answer arrives, or if the answer concerns the whole source,
// such as a rate limit.
func (s *Source) fetchPage(ctx context.Context, budget *source.CallBudget, r Request, v values) (page, error) {
	res, err := s.sendRequest(ctx, budget, r, batchValues{targets: []values{v}}, nil)
	if err != nil {
		return page{}, err
	}
	body, text, detail := s.classifyAnswer(res)
	class := source.Class(text)
	switch {
	case class == source.OK, slices.Contains(targetClasses, class):
		return page{body: body, class: class, detail: detail, sandbox: res.Sandbox}, nil
	case text == split:
		return page{}, &source.Failure{Class: source.BadRequest, Detail: fmt.Sprintf("the vendor says that a call for one account has too many targets: %s", detail)}
	}
	return page{}, s.sourceFailure(res, body, class, detail)
}
