package vendor_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/collector/vendor"
	"github.com/reeltally/reeltally/store/queue"
)

// apifyRunTest is a simulated Apify with one run. It is the HTTP transport of its source, so that the pauses between requests can pass on the
// fake clock of synctest.
type apifyRunTest struct {
	*vendor.Source
	// states has the answers to requests for the state of the run, one after the other; the last one is repeated. An answer is the state, an HTTP
	// status such as "502", an HTTP status with the seconds of Retry-After such as "429 90", or "broken" for a connection that breaks.
	states []string
	// items has the answers to requests for the items in the same form; an answer that is not one of these is the body.
	items    []string
	abort    string        // the answer to the request that aborts the run, in the same form
	start    time.Duration // the time until the answer to the start of the run
	requests []string      // the paths of the received requests
}

// newApifyRunTest returns an apifyRunTest. Its source refuses answers of more than 1,000 bytes. If itemPath is not "", the items of a video are at
// this path of an answer.
func newApifyRunTest(t *testing.T, states, items []string, itemPath string) *apifyRunTest {
	t.Helper()
	w := &apifyRunTest{states: states, items: items, abort: "ABORTING"}
	config, err := vendor.Load("apify")
	require.NoError(t, err)
	if itemPath != "" {
		config.Calls[0].Items = []string{itemPath}
	}
	w.Source, err = vendor.New(config, vendor.Options{
		BaseURL: "https://apify.example", Key: sourcetest.Credential, Client: fetch.New(fetch.Options{Transport: w, MaxBody: 1000}), Now: time.Now,
	})
	require.NoError(t, err)
	return w
}

func (w *apifyRunTest) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w.requests = append(w.requests, r.Method+" "+r.URL.RequestURI())
	if strings.HasSuffix(r.URL.Path, "/runs") {
		select {
		case <-time.After(w.start):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		return runAnswer(http.StatusCreated, `{"data":{"id":"run1","status":"READY","defaultDatasetId":"set1"}}`), nil
	}
	answers, format := &w.states, `{"data":{"id":"run1","status":%q}}`
	switch path.Base(r.URL.Path) {
	case "items":
		answers, format = &w.items, "%s"
	case "abort":
		answers = &[]string{w.abort}
	}
	answer := (*answers)[0]
	if len(*answers) > 1 {
		*answers = (*answers)[1:]
	}
	status, retryAfter := 0, ""
	if answer == "broken" {
		return nil, io.ErrUnexpectedEOF
	}
	if n, _ := fmt.Sscan(answer, &status, &retryAfter); n == 0 {
		return runAnswer(http.StatusOK, fmt.Sprintf(format, answer)), nil
	}
	res := runAnswer(status, `{"error":{"type":"x","message":"refused"}}`)
	res.Header.Set("Retry-After", retryAfter)
	return res, nil
}

func runAnswer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

// fetchContext returns a context with the time limit that the collector sets for fetching videos from Apify.
func fetchContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

const (
	runStart  = "POST /acts/clockworks~tiktok-scraper/runs?timeout=540"
	runStatus = "GET /actor-runs/run1?waitForFinish=60"
	runItems  = "GET /actor-runs/run1/dataset/items"
	runAbort  = "POST /actor-runs/run1/abort"
)

