package docs_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/bench/report"
)

// TestPerformance_pageAndPictureShowTheMeasuredResults requires performance.md and the chart bench.svg to show the results in
// testdata/bench.json. The command `make bench DOCS=1` writes these results.
func TestPerformance_pageAndPictureShowTheMeasuredResults(t *testing.T) {
	t.Parallel()
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(readDocument(t, "testdata/bench.json")), &r))
	page, err := r.Page(readDocument(t, "performance.md"))
	require.NoError(t, err)
	requireGeneratedText(t, "performance.md", page)
	requireGeneratedText(t, "bench.svg", r.Picture())
}

// documentedGroup matches the first cell of a row of the table in the section "What is measured" of performance.md.
var documentedGroup = regexp.MustCompile(`(?m)^\| (\w+) \|`)

func TestPerformance_pageExplainsEveryGroup(t *testing.T) {
	t.Parallel()
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(readDocument(t, "testdata/bench.json")), &r))
	measured, explained := map[string]bool{}, map[string]bool{}
	for _, result := range r.Results {
		measured[result.Group] = true
	}
	section := regexp.MustCompile(`(?s)## What is measured\n(.*?)\n- `).FindStringSubmatch(readDocument(t, "performance.md"))
	require.Len(t, section, 2)
	for _, m := range documentedGroup.FindAllStringSubmatch(section[1], -1)[1:] { // the first match is the header of the table
		explained[m[1]] = true
	}
	require.Equal(t, explained, measured)
}
