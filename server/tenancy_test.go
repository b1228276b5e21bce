package server_test

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// The flags of TestTenancy_hidesDataOfOtherOrganisations. The defaults are for a short run; `make probes` sends many more pairs of
// requests.
var (
	tenancyProbes = flag.Int("tenancy.probes", 10000, "minimum number of pairs of requests that TestTenancy_hidesDataOfOtherOrganisations sends")
	tenancySeed   = flag.Int("tenancy.seed", 7, "seed of the first round of TestTenancy_hidesDataOfOtherOrganisations; each round has the next seed")
	tenancyTime   = flag.Duration("tenancy.time", 3*time.Hour, "time after which TestTenancy_hidesDataOfOtherOrganisations starts no more rounds")
	tenancyOut    = flag.String("tenancy.out", "", "path of the page that TestTenancy_hidesDataOfOtherOrganisations writes")
)

// probesPerRound is the minimum number of pairs of requests in a round of TestTenancy_hidesDataOfOtherOrganisations.
const probesPerRound = 4400

// TestTenancy_hidesDataOfOtherOrganisations sends pairs of requests. The first request names
// another organisation's item, and the second request names an item that does not exist. Both
// responses must be equal.
func TestTenancy_hidesDataOfOtherOrganisations(t *testing.T) {
	t.Parallel()
	start := time.Now()
	report := &probeReport{fields: map[string]bool{}, rounds: map[probeRound]roundCounts{}}
	t.Cleanup(func() {
		t.Logf("sent %d pairs of requests", report.sentPairs())
		if *tenancyOut != "" && !t.Failed() {
			require.NoError(t, os.WriteFile(*tenancyOut, []byte(report.formatPage(time.Since(start), storetest.Machine())), 0o600))
		}
	})
	for i := range (*tenancyProbes + probesPerRound - 1) / probesPerRound {
		round := newProbeRound(i)
		t.Run(fmt.Sprintf("round %d on %s, tier of the callers: %s, data of the callers is newer: %t", i, round.engine, round.tier, round.newer), func(t *testing.T) {
			t.Parallel()
			if time.Since(start) > *tenancyTime {
				return
			}
			p := newProber(t, newApp(t, storetest.New(t, round.engine)), round, uint64(*tenancySeed+i))
			before := organisationRows(t, p.app.DB, p.other)
			for _, op := range sharedContract().operations {
				fields := textFields(op)
				for _, s := range fields {
					p.probeField(op, s)
				}
				if len(fields) > 0 {
					p.probeAllFields(op, fields)
				}
			}
			require.Greater(t, p.sent, probesPerRound)
			// The requests must not change the rows of the other organisation.
			require.Equal(t, before, organisationRows(t, p.app.DB, p.other))
			report.addRound(round, p)
		})
	}
}

// probeRound describes the database engine and the organisations of one round of TestTenancy_hidesDataOfOtherOrganisations.
type probeRound struct {
	engine string
	tier   store.Tier // tier of the callers
	newer  bool       // true if the data of the two calling organisations are newer than the data of the organisation that they must not see
}

// newProbeRound returns the round with the number i. Six successive rounds on one engine have all
// combinations of the fields "tier" and "newer".
func newProbeRound(i int) probeRound {
	engine, n := "sqlite", i-(i+1)/3 // n is the number of earlier rounds on the same engine
	if i%3 == 1 {
		engine, n = "postgres", i/3
	}
	return probeRound{engine: engine, tier: store.Tiers[(n+2)%len(store.Tiers)], newer: n/len(store.Tiers)%2 == 0}
}

// prober sends each request twice: first with texts that identify items of another organisation, and then with texts that identify no item.
type prober struct {
	t                *testing.T
	app              *app
	transport        http.RoundTripper
	firstGenerator   *generator        // generates the first request of each pair
	secondGenerator  *generator        // generates the second request of each pair
	other            *caller           // an API client of the other organisation
	missingItems     inventory         // items that do not exist
	namePlaceholders *strings.Replacer // replaces the texts in which the two responses may differ, such as ids and links
	sent, succeeded  int               // sent is the number of pairs of requests so far; succeeded is the number of those pairs whose responses had a status below 300
	fields           map[string]bool   // the fields in which the test has already named an item of another organisation; a key is, for example, "getVideo path ad_id"
}

