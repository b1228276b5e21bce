package web

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOperationsSummary_saysWhetherCollectingWorks(t *testing.T) {
	t.Parallel()
	const platforms = `"platforms": [{"platform": "tiktok", "targets": 100, "fresh": 98}, {"platform": "youtube", "targets": 77, "fresh": 76, "stale": 1}]`
	for _, test := range []struct {
		status   string
		statuses []statusTotal
		want     collectingSummary
	}{
		{`{}`, nil, collectingSummary{}},
		{`{"platforms": [{"platform": "tiktok", "targets": 1, "fresh": 1}]}`, nil, collectingSummary{Text: "1 of 1 video or account has numbers of the last 36 hours."}},
		{`{` + platforms + `}`, []statusTotal{{"ok", 173}, {"private", 2}, {"gone", 1}, {"failing", 1}},
			collectingSummary{Text: "174 of 177 videos and accounts have numbers of the last 36 hours. 1 is failing, 2 are private and 1 is gone from the platform."}},
		{`{"platforms": [{"platform": "tiktok", "targets": 30, "fresh": 20, "stale": 3, "backlog": "late"}], "sources": [
			{"source": "a", "pause": {"in_a_row": 2, "since": "2026-11-29T08:00:00Z"}}, {"source": "b", "held_back": "why"}, {"source": "c", "pause": {"in_a_row": 0}},
			{"source": "d", "budgets": [{"budget": "x", "pause": {"in_a_row": 1, "since": "2026-11-29T08:00:00Z"}}]}]}`, []statusTotal{{"failing", 3}},
			collectingSummary{Text: "20 of 30 videos and accounts have numbers of the last 36 hours. 3 are failing.", Problems: []string{"Fetches of TikTok are late.", "The source a fails.",
				"Answers of the source b are held back.", "The source d fails.", "At least a tenth of the videos and accounts are failing.", "3 videos and accounts have numbers older than 48 hours."}}},
		{`{"platforms": [{"platform": "tiktok", "targets": 31, "fresh": 20, "stale": 3}]}`, []statusTotal{{"failing", 3}},
			collectingSummary{Text: "20 of 31 videos and accounts have numbers of the last 36 hours. 3 are failing."}},
	} {
		var page operationsPage
		require.NoError(t, json.Unmarshal([]byte(test.status), &page.Status))
		page.Statuses = test.statuses
		require.Equal(t, test.want, page.summary(), test.status)
	}
}
