package collector_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// texts are hostile texts beside good numbers, which cost no number.
func texts() []scenario {
	names := []string{"title", "desc", "text", "caption", "description", "video_description"}
	// in puts a text in the place of every title and the like of an item.
	in := func(text string) bend {
		return each(func(_ string, item object) {
			visitNodes(item, func(key string, v any) any {
				if _, is := v.(string); is && slices.Contains(names, key) {
					return text
				}
				return nil
			})
		})
	}
	return []scenario{
		{name: "a script in the title", bend: in("<script>alert(document.cookie)</script>"), want: written},
		{name: "SQL in the title", bend: in("'; DROP TABLE videos; --"), want: written},
		{name: "NUL in the title", bend: in("a\x00b"), want: written},
		{name: "a lone surrogate in the title", bend: in(raw(`"a\ud800b"`)), want: written},
		{name: "bytes that are no UTF-8 in the title", bend: in(raw("\"a\xff\xfe\xc0\x80b\"")), want: written},
		{name: "controls of direction in the title", bend: in("\u202e\u2066abc"), want: written},
		{name: "200,000 letters of title", bend: in(strings.Repeat("long ", 40_000)), want: written},
		{name: "ten megabytes of title", bend: in(strings.Repeat("A", 10<<20)), want: whole},
		{name: "a formula in the title", bend: in(`=HYPERLINK("http://evil.example")`), want: written},
	}
}

// refusedCalls are statuses, whose class decides what becomes of the source.
func refusedCalls() []scenario {
	// The description of a vendor may say what a status means for a target. For YouTube's calls that get only counts, the project may
	// not have the method; the collector then uses another method.
	vendors := func(f fate) map[string]fates {
		return map[string]fates{"ensembledata tiktok": refusals(f), "ensembledata instagram": refusals(f)}
	}
	standIn := map[string]fates{"youtube counts": refusals("quota_spent")}
	notFound := vendors("gone")
	notFound["youtube counts"] = standIn["youtube counts"]
	for _, l := range []string{"tiktok", "instagram", "facebook"} {
		notFound["scrapecreators "+l] = refusals("gone")
	}
	all := []scenario{
		{name: "204", bend: func(_ *bending, s *sent) { s.status, s.body = http.StatusNoContent, nil }, want: whole},
		{name: "401", bend: status(401, problem), want: refusals("auth_failed")},
		{name: "401 with HTML", bend: status(401, page), want: refusals("auth_failed")},
		{name: "402", bend: status(402, problem), want: refusals("quota_spent")},
		{name: "402 with HTML", bend: status(402, page), want: whole},
		{name: "403", bend: status(403, problem), want: refusals("auth_failed"), by: standIn},
		{name: "403 with HTML", bend: status(403, page), want: whole},
		{name: "404", bend: status(404, problem), want: refusals("bad_request"), by: notFound},
		{name: "404 with HTML", bend: status(404, page), want: whole, by: standIn},
		{name: "410", bend: status(410, problem), want: refusals("bad_request")},
		{name: "418", bend: status(418, problem), want: refusals("bad_request")},
		{name: "429", bend: status(429, problem), want: refusals("rate_limited")},
		{name: "429 with HTML", bend: status(429, page), want: refusals("rate_limited")},
		{name: "a status that nobody knows", bend: status(799, problem), want: whole},
	}
	for _, after := range []string{"5", "0", "-5", "soon", "99999999999999999999", "1e9", "Mon, 01 Jan 0001 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", strings.Repeat("9", 10_000)} {
		all = append(all, scenario{name: "429 with Retry-After " + after[:min(len(after), 30)], bend: status(429, problem, "Retry-After", after), want: refusals("rate_limited")})
	}
	for _, code := range []int{500, 501, 502, 503, 504, 520, 529} {
		by := map[string]fates(nil)
		if code == 520 {
			by = vendors("restricted")
		}
		all = append(all, scenario{name: fmt.Sprint(code), bend: status(code, problem), want: whole, by: by},
			scenario{name: fmt.Sprintf("%d with HTML", code), bend: status(code, page, "Retry-After", "86400000"), want: whole})
	}
	return all
}
