package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/cmd/internal/transfer"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestImport_importsMappedColumnsAndExportedFile(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			url := storetest.CreateDatabase(t, engine)
			operator := newCommandRunner(t, url)
			org := parseObject(t, operator("org", "create", "--name", "Über & Co", "--json"))["organisation_id"].(string)
			dir, day := t.TempDir(), time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
			bad, out := filepath.Join(dir, "bad"), filepath.Join(dir, "out.csv")
			text := fmt.Sprintf("URL,Date,Watch; count,Notes\nhttps://youtu.be/dQw4w9WgXcQ,%[1]s,7,\nhttps://youtu.be/dQw4w9WgXcQ,%[1]s,-7,\n", day)
			runImport := func(args ...string) (status int, stdout, stderr string) {
				return boottest.Run(t, run, strings.NewReader(text), map[string]string{"REELTALLY_DATABASE_URL": url}, append([]string{"import", "-"}, args...)...)
			}
			status, _, stderr := runImport("--org", org)
			require.Equal(t, 1, status)
			require.Contains(t, stderr, `columns "Watch; count", "Notes" are not known`)
			withMap := []string{"--org", "Über & Co", "--map", "Watch; count=views", "--map", "Notes="}
			status, _, stderr = runImport(withMap...)
			require.Equal(t, 1, status)
			require.Contains(t, stderr, "line 3: views is \"-7\"")
			status, stdout, stderr := runImport(append(withMap, "--skip-bad", bad, "--dry-run")...)
			require.Zero(t, status, stderr)
			require.Contains(t, stdout, "nothing is written")
			require.Contains(t, stdout, `column views has the format plain: "7" is read as 7`)
			require.Contains(t, stdout, "1 row left out: without --dry-run, the reason for each of these rows is written to the file "+bad)
			require.NoFileExists(t, bad, "a dry run must not write the file")
			status, stdout, stderr = runImport(append(withMap, "--skip-bad", bad, "--log-level", "info")...)
			require.Zero(t, status, stderr)
			require.Contains(t, stdout, "1 row left out: see the reason for each row in the file "+bad)
			require.Contains(t, stderr, `"task":"writing"`)
			left, err := os.ReadFile(bad)
			require.NoError(t, err)
			require.EqualValues(t, 3, parseObject(t, string(left))["line"])

			require.Contains(t, operator("export", "--org", "Über & Co"), fmt.Sprintf(",%s,%sT00:00:00Z,7,", day, day))
			require.Contains(t, operator("export", "--org", org, "--to", day, "--format", "jsonl"), `"views":7,"likes":null`)
			summary := operator("export", "--org", org, "--out", out)
			require.Contains(t, summary, "Exported the organisation Über & Co")
			require.Contains(t, summary, out+": 1 row, 1 video.")
			operator("org", "create", "--name", "Twin")
			require.Contains(t, operator("import", "--org", "Twin", out), "1 point added")
			require.Contains(t, operator("import", "--org", "Twin", "--json", out), `"existing":1`)
			status, _, stderr = boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": url}, "org", "create", "--name", "Twin")
			require.Zero(t, status, stderr)
			status, _, stderr = boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": url}, "export", "--org", "Twin")
			require.Equal(t, 1, status)
			require.Contains(t, stderr, `2 organisations are named "Twin"`)
		})
	}
}

