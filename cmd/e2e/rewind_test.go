package e2e_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// readCommandBlocks returns the blocks of commands in a chapter of a page in docs. Each block begins with "```bash".
func readCommandBlocks(t *testing.T, page, chapter string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "\n"+chapter+"\n")
	require.True(t, found, chapter)
	rest, _, _ = strings.Cut(rest, "\n#")
	var blocks []string
	for _, part := range strings.Split(rest, "```bash\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		blocks = append(blocks, block)
	}
	return blocks
}

// cluster is a PostgreSQL server whose data directory belongs to a single test. Its commands run as the user of PostgreSQL.
type cluster struct {
	env    []string
	folder string // folder with the data directory, the archive and the base backup
	url    string // URL of the database reels
}

// postgresPrograms returns the folder with the programs of PostgreSQL: the highest version in /usr/lib/postgresql or, if there is none, the folder in
// PATH that contains pg_basebackup.
func postgresPrograms(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	require.NoError(t, err)
	if len(found) > 0 {
		return found[len(found)-1]
	}
	path, err := exec.LookPath("pg_basebackup")
	require.NoError(t, err, "this test needs the programs of PostgreSQL")
	return filepath.Dir(path)
}

// newCluster creates a data directory, starts a PostgreSQL server with this directory, and creates an empty database. The server keeps every
// committed transaction, even if a test kills it.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "reeltally-rewind") //nolint:usetesting // the user of PostgreSQL has no access to t.TempDir
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		out, err := exec.CommandContext(t.Context(), "chown", "postgres:", folder).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	password := rand.Text()
	c := &cluster{folder: folder, url: fmt.Sprintf("postgres://reeltally:%s@127.0.0.1:%s/reels?sslmode=disable", password, port)}
	c.env = []string{"PATH=" + postgresPrograms(t) + ":" + os.Getenv("PATH"), "PGDATA=" + folder + "/data", "PGHOST=" + folder, "PGPORT=" + port, "PGUSER=reeltally", "PGPASSWORD=" + password,
		"ARCHIVE=" + folder + "/archive", "BASE=" + folder + "/base"}
	t.Cleanup(func() {
		c.kill(t)
		require.NoError(t, os.RemoveAll(folder))
	})
	c.runCommands(t, `printf %s "$PGPASSWORD" > "$PGDATA.password"
initdb --username="$PGUSER" --pwfile="$PGDATA.password" --auth=scram-sha-256 --encoding=UTF8 --locale=C --no-sync
cat >> "$PGDATA/postgresql.conf" <<END
listen_addresses = '127.0.0.1'
port = $PGPORT
unix_socket_directories = '$PGHOST'
max_wal_size = 128MB
END
pg_ctl start --log="$PGDATA/start.log"
psql -d postgres -c "CREATE DATABASE reels"`)
	return c
}

// runCommands runs commands as the user of PostgreSQL. It fails the test at the first command that fails.
func (c *cluster) runCommands(t *testing.T, commands string, variables ...string) {
	t.Helper()
	args := []string{"bash", "-euc", commands}
	if os.Geteuid() == 0 {
		args = append([]string{"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"}, args...)
	}
	r := exec.CommandContext(t.Context(), args[0], args[1:]...)
	r.Dir, r.Env = c.folder, append(c.env, variables...)
	out, err := r.CombinedOutput()
	require.NoError(t, err, "%s\n%s", commands, out)
}

// kill ends the server without a shutdown. It does nothing if the server does not run.
func (c *cluster) kill(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.folder, "data", "postmaster.pid"))
	if os.IsNotExist(err) {
		return
	}
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGQUIT))
	await(t, waitTimeout, 20*time.Millisecond, func() string {
		if syscall.Kill(pid, 0) == nil {
			return "PostgreSQL still runs"
		}
		return ""
	})
}

// restoredInstallation is an installation in which a caller deletes data by mistake, and whose database is then restored.
type restoredInstallation struct {
	*stack
	collection string   // id of the collection that is deleted
	members    []string // ids of the collection's videos
}

// newRestoredInstallation creates the schema and the organisation, starts the server and tracks 50 videos.
func newRestoredInstallation(t *testing.T, url string) *restoredInstallation {
	t.Helper()
	r := &restoredInstallation{stack: &stack{sandboxProcess: &sandboxProcess{}, env: []string{"REELTALLY_DATABASE_URL=" + url, "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_RATE_LIMITS=off"}}}
	runOperator(t, r.env, "migrate")
	r.token = r.newOrganisation(t)
	r.startServer(t)
	r.trackVideos(t, 1000, 50)
	return r
}

// trackVideos tracks n TikTok videos. Their ids on TikTok contain consecutive numbers from firstNumber. trackVideos returns the ids that the server
// gave the videos.
func (r *restoredInstallation) trackVideos(t *testing.T, firstNumber, n int) (ids []string) {
	t.Helper()
	links := make([]string, n)
	for i := range links {
		links[i] = fmt.Sprintf("https://www.tiktok.com/@someone/video/7%018d", firstNumber+i)
	}
	_, result := r.trackLinks(t, links)
	require.Equal(t, n, result.Summary.Succeeded)
	for _, v := range result.Results {
		ids = append(ids, v.VideoID)
	}
	return ids
}

// stopAndComputeChecksums stops the server, and returns two checksums: of a backup of the whole database, and of an export of the organisation's histories.
func (r *restoredInstallation) stopAndComputeChecksums(t *testing.T) (checksums string) {
	t.Helper()
	r.server.stop(t, sigterm)
	return databaseChecksum(t, r.env) + " " + hexSHA256([]byte(runOperator(t, r.env, "export", "--org", "Tester")))
}

