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

// scenario describes changed answers of the platform and the expected outcomes. If an outcome is not
// "ok", the video must keep its stored counts.
type scenario struct {
	name   string
	tamper tamperFunc
	// These are the expected outcomes. wantBySource has exceptions for some sources.
	want         outcomes
	wantBySource map[string]outcomes
	// alsoCorrect maps the name of a source to outcomes that are also accepted. The source "youtube"
	// has two methods, whose outcomes can differ.
	alsoCorrect map[string]outcomes
	// missingCounts has the names of the counts that are not in the changed answer. Their stored values stay unchanged.
	missingCounts []string
	onlyIf        func(testedSource) bool // returns true if the scenario tests the source; if the function is nil, all sources are tested
	// The platform changes its answers about two videos: about "known" and "unaffected" if bothKnown is true,
	// and about "known" and "unfetched" if not.
	bothKnown  bool
	otherCalls bool          // if true, only other answers are changed, for example answers with an access token, and answers about these two videos stay unchanged
	timeout    time.Duration // timeout of a call; 0 means ten seconds
}

// affectsVideo returns true if tampering.tamperedIDs must contain the video's id. The index is 0 for
// "known", 1 for "unfetched" and 2 for "unaffected".
func (s scenario) affectsVideo(index int) bool {
	return s.bothKnown && index != 1 || !s.bothKnown && index != 2
}

// wantedOutcomes returns the expected outcomes for a source. If each call of the source fetches only one video,
// changed answers about "known" and "unfetched" do not affect "unaffected".
func (s scenario) wantedOutcomes(l testedSource) outcomes {
	want, ok := s.wantBySource[l.name]
	if !ok {
		want = s.want
	}
	if l.singleCalls && !s.bothKnown && !s.otherCalls {
		want.unaffected = "ok"
	}
	return want
}

var (
	allOK           = outcomes{"ok", "ok", "ok"}
	itemsFail       = outcomes{"temporary", "temporary", "ok"}        // only the answers about the first two videos are invalid
	allFail         = outcomes{"temporary", "temporary", "temporary"} // the whole answer is invalid, so that all three videos fail
	itemsSuspicious = outcomes{suspicious, suspicious, "ok"}
	allWith         = func(f outcome) outcomes { return outcomes{f, f, f} }
	isBatched       = func(l testedSource) bool { return !l.singleCalls }
)

// videoIDsContainLetters returns true if the video ids of the source's platform contain letters.
func videoIDsContainLetters(l testedSource) bool {
	return l.platform == link.YouTube || l.platform == link.Instagram
}

