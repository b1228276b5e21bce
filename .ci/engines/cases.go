package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Outcomes of a test, worst last: of several runs (-count) the worst counts.
const (
	missing    = "-"
	passed     = "ok"
	skipped    = "skipped"
	unfinished = "unfinished" // started, and then the process died
	failed     = "FAIL"
)

var badness = []string{missing, passed, skipped, unfinished, failed}

// A testName is a test of a package, with its engine or with * in the engine's place.
type testName struct{ pkg, name string }

// outcomes are the outcomes of tests.
type outcomes map[testName]string

func (o outcomes) add(e event) {
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
		o.end(t, passed)
	case "skip":
		o.end(t, skipped)
	case "fail":
		o.end(t, failed)
	}
}

func (o outcomes) end(t testName, outcome string) {
	if o[t] == unfinished || slices.Index(badness, o[t]) < slices.Index(badness, outcome) {
		o[t] = outcome
	}
}

// A testCase is one case and its outcome on each engine that it was seen on.
type testCase struct {
	testName
	on map[string]string
}

// cases returns the cases in the order of package and name.
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
		name, engine := split(t.name, engines)
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

// split takes the engine out of a test's name and leaves a * in its place. The engine is "" when the name has none.
func split(name string, engines []string) (generic, engine string) {
	parts := strings.Split(name, "/")
	for i, part := range parts[1:] {
		if slices.Contains(engines, part) {
			parts[i+1] = "*"
			return strings.Join(parts, "/"), part
		}
	}
	return name, ""
}

// report writes one line a case, under a line for each package, and returns what is wrong.
func report(w io.Writer, cases []testCase, engines []string) error {
	if len(cases) == 0 {
		return fmt.Errorf("no case ran: no test has %s as a part of its name", strings.Join(engines, " or "))
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
			if outcome != passed {
				faults = append(faults, fmt.Sprintf("  %s %s, %s: %s", c.pkg, c.name, engine, explain(outcome)))
			}
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintln(table)
	if err := table.Flush(); err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d cases; not each passed on %s:\n%s", len(cases), strings.Join(engines, " and "), strings.Join(faults, "\n"))
	}
	_, err := fmt.Fprintf(w, "%d cases, each passed on %s.\n", len(cases), strings.Join(engines, " and "))
	return err
}

func explain(outcome string) string {
	switch outcome {
	case missing:
		return "did not run"
	case skipped:
		return "skipped, which counts as not run"
	case unfinished:
		return "did not end"
	default:
		return "failed"
	}
}
