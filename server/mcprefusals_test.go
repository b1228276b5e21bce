package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

func TestMCP_refusesInvalidArguments(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	session := c.openAssistant()
	for name, test := range map[string]struct {
		tool, arguments     string
		place, code, detail string // the first expected fault: its pointer or parameter name, its code, and a part of its detail
	}{
		"an unknown argument":                                      {"get_video", `{"ad_id": "x", "colour": "red"}`, "/colour", "unknown_member", "is not an argument of get_video; it takes ad_id"},
		"an unknown argument of a tool without arguments":          {"authenticate", `{"colour": "red"}`, "/colour", "unknown_member", "is not an argument of authenticate; it takes no arguments"},
		"a missing path argument":                                  {"get_video", `{}`, "/ad_id", "required", "ad_id is required"},
		"an empty path argument":                                   {"get_video", `{"ad_id": ""}`, "/ad_id", "empty", "must not be empty"},
		"a missing body argument":                                  {"track_video", `{}`, "/link", "required", "link"},
		"a text for a query parameter of the type integer":         {"list_videos", `{"limit": "1"}`, "/limit", "type", `limit must be a whole number, not "1"`},
		"a fraction for a query parameter of the type integer":     {"list_videos", `{"limit": 1.5}`, "/limit", "type", "limit must be a whole number, not 1.5"},
		"a number for a query parameter of the type string":        {"list_videos", `{"username": 5}`, "/username", "type", "username must be a string, not 5"},
		"a text for a query parameter of the type boolean":         {"list_videos", `{"has_metrics": "true"}`, "/has_metrics", "type", `has_metrics must be true or false, not "true"`},
		"a text for a query parameter of the type array":           {"list_videos", `{"collections": "a"}`, "/collections", "type", `collections must be an array, not "a"`},
		"a number for a path parameter":                            {"get_video", `{"ad_id": 5}`, "/ad_id", "type", "ad_id must be a string, not 5"},
		"a number for a header":                                    {"update_collection", `{"collection_id": "01938c32-8f07-7a46-93be-1d2c3b4a5968", "if_match": 5}`, "/if_match", "type", "if_match must be a string, not 5"},
		"a number for a body argument":                             {"create_collection", `{"name": 5}`, "/name", "type", "name must be a string, not 5"},
		"a number out of its bounds":                               {"list_videos", `{"limit": 0}`, "/limit", "minimum", "limit must be at least 1, not 0"},
		"a number with more than 32 bits":                          {"list_videos", `{"page": 99999999999}`, "/page", "type", "page must be at most 2147483647, not 99999999999"},
		"a word that is not allowed":                               {"list_videos", `{"order_by": "x"}`, "/order_by", "enum", "order_by must be "},
		"null for a required path argument":                        {"get_video", `{"ad_id": null}`, "/ad_id", "required", "ad_id is required"},
		"null for a required body argument":                        {"track_video", `{"link": null}`, "/link", "required", "link"},
		"an unknown name in the argument 'fields'":                 {"list_videos", `{"fields": ["title", "colour"]}`, "/fields", "enum", `"colour" in fields is not allowed; allowed are ad_id, ad_info_shop,`},
		"an empty array as the argument 'fields'":                  {"list_videos", `{"fields": []}`, "/fields", "empty", "fields must not be empty"},
		"a text as the argument 'fields'":                          {"list_accounts", `{"fields": "account_id"}`, "/fields", "type", "fields must be an array of names"},
		"the argument 'fields' for a tool that returns one object": {"get_video", `{"ad_id": "x", "fields": ["title"]}`, "/fields", "unknown_member", "is not an argument of get_video; it takes ad_id"},
		"an object for a query parameter":                          {"list_videos", `{"q": {"a": 1}}`, "/q", "type", "q must be a string, not an object"},
		"an array for a query parameter of the type string":        {"list_videos", `{"q": ["a"]}`, "/q", "type", "q must be a string, not an array"},
		"an array entry with a comma":                              {"list_videos", `{"collections": ["a,b"]}`, "/collections", "syntax", "entry 0 of collections contains a comma"},
		"an array entry that is not a string":                      {"list_videos", `{"collections": ["a", 1]}`, "/collections/1", "type", "collections.1 must be a string, not 1"},
		"a duplicate argument":                                     {"list_videos", `{"q": "a", "q": "b"}`, "/q", "duplicate_member", "occurs twice"},
		"a duplicate member in an argument":                        {"update_collection", `{"collection_id": "01938c32-8f07-7a46-93be-1d2c3b4a5968", "display_settings": {"title": "a", "title": "b"}}`, "/display_settings/title", "duplicate_member", "occurs twice"},
		"NUL in the query":                                         {"list_videos", `{"q": "a\u0000b"}`, "/q", "encoding", "NUL"},
		"NUL in the body":                                          {"track_video", `{"link": "a\u0000b"}`, "/link", "encoding", "NUL"},
		"a control character in a name":                            {"create_collection", `{"name": "a\u0085b"}`, "/name", "character", "U+0085"},
		"half of a surrogate pair in the query":                    {"list_videos", `{"q": "a\ud800b"}`, "/q", "encoding", "surrogate"},
		"an id that is not a UUID":                                 {"get_collection", `{"collection_id": "../videos"}`, "/collection_id", "format", "UUID"},
		"two unknown arguments":                                    {"get_video", `{"colour": 1, "size": 2}`, "/colour", "unknown_member", "is not an argument of get_video; it takes ad_id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session := assistant{session.ClientSession, t}
			result := session.callTool(test.tool, json.RawMessage(test.arguments))
			p := session.requireRefused(result, http.StatusBadRequest, server.CodeInvalidRequest)
			faults, ok := p["errors"].([]any)
			require.True(t, ok)
			first, ok := faults[0].(map[string]any)
			require.True(t, ok)
			place := first["pointer"]
			if place == nil {
				place = first["name"]
			}
			require.Equal(t, test.place, place, "%v", p)
			require.Equal(t, test.code, first["code"], "%v", p)
			require.Contains(t, first["detail"], test.detail)
			require.NotContains(t, p["instance"], "%7B", "the instance must not be a path that was never requested")
		})
	}
}

