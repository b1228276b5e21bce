package e2e_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// reportText returns the text of docs/evidence/full-rate.md, which reports the run.
func (r *fullRateRun) reportText() string {
	var b strings.Builder
	allowed, sent, skipped := 0, 0, 0
	for operation, limit := range r.limits {
		allowed += limit
		sent += r.sent[operation].sentRequests()
		skipped += r.sent[operation].skipped
	}
	minutes := r.length.Minutes()
	first, last := r.sampleAt(0), r.samples[len(r.samples)-1]
	half := r.sampleAt(r.length / 2)
	fmt.Fprintf(&b, `# One organisation at its full rate

`+
		"`make full-rate` writes this page and its picture. "+
		`One premium organisation calls all %d operations for %g minutes, each as often as its rate limit
allows: %s requests a minute. Its requests are as large as the contract allows. Bulk requests to track links are of two kinds, in turn: 500 new links, or 500 invalid links with a total of 2 MiB.
Pages of lists have 5,000 items. Requests for members of collections have 100 members. A request that changes a collection sends display settings of 16 KiB and a new password. Every POST that takes an Idempotency-Key has a new key.
At the same time, %d other organisations together send 60 requests a second. These requests get one video, get 100 videos, or track a video. In the first minute, only the other organisations send requests.

Server, PostgreSQL (with fsync off, as in all tests) and callers share one machine. No collector runs. Before the run, the organisation had %s videos.

![Memory of the server, size of the database, and latency of other organisations](full-rate.svg)

| What | Measured |
|---|---|
| requests of the organisation | %s sent, %s skipped because %d were running |
| mean CPU time | server %.2f cores, PostgreSQL %.2f cores |
| memory of the server | %.0f MiB before, %.0f MiB at most, %.0f MiB at the end |
| database | %.0f MiB before, %.0f MiB after half the time, %.0f MiB at the end: %.1f MiB a minute |
| idempotency keys, part of the database | %.1f MiB after half the time, %.1f MiB at the end: %.2f MiB a minute in the second half |
`, len(r.limits), minutes, formatThousands(allowed), honestOrganisations, formatThousands(r.videos), formatThousands(sent), formatThousands(skipped), maxInFlight,
		r.server.Seconds()/r.length.Seconds(), r.database.Seconds()/r.length.Seconds(),
		inMebibytes(first.resident), inMebibytes(r.highestSample(func(s sample) int64 { return s.resident })), inMebibytes(last.resident),
		inMebibytes(first.database), inMebibytes(half.database), inMebibytes(last.database), inMebibytes(last.database-first.database)/minutes,
		inMebibytes(half.keys), inMebibytes(last.keys), inMebibytes(last.keys-half.keys)/(minutes/2))
	for kind := range honestKinds {
		fmt.Fprintf(&b, "| other organisations, %s | p50 %.1f ms and p99 %.1f ms alone; p50 %.1f ms and p99 %.1f ms during the run |\n", honestKinds[kind],
			inMilliseconds(percentile(r.timingsBetween(-r.alone, 0), kind, 50)), inMilliseconds(percentile(r.timingsBetween(-r.alone, 0), kind, 99)),
			inMilliseconds(percentile(r.timingsBetween(0, r.length), kind, 50)), inMilliseconds(percentile(r.timingsBetween(0, r.length), kind, 99)))
	}
	fmt.Fprintf(&b, "| failed requests of the other organisations | %s |\n", cmp.Or(formatCounts(countFailures(r.normal)), "none"))
	r.growthSection(&b, minutes)
	r.operationsTable(&b, minutes)
	return b.String()
}

