package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reeltally/reeltally/bench/report"
)

// bench holds the databases, servers and connections of one run of the benchmark.
type bench struct {
	options
	client *http.Client
	admin  *pgx.Conn // connection with which the benchmark's database is created and dropped
	name   string    // name of the benchmark's database
	db     *pgx.Conn // connection for the SQL statements that are compared with requests, such as COPY
	stop   []func()  // functions that bench.close calls, in reverse order: it first calls the function that was added last

	pg, lite  *instance     // ReelTally on PostgreSQL and on SQLite; lite is nil until startSQLite is called
	bulkSmall *organisation // organisation for requests that track links; it has a tenth as many videos as pg.changed
}

const (
	readDays  = 730 // length in days of the histories that the benchmark reads
	writeDays = 30  // length in days of the histories to which the benchmark adds points
)

// newBench creates a database on the PostgreSQL server in REELTALLY_TEST_POSTGRES_URL, fills it, and starts a ReelTally server on it. If it
// fails, it removes everything that it created.
func newBench(ctx context.Context, o options) (_ *bench, err error) {
	b := &bench{options: o, name: fmt.Sprintf("bench_%d", time.Now().UnixNano()), lite: &instance{bin: o.bin},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * callers}}}
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
	b.pg = &instance{bin: o.bin, url: regexp.MustCompile(`/[^/?]*(\?|$)`).ReplaceAllString(root, "/"+b.name+"$1")}
	b.stop = append(b.stop, b.pg.close)
	if err = b.pg.openStore(ctx); err != nil {
		return b, err
	}
	if b.db, err = pgx.Connect(ctx, b.pg.url); err != nil {
		return b, err
	}
	if err = b.fillDatabase(ctx); err != nil {
		return b, err
	}
	if err = b.createLimitTables(ctx); err != nil {
		return b, err
	}
	return b, b.pg.startServer(ctx)
}

// videosInLargeOrg returns the number of videos with which the organisation bench.pg.large is seeded, before addManyVideos adds more. Most requests of
// the benchmark read this organisation.
func (o options) videosInLargeOrg() int { return int(100_000 * o.scale) }

// videosInChangedOrg returns the number of videos of the organisation bench.pg.changed. The benchmark stores made-up answers for half
// of these videos. Each organisation in bench.pg.others has the same number of videos.
func (o options) videosInChangedOrg() int { return min(10_000, o.videosInLargeOrg()) }

// batchSize returns the number of videos whose answers the collector stores in one batch.
func (o options) batchSize() int { return o.videosInChangedOrg() / 2 }

// fillDatabase creates all organisations in the PostgreSQL database, with their made-up data.
func (b *bench) fillDatabase(ctx context.Context) error {
	for _, part := range []struct {
		orgs, videos, days int
		use                func(made []*organisation)
	}{
		{1, b.videosInLargeOrg(), readDays, func(made []*organisation) { b.pg.large = made[0] }},
		{1, b.videosInLargeOrg() / 10, readDays, func(made []*organisation) { b.pg.small = made[0] }},
		{1, b.videosInChangedOrg(), writeDays, func(made []*organisation) { b.pg.changed = made[0] }},
		{1, b.videosInChangedOrg() / 10, writeDays, func(made []*organisation) { b.bulkSmall = made[0] }},
		{max(1, int(90*b.scale)), b.videosInChangedOrg(), 1, func(made []*organisation) { b.pg.others = made }},
	} {
		made, err := b.pg.seedOrganisations(ctx, part.orgs, part.videos, part.days)
		if err != nil {
			return err
		}
		part.use(made)
	}
	for _, o := range []*organisation{b.pg.large, b.pg.small} {
		if err := b.pg.addManyVideos(ctx, o); err != nil {
			return err
		}
		if err := b.findOldVideos(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// findOldVideos sets o.old to the ids of up to 40 videos whose histories have the full length of readDays. If there is no such video, it returns
// an error.
func (b *bench) findOldVideos(ctx context.Context, o *organisation) error {
	rows, err := b.db.Query(ctx, `SELECT video_id::text FROM snapshots_weekly WHERE organisation_id = $1 GROUP BY video_id
 HAVING MIN(day) < CURRENT_DATE - $2::integer ORDER BY video_id LIMIT 40`, o.id, readDays-8)
	if err != nil {
		return err
	}
	o.old, err = pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(o.old) == 0 {
		err = fmt.Errorf("no video of organisation %s has a history of %d days", o.id, readDays)
	}
	return err
}

// close stops all programs that the benchmark has started, and drops its database.
func (b *bench) close() {
	for n := range b.stop {
		b.stop[len(b.stop)-1-n]()
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

// newReport returns a report that describes the machine and the data of this run. The caller adds the results.
func (b *bench) newReport(ctx context.Context) (report.Report, error) {
	r := report.Report{Date: time.Now().UTC().Format(time.DateOnly), Revision: b.revision, Rounds: b.rounds, Slack: report.Slack,
		Machine: report.Machine{CPU: cmp.Or(procField("/proc/cpuinfo", "model name"), "an unknown processor"), Cores: runtime.NumCPU(), Go: runtime.Version(), Settings: map[string]string{}}}
	var kilobytes float64
	if _, err := fmt.Sscan(procField("/proc/meminfo", "MemTotal"), &kilobytes); err == nil {
		r.Machine.MemoryGiB = kilobytes / (1 << 20)
	}
	if err := b.db.QueryRow(ctx, "SELECT split_part(current_setting('server_version'), ' ', 1)").Scan(&r.Machine.PostgreSQL); err != nil {
		return r, err
	}
	for _, name := range []string{"fsync", "synchronous_commit", "shared_buffers"} {
		var value string
		if err := b.db.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
			return r, err
		}
		r.Machine.Settings[name] = value
	}
	err := b.db.QueryRow(ctx, `SELECT (SELECT COUNT(*) FROM videos WHERE organisation_id = $1), (SELECT COUNT(*) FROM videos WHERE organisation_id <> $1),
 (SELECT COUNT(*) FROM snapshots_daily) + (SELECT COUNT(*) FROM snapshots_weekly), (SELECT COUNT(*) FROM organisations)`, b.pg.large.id).
		Scan(&r.Data.Videos, &r.Data.OtherVideos, &r.Data.Points, &r.Data.Organisations)
	return r, err
}

// procField returns the first value with the given name in a file of /proc. It returns "" if the file or the
// name does not exist.
func procField(file, name string) string {
	f, err := os.Open(file) //nolint:gosec // a file of /proc
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// Each line has the form "name : value".
		if key, value, found := strings.Cut(lines.Text(), ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
