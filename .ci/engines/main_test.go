package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var both = options{engines: []string{"sqlite", "postgres"}}

// runGoTest runs `go test -json` on test functions, whose Go source is body. It passes the events to the function "run". It returns the
// output and the error of "run". The flag -count=1 makes go test run the functions again, although it stored the results of an earlier run.
func runGoTest(t *testing.T, opts options, body string) (output string, err error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module toy\n\ngo 1.26\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "toy_test.go"), []byte("package toy\n\nimport \"testing\"\n\n"+body), 0o600))
	test := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-json", "./...")
	test.Dir = dir
	test.Env = append(os.Environ(), "GOFLAGS=-trimpath -vet=off", "GOWORK=off")
	events, _ := test.Output() // go test returns an error if a test fails
	var out bytes.Buffer
	err = run(bytes.NewReader(events), &out, opts, nil)
	return out.String(), err
}

// runCommandOnEvents passes events of `go test -json`, one on each line, to the command. It returns the output and the error of the command.
func runCommandOnEvents(opts options, events ...string) (output string, err error) {
	var out bytes.Buffer
	err = run(strings.NewReader(strings.Join(events, "\n")+"\n"), &out, opts, nil)
	return out.String(), err
}

// tableRow finds the row of a table whose first cell is `name`, and returns the other cells of this row.
func tableRow(t *testing.T, table, name string) []string {
	t.Helper()
	for line := range strings.Lines(table) {
		if cells := strings.Fields(line); len(cells) > 0 && cells[0] == name {
			return cells[1:]
		}
	}
	require.Failf(t, "no such row", "%s in\n%s", name, table)
	return nil
}

func TestRun_printsATableOfTestCases(t *testing.T) {
	t.Parallel()

	t.Run("each case passed on each engine", func(t *testing.T) {
		t.Parallel()
		table, err := runGoTest(t, both, `
func TestA(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) { t.Run("keeps a name", func(t *testing.T) {}) })
	}
}

func TestB(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {})
	}
}

func TestPlain(t *testing.T) { t.Run("postgresql", func(t *testing.T) {}) }
`)
		require.NoError(t, err)
		require.Equal(t, []string{"sqlite", "postgres"}, tableRow(t, table, "toy"))
		require.Equal(t, []string{"ok", "ok"}, tableRow(t, table, "TestA/*/keeps_a_name"))
		require.Equal(t, []string{"ok", "ok"}, tableRow(t, table, "TestB/*"))
		require.NotContains(t, table, "TestPlain")
		require.NotContains(t, table, "TestA/*  ", "a test with subtests must not count as a test case")
		require.Contains(t, table, "2 cases passed on sqlite and postgres.")
	})

	t.Run("a case ran on one engine only", func(t *testing.T) {
		t.Parallel()
		table, err := runGoTest(t, both, `
func TestA(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { t.Run("x", func(t *testing.T) {}) })
	t.Run("postgres", func(t *testing.T) {
		t.Run("x", func(t *testing.T) {})
		t.Run("y", func(t *testing.T) {})
	})
}
`)
		require.ErrorContains(t, err, "toy TestA/*/y, sqlite: did not run")
		require.NotContains(t, err.Error(), "TestA/*/x")
		require.Equal(t, []string{"-", "ok"}, tableRow(t, table, "TestA/*/y"))
	})

	t.Run("one case was skipped, one failed and one panicked", func(t *testing.T) {
		t.Parallel()
		table, err := runGoTest(t, both, `
func TestA(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {})
	t.Run("postgres", func(t *testing.T) { t.Skip("no server") })
}

func TestB(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { t.Error("wrong") })
	t.Run("postgres", func(t *testing.T) {})
}

func TestC(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {})
	t.Run("postgres", func(t *testing.T) {
		t.Run("dies", func(t *testing.T) { panic("the process ends") })
	})
}
`)
		require.ErrorContains(t, err, "toy TestA/*, postgres: skipped")
		require.ErrorContains(t, err, "toy TestB/*, sqlite: failed")
		require.Equal(t, []string{"ok", "skipped"}, tableRow(t, table, "TestA/*"))
		require.Equal(t, []string{"FAIL", "ok"}, tableRow(t, table, "TestB/*"))
		require.Equal(t, []string{"-", "FAIL"}, tableRow(t, table, "TestC/*/dies"))
	})

	t.Run("a test without an engine was skipped", func(t *testing.T) {
		t.Parallel()
		_, err := runGoTest(t, options{}, `func TestA(t *testing.T) { t.Skip("no browser") }`)
		require.ErrorContains(t, err, "skipped tests:\n  toy TestA")
	})

	t.Run("short mode allows skipped tests", func(t *testing.T) {
		t.Parallel()
		short := both
		short.short = true
		table, err := runGoTest(t, short, `
func TestA(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {})
	t.Run("postgres", func(t *testing.T) {})
}

func TestB(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) { t.Skip("long") })
	}
}

func TestC(t *testing.T) { t.Skip("long") }
`)
		require.NoError(t, err)
		require.Contains(t, table, "Skipped by -short: 3 tests. make check runs them.")

		_, err = runGoTest(t, short, `func TestA(t *testing.T) { t.Run("sqlite", func(t *testing.T) {}) }`)
		require.ErrorContains(t, err, "TestA/*, postgres: did not run")
	})

	t.Run("no case ran", func(t *testing.T) {
		t.Parallel()
		_, err := runGoTest(t, both, "func TestPlain(t *testing.T) {}\n")
		require.ErrorContains(t, err, "no test case ran")
	})

	t.Run("a test did not end", func(t *testing.T) {
		t.Parallel()
		_, err := runCommandOnEvents(both, `{"Action":"run","Package":"toy","Test":"TestA/sqlite"}`)
		require.ErrorContains(t, err, "TestA/*, sqlite: did not end")
	})

	t.Run("a test failed once and then passed", func(t *testing.T) {
		t.Parallel()
		var events []string
		for _, action := range []string{"run", "fail", "run", "pass"} {
			events = append(events, `{"Action":"`+action+`","Package":"toy","Test":"TestA/sqlite"}`)
		}
		_, err := runCommandOnEvents(both, events...)
		require.ErrorContains(t, err, "TestA/*, sqlite: failed")
	})
}

