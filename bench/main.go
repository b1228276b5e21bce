// Command bench measures the speed of a running server against limits that are measured in the same run, such as COPY of the same rows by
// PostgreSQL. It needs the programs of cmd in the folder -bin, and an empty PostgreSQL server in REELTALLY_TEST_POSTGRES_URL; `make bench`
// gives it both. It prints one line for each goal, and writes the same as JSON.
//
// Start reading at run. cases.go lists what is measured.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
)

func main() {
	o := options{}
	flag.StringVar(&o.bin, "bin", "bin", "folder with the programs reeltally and server")
	flag.StringVar(&o.out, "out", "bench/latest.json", "file for the results")
	flag.Float64Var(&o.scale, "scale", 0.1, "1 creates 100,000 videos in the organisation that is read, and 900,000 in others")
	flag.IntVar(&o.rounds, "rounds", 15, "how often each case is measured")
	flag.StringVar(&o.only, "only", "", "regular expression for the names of the cases to measure")
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
	bin, out, only string
	scale          float64
	rounds         int
}

// run creates a database, fills it, starts a server on it, measures all cases and reports the results. It returns an error if a case
// misses its goal by more than slack.
func run(ctx context.Context, o options) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	var results []result
	for _, c := range cases(b) {
		if only.MatchString(c.name) {
			results = append(results, result{Name: c.name, Goal: c.goal, run: c})
		}
	}
	if err := b.measure(ctx, results, o.rounds); err != nil {
		return err
	}
	return report(results, b.facts, o.out)
}

// slack is by how much a ratio may exceed its goal, because ratios vary by about a quarter between runs on a small machine.
const slack = 1.25

// result is the result of one case.
type result struct {
	Name     string    `json:"name"`
	Ratio    float64   `json:"ratio"`
	Goal     float64   `json:"goal"`
	Pass     bool      `json:"pass"`
	Measured float64   `json:"measured_ms"` // median
	Limit    float64   `json:"limit_ms"`    // median
	run      benchCase // what is measured
}

// measure runs every case and its limit in turn, rounds times after two rounds of warming up, and sets the medians and ratios.
func (b *bench) measure(ctx context.Context, results []result, rounds int) error {
	const warmUp = 2
	measured, limits := make([][]float64, len(results)), make([][]float64, len(results))
	for round := range rounds + warmUp {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds+warmUp)
		for i, r := range results {
			for _, part := range []struct {
				run  func(context.Context) error
				into *[]float64
			}{{r.run.limit, &limits[i]}, {r.run.measured, &measured[i]}} {
				start := time.Now()
				if err := part.run(ctx); err != nil {
					return fmt.Errorf("%s: %w", r.Name, err)
				}
				if round >= warmUp {
					*part.into = append(*part.into, float64(time.Since(start).Microseconds())/1000)
				}
			}
		}
	}
	for i := range results {
		r := &results[i]
		r.Measured, r.Limit = median(measured[i]), median(limits[i])
		r.Ratio = r.Measured / r.Limit
		r.Pass = r.Ratio <= r.Goal*slack
	}
	return nil
}

// median returns the median of values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// report prints the results and writes them to the file out. It returns an error if a goal was missed.
func report(results []result, facts map[string]any, out string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "case\tratio\tgoal\t\tmeasured\tlimit")
	missed := 0
	for _, r := range results {
		verdict := "pass"
		if !r.Pass {
			verdict = "MISSED"
			missed++
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.1f\t%s\t%.2f ms\t%.2f ms\n", r.Name, r.Ratio, r.Goal, verdict, r.Measured, r.Limit)
	}
	content, err := json.MarshalIndent(map[string]any{"facts": facts, "slack": slack, "results": results}, "", "  ")
	if err = errors.Join(err, w.Flush(), os.WriteFile(out, append(content, '\n'), 0o600)); err != nil {
		return err
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d goals missed", missed, len(results))
	}
	return nil
}

// bench is a filled database with a running server.
type bench struct {
	options options
	facts   map[string]any // what was measured, for the report
	admin   *pgx.Conn      // connection to the database in which the databases of benchmarks are created
	name    string         // name of the database
	url     string         // URL of the database
	db      *pgx.Conn      // connection on which the limits are measured
	server  *exec.Cmd
	address string // base URL of the server
	client  *http.Client

	org, token string // id and token of the organisation that is read
	videos     int    // number of its videos
}

