package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// formatMovesPage returns the text of docs/evidence/moves.md. isRealCluster is true if the move to Citus went to a real cluster.
func formatMovesPage(backups []loadedBackup, moved []move, isRealCluster bool, machine string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Backups under load, and the move to another engine

`+
		"`make moves` writes this page. "+
		`The database has %s made-up videos with histories of %d days.

## Backups under load

`+
		"While `reeltally backup` runs, %d organisations track %d videos in each request, and a collector fetches these videos. "+
		`The backup is restored into a new database of the other engine. A backup of this database has the same checksum.
The new database has every video that was acknowledged before the backup began. It has all videos of a request or none of them.

| Engine | Rows | Database | Backup | Backup took | Videos tracked during the backup | Of these, missing in the backup | Points stored meanwhile | Slowest write | Restored into | Restore took | Checksums |
| --- | --: | --: | --: | --: | --: | --: | --: | --: | --- | --: | --- |
`, formatThousands(*movesVideos), *movesDays, moveWriters, moveLinks)
	for _, r := range backups {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | equal |\n", r.engine, formatThousands(r.rows), formatMegabytes(r.databaseBytes), formatMegabytes(r.backupBytes), formatSeconds(r.backup),
			formatThousands(r.writes), formatThousands(r.later), formatThousands(r.points), r.slowest.Round(time.Millisecond), r.into, formatSeconds(r.restore))
	}
	b.WriteString(`
## Moves

The commands are those of [scale.md](../scale.md#move-a-running-installation). The programs must be stopped during all commands but the last, which only compares. The checksum of the whole content is the same before and after
the move. The checksum of an export of the largest organisation with its histories is also the same.
`)
	for _, r := range moved {
		fmt.Fprintf(&b, "\n**%s**, %s rows; the new database has %s:\n\n| Database | Command | Time |\n| --- | --- | --: |\n", r.name, formatThousands(r.rows), formatMegabytes(r.databaseBytes))
		stopped := time.Duration(0)
		for i, s := range r.steps {
			fmt.Fprintf(&b, "| %s | `%s` | %s |\n", s.database, s.command, formatSeconds(s.duration))
			if i < len(r.steps)-1 {
				stopped += s.duration
			}
		}
		fmt.Fprintf(&b, "| | the programs are stopped | %s |\n\n- whole content: `%s`\n- export: `%s`\n", formatSeconds(stopped), r.sum, r.export)
	}
	target := "In this test, a stand-in takes the place of Citus. It is a PostgreSQL database with functions that refuse the same tables as Citus. The stand-in does not distribute data, so the time of `migrate --citus` says nothing about a cluster. " +
		"If `REELTALLY_TEST_CITUS_URL` is set, the test moves the data to a real cluster."
	if isRealCluster {
		target = "Citus is a real cluster here."
	}
	fmt.Fprintf(&b, "\n%s\n\n%s\n\nThe command was `make moves MOVES='-moves.videos=%d -moves.days=%d'`. `make check` runs this test with 200 videos. PostgreSQL runs without fsync. The test is in `cmd/e2e/moves_test.go`.\n",
		target, machine, *movesVideos, *movesDays)
	return b.String()
}

func formatMegabytes(bytes int64) string {
	return fmt.Sprintf("%s MB", formatThousands(int((bytes+500_000)/1_000_000)))
}

// formatSeconds writes a duration in seconds with one decimal.
func formatSeconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func TestMovesPage_showsHowLongTheProgramsAreStopped(t *testing.T) {
	t.Parallel()
	page := formatMovesPage([]loadedBackup{{engine: "sqlite", into: "postgres", rows: 2_500_000, databaseBytes: 1_499_600_000, backup: 1500 * time.Millisecond, writes: 1234}},
		[]move{{name: "SQLite to PostgreSQL", steps: []moveStep{{"old", "a", time.Second}, {"new", "b", 2 * time.Second}, {"new", "c", 4 * time.Second}}, sum: "5e", export: "7f"}}, false, "The machine.")
	require.Contains(t, page, "| sqlite | 2,500,000 | 1,500 MB | 0 MB | 1.5 s | 1,234 |")
	require.Contains(t, page, "| | the programs are stopped | 3.0 s |")
	require.Contains(t, page, "In this test, a stand-in takes the place of Citus")
	require.NotContains(t, page, "%!")
}
