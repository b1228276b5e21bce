package e2e_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/migrations"
	"github.com/reeltally/reeltally/store/storetest"
)

// buildNextVersion builds the programs with one more migration. This migration adds a table, a
// column to five tables, and an index to the table videos.
func buildNextVersion(t *testing.T) (folder string, migration int64) {
	t.Helper()
	files, err := fs.ReadDir(migrations.Files, "postgres")
	require.NoError(t, err)
	number, _, _ := strings.Cut(files[len(files)-1].Name(), "_")
	newest, err := strconv.ParseInt(number, 10, 64)
	require.NoError(t, err)
	migration = newest + 1
	dir := t.TempDir()
	sql := filepath.Join(dir, "next.sql")
	require.NoError(t, os.WriteFile(sql, []byte(`-- +goose Up
ALTER TABLE videos ADD COLUMN added_by_next_version bigint NOT NULL DEFAULT 7;
CREATE INDEX videos_added_by_next_version ON videos (organisation_id, added_by_next_version);
ALTER TABLE accounts ADD COLUMN added_by_next_version bigint NOT NULL DEFAULT 7;
ALTER TABLE collections ADD COLUMN added_by_next_version bigint NOT NULL DEFAULT 7;
ALTER TABLE api_tokens ADD COLUMN added_by_next_version bigint NOT NULL DEFAULT 7;
ALTER TABLE organisations ADD COLUMN added_by_next_version bigint NOT NULL DEFAULT 7;
CREATE TABLE added_by_next_version (id bigint PRIMARY KEY);
`), 0o600))
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	replaced := map[string]string{}
	for _, engine := range storetest.Engines {
		replaced[filepath.Join(root, "store", "migrations", engine, fmt.Sprintf("%04d_next_version.sql", migration))] = sql
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	folder = filepath.Join(dir, "programs")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", folder+"/", "../server", "../reeltally").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return folder, migration
}

// migrate runs `reeltally migrate` of the programs in the given folder, and returns what it prints.
func migrate(t *testing.T, folder string, env []string) string {
	t.Helper()
	p := startInNewFolder(t, filepath.Join(folder, "reeltally"), env, "migrate")
	<-p.done
	require.NoError(t, p.err, p.stderr.String())
	return p.stdout.String()
}

// TestUpgradeAndDowngrade_loseNoRequest upgrades two servers one by one while callers send requests. It then returns to the old
// version, which must work with the new schema.
func TestUpgradeAndDowngrade_loseNoRequest(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	next, migration := buildNextVersion(t)
	l := startLoadedPair(t)
	before := l.answeredRequests()
	require.Contains(t, migrate(t, next, l.env), fmt.Sprintf("1 migration applied, up to number %d.", migration))
	require.Contains(t, migrate(t, programs, l.env), fmt.Sprintf("The schema has version %d, which is newer than this program's version", migration))
	for _, folder := range []string{next, programs} {
		for index := range l.servers {
			l.restartServer(t, folder, index)
		}
	}
	require.Greater(t, l.answeredRequests(), before)
	l.requireNothingLost(t)
}

// TestUpgrade_collectorStoresEachAnswer migrates the database to the next version while a collector of the old version fetches videos. The collector
// must store each answer, so it asks for no video twice.
func TestUpgrade_collectorStoresEachAnswer(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	next, _ := buildNextVersion(t)
	s := startStack(t, "postgres")
	const videoCount, bulk = 1500, 50
	videos := s.publicVideos(t, link.YouTube, videoCount, 6)
	for i, chunk := range slices.Collect(slices.Chunk(videos, bulk)) {
		a, _ := s.trackLinks(t, videoLinks(chunk))
		require.Equal(t, http.StatusOK, a.status, string(a.body))
		if i == videoCount/bulk/2 {
			s.collector.stderr.Await(t, waitTimeout, `"msg":"fetched"`)
			migrate(t, next, s.env)
		}
	}
	s.awaitNumbers(t, videoCount, 3*time.Minute)
	times := map[string]int{}
	for _, batch := range s.receivedBatches(t, "youtube") {
		for _, id := range batch {
			times[id]++
		}
	}
	for _, v := range videos {
		require.Equal(t, 1, times[v.ID], "the collector must fetch %s once", v.ID)
	}
}