func hexSHA256(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

func databaseChecksum(t *testing.T, env []string) string {
	t.Helper()
	var summary struct{ SHA256 string }
	require.NoError(t, json.Unmarshal([]byte(runOperator(t, env, "backup", "--json", "--out", filepath.Join(t.TempDir(), "sum.backup"))), &summary))
	require.Len(t, summary.SHA256, 64)
	return summary.SHA256
}

// fillCollection writes the data that the restore must bring back: a collection with 100 videos.
func (r *restoredInstallation) fillCollection(t *testing.T) {
	t.Helper()
	var made struct{ ID string }
	requireResponse(t, http.MethodPost, r.base+"/collections", r.token, map[string]any{"name": "Spring campaign"}).decode(t, &made)
	r.collection, r.members = made.ID, r.trackVideos(t, 0, 100)
	a := requireResponse(t, http.MethodPost, r.base+"/collections/"+r.collection+"/videos", r.token, map[string]any{"video_ids": r.members})
	require.Equal(t, http.StatusOK, a.status, string(a.body))
}

// deleteCollectionByMistake tracks further videos. Then it deletes the collection, and ends the tracking of one video that was in the
// collection.
func (r *restoredInstallation) deleteCollectionByMistake(t *testing.T) {
	t.Helper()
	r.trackVideos(t, 500, 100)
	a := requireResponse(t, http.MethodDelete, r.base+"/collections/"+r.collection, r.token, nil)
	require.Equal(t, http.StatusOK, a.status, string(a.body))
	a = requireResponse(t, http.MethodDelete, r.base+"/videos", r.token, map[string]any{"id": r.members[0]})
	require.Equal(t, http.StatusOK, a.status, string(a.body))
	require.Equal(t, http.StatusNotFound, r.listMembers(t).status)
}

func (r *restoredInstallation) listMembers(t *testing.T) response {
	t.Helper()
	return requireResponse(t, http.MethodGet, r.base+"/collections/"+r.collection+"/videos?limit=200", r.token, nil)
}

// requireDataRestored requires that the database was restored: it must have the given checksums, and the server must work with it.
func (r *restoredInstallation) requireDataRestored(t *testing.T, checksums string) {
	t.Helper()
	require.Equal(t, checksums, databaseChecksum(t, r.env)+" "+hexSHA256([]byte(runOperator(t, r.env, "export", "--org", "Tester"))))
	r.startServer(t)
	var page struct{ Data []trackedVideo }
	r.listMembers(t).decode(t, &page)
	require.Len(t, page.Data, 100)
	r.trackVideos(t, 500, 10)
	require.Len(t, r.listVideos(t), 160)
}

// The commands of docs/operating.md must restore exactly the data that PostgreSQL had at a given
// time. They must do so even if PostgreSQL was killed later.
func TestRewind_restoresPostgreSQLAsItWasAtAGivenTime(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	commands := readCommandBlocks(t, "operating.md", "### PostgreSQL")
	require.Len(t, commands, 3)
	once, weekly, back := commands[0], commands[1], commands[2]
	for name, killed := range map[string]bool{"running": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.runCommands(t, once)
			r := newRestoredInstallation(t, c.url)
			c.runCommands(t, weekly)
			r.fillCollection(t)
			checksums := r.stopAndComputeChecksums(t)
			moment := time.Now().UTC().Format("2006-01-02 15:04:05.000000+00")
			r.startServer(t)
			r.deleteCollectionByMistake(t)
			require.NotEqual(t, checksums, r.stopAndComputeChecksums(t))
			if killed {
				c.kill(t) // PostgreSQL has not archived the newest part of its log yet
			}
			c.runCommands(t, back, "MOMENT="+moment)
			require.DirExists(t, filepath.Join(c.folder, "data.before"))
			r.requireDataRestored(t, checksums)
			c.runCommands(t, strings.ReplaceAll(weekly, "$BASE", "$BASE-2"))
			c.runCommands(t, `test "$(psql -d reels -Atc 'SELECT failed_count FROM pg_stat_archiver')" = 0`)
		})
	}
}

func TestRewind_restoresTheLastSQLiteBackupBeforeAGivenTime(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	commands := readCommandBlocks(t, "operating.md", "### SQLite")
	require.Len(t, commands, 2)
	hourly, back := commands[0], commands[1]
	folder := t.TempDir()
	file, backups := filepath.Join(folder, "reeltally.db"), filepath.Join(folder, "backups")
	require.NoError(t, os.Mkdir(backups, 0o700))
	r := newRestoredInstallation(t, "sqlite:"+file)
	guide := func(commands string, variables ...string) {
		p := startInNewFolder(t, "/bin/bash", append(variables, "PATH="+programs+":"+os.Getenv("PATH"), "BACKUPS="+backups, "FILE="+file, "REELTALLY_DATABASE_URL=sqlite:"+file), "-euc", commands)
		<-p.done
		require.NoError(t, p.err, p.stderr.String())
	}
	// The name of a backup has its start time in whole seconds. So the test waits for the next
	// second before it makes another backup.
	nextSecond := func() time.Time {
		<-time.After(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		return time.Now().UTC()
	}
	guide(hourly)
	r.fillCollection(t)
	nextSecond()
	checksums := r.stopAndComputeChecksums(t)
	r.startServer(t)
	guide(hourly)
	moment := nextSecond().Format(time.RFC3339)
	nextSecond()
	r.deleteCollectionByMistake(t)
	guide(hourly)
	require.NotEqual(t, checksums, r.stopAndComputeChecksums(t))
	guide(back, "MOMENT="+moment)
	require.FileExists(t, file+".before")
	r.requireDataRestored(t, checksums)
}
