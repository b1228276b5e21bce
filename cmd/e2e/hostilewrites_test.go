package e2e_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// hostileBulkCases returns test cases whose requests have long lists of links or ids.
func hostileBulkCases() []hostileCase {
	short := func(i int) string { return fmt.Sprintf("https://vm.tiktok.com/ZM%07d/", i) }
	return []hostileCase{
		{name: "500 times the same link", run: runPost(bulk, bulkBody(repeatedJSON(`"https://www.youtube.com/shorts/aBcDeFgHiJk"`, 500)))},
		{name: "500 links of 2,000 characters", run: runPost(bulk, bulkBody(jsonStrings(500, func(i int) string {
			return fmt.Sprintf("https://www.tiktok.com/@%s/video/%019d", strings.Repeat("x", 1950), i)
		})))},
		{name: "500 links of 4,000 characters, 2 MB", run: runPost(bulk, bulkBody(jsonStrings(500, func(i int) string { return fmt.Sprintf("https://example.com/%04d", i) + strings.Repeat("x", 4000) })))},
		{name: "500 short links", run: runPost(bulk, bulkBody(jsonStrings(500, short)))},
		{name: "500 short links of accounts", run: runPost("/accounts/bulk", bulkBody(jsonStrings(500, func(i int) string { return short(1000 + i) })))},
		{name: "500 new videos with all labels that a request may have", run: func(a *attack) {
			a.post(bulk, `{"label_ids":`+jsonStrings(25, func(i int) string { return a.wide[i] })+`,"links":`+jsonStrings(500, newVideoLink)+`}`)
		}},
		{name: "500 videos that are tracked already", run: func(a *attack) { a.post(bulk, bulkBody(jsonStrings(500, func(i int) string { return a.links[i] }))) }},
		{name: "500 new accounts", run: runPost("/accounts/bulk", bulkBody(jsonStrings(500, func(i int) string { return "https://www.tiktok.com/@hostile" + uuid.NewString()[:8] })))},
		{name: "a request to stop tracking 500 unknown videos", run: func(a *attack) {
			a.send(http.MethodDelete, bulk, `{"ids":`+jsonStrings(500, func(int) string { return uuid.NewString() })+`}`)
		}},
		{name: "a request to stop tracking 500 links of 2,000 characters", run: func(a *attack) {
			a.send(http.MethodDelete, bulk, `{"ids":`+jsonStrings(500, func(i int) string {
				return fmt.Sprintf("https://www.tiktok.com/@%s/video/%019d", strings.Repeat("x", 1950), i)
			})+`}`)
		}},
		{name: "a request to stop tracking 500 unknown accounts", run: func(a *attack) {
			a.send(http.MethodDelete, "/accounts/bulk", `{"ids":`+jsonStrings(500, func(int) string { return uuid.NewString() })+`}`)
		}},
		{name: "refresh of an unknown video", run: runPost("/refresh/videos", fmt.Sprintf(`{"link":%q}`, newVideoLink(0)))},
		{name: "30 refreshes of one account with all its videos", run: func(a *attack) {
			for range 30 {
				a.post("/refresh/accounts", fmt.Sprintf(`{"link":%q}`, a.accounts[0]))
			}
		}},
	}
}

// newVideoLink returns the link of a video that no test has tracked. It ignores its argument, the index of the link in a list.
func newVideoLink(int) string {
	id := strings.ReplaceAll(uuid.NewString(), "-", "")
	return "https://www.youtube.com/shorts/" + id[len(id)-10:] + "A"
}