// A run must be started only once, because each run is paid. So a failure after the start must have the cause ErrNoAnswer: the collector then
// does not divide the batch.
func TestSource_waitsForRunAndRepeatsRequestsAboutIt(t *testing.T) {
	t.Parallel()
	batch := []queue.Target{tiktokTarget(pancakes, "mira.cooks"), tiktokTarget(train, "mira.cooks")}
	part := `[{"id":"` + pancakes + `","playCount":7}]`
	both := `[{"id":"` + pancakes + `","playCount":7},{"id":"` + train + `","playCount":8}]`
	const noSuccess = "the vendor's run has ended without success: FAILED"
	for name, tt := range map[string]struct {
		states, items []string
		itemPath      string
		classes       []source.Class // one for each target of the batch, or the class of the failure
		failed        string         // a part of the failure's text; "" if Fetch returns results
		requests      []string       // the expected requests after the start of the run
	}{
		"a run that takes several minutes":        {[]string{"RUNNING", "RUNNING", "SUCCEEDED"}, []string{both}, "", []source.Class{source.OK, source.OK}, "", []string{runStatus, runStatus, runStatus, runItems}},
		"a failed request for the state":          {[]string{"502", "429", "408", "SUCCEEDED"}, []string{both}, "", []source.Class{source.OK, source.OK}, "", []string{runStatus, runStatus, runStatus, runStatus, runItems}},
		"a failed request for the items":          {[]string{"SUCCEEDED"}, []string{"503", "broken", both}, "", []source.Class{source.OK, source.OK}, "", []string{runStatus, runItems, runItems, runItems}},
		"a refused key":                           {[]string{"401"}, nil, "", []source.Class{source.AuthFailed}, "HTTP 401", []string{runStatus}},
		"a refused request for the state":         {[]string{"404"}, nil, "", []source.Class{source.Temporary}, "HTTP 404: refused", []string{runStatus}},
		"a refused request for the items":         {[]string{"SUCCEEDED"}, []string{"400"}, "", []source.Class{source.Temporary}, "HTTP 400: refused", []string{runStatus, runItems}},
		"items that are not JSON":                 {[]string{"SUCCEEDED"}, []string{"[{"}, "", []source.Class{source.Temporary}, "not JSON", []string{runStatus, runItems}},
		"an answer without items":                 {[]string{"SUCCEEDED"}, []string{"true"}, "", []source.Class{source.Temporary}, "no items at .", []string{runStatus, runItems}},
		"a run that Apify has ended":              {[]string{"TIMING-OUT", "TIMED-OUT"}, []string{part}, "", []source.Class{source.OK, source.Temporary}, "", []string{runStatus, runStatus, runItems}},
		"a failed run without items":              {[]string{"FAILED"}, []string{"[]"}, "", []source.Class{source.Temporary}, noSuccess, []string{runStatus, runItems}},
		"a failed run whose list inside is empty": {[]string{"FAILED"}, []string{`{"data":{"items":[]}}`}, "data.items", []source.Class{source.Temporary}, noSuccess, []string{runStatus, runItems}},
		"a failed run whose list inside has part": {[]string{"FAILED"}, []string{`{"data":{"items":` + part + `}}`}, "data.items", []source.Class{source.OK, source.Temporary}, "", []string{runStatus, runItems}},
		"an answer that does not say the state":   {[]string{""}, []string{"[]"}, "", []source.Class{source.Temporary}, "without success", []string{runStatus, runItems}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newApifyRunTest(t, tt.states, tt.items, tt.itemPath)
				budget := source.NewCallBudget(w.Plan(batch)[0])
				results, err := w.Fetch(fetchContext(t), batch, budget)
				require.Equal(t, append([]string{runStart}, tt.requests...), w.requests)
				require.Equal(t, int64(1), budget.Spent()[0].Units, "only the start of a run may take a unit")
				if tt.failed != "" {
					var f *source.Failure
					require.ErrorAs(t, err, &f)
					require.Equal(t, tt.classes[0], f.Class, f.Detail)
					require.Contains(t, f.Detail, tt.failed)
					require.ErrorIs(t, err, source.ErrNoAnswer)
					return
				}
				require.NoError(t, err)
				for i, class := range tt.classes {
					require.Equal(t, class, results[i].Class, results[i].Detail)
				}
			})
		})
	}
}

// A run can take minutes and is paid, so it must not be given up because of a short outage of the vendor.
func TestSource_repeatsRequestsAboutARunUntilTheTimeOfTheFetchEnds(t *testing.T) {
	t.Parallel()
	batch := []queue.Target{tiktokTarget(pancakes, "mira.cooks")}
	items := []string{`[{"id":"` + pancakes + `","playCount":7}]`}
	for name, tt := range map[string]struct {
		states   []string
		took     time.Duration
		requests int          // expected number of requests for the state
		class    source.Class // class of the failure; "" if Fetch returns results
	}{
		"an outage of five minutes":          {[]string{"502", "502", "broken", "502", "502", "502", "502", "502", "SUCCEEDED"}, 315 * time.Second, 9, ""},
		"an outage that is too long":         {[]string{"502"}, 10 * time.Minute, 13, source.Temporary},
		"a vendor that is busy for too long": {[]string{"429"}, 10 * time.Minute, 13, source.RateLimited},
		"a vendor that asks for a pause":     {[]string{"429 90", "SUCCEEDED"}, 90 * time.Second, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := fetchContext(t)
				w, began := newApifyRunTest(t, tt.states, items, ""), time.Now()
				_, err := w.Fetch(ctx, batch, source.NewCallBudget(w.Plan(batch)[0]))
				require.Equal(t, tt.took, time.Since(began))
				asked := slices.DeleteFunc(w.requests, func(r string) bool { return r != runStatus })
				require.Len(t, asked, tt.requests)
				if tt.class == "" {
					require.NoError(t, err)
					return
				}
				var f *source.Failure
				require.ErrorAs(t, err, &f)
				require.Equal(t, tt.class, f.Class, f.Detail)
				require.Contains(t, f.Detail, "HTTP "+tt.states[0], "the failure must say what the vendor answered")
				require.ErrorIs(t, err, source.ErrNoAnswer)
			})
		})
	}
}

