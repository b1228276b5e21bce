package report

import (
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"
)

const (
	width     = 960.0
	barLeft   = 440.0 // x coordinate at which the bars begin
	barWidth  = 380.0 // width of the longest bars
	rowHeight = 20.0
	maxShare  = 2.0 // highest share (ratio divided by goal) that a bar can show; a bar for a higher share is cut off here
)

const style = `  <style>
    .back { fill: #fbfbf9; } .text { fill: #1c1c19; } .muted { fill: #5e5e57; font-size: 12px; } .group { fill: #1c1c19; font-weight: 600; }
    .met { fill: #2f4fd0; } .close { fill: #b7791f; } .missed { fill: #c53030; } .goal { stroke: #1c1c19; stroke-width: 1.5; stroke-dasharray: 4 3; }
    @media (prefers-color-scheme: dark) {
      .back { fill: #121311; } .text, .group { fill: #ececeb; } .muted { fill: #a5a59d; } .goal { stroke: #ececeb; }
      .met { fill: #9db0ff; } .close { fill: #e0b060; } .missed { fill: #ff8a80; }
    }
  </style>
`

// Picture returns a bar chart of the results as SVG. The length of a bar shows the result's Share. A
// bar beyond the dashed line misses the goal.
func (r Report) Picture() string {
	var b strings.Builder
	groups := 0
	for i, result := range r.Results {
		if i == 0 || result.Group != r.Results[i-1].Group {
			groups++
		}
	}
	const top = 76.0
	bottom := top + rowHeight*float64(len(r.Results)) + 1.6*rowHeight*float64(groups)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="Results of the benchmark, compared with their goals: %d of %d goals were met">`+"\n",
		width, bottom+24, r.countVerdicts("met"), len(r.Results))
	b.WriteString(style)
	fmt.Fprintf(&b, `  <rect class="back" width="%.0f" height="%.0f" rx="6"/>`+"\n", width, bottom+24)
	text := func(x, y float64, class, words string) {
		fmt.Fprintf(&b, `  <text class="%s" x="%.0f" y="%.0f">%s</text>`+"\n", class, x, y, html.EscapeString(words))
	}
	text(24, 32, "text", "Each bar compares a result with its goal. Shorter is better. A bar that is longer than twice the goal is cut off.")
	goal := barLeft + barWidth/maxShare
	text(goal-14, 60, "muted", "goal")
	y := top
	group := ""
	for _, result := range r.Results {
		if result.Group != group {
			group = result.Group
			y += 1.6 * rowHeight
			text(24, y-6, "group", group)
		}
		text(24, y+14, "muted", result.Name)
		length := min(result.Share(), maxShare) / maxShare * barWidth
		fmt.Fprintf(&b, `  <rect class="%s" x="%.0f" y="%.0f" width="%.1f" height="12" rx="2"/>`+"\n", result.Verdict(), barLeft, y+4, length)
		text(barLeft+barWidth+12, y+14, "muted", fmt.Sprintf("%.2f (%s)", result.Ratio, result.formatGoal()))
		y += rowHeight
	}
	fmt.Fprintf(&b, `  <path class="goal" d="M%.0f,66 V%.0f"/>`+"\n</svg>\n", goal, bottom+8)
	return b.String()
}

// formatSettings formats settings as one line, such as "fsync on, shared_buffers 128MB", ordered by name.
func formatSettings(values map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, name+" "+values[name])
	}
	return strings.Join(parts, ", ")
}

// formatThousands formats a number that is not negative, with a comma between groups of three digits.
func formatThousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", formatThousands(n/1000), n%1000)
}
