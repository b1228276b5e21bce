package server_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// These environment variables configure TestContract_randomRequestsGetDeclaredResponses.
const (
	fuzzSeedVariable   = "REELTALLY_FUZZ_SEED"   // seed of the random numbers; default 1
	fuzzCountVariable  = "REELTALLY_FUZZ_COUNT"  // total number of requests; default 6,000
	fuzzReportVariable = "REELTALLY_FUZZ_REPORT" // path of the file for the report; by default, no report is written

	// requestsPerServer is the number of requests that are sent to one test server. More requests would create more items and make lists
	// slow.
	requestsPerServer = 2000
)

// TestContract_randomRequestsGetDeclaredResponses sends random valid requests and random requests with
// one fault. The server must accept the valid requests and refuse the others. The contract must
// declare every response.
func TestContract_randomRequestsGetDeclaredResponses(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	seed, total := readFuzzSetting(t, fuzzSeedVariable, 1), readFuzzSetting(t, fuzzCountVariable, 6000)
	t.Logf("seed %d, %d requests; set %s and %s to change the seed and the number of requests", seed, total, fuzzSeedVariable, fuzzCountVariable)
	tally := &fuzzTally{operations: map[string]*operationTally{}, total: total}
	t.Run("servers", func(t *testing.T) {
		for server := range (total + requestsPerServer - 1) / requestsPerServer {
			t.Run(strconv.Itoa(server), func(t *testing.T) {
				t.Parallel()
				newFuzz(t, tally, uint64(seed), uint64(server)).sendRequests(min(requestsPerServer, total-server*requestsPerServer))
			})
		}
	})
	if t.Failed() {
		return
	}
	if path := os.Getenv(fuzzReportVariable); path != "" {
		require.NoError(t, os.WriteFile(path, tally.report(seed), 0o644))
	}
	for _, op := range sharedContract().operations {
		require.Greater(t, tally.operations[op.id].requests, total/len(sharedContract().operations)*9/10, op.id)
	}
}

// readFuzzSetting returns the number in the environment variable with the given name. If the variable is not set, it returns fallback.
func readFuzzSetting(t *testing.T, name string, fallback int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// inProcess is a RoundTripper that calls the HTTP handler of a server directly, without a network.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	resp := w.Result()
	if resp.Request = r; r.Method == http.MethodHead {
		resp.Body = http.NoBody // a real HTTP server does not send the body of a response to HEAD
	}
	return resp, nil
}

// fuzz sends random requests to one test server and records the responses that are wrong.
type fuzz struct {
	*generator
	t             *testing.T
	transport     http.RoundTripper
	tally         *fuzzTally
	nextOperation int
	requestsLeft  int
	failures      []string
}

// newFuzz starts a test server and creates items, short links and organisations of all tiers. The same
// seed and serverNumber always give the same requests.
func newFuzz(t *testing.T, tally *fuzzTally, seed, serverNumber uint64) *fuzz {
	t.Helper()
	a := newApp(t, newSQLite(t))
	otherCaller := a.newCaller(t, store.TierPremium)
	a.createItems(3010, otherCaller)
	g := &generator{random: random{rand.New(rand.NewPCG(seed, serverNumber))}, now: a.Clock.Now(), otherItems: otherCaller.items,
		shortLinks: []string{"https://vm.tiktok.com/ZMabc1234/", "https://vm.tiktok.com/ZMdead123/", "https://www.instagram.com/share/reel/BAdead123"},
		wrongLinks: []string{"https://example.test/video/1", "ftp://www.tiktok.com/@a/video/7338812345678901234", "https://www.tiktok.com/", "https://www.youtube.com/watch?v=short", "no link", "http://", "//", "tiktok",
			"https://user@www.tiktok.com/@a/video/7338812345678901234", "https://www.tiktok.com:8443/@a/video/7338812345678901234", "javascript:alert(1)", "https://www.tiktok.com/@a/video/../x"}}
	g.missingItems = g.otherItems.unknownItems(3010, 4010)
	a.platforms.redirect(g.shortLinks[0], tiktokLink)
	for range 4 {
		g.callers = append(g.callers, a.newCaller(t, store.TierPremium))
	}
	a.createItems(5010, g.callers...)
	for i, tier := range []store.Tier{store.TierPremium, store.TierBasic, store.TierLimited, store.TierLimited} {
		require.NoError(t, a.SetTier(t.Context(), g.callers[i].org.ID, tier))
	}
	require.NoError(t, a.SetSubscription(t.Context(), g.callers[3].org.ID, store.SubscriptionNone))
	a.Clock.Advance(time.Second) // the server then reads the changed tiers and subscriptions, because the cached tokens have expired
	main := g.callers[0].org
	g.reader, g.writer = a.newToken(t, main, store.ScopeRead), a.newToken(t, main, store.ScopeWrite)
	return &fuzz{generator: g, t: t, nextOperation: int(serverNumber) * 7, transport: contractTransport{sharedContract(), inProcess{a.server.Handler()}}, tally: tally}
}

