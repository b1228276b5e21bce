package server_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/server/formula"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// requestCSV requests a list as CSV and returns its rows. The first row has the names of the columns.
func (c *caller) requestCSV(target string) [][]string {
	c.t.Helper()
	got := c.send(http.MethodGet, target, nil, "Accept", "text/csv").requireStatus(http.StatusOK)
	require.Equal(c.t, "text/csv; charset=utf-8; header=present", got.Header.Get("Content-Type"))
	rows, err := csv.NewReader(strings.NewReader(string(got.body))).ReadAll()
	require.NoError(c.t, err)
	return rows
}

// decodeEntries returns the entries of a JSON list. The list is an array, or the array in the member "data" of an object.
func decodeEntries(t *testing.T, body []byte) []map[string]any {
	t.Helper()
	var list struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(body, &list) == nil && list.Data != nil {
		body = list.Data
	}
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	var entries []map[string]any
	require.NoError(t, decoder.Decode(&entries))
	return entries
}

// csvCell returns the text of a CSV cell that contains a JSON value.
func csvCell(t *testing.T, value any) string {
	t.Helper()
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return formula.Escape(value)
	case json.Number, bool:
		return fmt.Sprint(value)
	}
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return formula.Escape(string(text))
}

// dangerousCaptions are video captions. Many of them are dangerous in a spreadsheet: the spreadsheet could run them as formulas, convert them to
// numbers, or split them into several cells.
var dangerousCaptions = []string{`=HYPERLINK("http://x")`, "+1", "-1", "@cmd", "a,b \"c\"\nd; e", "مرحبا", "", "'quoted", "x;=1+1", "_x0041_ & <b>", " 1.5 ", "12,5"}

// newCallerWithDangerousCaptions returns a caller whose videos have the captions in dangerousCaptions, and paths of lists and histories with these
// captions.
func newCallerWithDangerousCaptions(t *testing.T, a *app) (c *caller, lists []string) {
	t.Helper()
	c = a.newCaller(t, store.TierPremium)
	for n := range dangerousCaptions {
		c.track(videoURL(n))
	}
	n := 0
	a.fetch(func(queue.Target) ingest.VideoFacts {
		n++
		return ingest.VideoFacts{Views: new(int64(n)), Likes: new(int64(0)), Title: &dangerousCaptions[n-1], Username: new("northwind.studio"), LengthSeconds: new(12.5)}
	})
	id := c.track(videoURL(0))
	collection := c.createCollection(map[string]any{"name": "=Launch", "access": "public", "hashtags": []string{"spring", "sale"}})
	c.send(http.MethodPost, "/collections/"+collection.String()+"/videos", map[string]any{"video_ids": []string{id.String()}}).requireStatus(http.StatusOK)
	hook := c.createWebhook("https://hooks.example.com/=1")
	c.testWebhook(hook.ID)
	a.Clock.Advance(3 * time.Minute) // an export has only history points that are at least two minutes old
	return c, []string{
		"/videos", "/videos?limit=3&order_by=latest_views", "/videos?collections=none", "/videos/" + id.String() + "/history", "/videos/" + id.String() + "/history?include=quality",
		"/accounts?include_linked=true", "/accounts?include_linked=true&paginated=true", "/collections", "/collections?paginated=true", "/collections/" + collection.String() + "/videos",
		"/collections/" + collection.String() + "/accounts", "/collections/" + collection.String() + "/history", "/organisation/history", "/tokens", "/history/export",
		"/webhooks", "/webhooks/" + hook.ID.String() + "/deliveries", "/events",
	}
}

// requestJSON requests a list as JSON and returns its entries.
func (c *caller) requestJSON(target string) []map[string]any {
	c.t.Helper()
	got := c.send(http.MethodGet, target, nil, "Accept", "application/json; charset=utf-8").requireStatus(http.StatusOK)
	require.Equal(c.t, "application/json", strings.Split(got.Header.Get("Content-Type"), ";")[0])
	return decodeEntries(c.t, got.body)
}

