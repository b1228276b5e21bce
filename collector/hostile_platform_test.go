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

// hostile is a collector with one source, a store, and a platform that stands before the sandbox: it takes what the sandbox says,
// which is true, and bends it. Everything is real, the calls over loopback included; the clock alone is moved by hand.
type hostile struct {
	*world
	lane      lane
	fast      *store.Store // without the rules for statements, which would take most of the time
	collector *collector.Collector
	source    source.Source
	said      *said
	bending   atomic.Pointer[bending]

	client  *fetch.Client
	timeout time.Duration // of a call
	dialed  *dials
	next    int // the first account whose videos were not used yet
}

// bending is what the platform does to the answers of a scenario.
type bending struct {
	one     sync.Mutex // answers are bent one at a time
	lane    lane
	victims []string // the ids whose numbers it is after
	bend    bend
	entries []string // the ids of the videos that the accounts among them list
	side    bool     // it is after the calls besides: tokens, names
	list    bool     // it is after the pages of lists alone
	bent    atomic.Int64

	mu   sync.Mutex
	lies map[string][]int64 // by id: numbers that are believed, since nobody can tell them from true ones
}

// lie notes a number that nobody can tell from a true one.
func (b *bending) lie(id string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lies == nil {
		b.lies = map[string][]int64{}
	}
	b.lies[id] = append(b.lies[id], n)
}

func (b *bending) liesOf(id string) []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.lies[id])
}

// sent is an answer on its way.
type sent struct {
	status int
	header http.Header
	body   []byte
	// write, when set, writes the answer in place of status, header and body.
	write func(http.ResponseWriter, *http.Request)
}

// bend changes an answer.
type bend func(b *bending, s *sent)

// newHostile starts a platform that says the truth, and a collector that asks it. Calls end after timeout.
func newHostile(t *testing.T, engine string, l lane) *hostile {
	t.Helper()
	db := storetest.New(t, engine)
	h := &hostile{world: &world{t: t, db: db, sandbox: sandbox.New(sandbox.Options{Now: db.Clock.Now}), log: &logBuffer{}}, lane: l, said: &said{}, next: 1}
	h.said.reset()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.url = server.URL
	var err error
	h.fast, err = store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.fast.Close()) })
	h.restart(10 * time.Second)
	return h
}

// restart makes a new collector and source, which remember nothing.
func (h *hostile) restart(timeout time.Duration) {
	h.t.Helper()
	h.dialed, h.timeout = &dials{}, timeout
	transport := &http.Transport{DialContext: h.dialed.dial, MaxIdleConnsPerHost: 4}
	h.client = fetch.New(fetch.Options{Timeout: timeout, Transport: transport})
	h.t.Cleanup(transport.CloseIdleConnections)
	h.source = h.lane.source(h)
	var err error
	h.collector, err = collector.New(collector.Options{Store: h.fast, Sources: []source.Source{h.source}, Now: h.db.Clock.Now, Logger: slog.New(h.said)})
	require.NoError(h.t, err)
	require.NoError(h.t, h.collector.Start(h.t.Context()))
}

// ServeHTTP answers as the sandbox does, bent when the request concerns a victim.
func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	asked := r.Clone(r.Context())
	asked.Body = io.NopCloser(bytes.NewReader(body))
	asked.Header.Del("Accept-Encoding") // the truth comes plain
	truth := httptest.NewRecorder()
	h.sandbox.Handler().ServeHTTP(truth, asked)
	s := &sent{status: truth.Code, header: truth.Header(), body: truth.Body.Bytes()}
	s.header.Del("Content-Length")
	if b := h.bending.Load(); b != nil && b.concerned(r.URL.String()+string(body), s.body) != b.side {
		b.bent.Add(1)
		b.one.Lock()
		b.bend(b, s)
		b.one.Unlock()
	}
	if s.write != nil {
		s.write(w, r)
		return
	}
	maps.Copy(w.Header(), s.header)
	w.WriteHeader(s.status)
	_, _ = w.Write(s.body) // whoever hung up needs no answer
}

// concerned says whether a request or its true answer names a victim, or one of its videos.
func (b *bending) concerned(request string, truth []byte) bool {
	listed := slices.ContainsFunc(b.entries, func(id string) bool { return bytes.Contains(truth, []byte(id)) })
	if listed || b.list {
		return listed
	}
	return slices.ContainsFunc(b.victims, func(id string) bool {
		return strings.Contains(request, id) || bytes.Contains(truth, []byte(id))
	})
}

// dials are the addresses that a client connected to.
type dials struct {
	mu sync.Mutex
	to map[string]int
}

