package store_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// These patterns find the parts of a SQL statement that restrict a table to one organisation. They do not use the parser of
// storetest.CheckStatement, so that a fault in the parser is found.
var (
	organisationConditions = regexp.MustCompile("(?i)(?:(?:[\"`]?\\w+[\"`]?\\.)?[\"`]?organisation_id[\"`]?) = (?:\\$\\d+|\\?|CAST\\([^)]*\\)|\\w+\\.organisation_id)")
	organisationColumns    = regexp.MustCompile("(?i)INSERT INTO [\"`]?\\w+[\"`]? (?:AS \\w+ )?\\([^)]*?([\"`]?organisation_id[\"`]?)[,)]")
	conflictTargets        = regexp.MustCompile("(?i)ON CONFLICT \\(([\"`]?organisation_id[\"`]?),")

	// unbound matches statements that end after the name of a table that need not be restricted to one organisation. The test cuts a
	// statement at the start and at the end of a condition or column. If unbound matches one of the two parts, CheckStatement does not
	// require this condition or column.
	unbound = regexp.MustCompile("(?i)((FROM|INTO|JOIN) [\"`]?(fetch_subscriptions|org_turns|share_pages)[\"`]? (WHERE |\\([^)]*)|[\"` ](api_tokens|webhook_queue)\\b.*|b\\.organisation_id = d\\.organisation_id)$")
)

// mutate removes each condition on the organisation from each statement, one at a time. storetest.CheckStatement must refuse each changed
// statement.
func mutate(t *testing.T, statements []string) {
	t.Helper()
	slices.Sort(statements)
	statements = slices.Compact(statements)
	mutants := 0
	for _, s := range statements {
		require.NoError(t, storetest.CheckStatement(s))
		for what, found := range map[string]struct {
			at [][]int
			by string
		}{
			"condition":       {organisationConditions.FindAllStringIndex(s, -1), "1 = 1"},
			"column":          {groups(organisationColumns, s), "other_id"},
			"conflict target": {groups(conflictTargets, s), "other_id"},
		} {
			for _, at := range found.at {
				mutant := s[:at[0]] + found.by + s[at[1]:]
				if unbound.MatchString(s[:at[0]]) || unbound.MatchString(s[:at[1]]) {
					continue
				}
				mutants++
				require.Error(t, storetest.CheckStatement(mutant), "the guard accepts a statement without the %s: %s", what, mutant)
			}
		}
	}
	require.Greater(t, mutants, len(statements)/2, "the patterns match too few statements")
}

// groups returns, for each match of a pattern in s, the start and end of the pattern's first capture group.
func groups(pattern *regexp.Regexp, s string) [][]int {
	var at [][]int
	for _, m := range pattern.FindAllStringSubmatchIndex(s, -1) {
		at = append(at, m[2:4])
	}
	return at
}