func TestCSV_hasTheRowsAndColumnsOfTheJSON(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, lists := newCallerWithDangerousCaptions(t, a)
		for _, target := range lists {
			entries, rows := c.requestJSON(target), c.requestCSV(target)
			require.Len(t, rows, 1+len(entries), target)
			require.True(t, slices.IsSorted(rows[0]), target)
			for i, entry := range entries {
				for name := range entry {
					require.Contains(t, rows[0], name, "%s: the columns must be the members of the entries", target)
				}
				for column, name := range rows[0] {
					if _, has := entry[name]; !has {
						require.Equal(t, "interpolated", name, "%s: only the member 'interpolated' may be missing from an entry", target)
					}
					require.Equal(t, strings.ReplaceAll(csvCell(t, entry[name]), "\r\n", "\n"), rows[i+1][column], "%s: %s", target, name)
				}
			}
		}
	})
}

// Requirements in docs/coverage.md: 14.4-02
func TestCSV_hasSemicolonsAndDecimalCommasOnRequest(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c, lists := newCallerWithDangerousCaptions(t, a)
	const accept = "text/csv; delimiter=semicolon"
	for _, target := range lists {
		entries := c.requestJSON(target)
		got := c.send(http.MethodGet, target, nil, "Accept", accept).requireStatus(http.StatusOK)
		require.Equal(t, "text/csv; charset=utf-8; header=present; delimiter=semicolon", got.Header.Get("Content-Type"))
		text, marked := strings.CutPrefix(string(got.body), "\ufeff")
		require.True(t, marked)
		reader := csv.NewReader(strings.NewReader(text))
		reader.Comma = ';'
		rows, err := reader.ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, 1+len(entries), target)
		for i, entry := range entries {
			for column, name := range rows[0] {
				want := csvCell(t, entry[name])
				if _, number := entry[name].(json.Number); number || name == "video_length" {
					want = strings.ReplaceAll(want, ".", ",")
				}
				require.Equal(t, want, rows[i+1][column], "%s: %s", target, name)
			}
		}
		if column := slices.Index(rows[0], "video_length"); column >= 0 && len(entries) > 0 {
			require.Equal(t, "12,5", rows[1][column], "%s: the number must have a decimal comma, because a spreadsheet would read 12.5 as a date", target)
		}
	}
	commas := c.send(http.MethodGet, "/videos", nil, "Accept", "text/csv; delimiter=comma").requireStatus(http.StatusOK)
	require.Equal(t, "text/csv; charset=utf-8; header=present", commas.Header.Get("Content-Type"))
	semicolons := c.send(http.MethodGet, "/videos", nil, "Accept", accept).requireStatus(http.StatusOK)
	require.NotEqual(t, commas.Header.Get("ETag"), semicolons.Header.Get("ETag"))
	c.send(http.MethodGet, "/videos", nil, "Accept", accept, "If-None-Match", commas.Header.Get("ETag")).requireStatus(http.StatusOK)
	c.send(http.MethodGet, "/videos", nil, "Accept", accept, "If-None-Match", semicolons.Header.Get("ETag")).requireStatus(http.StatusNotModified)
	c.send(http.MethodGet, "/videos", nil, "Accept", "text/csv; delimiter=tab").requireProblem(http.StatusNotAcceptable, server.CodeNotAcceptable)
}

func TestCSV_escapesFormulasInJSONCells(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	id := c.track(videoURL(1))
	name := `x;=1+1;"@y`
	collection := c.createCollection(map[string]any{"name": name, "hashtags": []string{"a;-1"}})
	c.send(http.MethodPost, "/collections/"+collection.String()+"/videos", map[string]any{"video_ids": []string{id.String()}}).requireStatus(http.StatusOK)
	for target, column := range map[string]string{"/videos": "label_names", "/collections": "hashtags"} {
		rows := c.requestCSV(target)
		cell := rows[1][slices.Index(rows[0], column)]
		for part := range strings.SplitSeq(cell, ";") {
			require.False(t, strings.HasPrefix(part, "=") || strings.HasPrefix(part, "-"), "%s: a part between semicolons must not be a formula", cell)
		}
		var shown, original []string
		require.NoError(t, json.Unmarshal([]byte(cell), &shown), "the cell must still be JSON")
		require.NoError(t, json.Unmarshal([]byte(formula.Unescape(cell)), &original))
		want := map[string][]string{"label_names": {name}, "hashtags": {"a;-1"}}[column]
		require.Equal(t, want, original)
		require.NotEqual(t, want, shown)
	}
}