// hostileCollectionCases returns test cases whose requests create, change or delete collections.
func hostileCollectionCases() []hostileCase {
	change := func(body string) func(a *attack) {
		return func(a *attack) { a.send(http.MethodPatch, "/collections/"+a.changeable, body) }
	}
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"m%04d":1`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	tags := func(n int) string {
		return jsonStrings(n, func(i int) string { return fmt.Sprintf("tag%04d%s", i, strings.Repeat("é", 90)) })
	}
	return []hostileCase{
		{name: "display settings of 2 MB", run: change(`{"display_settings":{"x":"` + strings.Repeat("x", 2_000_000) + `"}}`)},
		{name: "display settings of 1,500 members, 16 kB", run: change(`{"display_settings":` + members(1500) + `}`)},
		{name: "display settings nested 50 deep", run: change(`{"display_settings":{"x":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}}`)},
		{name: "a password of 1 MB", run: change(`{"password":"` + strings.Repeat("p", megabyte) + `"}`)},
		{name: "a password of 1,000 characters, hashed by argon2id", run: change(`{"access":"protected","password":"` + strings.Repeat("p", 1000) + `"}`)},
		{name: "100 hashtags of 97 wide characters", run: change(`{"hashtags":` + tags(100) + `}`)},
		{name: "1,000 hashtags", run: change(`{"hashtags":` + tags(1000) + `}`)},
		{name: "a collection moved below its own descendant, ten levels down", run: func(a *attack) {
			a.send(http.MethodPatch, "/collections/"+a.chain[0], fmt.Sprintf(`{"parent_id":%q}`, a.chain[len(a.chain)-1]))
		}},
		{name: "100 videos added to the deepest of ten nested collections", run: func(a *attack) {
			a.post("/collections/"+a.chain[len(a.chain)-1]+"/videos", `{"video_ids":`+jsonStrings(100, func(i int) string { return a.videos[len(a.videos)-1-i] })+`}`)
		}},
		{name: "100 unknown videos added to a collection", run: func(a *attack) {
			a.post("/collections/"+a.changeable+"/videos", `{"video_ids":`+jsonStrings(100, func(int) string { return uuid.NewString() })+`}`)
		}},
		{name: "a video put into 100 new collections", run: func(a *attack) {
			a.post("/videos", fmt.Sprintf(`{"link":%q,"collection_names":%s}`, newVideoLink(0), jsonStrings(100, func(int) string { return "Hostile " + uuid.NewString() })))
		}},
	}
}

// hostileRepetitionCases returns test cases that send the same request many times, or that send one request with many MCP calls or links.
func hostileRepetitionCases() []hostileCase {
	call := func(tool, arguments string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, uuid.NewString(), tool, arguments)
	}
	batch := func(n int, message func() string) string {
		messages := make([]string, n)
		for i := range messages {
			messages[i] = message()
		}
		return "[" + strings.Join(messages, ",") + "]"
	}
	return []hostileCase{
		{name: "40 conditional requests for 5,000 videos, nothing changed", prepare: rememberETag("/videos?limit=5000"), run: func(a *attack) { a.getWithETag("/videos?limit=5000", 40) }},
		{name: "40 conditional requests for 100 videos, nothing changed", prepare: rememberETag("/videos?limit=100"), run: func(a *attack) { a.getWithETag("/videos?limit=100", 40) }},
		{name: "40 conditional requests for all collections, nothing changed", prepare: rememberETag("/collections?order_by=video_count"), run: func(a *attack) { a.getWithETag("/collections?order_by=video_count", 40) }},
		{name: "500 links of 4,000 characters with an Idempotency-Key, sent twice", run: func(a *attack) {
			body := bulkBody(jsonStrings(500, func(i int) string { return "https://example.com/" + randomText(uint64(i), 4000) }))
			key := uuid.NewString()
			a.post(bulk, body, "Idempotency-Key", key)
			a.post(bulk, body, "Idempotency-Key", key)
		}},
		{name: "an MCP batch of ten lists of 5,000 videos", run: func(a *attack) {
			a.postMCP(batch(10, func() string { return call("list_videos", `{"limit":5000}`) }))
		}},
		{name: "an MCP batch of 1,000 small calls", run: func(a *attack) {
			a.postMCP(batch(1000, func() string { return call("authenticate", `{}`) }))
		}},
		{name: "MCP: 100 times tools/list", run: func(a *attack) {
			for i := range 100 {
				a.postMCP(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i))
			}
		}},
		{name: "MCP: a list of 100 videos with 400 labels each", run: func(a *attack) { a.postMCP(call("list_videos", `{"limit":100}`)) }},
		{name: "MCP: arguments nested 50,000 deep", run: func(a *attack) {
			a.postMCP(call("list_videos", `{"x":`+strings.Repeat("[", 50_000)+strings.Repeat("]", 50_000)+`}`))
		}},
		{name: "MCP: 650,000 empty objects as links, 2 MB", run: func(a *attack) { a.postMCP(call("track_videos", bulkBody(repeatedJSON("{}", 650_000)))) }},
		{name: "MCP: 100,000 unknown arguments", run: func(a *attack) {
			var b strings.Builder
			for i := range 100_000 {
				fmt.Fprintf(&b, `,"m%d":1`, i)
			}
			a.postMCP(call("list_videos", "{"+b.String()[1:]+"}"))
		}},
	}
}