func TestImport_skipBadDoesNotOverwriteTheImportedFile(t *testing.T) {
	t.Parallel()
	_, operator := newDatabase(t)
	dir := t.TempDir()
	file, link, hardLink := filepath.Join(dir, "my.csv"), filepath.Join(dir, "link"), filepath.Join(dir, "hard")
	const text = "link,date,views\nhttps://youtu.be/dQw4w9WgXcQ,2026-01-01,-7\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, os.Link(file, hardLink))
	for _, name := range []string{file, filepath.Join(dir, "..", filepath.Base(dir), "my.csv"), link, hardLink} {
		for _, flags := range [][]string{nil, {"--dry-run"}} {
			status, _, stderr := operator(append([]string{"import", "--org", "N", "--skip-bad", name, file}, flags...)...)
			require.Equal(t, 2, status)
			require.Contains(t, stderr, "--skip-bad must name another file than the file to import, but names "+name)
			left, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, text, string(left))
		}
	}
	reasons := filepath.Join(dir, "reasons")
	require.NoError(t, os.WriteFile(reasons, []byte("old"), 0o600))
	status, _, stderr := operator("import", "--org", "N", "--skip-bad", reasons, "--map", "x=views", file)
	require.Equal(t, 1, status, stderr)
	left, err := os.ReadFile(reasons)
	require.NoError(t, err)
	require.Equal(t, "old", string(left), "if the import is refused, it must not change the file of the flag --skip-bad")
	status, _, stderr = operator("import", "--org", "N", "--skip-bad", reasons, file)
	require.Zero(t, status, stderr)
	left, err = os.ReadFile(reasons)
	require.NoError(t, err)
	require.Contains(t, string(left), `{"line":2,"reason":`)
}

func TestImport_dryRunPrintsColumnFormatsAlsoIfARowIsInvalid(t *testing.T) {
	t.Parallel()
	_, operator := newDatabase(t)
	for row, want := range map[string]string{
		"31/01/2026,-7": "line 3: views",
		"04/03/2026,7":  "--date-format", // the format of the dates is not clear
	} {
		file := filepath.Join(t.TempDir(), "my.csv")
		text := "link,date,views\nhttps://youtu.be/dQw4w9WgXcQ,03/04/2026,\"1,234,567\"\nhttps://youtu.be/dQw4w9WgXcQ," + row + "\n"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		status, stdout, stderr := operator("import", "--org", "N", "--dry-run", file)
		require.Equal(t, 1, status)
		require.Contains(t, stderr, want)
		require.Contains(t, stdout, "  column views has the format ")
		status, stdout, _ = operator("import", "--org", "N", "--dry-run", "--json", file)
		require.Equal(t, 1, status)
		require.NotEmpty(t, parseObject(t, stdout)["columns"])
		status, stdout, _ = operator("import", "--org", "N", file)
		require.Equal(t, 1, status)
		require.Empty(t, stdout)
	}
}

func TestImport_printsOneErrorIfAFileCannotBeWritten(t *testing.T) {
	t.Parallel()
	_, operator := newDatabase(t)
	dir := t.TempDir()
	file, missing := filepath.Join(dir, "my.csv"), filepath.Join(dir, "missing", "x")
	require.NoError(t, os.WriteFile(file, []byte("link,date,views\nhttps://youtu.be/dQw4w9WgXcQ,2026-01-01,-7\n"), 0o600))
	status, _, stderr := operator("import", "--org", "N", "--skip-bad", missing, file)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, missing)
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}

// cancelOnWrite is a writer that calls cancel on the first write.
type cancelOnWrite struct {
	strings.Builder
	cancel context.CancelFunc
}

func (w *cancelOnWrite) Write(p []byte) (int, error) {
	w.cancel()
	return w.Builder.Write(p)
}

// An interrupted export to standard output must fail. Otherwise `export > backup.csv && upload` would upload an incomplete file.
func TestExport_failsIfInterrupted(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			url := storetest.CreateDatabase(t, engine)
			newCommandRunner(t, url)("org", "create", "--name", "N")
			var text, stderr strings.Builder
			text.WriteString("link,date,views\n")
			for n := range 450 {
				fmt.Fprintf(&text, "https://www.tiktok.com/@a/video/73012345%011d,%s,%d\n", n, time.Now().UTC().Format(time.DateOnly), n)
			}
			env := map[string]string{"REELTALLY_DATABASE_URL": url}
			status, _, importErr := boottest.Run(t, run, strings.NewReader(text.String()), env, "import", "--org", "N", "-")
			require.Zero(t, status, importErr)
			ctx, stop := context.WithCancel(t.Context())
			out := &cancelOnWrite{cancel: stop}
			status = boot.Run(ctx, boot.Process{Name: "reeltally", Args: []string{"export", "--org", "N"}, Stdout: out, Stderr: &stderr,
				Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, run)
			require.Less(t, strings.Count(out.String(), "\n"), 451)
			require.Equal(t, 1, status)
			require.Contains(t, stderr.String(), "the output is incomplete")
		})
	}
}

