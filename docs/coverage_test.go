package docs_test

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally"
)

// row is one line of testdata/spec_rows.csv: a requirement of the specification, or the heading of a section if the id has no dash.
type row struct{ id, statement string }

func (r row) isHeading() bool { return !strings.Contains(r.id, "-") }

func specRows(t *testing.T) []row {
	t.Helper()
	file, err := os.Open("testdata/spec_rows.csv")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	lines, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	rows, seen := make([]row, 0, len(lines)), map[string]bool{}
	for _, l := range lines[1:] {
		require.False(t, seen[l[0]], "row %s occurs twice", l[0])
		seen[l[0]] = true
		rows = append(rows, row{l[0], l[1]})
	}
	return rows
}

const coverageIntro = `# Requirements and their tests

` +
	"`go test ./docs -update` writes this page. " +
	"A test fails if the page is out of date, or if a requirement has no test. " +
	"The requirements are in `docs/testdata/spec_rows.csv`.\nThe requirements of sections 2 to 8 are from the specification. Section 6 of the specification has no requirements. The requirements from 11.1 on are additions. " +
	"If the specification leaves something open, the row says so. " +
	"A comment above\neach test lists the requirements that the test checks: `// Requirements in docs/coverage.md: 4.2-07, 4.2-08`.\n"

func TestCoverage_everyRequirementHasTest(t *testing.T) {
	t.Parallel()
	rows := specRows(t)
	all, faults := allTests()
	shownBy, known := map[string][]testFunc{}, map[string]bool{}
	for _, r := range rows {
		known[r.id] = !r.isHeading()
	}
	for _, f := range all {
		for _, id := range f.rows {
			if !known[id] {
				faults = append(faults, fmt.Sprintf("%s: the comment of %s names the requirement %q, which testdata/spec_rows.csv does not have", f.file, f.name, id))
			}
			if slices.ContainsFunc(shownBy[id], func(other testFunc) bool { return other.file == f.file && other.name == f.name }) {
				faults = append(faults, fmt.Sprintf("%s: the comment of %s names the requirement %s twice", f.file, f.name, id))
			}
			shownBy[id] = append(shownBy[id], f)
		}
	}
	var out strings.Builder
	out.WriteString(coverageIntro)
	for _, r := range rows {
		if r.isHeading() {
			fmt.Fprintf(&out, "\n## %s %s\n\n| Row | Requirement | Shown by |\n| --- | --- | --- |\n", r.id, r.statement)
			continue
		}
		if len(shownBy[r.id]) == 0 {
			faults = append(faults, fmt.Sprintf("there is no test for the requirement %s: %s", r.id, r.statement))
		}
		var names []string
		for _, f := range shownBy[r.id] {
			names = append(names, fmt.Sprintf("[%s.%s](../%s)", path.Dir(f.file), f.name, f.file))
		}
		slices.Sort(names)
		fmt.Fprintf(&out, "| %s | %s | %s |\n", r.id, r.statement, strings.Join(names, ", "))
	}
	require.Empty(t, faults, strings.Join(faults, "\n"))
	out.WriteString(declaredAnswers(t))
	requireGeneratedText(t, "coverage.md", out.String())
}

// declaredAnswers returns a Markdown table of the operations in openapi.yaml with their declared
// status codes.
func declaredAnswers(t *testing.T) string {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData([]byte(reeltally.OpenAPI))
	require.NoError(t, err)
	var out strings.Builder
	out.WriteString("\n## Operations and their responses\n\nThe server's tests compare every request and response with the contract: status, headers, body. " +
		"If one of these responses\ndid not occur in a test run, the run fails in `TestMain` ([server/harness_test.go](../server/harness_test.go)).\n\n" +
		"| Operation | Request | Responses |\n| --- | --- | --- |\n")
	var lines []string
	for at, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			lines = append(lines, fmt.Sprintf("| %s | `%s %s` | %s |\n", op.OperationID, method, at,
				strings.Join(slices.Sorted(maps.Keys(op.Responses.Map())), ", ")))
		}
	}
	slices.Sort(lines)
	out.WriteString(strings.Join(lines, ""))
	return out.String()
}
