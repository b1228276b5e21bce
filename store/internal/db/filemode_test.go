package db_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestOpen_makesTheSQLiteFileReadableOnlyForItsOwner(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(folder, "reeltally.db")
	open := func() {
		t.Helper()
		s, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + path, Now: storetest.NewClock().Now})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		_, err = s.Migrate(t.Context())
		require.NoError(t, err)
	}
	open()
	for name, mode := range map[string]os.FileMode{folder: 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}

	require.NoError(t, os.Chmod(path, 0o640))
	open()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm(), "the mode of an existing file must not change")
}