func (d *dials) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	if d.to == nil {
		d.to = map[string]int{}
	}
	d.to[address]++
	d.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// stayed checks that nobody but the platform was connected to.
func (d *dials) stayed(t require.TestingT, platform string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	require.Equal(t, []string{strings.TrimPrefix(platform, "http://")}, slices.Collect(maps.Keys(d.to)), "somebody else was connected to")
}

// said is a log that keeps what the collector made of each answer.
type said struct {
	mu      sync.Mutex
	classes map[string]string // by external id, of results without a number
	// failures are the classes of calls that failed as a whole, by what was said of them; of the last one by "".
	failures map[string]string
	text     strings.Builder
}

func (s *said) Enabled(context.Context, slog.Level) bool { return true }
func (s *said) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s *said) WithGroup(string) slog.Handler            { return s }

func (s *said) Handle(_ context.Context, r slog.Record) error {
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
	case "no number written":
		s.classes[attrs["id"]] = attrs["class"]
	case "source paused", "call failed for its targets":
		s.failures[attrs["detail"]], s.failures[""] = attrs["class"], attrs["class"]
	}
	return nil
}

func (s *said) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.classes, s.failures = map[string]string{}, map[string]string{}
	s.text.Reset()
}

// of is what was said of a video, and of the call whose detail its target has.
func (s *said) of(id, detail string) (class, failure string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.classes[id], s.failures[detail]
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// decodedBody is an answer's JSON, its numbers as they are spelled; nil when it is none.
func (s *sent) decoded() any {
	decoder := json.NewDecoder(bytes.NewReader(s.body))
	decoder.UseNumber()
	var root any
	if decoder.Decode(&root) != nil {
		return nil
	}
	return root
}

// The marks by which text that no encoder would write comes into an answer: see raw and twice.
const (
	rawMark   = "reeltally-raw:"
	twiceMark = "reeltally-twice:"
)

// raw stands for bytes that are to be written as they are.
func raw(text string) string { return rawMark + strconv.QuoteToASCII(text) }

// encode writes a decoded answer back.
func (s *sent) encode(root any) {
	text, err := json.Marshal(root)
	if err != nil {
		panic(err) // made of strings, numbers, lists and maps alone
	}
	for {
		at := bytes.Index(text, []byte(`"`+rawMark))
		if at < 0 {
			break
		}
		var marked, quoted string
		decoder := json.NewDecoder(bytes.NewReader(text[at:]))
		if decoder.Decode(&marked) != nil {
			panic("a mark that cannot be read")
		}
		quoted, err = strconv.Unquote(strings.TrimPrefix(marked, rawMark))
		if err != nil {
			panic(err)
		}
		text = slices.Concat(text[:at], []byte(quoted), text[at+int(decoder.InputOffset()):])
	}
	s.body = bytes.ReplaceAll(text, []byte(twiceMark), nil)
}

// object is a decoded JSON object.
type object = map[string]any

// items calls visit for the object of each victim in an answer, the outermost that bears its id, and writes the answer back.
func (b *bending) items(s *sent, visit func(id string, item object)) {
	root := s.decoded()
	b.walk(root, visit)
	s.encode(root)
}

func (b *bending) walk(v any, visit func(id string, item object)) {
	switch v := v.(type) {
	case object:
		if id := b.names(v); id != "" {
			visit(id, v)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b.walk(v[name], visit)
		}
	case []any:
		for _, element := range v {
			b.walk(element, visit)
		}
	}
}

// names is the victim whose id an object bears, "" for none.
func (b *bending) names(o object) string {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if id := scalarText(o[name]); id != "" && slices.Contains(b.victims, id) {
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

// lists calls change for each list that holds the object of a victim, and puts what it returns in its place.
func (b *bending) lists(s *sent, change func(list []any, isVictim func(any) bool) []any) {
	isVictim := func(v any) bool {
		found := false
		b.walk(v, func(string, object) { found = true })
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
			if slices.ContainsFunc(v, isVictim) {
				return change(v, isVictim)
			}
		}
		return v
	}
	s.encode(walk(s.decoded()))
}

// counted calls change with the place of each count of a victim's item, by the store's name for it.
func (b *bending) counted(s *sent, change func(id, name string, at object, key string)) {
	b.items(s, func(id string, item object) {
		for _, name := range slices.Sorted(maps.Keys(b.lane.counts)) {
			for _, path := range b.lane.counts[name] {
				at, key, ok := place(item, path)
				if ok {
					change(id, name, at, key)
				}
			}
		}
	})
}

// place finds the object and the key that a path ends at; false when there is none.
func place(item object, path string) (object, string, bool) {
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
