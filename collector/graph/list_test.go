package graph_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/graph"
)

func TestList_NextCursor_returnsCursorOfNextPage(t *testing.T) {
	t.Parallel()
	const cursors, next = `"cursors":{"before":"a","after":"X"}`, `,"next":"https://graph.facebook.com/v25.0/1/videos?after=X"`
	for list, want := range map[string]struct{ topLevel, nested string }{
		`{"data":[{"id":"1"}],"paging":{` + cursors + next + `}}`:                                               {"X", "X"},
		`{"data":[],"paging":{` + cursors + next + `}}`:                                                         {"X", ""}, // an empty page: Meta has removed all its entries
		`{"data":[{"id":"1"}],"paging":{` + cursors + `}}`:                                                      {"", "X"},
		`{"data":[],"paging":{` + cursors + `}}`:                                                                {"", ""},
		`{"data":[{"id":"1"}]}`:                                                                                 {"", ""},
		`{"data":[{"id":"1"}],"paging":{"next":"https://x"}}`:                                                   {"", ""},
		`{"paging":{` + cursors + next + `}}`:                                                                   {"", ""},
		strings.Replace(`{"data":[],"paging":{`+cursors+next+`}}`, `"X"`, `"`+strings.Repeat("X", 2049)+`"`, 1): {"", ""},
	} {
		var l graph.List
		require.NoError(t, json.Unmarshal([]byte(list), &l))
		require.Equal(t, want.topLevel, l.NextCursor(true), list)
		require.Equal(t, want.nested, l.NextCursor(false), list)
	}
}
