package collector_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// hostileTest has a collector with one source and an HTTP server. The server passes on the sandbox's
// answers and can change them.
type hostileTest struct {
	*testSystem
	testedSource testedSource
	fast         *store.Store // the collector's store; it has no SQL checks, because they would take most of the time
	collector    *collector.Collector
	source       source.Source
	logged       *outcomeLog
	active       atomic.Pointer[tampering]

	client  *fetch.Client
	timeout time.Duration // timeout of a call to the platform
	dialer  *dialRecorder
	next    int // number of the first sandbox account that no scenario has used
}

// tampering describes which answers of the platform are changed in a scenario, and how.
type tampering struct {
	answerMu       sync.Mutex // locked while one answer is changed
	testedSource   testedSource
	tamperedIDs    []string // ids of videos, or ids and handles of accounts; answers about them are changed, unless otherCalls or listsOnly is true
	tamper         tamperFunc
	listedIDs      []string // ids of the videos in the lists of the tampered accounts
	otherCalls     bool     // if true, only other answers are changed, for example answers with an access token, and answers about tamperedIDs stay unchanged
	listsOnly      bool     // if true, only answers that contain an id in listedIDs are changed
	changedAnswers atomic.Int64

	forgedMu sync.Mutex
	// forged maps a video's id to wrong counts that the collector cannot detect. The entry "unfetched"
	// has wrong follower counts of a new account.
	forged map[string][]int64
}

// addForgedCount records a wrong count that the platform returned for a video or account and that the collector cannot detect.
func (b *tampering) addForgedCount(id string, n int64) {
	b.forgedMu.Lock()
	defer b.forgedMu.Unlock()
	if b.forged == nil {
		b.forged = map[string][]int64{}
	}
	b.forged[id] = append(b.forged[id], n)
}

func (b *tampering) forgedCounts(id string) []int64 {
	b.forgedMu.Lock()
	defer b.forgedMu.Unlock()
	return slices.Clone(b.forged[id])
}

// response is an answer of the platform that can be changed before it is sent.
type response struct {
	status int
	header http.Header
	body   []byte
	// If write is not nil, it is called to send the answer, and the other fields are ignored.
	write func(http.ResponseWriter, *http.Request)
}

// tamperFunc changes s, an answer of the platform. b contains the ids of the affected videos or accounts.
type tamperFunc func(b *tampering, s *response)

// newHostileTest starts a platform that answers correctly at first, and a collector that fetches from it.
func newHostileTest(t *testing.T, engine string, l testedSource) *hostileTest {
	t.Helper()
	db := storetest.New(t, engine)
	h := &hostileTest{testSystem: &testSystem{t: t, db: db, sandbox: sandbox.New(sandbox.Options{Now: db.Clock.Now}), log: &storetest.Log{}}, testedSource: l, logged: &outcomeLog{}, next: 1}
	h.logged.reset()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.url = server.URL
	var err error
	h.fast, err = store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.fast.Close()) })
	h.restartCollector(10 * time.Second)
	return h
}

// restartCollector replaces the collector, its source and its HTTP client by new ones, which have no state in memory.
func (h *hostileTest) restartCollector(timeout time.Duration) {
	h.t.Helper()
	h.dialer, h.timeout = &dialRecorder{}, timeout
	transport := &http.Transport{DialContext: h.dialer.dial, MaxIdleConnsPerHost: 4}
	h.client = fetch.New(fetch.Options{Timeout: timeout, Transport: transport})
	h.t.Cleanup(transport.CloseIdleConnections)
	h.source = h.testedSource.source(h)
	var err error
	h.collector, err = collector.New(collector.Options{Store: h.fast, Sources: []source.Source{h.source}, Now: h.db.Clock.Now, Logger: slog.New(h.logged)})
	require.NoError(h.t, err)
	require.NoError(h.t, h.collector.Start(h.t.Context()))
}

