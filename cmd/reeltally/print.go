package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// writeJSON writes v as one line of JSON.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// writeTable writes rows in aligned columns; the first row is the heading. writeTable removes control characters from the cells, because names
// come from other people.
func writeTable(w io.Writer, rows [][]any) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		for i, cell := range r {
			if i > 0 {
				_, _ = fmt.Fprint(t, "\t")
			}
			_, _ = fmt.Fprint(t, plainText(fmt.Sprint(cell)))
		}
		_, _ = fmt.Fprintln(t)
	}
	return t.Flush()
}

// column is a column of a table.
type column struct {
	title string
	right bool // whether texts are aligned to the right
	wide  bool // whether texts may be shortened if the terminal is too narrow
	extra bool // whether the column may be left out if the terminal is too narrow
}

// minWide is the smallest width to which a wide column is shortened.
const minWide = 8

// writeColumns writes rows as a table, whose first line has the titles of the columns. If w is a terminal, the lines fit into its width.
func writeColumns(w io.Writer, columns []column, rows [][]string) error {
	width := 0
	if file, ok := w.(*os.File); ok {
		width, _, _ = term.GetSize(int(file.Fd())) // without a terminal, the width stays 0
	}
	_, err := io.WriteString(w, formatColumns(columns, rows, width))
	return err
}

// formatColumns returns the table as text. A line has at most width characters, or any length if width is 0.
func formatColumns(columns []column, rows [][]string, width int) string {
	titles := make([]string, len(columns))
	widths := make([]int, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	rows = append([][]string{titles}, rows...)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	total := 2 * (len(columns) - 1)
	for _, w := range widths {
		total += w
	}
	slack := 0 // total number of characters by which the wide columns can be shortened
	for i, c := range columns {
		if c.wide {
			slack += max(0, widths[i]-minWide)
		}
	}
	shown := slices.Repeat([]bool{true}, len(columns))
	// To make lines shorter, first leave out extra columns, from the last to the first.
	for i, c := range slices.Backward(columns) {
		if width > 0 && total-slack > width && c.extra {
			shown[i] = false
			total -= widths[i] + 2
		}
	}
	// Then shorten the wide columns.
	for i, c := range columns {
		if width > 0 && total > width && c.wide {
			shorter := min(widths[i], max(minWide, widths[i]-(total-width)))
			total -= widths[i] - shorter
			widths[i] = shorter
		}
	}
	var out bytes.Buffer
	for _, row := range rows {
		var cells []string
		for i, cell := range row {
			if !shown[i] {
				continue
			}
			cell = runewidth.Truncate(cell, widths[i], "…")
			if columns[i].right {
				cell = runewidth.FillLeft(cell, widths[i])
			} else {
				cell = runewidth.FillRight(cell, widths[i])
			}
			cells = append(cells, cell)
		}
		line := strings.TrimRight(strings.Join(cells, "  "), " ")
		if width > 0 {
			line = runewidth.Truncate(line, width, "…")
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// plainText returns s on one line and without control characters. Titles and names come from other people, and control characters in them
// could change the terminal.
func plainText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r) && r != '\u200d': // keep U+200D, because it joins emoji
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// formatCount formats a number with separators of thousands. It returns "-" for nil, which means unknown.
func formatCount(n *int64) string {
	if n == nil {
		return "-"
	}
	return humanize.Comma(*n)
}

// numberWithNoun returns a number with its noun in the singular or plural, for example "1 video" or "2 videos".
func numberWithNoun[N int | int32 | int64](n N, noun string) string {
	return english.Plural(int(n), noun, "")
}

func formatYesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
