package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// These constants are the outcomes of a test. If a test runs several times (go test -count), its worst outcome counts.
const (
	missing    = "-" // the test did not run on this database engine
	passed     = "ok"
	skipped    = "skipped"
	unfinished = "unfinished" // the test process ended before the test ended
	failed     = "FAIL"
)

// outcomeOrder lists the outcomes from the best to the worst.
var outcomeOrder = []string{missing, passed, skipped, unfinished, failed}

// testName is the package and the name of a test. The name can have * in place of a database engine, as in TestVideos/*.
type testName struct{ pkg, name string }

// outcomes has the worst outcome of each test so far.
type outcomes map[testName]string

// addEvent updates the outcome of the test to which the event belongs. It ignores events of whole packages.
func (o outcomes) addEvent(e event) {
	if e.Test == "" {
		return
	}
	t := testName{e.Package, e.Test}
	switch e.Action {
	case "run":
		if _, again := o[t]; !again {
			o[t] = unfinished
		}
	case "pass":
		o.recordEnd(t, passed)
	case "skip":
		o.recordEnd(t, skipped)
	case "fail":
		o.recordEnd(t, failed)
	}
}

// recordEnd records the outcome of one run of a test. If an earlier run of this test had a worse outcome, recordEnd keeps the worse one.
func (o outcomes) recordEnd(t testName, outcome string) {
	if o[t] == unfinished || slices.Index(outcomeOrder, o[t]) < slices.Index(outcomeOrder, outcome) {
		o[t] = outcome
	}
}

// testCase has the outcomes of a test that runs on several database engines. The name of the test has * instead of the engine.
type testCase struct {
	testName
	on map[string]string // a map from the name of an engine to the outcome on this engine
}

// cases returns the tests that run on several database engines, sorted by package and name. It
// leaves out each test that has subtests.
func (o outcomes) cases(engines []string) []testCase {
	parents := map[testName]bool{}
	for t := range o {
		for i, c := range t.name {
			if c == '/' {
				parents[testName{t.pkg, t.name[:i]}] = true
			}
		}
	}
	byName := map[testName]testCase{}
	for t, outcome := range o {
		name, engine := splitTestName(t.name, engines)
		// Leave out tests whose name contains no engine, and parents of other tests.
		if engine == "" || parents[t] {
			continue
		}
		key := testName{t.pkg, name}
		if _, seen := byName[key]; !seen {
			byName[key] = testCase{key, map[string]string{}}
		}
		byName[key].on[engine] = outcome
	}
	sorted := make([]testCase, 0, len(byName))
	for _, c := range byName {
		sorted = append(sorted, c)
	}
	slices.SortFunc(sorted, func(a, b testCase) int {
		if d := strings.Compare(a.pkg, b.pkg); d != 0 {
			return d
		}
		return strings.Compare(a.name, b.name)
	})
	return sorted
}

// splitTestName splits the test name TestVideos/sqlite into TestVideos/* and the engine sqlite. A
// name without an engine is returned unchanged, with an empty engine.
func splitTestName(name string, engines []string) (generic, engine string) {
	parts := strings.Split(name, "/")
	for i, part := range parts[1:] {
		if slices.Contains(engines, part) {
			parts[i+1] = "*"
			return strings.Join(parts, "/"), part
		}
	}
	return name, ""
}

// checkForSkippedTests returns an error that lists the skipped tests. If skipped tests are allowed, it prints only their number.
func checkForSkippedTests(w io.Writer, o outcomes, allowed bool) error {
	var names []string
	for t, outcome := range o {
		if outcome == skipped {
			names = append(names, "  "+t.pkg+" "+t.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if allowed {
		_, err := fmt.Fprintf(w, "Skipped by -short: %d tests. make check runs them.\n", len(names))
		return err
	}
	slices.Sort(names)
	return fmt.Errorf("skipped tests:\n%s", strings.Join(names, "\n"))
}

// printReport prints a table of the test cases, grouped by package. It returns an error if a test
// case did not pass on every engine.
func printReport(w io.Writer, cases []testCase, opts options) error {
	engines := opts.engines
	if len(cases) == 0 {
		return fmt.Errorf("no test case ran: no test has a subtest named %s", strings.Join(engines, " or "))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var faults []string
	pkg := ""
	for _, c := range cases {
		if c.pkg != pkg {
			pkg = c.pkg
			fmt.Fprintf(table, "\n%s\t%s\n", pkg, strings.Join(engines, "\t"))
		}
		fmt.Fprintf(table, "  %s", c.name)
		for _, engine := range engines {
			outcome, seen := c.on[engine]
			if !seen {
				outcome = missing
			}
			fmt.Fprintf(table, "\t%s", outcome)
			// If opts.short is true, a skipped test case counts as passed.
			if outcome != passed && (outcome != skipped || !opts.short) {
				faults = append(faults, fmt.Sprintf("  %s %s, %s: %s", c.pkg, c.name, engine, explainOutcome(outcome)))
			}
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintln(table)
	if err := table.Flush(); err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d of %d results (one for each test case and engine) are not ok:\n%s", len(faults), len(cases)*len(engines), strings.Join(faults, "\n"))
	}
	_, err := fmt.Fprintf(w, "%d cases passed on %s.\n", len(cases), strings.Join(engines, " and "))
	return err
}

func explainOutcome(outcome string) string {
	switch outcome {
	case missing:
		return "did not run"
	case skipped:
		return "skipped"
	case unfinished:
		return "did not end"
	default:
		return "failed"
	}
}
