package collector_test

import (
	"fmt"
	"math"
	"strings"

	"github.com/reeltally/reeltally/store/queue"
)

// drawCharts returns an SVG image with three line charts: calls, age of the counts and share of late fetches for each simulated day.
func (s *simulation) drawCharts() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 880" font-family="sans-serif" font-size="12">
<rect width="900" height="880" fill="white"/>
<text x="60" y="26" font-size="16">%d videos of %d organisations over %d days</text>
`, len(s.tracked), len(s.orgs), len(s.days))
	of := func(value func(simulatedDay) float64) []float64 {
		out := make([]float64, len(s.days))
		for i, d := range s.days {
			out[i] = value(d)
		}
		return out
	}
	calls := func(budget string) []float64 {
		return of(func(d simulatedDay) float64 { return float64(d.calls[budget]) })
	}
	drawLineChart(&b, 50, "Calls per day (dashed: budget of Instagram)", []line{
		{"YouTube, counts", "#c00", "", calls("youtube/stats")}, {"YouTube, details", "#e80", "", calls("youtube/common")},
		{"TikTok", "#069", "", calls("tiktok")}, {"Instagram", "#936", "", calls("instagram")},
		{"", "#936", "4 4", of(func(d simulatedDay) float64 { return float64(d.limits["instagram"]) })},
	})
	age := func(lane queue.Lane) []float64 {
		return of(func(d simulatedDay) float64 { return d.age[lane].p95.Hours() })
	}
	drawLineChart(&b, 330, "Age of Instagram's counts at midnight in hours, 95th percentile", []line{
		{"premium", "#069", "", age(queue.LanePremium)}, {"basic", "#e80", "", age(queue.LaneBasic)}, {"free", "#c00", "", age(queue.LaneFree)},
	})
	drawLineChart(&b, 610, "Percentage of fetches that are early or late by more than a twentieth of the interval", []line{
		{"all platforms", "#c00", "", of(func(d simulatedDay) float64 { return 100 * float64(d.late) / float64(max(1, d.fetches)) })},
	})
	b.WriteString("</svg>\n")
	return b.String()
}

type line struct {
	name, colour, dash string
	values             []float64 // one value for each simulated day
}

// drawLineChart writes one line chart as SVG. The x axis has the simulated days. The y axis starts at zero.
func drawLineChart(b *strings.Builder, top float64, title string, lines []line) {
	const left, width, height = 60.0, 800.0, 200.0
	maxValue, days := 1.0, 1
	for _, l := range lines {
		days = len(l.values)
		for _, v := range l.values {
			maxValue = max(maxValue, v)
		}
	}
	unit := math.Pow(10, math.Floor(math.Log10(maxValue)))
	maxValue = math.Ceil(maxValue/unit) * unit
	fmt.Fprintf(b, "<text x=\"%g\" y=\"%g\" font-weight=\"bold\">%s</text>\n", left, top+12, title)
	top += 24
	for i := range 5 {
		y := top + height*float64(i)/4
		fmt.Fprintf(b, "<line x1=\"%g\" y1=\"%g\" x2=\"%g\" y2=\"%g\" stroke=\"#ddd\"/><text x=\"%g\" y=\"%g\" text-anchor=\"end\">%g</text>\n",
			left, y, left+width, y, left-6, y+4, maxValue*float64(4-i)/4)
	}
	legend := left
	for _, l := range lines {
		var points strings.Builder
		for i, v := range l.values {
			fmt.Fprintf(&points, "%.1f,%.1f ", left+width*(float64(i)+0.5)/float64(days), top+height*(1-v/maxValue))
		}
		fmt.Fprintf(b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" stroke-dasharray=\"%s\" points=\"%s\"/>\n", l.colour, l.dash, strings.TrimSpace(points.String()))
		if l.name != "" {
			fmt.Fprintf(b, "<text x=\"%g\" y=\"%g\" fill=\"%s\">%s</text>\n", legend, top+height+20, l.colour, l.name)
			legend += 20 + 7*float64(len(l.name))
		}
	}
	fmt.Fprintf(b, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">day %d</text>\n", left+width, top+height+20, days)
}
