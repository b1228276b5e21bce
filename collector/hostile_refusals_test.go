package collector_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// hostileTextScenarios returns scenarios whose answers have correct counts and dangerous texts, such as scripts. The counts must be
// stored.
func hostileTextScenarios() []scenario {
	names := []string{"title", "desc", "text", "caption", "description", "video_description"}
	// withText returns a tamperFunc that sets the titles, captions and descriptions in an answer to the given text.
	withText := func(text string) tamperFunc {
		return changeItems(func(_ string, item object) {
			visitNodes(item, func(key string, v any) any {
				if _, is := v.(string); is && slices.Contains(names, key) {
					return text
				}
				return nil
			})
		})
	}
	return []scenario{
		{name: "a script in the title", tamper: withText("<script>alert(document.cookie)</script>"), want: allOK},
		{name: "SQL in the title", tamper: withText("'; DROP TABLE videos; --"), want: allOK},
		{name: "NUL in the title", tamper: withText("a\x00b"), want: allOK},
		{name: "a lone surrogate in the title", tamper: withText(rawText(`"a\ud800b"`)), want: allOK},
		{name: "invalid UTF-8 in the title", tamper: withText(rawText("\"a\xff\xfe\xc0\x80b\"")), want: allOK},
		{name: "bidirectional control characters in the title", tamper: withText("\u202e\u2066abc"), want: allOK},
		{name: "a title of 200,000 characters", tamper: withText(strings.Repeat("long ", 40_000)), want: allOK},
		// The answers of the source "youtube counts" contain no titles, so the scenario does not change these answers.
		{name: "a title of ten megabytes", tamper: withText(strings.Repeat("A", 10<<20)), want: allFail,
			wantBySource: map[string]outcomes{"youtube counts": allOK}, alsoCorrect: map[string]outcomes{"youtube": {"ok", "temporary", "ok"}}},
		{name: "a spreadsheet formula in the title", tamper: withText(`=HYPERLINK("http://evil.example")`), want: allOK},
	}
}

// errorStatusScenarios returns scenarios whose answers have an HTTP error status.
func errorStatusScenarios() []scenario {
	// Some vendors use the HTTP status to describe the target, for example 404 for a deleted video.
	vendors := func(f outcome) map[string]outcomes {
		return map[string]outcomes{"ensembledata tiktok": allWith(f), "ensembledata instagram": allWith(f)}
	}
	// If YouTube refuses the method that returns only counts, the source reports that the budget of this method is spent. The collector then uses
	// another method.
	fallback := map[string]outcomes{"youtube counts": allWith("quota_spent")}
	notFound := vendors("gone")
	notFound["youtube counts"] = fallback["youtube counts"]
	for _, l := range []string{"tiktok", "instagram", "facebook"} {
		notFound["scrapecreators "+l] = allWith("gone")
	}
	all := []scenario{
		{name: "204", tamper: func(_ *tampering, s *response) { s.status, s.body = http.StatusNoContent, nil }, want: allFail},
		{name: "401", tamper: respondWithStatus(401, jsonError), want: allWith("auth_failed")},
		{name: "401 with HTML", tamper: respondWithStatus(401, htmlPage), want: allWith("auth_failed")},
		{name: "402", tamper: respondWithStatus(402, jsonError), want: allWith("quota_spent")},
		{name: "402 with HTML", tamper: respondWithStatus(402, htmlPage), want: allFail},
		{name: "403", tamper: respondWithStatus(403, jsonError), want: allWith("auth_failed"), wantBySource: fallback,
			alsoCorrect: map[string]outcomes{"youtube": {"quota_spent", "auth_failed", "quota_spent"}}},
		{name: "403 with HTML", tamper: respondWithStatus(403, htmlPage), want: allFail},
		{name: "404", tamper: respondWithStatus(404, jsonError), want: allWith("bad_request"), wantBySource: notFound,
			alsoCorrect: map[string]outcomes{"youtube": {"quota_spent", "bad_request", "quota_spent"}}},
		{name: "404 with HTML", tamper: respondWithStatus(404, htmlPage), want: allFail, wantBySource: fallback,
			alsoCorrect: map[string]outcomes{"youtube": {"quota_spent", "temporary", "quota_spent"}}},
		{name: "410", tamper: respondWithStatus(410, jsonError), want: allWith("bad_request")},
		{name: "418", tamper: respondWithStatus(418, jsonError), want: allWith("bad_request")},
		{name: "429", tamper: respondWithStatus(429, jsonError), want: allWith("rate_limited")},
		{name: "429 with HTML", tamper: respondWithStatus(429, htmlPage), want: allWith("rate_limited")},
		{name: "an unknown status", tamper: respondWithStatus(799, jsonError), want: allFail},
	}
	for _, after := range []string{"5", "0", "-5", "soon", "99999999999999999999", "1e9", "Mon, 01 Jan 0001 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", strings.Repeat("9", 10_000)} {
		all = append(all, scenario{name: "429 with Retry-After " + after[:min(len(after), 30)], tamper: respondWithStatus(429, jsonError, "Retry-After", after), want: allWith("rate_limited")})
	}
	for _, code := range []int{500, 501, 502, 503, 504, 520, 529} {
		by := map[string]outcomes(nil)
		if code == 520 {
			by = vendors("restricted")
		}
		all = append(all, scenario{name: fmt.Sprint(code), tamper: respondWithStatus(code, jsonError), want: allFail, wantBySource: by},
			scenario{name: fmt.Sprintf("%d with HTML", code), tamper: respondWithStatus(code, htmlPage, "Retry-After", "86400000"), want: allFail})
	}
	return all
}
