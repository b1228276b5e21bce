package sourcetest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sort"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// testRandomChanges changes the valid answer at random. All counts that the source returns must occur
// in the changed answer or in h.SideCounts.
func (h Harness) testRandomChanges(t *testing.T) {
	t.Run("a hostile answer", func(t *testing.T) {
		t.Parallel()
		var body atomic.Pointer[[]byte]
		server := httptest.NewServer(h.routeRequests(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(*body.Load())
		})))
		defer server.Close()
		client := fetch.New(fetch.Options{})
		defer client.Close()
		src := h.New(t, server.URL, client)
		plan := src.Plan(h.Targets)[h.Plan]
		rapid.Check(t, func(rt *rapid.T) {
			sent := mutateJSON(rt, []byte(h.Answers[OK].Body))
			body.Store(&sent)
			var got outcome
			got.results, got.err = src.Fetch(t.Context(), h.Targets, source.NewCallBudget(plan))
			h.checkOutcome(rt, got)
			var f *source.Failure
			if got.err != nil {
				require.ErrorAs(rt, got.err, &f)
				require.Equal(rt, source.Temporary, f.Class)
			}
			for _, r := range got.results {
				if r.Facts != nil {
					requireCounts(rt, slices.Concat(sent, []byte(h.SideCounts)), r.Facts)
				}
			}
		})
	})
}

// requireCounts requires that all returned counts occur in the answer's body.
func requireCounts(t require.TestingT, body []byte, f *source.Facts) {
	for name, count := range map[string]*int64{
		"views": f.Views, "likes": f.Likes, "comments": f.Comments, "shares": f.Shares, "bookmarks": f.Bookmarks,
	} {
		if count == nil {
			continue
		}
		n := strconv.FormatInt(*count, 10)
		require.Regexp(t, `(^|[^0-9])`+n+`([^0-9]|$)`, string(body), "the source must not invent %s", name)
	}
}

// mutateJSON returns a JSON text with one to four random changes of values. Sometimes it also truncates the text or changes a byte.
func mutateJSON(t *rapid.T, text []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var root any
	require.NoError(t, decoder.Decode(&root))
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		root = mutateValue(t, root)
	}
	out, err := json.Marshal(root)
	require.NoError(t, err)
	switch rapid.IntRange(0, 9).Draw(t, "bytes") {
	case 0:
		out = out[:rapid.IntRange(0, len(out)).Draw(t, "cut")]
	case 1:
		if len(out) > 0 {
			out[rapid.IntRange(0, len(out)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
	}
	return out
}

// mutateValue returns a JSON value with one random change: one of the values inside it is replaced, removed, repeated or swapped with
// another one.
func mutateValue(t *rapid.T, v any) any {
	descend := rapid.IntRange(0, 9).Draw(t, "descend") > 0
	switch v := v.(type) {
	case map[string]any:
		if !descend || len(v) == 0 {
			return randomValue(t)
		}
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		key := rapid.SampledFrom(keys).Draw(t, "key")
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0:
			delete(v, key)
		case 1:
			other := rapid.SampledFrom(keys).Draw(t, "other key")
			v[key], v[other] = v[other], v[key]
		default:
			v[key] = mutateValue(t, v[key])
		}
		return v
	case []any:
		if !descend || len(v) == 0 {
			return randomValue(t)
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
		switch rapid.IntRange(0, 5).Draw(t, "what") {
		case 0:
			return append(append([]any{}, v[:i]...), v[i+1:]...)
		case 1:
			return append(append([]any{}, v...), v[i])
		default:
			v[i] = mutateValue(t, v[i])
			return v
		}
	default:
		return randomValue(t)
	}
}

// randomValue draws a random JSON value that parsers often handle wrongly.
func randomValue(t *rapid.T) any {
	return rapid.SampledFrom([]any{
		nil, true, false, "", "x", "0", "-1", "\x00", "javascript:alert(1)", "9223372036854775808", "12.5", "PT-5S", "9999-99-99T00:00:00Z",
		json.Number("0"), json.Number("-1"), json.Number("1.5"), json.Number("1e400"), json.Number("99999999999999999999"),
		map[string]any{}, []any{}, map[string]any{"count": "7"}, []any{json.Number("7"), "7", nil},
	}).Draw(t, "replacement")
}