// growthSection writes the section of docs/evidence/full-rate.md that shows how much the tables of the database grew. runMinutes is the
// length of the run.
func (r *fullRateRun) growthSection(b *strings.Builder, runMinutes float64) {
	fmt.Fprintf(b, `
## Growth of the database

| Table | Before, MiB | After, MiB | MiB a minute | GiB a day at this rate |
|---|--:|--:|--:|--:|
`)
	grown := func(table string) int64 { return r.tablesAfter[table] - r.tablesBefore[table] }
	tables := slices.SortedFunc(maps.Keys(r.tablesAfter), func(x, y string) int {
		return cmp.Or(cmp.Compare(grown(y), grown(x)), cmp.Compare(x, y))
	})
	const most = 10
	total, rest := int64(0), int64(0)
	for i, table := range tables {
		total += grown(table)
		if i >= most || grown(table) <= 0 {
			rest += grown(table)
			continue
		}
		a := inMebibytes(grown(table)) / runMinutes
		fmt.Fprintf(b, "| %s | %.1f | %.1f | %.2f | %.1f |\n", table, inMebibytes(r.tablesBefore[table]), inMebibytes(r.tablesAfter[table]), a, a*60*24/1024)
	}
	a := inMebibytes(total) / runMinutes
	fmt.Fprintf(b, "| all other tables | | | %.2f | %.1f |\n| all | | | %.2f | %.1f |\n", inMebibytes(rest)/runMinutes, inMebibytes(rest)/runMinutes*60*24/1024, a, a*60*24/1024)
	trackedItems := 0
	for _, operation := range []string{"trackVideos", "trackAccounts"} {
		trackedItems += 500 * r.sent[operation].responses["200"]
	}
	for _, operation := range []string{"trackVideo", "trackAccount"} {
		trackedItems += r.sent[operation].responses["200"]
	}
	fmt.Fprintf(b, `
The organisation tracked about %s new videos and accounts, %s a minute: about %.1f KiB of database for each. These limits apply to the growth:

- Each tracked video or account adds rows, which are not deleted. The rate limits restrict the number of links: 500 in each bulk request, 120 bulk
  requests of each kind in a minute.
- The size of idempotency keys is limited for each organisation, and the keys expire after 24 hours. The run fails if the table of the keys takes more than %d MiB.
- The other tables grow with the number of links, or do not grow. The table "Growth of the database" shows the growth.
`, formatThousands(trackedItems), formatThousands(int(float64(trackedItems)/runMinutes)), float64(total)/1024/float64(max(1, trackedItems)), maxKeyBytes>>20)
}

// operationsTable writes the table of docs/evidence/full-rate.md with the number of requests of each operation.
func (r *fullRateRun) operationsTable(b *strings.Builder, minutes float64) {
	b.WriteString("\n## Requests by operation\n\n| Operation | Allowed a minute | Sent a minute | p50, ms | p99, ms | Responses |\n|---|--:|--:|--:|--:|---|\n")
	for _, operation := range slices.Sorted(maps.Keys(r.sent)) {
		o := r.sent[operation]
		all := make([]timing, len(o.durations))
		for i, d := range o.durations {
			all[i].duration = d
		}
		fmt.Fprintf(b, "| %s | %d | %.0f | %s | %s | %s |\n", operation, r.limits[operation], float64(o.sentRequests())/minutes,
			formatMilliseconds(percentile(all, -1, 50)), formatMilliseconds(percentile(all, -1, 99)), o)
	}
}

// formatCounts formats a map from names to counts as a text such as "503 Service Unavailable × 3".
func formatCounts(numbers map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		parts = append(parts, fmt.Sprintf("%s × %d", name, numbers[name]))
	}
	return strings.Join(parts, ", ")
}

func inMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// sampleAt returns the last sample whose field "at" is at most elapsed. If there is no such sample, it
// returns the first one.
func (r *fullRateRun) sampleAt(elapsed time.Duration) sample {
	out := r.samples[0]
	for _, s := range r.samples {
		if s.at <= elapsed {
			out = s
		}
	}
	return out
}

// highestSample calls valueOf for each sample, and returns the highest result.
func (r *fullRateRun) highestSample(valueOf func(sample) int64) int64 {
	most := int64(0)
	for _, s := range r.samples {
		most = max(most, valueOf(s))
	}
	return most
}

// timingsBetween returns the timings of the normal requests that were sent at or after start and before end. The parameters start and end are
// durations since r.began.
func (r *fullRateRun) timingsBetween(start, end time.Duration) []timing {
	var out []timing
	for _, a := range r.normal {
		if at := a.at.Sub(r.began); at >= start && at < end {
			out = append(out, a)
		}
	}
	return out
}

// curve is one line of a chart: the values y at the times x, in minutes.
type curve struct {
	name, colour string
	x, y         []float64
}