func hasCounts(names ...string) func(testedSource) bool {
	return func(l testedSource) bool {
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
	for _, part := range [][]scenario{invalidCountScenarios(), plausibleCountScenarios(), wrongItemScenarios(), malformedBodyScenarios(), hostileTextScenarios(), brokenConnectionScenarios(), redirectScenarios(), errorStatusScenarios()} {
		all = append(all, part...)
	}
	return all
}

// invalidCountScenarios returns scenarios in which a count has an impossible value, such as a negative number.
func invalidCountScenarios() []scenario {
	var all []scenario
	for name, value := range map[string]any{
		"negative": -5, "fractional": 1.5, "1e308": rawText("1e308"), "a number with an exponent": rawText("1e3"), "minus zero": rawText("-0"), "2^63": rawText("9223372036854775808"),
		"2^63-1": rawText("9223372036854775807"), "five trillion": rawText("5000000000000"), "twenty digits": rawText(strings.Repeat("9", 20)), "a word": "many", "NaN in a string": "NaN", "Infinity in a string": "Infinity",
		"empty": "", "a string with a space": " 12", "a string with a comma": "1,234", "abbreviated": "1.2K", "a string with Arabic digits": "١٢٣", "hexadecimal": "0x1F", "a string with a plus sign": "+12",
		"a string with a NUL": "12\x00", "true": true, "a list": []any{12}, "an object": object{"count": 12}, "an empty list": []any{}, "a negative number in a string": "-12",
	} {
		all = append(all, scenario{name: "views: " + name, tamper: setCounts(value, "views"), want: itemsFail})
	}
	for _, name := range []string{"likes", "comments", "shares", "bookmarks"} {
		all = append(all,
			scenario{name: name + ": an object", tamper: setCounts(object{"n": 1}, name), want: itemsFail, onlyIf: hasCounts(name)},
			scenario{name: fmt.Sprintf("%s: a number beyond 2^63", name), tamper: setCounts(rawText("99999999999999999999"), name), want: itemsFail, onlyIf: hasCounts(name)})
	}
	return append(all,
		scenario{name: "only negative counts", tamper: setCounts(-5), want: itemsFail},
		scenario{name: "NaN without quotes", tamper: setCounts(rawText("NaN"), "views"), want: allFail},
		scenario{name: "views with a leading zero", tamper: setCounts(rawText("0012"), "views"), want: allFail},
		scenario{name: "two different numbers of views", tamper: addSecondViewCount(7), want: allFail},
		scenario{name: "strings instead of numbers", tamper: reformatCounts(func(n int64) any { return fmt.Sprint(n) }), want: allOK},
		scenario{name: "numbers instead of strings", tamper: reformatCounts(func(n int64) any { return n }), want: allOK})
}

// plausibleCountScenarios returns scenarios in which counts are missing, or are wrong although they are valid numbers.
func plausibleCountScenarios() []scenario {
	// The Research API may return old counts. The collector therefore ignores an answer of this API with fewer views than are stored.
	older := map[string]outcomes{"tiktok research": {notNewer, suspicious, "ok"}}
	fewer := map[string]outcomes{"tiktok research": {notNewer, "ok", "ok"}}
	return []scenario{
		{name: "zero instead of every count", tamper: setCounts(0), want: itemsSuspicious, wantBySource: older},
		{name: "zero views", tamper: setCounts(0, "views"), want: itemsSuspicious, wantBySource: older},
		{name: "zero likes", tamper: setCounts(0, "likes"), want: itemsSuspicious},
		{name: "null instead of the views", tamper: setCounts(nil, "views"), want: allOK, missingCounts: []string{"views"}},
		{name: "missing views", tamper: removeCounts("views"), want: allOK, missingCounts: []string{"views"}},
		{name: "null instead of the comments", tamper: setCounts(nil, "comments"), want: allOK, missingCounts: []string{"comments"}},
		{name: "missing comments", tamper: removeCounts("comments"), want: allOK, missingCounts: []string{"comments"}},
		{name: "null instead of every count", tamper: setCounts(nil), want: itemsFail},
		{name: "no counts", tamper: removeCounts(), want: itemsFail},
		{name: "views swapped with likes", tamper: swapCounts("views", "likes", true), want: itemsSuspicious, wantBySource: older},
		{name: "views swapped with comments", tamper: swapCounts("views", "comments", true), want: itemsSuspicious, wantBySource: older},
		{name: "views swapped with shares", tamper: swapCounts("views", "shares", true), want: itemsSuspicious, wantBySource: older, onlyIf: hasCounts("shares")},
		{name: "views swapped with bookmarks", tamper: swapCounts("views", "bookmarks", true), want: itemsSuspicious, wantBySource: older, onlyIf: hasCounts("bookmarks")},
		{name: "more comments than views", tamper: setCounts(1_000_000_000, "comments"), want: itemsSuspicious},
		{name: "more shares than views", tamper: setCounts(1_000_000_000, "shares"), want: itemsSuspicious, onlyIf: hasCounts("shares")},
		{name: "a thousandth of the correct views", tamper: reformatCounts(func(n int64) any { return n / 1000 }, "views"), want: itemsSuspicious, wantBySource: older},
		// The collector cannot detect the following wrong values. They stay stored until the next fetch.
		{name: "likes swapped with comments", tamper: swapCounts("likes", "comments", false), want: allOK},
		{name: "two thirds of the correct views", tamper: falsifyCounts(func(n int64) int64 { return n - n/3 }, "views"), want: allOK, wantBySource: fewer},
		{name: "a tenth more than the correct views", tamper: falsifyCounts(func(n int64) int64 { return n + n/10 }, "views"), want: allOK},
	}
}

// wrongItemScenarios returns scenarios whose answers contain items of other videos, or omit, repeat or reorder items.
func wrongItemScenarios() []scenario {
	// Two sources know the account of the video "unfetched" only from its link. The link may be wrong, so the
	// outcome is "unconfirmed".
	missing := map[string]outcomes{
		"instagram": {"missing", "unconfirmed", "ok"}, "tiktok display": {"missing", "unconfirmed", "ok"}, "tiktok research": {"missing", "missing", "ok"},
	}
	notListed := map[string]outcomes{"apify tiktok": itemsFail, "apify instagram": itemsFail, "youtube counts": itemsFail}
	maps.Copy(notListed, missing)
	// Some sources return a link with the video's id in each item. If the ids of two videos are swapped, the collector detects it by this link.
	withLinks := map[string]outcomes{"instagram": {"temporary", "ok", "temporary"}, "tiktok display": {"temporary", "ok", "temporary"}, "tiktok research": {suspicious, "ok", notNewer}}
	notShown := map[string]outcomes{"instagram": missing["instagram"]}
	return []scenario{
		{name: "two items with swapped ids", tamper: swapIDs, bothKnown: true, want: outcomes{suspicious, "ok", suspicious}, wantBySource: withLinks, onlyIf: isBatched},
		{name: "an item with the counts of another item", tamper: copyCounts, bothKnown: true, want: outcomes{suspicious, "ok", "ok"}, onlyIf: isBatched},
		// If the answer to a batch of one video is empty, the vendor itself may have failed.
		{name: "missing items", tamper: removeItems, want: outcomes{"gone", "gone", "ok"}, wantBySource: notListed, onlyIf: isBatched,
			alsoCorrect: map[string]outcomes{"ensembledata tiktok": {"gone", "temporary", "ok"}}},
		{name: "an item with the id of another video", tamper: replaceIDs(adjacentID), want: itemsFail, wantBySource: notShown},
		{name: "only items with the id 0", tamper: replaceIDs(func(string) string { return "0" }), want: itemsFail},
		{name: "ids in upper case", tamper: replaceIDs(strings.ToUpper), want: itemsFail, wantBySource: notShown, onlyIf: videoIDsContainLetters},
		{name: "null instead of the items", tamper: func(b *tampering, s *response) {
			b.changeEachList(s, func(list []any, isTampered func(any) bool) []any {
				for i := range list {
					if isTampered(list[i]) {
						list[i] = nil
					}
				}
				return list
			})
		}, want: itemsFail, onlyIf: isBatched},
		{name: "items that occur twice", tamper: func(b *tampering, s *response) {
			b.changeEachList(s, func(list []any, _ func(any) bool) []any { return append(list, list...) })
		}, want: allOK, onlyIf: isBatched},
		{name: "items in reverse order", tamper: func(b *tampering, s *response) {
			b.changeEachList(s, func(list []any, _ func(any) bool) []any {
				for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
					list[i], list[j] = list[j], list[i]
				}
				return list
			})
		}, want: allOK, onlyIf: isBatched},
		{name: "a million items", tamper: appendMillionItems, want: allFail, onlyIf: isBatched},
		{name: "unknown members", tamper: changeItems(func(_ string, item object) { item["viewcount2"], item["__proto__"] = 9, object{"views": 9} }), want: allOK},
	}
}

