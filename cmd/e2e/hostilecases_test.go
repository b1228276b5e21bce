package e2e_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// hostileCase is a test case that tries to overload the server with one request, or with several requests one after the other.
type hostileCase struct {
	name string
	// large is true if a response can have 5,000 rows. The requests may then exceed the limits of CPU time and memory.
	large bool
	// streamed is true if the server writes the response as a stream. The server must then not exceed
	// the limit of memory (maxMemory), even if the response is large.
	streamed bool
	prepare  func(a *attack) // function that sends requests before the measurement begins; nil if none are needed
	run      func(a *attack)
}

const (
	megabyte = 1 << 20
	bulk     = "/videos/bulk"
)

// bulkBody returns the body of a request for POST /videos/bulk. linksJSON is a JSON array of links.
func bulkBody(linksJSON string) string { return `{"links":` + linksJSON + `}` }

// runPost returns a function for hostileCase.run. The function sends a POST request with the given body to path.
func runPost(path, body string) func(a *attack) {
	return func(a *attack) { a.post(path, body) }
}

// runGet returns a function for hostileCase.run. The function sends a GET request to path. The strings in headers are alternately the name
// and the value of a header.
func runGet(path string, headers ...string) func(a *attack) {
	return func(a *attack) { a.get(path, headers...) }
}

// hostileCases returns all test cases that try to overload the server, in the order of the table in docs/evidence/hostile-requests.md.
func hostileCases() []hostileCase {
	var all []hostileCase
	for _, group := range [][]hostileCase{hostileBodyCases(), hostileConnectionCases(), hostileQueryCases(), hostileListCases(), hostileBulkCases(), hostileCollectionCases(), hostileRepetitionCases()} {
		all = append(all, group...)
	}
	return all
}

// hostileBodyCases returns test cases whose request bodies are expensive to parse.
func hostileBodyCases() []hostileCase {
	longName := `{"` + strings.Repeat("a", 500_000) + `":` + repeatedJSON("1", 100_000) + `}`
	long := strings.Repeat("n", 30_000)
	names := func(n int, name func(i int) string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%s":1`, name(i))
		}
		return "{" + strings.TrimPrefix(b.String(), ",") + "}"
	}
	return []hostileCase{
		{name: "a member name of 500 kB with 100,000 entries", run: runPost(bulk, longName)},
		{name: "a member name of 500 kB with 100,000 entries, and the caller hangs up at once", run: func(a *attack) {
			a.sendAndHangUp(50*time.Millisecond, a.formatRequestHead(http.MethodPost, bulk, "Content-Type", "application/json", "Content-Length", fmt.Sprint(len(longName))), longName)
		}},
		{name: "650,000 empty objects as links, 2 MB", run: runPost(bulk, bulkBody(repeatedJSON("{}", 650_000)))},
		{name: "1,000,000 numbers as links, 2 MB", run: runPost(bulk, bulkBody(repeatedJSON("1", 1_000_000)))},
		{name: "400,000 empty strings as links, 1.2 MB", run: runPost(bulk, bulkBody(repeatedJSON(`""`, 400_000)))},
		{name: "arrays 100,000 deep", run: runPost(bulk, strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000))},
		{name: "60 nested objects, each in a member with a name of 30 kB, 1.8 MB", run: runPost(bulk, strings.Repeat(`{"`+long+`":`, 60)+repeatedJSON("1", 50_000)+strings.Repeat("}", 60))},
		{name: "100,000 different members", run: runPost(bulk, names(100_000, func(i int) string { return fmt.Sprintf("m%d", i) }))},
		{name: "an object that has the same member 100,000 times", run: runPost(bulk, names(100_000, func(int) string { return "links" }))},
		{name: "the number 1e1000000", run: runPost(bulk, bulkBody("[1e1000000]"))},
		{name: "a number of 2,000,000 digits", run: runPost(bulk, bulkBody("["+strings.Repeat("9", 2_000_000)+"]"))},
		{name: "a string of 2 MB that does not end", run: runPost(bulk, `{"links":["`+strings.Repeat("x", 2_000_000))},
		{name: "a link of 2 MB", run: runPost("/videos", `{"link":"https://www.tiktok.com/@`+strings.Repeat("x", 2_000_000)+`"}`)},
		{name: "a link of 330,000 escapes", run: runPost("/videos", `{"link":"`+strings.Repeat(`\u0061`, 330_000)+`"}`)},
		{name: "2 MB of blanks before the body", run: runPost("/videos", strings.Repeat(" ", 2_000_000)+"{}")},
		{name: "2 MB that are not UTF-8", run: runPost("/videos", strings.Repeat("\xff", 2_000_000))},
		{name: "text of wide, combining and right-to-left characters, 2 MB", run: runPost("/videos", `{"link":"`+strings.Repeat("𒐫e\u0301\u0302\u0303\u202e\u05d0👨‍👩‍👧‍👦", 40_000)+`"}`)},
	}
}

