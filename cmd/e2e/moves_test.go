package e2e_test

import (
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// `make moves` runs the test with 100,000 videos.
var (
	movesVideos = flag.Int("moves.videos", 200, "number of videos in the database that is backed up and moved")
	movesDays   = flag.Int("moves.days", 5, "length of the videos' histories in days")
	movesOut    = flag.String("moves.out", "", "path of the page with the results of TestMoves_keepEveryRow; if it is empty, there is no page")
)

const (
	moveWriters = 3  // number of organisations that track videos during a backup
	moveLinks   = 20 // number of links in one request
)

// loadedBackup is the result of a backup under load. The backup was made while callers and a collector wrote. The backup was then restored into a
// database of the other engine.
type loadedBackup struct {
	engine, into  string
	rows          int
	databaseBytes int64
	backupBytes   int64
	backup        time.Duration
	restore       time.Duration
	writes        int           // videos whose tracking was acknowledged during the backup
	slowest       time.Duration // the longest time until a write was acknowledged during the backup
	later         int           // videos that the backup does not contain, although their requests were sent before the backup ended; a backup contains only what was stored when the backup started
	points        int           // points that the collector stored during the backup
}

// move has the measurements of one move of an installation to another engine. The move runs the commands of docs/scale.md.
type move struct {
	name          string
	rows          int
	databaseBytes int64 // size of the new database
	steps         []moveStep
	sum, export   string // checksums of the whole content, and of an export of one organisation with its histories
}

// moveStep is one command of a move.
type moveStep struct {
	database string // the database that the command uses, "old" or "new"
	command  string
	duration time.Duration
}

// TestMoves_keepEveryRow backs up databases under load and restores the backups into another engine. Then it moves
// the data from SQLite to PostgreSQL and to Citus.
func TestMoves_keepEveryRow(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	m := &moves{dir: t.TempDir()}
	sqlite := storetest.CreateEmptyDatabase(t, "sqlite")
	runOperator(t, databaseSettings(sqlite), "seed", "--orgs", "1", "--videos", strconv.Itoa(*movesVideos), "--days", strconv.Itoa(*movesDays))
	printProgress(os.Stderr, "%s: seeded %d videos", t.Name(), *movesVideos)

	m.backUpUnderLoad(t, "sqlite", sqlite, "postgres")
	postgres := storetest.CreateEmptyDatabase(t, "postgres")
	m.moveInstallation(t, "SQLite to PostgreSQL", "### From SQLite to PostgreSQL", sqlite, postgres)
	m.backUpUnderLoad(t, "postgres", postgres, "sqlite")
	citus := storetest.CreateEmptyDatabase(t, "citus")
	m.moveInstallation(t, "PostgreSQL to Citus", "### From PostgreSQL to Citus", postgres, citus)
	require.Equal(t, []string{"distributed", "reference"}, storetest.QueryText(t, citus, "SELECT DISTINCT citus_table_type FROM citus_tables WHERE citus_table_type <> 'local' ORDER BY 1"))

	s := &stack{sandboxProcess: &sandboxProcess{}, env: append(databaseSettings(citus), "REELTALLY_LISTEN=127.0.0.1:0")}
	s.token = s.newOrganisation(t)
	s.startServer(t)
	_, tracked := s.trackLinks(t, []string{"https://www.tiktok.com/@someone/video/7000000000000000001"})
	require.Equal(t, 1, tracked.Summary.Succeeded, "the server must work on the moved database")
	if *movesOut != "" {
		require.NoError(t, os.WriteFile(*movesOut, []byte(formatMovesPage(m.backups, m.moved, os.Getenv(storetest.CitusURL) != "", storetest.Machine())), 0o600))
	}
}

func databaseSettings(url string) []string {
	return []string{"REELTALLY_DATABASE_URL=" + url, "REELTALLY_RATE_LIMITS=off"}
}

// moves has the results of TestMoves_keepEveryRow.
type moves struct {
	dir     string
	backups []loadedBackup
	moved   []move
}

// backupSummary is the summary that `reeltally backup --json` and `reeltally restore --json` print.
type backupSummary struct {
	Rows   int
	SHA256 string
}

// runBackupCommand runs a command of reeltally that prints a backupSummary, and returns how long it ran.
func runBackupCommand(t *testing.T, env []string, args ...string) (s backupSummary, took time.Duration) {
	t.Helper()
	start := time.Now()
	printed := runOperator(t, env, args...)
	took = time.Since(start)
	require.NoError(t, json.Unmarshal([]byte(printed), &s), printed)
	require.Len(t, s.SHA256, 64)
	return s, took
}

// moveWriter is an organisation that tracks videos, one request after the other. The video ids in its links contain consecutive numbers from 0.
type moveWriter struct {
	name, token   string
	index         int
	sent          atomic.Int64 // number of videos in all requests
	acknowledged  atomic.Int64 // number of videos in the acknowledged requests
	slowestMicros atomic.Int64 // the longest time from a request to its acknowledgement; the test resets it to 0
}

// videoLink returns the link of the writer's video with the number n.
func (w *moveWriter) videoLink(n int64) string {
	return fmt.Sprintf("https://www.tiktok.com/@someone/video/7%03d%015d", w.index, n)
}

// trackNext tracks the next videos of the writer with one request.
func (w *moveWriter) trackNext(t *testing.T, base string) {
	first := w.acknowledged.Load()
	links := make([]string, moveLinks)
	for i := range links {
		links[i] = w.videoLink(first + int64(i))
	}
	w.sent.Add(moveLinks)
	start := time.Now()
	a, err := sendJSON(t, http.MethodPost, base+"/videos/bulk", w.token, map[string]any{"links": links})
	if err != nil || a.status != http.StatusOK {
		expectTrue(t, false, "%v %d %s", err, a.status, a.body)
		return
	}
	w.slowestMicros.Store(max(w.slowestMicros.Load(), time.Since(start).Microseconds()))
	w.acknowledged.Add(moveLinks)
}

// backUpUnderLoad backs up a database while a server tracks videos and a collector fetches them. It restores the backup into a new database
// of another engine, and requires that the new database has the content of the backup.
func (m *moves) backUpUnderLoad(t *testing.T, engine, url, into string) {
	t.Helper()
	s := &stack{sandboxProcess: startSandbox(t)}
	s.env = append(append(slices.Clone(s.sandboxProcess.env), databaseSettings(url)...), "REELTALLY_LISTEN=127.0.0.1:0")
	writers := make([]*moveWriter, moveWriters)
	for i := range writers {
		w := &moveWriter{name: fmt.Sprintf("Writer %d on %s", i, engine), index: len(m.backups)*moveWriters + i}
		var made struct {
			ID    string `json:"organisation_id"`
			Token string
		}
		require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "org", "create", "--name", w.name, "--json")), &made))
		require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "token", "create", "--org", made.ID, "--name", "Test", "--json")), &made))
		w.token, writers[i] = made.Token, w
	}
	s.startServer(t)
	s.startCollector(t)
	var running sync.WaitGroup
	ended := make(chan struct{})
	for _, w := range writers {
		running.Go(func() {
			for !t.Failed() {
				select {
				case <-ended:
					return
				default:
					w.trackNext(t, s.base)
				}
			}
		})
	}
	awaitWrites(t, writers, 3)
	r := loadedBackup{engine: engine, into: into, points: -m.countPoints(t, url)}
	before := make([]int64, len(writers))
	for i, w := range writers {
		w.slowestMicros.Store(0)
		before[i] = w.acknowledged.Load()
	}
	path := filepath.Join(m.dir, engine+".backup")
	written, took := runBackupCommand(t, s.env, "backup", "--json", "--out", path)
	r.rows, r.backup = written.Rows, took
	after := make([]int64, len(writers))
	for i, w := range writers {
		after[i] = w.sent.Load()
		r.writes += int(w.acknowledged.Load() - before[i])
		r.slowest = max(r.slowest, time.Duration(w.slowestMicros.Load())*time.Microsecond)
	}
	r.points += m.countPoints(t, url)
	awaitWrites(t, writers, 1)
	close(ended)
	running.Wait()
	require.False(t, t.Failed())
	s.server.stop(t, sigterm)
	s.collector.stop(t, sigterm)
	r.backupBytes, r.databaseBytes = fileSize(t, path), databaseSize(t, url)
	printProgress(os.Stderr, "%s: backed up the database (%s) in %s while requests were sent", t.Name(), engine, took)

	restored := storetest.CreateEmptyDatabase(t, into)
	read, took := runBackupCommand(t, databaseSettings(restored), "restore", "--json", path)
	r.restore = took
	require.Equal(t, written, read)
	again, _ := runBackupCommand(t, databaseSettings(restored), "backup", "--json", "--out", filepath.Join(m.dir, engine+".again"))
	require.Equal(t, written, again)
	require.NotEqual(t, written.SHA256, databaseChecksum(t, databaseSettings(url)), "the test must change the database after the backup")
	for i, w := range writers {
		n := w.requireFirstVideos(t, restored)
		require.GreaterOrEqual(t, n, before[i], "the backup must have each write that was acknowledged before the backup began")
		require.LessOrEqual(t, n, after[i], "the backup must not have a write that was sent after the backup ended")
		require.Zero(t, n%moveLinks, "the backup must have all or none of the links of each request")
		r.later += int(after[i] - n)
	}
	m.backups = append(m.backups, r)
	printProgress(os.Stderr, "%s: restored the backup of %s into %s in %s", t.Name(), engine, into, took)
}

