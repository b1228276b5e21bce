// Package report formats the results of the benchmark: as text for a terminal, as a table in Markdown, and as a chart. The command bench and the
// tests of docs use it, so that the documents always show the stored results.
package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Report has the results of one run of the benchmark, and the machine and data of the run. It is stored as JSON.
type Report struct {
	Date     string   `json:"date"` // UTC date of the run
	Revision string   `json:"revision"`
	Machine  Machine  `json:"machine"`
	Data     Data     `json:"data"`
	Rounds   int      `json:"rounds"`
	Slack    float64  `json:"slack"`
	Results  []Result `json:"results"`
	Facts    []Fact   `json:"facts"`
}

// Machine describes the computer and the database server of a run.
type Machine struct {
	CPU        string            `json:"cpu"`
	Cores      int               `json:"cores"`
	MemoryGiB  float64           `json:"memory_gib"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Settings   map[string]string `json:"settings"` // settings of PostgreSQL that change the speed
}

// Data says how many videos, points and organisations the database of a run had.
type Data struct {
	Videos        int   `json:"videos"`        // videos of the organisation whose data is read
	OtherVideos   int64 `json:"other_videos"`  // videos of all other organisations
	Points        int64 `json:"points"`        // rows of snapshots_daily and snapshots_weekly
	Organisations int   `json:"organisations"` // number of organisations
}

// Result is the result of one comparison of the benchmark.
type Result struct {
	Group    string  `json:"group"`
	Name     string  `json:"name"`
	Ratio    float64 `json:"ratio"`              // Measured divided by Limit
	Goal     float64 `json:"goal"`               // highest allowed ratio
	AtLeast  bool    `json:"at_least,omitempty"` // if true, Goal is the lowest allowed ratio instead of the highest
	Measured float64 `json:"measured_ms"`        // median time of the step "measured", in milliseconds
	Limit    float64 `json:"limit_ms"`           // median time of the step "limit", in milliseconds
	// LowestRatio is (Limit + the time of a minimal HTTP request) / Limit. A server can hardly reach a lower Ratio. LowestRatio is 0 if it
	// was not computed.
	LowestRatio float64 `json:"with_http,omitempty"`
}

// Fact is a measurement that is only reported. It has no goal, so it cannot fail the benchmark.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Slack is the factor by which a ratio may miss its goal. It is above 1 because ratios vary by about
// a quarter between runs on a small machine.
const Slack = 1.25

// Share compares the ratio with its goal. It returns 1 if both are equal, less than 1 for a better ratio, and
// more than 1 for a worse ratio.
func (r Result) Share() float64 {
	if r.AtLeast {
		return r.Goal / r.Ratio
	}
	return r.Ratio / r.Goal
}

// Verdict returns "met" if the ratio meets the goal, "close" if it misses the goal by at most the factor Slack, and "missed" otherwise.
func (r Result) Verdict() string {
	switch share := r.Share(); {
	case share <= 1:
		return "met"
	case share <= Slack:
		return "close"
	}
	return "missed"
}

// IsGoalUnreachable returns true if the goal is the highest allowed ratio, but is lower than LowestRatio.
func (r Result) IsGoalUnreachable() bool { return !r.AtLeast && r.LowestRatio > r.Goal }

// formatVerdict returns the verdict as text. If the goal can hardly be reached, the text also says which ratio is possible.
func (r Result) formatVerdict() string {
	if r.IsGoalUnreachable() {
		return fmt.Sprintf("%s (a ratio below %.2f is hardly possible)", r.Verdict(), r.LowestRatio)
	}
	return r.Verdict()
}

// formatGoal formats the goal, such as "≤ 1.5".
func (r Result) formatGoal() string {
	if r.AtLeast {
		return fmt.Sprintf("≥ %.1f", r.Goal)
	}
	return fmt.Sprintf("≤ %.1f", r.Goal)
}

// CountMissed returns the number of results that miss their goal by more than the factor Slack.
func (r Report) CountMissed() int {
	n := 0
	for _, result := range r.Results {
		if result.Verdict() == "missed" {
			n++
		}
	}
	return n
}

// Print writes the results, one a line, and then the measurements that have no goal.
func (r Report) Print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	group := ""
	for _, result := range r.Results {
		if result.Group != group {
			group = result.Group
			fmt.Fprintf(w, "\n%s\tratio\tgoal\t\tmeasured\tlimit\n", strings.ToUpper(group))
		}
		fmt.Fprintf(w, "%s\t%.2f\t%s\t%s\t%.3f ms\t%.3f ms\n", result.Name, result.Ratio, result.formatGoal(), result.formatVerdict(), result.Measured, result.Limit)
	}
	if len(r.Facts) > 0 {
		fmt.Fprintln(w)
	}
	for _, f := range r.Facts {
		fmt.Fprintf(w, "%s\t%s\n", f.Name, f.Value)
	}
	return w.Flush()
}

// Begin and End are the lines of docs/performance.md between which the results stand. Page replaces the text between them.
const (
	Begin = "<!-- The text from here to the next comment is written by `make bench DOCS=1`. -->\n"
	End   = "<!-- End of the text that is written by `make bench DOCS=1`. -->\n"
)

// Page returns the document with this report's results between the lines Begin and End. It returns
// an error if one of these lines is missing.
func (r Report) Page(document string) (string, error) {
	before, rest, found := strings.Cut(document, Begin)
	_, after, ended := strings.Cut(rest, End)
	if !found || !ended {
		return "", fmt.Errorf("the document must have a line %q and, after it, a line %q", strings.TrimSpace(Begin), strings.TrimSpace(End))
	}
	return before + Begin + "\n" + r.Table() + "\n" + End + after, nil
}

// Table returns the report as Markdown: a description of the run, the results, and the measurements without goals.
func (r Report) Table() string {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "Measured on %s, revision `%s`, on %s with %d cores and %.0f GiB of memory, %s and PostgreSQL %s (%s). All programs ran on this machine.\n", r.Date,
		r.Revision, m.CPU, m.Cores, m.MemoryGiB, m.Go, m.PostgreSQL, formatSettings(m.Settings))
	fmt.Fprintf(&b, "The requests read an organisation with %s videos. The other %s organisations had %s videos together, and the database had %s points. Each time is the median of %d rounds.\n",
		formatThousands(int64(r.Data.Videos)), formatThousands(int64(r.Data.Organisations-1)), formatThousands(r.Data.OtherVideos), formatThousands(r.Data.Points), r.Rounds)
	fmt.Fprintf(&b, "Goals met: %d of %d. Missed by at most %d %%: %d. Missed by more: %d.\n", r.countVerdicts("met"), len(r.Results), int(100*(Slack-1)), r.countVerdicts("close"), r.countVerdicts("missed"))
	if n := r.countUnreachableGoals(); n > 0 {
		fmt.Fprintf(&b, "Goals that can hardly be met, because an HTTP request alone takes too long: %d.\n", n)
	}
	group := ""
	for _, result := range r.Results {
		if result.Group != group {
			group = result.Group
			fmt.Fprintf(&b, "\n### %s\n\n| Case | Ratio | Goal | Result | Measured, ms | Limit, ms |\n|---|--:|--:|---|--:|--:|\n", group)
		}
		fmt.Fprintf(&b, "| %s | %.2f | %s | %s | %.3f | %.3f |\n", result.Name, result.Ratio, result.formatGoal(), result.formatVerdict(), result.Measured, result.Limit)
	}
	if len(r.Facts) > 0 {
		b.WriteString("\n### Without goals\n\n| What | Measured |\n|---|---|\n")
	}
	for _, f := range r.Facts {
		fmt.Fprintf(&b, "| %s | %s |\n", f.Name, f.Value)
	}
	return b.String()
}

// countVerdicts returns the number of results that have the given verdict: "met", "close" or "missed".
func (r Report) countVerdicts(verdict string) int {
	n := 0
	for _, result := range r.Results {
		if result.Verdict() == verdict {
			n++
		}
	}
	return n
}

// countUnreachableGoals returns the number of results whose goal is lower than LowestRatio.
func (r Report) countUnreachableGoals() int {
	n := 0
	for _, result := range r.Results {
		if result.IsGoalUnreachable() {
			n++
		}
	}
	return n
}