// ServeHTTP answers like the sandbox. It changes the answer if the running scenario applies to the request.
func (h *hostileTest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	asked := r.Clone(r.Context())
	asked.Body = io.NopCloser(bytes.NewReader(body))
	asked.Header.Del("Accept-Encoding") // the sandbox must not compress the answer, so that the test can change the text of the answer
	correct := httptest.NewRecorder()
	h.sandbox.Handler().ServeHTTP(correct, asked)
	s := &response{status: correct.Code, header: correct.Header(), body: correct.Body.Bytes()}
	s.header.Del("Content-Length")
	if b := h.active.Load(); b != nil && b.appliesTo(r.URL.String()+string(body), s.body) != b.otherCalls {
		b.changedAnswers.Add(1)
		b.answerMu.Lock()
		b.tamper(b, s)
		b.answerMu.Unlock()
	}
	if s.write != nil {
		s.write(w, r)
		return
	}
	maps.Copy(w.Header(), s.header)
	w.WriteHeader(s.status)
	_, _ = w.Write(s.body) // the client may have closed the connection
}

// appliesTo returns true if the answer contains one of listedIDs. If listsOnly is false, it also
// searches the request and the answer for tamperedIDs.
func (b *tampering) appliesTo(request string, correct []byte) bool {
	listed := slices.ContainsFunc(b.listedIDs, func(id string) bool { return bytes.Contains(correct, []byte(id)) })
	if listed || b.listsOnly {
		return listed
	}
	return slices.ContainsFunc(b.tamperedIDs, func(id string) bool {
		return strings.Contains(request, id) || bytes.Contains(correct, []byte(id))
	})
}

// dialRecorder opens the connections of an HTTP client and counts them by address.
type dialRecorder struct {
	mu sync.Mutex
	to map[string]int
}

func (d *dialRecorder) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	if d.to == nil {
		d.to = map[string]int{}
	}
	d.to[address]++
	d.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// requireOnlyAddress checks that the client connected only to the address of the platform.
func (d *dialRecorder) requireOnlyAddress(t require.TestingT, platform string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	require.Equal(t, []string{strings.TrimPrefix(platform, "http://")}, slices.Collect(maps.Keys(d.to)), "the collector must connect only to the address of the platform")
}

// outcomeLog is a log handler that records the classes of results and of failed calls from the collector's log messages.
type outcomeLog struct {
	mu      sync.Mutex
	classes map[string]string // maps the external id of a target to the class in its last log message "no numbers stored for the target"
	// failures maps the Detail of each failure to its class. The key "" has the class of the last failure.
	failures map[string]string
	text     strings.Builder
}

func (s *outcomeLog) Enabled(context.Context, slog.Level) bool { return true }
func (s *outcomeLog) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s *outcomeLog) WithGroup(string) slog.Handler            { return s }

func (s *outcomeLog) Handle(_ context.Context, r slog.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	attrs := map[string]string{}
	s.text.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value.String()
		s.text.WriteString(" " + a.Key + "=" + a.Value.String())
		return true
	})
	s.text.WriteString("\n")
	switch r.Message {
	case "no numbers stored for the target":
		s.classes[attrs["id"]] = attrs["class"]
	case "source paused", "call failed, source not paused":
		s.failures[attrs["detail"]], s.failures[""] = attrs["class"], attrs["class"]
	}
	return nil
}

func (s *outcomeLog) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.classes, s.failures = map[string]string{}, map[string]string{}
	s.text.Reset()
}

// findClasses returns the recorded class of the target with the given id. It also returns the recorded class of
// a failed call whose failure has the given Detail.
func (s *outcomeLog) findClasses(id, detail string) (class, failure string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.classes[id], s.failures[detail]
}

func (s *outcomeLog) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// decodedBody returns the decoded JSON of the body, with numbers as json.Number. It returns nil if the body is not JSON.
func (s *response) decodedBody() any {
	decoder := json.NewDecoder(bytes.NewReader(s.body))
	decoder.UseNumber()
	var root any
	if decoder.Decode(&root) != nil {
		return nil
	}
	return root
}

