package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/outbound/outboundtest"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/server/shortlink"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// These limits apply to a single request. Some tests allow a multiple of a limit.
const (
	maxRequestCPU   = time.Second // maximum CPU time
	maxRequestBytes = 64 << 20    // maximum number of allocated bytes
)

// cost contains the CPU time and the allocated bytes of the process since its start.
type cost struct {
	cpu   time.Duration
	bytes uint64 // number of bytes allocated since the start of the process, including bytes that were freed
}

// measureCost returns the CPU time and the allocated bytes of the process since its start.
func measureCost(t *testing.T) cost {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return cost{time.Duration(used.Utime.Nano() + used.Stime.Nano()), memory.TotalAlloc}
}

// hostileRequest is a small request with which an attacker could try to make the server use much CPU time or memory.
type hostileRequest struct {
	method, target, body string
	header               []string
	status               int
	// fault is the first fault that the response must contain, as "POINTER CODE" or "NAME CODE". It is "" if no fault is expected.
	fault string
	// detail is a text that must occur in the response body.
	detail string
}

// hostileRequests returns a map from the description of each attack to its request. collectionPath is the path of an existing collection.
func hostileRequests(collectionPath string) map[string]hostileRequest {
	post := func(path, body, fault, detail string) hostileRequest {
		return hostileRequest{http.MethodPost, path, body, nil, http.StatusBadRequest, fault, detail}
	}
	get := func(query, fault, detail string) hostileRequest {
		return hostileRequest{http.MethodGet, "/videos?" + query, "", nil, http.StatusBadRequest, fault, detail}
	}
	patch := func(settings string, status int, fault, detail string) hostileRequest {
		return hostileRequest{http.MethodPatch, collectionPath, `{"display_settings":` + settings + `}`, nil, status, fault, detail}
	}
	withStatus := func(r hostileRequest, status int, header ...string) hostileRequest {
		r.status, r.header = status, header
		return r
	}
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	links := func(link string) string {
		return `{"links":[` + many(500, `"`+link+`",`) + `]}`
	}
	long := strings.Repeat("a", 500_000)
	shortenedName := "/" + strings.Repeat("a", 499-1) + "… "
	return map[string]hostileRequest{
		"many values in a member with a long name": post("/videos", `{"`+long+`":[`+strings.Repeat("1,", 100_000)+`1]}`, shortenedName+"max_length", "name"),
		"many empty objects instead of links":      post("/videos/bulk", `{"links":[`+strings.Repeat("{},", 650_000)+`{}]}`, "/links max_items", "at most 500 entries"),
		"many members":                             post("/videos", `{`+many(150_000, `"m%d":1,`)+`}`, " max_values", "the body must have at most 10000 values"),
		"many objects in display_settings":         patch(`{"x":[`+strings.Repeat(`{"a":{}},`, 200_000)+`{}]}`, http.StatusBadRequest, " max_values", "the body must have at most 10000 values"),
		"many duplicate members":                   post("/videos", `{`+strings.Repeat(`"a":1,`, 300_000)+`"a":1}`, "/a duplicate_member", ""),
		"many NULs":                                post("/videos/bulk", `{"links":[`+strings.Repeat(`"\u0000",`, 200_000)+`"a"]}`, "/links/0 encoding", "NUL"),
		"unpaired surrogates":                      post("/videos", `{"link":"`+strings.Repeat(`\ud800`, 300_000)+`"}`, "/link encoding", "surrogate"),
		"deep arrays":                              post("/videos", strings.Repeat("[", 1_000_000), strings.Repeat("/0", 65)+" syntax", "64 levels"),
		"deep objects":                             post("/videos", strings.Repeat(`{"a":`, 300_000), strings.Repeat("/a", 65)+" syntax", "64 levels"),
		"2 MiB of blanks":                          post("/videos", strings.Repeat(" ", 2<<20-2)+"{}", "/link required", ""),
		"a huge exponent":                          post("/videos", `{"link":1e1000000000}`, "/link type", "link must be a string, not 1e1000000000."),
		"a number of 2 million digits":             post("/videos", `{"link":`+strings.Repeat("9", 2_000_000)+`}`, "/link type", "link must be a string, not "+strings.Repeat("9", 60)),
		"a huge number in display_settings":        patch(`{"x":1e1000000}`, http.StatusNoContent, "", ""),
		"8,000 values in display_settings":         patch(`{"x":[`+strings.Repeat("0,", 8000)+`0]}`, http.StatusNoContent, "", ""),
		"wide characters":                          post("/videos", `{"link":"`+strings.Repeat("😀", 500_000)+`"}`, "/link max_length", "2048"),
		"escaped wide characters":                  post("/videos", `{"link":"`+strings.Repeat(`\ud83d\ude00`, 170_000)+`"}`, "/link max_length", "2048"),
		"9,000 entries that are not strings":       post("/videos/bulk", `{"links":[`+strings.Repeat("{},", 9_000)+`{}]}`, "/links max_items", "1000 faults"),
		"9,000 unknown members":                    post("/videos", `{`+many(9_000, `"m%d":1,`)+`}`, "/m0 unknown_member", "1000 faults"),
		"links of 2,000 characters":                withStatus(post("/videos/bulk", links("https://www.tiktok.com/@a/video/%d?"+strings.Repeat("a=1&", 490)), "", ""), http.StatusUnprocessableEntity),
		"links with many path segments": withStatus(post("/videos/bulk", links("https://www.tiktok.com/%d/"+strings.Repeat("a/", 950)+strings.Repeat(")", 40)), "", ""),
			http.StatusUnprocessableEntity),
		"links that contain other links": withStatus(post("/videos/bulk", links("https://l.facebook.com/l.php?n=%d"+strings.Repeat("&u=https%%3A%%2F%%2Fl.facebook.com%%2Fl.php%%3Fu%%3D", 30)), "", ""),
			http.StatusUnprocessableEntity),
		"links of 4,000 characters with an idempotency key": withStatus(post("/videos/bulk", links("https://www.tiktok.com/@%d"+strings.Repeat("é", 1_900)), "", ""),
			http.StatusUnprocessableEntity, "Idempotency-Key", "large"),
		"a compressed body": withStatus(post("/videos", long, "", "Content-Encoding"), http.StatusUnsupportedMediaType, "Content-Encoding", "gzip"),
		"a long media type": withStatus(post("/videos", "{}", "", "Content-Type"), http.StatusUnsupportedMediaType,
			"Content-Type", "text/plain"+many(5_000, ";a%d=1,")),
		"a body of more than 2 MiB": withStatus(post("/videos", `"`+strings.Repeat("a", 8<<20)+`"`, "", "2097152"), http.StatusRequestEntityTooLarge),

		"many parameters":                            get(many(100_000, "p%d=1&"), "p0 unknown_parameter", ""),
		"many parameters without a value":            get(strings.Repeat("a&", 500_000), "a unknown_parameter", ""),
		"120,000 times the same parameter":           get(strings.Repeat("limit=1&", 120_000), "limit repeated_parameter", ""),
		"many invalid escapes in the query":          get(strings.Repeat("%zz&", 250_000), `%zz syntax`, ""),
		"a long parameter":                           get("q="+strings.Repeat("a", 1_000_000), "q max_length", "200"),
		"an unknown long parameter":                  get(strings.Repeat("a", 1_000_000)+"=1", `"`+strings.Repeat("a", 99)+`…" unknown_parameter`, ""),
		"many search words":                          get("q="+strings.Repeat("a+", 99)+"a", "q max_words", "at most 20 words, not 100"),
		"search words with wide blanks between them": get("q="+strings.Repeat("a"+url.QueryEscape("\u2003"), 99), "q max_words", "at most 20 words, not 99"),
		"a regular expression as the search text":    withStatus(get("q="+url.QueryEscape(`^(a+)+$ .*[\w%_]{1,9999}`), "", ""), http.StatusOK),
		"many empty collections":                     get("collections="+strings.Repeat(",", 500_000), "collections max_items", "at most 100 entries, not 500001"),
		"many collections":                           get("collections="+many(100_000, "name-%d,"), "collections max_items", "at most 100 entries, not 100000"),
		"100 collections":                            withStatus(get("collections="+many(100, "name-%d,"), "", ""), http.StatusOK),
		"a long cursor":                              get("cursor="+strings.Repeat("A", 1_000_000), "cursor max_length", "2048"),
		"a cursor without content":                   get("cursor="+strings.Repeat("A", 2_048), "cursor invalid_cursor", ""),
		"a long path":                                {http.MethodGet, "/videos/" + long, "", nil, http.StatusBadRequest, "ad_id max_length", "2048"},
		"many ETags":                                 withStatus(get("limit=1", "", ""), http.StatusOK, "If-None-Match", strings.Repeat(`"a",`, 15_000)),
		"many content encodings":                     withStatus(get("limit=1", "", ""), http.StatusOK, "Accept-Encoding", strings.Repeat("gzip;q=0.5,", 5_000)),
		"a long path with escapes":                   {http.MethodGet, "/videos/" + strings.Repeat("%C3%A9", 10_000), "", nil, http.StatusBadRequest, "ad_id max_length", "2048"},
	}
}

