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

// What may be set for a run of TestContract_holdsForRandomRequests, and what it is otherwise.
const (
	fuzzSeed     = "REELTALLY_FUZZ_SEED"   // a number; 1
	fuzzRequests = "REELTALLY_FUZZ_COUNT"  // of requests in all; 6,000
	fuzzReport   = "REELTALLY_FUZZ_REPORT" // the file that the result is written to; none

	// worldRequests is how many requests one world sees: every request may make something, and lists grow.
	worldRequests = 2000
)

// TestContract_holdsForRandomRequests sends requests that are generated from the contract: valid ones, and ones that are wrong in one way.
// Every answer has to be one that the contract declares, and never a 5xx; what is valid is never refused as wrong, and what
// is wrong is never taken. The same seed draws the same requests.
func TestContract_holdsForRandomRequests(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	seed, total := fuzzSetting(t, fuzzSeed, 1), fuzzSetting(t, fuzzRequests, 6000)
	t.Logf("seed %d, %d requests: set %s and %s for others", seed, total, fuzzSeed, fuzzRequests)
	tally := &fuzzTally{operations: map[string]*operationTally{}, total: total}
	t.Run("worlds", func(t *testing.T) {
		for world := range (total + worldRequests - 1) / worldRequests {
			t.Run(strconv.Itoa(world), func(t *testing.T) {
				t.Parallel()
				newFuzz(t, tally, uint64(seed), uint64(world)).run(min(worldRequests, total-world*worldRequests))
			})
		}
	})
	if t.Failed() {
		return
	}
	if path := os.Getenv(fuzzReport); path != "" {
		require.NoError(t, os.WriteFile(path, tally.report(seed), 0o644))
	}
	for _, op := range theContract().operations {
		require.Greater(t, tally.operations[op.id].requests, total/len(theContract().operations)*9/10, op.id)
	}
}

func fuzzSetting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// inProcess hands requests to a server without a network.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	resp := w.Result()
	if resp.Request = r; r.Method == http.MethodHead {
		resp.Body = http.NoBody // net/http leaves it out
	}
	return resp, nil
}

// fuzz is a world and the generator of what is sent to it.
type fuzz struct {
	*generator
	t        *testing.T
	wire     http.RoundTripper
	tally    *fuzzTally
	turn     int
	left     int
	failures []string
}

// newFuzz makes a world: two organisations with things, callers of all tiers, and short links.
func newFuzz(t *testing.T, tally *fuzzTally, seed, world uint64) *fuzz {
	t.Helper()
	a := newApp(t, newSQLite(t))
	theirs := a.newCaller(t, store.TierPremium)
	a.stock(3010, theirs)
	g := &generator{draw: draw{rand.New(rand.NewPCG(seed, world))}, now: a.Clock.Now(), theirs: theirs.own,
		shorts: []string{"https://vm.tiktok.com/ZMabc1234/", "https://vm.tiktok.com/ZMdead123/", "https://www.instagram.com/share/reel/BAdead123"},
		wrongLinks: []string{"https://example.test/video/1", "ftp://www.tiktok.com/@a/video/7338812345678901234", "https://www.tiktok.com/", "https://www.youtube.com/watch?v=short", "no link", "http://", "//", "tiktok",
			"https://user@www.tiktok.com/@a/video/7338812345678901234", "https://www.tiktok.com:8443/@a/video/7338812345678901234", "javascript:alert(1)", "https://www.tiktok.com/@a/video/../x"}}
	g.nobodys = g.theirs.twin(3010, 4010)
	a.platforms.redirect(g.shorts[0], tiktokLink)
	for range 4 {
		g.callers = append(g.callers, a.newCaller(t, store.TierPremium))
	}
	a.stock(5010, g.callers...)
	for i, tier := range []store.Tier{store.TierPremium, store.TierBasic, store.TierLimited, store.TierLimited} {
		require.NoError(t, a.SetTier(t.Context(), g.callers[i].org.ID, tier))
	}
	require.NoError(t, a.SetSubscription(t.Context(), g.callers[3].org.ID, store.SubscriptionNone))
	a.Clock.Advance(time.Second) // until which it is remembered who a token is
	main := g.callers[0].org
	g.reader, g.writer = a.newToken(t, main, store.ScopeRead), a.newToken(t, main, store.ScopeWrite)
	return &fuzz{generator: g, t: t, turn: int(world) * 7, wire: checking{theContract(), inProcess{a.server.Handler()}}, tally: tally}
}

