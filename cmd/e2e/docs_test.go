package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

var shellBlocks = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestOperatingGuide_commandsWork runs all commands of docs/operating.md and then those of docs/import.md, in their order. Each command must
// succeed.
func TestOperatingGuide_commandsWork(t *testing.T) {
	t.Parallel()
	script := "set -eu\n"
	for _, page := range []string{"operating.md", "import.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		require.NoError(t, err)
		blocks := shellBlocks.FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, blocks)
		for _, b := range blocks {
			script += b[1]
		}
	}
	script += "echo \"$TOKEN\"\n"
	c := exec.CommandContext(t.Context(), "bash", "-c", script)
	c.Dir = t.TempDir()
	c.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + c.Dir}
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "REELTALLY_SANDBOX=true")
	require.Contains(t, string(out), `"platform":"youtube","kind":"video","id":"dQw4w9WgXcQ"`)
	require.Contains(t, string(out), "The import would go into Northwind Studio")
	require.Equal(t, 2, strings.Count(string(out), "1 new video\n  2 points added")-1, "one dry run and two imports must report the same counts")
	require.Regexp(t, `(?m)^rt_[0-9A-Za-z]{46}$`, string(out), "the shell variable TOKEN must have the secret of the token and nothing else")
}

// TestImportGuide_pastMonthCountsInACollection imports a video, adds it to a collection, and runs the commands of docs/import.md that choose a past day.
func TestImportGuide_pastMonthCountsInACollection(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "import.md"))
	require.NoError(t, err)
	commands := regexp.MustCompile("(?ms)^```text\n([^`]*--counts-from 2026-10-01\n)```$").FindSubmatch(text)
	require.Len(t, commands, 2)

	s := &stack{env: []string{"REELTALLY_DATABASE_URL=" + storetest.CreateDatabase(t, "sqlite"), "REELTALLY_LISTEN=127.0.0.1:0"}}
	s.token = s.newOrganisation(t)
	s.startServer(t)
	day := func(ago int) string { return time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly) }
	history := filepath.Join(t.TempDir(), "history.csv")
	require.NoError(t, os.WriteFile(history, fmt.Appendf(nil, "link,date,views\n%[1]s,%[2]s,1000\n%[1]s,%[3]s,1100\n%[1]s,%[4]s,4000\n", "https://youtu.be/dQw4w9WgXcQ", day(31), day(30), day(2)), 0o600))
	runOperator(t, s.env, "import", "--org", "Tester", history)
	var collection struct{ ID string }
	requireResponse(t, http.MethodPost, s.base+"/collections", s.token, map[string]string{"name": "October"}).decode(t, &collection)
	videos := s.listVideos(t)
	require.Len(t, videos, 1)
	path := s.base + "/collections/" + collection.ID
	requireResponse(t, http.MethodPost, path+"/videos", s.token, map[string]any{"video_ids": []string{videos[0].ID}})

	c := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(string(commands[1]), "2026-10-01", day(30)))
	c.Dir = t.TempDir()
	c.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + c.Dir, "REELTALLY_URL=" + s.base, "REELTALLY_TOKEN=" + s.token}
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var statistics struct {
		Gained *int64 `json:"views_gained"`
	}
	requireResponse(t, http.MethodGet, fmt.Sprintf("%s/statistics?start_date=%s&end_date=%s", path, day(30), day(2)), s.token, nil).decode(t, &statistics)
	require.Equal(t, new(int64(3000)), statistics.Gained)
}
