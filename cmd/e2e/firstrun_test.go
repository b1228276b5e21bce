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

// The three printed commands track one video, read the video and read its history. The demo organisation has videos with long histories.
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

			_, base, _ := strings.Cut(p.stdout.Await(t, waitTimeout, "ReelTally runs at "), " at ")
			get := "curl -sS -H '" + strings.SplitN(lines[1], "'", 3)[1] + "' " + base
			var demo struct{ Data []trackedVideo }
			runShellLine(t, get+"/videos?order_by=latest_views'&'limit=1", &demo)
			require.Len(t, demo.Data, 1)
			require.NotNil(t, demo.Data[0].Views)
			require.Positive(t, *demo.Data[0].Views)
			var demoHistory []point
			runShellLine(t, get+"/videos/"+demo.Data[0].ID+"/history", &demoHistory)
			require.Greater(t, len(demoHistory), 10)
			require.Equal(t, *demo.Data[0].Views, *demoHistory[0].Views)

			var made struct{ VideoID, DirectURL, Error string }
			runShellLine(t, lines[0], &made)
			require.NotEmpty(t, made.VideoID)
			require.Empty(t, made.Error, "the first command must name a video that is not tracked yet")
			require.True(t, strings.HasPrefix(made.DirectURL, base+"/video/"), made.DirectURL)
			var read trackedVideo
			await(t, fetchTimeout, 500*time.Millisecond, func() string {
				if runShellLine(t, lines[1], &read); read.Views == nil {
					return "the tracked video has no numbers yet"
				}
				return ""
			})
			require.Equal(t, made.VideoID, read.ID, "the second command must read the video that the first command tracks")
			require.Positive(t, *read.Views)
			require.Equal(t, lines[1]+"/history", lines[2], "the third command must read the history of the same video")
			var history []point
			runShellLine(t, lines[2], &history)
			require.Len(t, history, 1)
			require.Equal(t, *read.Views, *history[0].Views)
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
