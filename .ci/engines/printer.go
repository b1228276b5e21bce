package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// printer prints events as `go test` prints its output. For a package that passed it prints the last line. For a package
// that failed it also prints the output of the failed tests, in the original order.
type printer struct {
	w       io.Writer
	running map[string]*packageOutput
	// failed lists the failed tests and packages in the order in which they ended.
	failed []string
	ended  int  // number of tests that ended
	silent bool // nothing was printed since the last tick
}

// packageOutput is the output so far of a package whose tests are running.
type packageOutput struct {
	lines []event
	ended map[string]string // outcome by test name: pass, fail or skip
}

func newPrinter(w io.Writer) *printer {
	return &printer{w: w, running: map[string]*packageOutput{}, silent: true}
}

func (p *printer) print(text string) {
	p.silent = false
	fmt.Fprint(p.w, text)
}

// printProgress prints the running packages, unless something was printed since the last call.
func (p *printer) printProgress() {
	if p.silent {
		doing := "building"
		if len(p.running) > 0 {
			doing = "running: " + strings.Join(slices.Sorted(maps.Keys(p.running)), " ")
		}
		fmt.Fprintf(p.w, "... %d tests ended, %s\n", p.ended, doing)
	}
	p.silent = true
}

func (p *printer) add(e event) {
	switch e.Action {
	case "build-output":
		p.print(e.Output)
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
			p.end(e, out)
			return
		}
		p.ended++
		if out.ended[e.Test] != "fail" { // with -count, a test has failed if one of its runs failed
			out.ended[e.Test] = e.Action
		}
		if e.Action == "fail" {
			p.failed = append(p.failed, e.Package+" "+e.Test)
		}
	}
}

// end prints the output of a package that ended.
func (p *printer) end(e event, out *packageOutput) {
	delete(p.running, e.Package)
	for _, line := range out.lines {
		if e.Action != "fail" && (line.Test != "" || strings.HasPrefix(line.Output, "-test.shuffle ")) ||
			line.Test != "" && out.isNoise(line) || line.Output == "PASS\n" {
			continue
		}
		p.print(line.Output)
	}
	if e.Action == "fail" {
		p.failed = append(p.failed, e.Package)
	}
}

// isNoise reports whether the printer leaves out a line of a test in a failed package: the test passed or was skipped, or the line only
// marks its progress. The output of a test that did not end is kept, because the process can have ended in that test.
func (out *packageOutput) isNoise(line event) bool {
	if outcome := out.ended[line.Test]; outcome == "pass" || outcome == "skip" {
		return true
	}
	for _, marker := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME "} {
		if strings.HasPrefix(line.Output, marker) {
			return true
		}
	}
	return false
}

// close prints the output of packages that did not end, and returns an error that lists every failed test and package.
func (p *printer) close() error {
	for _, pkg := range slices.Sorted(maps.Keys(p.running)) {
		p.end(event{Action: "fail", Package: pkg}, p.running[pkg])
	}
	if len(p.failed) == 0 {
		return nil
	}
	return fmt.Errorf("failed:\n  %s", strings.Join(p.failed, "\n  "))
}