// run sends requests to every operation in turn.
func (f *fuzz) run(requests int) {
	operations := theContract().operations
	for f.left = requests; f.left > 0; {
		for range operations {
			f.turn++
			if op := operations[f.turn%len(operations)]; f.left > 0 {
				f.exchange(f.draws(op))
			}
		}
	}
	require.Empty(f.t, f.failures, "%d requests were not answered as the contract has it; the first:\n%s", len(f.failures), strings.Join(f.failures[:min(5, len(f.failures))], "\n\n"))
}

func (f *fuzz) draws(op *contractOperation) *generated {
	if f.chance(50) {
		return f.valid(op)
	}
	return f.wrong(op)
}

// exchange sends a request and judges the answer, and asks again what an answer invites to.
func (f *fuzz) exchange(r *generated) {
	resp, body := f.send(r)
	if resp == nil || r.want != accepted || resp.StatusCode != http.StatusOK || f.left <= 0 {
		return
	}
	again := *r
	switch next := nextCursor.FindSubmatch(body); {
	case next != nil && f.chance(50) && r.op.Operation.Parameters.GetByInAndName("query", "cursor") != nil:
		again.target, again.query, again.headers = "", slices.Clone(r.query), map[string]string{}
		again.drop("page", "cursor")
		again.set("cursor", string(next[1]))
		switch f.IntN(4) {
		case 0:
			again.set("cursor", changed(string(next[1])))
			f.send(again.expects(refused, "the cursor was changed"))
		case 1:
			again.set("order_direction", map[string]string{"asc": "desc", "desc": "asc", "": "asc"}[first(r.get("order_direction"))])
			f.send(again.expects(refused, "the cursor is of the other direction"))
		default:
			f.send(again.expects(accepted, "the cursor is genuine"))
		}
	case resp.Header.Get("ETag") != "" && f.chance(20):
		again.headers = map[string]string{"If-None-Match": resp.Header.Get("ETag")}
		f.send(again.answers(http.StatusNotModified, "If-None-Match has the tag of the answer before"))
	case r.op.Method == http.MethodGet && f.chance(10):
		again.method = http.MethodHead
		f.send(again.answers(http.StatusOK, "HEAD of a GET that was answered"))
	}
}

func first(text string, _ bool) string { return text }

// send sends a request; nil when it could reach no server.
func (f *fuzz) send(r *generated) (*http.Response, []byte) {
	req := f.request(r)
	if req == nil {
		return nil, nil
	}
	if len(r.raw) > 2<<20 {
		r.answers(http.StatusRequestEntityTooLarge, "%s, in more than 2 MiB", r.why)
	}
	f.left--
	began := time.Now()
	resp, err := f.wire.RoundTrip(req)
	elapsed := time.Since(began)
	if err != nil {
		f.failures = append(f.failures, fmt.Sprintf("%s\n\t%v", r, err))
		return nil, nil
	}
	body, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	f.tally.add(f.t, r.op.id, resp.StatusCode, elapsed)
	if what := r.misjudged(resp); what != "" {
		f.failures = append(f.failures, fmt.Sprintf("%s\n\t%s\n\t%d %s", r, what, resp.StatusCode, bytes.TrimSpace(body[:min(len(body), 1000)])))
	}
	return resp, body
}