func TestCompose_configuresOperatorContainer(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docker-compose.yml"))
	require.NoError(t, err)
	service := func(name string) string {
		_, rest, found := strings.Cut(string(text), "\n  "+name+":\n")
		require.True(t, found, name)
		text := ""
		for line := range strings.Lines(rest) {
			if !strings.HasPrefix(line, "    ") {
				break
			}
			text += line
		}
		return text
	}
	require.Contains(t, string(text), "\n  read_only: true\n")
	// All containers are read-only, but an import sorts its rows in a temporary folder.
	require.Contains(t, service("reeltally"), "\n    tmpfs: [\"/tmp:")
	// The commands doctor and status need the collector's settings to check the sources.
	require.Contains(t, service("collector"), "\n    env_file: [.env]")
	require.Contains(t, service("reeltally"), "\n    env_file: [.env]")
}

// A dry run of an import must store the link to which a short link redirects. The next import must
// not request the short link again.
func TestImport_resolvesShortLinks(t *testing.T) {
	t.Parallel()
	p := boottest.Start(t, run, nil, nil, "sandbox", "--listen", "127.0.0.1:0")
	_, base, _ := strings.Cut(p.Stdout.Await(t, startTimeout, "REELTALLY_SHORTLINK_BASE_URL="), "=")
	url := storetest.CreateDatabase(t, "sqlite")
	newCommandRunner(t, url)("org", "create", "--name", "N")
	day := time.Now().UTC().Format(time.DateOnly)
	importLink := func(short, base, flag string) (status int, stdout, stderr string) {
		text := fmt.Sprintf("link,date,views\n%[1]s,%[2]s,1\n%[1]s,%[2]s,1\n", short, day)
		return boottest.Run(t, run, strings.NewReader(text), map[string]string{"REELTALLY_DATABASE_URL": url, "REELTALLY_SHORTLINK_BASE_URL": base},
			"import", "--org", "N", flag, "-")
	}
	for n := range 100 { // not every short link of the sandbox leads to a video
		short := fmt.Sprintf("https://vm.tiktok.com/ZMabcd%03d/", n)
		status, stdout, _ := importLink(short, base, "--dry-run")
		if status != 0 {
			continue
		}
		require.Contains(t, stdout, "1 new video")
		const unreachable = "http://127.0.0.1:1"
		status, stdout, stderr := importLink(short, unreachable, "--json")
		require.Zero(t, status, stderr)
		require.Contains(t, stdout, `"new":1`, "the import must read the target of the short link from the database")
		status, _, stderr = importLink("https://vm.tiktok.com/ZMefghijk/", unreachable, "--json")
		require.Equal(t, 1, status)
		require.Contains(t, stderr, "https://vm.tiktok.com/ZMefghijk/")
		require.Zero(t, p.Stop())
		return
	}
	require.Fail(t, "no short link leads to a video")
}

// The summary has the same words after an import and after a dry run, which imports nothing. So it must not say that rows were imported.
func TestImport_describesRowsThatAreReadInPart(t *testing.T) {
	t.Parallel()
	for _, dryRun := range []bool{false, true} {
		var out strings.Builder
		c := importCommand{DryRun: dryRun}
		require.NoError(t, c.printSummary(boot.Process{Stdout: &out}, store.Organisation{}, store.Retention{}, transfer.Summary{WithoutCounts: 1, InvalidUsernames: 2}, nil))
		require.Contains(t, out.String(), "1 row with a date but no counts: only the video is taken from it\n")
		require.Contains(t, out.String(), "2 rows with an invalid username: only the other columns are taken from it\n")
	}
}
