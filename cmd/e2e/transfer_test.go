package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

const (
	transferVideos = 1500
	transferDays   = 4
)

// writeTrackerFile writes a CSV file as another tracking service could export it. The file is sorted by day, so the rows of a video are far
// apart.
func writeTrackerFile(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	_, err = fmt.Fprintln(f, "Video URL,Day,Views,Likes")
	require.NoError(t, err)
	today := time.Now().UTC()
	for day := range transferDays {
		for n := range transferVideos {
			_, err := fmt.Fprintf(f, "https://www.tiktok.com/@creator%d/video/73012345%011d,%s,%d,%d\n", n%50, n,
				today.AddDate(0, 0, day-transferDays).Format(time.DateOnly), 1000*n+day, n)
			require.NoError(t, err)
		}
	}
	require.NoError(t, f.Close())
}

// readResponses returns responses with the numbers of an organisation. They contain no ids, so a test can compare two organisations.
func readResponses(t *testing.T, s *stack, token string) string {
	t.Helper()
	var b strings.Builder
	for _, path := range []string{"/organisation/history", "/statistics/videos", "/accounts/https%3A%2F%2Fwww.tiktok.com%2F%40creator7/history"} {
		b.Write(requireResponse(t, "GET", s.base+path, token, nil).body)
	}
	return b.String()
}

// runKilledRepeatedly starts a reeltally command again and again, and kills it. Each run gets more
// time than the run before. When a run succeeds, runKilledRepeatedly returns its output.
func runKilledRepeatedly(t *testing.T, env []string, args ...string) (kills int, printed string) {
	t.Helper()
	for after := 10 * time.Millisecond; ; after += after / 4 {
		p := startProgram(t, "reeltally", env, args...)
		timer := time.NewTimer(after)
		select {
		case <-timer.C:
			p.kill()
		case <-p.done:
			timer.Stop()
		}
		if p.err == nil {
			return kills, p.stdout.String()
		}
		require.Contains(t, p.err.Error(), "killed", p.stderr.String())
		kills++
	}
}

// An import or export that is killed several times and started again must have the same result as an uninterrupted import or export.
func TestTransfer_resumesAfterEachKill(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := &stack{sandboxProcess: startSandbox(t)}
			s.env = append(slices.Clone(s.sandboxProcess.env), "REELTALLY_DATABASE_URL="+storetest.CreateDatabase(t, engine), "REELTALLY_LISTEN=127.0.0.1:0")
			dir := t.TempDir()
			in := filepath.Join(dir, "in.csv")
			writeTrackerFile(t, in)
			organisation := func(name string) (token string) {
				var made struct {
					ID    string `json:"organisation_id"`
					Token string
				}
				require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "org", "create", "--name", name, "--json")), &made))
				require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "token", "create", "--org", made.ID, "--name", "Test", "--json")), &made))
				return made.Token
			}
			referenceToken := organisation("Reference")
			killedToken := organisation("Killed")

			runOperator(t, s.env, "import", "--org", "Reference", in)
			importKills, printed := runKilledRepeatedly(t, s.env, "import", "--org", "Killed", "--json", in)
			require.GreaterOrEqual(t, importKills, 3)
			var summary map[string]int
			require.NoError(t, json.Unmarshal([]byte(printed), &summary))
			require.Equal(t, transferVideos, summary["videos"])
			require.Equal(t, transferVideos*transferDays, summary["added"]+summary["existing"])
			require.Zero(t, summary["conflicts"])

			export := func(org, file string, resume bool) []string {
				path := filepath.Join(dir, file)
				args := []string{"export", "--org", org, "--out", path}
				if resume {
					kills, _ := runKilledRepeatedly(t, s.env, append(args, "--resume")...)
					require.GreaterOrEqual(t, kills, 1)
				} else {
					runOperator(t, s.env, args...)
				}
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoFileExists(t, path+".part")
				require.NoFileExists(t, path+".part-state")
				return slices.Collect(strings.Lines(string(text)))
			}
			reference, killed := export("Reference", "reference.csv", false), export("Killed", "killed.csv", false)
			require.Len(t, reference, 1+transferVideos*transferDays)
			require.Equal(t, reference, killed)
			require.Equal(t, reference, export("Reference", "resumed.csv", true))

			s.startServer(t)
			want := readResponses(t, s, referenceToken)
			require.Contains(t, want, fmt.Sprintf(`"total":%d`, transferVideos))
			require.Equal(t, want, readResponses(t, s, killedToken))
			t.Logf("the import was killed %d times", importKills)
		})
	}
}