// The collector divides a batch whose answer is too large, so this failure must not have the cause ErrNoAnswer.
func TestSource_requestsItemsOfARunOnceIfTheyAreTooLarge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		batch := []queue.Target{tiktokTarget(pancakes, "mira.cooks"), tiktokTarget(train, "mira.cooks")}
		w := newApifyRunTest(t, []string{"SUCCEEDED"}, []string{"[" + strings.Repeat(" ", 1000) + "]"}, "")
		_, err := w.Fetch(fetchContext(t), batch, source.NewCallBudget(w.Plan(batch)[0]))
		require.ErrorIs(t, err, fetch.ErrTooLarge)
		require.NotErrorIs(t, err, source.ErrNoAnswer)
		require.Equal(t, []string{runStart, runStatus, runItems}, w.requests)
	})
}

// A part of a list must not be taken as the complete list.
func TestSource_usesNoPartOfAListFromARun(t *testing.T) {
	t.Parallel()
	batch := []queue.Target{accountTarget(t, "https://www.tiktok.com/@mira.cooks", 200)}
	list := []string{`[{"authorMeta":{"id":"1","name":"mira.cooks"},"id":"` + pancakes + `"}]`}
	w := newApifyRunTest(t, []string{"TIMED-OUT"}, list, "")
	_, err := w.Fetch(t.Context(), batch, source.NewCallBudget(w.Plan(batch)[0]))
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.Temporary, f.Class)
	require.Contains(t, f.Detail, "TIMED-OUT")

	w = newApifyRunTest(t, []string{"SUCCEEDED"}, list, "")
	results, err := w.Fetch(t.Context(), batch, source.NewCallBudget(w.Plan(batch)[0]))
	require.NoError(t, err)
	require.Len(t, results[0].Account.Videos, 1)
}

// A stopping collector must not leave a run behind, because the next fetch starts and pays another one. The items that the run has found are paid already.
func TestSource_abortsRunAndUsesItsItemsIfCancelled(t *testing.T) {
	t.Parallel()
	part := []string{`[{"id":"` + pancakes + `","playCount":7}]`}
	batch := []queue.Target{tiktokTarget(pancakes, "mira.cooks"), tiktokTarget(train, "mira.cooks")}
	for name, tt := range map[string]struct {
		state, abort string
		items        []string
		start        time.Duration
		cancelled    time.Duration // time from the beginning of the fetch until it is cancelled; 0 if it is cancelled before
		took         time.Duration
		answered     bool
		last         []string // the last requests
	}{
		"during a run": {state: "RUNNING", items: part, cancelled: 62 * time.Second, took: 62 * time.Second, answered: true, last: []string{runStatus, runAbort, runItems}},
		"during a run of a vendor that has failed":   {state: "502", items: part, cancelled: 62 * time.Second, took: 62 * time.Second, answered: true, last: []string{runStatus, runAbort, runItems}},
		"during a run of a vendor that is busy":      {state: "429 600", items: part, cancelled: 62 * time.Second, took: 62 * time.Second, answered: true, last: []string{runStatus, runAbort, runItems}},
		"during a run that has found nothing":        {state: "RUNNING", items: []string{"[]"}, cancelled: 62 * time.Second, took: 62 * time.Second, last: []string{runStatus, runAbort, runItems}},
		"while a run starts":                         {state: "RUNNING", items: part, start: 8 * time.Second, cancelled: time.Second, took: 8 * time.Second, answered: true, last: []string{runStart, runAbort, runItems}},
		"while a run takes too long to start":        {start: time.Minute, cancelled: time.Second, took: 11 * time.Second, last: []string{runStart}},
		"during the second request for the items":    {state: "SUCCEEDED", items: []string{"503", part[0]}, cancelled: time.Second, took: 5 * time.Second, answered: true, last: []string{runItems, runItems}},
		"during a run that cannot be aborted":        {state: "RUNNING", abort: "502", cancelled: 62 * time.Second, took: 72 * time.Second, last: []string{runStatus, runAbort, runAbort}},
		"before the fetch":                           {},
		"during a run that the vendor does not know": {state: "RUNNING", abort: "404", cancelled: 62 * time.Second, took: 62 * time.Second, last: []string{runStatus, runAbort}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(fetchContext(t))
				w, began := newApifyRunTest(t, []string{tt.state}, tt.items, ""), time.Now()
				w.abort, w.start = cmp.Or(tt.abort, w.abort), tt.start
				if tt.cancelled == 0 {
					cancel()
				}
				time.AfterFunc(tt.cancelled, cancel)
				results, err := w.Fetch(ctx, batch, source.NewCallBudget(nil))
				require.Equal(t, tt.took, time.Since(began))
				require.Equal(t, tt.last, w.requests[max(0, len(w.requests)-len(tt.last)):])
				if !tt.answered {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				require.Equal(t, []source.Class{source.OK, source.Temporary}, []source.Class{results[0].Class, results[1].Class})
			})
		})
	}
}
