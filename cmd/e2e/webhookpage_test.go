package e2e_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// webhookPage returns the text of docs/evidence/webhooks.md.
func webhookPage(results []webhookResult) string {
	slices.SortFunc(results, func(a, b webhookResult) int { return cmp.Compare(a.engine, b.engine) })
	var b strings.Builder
	fmt.Fprintf(&b, `# Webhooks while the receiver fails and processes are killed

`+
		"`make webhooks-killed` writes this page. "+
		`Two servers on PostgreSQL, or one on SQLite, and a collector run on one database. %d organisations have one webhook each. Every organisation tracks %s videos, and later stops tracking them. Meanwhile %d processes
are killed (SIGKILL) and restarted, one after the other. While the videos are tracked and fetched, servers and the collector are killed in turn. While the tracking is stopped, only servers are killed. A kill follows directly after the
arrival of an event, so that the server often has no time to store that the event was sent. The receiver often fails at the first attempt to send an event.

At the end, each video in the database must have exactly one event about its first counts and one about the end of its tracking. Every event of the event feeds must have arrived, and no other. `+
		"Every\nrequest must have a signature that the library of Standard Webhooks accepts, and a `webhook-id` that is the id of the event. "+
		`No redirect may be followed. Every delivery must have succeeded.

| Engine | Videos | Killed processes | Events | Lost | Requests | Received again, with the same id | Wrong signatures | Duration |
| --- | --: | --- | --: | --: | --: | --: | --: | --: |
`, *webhooksOrgs, formatThousands(*webhooksVideos), *webhooksKills)
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | 0 | %s | %s | 0 | %s |\n", r.engine, formatThousands(r.videos), formatCounts(r.kills), formatThousands(r.events), formatThousands(r.requests), formatThousands(r.repeated),
			r.duration.Round(time.Second))
	}
	b.WriteString("\nThe receiver had these faults:\n\n| Fault |")
	for _, r := range results {
		fmt.Fprintf(&b, " %s |", r.engine)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --: |", len(results)) + "\n")
	names := map[string]bool{}
	for _, r := range results {
		for name := range r.faults {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, r := range results {
			fmt.Fprintf(&b, " %s |", formatThousands(r.faults[name]))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n`make check` runs the same test with fewer videos and kills. The test is in `cmd/e2e/webhooks_test.go`.\n")
	return b.String()
}

func TestWebhookPage_showsTheResultOfEachEngine(t *testing.T) {
	t.Parallel()
	page := webhookPage([]webhookResult{
		{engine: "sqlite", videos: 1500, events: 3000, requests: 3400, repeated: 12, kills: map[string]int{"server": 3, "collector": 1}, faults: map[string]int{faultCut: 40}, duration: time.Minute},
		{engine: "postgres", videos: 1500, events: 3001, faults: map[string]int{faultRefused: 2}},
	})
	require.Contains(t, page, "| sqlite | 1,500 | collector × 1, server × 3 | 3,000 | 0 | 3,400 | 12 | 0 | 1m0s |\n")
	require.Contains(t, page, "| Fault | postgres | sqlite |\n")
	require.Contains(t, page, "| "+faultCut+" | 0 | 40 |\n")
	require.NotContains(t, page, "%!")
}
