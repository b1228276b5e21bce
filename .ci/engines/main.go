// Command engines prints a table that shows which test case ran on which database engine. It reads the events of `go test -json` from
// standard input. Before the table, it prints the output that `go test` would have printed. Usage:
//
//	go test -json ./... | go run ./.ci/engines
//
// A test case is a test without subtests. One part of its name is an engine, as in TestVideos_list/sqlite/empty. The table shows this case as
// TestVideos_list/*/empty.
//
// The exit status is 1 if a test failed or was skipped. It is also 1 if a test case did not run on every engine, or if there is no test case. Two
// flags change this:
//
//   - -short allows skipped tests.
//   - -part is for a run of only some tests. The command then does not check the test cases, and prints no table. Only failed and skipped
//     tests lead to the exit status 1.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// options are the requirements that a test run must meet.
type options struct {
	// engines are the database engines on which every test case must run. If the list is empty, the command does not check the engines and prints
	// no table.
	engines []string
	// If short is true, skipped tests are allowed.
	short bool
}

func main() {
	engines := flag.String("engines", "sqlite,postgres", "comma-separated engines on which every case must run")
	part := flag.Bool("part", false, "set if only a part of the tests ran; a case then need not run on every engine")
	short := flag.Bool("short", false, "set if the tests ran with -short; skipped tests are then allowed")
	flag.Parse()
	o := options{short: *short}
	if !*part {
		o.engines = strings.FieldsFunc(*engines, func(r rune) bool { return r == ',' })
	}
	quiet := time.NewTicker(30 * time.Second)
	if err := run(os.Stdin, os.Stdout, o, quiet.C); err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

// event is one line of `go test -json`; `go doc test2json` explains it.
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // the package whose build failed; Package is "" in such an event
}

// run reads events from r, and prints the output of the tests to w. At each tick, it calls printProgress. If opts.engines is not empty, it
// also prints a table of the test cases. The returned error lists all failures.
func run(r io.Reader, w io.Writer, opts options, tick <-chan time.Time) error {
	lines, broken := make(chan string), make(chan error, 1)
	go func() {
		defer close(lines)
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					broken <- err
				}
				close(broken)
				return
			}
		}
	}()

	p, o := newPrinter(w), outcomes{}
	for reading := true; reading; {
		select {
		case line, more := <-lines:
			reading = more
			var e event
			switch err := json.Unmarshal([]byte(line), &e); {
			case !more:
			case err != nil:
				p.printText(line) // a line that is not JSON is the output of a program
			default:
				p.addEvent(e)
				o.addEvent(e)
			}
		case <-tick:
			p.printProgress()
		}
	}
	if err := <-broken; err != nil {
		return fmt.Errorf("cannot read the events of go test: %w", err)
	}
	failures := errors.Join(p.close(), checkForSkippedTests(w, o, opts.short))
	if len(opts.engines) == 0 {
		return failures
	}
	return errors.Join(failures, printReport(w, o.cases(opts.engines), opts))
}
