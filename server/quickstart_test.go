package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// programBlock matches a Markdown code block in sh, js, python or go. The first group is the language, the second is the program.
var programBlock = regexp.MustCompile("(?s)```(sh|js|python|go)\n(.*?)```")

// Requirements in docs/coverage.md: 14.6-01
func TestQuickStart_programsTrackAndReadAVideo(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	page, err := os.ReadFile("../docs/quickstart.md")
	require.NoError(t, err)
	programs := map[string]string{}
	for _, block := range programBlock.FindAllStringSubmatch(string(page), -1) {
		programs[block[1]] = block[2]
	}
	require.Len(t, programs, 4)
	write := func(t *testing.T, name, text string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for language, text := range programs {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, newSQLite(t))
			c := a.newCaller(t, store.TierPremium)
			const link = "https://www.tiktok.com/@northwind.studio/video/7338812345678901234"
			c.track(link)
			a.fetch(factsWithViews(4321))
			var out string
			switch language {
			case "sh":
				out = c.runSample(t, "bash", "-euc", text)
			case "js":
				out = sdks[0].runProgram(t, a.http.URL, c.token, write(t, "program.mjs", text))
			case "python":
				out = sdks[1].runProgram(t, a.http.URL, c.token, write(t, "program.py", text))
			case "go":
				program := filepath.Join(t.TempDir(), "program")
				built, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, write(t, "main.go", text)).CombinedOutput()
				require.NoError(t, err, string(built))
				out = c.runSample(t, program)
			}
			require.Contains(t, out, link)
			require.Equal(t, 2, strings.Count(out, "4321"), "the program must print 4321 twice: as the total views, and as the views on the only day of the history. The output is: %s", out)
		})
	}
}

// pageLink matches a Markdown link to another page of the server.
var pageLink = regexp.MustCompile(`\]\((/[^)]*)\)`)

// Requirements in docs/coverage.md: 14.6-02
func TestLLMsTxt_linksOnlyToPagesThatExist(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	text := a.send(t, "GET", "/llms.txt", nil).requireStatus(200)
	require.Equal(t, "text/markdown; charset=utf-8", text.Header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(string(text.body), "# ReelTally\n\n> "), "llms.txt must begin with a heading and a quoted summary, as llmstxt.org requires")
	links := pageLink.FindAllStringSubmatch(string(text.body), -1)
	require.Len(t, links, 8)
	for _, link := range links {
		a.send(t, "GET", link[1], nil).requireStatus(200)
	}
}