// hostileConnectionCases returns test cases with unusual connections, headers and transfers of the body, such as a body of one byte a second.
func hostileConnectionCases() []hostileCase {
	slowHead := func(a *attack) string {
		return a.formatRequestHead(http.MethodPost, bulk, "Content-Type", "application/json", "Content-Length", "2000000")
	}
	return []hostileCase{
		{name: "a body of 64 MB", run: func(a *attack) {
			a.sendAndCount(a.newRequest(http.MethodPost, bulk, io.LimitReader(zeros{}, 64*megabyte)))
		}},
		{name: "a body of 2 MB in chunks of ten bytes", run: func(a *attack) {
			chunk := "a\r\n" + `"aaaaaaa",` + "\r\n"
			a.sendInParts(1, func(write func(string) error) error {
				if err := write(a.formatRequestHead(http.MethodPost, bulk, "Content-Type", "application/json", "Transfer-Encoding", "chunked") + "a\r\n" + `{"links":[` + "\r\n"); err != nil {
					return err
				}
				for range 200 {
					if err := write(strings.Repeat(chunk, 1000)); err != nil {
						return err
					}
				}
				return write("4\r\n" + `""]}` + "\r\n0\r\n\r\n")
			})
		}},
		{name: "a body that ends half-way", run: func(a *attack) { a.sendAndHangUp(200*time.Millisecond, slowHead(a), strings.Repeat(" ", megabyte)) }},
		{name: "a body of one byte a second, for 5 seconds", run: func(a *attack) {
			conn := a.dial()
			_, err := io.WriteString(conn, slowHead(a))
			require.NoError(a, err)
			for range 5 {
				pause(a.T, time.Second)
				if _, err := io.WriteString(conn, " "); err != nil {
					break // the server has closed the connection
				}
			}
			_ = conn.Close()
			a.responses["hung up"]++
		}},
		{name: "a gzip bomb: 1 MB for 1 GB", run: func(a *attack) {
			a.post(bulk, gzipBomb(), "Content-Encoding", "gzip")
		}},
		{name: "1,000 headers", run: func(a *attack) {
			r := a.newRequest(http.MethodGet, "/videos?limit=1", nil)
			for i := range 1000 {
				r.Header.Set(fmt.Sprintf("X-Hostile-%d", i), "a")
			}
			a.sendAndCount(r)
		}},
		{name: "a header of 1 MiB", run: runGet("/videos?limit=1", "X-Hostile", strings.Repeat("a", megabyte))},
		{name: "a token of 60 kB", run: runGet("/videos?limit=1", "Authorization", "Bearer rt_"+strings.Repeat("a", 60_000))},
		{name: "10,000 tags in If-None-Match, 60 kB", run: runGet("/videos?limit=100", "If-None-Match", strings.Repeat(`"aa", `, 10_000)+`"b"`)},
		{name: "a list of videos, with 10,000 encodings in Accept-Encoding", run: runGet("/videos?limit=100", "Accept-Encoding", "zstd;q=1, gzip;q=1, br, "+strings.Repeat("x;q=0,", 10_000)+"*")},
		{name: "a list compressed by zstd", run: runGet("/videos?limit=100", "Accept-Encoding", "zstd")},
		{name: "a Range header of 1,000 ranges", run: runGet("/videos?limit=100", "Range", "bytes="+strings.TrimSuffix(strings.Repeat("0-1,", 1000), ","))},
		{name: "5,000 addresses in X-Forwarded-For", run: runGet("/videos?limit=1", "X-Forwarded-For", strings.TrimSuffix(strings.Repeat("10.0.0.1,", 5000), ","))},
		{name: "25 requests for a list, sent at once on one connection", run: func(a *attack) {
			a.sendInParts(25, func(write func(string) error) error {
				return write(strings.Repeat(a.formatRequestHead(http.MethodGet, "/videos?limit=10"), 25))
			})
		}},
		{name: "a path of 60 kB", run: runGet("/videos/" + strings.Repeat("a", 60_000))},
		{name: "a link of 2,000 wide characters in the path", run: runGet("/videos/" + url.PathEscape("https://www.tiktok.com/@"+strings.Repeat("é", 2000)))},
		{name: "100 small paths that do not exist", run: func(a *attack) {
			for i := range 100 {
				a.get(fmt.Sprintf("/hostile/%d", i))
			}
		}},
		{name: "1,000 unknown tokens with the right checksum", run: func(a *attack) {
			for i := range 1000 {
				a.get("/videos?limit=1", "Authorization", "Bearer "+unknownToken(a.T, i))
			}
		}},
		{name: "1,000 times the same unknown token", run: func(a *attack) {
			for range 1000 {
				a.get("/videos?limit=1", "Authorization", "Bearer "+unknownToken(a.T, 0))
			}
		}},
	}
}

