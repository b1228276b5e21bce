package e2e_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

func TestFirstRun_printedCommandsWork(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	_, err := exec.LookPath("curl")
	require.NoError(t, err, "this test needs curl: apt-get install curl")
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			env := []string{"REELTALLY_LISTEN=127.0.0.1:0"}
			if engine == "postgres" {
				env = append(env, "REELTALLY_DATABASE_URL="+storetest.Empty(t, engine))
			}
			startTime := time.Now()
			p := start(t, "reeltally", env, "up")
			p.stdout.Await(t, waitTimeout, "Ctrl-C stops.")
			require.Less(t, time.Since(startTime), 10*time.Second)
			var lines []string
			for line := range strings.Lines(p.stdout.String()) {
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "curl ") {
					lines = append(lines, line)
				}
			}
			require.Len(t, lines, 3)

			var made struct{ VideoID, DirectURL, Error string }
			runShellLine(t, lines[0], &made)
			require.NotEmpty(t, made.VideoID)
			require.Empty(t, made.Error, "the video was not tracked before")
			var read trackedVideo
			runShellLine(t, lines[1], &read)
			require.NotNil(t, read.Views)
			require.Positive(t, *read.Views)
			var history []struct {
				Date  string
				Views *int64
			}
			runShellLine(t, lines[2], &history)
			require.Greater(t, len(history), 10)
			require.Equal(t, *read.Views, *history[0].Views)

			auth := strings.SplitN(lines[1], "'", 3)[1]
			getTracked := "curl -sS -H '" + auth + "' " + made.DirectURL[:strings.Index(made.DirectURL, "/video/")] + "/videos/" + made.VideoID
			await(t, fetchTimeout, 500*time.Millisecond, func() string {
				var v trackedVideo
				if runShellLine(t, getTracked, &v); v.Views == nil {
					return "the tracked video has no numbers yet"
				}
				return ""
			})
			p.stop(t, syscall.SIGINT)
			p.stdout.Await(t, waitTimeout, "Stopped.")
		})
	}
}

// runShellLine runs a curl command in a shell and decodes the response. The status must be 200.
func runShellLine(t *testing.T, line string, decode any) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", line+` -w '\n%{http_code}'`).CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, out)
	end := strings.LastIndex(string(out), "\n")
	body, status := string(out[:end]), string(out[end+1:])
	require.Equal(t, "200", status, "%s\n%s", line, body)
	require.NoError(t, json.Unmarshal([]byte(body), decode), body)
}