// newProber creates three organisations. Two of them have equal items. In each pair of requests, the first
// organisation names items of the third, and the second organisation names items that do not exist.
func newProber(t *testing.T, a *app, round probeRound, seed uint64) *prober {
	t.Helper()
	p := &prober{t: t, app: a, transport: contractTransport{sharedContract(), inProcess{a.server.Handler()}}, fields: map[string]bool{}}
	createOther := func() {
		p.other = a.newCaller(t, store.TierPremium)
		a.createItems(3010, p.other)
		p.missingItems = p.other.items.unknownItems(3010, 4010)
	}
	if round.newer {
		createOther()
	}
	callers := []*caller{a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)}
	a.createItems(5010, callers...)
	if !round.newer {
		createOther()
	}
	for i, g := range []**generator{&p.firstGenerator, &p.secondGenerator} {
		require.NoError(t, a.SetTier(t.Context(), callers[i].org.ID, round.tier))
		*g = &generator{random: random{rand.New(rand.NewPCG(seed, 7))}, now: a.Clock.Now(), callers: callers[i : i+1], shortLinks: []string{"https://vm.tiktok.com/ZMdead123/"}, onlyOwnItems: true}
	}
	a.Clock.Advance(time.Second) // the cached identities of the tokens expire, so that the server reads the new tiers
	p.namePlaceholders = newPlaceholders([]inventory{p.other.items, p.missingItems}, []inventory{callers[0].items, callers[1].items})
	return p
}

