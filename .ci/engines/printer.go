package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// printer gets the events of `go test -json`, and prints the output of the tests as `go test` would
// print it.
type printer struct {
	w       io.Writer
	running map[string]*packageOutput
	failed  []string // descriptions of the failed tests and packages, in the order in which they ended
	ended   int      // number of tests that ended
	silent  bool     // true if nothing was printed since the last call of printProgress
}

// packageOutput has the output of a package whose tests are still running, and the outcomes of its tests.
type packageOutput struct {
	lines []event
	ended map[string]string // a map from the name of a test to its outcome: pass, fail or skip
}

func newPrinter(w io.Writer) *printer {
	return &printer{w: w, running: map[string]*packageOutput{}, silent: true}
}

// printText writes a text immediately.
func (p *printer) printText(text string) {
	p.silent = false
	fmt.Fprint(p.w, text)
}

// printProgress prints the running packages if nothing was printed since the last call.
func (p *printer) printProgress() {
	if p.silent {
		doing := "go test is still building"
		if len(p.running) > 0 {
			doing = "packages whose tests are running: " + strings.Join(slices.Sorted(maps.Keys(p.running)), " ")
		}
		fmt.Fprintf(p.w, "... %d tests have ended; %s\n", p.ended, doing)
	}
	p.silent = true
}

// addEvent handles one event of "go test -json". It stores the output of a package until the package ends, and then
// calls printPackage. It prints the output of a build immediately.
func (p *printer) addEvent(e event) {
	switch e.Action {
	case "build-output":
		p.printText(e.Output)
		return
	case "build-fail":
		p.failed = append(p.failed, e.ImportPath+" does not build")
		return
	}
	out := p.running[e.Package]
	if out == nil {
		out = &packageOutput{ended: map[string]string{}}
		p.running[e.Package] = out
	}
	switch e.Action {
	case "output":
		out.lines = append(out.lines, e)
	case "pass", "fail", "skip":
		if e.Test == "" {
			p.printPackage(e, out)
			return
		}
		p.ended++
		if out.ended[e.Test] != "fail" { // a test can run several times (-count); it counts as failed if at least one of its runs failed
			out.ended[e.Test] = e.Action
		}
		if e.Action == "fail" {
			p.failed = append(p.failed, "test "+e.Test+" in package "+e.Package)
		}
	}
}

// printPackage prints the output of a package after its tests have ended.
func (p *printer) printPackage(e event, out *packageOutput) {
	delete(p.running, e.Package)
	for _, line := range out.lines {
		// The output of a test is printed only if the test's package failed.
		if e.Action != "fail" && (line.Test != "" || strings.HasPrefix(line.Output, "-test.shuffle ")) ||
			line.Test != "" && out.isLeftOut(line) || line.Output == "PASS\n" {
			continue
		}
		p.printText(line.Output)
	}
	if e.Action == "fail" {
		p.failed = append(p.failed, "package "+e.Package)
	}
}

// isLeftOut returns true if the printer leaves out an output line of a test. The package of the test must have
// failed.
func (out *packageOutput) isLeftOut(line event) bool {
	if outcome := out.ended[line.Test]; outcome == "pass" || outcome == "skip" {
		return true
	}
	// Lines with these markers only show progress.
	for _, marker := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME "} {
		if strings.HasPrefix(line.Output, marker) {
			return true
		}
	}
	// Lines of an unfinished test are printed, because this test may have crashed the process.
	return false
}

// close prints the output of packages whose tests did not end, and returns an error that lists all failed tests and packages.
func (p *printer) close() error {
	for _, pkg := range slices.Sorted(maps.Keys(p.running)) {
		p.printPackage(event{Action: "fail", Package: pkg}, p.running[pkg])
	}
	if len(p.failed) == 0 {
		return nil
	}
	return fmt.Errorf("failed:\n  %s", strings.Join(p.failed, "\n  "))
}
