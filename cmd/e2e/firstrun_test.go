package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// `reeltally up` prints three commands, which track a video, read the video and read its history. The commands must work. The demo
// organisation must have videos with long histories.
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
				env = append(env, "REELTALLY_DATABASE_URL="+storetest.CreateEmptyDatabase(t, engine))
			}
			startTime := time.Now()
			p := startProgram(t, "reeltally", env, "up")
			p.stdout.Await(t, waitTimeout, "Ctrl-C stops.")
			require.Less(t, time.Since(startTime), 30*time.Second)
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

// Requirements in docs/coverage.md: 11.3-01, 11.3-03
func TestFirstRun_keepsMadeUpAndRealNumbersInDifferentDatabases(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for name, keyFirst := range map[string]bool{"first run with a source, second run without one": true, "first run without a source, second run with one": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, withKey := range []bool{keyFirst, !keyFirst, keyFirst} {
				env := []string{"REELTALLY_LISTEN=127.0.0.1:0"}
				if withKey {
					env = append(env, "REELTALLY_YOUTUBE_API_KEY=a-real-key", "REELTALLY_YOUTUBE_BASE_URL=http://127.0.0.1:1/")
				}
				p := startInFolder(t, dir, filepath.Join(programs, "reeltally"), env, "up")
				p.stdout.Await(t, waitTimeout, "Ctrl-C stops.")
				_, base, _ := strings.Cut(p.stdout.Await(t, waitTimeout, "ReelTally runs at "), " at ")
				a := requireResponse(t, http.MethodGet, base+"/videos", strings.TrimSpace(p.stdout.Await(t, waitTimeout, "  rt_")), nil)
				var list struct{ Data []trackedVideo }
				a.decode(t, &list)
				if withKey {
					require.Empty(t, a.header.Get("ReelTally-Sandbox"))
					require.Empty(t, list.Data)
					require.NotContains(t, p.stdout.String(), "MADE UP")
					require.FileExists(t, filepath.Join(dir, "data", "reeltally.db"))
				} else {
					require.Equal(t, "true", a.header.Get("ReelTally-Sandbox"))
					require.Len(t, list.Data, 60)
					require.Contains(t, p.stdout.String(), "MADE UP")
					require.FileExists(t, filepath.Join(dir, "data", "demo.db"))
				}
				p.stop(t, syscall.SIGINT)
			}
			p := startInFolder(t, dir, filepath.Join(programs, "reeltally"), []string{"REELTALLY_DATABASE_URL=sqlite:data/demo.db", "REELTALLY_YOUTUBE_API_KEY=a-real-key"}, "up")
			<-p.done
			require.Error(t, p.err)
			require.Contains(t, p.stderr.String(), "this database has made-up numbers of the sandbox, so real numbers cannot be stored in it")
		})
	}
}

// If the database already has real numbers, a collector whose source is the sandbox must stop before it stores a number.
//
// Requirements in docs/coverage.md: 11.3-01, 11.3-02
func TestDataKind_sandboxCollectorRefusesDatabaseWithRealNumbers(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := &stack{sandboxProcess: startSandbox(t)}
			s.env = append(slices.DeleteFunc(slices.Clone(s.sandboxProcess.env), func(setting string) bool {
				return strings.HasPrefix(setting, "REELTALLY_VENDOR") || strings.HasPrefix(setting, "REELTALLY_SANDBOX=")
			}), "REELTALLY_DATABASE_URL="+storetest.CreateDatabase(t, engine), "REELTALLY_LISTEN=127.0.0.1:0")
			s.token = s.newOrganisation(t)
			file := filepath.Join(t.TempDir(), "old.csv")
			require.NoError(t, os.WriteFile(file, []byte("link,date,views\nhttps://youtu.be/dQw4w9WgXcQ,2026-01-01,7\n"), 0o600))
			runOperator(t, s.env, "import", "--org", "Tester", file)
			s.startServer(t)
			v := s.publicVideos(t, link.YouTube, 1, 5)[0]
			a := requireResponse(t, http.MethodPost, s.base+"/videos", s.token, map[string]any{"link": v.url})
			require.Equal(t, http.StatusOK, a.status)
			require.Empty(t, a.header.Get("ReelTally-Sandbox"), "the imported numbers are real")
			s.startCollector(t)
			<-s.collector.done
			require.Error(t, s.collector.err)
			require.Contains(t, s.collector.stderr.String(), "this database has real numbers, so made-up numbers of the sandbox cannot be stored in it")
			require.Empty(t, s.requestHistory(t, v))
		})
	}
}

// runShellLine runs a curl command in a shell and decodes the JSON response into result, which is a pointer. It fails the test if the
// status is not 200.
func runShellLine(t *testing.T, line string, result any) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", line+` -w '\n%{http_code}'`).CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, out)
	end := strings.LastIndex(string(out), "\n")
	body, status := string(out[:end]), string(out[end+1:])
	require.Equal(t, "200", status, "%s\n%s", line, body)
	require.NoError(t, json.Unmarshal([]byte(body), result), body)
}
