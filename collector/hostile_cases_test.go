package collector_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

// scenario is one kind of hostility and what has to come of it: what became of the three videos of a turn. Numbers need no word of
// their own: "ok" has the true ones, and everything else leaves what was known, which is nothing for the video that is new.
type scenario struct {
	name string
	bend bend
	// want are the fates in every lane but those that by names.
	want fates
	by   map[string]fates
	// silent are counts that are not given, and stay what they were.
	silent []string
	lanes  func(lane) bool // nil: all
	// pair says that the platform is after both videos that were measured, and leaves the new one alone.
	pair    bool
	side    bool          // it bends the calls besides, and leaves those for the videos alone
	timeout time.Duration // of a call, where the platform is slow
}

// after says whether the platform is after a video of the turn.
func (s scenario) after(which int) bool { return s.pair && which != 1 || !s.pair && which != 2 }

// of are the fates in a lane. A video that has a call of its own is not touched by what becomes of others' calls.
func (s scenario) of(l lane) fates {
	want, ok := s.by[l.name]
	if !ok {
		want = s.want
	}
	if l.alone && !s.pair && !s.side {
		want.onlooker = "ok"
	}
	return want
}

var (
	written   = fates{"ok", "ok", "ok"}
	items     = fates{"temporary", "temporary", "ok"}        // of the victims' items alone
	whole     = fates{"temporary", "temporary", "temporary"} // of all of the answer
	doubted   = fates{heldBack, heldBack, "ok"}
	refusals  = func(f fate) fates { return fates{f, f, f} }
	inBatches = func(l lane) bool { return !l.alone }
)

// named says whether a lane's items have the id that was asked for: ScrapeCreators gives Facebook's another.
func named(l lane) bool { return l.name != "scrapecreators facebook" }

// lettered says whether the ids of a lane have letters.
func lettered(l lane) bool { return l.platform == link.YouTube || l.platform == link.Instagram }

func has(names ...string) func(lane) bool {
	return func(l lane) bool {
		for _, name := range names {
			if l.counts[name] == nil {
				return false
			}
		}
		return true
	}
}

func scenarios() []scenario {
	var all []scenario
	for _, part := range [][]scenario{wrongCounts(), otherCounts(), otherItems(), brokenBodies(), texts(), connections(), redirects(), refusedCalls()} {
		all = append(all, part...)
	}
	return all
}

// wrongCounts are counts that no count can be.
func wrongCounts() []scenario {
	var all []scenario
	for name, value := range map[string]any{
		"negative": -5, "a fraction": 1.5, "1e308": raw("1e308"), "with an exponent": raw("1e3"), "minus zero": raw("-0"), "2^63": raw("9223372036854775808"),
		"2^63-1": raw("9223372036854775807"), "twenty nines": raw(strings.Repeat("9", 20)), "a text": "many", "NaN as a text": "NaN", "Infinity as a text": "Infinity",
		"empty": "", "with a space": " 12", "with a comma": "1,234", "short for thousands": "1.2K", "in other digits": "١٢٣", "hexadecimal": "0x1F", "with a plus": "+12",
		"with a NUL": "12\x00", "true": true, "a list": []any{12}, "an object": object{"count": 12}, "an empty list": []any{}, "negative as a text": "-12",
	} {
		all = append(all, scenario{name: "views are " + name, bend: setting(value, "views"), want: items})
	}
	for _, name := range []string{"likes", "comments", "shares", "bookmarks"} {
		all = append(all,
			scenario{name: name + " are an object", bend: setting(object{"n": 1}, name), want: items, lanes: has(name)},
			scenario{name: name + " are beyond 2^63", bend: setting(raw("99999999999999999999"), name), want: items, lanes: has(name)})
	}
	return append(all,
		scenario{name: "all counts are negative", bend: setting(-5), want: items},
		scenario{name: "NaN without quotes", bend: setting(raw("NaN"), "views"), want: whole},
		scenario{name: "a number with a leading zero", bend: setting(raw("0012"), "views"), want: whole},
		scenario{name: "views are said twice", bend: twice(7), want: whole},
		scenario{name: "numbers as texts", bend: spelled(func(n int64) any { return fmt.Sprint(n) }), want: written},
		scenario{name: "texts as numbers", bend: spelled(func(n int64) any { return n }), want: written})
}

