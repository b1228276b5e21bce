package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// column is a column of a table.
type column struct {
	title string
	right bool // align to the right
	wide  bool // shorten this column first if the terminal is too narrow
}

// minWide is the smallest width to which a wide column is shortened.
const minWide = 8

// writeColumns writes rows as a table. If w is a terminal, the wide column is shortened so that the rows fit.
func writeColumns(w io.Writer, columns []column, rows [][]string) error {
	width := 0
	if file, ok := w.(*os.File); ok {
		width, _, _ = term.GetSize(int(file.Fd())) // without a terminal, the width stays 0
	}
	_, err := io.WriteString(w, formatColumns(columns, rows, width))
	return err
}

// formatColumns returns the table. A width of 0 does not limit the rows.
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
	for i, c := range columns {
		if width > 0 && total > width && c.wide {
			shorter := min(widths[i], max(minWide, widths[i]-(total-width)))
			total -= widths[i] - shorter
			widths[i] = shorter
		}
	}
	var out bytes.Buffer
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			cell = runewidth.Truncate(cell, widths[i], "…")
			if columns[i].right {
				cell = runewidth.FillLeft(cell, widths[i])
			} else {
				cell = runewidth.FillRight(cell, widths[i])
			}
			line.WriteString(cell)
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return out.String()
}

// plainText returns s on one line and without control characters. Titles and names are written by strangers; a terminal could obey control
// characters in them.
func plainText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r) && r != '\u200d': // U+200D joins emoji
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// count returns a number with separators of thousands, or "-" if it is unknown.
func count(n *int64) string {
	if n == nil {
		return "-"
	}
	return humanize.Comma(*n)
}
