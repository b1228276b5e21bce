package collector_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// These flags configure the test with random answers. `make hostile` sets them to generate 20,000 answers and to write
// docs/evidence/hostile-answers.md.
var (
	hostileCount = flag.Int("hostile.count", 400, "number of answers to generate")
	hostileSeed  = flag.Uint64("hostile.seed", 1, "seed of the random generator")
	hostileOut   = flag.String("hostile.out", "", "file to write the report to")
)

// answersPerRun is the number of randomly changed answers that are sent for the same three videos.
const answersPerRun = 25

// generator changes answers of the platform at random and records the changes.
type generator struct {
	testedSource testedSource
	rng          *rand.Rand
	mu           sync.Mutex
	changes      []string
}

func (g *generator) recordChange(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changes = append(g.changes, fmt.Sprintf(format, args...))
}

func (g *generator) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.changes, "; ")
}

// newTamperFunc returns a function that changes an answer at random, depending on the seed and on the answer's
// number n. It adds no wrong count that the collector could not detect.
func (g *generator) newTamperFunc(seed, n uint64) tamperFunc {
	return func(b *tampering, s *response) {
		g.rng = rand.New(rand.NewPCG(seed, n)) // all calls of one fetch get the same random numbers
		root := s.decodedBody()
		if root == nil || g.rng.IntN(10) == 0 {
			g.changeBytes(s)
			return
		}
		for range 1 + g.rng.IntN(3) {
			nodes := 0
			visitNodes(root, func(string, any) any { nodes++; return nil })
			at, seen := g.rng.IntN(nodes), 0
			single := false
			root = visitNodes(root, func(key string, v any) any {
				seen++
				if seen-1 != at {
					return nil
				}
				var with any
				with, single = g.replaceNode(key, v)
				return with
			})
			if root == (removedNode{}) {
				root = nil
			}
			if single {
				break
			}
		}
		s.encode(root)
		if g.rng.IntN(20) == 0 {
			s.status = []int{201, 204, 206, 301, 400, 404, 418, 500, 503}[g.rng.IntN(9)]
			g.recordChange("status %d", s.status)
		}
	}
}

// removedNode is a value that a callback of visitNodes returns to remove the visited JSON node.
type removedNode struct{}

// visitNodes calls visit for each node of a JSON value, inner nodes first. If visit returns a non-nil
// value, this value replaces the node.
func visitNodes(root any, visit func(key string, v any) any) any {
	var walk func(key string, v any) any
	walk = func(key string, v any) any {
		switch inner := v.(type) {
		case object:
			for _, name := range slices.Sorted(maps.Keys(inner)) {
				if with := walk(name, inner[name]); with == (removedNode{}) {
					delete(inner, name)
				} else {
					inner[name] = with
				}
			}
		case []any:
			kept := make([]any, 0, len(inner))
			for _, element := range inner {
				// An element of a list has the key of the list.
				if with := walk(key, element); with != (removedNode{}) {
					kept = append(kept, with)
				}
			}
			v = kept
		}
		if with := visit(key, v); with != nil {
			return with
		}
		return v
	}
	return walk("", root)
}

// jsonNull is what a callback of visitNodes returns to write a JSON null. (If the callback returns nil, the node is unchanged.)
var jsonNull = rawText("null")

// replaceNode returns a random replacement for a JSON node. If `single` is true, the caller must change no
// other node, because two changes together could make wrong counts plausible.
func (g *generator) replaceNode(key string, v any) (with any, single bool) {
	switch inner := v.(type) {
	case object:
		if with, single, ok := g.changeMembers(key, inner); ok {
			return with, single
		}
	case []any:
		if with, ok := g.changeElements(key, inner); ok {
			return with, false
		}
	}
	if g.rng.IntN(5) == 0 {
		g.recordChange("%s removed", key)
		return removedNode{}, false
	}
	value := g.invalidValue(key)
	g.recordChange("%s = %.40v", key, value)
	return value, false
}

// changeMembers renames or duplicates a random member of a JSON object, or swaps the values of two random members. `with` is
// the changed object. If `single` is true, the caller must change no other node, as for replaceNode. `ok` is false if changeMembers changed nothing.
func (g *generator) changeMembers(key string, o object) (with any, single, ok bool) {
	names := slices.Sorted(maps.Keys(o))
	if len(names) == 0 {
		return nil, false, false
	}
	one, other := names[g.rng.IntN(len(names))], names[g.rng.IntN(len(names))]
	switch g.rng.IntN(6) {
	case 0:
		renamed := []string{one + "2", strings.ToUpper(one), "__proto__", ""}[g.rng.IntN(4)]
		o[renamed] = o[one]
		if renamed != one {
			delete(o, one)
		}
		g.recordChange("member %s.%s renamed to %q", key, one, renamed)
		return o, false, true
	case 1:
		o[duplicateMark+one] = g.invalidValue(one)
		g.recordChange("member %s.%s duplicated", key, one)
		return o, false, true
	case 2:
		if !g.maySwap(one, other) || scalarText(o[one]) == "" || scalarText(o[other]) == "" {
			return nil, false, false
		}
		o[one], o[other] = o[other], o[one]
		g.recordChange("object %q: values of the members %q and %q swapped", key, one, other)
		return o, true, true
	}
	return nil, false, false
}