func TestMCP_namesAllFaultsOfTheArgumentsInOneResult(t *testing.T) {
	t.Parallel()
	session := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium).openAssistant()
	for _, test := range []struct {
		tool, arguments string
		faults          map[string]string // the code of each expected fault, by its pointer
	}{
		{"list_videos", `{"limit": "3", "foo": 1, "order_by": "x", "fields": ["y"], "q": "a\u0000"}`,
			map[string]string{"/limit": "type", "/foo": "unknown_member", "/order_by": "enum", "/fields": "enum", "/q": "encoding"}},
		{"update_collection", `{"name": 5, "colour": 1, "if_match": 7}`,
			map[string]string{"/collection_id": "required", "/name": "type", "/colour": "unknown_member", "/if_match": "type"}},
		{"create_collection", `{"colour": 1}`, map[string]string{"/name": "required", "/colour": "unknown_member"}},
	} {
		p := session.requireRefused(session.callTool(test.tool, json.RawMessage(test.arguments)), http.StatusBadRequest, server.CodeInvalidRequest)
		got := map[string]string{}
		for _, fault := range p["errors"].([]any) {
			members, ok := fault.(map[string]any)
			require.True(t, ok)
			got[fmt.Sprint(members["pointer"])] = fmt.Sprint(members["code"])
		}
		require.Equal(t, test.faults, got)
	}
}

func TestMCP_pathArgumentCannotSelectAnotherOperation(t *testing.T) {
	t.Parallel()
	session := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium).openAssistant()
	for argument, place := range map[string]string{"..": "/videos/..", "bulk": "/videos/bulk", "x/history": "/videos/x%2Fhistory", "x?limit=1#": "/videos/x%3Flimit=1%23", "%2F": "/videos/%252F"} {
		result := session.callTool("get_video", map[string]any{"ad_id": argument})
		require.True(t, result.IsError)
		var p struct{ Instance, Code string }
		require.NoError(t, json.Unmarshal([]byte(textBlocks(t, result)[0]), &p))
		require.Equal(t, place, p.Instance)
		require.Contains(t, []string{"not_found", "invalid_url", "unsupported_platform", "method_not_allowed"}, p.Code, argument)
	}
}

func TestMCP_hidesDataOfOtherOrganisations(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	w := a.newCaller(t, store.TierPremium).createMCPItems()
	session := a.newCaller(t, store.TierPremium).openAssistant()
	for _, call := range w.toolCalls() {
		if len(call.arguments) == 0 {
			continue
		}
		hasID := false
		for _, value := range call.arguments {
			_, isID := value.(uuid.UUID)
			hasID = hasID || isID
		}
		if hasID && call.operation != "createCollection" {
			session.requireRefused(session.callTool(toolName(call.operation), call.toolArguments()), http.StatusNotFound, server.CodeNotFound)
		}
	}
}

func TestMCP_refusesACallIfTheTokenLacksTheScopeOfTheTool(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	org := a.newCaller(t, store.TierPremium).org
	session := a.newToken(t, org, store.ScopeRead).openAssistant()
	require.False(t, session.callTool("list_videos", nil).IsError)
	p := session.requireRefused(session.callTool("track_video", map[string]any{"link": tiktokLink}), http.StatusForbidden, server.CodeScopeMissing)
	require.Contains(t, p["detail"], "write")
}

func TestMCP_toolCallsCountAgainstTheRateLimitsOfTheRESTOperations(t *testing.T) {
	t.Parallel()
	a := newRateLimitedApp(t)
	c := a.newCaller(t, store.TierLimited)
	session := c.openAssistant() // the MCP messages initialize and tools/list do not count towards the rate limit of an operation; only tool calls do
	for range 10 {
		session.tools()
	}
	got := session.callTool("list_videos", nil)
	require.False(t, got.IsError)
	headers, ok := got.Meta["reeltally/headers"].(map[string]any)
	require.True(t, ok)
	require.Regexp(t, `^"listVideos";r=4;t=\d+$`, headers["RateLimit"])
	require.Equal(t, 3, headerNumber(t, c.send(http.MethodGet, "/videos", nil), "RateLimit-Remaining"))
	session.requireRefused(session.callTool("list_videos", json.RawMessage(`{"surprise": 1}`)), http.StatusBadRequest, server.CodeInvalidRequest)
	require.Equal(t, 1, headerNumber(t, c.send(http.MethodGet, "/videos", nil), "RateLimit-Remaining"), "a call with invalid arguments must count towards the limit")
	session.callTool("list_videos", nil)
	p := session.requireRefused(session.callTool("list_videos", nil), http.StatusTooManyRequests, server.CodeRateLimited)
	require.Contains(t, p["detail"], "Try again in")
	require.False(t, session.callTool("get_video_statistics", nil).IsError, "another operation must have its own limit")
}
