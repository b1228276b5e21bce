package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/store/storetest"
)

// TestReadme_commandsWork runs `make run` and the commands of README.md that track and read a video.
// The commands that unpack an archive are tested in .ci/dist.
func TestReadme_commandsWork(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	blocks := shellBlocks.FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, 4)
	require.Contains(t, blocks[0][1], "\nmake run ")
	_, shown, found := strings.Cut(string(text), "```json\n")
	require.True(t, found)
	shown, _, _ = strings.Cut(shown, "```")

	dir := t.TempDir()
	output := startReelTallyWithMake(t, dir)
	address := strings.Fields(output.Await(t, 10*time.Minute, "http://"))
	url := address[slices.IndexFunc(address, func(word string) bool { return strings.HasPrefix(word, "http://") })]
	output.Await(t, waitTimeout, "Ctrl-C stops.")

	require.Contains(t, blocks[1][1], "http://127.0.0.1:8080")
	script := "set -eu\n" + strings.ReplaceAll(blocks[1][1], "http://127.0.0.1:8080", url)
	await(t, 2*time.Minute, time.Second, func() string {
		c := exec.CommandContext(t.Context(), "bash", "-c", script)
		c.Dir = dir
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		answers := decodeJSONValues(t, string(out))
		want := decodeJSONValues(t, shown)
		require.Len(t, answers, len(want))
		// The responses must have the members that README.md shows.
		require.Subset(t, memberNames(answers[0]), memberNames(want[0]))
		require.Subset(t, memberNames(answers[1]), memberNames(want[1]))
		var video struct {
			Views *int64 `json:"latest_views"`
		}
		require.NoError(t, json.Unmarshal(answers[1], &video))
		var history, wantHistory []json.RawMessage
		require.NoError(t, json.Unmarshal(answers[2], &history))
		require.NoError(t, json.Unmarshal(want[2], &wantHistory))
		if video.Views == nil || len(history) == 0 {
			return "the video has no numbers yet"
		}
		require.ElementsMatch(t, memberNames(wantHistory[0]), memberNames(history[0]))
		return ""
	})
}

// startReelTallyWithMake runs `make run` in the repository, on a free port and with its data in dir/data. It kills the processes when the test ends.
func startReelTallyWithMake(t *testing.T, dir string) *boottest.Output {
	t.Helper()
	c := exec.CommandContext(t.Context(), "make", "run")
	c.Dir = filepath.Join("..", "..")
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") })
	c.Env = append(c.Env, "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_DATABASE_URL=sqlite:"+filepath.Join(dir, "data", "reeltally.db"))
	output := boottest.NewOutput()
	c.Stdout, c.Stderr = output, output
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // make, go run and the program are in one process group, so that a signal ends all three
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	require.NoError(t, c.Start())
	done := make(chan struct{})
	go func() {
		_ = c.Wait()
		output.End()
		close(done)
	}()
	t.Cleanup(func() {
		_ = c.Cancel()
		<-done
	})
	return output
}

// decodeJSONValues returns the JSON values that follow one another in a text.
func decodeJSONValues(t *testing.T, text string) []json.RawMessage {
	t.Helper()
	var values []json.RawMessage
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var value json.RawMessage
		require.NoError(t, d.Decode(&value))
		values = append(values, bytes.Clone(value))
	}
	return values
}

// memberNames returns the names of the members of a JSON object, or nil if the JSON is not an object.
func memberNames(object json.RawMessage) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	return names
}
