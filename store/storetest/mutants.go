package storetest

import "regexp"

// The patterns below find the parts of a SQL statement that restrict a table to one organisation.
// They also reveal parser faults, because they do not use the parser.
var (
	organisationConditions = regexp.MustCompile("(?i)((?:[\"`]?\\w+[\"`]?\\.)?[\"`]?organisation_id[\"`]? = (?:\\$\\d+|\\?|CAST\\([^)]*\\)|\\w+\\.organisation_id))")
	organisationColumns    = regexp.MustCompile("(?i)INSERT INTO [\"`]?\\w+[\"`]? (?:AS \\w+ )?\\([^)]*?([\"`]?organisation_id[\"`]?)[,)]")
	conflictTargets        = regexp.MustCompile("(?i)ON CONFLICT \\(([\"`]?organisation_id[\"`]?),")

	// sharedPattern matches the text of a statement up to the start or the end of a removed part. It matches only
	// if the removed part restricts a table that may be used without an organisation.
	sharedPattern = regexp.MustCompile("(?i)((FROM|INTO|JOIN|UPDATE) [\"`]?(fetch_subscriptions|org_turns|share_pages)[\"`]?\\s+([a-z] )?(SET [\\w$?=(), ]+ )?(WHERE |\\([^)]*)|[\"` ](api_tokens|webhook_queue)\\b.*|b\\.organisation_id = d\\.organisation_id)$")
)

// Mutant is a statement without one of the parts that restrict a table to one organisation.
type Mutant struct {
	// Removed says which part was removed: "condition", "column" or "conflict target".
	Removed string
	// Text is the changed statement.
	Text string
	// Shared is true if the table of the removed part may be used without an organisation. If Shared is false,
	// CheckStatement must refuse the mutant.
	Shared bool
}

// Mutants returns a Mutant for each part of a statement that restricts a table to one organisation.
func Mutants(statement string) []Mutant {
	var out []Mutant
	for _, part := range []struct {
		removed     string
		pattern     *regexp.Regexp
		replacement string
	}{
		{"condition", organisationConditions, "1 = 1"},
		{"column", organisationColumns, "other_id"},
		{"conflict target", conflictTargets, "other_id"},
	} {
		for _, at := range part.pattern.FindAllStringSubmatchIndex(statement, -1) {
			start, end := at[2], at[3] // the text that the first group of the regular expression matches
			out = append(out, Mutant{Removed: part.removed, Text: statement[:start] + part.replacement + statement[end:],
				Shared: sharedPattern.MatchString(statement[:start]) || sharedPattern.MatchString(statement[:end])})
		}
	}
	return out
}
