package e2e_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// A collector that starts while pg_dump runs must create the partitions of the coming months. Meanwhile, the server must still read histories.
func TestDump_allowsReadsAndNewPartitions(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	db := storetest.New(t, "postgres")
	s := &stack{sandboxProcess: startSandbox(t)}
	s.env = append(slices.Clone(s.sandboxProcess.env), "REELTALLY_DATABASE_URL="+db.URL, "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_RATE_LIMITS=off")
	s.token = s.newOrganisation(t)
	runOperator(t, s.env, "seed", "--orgs", "1", "--videos", "100", "--days", "60") // a pipe holds 64 KiB; the dump must be larger, so that pg_dump still runs when the test calls end()
	s.startServer(t)
	v := s.publicVideos(t, link.TikTok, 1, 12)[0]
	require.Equal(t, http.StatusOK, requireResponse(t, http.MethodPost, s.base+"/videos", s.token, map[string]any{"link": v.url}).status)
	partitions := listPartitions(t, db)
	lastPartition := partitions[len(partitions)-1]
	db.Exec(t, "DROP TABLE "+lastPartition)

	end := startDump(t, db)
	s.startCollector(t)
	slowest := time.Duration(0)
	for range 40 {
		startTime := time.Now()
		s.requestHistory(t, v)
		slowest = max(slowest, time.Since(startTime))
	}
	await(t, waitTimeout, 50*time.Millisecond, func() string {
		if slices.Contains(listPartitions(t, db), lastPartition) {
			return ""
		}
		return fmt.Sprintf("the partition %s is missing: %s", lastPartition, lastBytes(s.collector.stderr.String()))
	})
	require.Equal(t, int64(1), dumpConnections(t, db), "the dump must still be running")
	end()
	t.Logf("the slowest of 40 reads of a history during the dump took %s", slowest)
	require.Less(t, slowest, 5*time.Second)
	s.server.stop(t, sigterm)
	s.collector.stop(t, sigterm)
}

// listPartitions returns the names of the partitions of the table snapshots_daily, sorted.
func listPartitions(t *testing.T, db *storetest.DB) []string {
	t.Helper()
	return storetest.Column[string](t, db, "SELECT relname::text FROM pg_class JOIN pg_inherits ON inhrelid = pg_class.oid WHERE inhparent = 'snapshots_daily'::regclass ORDER BY relname")
}

// dumpConnections returns the number of connections that pg_dump has to the database. It is 0 if pg_dump does not run.
func dumpConnections(t *testing.T, db *storetest.DB) int64 {
	t.Helper()
	return storetest.Column[int64](t, db, "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pg_dump'")[0]
}

// startDump starts pg_dump and waits until it has locked its tables and writes rows. Nothing reads these rows,
// so pg_dump cannot finish. The returned function `end` kills it.
func startDump(t *testing.T, db *storetest.DB) (end func()) {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(postgresPrograms(t), "pg_dump"), "--data-only", "--table=snapshots_daily*", "--table=videos", db.URL)
	out, err := c.StdoutPipe() // pg_dump waits when the pipe is full, after 64 KiB
	require.NoError(t, err)
	require.NoError(t, c.Start())
	await(t, waitTimeout, 50*time.Millisecond, func() string {
		if storetest.Column[int64](t, db, "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pg_dump' AND query LIKE 'COPY %'")[0] == 1 {
			return ""
		}
		return fmt.Sprintf("%d dumps are running, but none writes rows", dumpConnections(t, db))
	})
	return func() {
		require.NoError(t, c.Process.Signal(syscall.SIGKILL))
		_ = out.Close()
		_ = c.Wait()
	}
}
