package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestBackup_isRestoredOnTheOtherEngineWithTheSameChecksum(t *testing.T) {
	t.Parallel()
	for from, to := range map[string]string{"sqlite": "postgres", "postgres": "sqlite"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			operator, restored := newCommandRunner(t, storetest.CreateDatabase(t, from)), storetest.CreateEmptyDatabase(t, to)
			operator("org", "create", "--name", "Über & Co", "--json")
			operator("seed", "--org", "Über & Co", "--videos", "30", "--days", "40", "--log-level", "warn")
			file := filepath.Join(t.TempDir(), "a.backup")
			first := operator("backup", "--out", file)
			require.Contains(t, first, "The backup "+file+" was written.")
			stat, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), stat.Mode().Perm())
			require.Contains(t, operator("restore", "--check", file), "The backup "+file+" is complete.")

			other := newCommandRunner(t, restored)
			summary := parseObject(t, other("restore", "--json", file))
			require.Equal(t, from, summary["engine"])
			require.Regexp(t, `^[0-9T:-]+\.[0-9]{6}\+00:00$`, summary["taken_at"], "times must have the form of the API")
			require.Contains(t, first, summary["sha256"])
			require.Contains(t, other("export", "--org", "Über & Co"), ",views,")
			again := parseObject(t, other("backup", "--json", "--out", file+"2"))
			require.Equal(t, summary["sha256"], again["sha256"])
			require.Equal(t, to, again["engine"])
		})
	}
}

func TestBackup_canBeWrittenToStandardOutputAndRestoredFromStandardInput(t *testing.T) {
	t.Parallel()
	operator := newCommandRunner(t, storetest.CreateDatabase(t, "sqlite"))
	operator("org", "create", "--name", "Piped", "--json")
	backup, target := operator("backup"), map[string]string{"REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite")}
	status, stdout, stderr := boottest.Run(t, run, strings.NewReader(backup), target, "restore", "-")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "The backup from standard input was restored.")
	status, stdout, stderr = boottest.Run(t, run, nil, target, "org", "list")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "Piped")
	status, _, stderr = boottest.Run(t, run, strings.NewReader(backup), target, "restore", "-")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "the database is not empty: the table \"organisations\" has rows")
	status, _, stderr = boottest.Run(t, run, strings.NewReader(backup[:len(backup)/2]), target, "restore", "--check", "-")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "the backup is damaged or incomplete")
}

func TestBackup_canBeWrittenBeforeTheSchemaIsMigrated(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		old := storetest.NewEmpty(t, db.Engine)
		target, file := map[string]string{"REELTALLY_DATABASE_URL": old.URL}, filepath.Join(t.TempDir(), "a.backup")
		status, _, stderr := boottest.Run(t, run, nil, target, "backup", "--out", file)
		require.Equal(t, 1, status)
		require.Contains(t, stderr, "the database has schema version 0")
		_, err := old.DB().MigrateTo(t.Context(), 21)
		require.NoError(t, err)
		old.Exec(t, "INSERT INTO collectors (id, seen_at, serves) VALUES (?, 5, 'tiktok')", store.NewID())
		status, _, stderr = boottest.Run(t, run, nil, target, "backup", "--out", file)
		require.Zero(t, status, stderr)
		have, _, err := old.Schema(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 21, have, "a backup does not migrate")
		restored := newCommandRunner(t, storetest.CreateEmptyDatabase(t, db.Engine))
		require.Contains(t, restored("restore", file), "was restored")
	})
}

func TestBackup_doesNotOverwriteAnExistingFile(t *testing.T) {
	t.Parallel()
	target := map[string]string{"REELTALLY_DATABASE_URL": storetest.CreateDatabase(t, "sqlite")}
	file := filepath.Join(t.TempDir(), "a.backup")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	status, _, stderr := boottest.Run(t, run, nil, target, "backup", "--out", file)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, file+" exists already")
	require.NoError(t, os.Rename(file, file+".part"))
	status, _, stderr = boottest.Run(t, run, nil, target, "backup", "--out", file)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "left by an interrupted backup")
	status, _, stderr = boottest.Run(t, run, nil, target, "backup", "--json")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "--json needs --out")
	content, err := os.ReadFile(file + ".part")
	require.NoError(t, err)
	require.Equal(t, "mine", string(content))
}

func TestBackup_worksWithAReadOnlyConnectionAndStoresItsTimeOtherwise(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	separator := "?"
	if strings.Contains(db.URL, "?") {
		separator = "&"
	}
	readOnly := map[string]string{"REELTALLY_DATABASE_URL": db.URL + separator + "default_transaction_read_only=on"}
	status, stdout, stderr := boottest.Run(t, run, nil, readOnly, "backup", "--out", filepath.Join(t.TempDir(), "a.backup"))
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "was written")
	require.Contains(t, stderr, "time of the backup could not be stored")
	require.Contains(t, newCommandRunner(t, db.URL)("status"), "Last backup: none is known")
	operator := newCommandRunner(t, db.URL)
	operator("backup", "--out", filepath.Join(t.TempDir(), "b.backup"))
	require.NotContains(t, operator("status"), "none is known")
	_, found := runDoctor(t, map[string]string{"REELTALLY_DATABASE_URL": db.URL})
	require.Contains(t, found["backup"].Found, "the last backup ended")
}
