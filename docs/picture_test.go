package docs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// point is one day of a history, as in the response of GET /videos/{ad_id}/history. Gains is not in the response: the test computes it.
type point struct {
	Date                                             string
	Views, Likes, Comments, Shares, Bookmarks, Gains int64
}

// TestPicture_showsRecordedHistory requires that history.svg, the chart in README.md, shows the history in testdata/history.json. The history is
// a response that a server of `make run` gave.
func TestPicture_showsRecordedHistory(t *testing.T) {
	t.Parallel()
	var points []point
	require.NoError(t, json.Unmarshal([]byte(readDocument(t, "testdata/history.json")), &points))
	slices.Reverse(points) // oldest first
	for i := range points[1:] {
		points[i+1].Gains = points[i+1].Views - points[i].Views
	}
	requireGeneratedText(t, "history.svg", drawHistory(t, points))
}

const (
	chartLeft, chartWidth = 84.0, 840.0
	viewsTop, viewsHeight = 128.0, 150.0
	gainsTop, gainsHeight = 318.0, 70.0
)

const pictureHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 430" font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="Views of a video over two months: a chart of the views and of the gain of each day">
  <style>
    .back { fill: #fbfbf9; } .text { fill: #1c1c19; } .muted { fill: #5e5e57; font-size: 12px; } .number { fill: #1c1c19; font-size: 22px; font-weight: 600; }
    .grid { stroke: #e3e3dd; } .line { fill: none; stroke: #2f4fd0; stroke-width: 2.5; } .area { fill: #2f4fd0; opacity: .12; } .bar { fill: #2f4fd0; }
    @media (prefers-color-scheme: dark) {
      .back { fill: #121311; } .text, .number { fill: #ececeb; } .muted { fill: #a5a59d; } .grid { stroke: #30312d; } .line { stroke: #9db0ff; } .area, .bar { fill: #9db0ff; }
    }
  </style>
  <rect class="back" width="960" height="430" rx="6"/>
`

// drawHistory returns a chart as SVG. It shows the latest counts, the views on each day, and the views gained on each day.
func drawHistory(t *testing.T, points []point) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(pictureHead)
	last := points[len(points)-1]
	text := func(x, y float64, class, words string) {
		fmt.Fprintf(&b, `  <text class="%s" x="%.0f" y="%.0f">%s</text>`+"\n", class, x, y, words)
	}
	text(24, 32, "text", "GET /videos/{ad_id}/history of a video in the sandbox (made-up numbers)")
	for i, tile := range []struct {
		name  string
		count int64
	}{{"views", last.Views}, {"likes", last.Likes}, {"comments", last.Comments}, {"shares", last.Shares}, {"bookmarks", last.Bookmarks}} {
		text(24+float64(i)*160, 72, "number", formatThousands(tile.count))
		text(24+float64(i)*160, 92, "muted", tile.name)
	}

	day := chartWidth / float64(len(points)-1)
	text(24, viewsTop-10, "muted", "Views")
	draw := func(top, height float64, most, step int64, label func(int64) string) {
		for value := int64(0); value <= most; value += step {
			y := top + height - float64(value)/float64(most)*height
			fmt.Fprintf(&b, `  <path class="grid" d="M%.0f,%.1f H%.0f"/>`+"\n", chartLeft, y, chartLeft+chartWidth)
			text(24, y+4, "muted", label(value))
		}
	}
	draw(viewsTop, viewsHeight, 1_000_000, 500_000, formatThousands)
	var line strings.Builder
	for i, p := range points {
		fmt.Fprintf(&line, " %.1f,%.1f", chartLeft+float64(i)*day, viewsTop+viewsHeight-float64(p.Views)/1_000_000*viewsHeight)
	}
	fmt.Fprintf(&b, `  <polygon class="area" points="%.0f,%.0f%s %.0f,%.0f"/>`+"\n", chartLeft, viewsTop+viewsHeight, line.String(), chartLeft+chartWidth, viewsTop+viewsHeight)
	fmt.Fprintf(&b, `  <polyline class="line" points="%s"/>`+"\n", strings.TrimSpace(line.String()))

	text(24, gainsTop-12, "muted", "Daily gain")
	draw(gainsTop, gainsHeight, 800_000, 400_000, formatThousands)
	for i, p := range points {
		height := max(float64(p.Gains)/800_000*gainsHeight, 1)
		fmt.Fprintf(&b, `  <rect class="bar" x="%.1f" y="%.1f" width="8" height="%.1f"/>`+"\n", chartLeft+float64(i)*day-4, gainsTop+gainsHeight-height, height)
		if i%14 == 0 {
			date, err := time.Parse(time.DateOnly, p.Date)
			require.NoError(t, err)
			text(chartLeft+float64(i)*day-16, gainsTop+gainsHeight+24, "muted", date.Format("2 Jan"))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// formatThousands formats a number with a comma between groups of three digits.
func formatThousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", formatThousands(n/1000), n%1000)
}