// TestRequestCost_expensiveRequestsUseLittleTimeAndMemory sends the requests of hostileRequests. Each request must use less
// CPU time than maxRequestCPU and allocate less than maxRequestBytes.
//
//nolint:paralleltest // the test measures the time and memory of the whole process
func TestRequestCost_expensiveRequestsUseLittleTimeAndMemory(t *testing.T) {
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	made := decode[client.Collection](c.send(http.MethodPost, "/collections", map[string]any{"name": "Launch"}).requireStatus(http.StatusCreated))
	for name, hostile := range hostileRequests("/collections/" + made.ID.String()) {
		t.Run(name, func(t *testing.T) {
			target, err := url.Parse(hostile.target)
			require.NoError(t, err)
			r := httptest.NewRequestWithContext(t.Context(), hostile.method, "/", strings.NewReader(hostile.body))
			r.URL, r.RequestURI = target, hostile.target
			r.Header.Set("Authorization", "Bearer "+c.token)
			if hostile.body != "" {
				r.Header.Set("Content-Type", "application/json")
			}
			for i := 0; i+1 < len(hostile.header); i += 2 {
				r.Header.Set(hostile.header[i], hostile.header[i+1])
			}
			w := httptest.NewRecorder()
			w.Body = bytes.NewBuffer(make([]byte, 0, 8<<20)) // the buffer is allocated before the measurement, so that its memory is not measured
			before := measureCost(t)
			a.server.Handler().ServeHTTP(w, r)
			after := measureCost(t)
			cpu, allocated := after.cpu-before.cpu, after.bytes-before.bytes
			t.Logf("status %d, %v of CPU time, %.1f MiB allocated", w.Code, cpu.Round(time.Millisecond), float64(allocated)/(1<<20))
			got := response{t, w.Result(), w.Body.Bytes()}
			require.Less(t, w.Body.Len(), 8<<20)
			got.requireStatus(hostile.status)
			if hostile.fault != "" {
				p := got.requireProblem(hostile.status, server.CodeInvalidRequest)
				require.NotEmpty(t, p.Errors)
				require.Equal(t, hostile.fault, faultPlace(p.Errors[0])+" "+p.Errors[0].Code)
			}
			require.Contains(t, string(got.body), hostile.detail)
			require.Less(t, cpu, maxRequestCPU)
			require.Less(t, allocated, uint64(maxRequestBytes))
		})
	}
}

