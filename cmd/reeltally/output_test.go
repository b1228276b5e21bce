package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/store/storetest"
)

// newDatabase creates a SQLite database with the organisation N. It returns the path of the database and a function that runs a command with it.
func newDatabase(t *testing.T) (path string, operator func(args ...string) (status int, stdout, stderr string)) {
	t.Helper()
	url := storetest.CreateDatabase(t, "sqlite")
	newCommandRunner(t, url)("org", "create", "--name", "N")
	return strings.TrimPrefix(url, "sqlite:"), func(args ...string) (int, string, string) {
		return boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": url}, args...)
	}
}

func TestOutput_isWrittenDirectlyIfItIsNoRegularFile(t *testing.T) {
	t.Parallel()
	_, operator := newDatabase(t)
	for _, command := range [][]string{{"export", "--org", "N"}, {"backup"}} {
		pipe := filepath.Join(t.TempDir(), "pipe")
		require.NoError(t, syscall.Mkfifo(pipe, 0o600))
		received := make(chan []byte, 1)
		go func() {
			data, _ := os.ReadFile(pipe)
			received <- data
		}()
		status, _, stderr := operator(append(command, "--out", pipe)...)
		require.Zero(t, status, stderr)
		info, err := os.Stat(pipe)
		require.NoError(t, err)
		require.Equal(t, os.ModeNamedPipe, info.Mode().Type(), "the output of the command %s must still be a named pipe", command)
		require.NotEmpty(t, <-received)
		if _, err := os.Stat("/dev/full"); err != nil {
			continue
		}
		// The output is a symbolic link that leads to /dev/full. If a faulty command replaced its output file, it would replace this link and not the device.
		full := filepath.Join(t.TempDir(), "full")
		require.NoError(t, os.Symlink("/dev/full", full))
		status, _, stderr = operator(append(command, "--out", full)...)
		require.Equal(t, 1, status)
		require.Contains(t, stderr, full+": no space left on device")
		require.NotContains(t, stderr, "database unavailable")
	}
}

func TestOutput_followsSymbolicLinks(t *testing.T) {
	t.Parallel()
	_, operator := newDatabase(t)
	for _, exists := range []bool{true, false} {
		dir := t.TempDir()
		file, link, linkToLink := filepath.Join(dir, "sub", "file.csv"), filepath.Join(dir, "link"), filepath.Join(dir, "link2")
		require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
		require.NoError(t, os.Symlink(filepath.Join("sub", "file.csv"), link))
		require.NoError(t, os.Symlink(link, linkToLink))
		if exists {
			require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
		}
		status, _, stderr := operator("export", "--org", "N", "--out", linkToLink)
		require.Zero(t, status, stderr)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(data), "link,")
		target, err := os.Readlink(link)
		require.NoError(t, err)
		require.Equal(t, filepath.Join("sub", "file.csv"), target)
	}
}

func TestOutput_refusesTheDatabaseAndFolders(t *testing.T) {
	t.Parallel()
	database, operator := newDatabase(t)
	for _, command := range [][]string{{"export", "--org", "N"}, {"backup"}} {
		dir := t.TempDir()
		link := filepath.Join(dir, "link")
		require.NoError(t, os.Symlink(database, link))
		for _, name := range []string{database, link, database + "-wal", database + "-shm"} {
			status, _, stderr := operator(append(command, "--out", name)...)
			require.Equal(t, 1, status)
			require.Contains(t, stderr, name+" belongs to a SQLite database")
		}
		folder := filepath.Join(dir, "folder")
		require.NoError(t, os.Mkdir(folder, 0o700))
		status, _, stderr := operator(append(command, "--out", folder)...)
		require.Equal(t, 1, status)
		require.Contains(t, stderr, folder+" is a folder")
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 2, "no part file may be left behind")
	}
	status, stdout, stderr := operator("org", "list")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "N")
}

func TestOutput_minusMeansStandardOutput(t *testing.T) {
	t.Parallel()
	_, operator := newDatabase(t)
	t.Run("export", func(t *testing.T) {
		t.Parallel()
		status, stdout, stderr := operator("export", "--org", "N", "--out", "-")
		require.Zero(t, status, stderr)
		require.Contains(t, stdout, "link,")
	})
	t.Run("backup", func(t *testing.T) {
		t.Parallel()
		status, stdout, stderr := operator("backup", "--out", "-")
		require.Zero(t, status, stderr)
		require.NotEmpty(t, stdout)
	})
	require.NoFileExists(t, "-")
}
