package store_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// organisationConditions finds what binds a table to an organisation, without the guard's own reading of SQL.
var (
	organisationConditions = regexp.MustCompile("(?i)(?:(?:[\"`]?\\w+[\"`]?\\.)?[\"`]?organisation_id[\"`]?) = (?:\\$\\d+|\\?|CAST\\([^)]*\\)|\\w+\\.organisation_id)")
	organisationColumns    = regexp.MustCompile("(?i)INSERT INTO [\"`]?\\w+[\"`]? (?:AS \\w+ )?\\([^)]*?([\"`]?organisation_id[\"`]?)[,)]")
	conflictTargets        = regexp.MustCompile("(?i)ON CONFLICT \\(([\"`]?organisation_id[\"`]?),")

	// unbound are those that are there for other reasons than to bind a distributed table: what comes before them, or they
	// themselves.
	unbound = regexp.MustCompile("(?i)((FROM|INTO|JOIN) [\"`]?(fetch_subscriptions|org_turns|api_tokens)[\"`]? (WHERE |\\([^)]*)|b\\.organisation_id = d\\.organisation_id)$")
)

// mutate takes from each statement each of its conditions on the organisation in turn, and expects the guard to refuse
// what is left.
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
			"column":          {groups(organisationColumns, s), "id_of_somebody"},
			"conflict target": {groups(conflictTargets, s), "id_of_somebody"},
		} {
			for _, at := range found.at {
				mutant := s[:at[0]] + found.by + s[at[1]:]
				if unbound.MatchString(s[:at[0]]) || unbound.MatchString(s[:at[1]]) {
					continue
				}
				mutants++
				require.Error(t, storetest.CheckStatement(mutant), "without a %s it passes: %s", what, mutant)
			}
		}
	}
	require.Greater(t, mutants, len(statements)/2, "the statements were not read")
}

// groups returns where the first group of a pattern was found.
func groups(pattern *regexp.Regexp, s string) [][]int {
	var at [][]int
	for _, m := range pattern.FindAllStringSubmatchIndex(s, -1) {
		at = append(at, m[2:4])
	}
	return at
}