// faultPlace returns where a fault is: the JSON pointer into the body, or the name of the parameter if there is no pointer.
func faultPlace(f client.Fault) string {
	if f.Pointer != nil {
		return *f.Pointer
	}
	return *f.Name
}

// TestRequestCost_csvFileOfTheDashboardDoesNotReadLabels requests a CSV file of the dashboard. The file has no labels, so the server must not read them.
// As JSON, the labels of these videos would take 88 MB.
//
//nolint:paralleltest // the test measures the time and memory of the whole process
func TestRequestCost_csvFileOfTheDashboardDoesNotReadLabels(t *testing.T) {
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	createVideosWithManyLabels(t, c, 2000, 1000)
	addHashtagToAllCollections(t, c)
	v := c.newSignedInVisitor(t)
	collection := rowsIn(t, c.send(http.MethodGet, "/collections?limit=1", nil).requireStatus(http.StatusOK))[0].id()
	account := c.listVideos("limit=1").Data[0].LinkedAccountID.String()
	for path, rows := range map[string]int{
		"/video?csv=videos": 2000,
		"/collection/" + collection.String() + "?csv=videos": 2000,
		"/account/tiktok/" + account + "?csv=videos":         200,
		"/account?include_linked=true&csv=accounts":          10,
	} {
		before := measureCost(t)
		got := v.visit(path)
		after := measureCost(t)
		require.Len(t, got.table(), 1+rows, path)
		cpu, allocated := after.cpu-before.cpu, after.bytes-before.bytes
		t.Logf("%s: %v of processor time, %.1f MiB allocated", path, cpu.Round(time.Millisecond), float64(allocated)/(1<<20))
		require.Less(t, cpu, maxRequestCPU, path)
		require.Less(t, allocated, uint64(maxRequestBytes), path)
	}
}