// maySwap returns true if the values of two JSON members may be swapped. The collector cannot detect a
// swap of likes and comments, for example.
func (g *generator) maySwap(first, second string) bool {
	views, counted := g.isCount("views", first) || g.isCount("views", second), 0
	for _, name := range []string{first, second} {
		for _, count := range countNames {
			if g.isCount(count, name) {
				counted++
				break
			}
		}
	}
	// Two counts may be swapped only if one of them is the views.
	return first != second && (counted == 0 || counted == 2 && views)
}

// isCount returns true if the tested source gives the count countName, such as "views", in the JSON member memberName.
func (g *generator) isCount(countName, memberName string) bool {
	return slices.ContainsFunc(g.testedSource.counts[countName], func(path string) bool { return path[strings.LastIndexByte(path, '.')+1:] == memberName })
}

// changeElements returns a changed copy of a JSON list: an element is repeated, removed or nested, or the order is reversed. It returns false if
// it changed nothing.
func (g *generator) changeElements(key string, list []any) (any, bool) {
	if len(list) == 0 {
		return nil, false
	}
	at := g.rng.IntN(len(list))
	switch g.rng.IntN(5) {
	case 0:
		g.recordChange("list element %s[%d] repeated", key, at)
		return append(slices.Clone(list), list[at]), true
	case 1:
		g.recordChange("list element %s[%d] removed", key, at)
		return slices.Delete(slices.Clone(list), at, at+1), true
	case 2:
		g.recordChange("list %s reversed", key)
		out := slices.Clone(list)
		slices.Reverse(out)
		return out, true
	case 3:
		g.recordChange("list element %s[%d] wrapped in a list", key, at)
		out := slices.Clone(list)
		out[at] = []any{list[at]}
		return out, true
	}
	return nil, false
}

// invalidValue returns a random invalid value for the JSON member with the given name.
func (g *generator) invalidValue(key string) any {
	values := []any{jsonNull, true, false, "", "x", "-7", " 7", "7.0", "1e3", "\x00", "٧", "javascript:alert(1)", "9223372036854775808", "PT-5S", "9999-99-99T00:00:00Z",
		-7, rawText("-0"), rawText("1.5"), rawText("1e3"), rawText("1e400"), rawText("9223372036854775807"), rawText("99999999999999999999"), rawText("NaN"), rawText("Infinity"), rawText("'7'"), rawText("007"),
		rawText(`"\ud800"`), rawText("\"\xff\""), object{}, []any{}, object{"n": 7}, []any{7, "7", nil}, strings.Repeat("long ", 20_000),
		rawText(strings.Repeat("[", 100) + strings.Repeat("]", 100)), rawText(strings.Repeat("[", 10_000)), "<script>", "../../etc/passwd", "http://169.254.169.254/"}
	// The collector cannot detect a wrong zero in likes, comments, shares or bookmarks.
	if g.isCount("views", key) || !g.isNameOfCount(key) {
		values = append(values, 0, "0")
	}
	return values[g.rng.IntN(len(values))]
}

func (g *generator) isNameOfCount(memberName string) bool {
	return slices.ContainsFunc(countNames, func(count string) bool { return g.isCount(count, memberName) })
}

// changeBytes changes the body of an answer at random: it cuts the body, inserts or changes one byte,
// or replaces the whole body.
func (g *generator) changeBytes(s *response) {
	if len(s.body) == 0 {
		return
	}
	at := g.rng.IntN(len(s.body))
	odd := []byte("\x00\xff\"'\\{}[],:- eE.\n<")
	switch c := odd[g.rng.IntN(len(odd))]; g.rng.IntN(4) {
	case 0:
		g.recordChange("body cut after %d of %d bytes", at, len(s.body))
		s.body = s.body[:at]
	case 1:
		g.recordChange("%q inserted at byte %d", c, at)
		s.body = slices.Concat(s.body[:at], []byte{c}, s.body[at:])
	case 2:
		// No digit is changed, because the result could be a plausible count.
		for s.body[at] >= '0' && s.body[at] <= '9' {
			at = (at + 1) % len(s.body)
		}
		g.recordChange("%q instead of %q at byte %d", c, s.body[at], at)
		s.body = slices.Concat(s.body[:at], []byte{c}, s.body[at+1:])
	default:
		whole := []string{"", "null", "[]", "{}", `"ok"`, htmlPage, jsonError, "\xef\xbb\xbf" + string(s.body), string(s.body) + string(s.body)}[g.rng.IntN(9)]
		g.recordChange("body replaced by %.30q", whole)
		s.body = []byte(whole)
	}
}

// tally counts the outcomes of fetches, separately for each source. It counts only fetches for which the test
// has changed the platform's answer about the video.
type tally struct {
	mu       sync.Mutex
	bySource map[string]map[outcome]int
}

