// Package formula makes untrusted texts safe in files that spreadsheets open. If such a text began with certain characters, the spreadsheet
// would run it as a formula.
package formula

import "strings"

// formulaSigns are the characters with which a spreadsheet formula may begin. A spreadsheet evaluates a cell that begins with one of them.
const formulaSigns = "=+-@＝＋－＠"

// formulaSignsAtStart are formulaSigns and the white space that a spreadsheet may remove from the beginning of a text.
const formulaSignsAtStart = formulaSigns + "\t\r\n"

// cellSeparators are the characters at which a spreadsheet may split a text into cells, if it reads a file with commas as a file with
// semicolons or tabs. Quotes around the text do not always prevent this.
const cellSeparators = ";\t\r\n"

// cellQuotes are the quotes that a spreadsheet may remove from the beginning of a cell. A formula can follow them.
const cellQuotes = `'"`

// Escape makes a text safe to open in a spreadsheet. It puts an apostrophe before each formula, at the beginning of the text and after each
// separator, so that the spreadsheet shows the formula as text. Unescape returns the original text, even if the original has apostrophes.
func Escape(text string) string {
	return changeEachCell(text, func(cell string, isFormula bool) string {
		if isFormula {
			return "'" + cell
		}
		return cell
	})
}

// Unescape reverses Escape.
func Unescape(text string) string {
	return changeEachCell(text, func(cell string, isFormula bool) string {
		if isFormula {
			return strings.TrimPrefix(cell, "'")
		}
		return cell
	})
}

// changeEachCell splits a text after each of cellSeparators. It calls changeCell for each part and joins the results. isFormula is true if
// the part begins with a formula, or with quotes and a formula.
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