// sendRequests sends the given number of requests, about equally many to each operation of the contract. It fails the test if a response
// was wrong.
func (f *fuzz) sendRequests(requests int) {
	operations := sharedContract().operations
	for f.requestsLeft = requests; f.requestsLeft > 0; {
		for range operations {
			f.nextOperation++
			if op := operations[f.nextOperation%len(operations)]; f.requestsLeft > 0 {
				f.exchange(f.generateRequest(op))
			}
		}
	}
	require.Empty(f.t, f.failures, "%d responses violate the contract; the first of these responses are:\n%s", len(f.failures), strings.Join(f.failures[:min(5, len(f.failures))], "\n\n"))
}

// generateRequest returns a valid request or, with a probability of 50 percent, a request with one fault.
func (f *fuzz) generateRequest(op *contractOperation) *generatedRequest {
	if f.chance(50) {
		return f.generateValid(op)
	}
	return f.generateInvalid(op)
}

// exchange sends a request and checks the response. After a valid request, it sometimes sends a
// related second request.
func (f *fuzz) exchange(r *generatedRequest) {
	resp, body := f.send(r)
	if resp == nil || r.want != expectValid || resp.StatusCode != http.StatusOK || f.requestsLeft <= 0 {
		return
	}
	again := *r
	switch next := nextCursor.FindSubmatch(body); {
	case next != nil && f.chance(50) && r.op.Operation.Parameters.GetByInAndName("query", "cursor") != nil:
		again.target, again.query, again.headers = "", slices.Clone(r.query), map[string]string{}
		again.dropParameters("page", "cursor")
		again.setQueryValue("cursor", string(next[1]))
		switch f.IntN(4) {
		case 0:
			again.setQueryValue("cursor", changeOneCharacter(string(next[1])))
			f.send(again.setExpectedResponse(expect400, "the cursor was modified"))
		case 1:
			again.setQueryValue("order_direction", map[string]string{"asc": "desc", "desc": "asc", "": "asc"}[firstResult(r.queryValue("order_direction"))])
			f.send(again.setExpectedResponse(expect400, "the cursor was returned for the other order_direction"))
		default:
			f.send(again.setExpectedResponse(expectValid, "the cursor is valid"))
		}
	case resp.Header.Get("ETag") != "" && f.chance(20):
		again.headers = map[string]string{"If-None-Match": resp.Header.Get("ETag")}
		f.send(again.setExpectedStatus(http.StatusNotModified, "If-None-Match has the ETag of the previous response"))
	case r.op.Method == http.MethodGet && f.chance(10):
		again.method = http.MethodHead
		f.send(again.setExpectedStatus(http.StatusOK, "HEAD after a GET with status 200"))
	}
}

// firstResult returns its first parameter and ignores the second one. It makes the first result of generatedRequest.queryValue usable in an
// expression.
func firstResult(text string, _ bool) string { return text }

// send sends a request and checks the status. The response is nil if the request is not valid HTTP, or if the response violates the
// contract.
func (f *fuzz) send(r *generatedRequest) (*http.Response, []byte) {
	req := f.toHTTPRequest(r)
	if req == nil {
		return nil, nil
	}
	if len(r.raw) > 2<<20 {
		r.setExpectedStatus(http.StatusRequestEntityTooLarge, "%s, and the body is larger than 2 MiB", r.description)
	}
	f.requestsLeft--
	start := time.Now()
	resp, err := f.transport.RoundTrip(req)
	elapsed := time.Since(start)
	if err != nil {
		f.failures = append(f.failures, fmt.Sprintf("%s\n\t%v", r, err))
		return nil, nil
	}
	body, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	f.tally.countResponse(f.t, r.op.id, resp.StatusCode, elapsed)
	if fault := r.explainWrongStatus(resp); fault != "" {
		f.failures = append(f.failures, fmt.Sprintf("%s\n\t%s\n\t%d %s", r, fault, resp.StatusCode, bytes.TrimSpace(body[:min(len(body), 1000)])))
	}
	return resp, body
}

// explainWrongStatus returns the reason why the status of a response is wrong, or "" if the status is the expected one.
func (r *generatedRequest) explainWrongStatus(resp *http.Response) string {
	status := resp.StatusCode
	switch {
	case status >= http.StatusInternalServerError:
		return "the status is 5xx, but every request must get a status below 500"
	case r.want == expectValid && slices.Contains([]int{400, 401, 403, 405, 413, 415, 429}, status):
		return "the server refused a valid request"
	case r.want == expect400 && status != http.StatusBadRequest, r.want == expect4xx && (status < 400 || status == http.StatusTooManyRequests):
		return "an invalid request was not refused with the expected status"
	case r.want == expectStatus && status != r.status:
		return fmt.Sprintf("the status must be %d", r.status)
	case r.want == expectStatus && status == http.StatusMethodNotAllowed && !hasAllMethods(r.op, resp.Header.Get("Allow")):
		return "the header Allow has the wrong methods: " + resp.Header.Get("Allow")
	}
	return ""
}