func (c *tally) addOutcome(l testedSource, f outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bySource[l.name] == nil {
		c.bySource[l.name] = map[outcome]int{}
	}
	c.bySource[l.name][f]++
}

// TestHostile_randomlyChangedAnswersDoNotLeadToWrongCounts changes correct answers at random. Every
// stored count must be correct, and a single answer must not mark a video as gone.
func TestHostile_randomlyChangedAnswersDoNotLeadToWrongCounts(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	all := testedSources()
	c := &tally{bySource: map[string]map[outcome]int{}}
	t.Run("sources", func(t *testing.T) {
		t.Parallel()
		for i, l := range all {
			t.Run(l.name, func(t *testing.T) {
				t.Parallel()
				h := newHostileTest(t, "sqlite", l)
				for n := i; n < *hostileCount; n += len(all) * answersPerRun {
					h.fetchGeneratedAnswers(t, c, n, len(all))
				}
			})
		}
	})
	t.Cleanup(func() {
		if *hostileOut != "" && !t.Failed() {
			require.NoError(t, os.WriteFile(*hostileOut, []byte(c.reportText()), 0o644))
		}
	})
}

// fetchGeneratedAnswers repeatedly fetches three videos, at most answersPerRun times. Each time, the platform sends a different generated
// answer. The numbers of these answers are n, n+step, n+2*step and so on.
func (h *hostileTest) fetchGeneratedAnswers(t *testing.T, c *tally, n, step int) {
	t.Helper()
	r := h.beginScenario(t)
	defer r.endScenario()
	for i := 0; i < answersPerRun && n < *hostileCount; i, n = i+1, n+step {
		h.db.Clock.Advance(61 * time.Second) // the counts of the sandbox change every minute
		now := store.InstantOf(h.db.Clock.Now())
		h.db.Exec(t, "DELETE FROM source_pauses")
		h.db.Exec(t, "UPDATE fetch_targets SET next_at = ?, attempts = 0, state = 'active', suspect = NULL", now)
		g := &generator{testedSource: h.testedSource}
		h.logged.reset()
		r.tampering = &tampering{testedSource: h.testedSource, tamperedIDs: []string{r.videos[0].ID, r.videos[1].ID}, tamper: g.newTamperFunc(*hostileSeed, uint64(n))}
		h.active.Store(r.tampering)
		r.fetchDueTargets()
		what := fmt.Sprintf("%s, seed %d, answer %d: %s", h.testedSource.name, *hostileSeed, n, g)
		require.Positive(t, r.tampering.changedAnswers.Load(), what)
		r.requireTrueCountsWithMessage(what)
		for index := range r.videos {
			f := r.outcome(index)
			if index < 2 {
				c.addOutcome(h.testedSource, f)
			}
			require.Contains(t, []outcome{"ok", suspicious, notNewer, "temporary", "gone", "missing", "unconfirmed", "private", "restricted", "age_limited", "unsupported", "bad_request", "quota_spent", "auth_failed", "rate_limited"}, f, what)
			require.Contains(t, []string{"active", "parked"}, r.target(index).state, what)
		}
	}
	r.requireRecovery()
	h.dialer.requireOnlyAddress(t, h.url)
}

func (c *tally) reportText() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	columns, sums, total := []outcome{}, map[outcome]int{}, 0
	for _, of := range c.bySource {
		for f, n := range of {
			if sums[f] == 0 {
				columns = append(columns, f)
			}
			sums[f], total = sums[f]+n, total+n
		}
	}
	slices.SortFunc(columns, func(a, b outcome) int { return sums[b] - sums[a] })
	var out strings.Builder
	fmt.Fprintf(&out, `# Generated hostile answers

%[1]smake hostile%[1]s writes this page. The command changes correct answers of every platform at random. A changed answer has wrong types, impossible numbers, lists in another order, invalid bytes or
another status code, or its members are missing, repeated, renamed or swapped. Each changed answer passes over HTTP through the real source, collector and store.

The run requires the following of all videos:

- Every number in the database is a number that the platform had for this video at the time of the fetch.
- A single answer is never enough to mark a video as gone.
- Every video has correct numbers again after the platform answers correctly.

Seed %[2]d. Each of the %[3]d changed answers is sent for two targets: a video that already has numbers, and a new video. There were 0 crashes and 0 wrong numbers. The table counts the outcomes of the %[4]d targets:

`, "`", *hostileSeed, *hostileCount, total)
	out.WriteString("| Source |")
	for _, f := range columns {
		fmt.Fprintf(&out, " %s |", f)
	}
	out.WriteString("\n|---|" + strings.Repeat("--:|", len(columns)) + "\n")
	row := func(name string, of map[outcome]int) {
		fmt.Fprintf(&out, "| %s |", name)
		for _, f := range columns {
			fmt.Fprintf(&out, " %d |", of[f])
		}
		out.WriteString("\n")
	}
	for _, name := range slices.Sorted(maps.Keys(c.bySource)) {
		row(name, c.bySource[name])
	}
	row("all", sums)
	return out.String()
}