// otherCounts are counts that could be, and are not.
func otherCounts() []scenario {
	// Of a source that lags, fewer views than are known are older ones.
	older := map[string]fates{"tiktok research": {notNewer, heldBack, "ok"}}
	fewer := map[string]fates{"tiktok research": {notNewer, "ok", "ok"}}
	return []scenario{
		{name: "all counts are zero", bend: setting(0), want: doubted, by: older},
		{name: "views are zero", bend: setting(0, "views"), want: doubted, by: older},
		{name: "likes are zero", bend: setting(0, "likes"), want: doubted},
		{name: "views are null", bend: setting(nil, "views"), want: written, silent: []string{"views"}},
		{name: "views are left out", bend: without("views"), want: written, silent: []string{"views"}},
		{name: "comments are null", bend: setting(nil, "comments"), want: written, silent: []string{"comments"}},
		{name: "comments are left out", bend: without("comments"), want: written, silent: []string{"comments"}},
		{name: "all counts are null", bend: setting(nil), want: items},
		{name: "all counts are left out", bend: without(), want: items},
		{name: "views and likes have changed places", bend: swapping("views", "likes", true), want: doubted, by: older},
		{name: "views and comments have changed places", bend: swapping("views", "comments", true), want: doubted, by: older},
		{name: "views and shares have changed places", bend: swapping("views", "shares", true), want: doubted, by: older, lanes: has("shares")},
		{name: "views and bookmarks have changed places", bend: swapping("views", "bookmarks", true), want: doubted, by: older, lanes: has("bookmarks")},
		{name: "comments above the views", bend: setting(1_000_000_000, "comments"), want: doubted},
		{name: "shares above the views", bend: setting(1_000_000_000, "shares"), want: doubted, lanes: has("shares")},
		{name: "views fall to a thousandth", bend: spelled(func(n int64) any { return n / 1000 }, "views"), want: doubted, by: older},
		// Nobody can tell these from true numbers: they stand until the next turn.
		{name: "likes and comments have changed places", bend: swapping("likes", "comments", false), want: written},
		{name: "views fall by a third", bend: lying(func(n int64) int64 { return n - n/3 }, "views"), want: written, by: fewer},
		{name: "views are a little more", bend: lying(func(n int64) int64 { return n + 3 }, "views"), want: written},
	}
}

// otherItems are items of others, or none.
func otherItems() []scenario {
	missing := map[string]fates{}
	for _, l := range []string{"instagram", "tiktok display", "tiktok research"} {
		missing[l] = fates{"missing", "missing", "ok"}
	}
	leaving := map[string]fates{"apify tiktok": items, "apify instagram": items, "youtube counts": items}
	maps.Copy(leaving, missing)
	// Where an item's link names its video as well, an exchange shows at once.
	linked := map[string]fates{"instagram": {"temporary", "ok", "temporary"}, "tiktok display": {"temporary", "ok", "temporary"}, "tiktok research": {heldBack, "ok", notNewer}}
	notShown := map[string]fates{"instagram": missing["instagram"]}
	return []scenario{
		{name: "two items have changed ids", bend: exchanged, pair: true, want: fates{heldBack, "ok", heldBack}, by: linked, lanes: inBatches},
		{name: "an item with a neighbour's numbers", bend: copied, pair: true, want: fates{heldBack, "ok", "ok"}, lanes: inBatches},
		{name: "items are left out", bend: leftOut, want: fates{"gone", "gone", "ok"}, by: leaving, lanes: inBatches},
		{name: "another's item in place of one", bend: renamed(nextTo), want: items, by: notShown, lanes: named},
		{name: "items with the id 0", bend: renamed(func(string) string { return "0" }), want: items, lanes: named},
		{name: "ids in another case", bend: renamed(strings.ToUpper), want: items, by: notShown, lanes: lettered},
		{name: "items are null", bend: func(b *bending, s *sent) {
			b.lists(s, func(list []any, isVictim func(any) bool) []any {
				for i := range list {
					if isVictim(list[i]) {
						list[i] = nil
					}
				}
				return list
			})
		}, want: items, lanes: inBatches},
		{name: "items come twice", bend: func(b *bending, s *sent) {
			b.lists(s, func(list []any, _ func(any) bool) []any { return append(list, list...) })
		}, want: written, lanes: inBatches},
		{name: "items in another order", bend: func(b *bending, s *sent) {
			b.lists(s, func(list []any, _ func(any) bool) []any {
				for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
					list[i], list[j] = list[j], list[i]
				}
				return list
			})
		}, want: written, lanes: inBatches},
		{name: "a million items", bend: manyItems, want: whole, lanes: inBatches},
		{name: "members that nobody knows", bend: each(func(_ string, item object) { item["viewcount2"], item["__proto__"] = 9, object{"views": 9} }), want: written},
	}
}

