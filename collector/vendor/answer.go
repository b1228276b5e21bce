package vendor

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// classOf returns the class of an answer: that of the first matching rule or, if no rule matches, that of the
// HTTP status. isCredentialRefusal is true if the vendor certainly refused
// the credential.
func (c Config) classOf(status int, parsedBody gjson.Result) (class string, isCredentialRefusal bool) {
	// parsedBody is the zero Result if the answer is not JSON. No rule matches then.
	isJSON := parsedBody.Exists()
	for _, r := range c.Rules {
		if isJSON && (len(r.Status) == 0 || slices.Contains(r.Status, status)) && (r.When == nil || r.When.isTrue(parsedBody)) && (r.And == nil || r.And.isTrue(parsedBody)) {
			// The status 403 alone proves nothing: vendors also return 403 if the platform refuses
			// one target.
			certain := r.When != nil || status != http.StatusForbidden
			return r.Class, certain && r.Class == string(source.AuthFailed)
		}
	}
	return string(fetch.ClassOf(status, isJSON)), fetch.IsCredentialRefusal(status)
}

// errorText returns the error text in an answer: the first text at one of the paths in c.Message, or "" if there is none.
func (c Config) errorText(body gjson.Result) string {
	for _, path := range c.Message {
		if v := body.Get(path); v.Type == gjson.String && v.Str != "" {
			return v.Str
		}
	}
	return ""
}

// findItems returns the items of an answer: the JSON objects of videos or accounts. It uses the
// first item path with an object or a list.
func findItems(body gjson.Result, itemPaths, unwrapPaths []string) ([]gjson.Result, error) {
	for _, path := range itemPaths {
		v := body
		if path != "." {
			v = body.Get(path)
		}
		var items []gjson.Result
		switch {
		case v.IsArray():
			v.ForEach(func(_, item gjson.Result) bool {
				items = append(items, item)
				return len(items) <= fetch.MaxItems
			})
		case v.IsObject():
			items = []gjson.Result{v}
		default:
			continue
		}
		if len(items) > fetch.MaxItems {
			return nil, fmt.Errorf("the answer lists more than %d items", fetch.MaxItems)
		}
		for i, item := range items {
			for _, wrap := range unwrapPaths {
				if inner := item.Get(wrap); inner.IsObject() {
					items[i] = inner
					break
				}
			}
		}
		return items, nil
	}
	return nil, fmt.Errorf("the answer has no items at %s", strings.Join(itemPaths, ", "))
}

// decodeResults returns a result for each requested id, even if no item has this id.
func (c Call) decodeResults(items []gjson.Result, requested []string, now time.Time) map[string]source.Result {
	out := make(map[string]source.Result, len(requested))
	unrequested := false // true if an item belongs to no requested id
	for _, item := range items {
		id := c.requestedID(item, items, requested)
		if id == "" {
			unrequested = true
			continue
		}
		source.AddResult(out, id, c.videoResult(item, now))
	}
	missing := c.missingResult(items)
	if unrequested { // the vendor may have mixed up the videos, so a missing video may still exist
		missing = source.Result{Class: source.Temporary, Detail: "missing from the answer; the answer has an item that was not requested"}
	}
	for _, id := range requested {
		if _, ok := out[id]; !ok {
			out[id] = missing
		}
	}
	return out
}

// missingResult returns the result for a target that is missing from the items of a successful answer. If the vendor description sets the class of such
// a result, the result has this class. Otherwise, the target is gone if the answer has other items. If the answer has no items, the class is Temporary,
// because a vendor also sends an empty answer when the vendor itself has failed.
func (c Call) missingResult(items []gjson.Result) source.Result {
	switch {
	case c.Missing == "" && len(items) == 0:
		return source.Result{Class: source.Temporary, Detail: "the vendor's answer is empty"}
	case c.Missing == "":
		return source.Result{Class: source.Gone, Detail: "missing from the vendor's answer"}
	}
	return source.Result{Class: c.Missing, Detail: "missing from the vendor's answer"}
}

// requestedID returns the requested id to which an item belongs, or "" if the item belongs to no requested id.
func (c Call) requestedID(item gjson.Result, items []gjson.Result, requested []string) string {
	identified := false // true if a field in Match.ID or Match.Link has a value
	for _, path := range c.Match.ID {
		v := item.Get(path)
		identified = identified || hasValue(v)
		if text, ok := scalarText(v); ok && slices.Contains(requested, text) {
			return text
		}
	}
	if identified { // the item is about another video, even if a link in the item contains a requested id
		return ""
	}
	for _, path := range c.Match.Link {
		v := item.Get(path)
		identified = identified || hasValue(v)
		text, _ := scalarText(v)
		parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("/?&=#", r) })
		for _, part := range parts {
			if slices.Contains(requested, part) {
				return part
			}
		}
	}
	hasVideo := slices.ContainsFunc(c.Match.Sole, func(path string) bool { return hasValue(item.Get(path)) })
	if hasVideo && !identified && len(items) == 1 && len(requested) == 1 {
		return requested[0]
	}
	return ""
}

