package transfer

import "strings"

// A spreadsheet takes a cell that begins with one of these for a formula, and would run it.
const formulaSigns = "=+-@＝＋－＠"

// At the beginning of a text, white space may be dropped before a formula.
const formulaSignsAtStart = formulaSigns + "\t\r\n"

// cellSeparators begin a new cell for a spreadsheet that splits lines at semicolons or tabs. Such a spreadsheet does not see that
// the text is quoted, since the quote does not stand at the beginning of its cell.
const cellSeparators = ";\t\r\n"

// cellQuotes may stand before a formula: a spreadsheet may take them away.
const cellQuotes = `'"`

// guarded makes a text safe to open in a spreadsheet: an apostrophe makes plain text of each formula, at the beginning and after each
// separator. unguarded undoes it, also for texts that had apostrophes of their own.
func guarded(text string) string {
	return eachCell(text, func(cell string, isFormula bool) string {
		if isFormula {
			return "'" + cell
		}
		return cell
	})
}

func unguarded(text string) string {
	return eachCell(text, func(cell string, isFormula bool) string {
		if isFormula {
			return strings.TrimPrefix(cell, "'")
		}
		return cell
	})
}

// eachCell replaces each part of a text that a spreadsheet may take for a cell. change gets the part with the separator that ends it,
// and whether the first character after its quotes begins a formula.
func eachCell(text string, change func(cell string, isFormula bool) string) string {
	var out strings.Builder
	signs := formulaSignsAtStart
	for text != "" {
		end := strings.IndexAny(text, cellSeparators) + 1
		if end == 0 {
			end = len(text)
		}
		rest := strings.TrimLeft(text[:end], cellQuotes)
		out.WriteString(change(text[:end], rest != "" && strings.ContainsAny(signs, firstRune(rest))))
		text, signs = text[end:], formulaSigns
	}
	return out.String()
}

func firstRune(s string) string {
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}
