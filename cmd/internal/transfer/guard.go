package transfer

import "strings"

// A spreadsheet takes a cell that begins with one of these for a formula, and would run it.
const formulaSigns = "=+-@\t\r\n＝＋－＠"

// guarded makes a text safe to open in a spreadsheet: an apostrophe before it makes it plain text there. unguarded undoes
// it, also for texts that had apostrophes of their own.
func guarded(text string) string {
	if isFormula(text) {
		return "'" + text
	}
	return text
}

func unguarded(text string) string {
	if rest, ok := strings.CutPrefix(text, "'"); ok && isFormula(rest) {
		return rest
	}
	return text
}

func isFormula(text string) bool {
	rest := strings.TrimLeft(text, "'")
	return rest != "" && strings.ContainsRune(formulaSigns, []rune(rest[:min(len(rest), 4)])[0])
}
