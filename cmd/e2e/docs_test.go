package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
