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

// `make hostile` generates 20,000 answers and writes docs/evidence/hostile-answers.md.
var (
	hostileCount = flag.Int("hostile.count", 400, "answers that are generated")
	hostileSeed  = flag.Uint64("hostile.seed", 1, "where they begin")
	hostileOut   = flag.String("hostile.out", "", "file for the report")
)

// ofEach is how many generated answers each three videos get.
const answersPerRun = 25

// generated is what a random answer was made of, and how.
type generator struct {
	lane    lane
	rng     *rand.Rand
	mu      sync.Mutex
	changes []string
}

func (g *generator) note(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changes = append(g.changes, fmt.Sprintf(format, args...))
}

func (g *generator) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.changes, "; ")
}

// bend changes an answer in one to three places. What comes of it is never a number that could be true: such a lie nobody can
// tell.
func (g *generator) tamper(seed, n uint64) tamperFunc {
	return func(b *tampering, s *response) {
		g.rng = rand.New(rand.NewPCG(seed, n)) // the same for each call of a turn
		root := s.decoded()
		if root == nil || g.rng.IntN(10) == 0 {
			g.bytes(s)
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
				with, single = g.replace(key, v)
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
			g.note("status %d", s.status)
		}
	}
}

// gone, returned for a node, takes it out.
type removedNode struct{}

// visitNodes calls change for every node, the innermost first; nil leaves it. The key of a list's element is that of the list.
func visitNodes(root any, change func(key string, v any) any) any {
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
				if with := walk(key, element); with != (removedNode{}) {
					kept = append(kept, with)
				}
			}
			v = kept
		}
		if with := change(key, v); with != nil {
			return with
		}
		return v
	}
	return walk("", root)
}

// null stands for JSON's null where nil means that nothing is changed.
var null = raw("null")

// replace changes one node; single says that nothing else may be changed with it.
func (g *generator) replace(key string, v any) (with any, single bool) {
	switch inner := v.(type) {
	case object:
		if with, single, ok := g.members(key, inner); ok {
			return with, single
		}
	case []any:
		if with, ok := g.elements(key, inner); ok {
			return with, false
		}
	}
	if g.rng.IntN(5) == 0 {
		g.note("%s left out", key)
		return removedNode{}, false
	}
	value := g.value(key)
	g.note("%s = %.40v", key, value)
	return value, false
}

// members changes the members of an object.
func (g *generator) members(key string, o object) (with any, single, ok bool) {
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
		g.note("%s.%s is called %q", key, one, renamed)
		return o, false, true
	case 1:
		o[duplicateMark+one] = g.value(one)
		g.note("%s.%s stands there twice", key, one)
		return o, false, true
	case 2:
		if !g.swappable(one, other) || scalarText(o[one]) == "" || scalarText(o[other]) == "" {
			return nil, false, false
		}
		o[one], o[other] = o[other], o[one]
		g.note("%s.%s and %s have changed places", key, one, other)
		return o, true, true
	}
	return nil, false, false
}

// exchangeable says whether two scalars may change places: neither is a count, or one of them are the views, since two other counts
// that have changed places look like any two.
func (g *generator) swappable(one, other string) bool {
	views, counted := g.isCount("views", one) || g.isCount("views", other), 0
	for _, name := range []string{one, other} {
		for _, count := range countNames {
			if g.isCount(count, name) {
				counted++
				break
			}
		}
	}
	return one != other && (counted == 0 || counted == 2 && views)
}

// isCount says whether a member of that name holds the count in the lane's items.
func (g *generator) isCount(count, member string) bool {
	return slices.ContainsFunc(g.lane.counts[count], func(path string) bool { return path[strings.LastIndexByte(path, '.')+1:] == member })
}

// elements changes a list.
func (g *generator) elements(key string, list []any) (any, bool) {
	if len(list) == 0 {
		return nil, false
	}
	at := g.rng.IntN(len(list))
	switch g.rng.IntN(5) {
	case 0:
		g.note("%s[%d] comes twice", key, at)
		return append(slices.Clone(list), list[at]), true
	case 1:
		g.note("%s[%d] is left out", key, at)
		return slices.Delete(slices.Clone(list), at, at+1), true
	case 2:
		g.note("%s in another order", key)
		out := slices.Clone(list)
		slices.Reverse(out)
		return out, true
	case 3:
		g.note("%s[%d] within a list", key, at)
		out := slices.Clone(list)
		out[at] = []any{list[at]}
		return out, true
	}
	return nil, false
}

// value is one that no member should have. A zero is no such value where nobody can tell it from a true one: of all counts but the views.
func (g *generator) value(key string) any {
	values := []any{null, true, false, "", "x", "-7", " 7", "7.0", "1e3", "\x00", "٧", "javascript:alert(1)", "9223372036854775808", "PT-5S", "9999-99-99T00:00:00Z",
		-7, raw("-0"), raw("1.5"), raw("1e3"), raw("1e400"), raw("9223372036854775807"), raw("99999999999999999999"), raw("NaN"), raw("Infinity"), raw("'7'"), raw("007"),
		raw(`"\ud800"`), raw("\"\xff\""), object{}, []any{}, object{"n": 7}, []any{7, "7", nil}, strings.Repeat("long ", 20_000),
		raw(strings.Repeat("[", 100) + strings.Repeat("]", 100)), raw(strings.Repeat("[", 10_000)), "<script>", "../../etc/passwd", "http://169.254.169.254/"}
	if g.isCount("views", key) || !g.isAnyCount(key) {
		values = append(values, 0, "0")
	}
	return values[g.rng.IntN(len(values))]
}

