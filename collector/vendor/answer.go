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

// verdict returns what an answer as a whole means, before its items are read: a source.Class, or split. body is the zero Result if
// the answer is not JSON. Then something other than the vendor has answered, and the vendor's rules do not apply.
//
// ofSource is true if the status or a rule says that the credential is refused. The status 403 alone is not enough, even if a rule
// matches it: vendors pass on the platform's refusal of one target as 403.
func (c Config) verdict(status int, body gjson.Result) (class string, ofSource bool) {
	spoke := body.Exists()
	for _, r := range c.Rules {
		if spoke && (len(r.Status) == 0 || slices.Contains(r.Status, status)) && (r.When == nil || r.When.holds(body)) && (r.And == nil || r.And.holds(body)) {
			said := r.When != nil || status != http.StatusForbidden
			return r.Class, said && r.Class == string(source.AuthFailed)
		}
	}
	return string(fetch.ClassOf(status, spoke)), fetch.NamesCredential(status)
}

// message is the vendor's own word on an error, "" when there is none.
func (c Config) message(body gjson.Result) string {
	for _, path := range c.Message {
		if v := body.Get(path); v.Type == gjson.String && v.Str != "" {
			return v.Str
		}
	}
	return ""
}

// findItems finds the items of a good answer; the error says that there is neither an item nor a list where one should be, or
// far too long a list.
func findItems(body gjson.Result, paths, unwrap []string) ([]gjson.Result, error) {
	for _, path := range paths {
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
			for _, wrap := range unwrap {
				if inner := item.Get(wrap); inner.IsObject() {
					items[i] = inner
					break
				}
			}
		}
		return items, nil
	}
	return nil, fmt.Errorf("the answer has no items at %s", strings.Join(paths, ", "))
}

// read gives the outcome for each of the asked ids, by id. An item that belongs to none of them casts doubt on what is
// left out; of two items for one id the first counts.
func (c Call) read(items []gjson.Result, asked []string, now time.Time) map[string]source.Result {
	out := make(map[string]source.Result, len(asked))
	strangers := false
	for _, item := range items {
		id := c.match(item, items, asked)
		if id == "" {
			strangers = true
			continue
		}
		if _, twice := out[id]; !twice {
			out[id] = c.result(item, now)
		}
	}
	missing := source.Result{Class: source.Gone, Detail: "the vendor's answer leaves it out"}
	switch {
	case strangers:
		missing = source.Result{Class: source.Temporary, Detail: "left out of an answer with an item that nobody asked for"}
	case c.Missing != "":
		missing.Class = c.Missing
	}
	for _, id := range asked {
		if _, ok := out[id]; !ok {
			out[id] = missing
		}
	}
	return out
}

// match says to which asked id an item belongs, "" for none.
func (c Call) match(item gjson.Result, all []gjson.Result, asked []string) string {
	if c.Match.Sole && len(all) == 1 && len(asked) == 1 && item.IsObject() {
		return asked[0]
	}
	for _, path := range c.Match.ID {
		if text, ok := scalar(item.Get(path)); ok && slices.Contains(asked, text) {
			return text
		}
	}
	for _, path := range c.Match.Link {
		parts := strings.FieldsFunc(item.Get(path).Str, func(r rune) bool { return strings.ContainsRune("/?&=#", r) })
		for _, part := range parts {
			if slices.Contains(asked, part) {
				return part
			}
		}
	}
	return ""
}

// state is what an item means that stands in place of its facts.
func (c Call) state(item gjson.Result) (source.Result, bool) {
	for _, s := range c.States {
		if s.holds(item) {
			return source.Result{Class: s.Class, Detail: "the vendor's item has " + s.Path + " " + fetch.Redact(item.Get(s.Path).String())}, true
		}
	}
	return source.Result{}, false
}

// result reads one item.
func (c Call) result(item gjson.Result, now time.Time) source.Result {
	if state, ok := c.state(item); ok {
		return state
	}
	f := &source.Facts{}
	counts := map[string]**int64{"views": &f.Views, "likes": &f.Likes, "comments": &f.Comments, "shares": &f.Shares, "bookmarks": &f.Bookmarks}
	some := false
	hidden := c.Fields["hidden_stats"].flag(item)
	hide := func(yes bool) {
		if hidden == nil || yes {
			hidden = &yes
		}
	}
	for name, count := range counts {
		n, withheld, wrong := c.Fields[name].count(item)
		if wrong {
			return source.Result{Class: source.Temporary, Detail: "the item's " + name + " are no whole number"}
		}
		*count = n
		some = some || n != nil || withheld
		if withheld {
			hide(true)
		} else if n != nil && c.canHide(name) {
			hide(false)
		}
	}
	if !some {
		return source.Result{Class: source.Temporary, Detail: "the item has none of the counts"}
	}
	for _, name := range c.HiddenWhenAbsent {
		if f.Views != nil && *counts[name] == nil {
			hide(true)
		}
	}
	f.HiddenStats = hidden
	f.Title = fetch.Text(c.Fields["title"].text(item))
	f.Username = fetch.Handle(c.Fields["username"].text(item))
	f.AccountID = c.Fields["account_id"].id(item)
	f.AccountName = fetch.Name(c.Fields["account_name"].text(item))
	f.UploadedAt = c.Fields["uploaded_at"].time(item, now)
	f.LengthSeconds = c.Fields["length_seconds"].length(item)
	f.SongName = fetch.Name(c.Fields["song_name"].text(item))
	f.SongLink = fetch.Link(c.Fields["song_link"].text(item))
	f.NotSafe = c.Fields["not_safe"].flag(item)
	f.Private = c.Fields["private"].flag(item)
	f.IsAd = c.Fields["is_ad"].flag(item)
	f.ShopAd = c.Fields["shop_ad"].flag(item)
	f.ShopProductID = c.Fields["shop_product_id"].id(item)
	return source.Result{Class: source.OK, Facts: f}
}

// canHide is whether the vendor would say so if the platform withheld the count.
func (c Call) canHide(name string) bool {
	return slices.Contains(c.HiddenWhenAbsent, name) ||
		slices.ContainsFunc(c.Fields[name], func(a Alternative) bool { return a.Withheld != nil })
}
