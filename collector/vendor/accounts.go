package vendor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
)

func areAccounts(batch []collector.Target) bool {
	return len(batch) > 0 && batch[0].Kind == collector.KindAccount
}

// wanted is how many of an account's newest entries are asked for at the least.
func (l *List) wanted(depth int) int {
	return max(depth, l.Fresh, l.Page)
}

// units is how many units of a page each call asks for.
func (l *List) units(wanted int) int {
	return max(1, min((wanted+l.Page-1)/l.Page, l.MaxUnits))
}

// calls is how many calls are made at the most to see the wanted entries: some more than full pages take, since a page may be
// short, or empty, though there are more.
func (l *List) calls(wanted int) int {
	switch {
	case l.Path == "":
		return 0
	case len(l.Next) == 0:
		return 1
	}
	size := l.Page * l.units(wanted)
	full := (wanted + size - 1) / size
	return full + full/10 + 2
}

// accountCalls is the most calls that a batch of accounts takes. Those whose list ends early take fewer.
func (s *Source) accountCalls(batch []collector.Target) int {
	calls := 0
	for _, t := range batch {
		at := s.callFor(t)
		if at < 0 {
			continue
		}
		calls++
		if l := s.config.Calls[at].List; l != nil {
			calls += l.calls(l.wanted(t.Depth))
		}
	}
	return calls
}

// fetchAccounts asks for accounts, one after the other. When a call fails after others have been answered, the targets
// that are left are Temporary.
func (s *Source) fetchAccounts(ctx context.Context, batch []collector.Target) ([]collector.Result, error) {
	results := make([]collector.Result, len(batch))
	var failed error
	for i, t := range batch {
		r, err := collector.Result{}, failed
		if failed == nil {
			r, err = s.fetchAccount(ctx, t)
		}
		switch {
		case err == nil:
		case i == 0 || ctx.Err() != nil:
			return nil, err
		default:
			failed = err
			r = collector.Result{Class: collector.Temporary, Detail: "a call of the batch failed: " + err.Error()}
		}
		r.Target = t
		results[i] = r
	}
	return results, nil
}

// fetchAccount asks for one account's profile, and for the list of its videos unless it is private.
func (s *Source) fetchAccount(ctx context.Context, t collector.Target) (collector.Result, error) {
	at := s.callFor(t)
	if at < 0 || t.ExternalID == "" {
		return collector.Result{Class: collector.Unsupported, Detail: s.config.Name + " is not configured for it"}, nil
	}
	call := s.config.Calls[at]
	v := valuesOf(t)
	if call.List != nil {
		v.count = call.List.wanted(t.Depth)
	}
	page, err := s.askPage(ctx, call.Request, v)
	if err != nil {
		return collector.Result{}, err
	}
	if page.class != collector.OK {
		return page.refusal(), nil
	}
	items, err := findItems(page.body, call.Items, call.Unwrap)
	if err != nil {
		return collector.Result{}, &collector.Failure{Class: collector.Temporary, Detail: err.Error()}
	}
	r := call.account(items, t, v)
	r.Sandbox = page.sandbox
	if r.Class != collector.OK || call.List == nil || r.Account.Private != nil && *r.Account.Private {
		return r, nil
	}
	if r.Account.ID != nil {
		v.id = *r.Account.ID
	}
	if r.Account.Username != nil {
		v.handle = *r.Account.Username
	}
	if call.List.Path == "" {
		entries, err := call.List.entries(page.body, call.Platform, v.handle, s.now())
		if err != nil {
			return collector.Result{}, err
		}
		r.Account.Videos, r.Account.Listed = distinct(entries), true
		return r, nil
	}
	return s.addVideos(ctx, call, v, t.Depth, r)
}

// account reads the profile. The first item is the account's, since one was asked for; but it must not be somebody else's,
// who has taken over the handle.
func (c Call) account(items []gjson.Result, t collector.Target, asked values) collector.Result {
	if len(items) == 0 {
		if c.Missing == collector.Temporary {
			return collector.Result{Class: collector.Temporary, Detail: "the vendor's answer is empty"}
		}
		return collector.Result{Class: collector.Gone, Detail: "the vendor's answer leaves it out"}
	}
	item := items[0]
	if state, ok := c.state(item); ok {
		return state
	}
	f := &collector.AccountFacts{
		ID: c.Fields["account_id"].id(item), Username: fetch.Handle(c.Fields["username"].text(item)),
		Name: fetch.Name(c.Fields["account_name"].text(item)), Bio: fetch.Name(c.Fields["bio"].text(item)),
		ProfileLink: fetch.Link(c.Fields["profile_link"].text(item)), Private: c.Fields["private"].flag(item),
	}
	for name, count := range map[string]**int64{"followers": &f.Followers, "following": &f.Following} {
		n, _, wrong := c.Fields[name].count(item)
		if wrong {
			return collector.Result{Class: collector.Temporary, Detail: "the item's " + name + " are no whole number"}
		}
		*count = n
	}
	if f.ID == nil && f.Username == nil {
		return collector.Result{Class: collector.Temporary, Detail: "the item names no account"}
	}
	switch {
	case t.IsStranger(f):
		return t.Stranger(false) // the caller knows whether
	case (t.AccountID != "" || t.SourceID != "") && f.ID == nil && c.asksByHandle():
		return collector.Result{Class: collector.Temporary, Detail: "the item does not say by an id whose it is"}
	case t.AccountID == "" && c.asksByHandle() && f.Username != nil &&
		link.DisplayUsername(*f.Username) != link.DisplayUsername(link.FoldUsername(asked.handle)):
		return collector.Result{Class: collector.Temporary, Detail: "an answer with an account that nobody asked for"}
	}
	return collector.Result{Class: collector.OK, Account: f}
}

