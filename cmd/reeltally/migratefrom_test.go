package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/store/storetest"
)

// Requirements in docs/coverage.md: 11.9-12
func TestMigrateFrom_readsTheTokenFromStandardInputAndCreatesTheOrganisation(t *testing.T) {
	t.Parallel()
	var tokens []string
	total := 0 // the number of entries that the service reports for each list
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		if r.URL.Path == "/authenticate" {
			_, _ = io.WriteString(w, `{"organisation":{"id":"o","name":"Über & Co","tier":"premium","subscription":"none"}}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"data":[],"pagination":{"total":%d,"total_pages":0}}`, total)
	}))
	t.Cleanup(service.Close)
	url := storetest.CreateDatabase(t, "sqlite")
	migrateFrom := func(stdin, token string, args ...string) (status int, stdout, stderr string) {
		env := map[string]string{"REELTALLY_DATABASE_URL": url, "REELTALLY_MIGRATE_TOKEN": token}
		return boottest.Run(t, run, strings.NewReader(stdin), env, append([]string{"migrate-from", "shortimize", "--url", service.URL, "--work-dir", t.TempDir() + "/work"}, args...)...)
	}
	status, _, stderr := migrateFrom("", "")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "set REELTALLY_MIGRATE_TOKEN")
	require.Empty(t, tokens)

	status, stdout, stderr := migrateFrom("from-input\n", "", "--dry-run")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "0 collections, 0 accounts and 0 videos")
	require.NotContains(t, newCommandRunner(t, url)("org", "list"), "Über & Co")
	for range 2 {
		status, stdout, stderr = migrateFrom("ignored\n", "from-environment")
		require.Zero(t, status, stderr)
		require.Contains(t, stdout, "Copied to Über & Co")
		require.NotContains(t, stdout+stderr, "from-environment")
	}
	require.Equal(t, "Bearer from-input", tokens[0])
	require.Equal(t, "Bearer from-environment", tokens[len(tokens)-1])
	require.Equal(t, 1, strings.Count(newCommandRunner(t, url)("org", "list"), "Über & Co"))

	total = 2
	status, stdout, stderr = migrateFrom("", "from-environment")
	require.Zero(t, status, stderr)
	for _, noun := range []string{"collections", "accounts", "videos"} {
		require.Contains(t, stdout, "Warning: 2 "+noun+" missing: the service counts more than it lists")
	}

	status, _, stderr = migrateFrom("", "secret-token", "--org", "Unknown")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "Unknown")
	require.NotContains(t, stderr, "secret-token")
}

func TestMigrateFrom_refusesWorkDirWithOtherFilesBeforeAnyRequest(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the command must send no request") }))
	t.Cleanup(service.Close)
	url, dir := storetest.CreateDatabase(t, "sqlite"), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "note.txt"), nil, 0o600))
	env := map[string]string{"REELTALLY_DATABASE_URL": url, "REELTALLY_MIGRATE_TOKEN": "token"}
	status, _, stderr := boottest.Run(t, run, strings.NewReader(""), env, "migrate-from", "shortimize", "--url", service.URL, "--work-dir", dir)
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "--work-dir: the folder "+dir+" is not empty")
	require.FileExists(t, filepath.Join(dir, "note.txt"))
}
