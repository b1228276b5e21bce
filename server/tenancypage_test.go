package server_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

// probeReport counts the pairs of requests that TestTenancy_hidesDataOfOtherOrganisations sends.
type probeReport struct {
	mu     sync.Mutex
	rounds map[probeRound]roundCounts // for each kind of round, the number of rounds and the numbers of pairs of requests
	fields map[string]bool            // the fields in which the test has already named an item of another organisation; a key is, for example, "getVideo path ad_id"
}

// roundCounts contains the numbers of rounds, of pairs of requests, and of pairs in which both responses had a status below 300.
type roundCounts struct {
	rounds, sent, succeeded int
}

// addRound adds the counts of a round to the report. If the two responses to a pair of requests were different, the caller must not add the
// round.
func (r *probeReport) addRound(round probeRound, p *prober) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.rounds[round]
	r.rounds[round] = roundCounts{c.rounds + 1, c.sent + p.sent, c.succeeded + p.succeeded}
	maps.Copy(r.fields, p.fields)
}

// sentPairs returns how many pairs of requests all rounds have sent.
func (r *probeReport) sentPairs() int {
	n := 0
	for _, c := range r.rounds {
		n += c.sent
	}
	return n
}

// formatPage returns the report as the document docs/evidence/tenancy.md.
func (r *probeReport) formatPage(duration time.Duration, machine string) string {
	operations := map[string]bool{}
	for field := range r.fields {
		operation, _, _ := strings.Cut(field, " ")
		operations[operation] = true
	}
	ended := ""
	if r.sentPairs() < *tenancyProbes {
		ended = fmt.Sprintf(" The run ended at its time limit, before it had sent %s probes.", formatThousands(*tenancyProbes))
	}
	var b strings.Builder
	b.WriteString("# Probes of other organisations' data\n\n" +
		"`make probes` writes this page. A probe is a pair of requests from two organisations with equal data. The two requests differ in one text, such as an id, a link, a hashtag or a cursor.\n" +
		"In the first request, this text identifies an item of a third organisation. In the second request, the text identifies no item. Both responses must have the same status, headers and body. " +
		"Then no caller can detect that the item exists.\n" +
		"In each round, each operation also gets a probe whose requests differ in all text fields. After each round, the database rows of the third organisation must be unchanged.\n\n")
	fmt.Fprintf(&b, `**%s probes** tested %d fields of %d operations. They found **0 differences** and **0 changed rows**. The probes are generated from openapi.yaml.

| Engine | Tier of the callers | Data of the callers | Rounds | Probes | Probes with two successful responses |
| --- | --- | --- | --: | --: | --: |
`, formatThousands(r.sentPairs()), len(r.fields), len(operations))
	for _, round := range slices.SortedFunc(maps.Keys(r.rounds), func(a, b probeRound) int {
		return cmp.Or(cmp.Compare(a.engine, b.engine), cmp.Compare(a.tier, b.tier), cmp.Compare(fmt.Sprint(a.newer), fmt.Sprint(b.newer)))
	}) {
		age := "older"
		if round.newer {
			age = "newer"
		}
		c := r.rounds[round]
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %s |\n", round.engine, round.tier, age, c.rounds, formatThousands(c.sent), formatThousands(c.succeeded))
	}
	run := fmt.Sprintf("The run took %s.", duration.Round(time.Second)) + ended + " " + machine
	for _, paragraph := range []string{
		"Some requests succeed even if a text identifies no item. For example, a list accepts every hashtag as a filter. The probes with these requests have two successful responses. In most other probes, both responses have the status 404.",
		run,
		fmt.Sprintf("The command was `make probes PROBES=%d`. `make check` runs this test with %s probes or more. The test is in `server/tenancy_test.go`. "+
			"Each round has a new server and a new database.\nThe server runs in the same process as the test. The test compares each request and response with the API contract.",
			*tenancyProbes, formatThousands(10000)),
		"## SQL statements from which one condition was removed",
		"A test removes one condition on the organisation from an SQL statement of the store, and repeats this for every such condition. " +
			"The function `storetest.CheckStatement` must refuse each statement that the test has changed in this way. In all tests, the same function also checks the unchanged statements.\nThe test is `TestOrg_treatsRecordsOfOtherOrganisationsAsUnknown`. " +
			"[The list of statements](statements.md) has the counts.",
	} {
		b.WriteString("\n" + paragraph + "\n")
	}
	return b.String()
}

// formatThousands returns a number with a comma before each group of three digits.
func formatThousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", formatThousands(n/1000), n%1000)
}

func TestProbeReport_addsUpRoundsWithTheSameSettings(t *testing.T) {
	t.Parallel()
	r := &probeReport{fields: map[string]bool{}, rounds: map[probeRound]roundCounts{}}
	for _, newer := range []bool{true, false, true} {
		round := probeRound{engine: "sqlite", tier: store.TierBasic, newer: newer}
		r.addRound(round, &prober{sent: 1500, succeeded: 200, fields: map[string]bool{"getVideo path ad_id": true, fmt.Sprint("getVideo query ", newer): true}})
	}
	page := r.formatPage(time.Minute, "The machine.")
	require.Contains(t, page, "**4,500 probes** tested 3 fields of 1 operations")
	require.Contains(t, page, "| sqlite | basic | older | 1 | 1,500 | 200 |\n| sqlite | basic | newer | 2 | 3,000 | 400 |\n")
	require.NotContains(t, page, "%!")
}

func TestProbeRounds_coverAllCombinationsOfSettings(t *testing.T) {
	t.Parallel()
	rounds := map[probeRound]bool{}
	for i := range 18 {
		rounds[newProbeRound(i)] = true
	}
	require.Len(t, rounds, 12)
}