// hostileQueryCases returns test cases with query strings that are expensive to parse, and searches that are expensive for the database.
func hostileQueryCases() []hostileCase {
	search := func(q string) func(a *attack) { return runGet("/videos?limit=100&q=" + url.QueryEscape(q)) }
	return []hostileCase{
		{name: "100,000 query parameters", run: runGet("/videos?" + strings.Repeat("a=1&", 100_000))},
		{name: "15,000 query parameters, 60 kB", run: runGet("/videos?" + strings.Repeat("a=1&", 15_000))},
		{name: "the query parameter q 15,000 times", run: runGet("/videos?" + strings.Repeat("q=1&", 15_000))},
		{name: "page 10^18", run: runGet("/videos?page=1000000000000000000")},
		{name: "page 2,147,483,647 of a list, 5,000 videos a page", run: runGet("/videos?limit=5000&page=2147483647")},
		{name: "limit 10^9", run: runGet("/videos?limit=1000000000")},
		{name: "q=(a+)+$", run: search("(a+)+$")},
		{name: "search text (q) of 100 words", run: search(strings.TrimSpace(strings.Repeat("a ", 100)))},
		{name: "search text (q) of 100 wildcards of SQL", run: search(strings.Repeat("%_", 100))},
		{name: "search text (q) of 60 kB", run: search(strings.Repeat("q", 60_000))},
		{name: "search text (q) of wide, combining and right-to-left characters", run: search(strings.Repeat("𒐫e\u0301\u202e\u05d0", 40))},
		{name: "hashtag of 100 wide characters", run: runGet("/videos?limit=100&hashtag=" + url.QueryEscape(strings.Repeat("𒐫", 100)))},
		{name: "a filter of 100 collections that each contain every account", run: func(a *attack) {
			a.get("/videos?limit=100&collections=" + strings.Join(a.wide[:100], ","))
		}},
		{name: "1,000 names of collections as filter", run: runGet("/videos?limit=100&collections=" + strings.TrimSuffix(strings.Repeat("name,", 1000), ","))},
		{name: "every filter at once", run: func(a *attack) {
			a.get("/videos?limit=100&include_removed=true&order_by=latest_engagement&order_direction=asc&q=a+e+o&has_metrics=true&ad_info_shop=false" +
				"&uploaded_at_start=1970-01-01&uploaded_at_end=2999-12-31&latest_updated_at_start=1970-01-01T00:00:00Z&latest_updated_at_end=2999-12-31T00:00:00Z" +
				"&collections=" + strings.Join(a.wide[:50], ","))
		}},
		{name: "the cursor of another list", run: func(a *attack) { a.get("/videos?limit=100&cursor=" + a.cursor) }},
		{name: "a cursor that was altered", run: func(a *attack) {
			a.get("/collections?paginated=true&limit=1&cursor=" + a.cursor[:len(a.cursor)-1] + "-")
		}},
		{name: "a cursor of 60 kB", run: runGet("/videos?limit=100&cursor=" + strings.Repeat("A", 60_000))},
	}
}

