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

// hostileBefore is an old version of the page docs/evidence/hostile-requests.md. The server did not limit
// expensive requests then. The present page shows the old costs in the column "Before".
//
//go:embed testdata/hostile-before.md
var hostileBefore string

// hostilePage returns the text of docs/evidence/hostile-requests.md.
func hostilePage(t *testing.T, rows []hostileRow, honest honestResult, size hostileSize) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `# Hostile requests

`+
		"`make hostile-requests` writes this page. "+
		`It sends %d hostile requests to the real server on PostgreSQL. It fails if one of them takes more than
%s of CPU time or %d MiB of memory. `+
		"`make check` does the same with less data, and runs each request once.\n"+
		"The requests are in `cmd/e2e/hostilecases_test.go` and `cmd/e2e/hostilewrites_test.go`.\n"+
		`
## How the cost of a request is measured

- The hostile organisation is premium. It has %s videos with %d days of history, %d collections that each contain every account, and ten
  nested collections with 1,000 videos each. Rate limits are on.
- Each run of a case starts a new server process, which first handles a few normal requests. Each case runs %d times; the table has the
  highest costs.
- The columns Server and PostgreSQL are the user and system time of the processes, from before the request until server and PostgreSQL
  are idle again. Work after the caller has closed the connection is included. The time of PostgreSQL is the time of all PostgreSQL processes.
- Memory is the peak resident size of the server (VmHWM, reset through clear_refs) minus the resident size before. Memory that the Go
  runtime held but did not use before the request counts as free.
- If a case has several requests, the limits apply to the total cost of these requests.
- The responses of cases with * have up to 5,000 rows. The limit of CPU time does not apply to these cases. The limit of memory applies to those
  that the server converts to CSV or XLSX.
- The column Before has the costs at commit be8cd07: server and PostgreSQL in ms, and memory. The costs were measured once on a busy
  machine, where CPU time is up to twice the CPU time of an idle machine. Cells with ≈ are the cost of one request times the number of requests.
  Cases with an empty cell were not measured at that commit.

## The requests

| # | Request | Server, ms | PostgreSQL, ms | Memory, MiB | Duration, ms | Responses | Before |
|--:|---|--:|--:|--:|--:|---|--:|
`, len(rows), maxCPUTime, maxMemory>>20, formatThousands(size.videos), size.days, wideCollections, size.runs)
	before := parseCosts(hostileBefore)
	var most cost
	for i, r := range rows {
		mark := ""
		if r.large {
			mark = "*"
		} else {
			most = highestCost(most, r.cost)
		}
		fmt.Fprintf(&b, "| %d%s | %s | %s | %s | %.1f | %s | %s | %s |\n", i+1, mark, escapeCell(r.name), formatMilliseconds(r.cost.server), formatMilliseconds(r.cost.database),
			inMebibytes(r.cost.memory), formatMilliseconds(r.cost.elapsed), escapeCell(r.responses), before[escapeCell(r.name)])
	}
	fmt.Fprintf(&b, "\nHighest costs of the cases to which both limits apply: %s ms server, %s ms PostgreSQL, %.1f MiB.\n", formatMilliseconds(most.server),
		formatMilliseconds(most.database), inMebibytes(most.memory))
	if len(honest.alone) > 0 {
		b.WriteString(honestSection(honest, size))
	}
	require.NotContains(t, b.String(), "%!", "every value on the page must be formatted")
	return b.String()
}

// honestSection returns the section of the page about the latency of normal requests, without and during an attack.
func honestSection(honest honestResult, size hostileSize) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
## Honest callers during hostile requests

%d other organisations send 60 requests a second: 20 for one video, 20 for a list of 100 videos, and 20 to track a video. The latency of these requests is measured
in %d pairs of windows of %s each. In the first window of a pair, there are no other requests. In the second window, the hostile organisation also sends requests:
the cases to which both limits apply, one after the other, up to %d a second.
Client, server and PostgreSQL share one machine.

| Request | p50 alone, ms | p50 during, ms | p99 alone, ms | p99 during, ms |
|---|--:|--:|--:|--:|
`, honestOrganisations, size.windows, size.window, time.Second/hostileInterval)
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
The p99 is computed for each window. Without hostile requests, the median p99 is %.1f ms. With hostile requests, the median p99 is %.1f ms, which is **%.2f times** as long.
`+
		`The other organisations sent %s requests; failures: %s. The hostile organisation sent %s requests. A rate limit refused %s of them.
`, float64(honest.p99Alone.Microseconds())/1000, float64(honest.p99During.Microseconds())/1000, honest.ratio,
		formatThousands(len(honest.alone)+len(honest.during)), cmp.Or(formatCounts(honest.failed), "none"), formatThousands(hostile), formatThousands(limited))
	return b.String()
}

// parseCosts reads the table of costs in an earlier version of docs/evidence/hostile-requests.md. It returns a map
// from the name of each case to a text with the costs of the case.
func parseCosts(page string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, " | ")
		if len(cells) == 8 && !strings.HasPrefix(line, "| #") {
			// These cells are the time of the server, the time of PostgreSQL, and the memory.
			out[strings.TrimSpace(cells[1])] = fmt.Sprintf("%s + %s ms, %s MiB", cells[2], cells[3], cells[4])
		}
	}
	return out
}

func escapeCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func formatMilliseconds(d time.Duration) string { return formatThousands(int(d.Milliseconds())) }

// formatThousands formats a number with a comma between groups of three digits.
func formatThousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