// awaitWrites waits until each writer has got n further acknowledgements.
func awaitWrites(t *testing.T, writers []*moveWriter, n int64) {
	t.Helper()
	for _, w := range writers {
		want := w.acknowledged.Load() + n*moveLinks
		await(t, waitTimeout, time.Millisecond, func() string {
			if w.acknowledged.Load() >= want || t.Failed() {
				return ""
			}
			return "the server has not acknowledged enough requests of a writer"
		})
	}
}

// requireFirstVideos returns the number of videos in the writer's organisation. If there are n videos, they must be the videos 0 to n-1 of
// the writer.
func (w *moveWriter) requireFirstVideos(t *testing.T, url string) int64 {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(runOperator(t, databaseSettings(url), "export", "--org", w.name))).ReadAll()
	require.NoError(t, err)
	column := slices.Index(rows[0], "link")
	links := map[string]bool{}
	for _, row := range rows[1:] {
		links[row[column]] = true
	}
	for n := range int64(len(links)) {
		require.True(t, links[w.videoLink(n)], "%s must be among the %d videos", w.videoLink(n), len(links))
	}
	return int64(len(links))
}

// moveInstallation moves an installation to a new database by the commands in a chapter of
// docs/scale.md. Both databases must then have the same data.
func (m *moves) moveInstallation(t *testing.T, name, chapter, from, to string) {
	t.Helper()
	commands := readCommandBlocks(t, "scale.md", chapter)
	require.Len(t, commands, 1)
	dir := t.TempDir()
	r := move{name: name}
	for command := range strings.SplitSeq(commands[0], "\n") {
		start := time.Now()
		c := exec.CommandContext(t.Context(), "bash", "-euc", command)
		c.Dir, c.Env = dir, []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + dir, "OLD=" + from, "NEW=" + to}
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s\n%s", command, out)
		database, command, found := strings.Cut(strings.TrimPrefix(command, "REELTALLY_DATABASE_URL=$"), " ")
		require.True(t, found, command)
		r.steps = append(r.steps, moveStep{strings.ToLower(database), strings.TrimSpace(command), time.Since(start)})
		printProgress(os.Stderr, "%s: %s took %s", t.Name(), command, time.Since(start))
	}
	before, _ := runBackupCommand(t, nil, "restore", "--check", "--json", filepath.Join(dir, "move.backup"))
	after, _ := runBackupCommand(t, nil, "restore", "--check", "--json", filepath.Join(dir, "moved.backup"))
	require.Equal(t, before, after)
	export := func(url string) string {
		return hexSHA256([]byte(runOperator(t, databaseSettings(url), "export", "--interpolated", "--include-removed", "--org", storetest.QueryText(t, to, "SELECT CAST(organisation_id AS text) FROM organisation_totals ORDER BY videos DESC LIMIT 1")[0])))
	}
	r.rows, r.sum, r.export, r.databaseBytes = after.Rows, after.SHA256, export(to), databaseSize(t, to)
	require.Equal(t, export(from), r.export)
	m.moved = append(m.moved, r)
}

// countPoints returns the number of daily points in a database.
func (m *moves) countPoints(t *testing.T, url string) int {
	t.Helper()
	n, err := strconv.Atoi(storetest.QueryText(t, url, "SELECT CAST(COUNT(*) AS text) FROM snapshots_daily")[0])
	require.NoError(t, err)
	return n
}

// fileSize returns the size of a file, or 0 if the file does not exist.
func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return info.Size()
}

// databaseSize returns the number of bytes that a database takes on the disk of its server. On Citus, it counts only the disk of the coordinator.
func databaseSize(t *testing.T, url string) int64 {
	t.Helper()
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return fileSize(t, path) + fileSize(t, path+"-wal")
	}
	n, err := strconv.ParseInt(storetest.QueryText(t, url, "SELECT CAST(pg_database_size(current_database()) AS text)")[0], 10, 64)
	require.NoError(t, err)
	return n
}