func (c Call) asksByHandle() bool {
	return slices.ContainsFunc(c.templates(), func(template string) bool { return strings.Contains(template, "{handle}") })
}

// addVideos adds the newest videos to what is known of an account, page by page, until there are as many as are wanted or no more.
// When the pages are too short for that, fewer than the depth are no list: the rest of them would never be found.
func (s *Source) addVideos(ctx context.Context, call Call, v values, depth int, r collector.Result) (collector.Result, error) {
	l := call.List
	if !v.fill(l.Request) {
		r.Detail = "the profile does not say what the list is asked by"
		return r, nil
	}
	var found []ingest.FoundVideo
	more := true
	calls := l.calls(v.count)
	for n := range calls {
		v.units = l.units(v.count - len(found))
		page, err := s.askPage(ctx, l.Request, v)
		switch {
		case err != nil:
			return collector.Result{}, err
		case page.class == collector.Private:
			yes := true
			r.Account.Private = &yes
			return r, nil
		case page.class != collector.OK && v.cursor != "":
			return collector.Result{Class: collector.Temporary, Detail: "the list breaks off: " + page.detail, Sandbox: page.sandbox}, nil
		case page.class != collector.OK: // the account is there all the same
			r.Detail = "no list: " + page.detail
			return r, nil
		}
		entries, err := l.entries(page.body, call.Platform, v.handle, s.now())
		if err != nil {
			return collector.Result{}, err
		}
		found = distinct(append(found, entries...))
		next := l.next(page.body)
		cut := n+1 < calls && collector.SpentUp(ctx) // by its budget: it is as long as it can be
		if more = next != "" && next != v.cursor && !cut; !more || len(found) >= v.count {
			break
		}
		v.cursor = next
	}
	if more && len(found) < depth {
		return collector.Result{Class: collector.Temporary, Detail: "the vendor's pages are shorter than the list can be read with", Sandbox: r.Sandbox}, nil
	}
	r.Account.Videos, r.Account.Listed = found, true
	return r, nil
}

// distinct keeps the first entry of each video: what is pinned on top comes again in its place.
func distinct(found []ingest.FoundVideo) []ingest.FoundVideo {
	seen := make(map[string]bool, len(found))
	return slices.DeleteFunc(found, func(v ingest.FoundVideo) bool {
		twice := seen[v.ID]
		seen[v.ID] = true
		return twice
	})
}

// entries reads a page. A broken entry is left out; when all are broken, the answer is.
func (l *List) entries(body gjson.Result, p link.Platform, handle string, now time.Time) ([]ingest.FoundVideo, error) {
	items, err := findItems(body, l.Items, l.Unwrap)
	if err != nil {
		return nil, &collector.Failure{Class: collector.Temporary, Detail: err.Error()}
	}
	out := make([]ingest.FoundVideo, 0, len(items))
	notes := 0
	for _, item := range items {
		if l.Empty != nil && l.Empty.holds(item) {
			notes++
			continue
		}
		id := l.Fields["id"].id(item)
		if id == nil {
			continue
		}
		parsed, err := link.Parse(videoLink(p, *id, handle))
		if err != nil || parsed.Kind != link.Video || parsed.ID != *id {
			continue
		}
		v := ingest.FoundVideo{ID: parsed.ID, Link: parsed.Canonical}
		if at := l.Fields["uploaded_at"].time(item, now); at != nil {
			instant := store.InstantOf(*at)
			v.UploadedAt = &instant
		}
		out = append(out, v)
	}
	if len(out) == 0 && len(items) > notes {
		return nil, &collector.Failure{Class: collector.Temporary, Detail: "no entry of the list is a video with an id"}
	}
	return out, nil
}

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

// maxCursor bounds what is sent back to the vendor.
const maxCursor = 2048

// next is the cursor of the following page, "" when there is none.
func (l *List) next(body gjson.Result) string {
	if l.More != nil && !l.More.holds(body) {
		return ""
	}
	for _, path := range l.Next {
		v := body.Get(path)
		if v.Type != gjson.String && v.Type != gjson.Number {
			continue
		}
		if text, _ := scalar(v); len(text) <= maxCursor {
			return text
		}
	}
	return ""
}

// page is a good answer, or one that concerns what was asked for.
type page struct {
	body    gjson.Result
	class   collector.Class // OK or a class of one target
	detail  string
	sandbox bool
}

func (p page) refusal() collector.Result {
	return collector.Result{Class: p.class, Detail: p.detail, Sandbox: p.sandbox}
}

// askPage makes one call for one account; an answer that concerns the whole source is a *collector.Failure.
func (s *Source) askPage(ctx context.Context, r Request, v values) (page, error) {
	res, err := s.ask(ctx, r, filling{of: []values{v}})
	if err != nil {
		return page{}, err
	}
	body, verdict, detail := s.judge(res)
	class := collector.Class(verdict)
	switch {
	case class == collector.OK, slices.Contains(targetClasses, class):
		return page{body: body, class: class, detail: detail, sandbox: res.Sandbox}, nil
	case verdict == split:
		return page{}, &collector.Failure{Class: collector.BadRequest, Detail: fmt.Sprintf("one account was refused as too many: %s", detail)}
	}
	return page{}, s.failure(res, body, class, detail)
}
