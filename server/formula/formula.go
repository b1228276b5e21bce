// Package formula makes untrusted texts safe in files that spreadsheets open. If such a text began with certain characters, the spreadsheet
// would run it as a formula.
package formula

import "strings"

// formulaSigns are the characters with which a spreadsheet formula may begin. A spreadsheet evaluates a cell that begins with one of them.
const formulaSigns = "=+-@＝＋－＠"

// formulaSignsAtStart are formulaSigns, tabs and line breaks. A spreadsheet may remove tabs and
// line breaks from the beginning of a text, and then run the rest as a formula.
const formulaSignsAtStart = formulaSigns + "\t\r\n"

// cellSeparators are the characters at which a spreadsheet may split one text into several cells.
// Quotes around the text do not always prevent the split.
const cellSeparators = ";\t\r\n"

// cellQuotes are the quotes that a spreadsheet may remove from the beginning of a cell. A formula can follow them.
const cellQuotes = `'"`

// Escape puts an apostrophe before a formula at the beginning of a text or after one of the
// cellSeparators. A spreadsheet then shows the formula as text.
func Escape(text string) string {
	return changeEachCell(text, func(cell string, isFormula bool) string {
		if isFormula {
			return "'" + cell
		}
		return cell
	})
}

// Unescape reverses Escape, even if the original text contains apostrophes.
func Unescape(text string) string {
	return changeEachCell(text, func(cell string, isFormula bool) string {
		if isFormula {
			return strings.TrimPrefix(cell, "'")
		}
		return cell
	})
}

// changeEachCell splits a text after the cellSeparators, calls changeCell for each cell, and joins
// the results. isFormula is true if the cell begins with a formula, possibly after quotes.
func changeEachCell(text string, changeCell func(cell string, isFormula bool) string) string {
	var out strings.Builder
	signs := formulaSignsAtStart
	for text != "" {
		end := strings.IndexAny(text, cellSeparators) + 1
		if end == 0 {
			end = len(text)
		}
		rest := strings.TrimLeft(text[:end], cellQuotes)
		out.WriteString(changeCell(text[:end], rest != "" && strings.ContainsAny(signs, firstRune(rest))))
		text, signs = text[end:], formulaSigns
	}
	return out.String()
}

// firstRune returns the first character of s.
func firstRune(s string) string {
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}
