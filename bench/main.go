// Command bench compares the speed of ReelTally with the fastest known way to do the same work, such as COPY of the same rows by
// PostgreSQL. It uses these words:
//
//   - A case is one comparison: a measured step, the step with which it is compared, and a goal for the ratio of their times.
//   - The limit of a case is the step with which the measured step is compared. Usually it is the fastest known way to do the same work.
//   - A round runs both steps of all cases once. The results are the medians of all rounds.
//   - A peer is another implementation of the list of videos, for example with fastify.
//
// The command needs the programs of cmd and bench/peers in the folder -bin, and the URL of an empty PostgreSQL server in
// REELTALLY_TEST_POSTGRES_URL; `make bench` provides both. It prints one line for each case, and writes the same results as JSON.
// docs/performance.md explains the cases.
//
// Start reading at run.
//
//   - measure.go: how cases are measured
//   - data.go, instance.go: the database of a run, its organisations, and its server
//   - limits.go, requests.go: the steps of the cases: SQL statements and requests
//   - lists.go, history.go, bulk.go, collector.go, layers.go, growth.go, sqlite.go, peers.go: the cases
//   - callers.go: measurements that are only reported and cannot fail the benchmark
//   - profiles.go: where the CPU time and the memory of requests and batches go
//   - report: the results as text, table and chart
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"

	"github.com/reeltally/reeltally/bench/report"
)

func main() {
	o := options{}
	flag.StringVar(&o.bin, "bin", "bin", "folder with the programs reeltally, server, bare and gorm")
	flag.StringVar(&o.out, "out", "bench/latest.json", "file for the results")
	flag.StringVar(&o.docs, "docs", "", "folder of the documents; if set, the results also replace those in performance.md, bench.svg and testdata/bench.json")
	flag.Float64Var(&o.scale, "scale", 0.1, "scale of the data; with scale 1, the organisation that most requests read has 106,000 videos, 6,000 of them in one account, and other organisations have 900,000")
	flag.IntVar(&o.rounds, "rounds", 15, "how often each case is measured")
	flag.StringVar(&o.only, "only", "", "regular expression for the names of the cases to measure")
	flag.StringVar(&o.peers, "peers", "go", "peers to measure: \"go\" for the one that is written in Go, or \"all\" to install and measure the others too")
	flag.StringVar(&o.profiles, "profiles", "", "file for a page with profiles of the CPU time and the memory; if set, no case is measured")
	flag.StringVar(&o.revision, "revision", "unknown", "name of the measured commit, for the report")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the command line flags.
type options struct {
	bin, out, docs, only, peers, profiles, revision string
	scale                                           float64
	rounds                                          int
}

func (o options) validate() error {
	switch {
	case o.scale < 0.02:
		return fmt.Errorf("-scale is %g; it must be 0.02 or more", o.scale)
	case o.rounds < 1:
		return fmt.Errorf("-rounds is %d; it must be 1 or more", o.rounds)
	case o.peers != "go" && o.peers != "all":
		return fmt.Errorf("-peers is %q; it must be go or all", o.peers)
	case o.docs != "" && o.only != "":
		return errors.New("-docs needs all cases: leave out -only")
	}
	_, err := regexp.Compile(o.only)
	return err
}

// run measures the selected cases and reports the results. It returns an error if a ratio misses its
// goal by more than the factor report.Slack.
func run(ctx context.Context, o options) error {
	if err := o.validate(); err != nil {
		return err
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	if o.profiles != "" {
		return b.writeProfiles(ctx, o.profiles)
	}
	r, err := b.newReport(ctx)
	if err != nil {
		return err
	}
	if r.Results, err = measureCases(ctx, b.selectedCases(), o.rounds); err != nil {
		return err
	}
	if r.Facts, err = b.measureCallers(ctx); err != nil {
		return err
	}
	if err := writeReport(r, o); err != nil {
		return err
	}
	if n := r.CountMissed(); n > 0 {
		return fmt.Errorf("%d of %d goals missed by more than %.0f %%", n, len(r.Results), 100*(report.Slack-1))
	}
	return nil
}

// cases returns all cases of the benchmark. A case compares two ways to do some work.
func (b *bench) cases() []benchCase {
	var all []benchCase
	for _, group := range []func(*bench) []benchCase{videoListCases, historyCases, bulkCases, collectorCases, layerCases, growthCases, sqliteCases, peerCases} {
		all = append(all, group(b)...)
	}
	return all
}

// selectedCases returns the cases (comparisons) whose names match the regular expression of the flag -only.
func (b *bench) selectedCases() []benchCase {
	only := regexp.MustCompile(b.only)
	var chosen []benchCase
	for _, c := range b.cases() {
		if only.MatchString(c.group + ": " + c.name) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// writeReport prints the report and writes it as JSON to the file o.out. If o.docs names a folder,
// writeReport also updates the documents in the folder.
func writeReport(r report.Report, o options) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	files := map[string]string{o.out: string(content) + "\n"}
	if o.docs != "" {
		page := filepath.Join(o.docs, "performance.md")
		old, err := os.ReadFile(page) //nolint:gosec // the folder is an argument of the developer
		if err != nil {
			return err
		}
		if files[page], err = r.Page(string(old)); err != nil {
			return err
		}
		files[filepath.Join(o.docs, "bench.svg")] = r.Picture()
		files[filepath.Join(o.docs, "testdata", "bench.json")] = files[o.out]
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return r.Print(os.Stdout)
}