// response.encode handles strings with these prefixes in a special way.
const (
	rawMark       = "reeltally-raw:"   // encode writes the rest of the value without quotes
	duplicateMark = "reeltally-twice:" // encode removes this mark, so that an object can contain the same name twice
)

// rawText marks the text, so that response.encode writes it without quotes. A test can thus send a number that is too large, such as 1e308.
func rawText(text string) string { return rawMark + strconv.QuoteToASCII(text) }

// encode sets the body of the answer to the JSON text of a value.
func (s *response) encode(root any) {
	text, err := json.Marshal(root)
	if err != nil {
		panic(err) // the encoding cannot fail, because the value contains only JSON values
	}
	for {
		at := bytes.Index(text, []byte(`"`+rawMark))
		if at < 0 {
			break
		}
		var marked, quoted string
		decoder := json.NewDecoder(bytes.NewReader(text[at:]))
		if decoder.Decode(&marked) != nil {
			panic("invalid mark")
		}
		quoted, err = strconv.Unquote(strings.TrimPrefix(marked, rawMark))
		if err != nil {
			panic(err)
		}
		text = slices.Concat(text[:at], []byte(quoted), text[at+int(decoder.InputOffset()):])
	}
	s.body = bytes.ReplaceAll(text, []byte(duplicateMark), nil)
}

type object = map[string]any

// changeEachItem decodes an answer and calls changeItem for each outermost JSON object with an id in tampering.tamperedIDs. It then encodes
// the changed answer.
func (b *tampering) changeEachItem(s *response, changeItem func(id string, item object)) {
	root := s.decodedBody()
	b.walkObjects(root, changeItem)
	s.encode(root)
}

func (b *tampering) walkObjects(v any, visit func(id string, item object)) {
	switch v := v.(type) {
	case object:
		if id := b.findTamperedID(v); id != "" {
			visit(id, v)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b.walkObjects(v[name], visit)
		}
	case []any:
		for _, element := range v {
			b.walkObjects(element, visit)
		}
	}
}

// findTamperedID returns the value of a member of the JSON object if this value is in tampering.tamperedIDs. If no member has such a value, it
// returns "".
func (b *tampering) findTamperedID(o object) string {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if id := scalarText(o[name]); id != "" && slices.Contains(b.tamperedIDs, id) {
			return id
		}
	}
	return ""
}

func scalarText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// changeEachList calls change for each JSON list that contains a tampered object (see findTamperedID).
// The result of change replaces the list.
func (b *tampering) changeEachList(s *response, change func(list []any, isTampered func(any) bool) []any) {
	isTampered := func(v any) bool {
		found := false
		b.walkObjects(v, func(string, object) { found = true })
		return found
	}
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case object:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				v[name] = walk(v[name])
			}
		case []any:
			if slices.ContainsFunc(v, isTampered) {
				return change(v, isTampered)
			}
		}
		return v
	}
	s.encode(walk(s.decodedBody()))
}

// changeEachCount calls change for each count of the tampered videos in an answer. The count is the
// member `key` of the JSON object `parent`.
func (b *tampering) changeEachCount(s *response, change func(id, name string, parent object, key string)) {
	b.changeEachItem(s, func(id string, item object) {
		for _, name := range slices.Sorted(maps.Keys(b.testedSource.counts)) {
			for _, path := range b.testedSource.counts[name] {
				parent, key, ok := findMember(item, path)
				if ok {
					change(id, name, parent, key)
				}
			}
		}
	})
}

// findMember follows a path such as "statistics.likes" in a JSON object. It returns the innermost object and key, or false if the path does
// not exist.
func findMember(item object, path string) (object, string, bool) {
	parts := strings.Split(path, ".")
	for _, part := range parts[:len(parts)-1] {
		inner, ok := item[part].(object)
		if !ok {
			return nil, "", false
		}
		item = inner
	}
	key := parts[len(parts)-1]
	_, ok := item[key]
	return item, key, ok
}
