package vendor_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/store/queue"
)

// apifyRunTest is a simulated Apify with one run.
type apifyRunTest struct {
	*vendor.Source
	requests []string // the paths of the received requests
}

// newApifyRunTest starts an apifyRunTest. states has the answers to requests for the state of the run, one after the other: the state, or an HTTP
// status such as "502". items has the answers to requests for the items in the same form; an answer that is not an HTTP status is the body.
func newApifyRunTest(t *testing.T, states, items []string) *apifyRunTest {
	t.Helper()
	w := &apifyRunTest{}
	web := httptest.NewServer(http.HandlerFunc(func(res http.ResponseWriter, r *http.Request) {
		w.requests = append(w.requests, r.Method+" "+r.RequestURI)
		next := func(answers *[]string, format string) {
			answer := (*answers)[0]
			if len(*answers) > 1 {
				*answers = (*answers)[1:]
			}
			status := 0
			if _, err := fmt.Sscanf(answer, "%d", &status); err == nil {
				res.WriteHeader(status)
				answer, format = `{"error":{"type":"x","message":"refused"}}`, "%s"
			}
			_, _ = fmt.Fprintf(res, format, answer)
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/runs"):
			res.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(res, `{"data":{"id":"run1","status":"READY","defaultDatasetId":"set1"}}`)
		case strings.HasSuffix(r.URL.Path, "/items"):
			next(&items, "%s")
		default:
			next(&states, `{"data":{"id":"run1","status":%q}}`)
		}
	}))
	t.Cleanup(web.Close)
	w.Source = newSource(t, "apify", web.URL, nil)
	w.SkipRunPauses()
	return w
}

const (
	runStart  = "POST /acts/clockworks~tiktok-scraper/runs?timeout=540"
	runStatus = "GET /actor-runs/run1?waitForFinish=60"
	runItems  = "GET /actor-runs/run1/dataset/items"
)

// A run must be started only once, because each run is paid.
func TestSource_waitsForRunAndRepeatsRequestsAboutIt(t *testing.T) {
	t.Parallel()
	batch := []queue.Target{tiktokTarget(pancakes, "mira.cooks"), tiktokTarget(train, "mira.cooks")}
	part := `[{"id":"` + pancakes + `","playCount":7}]`
	both := `[{"id":"` + pancakes + `","playCount":7},{"id":"` + train + `","playCount":8}]`
	for name, tt := range map[string]struct {
		states, items []string
		classes       []source.Class // one for each target of the batch, or the class of the failure
		failed        string         // a part of the failure's text; "" if Fetch returns results
		requests      []string       // after the start
	}{
		"a run that takes several minutes":      {[]string{"RUNNING", "RUNNING", "SUCCEEDED"}, []string{both}, []source.Class{source.OK, source.OK}, "", []string{runStatus, runStatus, runStatus, runItems}},
		"a failed request for the state":        {[]string{"502", "429", "408", "SUCCEEDED"}, []string{both}, []source.Class{source.OK, source.OK}, "", []string{runStatus, runStatus, runStatus, runStatus, runItems}},
		"a failed request for the items":        {[]string{"SUCCEEDED"}, []string{"503", both}, []source.Class{source.OK, source.OK}, "", []string{runStatus, runItems, runItems}},
		"a vendor that fails for a long time":   {[]string{"502"}, nil, []source.Class{source.Temporary}, "HTTP 502", []string{runStatus, runStatus, runStatus, runStatus}},
		"a refused key":                         {[]string{"401"}, nil, []source.Class{source.AuthFailed}, "HTTP 401", []string{runStatus}},
		"a run that Apify has ended":            {[]string{"TIMING-OUT", "TIMED-OUT"}, []string{part}, []source.Class{source.OK, source.Temporary}, "", []string{runStatus, runStatus, runItems}},
		"a failed run without items":            {[]string{"FAILED"}, []string{"[]"}, []source.Class{source.Temporary}, "the vendor's run has ended without success: FAILED", []string{runStatus, runItems}},
		"an answer that does not say the state": {[]string{""}, []string{"[]"}, []source.Class{source.Temporary}, "without success", []string{runStatus, runItems}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newApifyRunTest(t, tt.states, tt.items)
			budget := source.NewCallBudget(w.Plan(batch)[0])
			budget.Meter()
			results, err := w.Fetch(t.Context(), batch, budget)
			require.Equal(t, append([]string{runStart}, tt.requests...), w.requests)
			require.Equal(t, int64(1), budget.Spent()[0].Units, "only the start of a run may take a unit")
			if tt.failed != "" {
				var f *source.Failure
				require.ErrorAs(t, err, &f)
				require.Equal(t, tt.classes[0], f.Class, f.Detail)
				require.Contains(t, f.Detail, tt.failed)
				return
			}
			require.NoError(t, err)
			for i, class := range tt.classes {
				require.Equal(t, class, results[i].Class, results[i].Detail)
			}
		})
	}
}

// A part of a list must not be taken as the complete list.
func TestSource_usesNoPartOfAListFromARun(t *testing.T) {
	t.Parallel()
	batch := []queue.Target{accountTarget(t, "https://www.tiktok.com/@mira.cooks", 200)}
	list := []string{`[{"authorMeta":{"id":"1","name":"mira.cooks"},"id":"` + pancakes + `"}]`}
	w := newApifyRunTest(t, []string{"TIMED-OUT"}, list)
	_, err := w.Fetch(t.Context(), batch, source.NewCallBudget(w.Plan(batch)[0]))
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.Temporary, f.Class)
	require.Contains(t, f.Detail, "TIMED-OUT")

	w = newApifyRunTest(t, []string{"SUCCEEDED"}, list)
	results, err := w.Fetch(t.Context(), batch, source.NewCallBudget(w.Plan(batch)[0]))
	require.NoError(t, err)
	require.Len(t, results[0].Account.Videos, 1)
}

func TestSource_stopsWaitingForRunIfCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := newApifyRunTest(t, []string{"RUNNING"}, nil)
	batch := []queue.Target{tiktokTarget(pancakes, "mira.cooks")}
	done := make(chan error)
	go func() {
		_, err := w.Fetch(ctx, batch, source.NewCallBudget(nil))
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}
