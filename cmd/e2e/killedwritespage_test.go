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

// killedWritesPage returns the text of docs/evidence/killed-writes.md.
func killedWritesPage(results []*killedCounts, machine string) string {
	slices.SortFunc(results, func(a, b *killedCounts) int { return cmp.Compare(a.engine, b.engine) })
	var b strings.Builder
	fmt.Fprintf(&b, `# Writes while the server is killed

`+
		"`make kills` writes this page. "+
		`%d organisations write at the same time. Each organisation tracks %d links in one request, adds the first %d videos to a collection, and removes these videos again. It also stops the tracking of all %d videos, and
creates a collection. Then it does the same with a second list of links, and begins again.

`+
		`The test waits for one to %d responses, and then for up to 30 ms. Then it kills the server (SIGKILL) and starts it again.

`+
		`After each kill, the test compares the lists, counts and members of each organisation with the acknowledged requests. A request without a response must have had its whole effect or no effect.
Each response must also say that the request changed every video. This shows that the earlier writes were not lost.

`+
		`A request that creates a collection has an Idempotency-Key. If such a request got no response, the test repeats the request at the end with the same key. The collection must then exist once.

`+
		`| Engine | Kills | Acknowledged requests | Acknowledged writes | Lost | Doubled | Half-applied | Videos and members compared | Duration |
| --- | --: | --: | --: | --: | --: | --: | --: | --: |
`, killedWriters, *killsLinks, min(100, *killsLinks), *killsLinks, *killsResponses)
	kills, writes := 0, 0
	for _, r := range results {
		kills, writes = kills+r.kills, writes+int(r.writes.Load())
		fmt.Fprintf(&b, "| %s | %s | %s | %s | 0 | 0 | 0 | %s | %s |\n", r.engine, formatThousands(r.kills), formatThousands(int(r.requests.Load())), formatThousands(int(r.writes.Load())), formatThousands(r.checked),
			r.duration.Round(time.Second))
	}
	fmt.Fprintf(&b, `
Together: **%s kills, %s acknowledged writes**. Each link, each member of a collection and each collection counts as one write. A repeated request that changes videos does not count, because the first attempt may have changed the videos already.

| Engine | Tracked | Added to a collection | Removed from a collection | Stopped | Collections created | Unanswered requests | Unanswered requests with their whole effect | Creations repeated with the same key |
| --- | --: | --: | --: | --: | --: | --: | --: | --: |
`, formatThousands(kills), formatThousands(writes))
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.engine, formatThousands(int(r.tracked.Load())), formatThousands(int(r.added.Load())), formatThousands(int(r.taken.Load())),
			formatThousands(int(r.stopped.Load())), formatThousands(int(r.created.Load())), formatThousands(r.unanswered), formatThousands(r.applied), formatThousands(r.replayed))
	}
	fmt.Fprintf(&b, `
%s

`+
		"The command was `make kills KILLS='-kills.count=%d -kills.links=%d -kills.answers=%d'`. "+
		`Only the server is killed, and PostgreSQL runs without fsync, so the run says nothing about a crash of PostgreSQL or of the machine.
`+
		"`make check` runs this test with 6 kills of each engine's server and requests of 60 links. The\ntest is in `cmd/e2e/killedwrites_test.go`.\n", machine, *killsCount, *killsLinks, *killsResponses)
	return b.String()
}

func TestKilledWritesPage_showsTheResultOfEachEngine(t *testing.T) {
	t.Parallel()
	first, second := &killedCounts{engine: "sqlite", kills: 500, unanswered: 7, applied: 3}, &killedCounts{engine: "postgres", kills: 600, duration: time.Minute}
	first.writes.Store(123_456)
	page := killedWritesPage([]*killedCounts{first, second}, "The machine.")
	require.Contains(t, page, "| postgres | 600 | 0 | 0 | 0 | 0 | 0 | 0 | 1m0s |\n| sqlite | 500 | 0 | 123,456 |")
	require.Contains(t, page, "**1,100 kills, 123,456 acknowledged writes**")
	require.NotContains(t, page, "%!")
}
