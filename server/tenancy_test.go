package server_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// probes is how many times a thing of another organisation is named on each engine, at least.
var probes = map[string]int{"sqlite": 6000, "postgres": 4000}

// TestTenancy_hidesDataOfOtherOrganisations names, in every place of every operation that takes a text, whatever another organisation
// has and fits there: ids, links, names, hashtags, cursors, tags, hashes. Two organisations that have the same things of their own ask; where the
// one names the other's thing, its twin names one that nobody has. Their answers are the same, to the byte, but for those names, and the
// organisation whose things were named has not changed in any row. The requests are made from the contract, so that a new
// operation is among them by itself.
func TestTenancy_hidesDataOfOtherOrganisations(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a *app) {
		theirs := a.newCaller(t, store.TierPremium)
		a.stock(3010, theirs)
		p := newProber(t, a, theirs.own, theirs.own.twin(3010, 4010))
		before := rowsOf(t, a.DB, theirs)
		rounds := 0
		for p.sent < probes[a.Engine] {
			rounds++
			for _, op := range theContract().operations {
				slots := textSlots(op)
				for _, s := range slots {
					p.probe(op, s)
				}
				if len(slots) > 0 {
					p.probeAll(op, slots)
				}
			}
		}
		t.Logf("%d things were named in %d rounds", p.sent, rounds)
		require.Equal(t, before, rowsOf(t, a.DB, theirs))
	})
}

// prober sends each request twice: from an organisation that names another's things, and from one that names nobody's.
type prober struct {
	t                *testing.T
	app              *app
	wire             http.RoundTripper
	asks, twin       *generator
	foreign, nobodys inventory
	plain            *strings.Replacer
	sent             int
}

func newProber(t *testing.T, a *app, foreign, nobodys inventory) *prober {
	t.Helper()
	p := &prober{t: t, app: a, wire: checking{theContract(), inProcess{a.server.Handler()}}, foreign: foreign, nobodys: nobodys}
	callers := []*caller{a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)}
	a.stock(5010, callers...)
	for i, g := range []**generator{&p.asks, &p.twin} {
		*g = &generator{draw: draw{rand.New(rand.NewPCG(7, 7))}, now: a.Clock.Now(), callers: callers[i : i+1], shorts: []string{"https://vm.tiktok.com/ZMdead123/"}, onlyOwn: true}
	}
	p.plain = withoutNames([]inventory{foreign, nobodys}, []inventory{callers[0].own, callers[1].own})
	return p
}

// withoutNames takes out of an answer what differs between organisations whose things are in the same places.
func withoutNames(pairs ...[]inventory) *strings.Replacer {
	var names [][]string
	for side, pair := range pairs {
		for _, own := range pair {
			for _, m := range meanings {
				for i, name := range own[m] {
					name = strings.Trim(name, `"`) // of a tag
					// Sentences cut what is long.
					for _, form := range []string{name, url.PathEscape(name), strings.ToUpper(name), strings.ToLower(name), name[:min(60, len(name))], name[:min(100, len(name))]} {
						names = append(names, []string{form, fmt.Sprintf("⟨%s %d.%d⟩", m, side, i)})
					}
				}
			}
		}
	}
	slices.SortStableFunc(names, func(a, b []string) int { return len(b[0]) - len(a[0]) })
	return strings.NewReplacer(slices.Concat(names...)...)
}

// probe names in one place whatever fits there.
func (p *prober) probe(op *contractOperation, s slot) {
	p.t.Helper()
	named := 0
	for _, m := range meanings {
		for i, text := range p.foreign[m] {
			if fits(s.schema, text) && fits(s.schema, p.nobodys[m][i]) && !strings.Contains(text, ",") {
				named++
				if seldom[s.name] > 0 && named > 1 {
					continue
				}
				p.compare(op, fmt.Sprintf("%s %s is the %s", s.in, s.name, m), func(r *generated, things inventory) { r.put(s, things[m][i]) })
			}
		}
	}
	if !slices.Contains(meaningsOf(op, s.name), freeText) {
		require.Positive(p.t, named, "%s: nothing that an organisation has fits %s %s", op.id, s.in, s.name)
	}
}

// probeAll names another organisation's things in all places at once, each of the kind that belongs there.
func (p *prober) probeAll(op *contractOperation, slots []slot) {
	p.t.Helper()
	p.compare(op, "all things are another's", func(r *generated, things inventory) {
		for i, s := range slots {
			if m := meaningsOf(op, s.name)[0]; m != freeText && s.name != "cursor" {
				r.put(s, things[m][i%len(things[m])])
			}
		}
	})
}