// hasAllMethods returns true if the value of the header Allow contains all methods of the operation's path.
func hasAllMethods(op *contractOperation, allowHeader string) bool {
	listed := strings.Split(allowHeader, ", ")
	for method := range op.PathItem.Operations() {
		if !slices.Contains(listed, method) {
			return false
		}
	}
	return true
}

// operationTally contains the number of requests to one operation, the number of responses by status, and the sum of the response times.
type operationTally struct {
	requests int
	statuses map[int]int
	elapsed  time.Duration
}

// fuzzTally counts the requests to each operation, on all test servers. It is safe for concurrent use.
type fuzzTally struct {
	total int

	mu         sync.Mutex
	done       int
	operations map[string]*operationTally
}

// countResponse counts one response of the operation with the given id.
func (y *fuzzTally) countResponse(t *testing.T, operationID string, status int, responseTime time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	o := y.operations[operationID]
	if o == nil {
		o = &operationTally{statuses: map[int]int{}}
		y.operations[operationID] = o
	}
	o.requests++
	o.statuses[status]++
	o.elapsed += responseTime
	if y.done++; y.done%10_000 == 0 {
		t.Logf("sent %d of %d requests", y.done, y.total)
	}
}

// report returns the Markdown page docs/evidence/contract-fuzz.md for a run with the given seed.
func (y *fuzzTally) report(seed int) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Requests generated from the contract\n\n"+
		"`make fuzz-contract` writes this page. It generates requests from `openapi.yaml` and sends them to the server on SQLite.\n"+
		"Some requests are valid. Each of the other requests has one fault.\n"+
		"The run fails if a response is not declared in the contract, or if its status is 5xx.\n"+
		"The run also fails if a valid request is refused, or if a request with a fault is accepted.\n"+
		"The code of the run is in `server/contractfuzz_test.go`.\n\n"+
		"Contract %s, seed %d, %d requests.\n\n| Operation | Requests | Seconds | Responses |\n|---|--:|--:|---|\n", sharedContract().doc.Info.Version, seed, y.done)
	for _, id := range slices.Sorted(maps.Keys(y.operations)) {
		o := y.operations[id]
		var statuses []string
		for _, status := range slices.Sorted(maps.Keys(o.statuses)) {
			statuses = append(statuses, fmt.Sprintf("%d × %d", o.statuses[status], status))
		}
		fmt.Fprintf(&out, "| %s | %d | %.1f | %s |\n", id, o.requests, o.elapsed.Seconds(), strings.Join(statuses, ", "))
	}
	return out.Bytes()
}

// TestContract_everyTextFieldHasATestDataGenerator requires an entry in kindsByField for each text
// field. The entry says what kinds of text the tests can generate.
func TestContract_everyTextFieldHasATestDataGenerator(t *testing.T) {
	t.Parallel()
	for _, op := range sharedContract().operations {
		for _, s := range textFields(op) {
			require.NotNil(t, kindsOfField(op, s.name), "%s: add an entry for the %s field %s to kindsByField", op.id, s.location, s.name)
		}
	}
}

// textField is a path parameter, query parameter, header or body member whose value is a text.
type textField struct {
	location string // "path", "query", "header" or "body"
	name     string
	pointer  []string // member names from the root of the body to the field; nil for a parameter or header
	schema   *openapi3.Schema
}

// textFields returns the text fields of an operation, including arrays of texts. It omits dates and enumerations.
func textFields(op *contractOperation) []textField {
	var out []textField
	add := func(s textField) {
		if s.schema.Type.Is("array") {
			s.schema = s.schema.Items.Value
		}
		if s.schema.Type.Is("string") && len(s.schema.Enum) == 0 && !strings.HasPrefix(s.schema.Format, "date") {
			out = append(out, s)
		}
	}
	for _, in := range []string{"path", "query", "header"} {
		for _, p := range op.parameters(in) {
			add(textField{location: in, name: p.Name, schema: p.Schema.Value})
		}
	}
	var walk func(s *openapi3.Schema, at []string)
	walk = func(s *openapi3.Schema, at []string) {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			member := s.Properties[name].Value
			pointer := append(slices.Clone(at), name)
			add(textField{location: "body", name: name, pointer: pointer, schema: member})
			walk(member, pointer)
		}
	}
	if s := op.bodySchema(); s != nil {
		walk(s, nil)
	}
	return out
}