func TestCSV_linksToTheNextPageAndHasADifferentETagThanJSON(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		c.track(videoURL(1))
		c.track(videoURL(2))
		asJSON := c.send(http.MethodGet, "/videos?limit=1", nil).requireStatus(http.StatusOK)
		asCSV := c.send(http.MethodGet, "/videos?limit=1", nil, "Accept", "text/csv").requireStatus(http.StatusOK)
		require.Equal(t, asJSON.Header.Get("Link"), asCSV.Header.Get("Link"))
		require.NotEmpty(t, asCSV.Header.Get("Link"))
		require.Contains(t, asCSV.Header.Get("Vary"), "Accept,")
		tag := asCSV.Header.Get("ETag")
		require.NotEqual(t, asJSON.Header.Get("ETag"), tag)
		again := c.send(http.MethodGet, "/videos?limit=1", nil, "Accept", "text/csv", "If-None-Match", `"other", `+tag).requireStatus(http.StatusNotModified)
		require.Equal(t, tag, again.Header.Get("ETag"))
		c.send(http.MethodGet, "/videos?limit=1", nil, "Accept", "text/csv", "If-None-Match", asJSON.Header.Get("ETag")).requireStatus(http.StatusOK)
		c.send(http.MethodGet, "/videos?limit=1", nil, "If-None-Match", tag).requireStatus(http.StatusOK)
		c.send(http.MethodGet, "/videos?limit=0", nil, "Accept", "text/csv").requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	})
}

func TestCSV_hidesNumbersFromLowerTiers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierLimited)
		c.track(videoURL(1))
		c.track(videoURL(2))
		a.fetch(func(queue.Target) ingest.VideoFacts { return ingest.VideoFacts{Views: new(int64(987654))} })
		rows := c.requestCSV("/videos")
		require.Len(t, rows, 2, "the limited tier must get one result")
		require.NotContains(t, fmt.Sprint(rows), "987654")
		require.Equal(t, "true", rows[1][slices.Index(rows[0], "metrics_masked")])
	})
}

func TestEveryOperation_refusesAnAcceptHeaderThatAllowsNoneOfItsFormats(t *testing.T) {
	t.Parallel()
	eachRefusedOperation(t, func(t *testing.T, a *app, op *contractOperation, target string, body any) {
		c := a.newCaller(t, store.TierPremium)
		for _, accept := range []string{"application/xml", "text/html;q=0.9, image/*", "application/json;q=0", "nonsense"} {
			p := c.send(op.Method, target, body, "Accept", accept).requireProblem(http.StatusNotAcceptable, server.CodeNotAcceptable)
			require.Contains(t, p.Detail, "application/json")
		}
	})
}

func TestAcceptHeader_ofBrowsersAndHTTPLibrariesSelectsJSON(t *testing.T) {
	t.Parallel()
	c := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium)
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "application/*": "application/json", "Application/JSON": "application/json", "application/json;charset=UTF-8": "application/json",
		"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2":            "application/json", // Java's HTTP client sends this header by default
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "application/json", // browsers send this header
		"text/csv;q=0.4, application/json;q=0.5":                          "application/json", "text/csv;q=0, */*": "application/json",
		"text/csv;q=0.5, application/json;q=0.4": "text/csv", "text/csv; delimiter=tab, */*": "application/json", "text/*": "text/csv", "text/csv, */*": "text/csv", "TEXT/CSV; header=present": "text/csv",
	} {
		got := c.send(http.MethodGet, "/videos", nil, "Accept", accept).requireStatus(http.StatusOK)
		require.Equal(t, want, strings.Split(got.Header.Get("Content-Type"), ";")[0], accept)
	}
}