func TestRun_printsWhatGoTestPrints(t *testing.T) {
	t.Parallel()

	t.Run("a package passed", func(t *testing.T) {
		t.Parallel()
		output, err := runGoTest(t, options{}, `func TestA(t *testing.T) { t.Log("passed well") }`)
		require.NoError(t, err)
		require.Regexp(t, `^ok  \ttoy\t[0-9.]+s\n$`, output)
	})

	t.Run("one test of a package passed and another one failed", func(t *testing.T) {
		t.Parallel()
		output, err := runGoTest(t, options{}, `
func TestA(t *testing.T) {
	t.Run("good", func(t *testing.T) { t.Log("passed well") })
	t.Run("bad", func(t *testing.T) { t.Error("the reason") })
}
`)
		require.ErrorContains(t, err, "failed:\n  test TestA/bad in package toy\n  test TestA in package toy\n  package toy")
		require.Regexp(t, `(?s)^    toy_test.go:\d+: the reason\n.*--- FAIL: TestA/bad .*--- FAIL: TestA .*\nFAIL\nFAIL\ttoy\t[0-9.]+s\n$`, output)
		require.NotContains(t, output, "passed well")
		require.NotContains(t, output, "=== RUN")
	})

	t.Run("a test panicked", func(t *testing.T) {
		t.Parallel()
		output, err := runGoTest(t, options{}, `func TestA(t *testing.T) { panic("the reason") }`)
		require.ErrorContains(t, err, "test TestA in package toy")
		require.Contains(t, output, "panic: the reason")
		require.Contains(t, output, "toy_test.go:")
	})

	t.Run("a package does not build", func(t *testing.T) {
		t.Parallel()
		output, err := runGoTest(t, options{}, `func TestA(t *testing.T) { nowhere() }`)
		require.ErrorContains(t, err, "does not build")
		require.Contains(t, output, "undefined: nowhere")
		require.Contains(t, output, "FAIL\ttoy [build failed]")
	})

	t.Run("a package did not end", func(t *testing.T) {
		t.Parallel()
		output, err := runCommandOnEvents(options{}, `{"Action":"run","Package":"toy","Test":"TestA"}`, `{"Action":"output","Package":"toy","Test":"TestA","Output":"half a\n"}`)
		require.ErrorContains(t, err, "failed:\n  package toy")
		require.Equal(t, "half a\n", output)
	})

	t.Run("a line is not an event", func(t *testing.T) {
		t.Parallel()
		output, err := runCommandOnEvents(options{}, "not an event")
		require.NoError(t, err)
		require.Equal(t, "not an event\n", output)
	})
}

func TestPrinter_printsProgressIfNothingElseWasPrinted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newPrinter(&out)
	p.printProgress()
	require.Equal(t, "... 0 tests have ended; go test is still building\n", out.String())
	out.Reset()
	p.addEvent(event{Action: "start", Package: "slow"})
	p.addEvent(event{Action: "pass", Package: "slow", Test: "TestA"})
	p.printProgress()
	require.Equal(t, "... 1 tests have ended; packages whose tests are running: slow\n", out.String())
	p.printText("ok\n")
	out.Reset()
	p.printProgress()
	require.Empty(t, out.String(), "after other output, the next call of printProgress must print nothing")
	p.printProgress()
	require.NotEmpty(t, out.String())
}
