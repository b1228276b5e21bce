package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// withToken is an HTTP transport. Its value is a token, which it adds to every request.
type withToken string

func (token withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

func TestMCP_clientTracksLinkAndReadsNumbers(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			env := []string{"REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_DATA_DIR=" + data}
			if engine == "postgres" {
				env = append(env, "REELTALLY_DATABASE_URL="+storetest.CreateEmptyDatabase(t, engine))
			}
			p := startProgram(t, "reeltally", env, "up")
			p.stdout.Await(t, waitTimeout, "Ctrl-C stops.")
			base := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(p.stdout.String())
			token, err := os.ReadFile(filepath.Join(data, "demo-token"))
			require.NoError(t, err)

			session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(),
				&mcp.StreamableClientTransport{Endpoint: base + "/mcp", HTTPClient: &http.Client{Transport: withToken(strings.TrimSpace(string(token)))}}, nil)
			require.NoError(t, err)
			t.Cleanup(func() { _ = session.Close() })
			callTool := func(tool string, arguments map[string]any) map[string]any {
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
				require.NoError(t, err)
				require.False(t, result.IsError, "%s: %v", tool, result.Content)
				response, ok := result.StructuredContent.(map[string]any)
				require.True(t, ok)
				return response
			}

			tools, err := session.ListTools(t.Context(), nil)
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(tools.Tools), 32)
			const url = "https://www.youtube.com/shorts/aBcDeFgHiJk"
			trackedVideo := callTool("track_video", map[string]any{"link": url})
			await(t, fetchTimeout, 500*time.Millisecond, func() string {
				if callTool("get_video", map[string]any{"ad_id": url})["latest_views"] == nil {
					return "the tracked video has no numbers yet"
				}
				return ""
			})
			video := callTool("get_video", map[string]any{"ad_id": trackedVideo["videoId"]})
			require.Positive(t, video["latest_views"])
			history := callTool("get_video_history", map[string]any{"ad_id": url})
			points, ok := history["items"].([]any)
			require.True(t, ok)
			require.NotEmpty(t, points)
		})
	}
}