// newPlaceholders returns a Replacer that replaces the texts of inventories by placeholders. The two
// inventories of a pair get equal placeholders for texts of equal kind and index.
func newPlaceholders(pairs ...[]inventory) *strings.Replacer {
	var names [][]string
	for side, pair := range pairs {
		for _, items := range pair {
			for _, m := range itemKinds {
				for i, name := range items[m] {
					name = strings.Trim(name, `"`) // an ETag is in quotes, which are not part of the text to replace
					// An error message can contain a long text in full, or only its first 60 or 100 characters.
					// So these short forms are also replaced by the placeholder.
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

// probeField sends one pair of requests for each text in p.other.items that is valid in the field. For a field
// in slowFields, it sends only one pair.
func (p *prober) probeField(op *contractOperation, s textField) {
	p.t.Helper()
	named := 0
	for _, m := range itemKinds {
		for i, text := range p.other.items[m] {
			if matchesSchema(s.schema, text) && matchesSchema(s.schema, p.missingItems[m][i]) && !strings.Contains(text, ",") {
				named++
				p.fields[op.id+" "+s.location+" "+s.name] = true
				if slowFields[s.name] > 0 && named > 1 {
					continue
				}
				p.requireEqualResponses(op, fmt.Sprintf("the %s field %q contains a text of the kind %q", s.location, s.name, m), func(r *generatedRequest, items inventory) { r.setField(s, items[m][i]) })
			}
		}
	}
	if !slices.Contains(kindsOfField(op, s.name), freeText) {
		require.Positive(p.t, named, "%s: the inventory has no text for the %s field %s", op.id, s.location, s.name)
	}
}

// probeAllFields sends a pair of requests in which all fields contain texts of another organisation.
func (p *prober) probeAllFields(op *contractOperation, fields []textField) {
	p.t.Helper()
	p.requireEqualResponses(op, "all fields contain texts of another organisation", func(r *generatedRequest, items inventory) {
		for i, s := range fields {
			if m := kindsOfField(op, s.name)[0]; m != freeText && s.name != "cursor" {
				r.setField(s, items[m][i%len(items[m])])
			}
		}
	})
}

// requireEqualResponses sends a pair of requests and requires equal responses. The function
// fillRequest puts texts such as ids and links into each request.
func (p *prober) requireEqualResponses(op *contractOperation, description string, fillRequest func(*generatedRequest, inventory)) {
	p.t.Helper()
	firstRequest, got := p.sendRandomRequest(p.firstGenerator, op, p.other.items, fillRequest)
	secondRequest, want := p.sendRandomRequest(p.secondGenerator, op, p.missingItems, fillRequest)
	require.Equal(p.t, want, got, "the two responses of operation %s must be equal. Case: %s.\nThe first request names items of another organisation:\n%s\nThe second request names items that do not exist:\n%s", op.id, description, firstRequest, secondRequest)
	if p.sent++; strings.HasPrefix(got, "2") {
		p.succeeded++
	}
}

// sendRandomRequest generates a request, sends it and returns it. The returned text describes the
// response, without parts such as ids that can differ between correct responses.
func (p *prober) sendRandomRequest(g *generator, op *contractOperation, items inventory, fillRequest func(*generatedRequest, inventory)) (*generatedRequest, string) {
	p.t.Helper()
	r := g.generateValid(op)
	delete(r.headers, "X-Request-Id")
	fillRequest(r, items)
	req := g.toHTTPRequest(r)
	require.NotNil(p.t, req, "%s", r)
	resp, err := p.transport.RoundTrip(req)
	require.NoError(p.t, err, "%s", r)
	body, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	require.Less(p.t, resp.StatusCode, http.StatusInternalServerError, "%s\n%s", r, body)
	h := resp.Header.Clone()
	for name := range h {
		if name == "X-Request-Id" || name == "Etag" || strings.HasPrefix(name, "Ratelimit") { // these headers may differ, even if the two organisations have equal data
			h.Del(name)
		}
	}
	if h.Get("Link") != "" {
		h.Set("Link", "…") // the two responses may differ in the header Link, because it contains the query and a cursor
	}
	text := instanceMember.ReplaceAllStringFunc(string(body), func(path string) string { // decode the path, because the two requests can be percent-encoded differently
		decoded, err := url.PathUnescape(path)
		require.NoError(p.t, err)
		return decoded
	})
	text = nextCursor.ReplaceAllString(p.namePlaceholders.Replace(text), `"next_cursor":"…"`)
	text = secretMember.ReplaceAllString(checksumPattern.ReplaceAllString(text, `"checksum":"…"`), `"secret":"…"`)
	return r, fmt.Sprintf("%d %v, tag %t\n%s", resp.StatusCode, h, resp.Header.Get("ETag") != "", anyID.ReplaceAllString(text, "…"))
}

// anyID matches a UUID in upper or lower case.
var anyID = regexp.MustCompile(`(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// checksumPattern matches the checksum of a report. Reports with equal numbers have different checksums, because each report contains its id.
var checksumPattern = regexp.MustCompile(`"checksum":"[^"]*"`)

// instanceMember matches the member "instance" of an error response. The value of this member is the path of the request.
var instanceMember = regexp.MustCompile(`"instance":"[^"]*"`)

// setField sets a text field of a request to the given value.
func (r *generatedRequest) setField(s textField, value string) {
	switch s.location {
	case "path":
		r.path[s.name] = value
	case "header":
		r.headers[s.name] = value
	case "query":
		if r.setQueryValue(s.name, value); s.name == "cursor" {
			r.dropParameters("page")
			if r.op.Operation.Parameters.GetByInAndName("query", "paginated") != nil {
				r.setQueryValue("paginated", "true")
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

// tableColumns returns the names of the columns of a database table.
func tableColumns(t *testing.T, db *storetest.DB, table string) []string {
	t.Helper()
	rows, err := db.Raw(t).QueryContext(t.Context(), "SELECT * FROM "+table+" WHERE 1 = 0")
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	names, err := rows.Columns()
	require.NoError(t, err)
	require.NoError(t, rows.Err())
	return names
}

// organisationRows returns the rows of the caller's organisation as sorted texts, by table. It
// reads all tables with a column organisation_id.
func organisationRows(t *testing.T, db *storetest.DB, c *caller) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for table := range storetest.Tables {
		names := tableColumns(t, db, table)
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