// hostileListCases returns test cases whose requests read much data.
func hostileListCases() []hostileCase {
	list := func(path func(a *attack) string) func(a *attack) { return func(a *attack) { a.get(path(a)) } }
	return []hostileCase{
		{name: "100 videos with 400 labels each", run: runGet("/videos?limit=100")},
		{name: "5,000 videos with 400 labels each", large: true, run: runGet("/videos?limit=5000")},
		{name: "5,000 videos with 400 labels each as CSV", large: true, streamed: true, run: runGet("/videos?limit=5000", "Accept", "text/csv")},
		{name: "5,000 videos with 400 labels each as XLSX", large: true, streamed: true,
			run: runGet("/videos?limit=5000", "Accept", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")},
		{name: "HEAD of 5,000 videos with 400 labels each", large: true, run: func(a *attack) { a.sendAndCount(a.newRequest(http.MethodHead, "/videos?limit=5000", nil)) }},
		{name: "5,000 videos with 400 labels each, and the caller hangs up after 200 ms", large: true, run: func(a *attack) {
			a.sendAndHangUp(200*time.Millisecond, a.formatRequestHead(http.MethodGet, "/videos?limit=5000"), "")
		}},
		{name: "100 videos by created_at", run: runGet("/videos?limit=100&order_by=created_at")},
		{name: "all 410 collections with counts, by video_count", run: runGet("/collections?order_by=video_count")},
		{name: "all collections below the root of a tree of ten levels, by account_count", run: func(a *attack) {
			a.get("/collections?include_children=true&order_by=account_count&parent_id=" + a.chain[0])
		}},
		{name: "the root of a tree of ten collections with 1,000 videos each, with counts", run: list(func(a *attack) string { return "/collections/" + a.chain[0] + "?include_counts=true" })},
		{name: "100 videos from the deepest of ten nested collections", run: list(func(a *attack) string {
			return "/collections/" + a.chain[len(a.chain)-1] + "/videos?limit=100&order_by=latest_engagement"
		})},
		{name: "all 1,000 videos from the deepest of ten nested collections", large: true, run: list(func(a *attack) string { return "/collections/" + a.chain[len(a.chain)-1] + "/videos?limit=5000" })},
		{name: "100 accounts with 400 labels each", run: runGet("/accounts?limit=100&include_linked=true")},
		{name: "all accounts with 400 labels each", large: true, run: runGet("/accounts?limit=5000&include_linked=true")},
		{name: "all accounts of a collection", run: list(func(a *attack) string { return "/collections/" + a.wide[0] + "/accounts?limit=100" })},
		{name: "the history of a video, 730 days", run: list(func(a *attack) string { return "/videos/" + a.videos[0] + "/history?" + a.period + "&include=quality" })},
		{name: "the history of an account, 730 days", run: list(func(a *attack) string { return "/accounts/" + a.accounts[0] + "/history?" + a.period })},
		{name: "the history of the organisation, 730 days", run: list(func(a *attack) string { return "/organisation/history?" + a.period })},
		{name: "the history of a collection with all videos, 31 days", run: list(func(a *attack) string { return "/collections/" + a.wide[0] + "/history" })},
		{name: "the statistics of a collection with all videos, 730 days", run: list(func(a *attack) string { return "/collections/" + a.wide[0] + "/statistics?" + a.period })},
		{name: "a report of a collection with all videos", run: func(a *attack) { a.post("/collections/"+a.wide[0]+"/reports", "{}") }},
		{name: "a history from 1970 to 2999", run: runGet("/organisation/history?start_date=1970-01-01&end_date=2999-12-31")},
	}
}

// zeros is an endless reader of the digit 0.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// gzipBomb returns 1 MB of gzip data that expands to 1 GB of spaces. It is a concatenation of gzip members, which the format allows.
func gzipBomb() string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	blanks := bytes.Repeat([]byte(" "), megabyte)
	for range 32 {
		_, _ = w.Write(blanks) // a write to memory cannot fail
	}
	_ = w.Close()
	return strings.Repeat(b.String(), 32)
}