// TestRequestCost_bulkRequestWithShortLinksReusesConnections sends a bulk request with 500 dead
// short links. The server must reuse connections and must not use too much memory.
//
//nolint:paralleltest // the test measures the time and memory of the whole process
func TestRequestCost_bulkRequestWithShortLinksReusesConnections(t *testing.T) {
	isPlatforms := func(host string) bool {
		_, ok := link.PlatformOfHost(host)
		return ok
	}
	internet := outboundtest.NewInternet(t, isPlatforms, http.NotFoundHandler())
	resolver, err := shortlink.New(shortlink.Options{Lookup: internet.Lookup, Dial: internet.Dial, RootCAs: internet.Authority.Roots})
	require.NoError(t, err)
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.Resolver = resolver })
	c := a.newCaller(t, store.TierPremium)
	links := make([]string, 500)
	for i := range links {
		links[i] = fmt.Sprintf("https://vm.tiktok.com/ZM%07d/", i)
	}
	before := measureCost(t)
	c.send(http.MethodPost, "/videos/bulk", map[string]any{"links": links}).requireStatus(http.StatusUnprocessableEntity)
	after := measureCost(t)
	t.Logf("%v of CPU time, %.1f MiB allocated, %d connections", after.cpu-before.cpu, float64(after.bytes-before.bytes)/(1<<20), internet.Connections())
	// The resolver sends two requests for each link, and closes the connection after the second
	// response. Without reuse, the resolver would need 1000 connections.
	require.Less(t, internet.Connections(), 600)
	require.Less(t, after.bytes-before.bytes, uint64(2*maxRequestBytes), "the server and the simulated platform must not allocate too much memory")
}

// TestRequestCost_limitsConcurrentShortLinkRequestsPerOrganisation requires that the server
// requests at most 16 short links of one organisation at the same time. Short links of another
// organisation must not wait.
func TestRequestCost_limitsConcurrentShortLinkRequestsPerOrganisation(t *testing.T) {
	t.Parallel()
	var (
		mu                  sync.Mutex
		concurrent, highest int
		full, gate          = make(chan struct{}), make(chan struct{})
		fill                = sync.OnceFunc(func() { close(full) })
	)
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "held") {
			http.Redirect(w, r, tiktokLink, http.StatusFound)
			return
		}
		mu.Lock()
		concurrent++
		if highest = max(highest, concurrent); concurrent == 16 {
			fill()
		}
		mu.Unlock()
		<-gate
		mu.Lock()
		concurrent--
		mu.Unlock()
		http.NotFound(w, r)
	}))
	t.Cleanup(platform.Close)
	resolver, err := shortlink.New(shortlink.Options{BaseURL: platform.URL, Timeout: time.Minute})
	require.NoError(t, err)
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.Resolver = resolver })
	hostile, otherCaller := a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)
	var requests sync.WaitGroup
	send := func(series string) {
		links := make([]string, 30)
		for i := range links {
			links[i] = fmt.Sprintf("https://vm.tiktok.com/held%s%d/", series, i)
		}
		requests.Go(func() {
			got, err := hostile.exchange(http.MethodPost, "/videos/bulk", map[string]any{"links": links})
			if err != nil || got.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("POST /videos/bulk with only dead short links must get 422, but got status %d and error %v", got.StatusCode, err)
			}
		})
	}
	send("a")
	<-full
	send("b")
	send("c")
	for i := range 5 {
		otherCaller.track(fmt.Sprintf("https://vm.tiktok.com/honest%d/", i))
	}
	close(gate)
	requests.Wait()
	require.Equal(t, 16, highest)
}
