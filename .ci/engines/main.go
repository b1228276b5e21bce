// Command engines reads the events of `go test -json`, writes what `go test` would have written, and says at the end
// which cases ran on which database engine.
//
//	go test -json ./... | go run ./.ci/engines
//
// A case is a test with an engine's name as one part of its name, such as TestVideos_list/sqlite/empty; without that
// part, which is shown as *, its name is the same on each engine. Only innermost tests count: a test with subtests is
// as good as they are. The exit status is 1 when a test failed, when a case did not run on every engine (a skipped one
// did not run), or when there is no case at all. With -part, for a part of the tests, only failures count and there is
// no table.
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

func main() {
	engines := flag.String("engines", "sqlite,postgres", "the engines that every case must run on, comma-separated")
	part := flag.Bool("part", false, "the tests are a part of all: do not ask whether every case met every engine")
	flag.Parse()
	if *part {
		*engines = ""
	}
	quiet := time.NewTicker(30 * time.Second)
	if err := run(os.Stdin, os.Stdout, strings.FieldsFunc(*engines, func(r rune) bool { return r == ',' }), quiet.C); err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

// An event is one line of `go test -json`; `go doc test2json` explains it.
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // of what did not build, in place of Package
}

// run reads events from r and writes to w. On each tick it writes a sign of life if nothing else was written since the
// last. Without engines no table is made. The error says what failed, in full if the output above does not.
func run(r io.Reader, w io.Writer, engines []string, tick <-chan time.Time) error {
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
				p.say(line) // not an event, so written past the test framework: worth seeing
			default:
				p.add(e)
				o.add(e)
			}
		case <-tick:
			p.signOfLife()
		}
	}
	if err := <-broken; err != nil {
		return fmt.Errorf("reading the events: %w", err)
	}
	failures := p.close()
	if len(engines) == 0 {
		return failures
	}
	return errors.Join(failures, report(w, o.cases(engines), engines))
}
