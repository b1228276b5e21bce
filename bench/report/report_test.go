package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/bench/report"
)

func TestVerdict_comparesTheRatioWithTheGoal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ratio, goal float64
		atLeast     bool
		want        string
	}{
		{1.5, 1.5, false, "met"}, {1.8, 1.5, false, "close"}, {1.9, 1.5, false, "missed"},
		{8, 8, true, "met"}, {20, 8, true, "met"}, {6.5, 8, true, "close"}, {6, 8, true, "missed"},
	} {
		require.Equal(t, c.want, report.Result{Ratio: c.ratio, Goal: c.goal, AtLeast: c.atLeast}.Verdict(), "%+v", c)
	}
}

func TestReport_countsResultsOutsideTheToleranceAsMissed(t *testing.T) {
	t.Parallel()
	r := report.Report{Results: []report.Result{{Ratio: 1, Goal: 1}, {Ratio: 1.2, Goal: 1}, {Ratio: 1.3, Goal: 1}, {Ratio: 2, Goal: 4, AtLeast: true}}}
	require.Equal(t, 2, r.CountMissed())
	require.Contains(t, r.Table(), "Goals met: 1 of 4. Missed by at most 25 %: 1. Missed by more: 2.")
}

func TestReport_saysWhichGoalsCanHardlyBeMet(t *testing.T) {
	t.Parallel()
	r := report.Report{Results: []report.Result{
		{Ratio: 3, Goal: 2, LowestRatio: 2.25}, {Ratio: 3, Goal: 2, LowestRatio: 1.5}, {Ratio: 3, Goal: 2}, {Ratio: 3, Goal: 8, AtLeast: true},
	}}
	table := r.Table()
	require.Equal(t, 1, strings.Count(table, "missed (a ratio below 2.25 is hardly possible)"))
	require.Equal(t, 1, strings.Count(table, "below"))
	require.Contains(t, table, "Goals that can hardly be met, because an HTTP request alone takes too long: 1.")
}

func TestPage_replacesOnlyTheTextBetweenTheComments(t *testing.T) {
	t.Parallel()
	r := report.Report{Results: []report.Result{{Group: "Lists", Name: "<list>", Ratio: 0.5, Goal: 1}}}
	page, err := r.Page("before\n" + report.Begin + "old\n" + report.End + "after\n")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(page, "before\n") && strings.HasSuffix(page, "after\n"))
	require.Contains(t, page, r.Table())
	require.NotContains(t, page, "old")
	again, err := r.Page(page)
	require.NoError(t, err)
	require.Equal(t, page, again)
	require.Contains(t, r.Picture(), "&lt;list&gt;")

	_, err = r.Page("before\n" + report.End + report.Begin)
	require.ErrorContains(t, err, "the document must have a line \"<!-- The text from here to the next comment is written by")
}