// chartsSVG returns the content of docs/evidence/full-rate.svg: charts of memory, disk space and latency over time.
func (r *fullRateRun) chartsSVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 890" font-family="sans-serif" font-size="12">
<rect width="900" height="890" fill="white"/>
<text x="70" y="26" font-size="16">One organisation calls every operation at its full rate, from minute 0 on</text>
`)
	of := func(name, colour string, value func(sample) int64) curve {
		c := curve{name: name, colour: colour}
		for _, s := range r.samples {
			c.x, c.y = append(c.x, s.at.Minutes()), append(c.y, inMebibytes(value(s)))
		}
		return c
	}
	latency := func(name, colour string, percent float64) curve {
		c := curve{name: name, colour: colour}
		for from := -r.alone; from < r.length; from += r.window {
			if all := r.timingsBetween(from, from+r.window); len(all) > 0 {
				c.x, c.y = append(c.x, (from+r.window/2).Minutes()), append(c.y, inMilliseconds(percentile(all, -1, percent)))
			}
		}
		return c
	}
	from, to := -r.alone.Minutes(), r.length.Minutes()
	drawPanel(&b, 50, "Resident memory of the server, MiB", from, to, []curve{of("server", "#06c", func(s sample) int64 { return s.resident })})
	drawPanel(&b, 330, "Size on disk, MiB", from, to, []curve{
		of("database", "#06c", func(s sample) int64 { return s.database }), of("idempotency keys", "#c30", func(s sample) int64 { return s.keys })})
	drawPanel(&b, 610, fmt.Sprintf("Latency of requests from other organisations, ms (one value every %s)", r.window), from, to, []curve{
		latency("99th percentile", "#c30", 99), latency("median", "#06c", 50)})
	b.WriteString("</svg>\n")
	return b.String()
}

// drawPanel writes one chart of the SVG. Its top edge is at topY. The x axis shows the minutes from
// start to end.
func drawPanel(b *strings.Builder, topY float64, title string, start, end float64, curves []curve) {
	const left, width, height = 70.0, 800.0, 190.0
	most := 1.0
	for _, c := range curves {
		for _, y := range c.y {
			most = max(most, y)
		}
	}
	unit := math.Pow(10, math.Floor(math.Log10(most))) / 2
	most = math.Ceil(most/unit) * unit
	// The y axis starts at zero.
	at := func(x, y float64) (float64, float64) {
		return left + width*(x-start)/(end-start), topY + 24 + height*(1-y/most)
	}
	fmt.Fprintf(b, "<text x=\"%g\" y=\"%g\" font-weight=\"bold\">%s</text>\n", left, topY+12, title)
	for i := range 5 {
		value := most * float64(i) / 4
		_, y := at(0, value)
		fmt.Fprintf(b, "<line x1=\"%g\" y1=\"%g\" x2=\"%g\" y2=\"%g\" stroke=\"#ddd\"/><text x=\"%g\" y=\"%g\" text-anchor=\"end\">%g</text>\n",
			left, y, left+width, y, left-6, y+4, value)
	}
	step := max(1, math.Round((end-start)/11))
	for minute := math.Ceil(start); minute <= end; minute += step {
		x, y := at(minute, 0)
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%g</text>\n", x, y+16, minute)
	}
	// A dashed line marks minute 0.
	x, y := at(0, 0)
	fmt.Fprintf(b, "<line x1=\"%.1f\" y1=\"%g\" x2=\"%.1f\" y2=\"%g\" stroke=\"#888\" stroke-dasharray=\"4 4\"/>\n", x, y, x, y-height)
	fmt.Fprintf(b, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">minutes</text>\n", left+width, y+32)
	legend := left
	for _, c := range curves {
		var points strings.Builder
		for i := range c.x {
			px, py := at(c.x[i], c.y[i])
			fmt.Fprintf(&points, "%.1f,%.1f ", px, py)
		}
		fmt.Fprintf(b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"%s\"/>\n", c.colour, strings.TrimSpace(points.String()))
		fmt.Fprintf(b, "<text x=\"%g\" y=\"%g\" fill=\"%s\">%s</text>\n", legend, y+34, c.colour, c.name)
		legend += 30 + 7*float64(len(c.name))
	}
}
