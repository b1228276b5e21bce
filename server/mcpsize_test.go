package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// The tests of this file limit the size in bytes. The numbers of tokens are from `make mcp`, with the tokenizer
// o200k_base.
const (
	maxToolListBytes  = 51_600 // maximum size of the list of tools: about 11,900 tokens
	maxVideoListBytes = 11_000 // maximum size of a list of videos: about 3,900 tokens
)

// Requirements in docs/coverage.md: 11.7-01
func TestMCP_listOfToolsIsShort(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	got := a.postMCP(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", "Bearer "+c.token).requireStatus(http.StatusOK)
	require.Less(t, len(got.body), maxToolListBytes)
}

// Requirements in docs/coverage.md: 11.7-02, 11.7-03
func TestMCP_toolsForListsReturnShortPagesByDefault(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.trackVideos(http.StatusOK, videoURLs(1, 25))
	a.Clock.Advance(24 * time.Hour)
	a.fetch(func(queue.Target) ingest.VideoFacts {
		return ingest.VideoFacts{Views: new(int64(1_234_567)), Likes: new(int64(98_765)), Comments: new(int64(4321)), Shares: new(int64(321)),
			Title: new("Restoring a rusty knife from 1920 #handmade"), Username: new("northwind.studio")}
	})
	message := a.postMCP(t, toolCall("list_videos", "{}"), "Authorization", "Bearer "+c.token).requireStatus(http.StatusOK)
	require.Less(t, len(message.body), maxVideoListBytes)
	require.Equal(t, 20, strings.Count(string(message.body), "Restoring a rusty knife"), "each title must occur once")

	session := c.openAssistant()
	var page struct {
		Data       []map[string]any
		Pagination struct {
			Total, Limit int
			NextCursor   *string `json:"next_cursor"`
			HasMore      bool    `json:"has_more"`
		}
	}
	read := func(arguments map[string]any) *mcp.CallToolResult {
		result := session.callTool("list_videos", arguments)
		require.False(t, result.IsError, "%v", textBlocks(t, result))
		encoded, err := json.Marshal(result.StructuredContent)
		require.NoError(t, err)
		page.Data, page.Pagination.NextCursor = nil, nil
		require.NoError(t, json.Unmarshal(encoded, &page))
		return result
	}
	first := read(nil)
	require.Len(t, page.Data, 20)
	require.Equal(t, 25, page.Pagination.Total)
	require.Equal(t, 20, page.Pagination.Limit)
	require.True(t, page.Pagination.HasMore)
	require.Contains(t, textBlocks(t, first)[0], "Entries in the structured content: 20 of 25. For more, send pagination.next_cursor as cursor.")
	for _, name := range []string{"ad_id", "ad_link", "username", "title", "uploaded_at", "latest_views", "latest_likes", "latest_comments"} {
		require.Contains(t, page.Data[0], name)
	}
	require.NotContains(t, page.Data[0], "organisation_id")

	read(map[string]any{"cursor": *page.Pagination.NextCursor, "fields": []string{"ad_id", "increase_7d"}, "q": nil})
	require.Len(t, page.Data, 5)
	require.False(t, page.Pagination.HasMore)
	require.Len(t, page.Data[0], 2)
	require.Contains(t, page.Data[0], "increase_7d")

	read(map[string]any{"fields": []string{"all"}, "limit": 1})
	require.Contains(t, page.Data[0], "organisation_id")
}

func TestMCP_listEventsSaysHowToGetMoreEvents(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	session := c.openAssistant()
	first := textBlocks(t, session.callTool("list_events", nil))[0] // events are recorded only after the first call
	require.NotContains(t, first, "more")
	c.trackVideos(http.StatusOK, videoURLs(1, 2))
	a.fetch(factsWithViews(5))

	result := session.callTool("list_events", map[string]any{"limit": 1})
	require.Contains(t, textBlocks(t, result)[0], "Entries in the structured content: 1. For more, send next_cursor as cursor.")
	page, ok := result.StructuredContent.(map[string]any)
	require.True(t, ok)
	last := session.callTool("list_events", map[string]any{"limit": 1, "cursor": page["next_cursor"]})
	require.Len(t, last.StructuredContent.(map[string]any)["data"], 1)
	require.NotContains(t, textBlocks(t, last)[0], "For more")
	require.Contains(t, session.InitializeResult().Instructions, "In list_events, it is next_cursor")
}

// Requirements in docs/coverage.md: 11.7-04
func TestMCP_instructionsSayOnceThatArgumentsAreNotPercentEncoded(t *testing.T) {
	t.Parallel()
	session := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium).openAssistant()
	require.Equal(t, 1, strings.Count(session.InitializeResult().Instructions, "percent"))
	require.Contains(t, session.InitializeResult().Instructions, "parent_id of update_collection: null then removes the value")
	for name, tool := range session.tools() {
		schema, err := json.Marshal(tool.InputSchema)
		require.NoError(t, err)
		for _, word := range []string{"percent-enc", "%2", "path may end", "`GET /", "`POST /"} {
			require.NotContains(t, tool.Description+string(schema), word, name)
		}
	}
}

// Requirements in docs/coverage.md: 11.7-05
func TestWeeklyReportPrompt_mentionsOnlyExistingTools(t *testing.T) {
	t.Parallel()
	session := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium).openAssistant()
	tools := session.tools()
	for _, arguments := range []map[string]string{nil, {"end_date": "2026-02-22"}, {"collection": "Launch"}} {
		prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "weekly_report", Arguments: arguments})
		require.NoError(t, err)
		text, ok := prompt.Messages[0].Content.(*mcp.TextContent)
		require.True(t, ok)
		for name := range tools {
			text.Text = strings.ReplaceAll(text.Text, name, "")
		}
		require.NotRegexp(t, `\b(get|list)_\w+`, text.Text)
	}
	require.Contains(t, tools, "get_organisation_history")
}