// brokenBodies are no answers at all.
func brokenBodies() []scenario {
	all := []scenario{
		{name: "an empty body", bend: text(""), want: whole},
		{name: "spaces", bend: text("  \n "), want: whole},
		{name: "an empty object", bend: text("{}"), want: whole},
		{name: "null", bend: text("null"), want: whole},
		{name: "a text", bend: text(`"ok"`), want: whole},
		{name: "a number", bend: text("9007199254740993"), want: whole},
		{name: "true", bend: text("true"), want: whole},
		{name: "a page of HTML", bend: text(page), want: whole},
		{name: "XML", bend: text(`<?xml version="1.0"?><views>12</views>`), want: whole},
		{name: "garbage", bend: text("\x00\xff\x1f\x8b garbage"), want: whole},
		{name: "a byte order mark", bend: bytesOf(func(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) }), want: whole},
		{name: "UTF-16", bend: bytesOf(utf16Of), want: whole},
		{name: "two answers at once", bend: bytesOf(func(b []byte) []byte { return append(bytes.Clone(b), b...) }), want: whole},
		{name: "something behind the answer", bend: bytesOf(func(b []byte) []byte { return append(bytes.Clone(b), "</html>"...) }), want: whole},
		{name: "a NUL behind the answer", bend: bytesOf(func(b []byte) []byte { return append(bytes.Clone(b), 0) }), want: whole},
		{name: "in single quotes", bend: bytesOf(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"`), []byte(`'`)) }), want: whole},
		{name: "within a call of a script", bend: bytesOf(func(b []byte) []byte { return append(append([]byte("callback("), b...), ')') }), want: whole},
		{name: "10,000 levels deep", bend: text(strings.Repeat(`{"items":[`, 5_000) + strings.Repeat(`]}`, 5_000)), want: whole},
		{name: "a million brackets that never close", bend: text(strings.Repeat("[", 1_000_000)), want: whole},
		{name: "ten megabytes of spaces", bend: bytesOf(func(b []byte) []byte { return append(bytes.Repeat([]byte(" "), 10<<20), b...) }), want: whole},
		{name: "a gzip bomb", bend: bomb, want: whole},
		{name: "said to be gzip", bend: func(_ *bending, s *sent) { s.header.Set("Content-Encoding", "gzip") }, want: whole},
	}
	for _, eighth := range []int{1, 2, 3, 4, 5, 6, 7} {
		all = append(all, scenario{name: fmt.Sprintf("cut after %d eighths", eighth), bend: bytesOf(func(b []byte) []byte { return b[:len(b)*eighth/8] }), want: whole})
	}
	return append(all, scenario{name: "without its last byte", bend: bytesOf(func(b []byte) []byte { b = bytes.TrimSpace(b); return b[:len(b)-1] }), want: whole})
}

// connections are answers that do not arrive.
func connections() []scenario {
	const short = 300 * time.Millisecond
	return []scenario{
		{name: "no answer in time", bend: slow(0), want: whole, timeout: short},
		{name: "half an answer in time", bend: slow(50), want: whole, timeout: short},
		{name: "all but the end of it in time", bend: slow(99), want: whole, timeout: short},
		{name: "a closed connection", bend: hungUp, want: whole},
		{name: "a connection that breaks off", bend: brokenOff, want: whole},
		{name: "less than was promised", bend: promised, want: whole},
		{name: "another protocol", bend: noHTTP, want: whole},
	}
}

// redirects lead where no collector may go.
func redirects() []scenario {
	var all []scenario
	for _, to := range []string{"http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:1/", "http://[::1]:1/", "http://10.0.0.1/", "file:///etc/passwd",
		"//evil.example/", "javascript:alert(1)", "%zz://", strings.Repeat("a", 100_000)} {
		name := to[:min(len(to), 40)]
		all = append(all, scenario{name: "a redirect to " + strings.ReplaceAll(name, "/", "_"), bend: status(http.StatusFound, problem, "Location", to), want: whole})
	}
	for _, code := range []int{300, 301, 303, 307, 308} {
		all = append(all, scenario{name: fmt.Sprintf("a redirect with %d", code), bend: status(code, page, "Location", "http://169.254.169.254/"), want: whole})
	}
	return all
}