// newBench creates a database, fills it and starts a server.
func newBench(ctx context.Context, o options) (_ *bench, err error) {
	b := &bench{options: o, name: fmt.Sprintf("bench_%d", time.Now().UnixNano()), client: &http.Client{}, videos: int(100_000 * o.scale)}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	root := os.Getenv("REELTALLY_TEST_POSTGRES_URL")
	if root == "" {
		return b, errors.New("REELTALLY_TEST_POSTGRES_URL is not set; run `make bench`")
	}
	if b.admin, err = pgx.Connect(ctx, root); err != nil {
		return b, err
	}
	if _, err = b.admin.Exec(ctx, "CREATE DATABASE "+b.name); err != nil {
		return b, err
	}
	b.url = regexp.MustCompile(`/[^/?]*(\?|$)`).ReplaceAllString(root, "/"+b.name+"$1")
	if _, err = b.output(ctx, "reeltally", "migrate"); err != nil {
		return b, err
	}
	others := max(1, int(90*o.scale))
	fmt.Fprintf(os.Stderr, "creating %d videos with histories of 30 days in one organisation, and 10,000 videos in each of %d others\n", b.videos, others)
	if b.org, err = b.seed(ctx, 1, b.videos, 30); err != nil {
		return b, err
	}
	if _, err = b.seed(ctx, others, 10_000, 1); err != nil {
		return b, err
	}
	if b.db, err = pgx.Connect(ctx, b.url); err != nil {
		return b, err
	}
	if _, err = b.db.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return b, err
	}
	if err = b.createLimitTable(ctx); err != nil {
		return b, err
	}
	if b.token, err = b.createToken(ctx); err != nil {
		return b, err
	}
	b.facts = map[string]any{"videos": b.videos, "other_videos": others * 10_000, "rounds": o.rounds}
	return b, b.startServer(ctx)
}

// close stops the server and drops the database.
func (b *bench) close() {
	if b.server != nil && b.server.Process != nil {
		_ = b.server.Process.Signal(os.Interrupt)
		_ = b.server.Wait()
	}
	ctx := context.Background()
	if b.db != nil {
		_ = b.db.Close(ctx)
	}
	if b.admin != nil {
		_, _ = b.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+b.name+" WITH (FORCE)")
		_ = b.admin.Close(ctx)
	}
}

// command returns a command that runs a program of ReelTally on the database of b.
func (b *bench) command(ctx context.Context, program string, arguments ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(b.options.bin, program), arguments...) //nolint:gosec // the folder is an argument of the developer
	c.Env = append(os.Environ(), "REELTALLY_DATABASE_URL="+b.url, "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_METRICS_LISTEN=127.0.0.1:0",
		"REELTALLY_TIER_LIMITS=premium.read=1000000,premium.write=1000000") // the limits are checked, but not reached
	return c
}

// output runs a program and returns what it printed.
func (b *bench) output(ctx context.Context, program string, arguments ...string) ([]byte, error) {
	out, err := b.command(ctx, program, arguments...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("%s %s: %s", program, strings.Join(arguments, " "), exit.Stderr)
	}
	return out, err
}

// seed creates organisations with made-up videos and returns the id of the first one.
func (b *bench) seed(ctx context.Context, orgs, videos, days int) (string, error) {
	out, err := b.output(ctx, "reeltally", "seed", fmt.Sprint("--orgs=", orgs), fmt.Sprint("--videos=", videos), fmt.Sprint("--days=", days), "--json")
	if err != nil {
		return "", err
	}
	var first struct {
		ID string `json:"organisation_id"`
	}
	return first.ID, json.NewDecoder(bytes.NewReader(out)).Decode(&first)
}

// createToken returns a token of the organisation that is read.
func (b *bench) createToken(ctx context.Context) (string, error) {
	out, err := b.output(ctx, "reeltally", "token", "create", "--org="+b.org, "--name=bench", "--json")
	if err != nil {
		return "", err
	}
	var made struct{ Token string }
	return made.Token, json.Unmarshal(out, &made)
}

// startServer starts a server and waits until it serves.
func (b *bench) startServer(ctx context.Context) error {
	b.server = b.command(ctx, "server")
	stderr, err := b.server.StderrPipe()
	if err != nil {
		return err
	}
	if err := b.server.Start(); err != nil {
		return err
	}
	lines := json.NewDecoder(stderr)
	for {
		var line struct{ Msg, Address string }
		if err := lines.Decode(&line); err != nil {
			return fmt.Errorf("the server did not start: %w", err)
		}
		if line.Msg == "serving" {
			b.address = line.Address
			go func() { _, _ = io.Copy(io.Discard, io.MultiReader(lines.Buffered(), stderr)) }()
			return nil
		}
	}
}