// hasValue returns false if the JSON value is missing, null or an empty string.
func hasValue(v gjson.Result) bool {
	return v.Exists() && v.Type != gjson.Null && (v.Type != gjson.String || v.Str != "")
}

// unavailableResult returns the result for an item about an unavailable video or account. It
// returns false if none of c.States matches the item.
func (c Call) unavailableResult(item gjson.Result) (source.Result, bool) {
	for _, s := range c.States {
		if path := s.matchingPath(item); path != "" {
			return source.Result{Class: s.Class, Detail: fmt.Sprintf("the vendor's item has %s %s", path, fetch.Redact(item.Get(path).String()))}, true
		}
	}
	return source.Result{}, false
}

// videoResult returns the result for a video from its item. The result has the class Temporary if a count is invalid or all counts are missing.
func (c Call) videoResult(item gjson.Result, now time.Time) source.Result {
	if state, ok := c.unavailableResult(item); ok {
		return state
	}
	f := &source.Facts{}
	counts := map[string]**int64{"views": &f.Views, "likes": &f.Likes, "comments": &f.Comments, "shares": &f.Shares, "bookmarks": &f.Bookmarks}
	rounded := &f.RoundedFrom
	roundedFrom := map[string]**int64{"views": &rounded.Views, "likes": &rounded.Likes, "comments": &rounded.Comments, "shares": &rounded.Shares, "bookmarks": &rounded.Bookmarks}
	hasCounts := false
	hidden := c.Fields["hidden_stats"].readBoolean(item)
	setHidden := func(yes bool) {
		if hidden == nil || yes {
			hidden = &yes
		}
	}
	for name, count := range counts {
		n, place, withheld, wrong := c.Fields[name].readCountAndPlace(item)
		if wrong {
			return source.Result{Class: source.Temporary, Detail: fmt.Sprintf("the item's %s are an invalid count", name)}
		}
		*count = n
		if from := c.roundsFrom(place); n != nil && isRounded(*n, from) {
			*roundedFrom[name] = &from
		}
		hasCounts = hasCounts || n != nil
		if withheld {
			setHidden(true)
		} else if n != nil && c.reportsHiddenCount(name) {
			setHidden(false)
		}
	}
	if !hasCounts {
		return source.Result{Class: source.Temporary, Detail: "the item has no counts"}
	}
	for _, name := range c.HiddenWhenAbsent {
		if f.Views != nil && *counts[name] == nil {
			setHidden(true)
		}
	}
	f.HiddenStats = hidden
	f.Title = fetch.CleanText(c.Fields["title"].readText(item))
	f.Username = fetch.ParseHandle(c.Fields["username"].readText(item))
	f.AccountID = c.Fields["account_id"].readID(item)
	f.AccountName = fetch.CleanName(c.Fields["account_name"].readText(item))
	f.UploadedAt = c.Fields["uploaded_at"].readTime(item, now)
	f.LengthSeconds = c.Fields["length_seconds"].readLength(item)
	f.SongName = fetch.CleanName(c.Fields["song_name"].readText(item))
	f.SongLink = fetch.ParseLink(c.Fields["song_link"].readText(item))
	f.ThumbnailURL = fetch.ParseLink(c.Fields["thumbnail_url"].readText(item))
	f.NotSafe = c.Fields["not_safe"].readBoolean(item)
	f.Private = c.Fields["private"].readBoolean(item)
	f.IsAd = c.Fields["is_ad"].readBoolean(item)
	f.ShopAd = c.Fields["shop_ad"].readBoolean(item)
	f.ShopProductID = c.Fields["shop_product_id"].readID(item)
	return source.Result{Class: source.OK, Facts: f}
}

// reportsHiddenCount returns true if the vendor's answers show whether the platform hides the count with the given name, such as "likes".
func (c Call) reportsHiddenCount(countName string) bool {
	return slices.Contains(c.HiddenWhenAbsent, countName) ||
		slices.ContainsFunc(c.Fields[countName], func(a Alternative) bool { return a.Withheld != nil || a.HiddenIf != nil })
}