// misjudged says what is wrong with the status of an answer; "" when nothing is.
func (r *generated) misjudged(resp *http.Response) string {
	status := resp.StatusCode
	switch {
	case status >= http.StatusInternalServerError:
		return "the server failed"
	case r.want == accepted && slices.Contains([]int{400, 401, 403, 405, 413, 415, 429}, status):
		return "a valid request was refused"
	case r.want == refused && status != http.StatusBadRequest, r.want == impossible && (status < 400 || status == http.StatusTooManyRequests):
		return "a wrong request was not refused as such"
	case r.want == exactly && status != r.status:
		return fmt.Sprintf("%d was due", r.status)
	case r.want == exactly && status == http.StatusMethodNotAllowed && !allows(r.op, resp.Header.Get("Allow")):
		return "Allow is " + resp.Header.Get("Allow")
	}
	return ""
}

// allows says whether an Allow field names the methods of an operation's path.
func allows(op *contractOperation, field string) bool {
	listed := strings.Split(field, ", ")
	for method := range op.PathItem.Operations() {
		if !slices.Contains(listed, method) {
			return false
		}
	}
	return true
}

// operationTally is what became of the requests to an operation.
type operationTally struct {
	requests int
	statuses map[int]int
	elapsed  time.Duration
}

type fuzzTally struct {
	total int

	mu         sync.Mutex
	done       int
	operations map[string]*operationTally
}

func (y *fuzzTally) add(t *testing.T, operation string, status int, elapsed time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	o := y.operations[operation]
	if o == nil {
		o = &operationTally{statuses: map[int]int{}}
		y.operations[operation] = o
	}
	o.requests++
	o.statuses[status]++
	o.elapsed += elapsed
	if y.done++; y.done%10_000 == 0 {
		t.Logf("%d of %d requests", y.done, y.total)
	}
}

// report is docs/evidence/contract-fuzz.md.
func (y *fuzzTally) report(seed int) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Requests generated from the contract\n\n"+
		"`make fuzz-contract` writes this page. It sends requests that are made from `openapi.yaml`, valid ones and ones that are wrong in one\n"+
		"way, to the server on SQLite, and fails unless each answer is one that the contract declares, none is a 5xx, nothing valid is\n"+
		"refused as wrong and nothing wrong is taken. `server/contractfuzz_test.go` says the rest.\n\n"+
		"Contract %s, seed %d, %d requests.\n\n| Operation | Requests | Seconds | Answers |\n|---|--:|--:|---|\n", theContract().doc.Info.Version, seed, y.done)
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

// TestContract_everyParameterHasAGenerator fails for a text in a request of which nobody has said what belongs there, so that no new operation goes
// without the tests that generate requests.
func TestContract_everyParameterHasAGenerator(t *testing.T) {
	t.Parallel()
	for _, op := range theContract().operations {
		for _, s := range textSlots(op) {
			require.NotNil(t, meaningsOf(op, s.name), "%s: %s %s: say in naturalMeanings what belongs there", op.id, s.in, s.name)
		}
	}
}

// slot is a place in a request that takes a text.
type slot struct {
	in, name string // of a member of the body, its own name
	pointer  []string
	schema   *openapi3.Schema
}

// textSlots are all places of an operation that take a text which can name something: no dates, no enumerations.
func textSlots(op *contractOperation) []slot {
	var out []slot
	add := func(s slot) {
		if s.schema.Type.Is("array") {
			s.schema = s.schema.Items.Value
		}
		if s.schema.Type.Is("string") && len(s.schema.Enum) == 0 && !strings.HasPrefix(s.schema.Format, "date") {
			out = append(out, s)
		}
	}
	for _, in := range []string{"path", "query", "header"} {
		for _, p := range op.parameters(in) {
			add(slot{in: in, name: p.Name, schema: p.Schema.Value})
		}
	}
	var walk func(s *openapi3.Schema, at []string)
	walk = func(s *openapi3.Schema, at []string) {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			member := s.Properties[name].Value
			pointer := append(slices.Clone(at), name)
			add(slot{in: "body", name: name, pointer: pointer, schema: member})
			walk(member, pointer)
		}
	}
	if s := op.bodySchema(); s != nil {
		walk(s, nil)
	}
	return out
}
