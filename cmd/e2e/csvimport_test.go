package e2e_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server/formula"
	"github.com/reeltally/reeltally/store/storetest"
)

// csvVideos is the number of videos that the test exports as CSV and imports again. A page of the API has at most 5,000 videos, so the test
// reads three pages.
const csvVideos = 10_050

// writeVideos writes a CSV file of videos with captions that a spreadsheet could run as formulas.
func writeVideos(t *testing.T, path string) {
	t.Helper()
	captions := []string{"=1+1", "'=1", "'", "+a;-b", "x;=HYPERLINK(1)", `"=1`, "a\n@b", "1,5", "Spring sale"}
	f, err := os.Create(path)
	require.NoError(t, err)
	w := csv.NewWriter(f)
	require.NoError(t, w.Write([]string{"link", "date", "views", "likes", "video_length", "title"}))
	day := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	for n := range csvVideos {
		require.NoError(t, w.Write([]string{fmt.Sprintf("https://www.tiktok.com/@creator%d/video/73012345%011d", n%50, n), day, fmt.Sprint(n), fmt.Sprint(n / 3), "12.5",
			formula.Escape(captions[n%len(captions)])}))
	}
	w.Flush()
	require.NoError(t, w.Error())
	require.NoError(t, f.Close())
}

// pagesOf requests all pages of the list of videos in a format such as text/csv, and returns them as one text. It removes the line with the
// column names from every page except the first.
func (s *stack) pagesOf(t *testing.T, token, mediaType string) string {
	t.Helper()
	var all strings.Builder
	next := "/videos?limit=5000&order_by=created_at"
	for next != "" {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+next, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept", mediaType)
		res, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusOK, res.StatusCode, string(body))
		if all.Len() > 0 {
			_, rows, _ := strings.Cut(string(body), "\n")
			body = []byte(rows)
		}
		all.Write(body)
		next = ""
		if link := linkOfNextPage.FindStringSubmatch(res.Header.Get("Link")); link != nil {
			next = "/videos" + link[1]
		}
	}
	return all.String()
}

// linkOfNextPage matches the header Link of a page of a list, and captures the query of the next page.
var linkOfNextPage = regexp.MustCompile(`<(\?[^>]*)>; rel="next"`)

// factsOf returns the values of each video that an import can restore, as JSON. The key of the map is the link of the video.
func (s *stack) factsOf(t *testing.T, token string) map[string]string {
	t.Helper()
	type facts struct {
		Title        string
		LatestViews  int64  `json:"latest_views"`
		LatestLikes  int64  `json:"latest_likes"`
		VideoLength  string `json:"video_length"`
		Username     string
		LatestUpdate string `json:"latest_updated_at"`
	}
	found := map[string]string{}
	for page := 1; ; page++ {
		var list struct {
			Data []struct {
				Link string `json:"ad_link"`
				facts
			}
		}
		call(t, http.MethodGet, fmt.Sprintf("%s/videos?limit=5000&page=%d&order_by=created_at", s.base, page), token, nil).decode(t, &list)
		if len(list.Data) == 0 {
			return found
		}
		for _, v := range list.Data {
			text, err := json.Marshal(v.facts)
			require.NoError(t, err)
			found[v.Link] = string(text)
		}
	}
}

// Requirements in docs/coverage.md: 14.4-03
func TestImport_restoresTheVideosOfACSVOfTheAPI(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	s := &stack{env: []string{"REELTALLY_DATABASE_URL=" + storetest.NewURL(t, storetest.Engines[0]), "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_RATE_LIMITS=off"}}
	organisation := func(name string) (token string) {
		var made struct {
			ID    string `json:"organisation_id"`
			Token string
		}
		require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "org", "create", "--name", name, "--tier", "premium", "--json")), &made))
		require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "token", "create", "--org", made.ID, "--name", "Test", "--json")), &made))
		return made.Token
	}
	dir := t.TempDir()
	original := filepath.Join(dir, "original.csv")
	writeVideos(t, original)
	token := organisation("Original")
	runOperator(t, s.env, "import", "--org", "Original", original)
	s.startServer(t)
	want := s.factsOf(t, token)
	require.Len(t, want, csvVideos)
	for name, accept := range map[string]string{"Commas": "text/csv", "Semicolons": "text/csv; delimiter=semicolon"} {
		file := filepath.Join(dir, name+".csv")
		require.NoError(t, os.WriteFile(file, []byte(s.pagesOf(t, token, accept)), 0o600))
		copied := organisation(name)
		runOperator(t, s.env, "import", "--org", name, file)
		require.Equal(t, want, s.factsOf(t, copied), name)
	}
}
