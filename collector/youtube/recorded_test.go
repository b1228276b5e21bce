package youtube_test

import (
	"flag"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/youtube"
	"github.com/reeltally/reeltally/store/queue"
)

var update = flag.Bool("update", false, "rewrite the recorded requests")

// recorder is an http.RoundTripper that records the request and returns a fixed answer.
type recorder struct {
	t       *testing.T
	answer  string
	request string
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	wire, err := httputil.DumpRequestOut(request, true)
	require.NoError(r.t, err)
	r.request = request.URL.Scheme + "\n" + strings.ReplaceAll(strings.ReplaceAll(string(wire), "secret-key", "KEY"), "\r\n", "\n")
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(r.answer)), Request: request}, nil
}

// TestFetch_sendsRequestsAsDocumented compares the sent requests with the documentation (developers.google.com/youtube/v3/docs/videos/list
// and .../videos/batchGetStats).
func TestFetch_sendsRequestsAsDocumented(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		details bool
		budget  string
	}{
		"videos":        {true, youtube.BudgetCommon},
		"batchgetstats": {false, youtube.BudgetStats},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{t: t, answer: `{"items": []}`}
			s, err := youtube.New(youtube.Options{APIKey: "secret-key", Now: time.Now,
				Client: fetch.New(fetch.Options{Transport: r})})
			require.NoError(t, err)
			require.Equal(t, "https://youtube.googleapis.com/youtube/v3/", s.Address())
			batch := []queue.Target{videoTarget(pancakes, c.details), videoTarget(train, c.details)}
			_, err = s.Fetch(t.Context(), batch, source.NewCallBudget([]source.Call{{Budget: c.budget, Units: 1}}))
			require.NoError(t, err)
			file := "testdata/recorded_" + name + ".http"
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(r.request), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), r.request)
		})
	}
}
