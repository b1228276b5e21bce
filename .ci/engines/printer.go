package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A printer writes events as `go test` writes its output: of a package that passed its last line, of one that failed
// also all that its failed tests wrote, in the order in which they wrote it.
type printer struct {
	w       io.Writer
	running map[string]*packageOutput
	// failed are the tests and packages that failed, in the order in which they ended.
	failed []string
	ended  int  // tests
	silent bool // since the last tick
}

// packageOutput is what a package has written so far.
type packageOutput struct {
	lines []event
	ended map[string]string // test → pass, fail or skip
}

func newPrinter(w io.Writer) *printer {
	return &printer{w: w, running: map[string]*packageOutput{}, silent: true}
}

func (p *printer) say(text string) {
	p.silent = false
	fmt.Fprint(p.w, text)
}

// signOfLife writes what is running, unless something was written since the last call.
func (p *printer) signOfLife() {
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
		p.say(e.Output)
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
		if out.ended[e.Test] != "fail" { // with -count the worst run tells
			out.ended[e.Test] = e.Action
		}
		if e.Action == "fail" {
			p.failed = append(p.failed, e.Package+" "+e.Test)
		}
	}
}

// end writes a package's output, at its end.
func (p *printer) end(e event, out *packageOutput) {
	delete(p.running, e.Package)
	for _, line := range out.lines {
		if e.Action != "fail" && (line.Test != "" || strings.HasPrefix(line.Output, "-test.shuffle ")) ||
			line.Test != "" && out.isFine(line) || line.Output == "PASS\n" {
			continue
		}
		p.say(line.Output)
	}
	if e.Action == "fail" {
		p.failed = append(p.failed, e.Package)
	}
}

// isFine says whether a line of a test in a failed package tells nothing. What a test wrote that did not end does: the
// process died in it, or beside it.
func (out *packageOutput) isFine(line event) bool {
	if outcome := out.ended[line.Test]; outcome == "pass" || outcome == "skip" {
		return true
	}
	for _, frame := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME "} {
		if strings.HasPrefix(line.Output, frame) {
			return true
		}
	}
	return false
}

// close writes what packages wrote that did not end, and returns all that failed as an error.
func (p *printer) close() error {
	for _, pkg := range slices.Sorted(maps.Keys(p.running)) {
		p.end(event{Action: "fail", Package: pkg}, p.running[pkg])
	}
	if len(p.failed) == 0 {
		return nil
	}
	return fmt.Errorf("failed:\n  %s", strings.Join(p.failed, "\n  "))
}
