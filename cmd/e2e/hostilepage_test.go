package e2e_test

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hostileBefore is the page that this test wrote before the limits were implemented. The column "Before" comes from its table.
//
//go:embed testdata/hostile-before.md
var hostileBefore string

// hostilePage returns the text of docs/evidence/hostile-requests.md.
func hostilePage(t *testing.T, rows []hostileRow, honest honestResult, size hostileSize) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `# Hostile requests

`+"`make hostile-requests`"+` writes this page. It sends %d hostile requests to the real server on PostgreSQL and fails if one of them takes more than
%s of processor time or %d MiB of memory. `+"`make check`"+` does the same with less data and one run of each.
The requests are in `+"`cmd/e2e/hostilecases_test.go` and `cmd/e2e/hostilewrites_test.go`"+`.

## Method

- The hostile organisation is premium. It has %s videos with %d days of history, %d collections that each contain every account, and ten
  collections, each below the one before, with 1,000 videos each. Rate limits are on.
- Each run of a case starts a server process, which first answers a few ordinary requests. Each case runs %d times; the worst
  numbers count.
- The columns Server and PostgreSQL show the user and system time of the processes, from before the request until both are idle again. Work
  that continues after the caller has closed the connection is included. PostgreSQL includes all of its processes.
- Memory is the peak resident size of the server (VmHWM, reset through clear_refs) minus the size before the request. Memory that the Go
  runtime had reserved but not used counts as free.
- For a case of several requests, the limits apply to the sum.
- Cases with * answer with up to 5,000 rows. They are measured, but the limits do not apply to them.
- The column Before shows the same measurement for commit be8cd07: server and PostgreSQL in ms, and memory. It was made once, on a busy machine,
  where processor times are up to twice as long. Values with ≈ are those of one request, multiplied. Empty cells were not measured.

## The requests

| # | Request | Server, ms | PostgreSQL, ms | Memory, MiB | Duration, ms | Answers | Before |
|--:|---|--:|--:|--:|--:|---|--:|
`, len(rows), maxProcessorTime, maxMemory>>20, thousands(size.videos), size.days, wideCollections, size.runs)
	before := tableOf(hostileBefore)
	var most cost
	for i, r := range rows {
		mark := ""
		if r.large {
			mark = "*"
		} else {
			most = worse(most, r.cost)
		}
		fmt.Fprintf(&b, "| %d%s | %s | %s | %s | %.1f | %s | %s | %s |\n", i+1, mark, cell(r.name), milliseconds(r.cost.server), milliseconds(r.cost.database),
			mebibytes(r.cost.memory), milliseconds(r.cost.elapsed), cell(r.responses), before[cell(r.name)])
	}
	fmt.Fprintf(&b, "\nThe most that a case without * takes: %s ms of the server, %s ms of PostgreSQL, %.1f MiB.\n", milliseconds(most.server),
		milliseconds(most.database), mebibytes(most.memory))
	if len(honest.alone) > 0 {
		b.WriteString(honestSection(honest, size))
	}
	require.NotContains(t, b.String(), "%!", "the page is formatted")
	return b.String()
}

// honestSection returns the section about the latency of honest callers.
func honestSection(honest honestResult, size hostileSize) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
## Other callers at the same time

%d other organisations ask 20 times a second for one video, for a list of 100 videos, and to track a video: 60 requests a second. They are measured
without and with the hostile organisation, which sends the cases without *, one after the other, up to %d a second. There are %d windows of %s of each, by turns.
Clients, server and PostgreSQL share one machine.

| Request | p50 without hostile requests, ms | p50 with hostile requests, ms | p99 without hostile requests, ms | p99 with hostile requests, ms |
|---|--:|--:|--:|--:|
`, honestOrganisations, time.Second/hostileInterval, size.windows, size.window)
	for kind := -1; kind < len(honestKinds); kind++ {
		name := "all"
		if kind >= 0 {
			name = honestKinds[kind]
		}
		fmt.Fprintf(&b, "| %s", name)
		for _, percent := range []float64{50, 99} {
			for _, all := range [][]timing{honest.alone, honest.during} {
				fmt.Fprintf(&b, " | %.1f", float64(percentile(all, kind, percent).Microseconds())/1000)
			}
		}
		b.WriteString(" |\n")
	}
	hostile := 0
	for _, n := range honest.hostile {
		hostile += n
	}
	limited := 0
	for _, response := range slices.Sorted(maps.Keys(honest.hostile)) {
		if strings.HasPrefix(response, "429") {
			limited += honest.hostile[response]
		}
	}
	fmt.Fprintf(&b, `
The median p99 of the windows is %.1f ms alone and %.1f ms meanwhile: **%.2f times**. Of %s ordinary requests, those not answered with 200: %s.
The hostile organisation sent %s requests, of which %s were refused by a rate limit.
`, float64(honest.p99Alone.Microseconds())/1000, float64(honest.p99During.Microseconds())/1000, honest.ratio,
		thousands(len(honest.alone)+len(honest.during)), cmp.Or(counts(honest.failed), "none"), thousands(hostile), thousands(limited))
	return b.String()
}

// tableOf reads the cost of each request from the table of a page: server, PostgreSQL and memory, by the name of the request.
func tableOf(page string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, " | ")
		if len(cells) == 8 && !strings.HasPrefix(line, "| #") {
			out[strings.TrimSpace(cells[1])] = fmt.Sprintf("%s + %s ms, %s MiB", cells[2], cells[3], cells[4])
		}
	}
	return out
}

// cell escapes a text for a cell of a Markdown table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func milliseconds(d time.Duration) string { return thousands(int(d.Milliseconds())) }

// thousands formats a number with a comma between groups of three digits.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
