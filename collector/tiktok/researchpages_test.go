package tiktok_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/collector/tiktok"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// newPagedSource returns a source for a test server with the given number of rows per page. If
// failingPage is positive, this page and later pages fail.
func newPagedSource(t *testing.T, rows, failingPage int) (s *tiktok.Research, requests func() []request) {
	t.Helper()
	base, requests := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/oauth/token/") {
			_, _ = io.WriteString(w, clientToken)
			return
		}
		var in struct {
			Query struct {
				And []struct {
					Values []string `json:"field_values"`
				} `json:"and"`
			} `json:"query"`
			Cursor   int    `json:"cursor"`
			SearchID string `json:"search_id"`
		}
		body, _ := io.ReadAll(r.Body)
		// A request for a later page must contain a cursor and the search id.
		if json.Unmarshal(body, &in) != nil || (in.Cursor > 0) != (in.SearchID == "7201388525814961198") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, errorAnswer("invalid_params", "cursor without search_id"))
			return
		}
		// The first page has the number 0.
		if failingPage > 0 && in.Cursor >= failingPage*rows {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, errorAnswer("internal_error", "x"))
			return
		}
		ids := in.Query.And[0].Values
		end := min(in.Cursor+rows, len(ids))
		var videos []string
		for _, id := range ids[in.Cursor:end] {
			videos = append(videos, researchVideoJSON(id, counts))
		}
		_, _ = io.WriteString(w, okAnswer(fmt.Sprintf(`{"videos":[%s],"cursor":%d,"has_more":%t,"search_id":"7201388525814961198"}`, strings.Join(videos, ","), end, end < len(ids))))
	})
	return newResearch(t, base, nil), requests
}

func TestResearch_requestsNoMorePagesThanPlanned(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		days                string // upload days, separated by spaces; each day has the same number of video ids
		rows, fails         int
		planned, made, lost int
	}{
		"one page":                             {"2026-03-01", 100, 0, 3, 1, 0},
		"two pages":                            {"2026-03-01", 60, 0, 3, 2, 0},
		"three pages, three reserved requests": {"2026-03-01", 34, 0, 3, 3, 0},
		"four pages, three reserved requests":  {"2026-03-01", 30, 0, 3, 3, 10},
		"failure of a later page":              {"2026-03-01", 40, 1, 3, 2, 60},
		"two queries, each of two pages":       {"2026-03-01 2026-06-01", 30, 0, 4, 4, 0},
		"two queries; the budget has too few requests for the second query": {"2026-03-01 2026-06-01", 17, 0, 4, 4, 33},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, requests := newPagedSource(t, tt.rows, tt.fails)
			days := strings.Fields(tt.days)
			var batch []queue.Target
			for i := range 100 {
				batch = append(batch, videoTarget(videoIDOf(days[i*len(days)/100], i), "", false))
			}
			plan := s.Plan(batch)[0]
			require.Equal(t, []source.Call{{Budget: tiktok.BudgetRequests, Units: int64(tt.planned)}, {Budget: tiktok.BudgetRecords, Units: 100}}, plan)
			results, err := s.Fetch(t.Context(), batch, source.NewCallBudget(plan))
			require.NoError(t, err)
			lost := 0
			for i, r := range results {
				require.Equal(t, batch[i], r.Target)
				if r.Class == source.OK {
					continue
				}
				require.Equal(t, source.Temporary, r.Class, "a video on a page that was not read must have the class Temporary: %s", r.Detail)
				lost++
			}
			require.Equal(t, tt.lost, lost)
			require.Len(t, requests(), 1+tt.made, "there must be one token request, plus the expected number of page requests")
		})
	}
}

func TestResearch_returnsVideosOfAllPagesOfSandbox(t *testing.T) {
	t.Parallel()
	s := startSandbox(t)
	old := sourcetest.Now.AddDate(0, -3, 0)
	var batch []queue.Target
	for i := range 100 {
		id := videoIDOf(old.Format("2006-01-02"), i)
		_, known := s.box.World().Video(link.TikTok, id, sourcetest.Now.Add(-sandbox.ResearchLag))
		require.True(t, known)
		batch = append(batch, videoTarget(id, "", false))
	}
	there := 0
	for _, r := range fetchBatch(t, s.research, batch) {
		require.Contains(t, []source.Class{source.OK, source.Missing}, r.Class, r.Detail) // the class Missing is allowed, because a few videos of the sandbox are private or deleted
		if r.Class == source.OK {
			there++
		}
	}
	require.Greater(t, there, 80)
}