// compare sends a request from both organisations.
func (p *prober) compare(op *contractOperation, what string, name func(*generated, inventory)) {
	p.t.Helper()
	p.sent++
	asked, got := p.ask(p.asks, op, p.foreign, name)
	twin, want := p.ask(p.twin, op, p.nobodys, name)
	require.Equal(p.t, want, got, "%s: %s\n%s\nand of nobody:\n%s", op.id, what, asked, twin)
}

// ask sends a request that is drawn from the organisation's own things, and names others in it.
func (p *prober) ask(g *generator, op *contractOperation, things inventory, name func(*generated, inventory)) (*generated, string) {
	p.t.Helper()
	r := g.valid(op)
	delete(r.headers, "X-Request-Id")
	name(r, things)
	req := g.request(r)
	require.NotNil(p.t, req, "%s", r)
	resp, err := p.wire.RoundTrip(req)
	require.NoError(p.t, err, "%s", r)
	body, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	require.Less(p.t, resp.StatusCode, http.StatusInternalServerError, "%s\n%s", r, body)
	h := resp.Header.Clone()
	for name := range h {
		if name == "X-Request-Id" || name == "Etag" || strings.HasPrefix(name, "Ratelimit") { // the tag is made from the body, and so from the names in it
			h.Del(name)
		}
	}
	text := instance.ReplaceAllStringFunc(string(body), func(path string) string { // it was written with other escapes
		decoded, err := url.PathUnescape(path)
		require.NoError(p.t, err)
		return decoded
	})
	text = nextCursor.ReplaceAllString(p.plain.Replace(text), `"next_cursor":"…"`)
	return r, fmt.Sprintf("%d %v, tag %t\n%s", resp.StatusCode, h, resp.Header.Get("ETag") != "", anyID.ReplaceAllString(text, "…"))
}

// anyID is what differs between two answers that say the same of different things.
var anyID = regexp.MustCompile(`(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

var instance = regexp.MustCompile(`"instance":"[^"]*"`)

// put names a thing in a place of a request.
func (r *generated) put(s slot, value string) {
	switch s.in {
	case "path":
		r.path[s.name] = value
	case "header":
		r.headers[s.name] = value
	case "query":
		if r.set(s.name, value); s.name == "cursor" {
			r.drop("page")
			if r.op.Operation.Parameters.GetByInAndName("query", "paginated") != nil {
				r.set("paginated", "true")
			}
		}
	default:
		members, ok := r.body.(map[string]any)
		if !ok {
			members = map[string]any{}
			r.body, r.headers["Content-Type"] = members, "application/json"
		}
		schema := r.op.bodySchema()
		for _, name := range s.pointer[:len(s.pointer)-1] {
			inner, ok := members[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
				members[name] = inner
			}
			members, schema = inner, schema.Properties[name].Value
		}
		if last := s.pointer[len(s.pointer)-1]; schema.Properties[last].Value.Type.Is("array") {
			members[last] = []any{value}
		} else {
			members[last] = value
		}
	}
}

// columnsOf returns the names of a table's columns.
func columnsOf(t *testing.T, db *storetest.DB, table string) []string {
	t.Helper()
	rows, err := db.Raw(t).QueryContext(t.Context(), "SELECT * FROM "+table+" WHERE 1 = 0")
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	names, err := rows.Columns()
	require.NoError(t, err)
	require.NoError(t, rows.Err())
	return names
}

// rowsOf are all rows of an organisation, of every table that has its id.
func rowsOf(t *testing.T, db *storetest.DB, c *caller) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for table := range store.Tables {
		names := columnsOf(t, db, table)
		if !slices.Contains(names, "organisation_id") {
			continue
		}
		rows, err := db.Raw(t).QueryContext(t.Context(), db.Bind("SELECT * FROM "+table+" WHERE organisation_id = ?"), c.org.ID)
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		out[table] = []string{}
		for rows.Next() {
			values, at := make([]any, len(names)), make([]any, len(names))
			for i := range values {
				at[i] = &values[i]
			}
			require.NoError(t, rows.Scan(at...))
			out[table] = append(out[table], fmt.Sprint(values))
		}
		require.NoError(t, rows.Err())
		slices.Sort(out[table])
	}
	require.NotEmpty(t, out["videos"])
	return out
}
