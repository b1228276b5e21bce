package e2e_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// outagesPage returns the text of docs/evidence/outages.md.
func outagesPage(results []outageCounts, machine string) string {
	slices.SortFunc(results, func(a, b outageCounts) int { return cmp.Compare(a.name, b.name) })
	var b strings.Builder
	fmt.Fprintf(&b, `# Outages of databases, Redis and disks

`+
		"`make outages` writes this page. %d callers track new videos, one caller lists videos, and one caller requests `/livez`. "+
		`Meanwhile, one part of the system fails and comes back, again and again. The server is never restarted.

| What happens | Database | Outages | Acknowledged videos | Lost | Doubled | Successful reads | Refused writes | Refused reads | Slowest response | Longest time until a write succeeded again |
| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |
`, outageWriters)
	limited := 0
	for _, r := range results {
		limited += r.limited
		fmt.Fprintf(&b, "| %s | %s | %d | %s | 0 | 0 | %s | %s | %s | %s | %s |\n", r.name, r.engine, r.outages, formatThousands(r.writes), formatThousands(r.reads), formatThousands(r.refusedWrites), formatThousands(r.refusedReads),
			r.slowest.Round(time.Millisecond), r.recovery.Round(time.Millisecond))
	}
	fmt.Fprintf(&b, `
- Every request got a response. The refused requests in the table got status 503 with the header Retry-After. `+
		"Requests of `/livez` always succeeded. "+
		`No connection was broken.
- While a disk is full, reads succeed and writes are refused. An outage of a disk or of Redis ends after %d responses of each kind.
- PostgreSQL is started again at once. After the kill, it first recovers its data from the write-ahead log.
- While Redis does not run, the server counts requests for rate limits in its own memory, so it still answers every request. The other runs have no rate limits. In the run with Redis, %s requests got 429, which the table does not count.
- At the end of each run, the list of videos must contain each acknowledged video exactly once.

%s

The disks are file systems in memory: 32 MiB for SQLite, and 64 MiB for the tables of PostgreSQL. The test fills them with a file. The write-ahead log of PostgreSQL is on another disk: PostgreSQL stops if the disk of its log is full.
`+
		"The command was `make outages OUTAGES=%d`, as root. `make check` runs this test with 2 outages of each kind. It does not fill disks, because only root can mount the disks. The test is in `cmd/e2e/outages_test.go`.\n", requestsPerOutage, formatThousands(limited), machine, *outagesCount)
	return b.String()
}

func TestOutagesPage_showsTheResultOfEachOutage(t *testing.T) {
	t.Parallel()
	page := outagesPage([]outageCounts{
		{name: "the disk is full", engine: "sqlite", outages: 20, writes: 1234, refusedWrites: 400, recovery: 1500 * time.Microsecond},
		{name: "PostgreSQL is killed", engine: "postgres", outages: 20, reads: 5000, slowest: time.Second},
	}, "The machine.")
	require.Contains(t, page, "| PostgreSQL is killed | postgres | 20 | 0 | 0 | 0 | 5,000 | 0 | 0 | 1s | 0s |\n| the disk is full | sqlite | 20 | 1,234 | 0 | 0 | 0 | 400 |")
	require.NotContains(t, page, "%!")
}