// malformedBodyScenarios returns scenarios whose answers have a body that is not the expected JSON.
func malformedBodyScenarios() []scenario {
	all := []scenario{
		{name: "an empty body", tamper: replaceBody(""), want: allFail},
		{name: "spaces", tamper: replaceBody("  \n "), want: allFail},
		{name: "an empty object", tamper: replaceBody("{}"), want: allFail},
		{name: "null", tamper: replaceBody("null"), want: allFail},
		{name: "a string", tamper: replaceBody(`"ok"`), want: allFail},
		{name: "a number", tamper: replaceBody("9007199254740993"), want: allFail},
		{name: "true", tamper: replaceBody("true"), want: allFail},
		{name: "a page of HTML", tamper: replaceBody(htmlPage), want: allFail},
		{name: "XML", tamper: replaceBody(`<?xml version="1.0"?><views>12</views>`), want: allFail},
		{name: "garbage", tamper: replaceBody("\x00\xff\x1f\x8b garbage"), want: allFail},
		{name: "a byte order mark before the JSON", tamper: changeBody(func(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) }), want: allFail},
		{name: "UTF-16", tamper: changeBody(encodeUTF16), want: allFail},
		{name: "a body that has the answer twice", tamper: changeBody(func(b []byte) []byte { return append(bytes.Clone(b), b...) }), want: allFail},
		{name: "HTML after the answer", tamper: changeBody(func(b []byte) []byte { return append(bytes.Clone(b), "</html>"...) }), want: allFail},
		{name: "a NUL after the answer", tamper: changeBody(func(b []byte) []byte { return append(bytes.Clone(b), 0) }), want: allFail},
		{name: "JSON with single quotes", tamper: changeBody(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"`), []byte(`'`)) }), want: allFail},
		{name: "JSON inside a JavaScript call (JSONP)", tamper: changeBody(func(b []byte) []byte { return append(append([]byte("callback("), b...), ')') }), want: allFail},
		{name: "JSON with 10,000 levels", tamper: replaceBody(strings.Repeat(`{"items":[`, 5_000) + strings.Repeat(`]}`, 5_000)), want: allFail},
		{name: "a million unclosed brackets", tamper: replaceBody(strings.Repeat("[", 1_000_000)), want: allFail},
		{name: "ten megabytes of spaces", tamper: changeBody(func(b []byte) []byte { return append(bytes.Repeat([]byte(" "), 10<<20), b...) }), want: allFail},
		{name: "a gzip bomb", tamper: gzipBomb, want: allFail},
		{name: "an uncompressed body with Content-Encoding: gzip", tamper: func(_ *tampering, s *response) { s.header.Set("Content-Encoding", "gzip") }, want: allFail},
	}
	for _, eighth := range []int{1, 2, 3, 4, 5, 6, 7} {
		all = append(all, scenario{name: fmt.Sprintf("an answer that ends after %d %% of its bytes", 100*eighth/8), tamper: changeBody(func(b []byte) []byte { return b[:len(b)*eighth/8] }), want: allFail})
	}
	return append(all, scenario{name: "the answer without its last byte", tamper: changeBody(func(b []byte) []byte { b = bytes.TrimSpace(b); return b[:len(b)-1] }), want: allFail})
}

// brokenConnectionScenarios returns scenarios in which the collector does not receive a complete answer.
func brokenConnectionScenarios() []scenario {
	const short = 300 * time.Millisecond
	return []scenario{
		{name: "no answer in time", tamper: stallBody(0), want: allFail, timeout: short},
		{name: "an answer whose second half does not arrive in time", tamper: stallBody(50), want: allFail, timeout: short},
		{name: "an answer whose last percent does not arrive in time", tamper: stallBody(99), want: allFail, timeout: short},
		{name: "a connection that is closed before the answer", tamper: closeConnection, want: allFail},
		{name: "a connection that is closed in the middle of the answer", tamper: abortBody, want: allFail},
		{name: "fewer bytes than Content-Length", tamper: shortenBody, want: allFail},
		{name: "an SSH server instead of an HTTP server", tamper: sendNonHTTP, want: allFail},
	}
}

// redirectScenarios returns scenarios with redirects to addresses that the collector must not call.
func redirectScenarios() []scenario {
	var all []scenario
	for _, to := range []string{"http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:1/", "http://[::1]:1/", "http://10.0.0.1/", "file:///etc/passwd",
		"//evil.example/", "javascript:alert(1)", "%zz://", strings.Repeat("a", 100_000)} {
		name := to[:min(len(to), 40)]
		all = append(all, scenario{name: fmt.Sprintf("a redirect to %s", strings.ReplaceAll(name, "/", "_")), tamper: respondWithStatus(http.StatusFound, jsonError, "Location", to), want: allFail})
	}
	for _, code := range []int{300, 301, 303, 307, 308} {
		all = append(all, scenario{name: fmt.Sprintf("a redirect with status %d", code), tamper: respondWithStatus(code, htmlPage, "Location", "http://169.254.169.254/"), want: allFail})
	}
	return all
}