func (g *generator) isAnyCount(member string) bool {
	return slices.ContainsFunc(countNames, func(count string) bool { return g.isCount(count, member) })
}

// bytes changes the text of an answer, but for its digits.
func (g *generator) bytes(s *response) {
	if len(s.body) == 0 {
		return
	}
	at := g.rng.IntN(len(s.body))
	odd := []byte("\x00\xff\"'\\{}[],:- eE.\n<")
	switch c := odd[g.rng.IntN(len(odd))]; g.rng.IntN(4) {
	case 0:
		g.note("cut at %d of %d", at, len(s.body))
		s.body = s.body[:at]
	case 1:
		g.note("%q put in at %d", c, at)
		s.body = slices.Concat(s.body[:at], []byte{c}, s.body[at:])
	case 2:
		for s.body[at] >= '0' && s.body[at] <= '9' {
			at = (at + 1) % len(s.body)
		}
		g.note("%q for %q at %d", c, s.body[at], at)
		s.body = slices.Concat(s.body[:at], []byte{c}, s.body[at+1:])
	default:
		whole := []string{"", "null", "[]", "{}", `"ok"`, htmlPage, jsonError, "\xef\xbb\xbf" + string(s.body), string(s.body) + string(s.body)}[g.rng.IntN(9)]
		g.note("%.30q", whole)
		s.body = []byte(whole)
	}
}

// tally counts what became of the generated answers.
type tally struct {
	mu    sync.Mutex
	lanes map[string]map[outcome]int
}

func (c *tally) add(l lane, f outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lanes[l.name] == nil {
		c.lanes[l.name] = map[outcome]int{}
	}
	c.lanes[l.name][f]++
}

// TestHostile_generated takes true answers apart at random. Whatever comes of it, every number in the database is one that the platform
// had for that video, nothing is given up for one answer, and all is well once the platform is.
func TestHostile_generatedAnswers(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	all := lanes()
	c := &tally{lanes: map[string]map[outcome]int{}}
	t.Run("lanes", func(t *testing.T) {
		t.Parallel()
		for i, l := range all {
			t.Run(l.name, func(t *testing.T) {
				t.Parallel()
				h := newHostile(t, "sqlite", l)
				for n := i; n < *hostileCount; n += len(all) * answersPerRun {
					h.runGenerated(t, c, n, len(all))
				}
			})
		}
	})
	t.Cleanup(func() {
		if *hostileOut != "" && !t.Failed() {
			require.NoError(t, os.WriteFile(*hostileOut, []byte(c.report()), 0o644))
		}
	})
}

// generate gives three videos so many generated answers, the first of number n, the others step by step.
func (h *hostileTest) runGenerated(t *testing.T, c *tally, n, step int) {
	t.Helper()
	r := h.begin(t)
	defer r.end()
	for i := 0; i < answersPerRun && n < *hostileCount; i, n = i+1, n+step {
		h.db.Clock.Advance(61 * time.Second) // counts move by the minute
		now := store.InstantOf(h.db.Clock.Now())
		h.db.Exec(t, "DELETE FROM source_pauses")
		h.db.Exec(t, "UPDATE fetch_targets SET next_at = ?, attempts = 0, state = 'active', suspect = NULL", now)
		g := &generator{lane: h.lane}
		h.logged.reset()
		r.tampering = &tampering{lane: h.lane, victims: []string{r.videos[0].ID, r.videos[1].ID}, tamper: g.tamper(*hostileSeed, uint64(n))}
		h.active.Store(r.tampering)
		r.fetchDue()
		what := fmt.Sprintf("%s, seed %d, answer %d: %s", h.lane.name, *hostileSeed, n, g)
		require.Positive(t, r.tampering.tampered.Load(), what)
		r.requireTrueCountsAfter(what)
		for index := range r.videos {
			f := r.outcome(index)
			if index < 2 {
				c.add(h.lane, f)
			}
			require.Contains(t, []outcome{"ok", heldBack, notNewer, "temporary", "gone", "missing", "private", "restricted", "unsupported", "bad_request", "quota_spent", "auth_failed", "rate_limited"}, f, what)
			require.Contains(t, []string{"active", "parked"}, r.target(index).state, what)
		}
	}
	r.requireRecovery()
	h.dialer.requireOnly(t, h.url)
}

func (c *tally) report() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	columns, sums, total := []outcome{}, map[outcome]int{}, 0
	for _, of := range c.lanes {
		for f, n := range of {
			if sums[f] == 0 {
				columns = append(columns, f)
			}
			sums[f], total = sums[f]+n, total+n
		}
	}
	slices.SortFunc(columns, func(a, b outcome) int { return sums[b] - sums[a] })
	var out strings.Builder
	fmt.Fprintf(&out, `# Hostile answers, generated

%[1]smake hostile%[1]s writes this page. It takes the true answers of every platform apart at random: wrong types, impossible numbers, members left out,
doubled, renamed or swapped, lists out of order, broken bytes, other statuses. Each goes the whole way: over HTTP to the real source, collector and store. The
run fails unless every number in the database is one that the platform truly had for that video when it was asked, no video is given up for
one answer, and every video has its true numbers again once the platform is in order. %[1]scollector/hostile_generated_test.go%[1]s says the rest.

Seed %[2]d, %[3]d answers, each to a video that was measured before and to one that is new: 0 crashes, 0 false numbers. What became of the %[4]d targets:

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
	for _, name := range slices.Sorted(maps.Keys(c.lanes)) {
		row(name, c.lanes[name])
	}
	row("all", sums)
	return out.String()
}
