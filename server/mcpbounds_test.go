package server_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// allocatedBytes returns the number of bytes that the process allocates while runCode runs. No
// other test may run at the same time.
func allocatedBytes(runCode func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	runCode()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// trackVideosWithLongTitles tracks n videos and stores a title for each video. The parameter size is the length of each title in bytes.
func (c *caller) trackVideosWithLongTitles(n, size int) {
	c.t.Helper()
	for first := 1; first <= n; first += 100 {
		c.trackVideos(http.StatusOK, videoURLs(first, min(first+99, n)))
	}
	c.app.Clock.Advance(24 * time.Hour)
	c.app.fetch(func(queue.Target) ingest.VideoFacts {
		return ingest.VideoFacts{Views: new(int64(1)), Title: new(strings.Repeat("t", size))}
	})
}

// toolCall returns an MCP message that calls the tool with the given name. The arguments are the text of a JSON object.
func toolCall(name, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments)
}

func TestMCP_refusesABatchOfMessagesWithoutRunningThem(t *testing.T) { //nolint:paralleltest // the test measures the allocations of the whole process
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.trackVideosWithLongTitles(200, 4000)
	list := toolCall("list_videos", `{"limit":5000}`)
	calls := make([]string, 10)
	for i := range calls {
		calls[i] = strings.Replace(list, `"id":1`, fmt.Sprintf(`"id":%d`, i), 1)
	}
	batch := "[" + strings.Join(calls, ",") + "]"
	for _, version := range []string{"", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		for _, body := range []string{batch, " \n[" + list + "]", "[]"} {
			var got response
			spent := allocatedBytes(func() {
				got = a.postMCP(t, body, "Authorization", "Bearer "+c.token, "Mcp-Protocol-Version", version)
			})
			p := got.requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.Contains(t, p.Detail, "batch", version)
			require.Contains(t, p.Detail, "one message", version)
			require.Less(t, spent, uint64(4<<20), version)
		}
	}
	require.NotContains(t, a.log.String(), `"method":"GET","route":"/videos"`, "the server must not run the calls of a refused batch")
}

func TestMCP_needsLittleMemoryToRefuseALargeMessage(t *testing.T) { //nolint:paralleltest // the test measures the allocations of the whole process
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	// fillMessage repeats a text until the result is nearly as long as the longest message that the server accepts.
	fillMessage := func(piece string) string {
		return strings.TrimSuffix(strings.Repeat(piece, (2<<20-300)/len(piece)), ",")
	}
	for name, body := range map[string]string{
		"deep arrays":                 fillMessage("["),
		"deep objects":                fillMessage(`{"a":`),
		"deep arguments":              toolCall("list_videos", `{"q":`+strings.Repeat("[", 1<<20-200)+strings.Repeat("]", 1<<20-200)+`}`),
		"empty arrays":                toolCall("list_videos", `{"q":[`+fillMessage("[],")+`]}`),
		"empty objects":               toolCall("list_videos", `{"q":[`+fillMessage("{},")+`]}`),
		"many duplicate arguments":    toolCall("list_videos", `{`+fillMessage(`"q":1,`)+`}`),
		"_meta with many members":     `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` + fillMessage(`"":0,`) + `}}}`,
		"a message with many members": `{"jsonrpc":"2.0","id":1,"method":"tools/list",` + fillMessage(`"x":0,`) + `}`,
	} {
		var got response
		spent := allocatedBytes(func() { got = a.postMCP(t, body, "Authorization", "Bearer "+c.token) })
		p := got.requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Regexp(t, "deeper than 64 levels|at most 10000 values|1000 faults: the member .* occurs twice", p.Detail, name)
		require.Less(t, spent, uint64(16<<20), "%s: the server must need little memory to refuse the message; the limit includes the memory for reading the body", name)
	}
}

func TestMCP_countsEachMessageAgainstTheRateLimitOfTheOrganisation(t *testing.T) {
	t.Parallel()
	inSynctestBubble(t, func(t *testing.T, a *app, _ func(time.Duration)) {
		for _, tier := range []store.Tier{store.TierLimited, store.TierPremium} {
			const limit = 600
			c := a.newCaller(t, tier)
			other := a.newToken(t, c.org, store.ScopeRead)
			left := limit
			for _, m := range []struct {
				body   string
				status int
			}{
				{initialize, http.StatusOK},
				{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, http.StatusOK},
				{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, http.StatusOK},
				{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, http.StatusAccepted},
				{`{`, http.StatusBadRequest},
				{`[]`, http.StatusBadRequest},
				{toolCall("get_video_statistics", "{}"), http.StatusOK},
			} {
				left--
				requireRateLimitHeaders(t, a.postMCP(t, m.body, "Authorization", "Bearer "+c.token).requireStatus(m.status), "mcp", limit, left)
			}
			for left > 0 {
				left--
				got := a.postMCP(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Authorization", "Bearer "+other.token).requireStatus(http.StatusOK)
				requireRateLimitHeaders(t, got, "mcp", limit, left)
			}
			for _, body := range []string{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, toolCall("get_account_statistics", "{}"), "{"} {
				got := a.postMCP(t, body, "Authorization", "Bearer "+c.token)
				p := got.requireProblem(http.StatusTooManyRequests, server.CodeRateLimited)
				require.Contains(t, p.Detail, fmt.Sprintf("mcp may be called %d times a minute", limit))
				requireRateLimitHeaders(t, got, "mcp", limit, 0)
				require.Positive(t, headerNumber(t, got, "Retry-After"))
			}
			statistics := specifiedLimits["GET /statistics/videos"].forTier(tier)
			requireRateLimitHeaders(t, c.send(http.MethodGet, "/statistics/videos", nil).requireStatus(http.StatusOK), "getVideoStatistics", statistics, statistics-2)
			accounts := specifiedLimits["GET /statistics/accounts"].forTier(tier)
			requireRateLimitHeaders(t, c.send(http.MethodGet, "/statistics/accounts", nil).requireStatus(http.StatusOK), "getAccountStatistics", accounts, accounts-1)
		}
	})
}

func TestMCP_limitsTheSizeOfAToolResult(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	c.trackVideosWithLongTitles(400, 3000)
	session := c.openAssistant()

	whole := len(c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK).body)
	require.Greater(t, whole, 1<<20)
	got := session.callTool("list_videos", map[string]any{"limit": 5000})
	require.True(t, got.IsError)
	require.Nil(t, got.StructuredContent)
	require.EqualValues(t, http.StatusOK, got.Meta["reeltally/status"])
	text := strings.Join(textBlocks(t, got), "\n")
	for _, word := range []string{fmt.Sprint(whole), "1048576", "limit", "cursor"} {
		require.Contains(t, text, word)
	}
	require.Less(t, len(text), 1000)

	got = session.callTool("list_videos", map[string]any{"limit": 100})
	require.False(t, got.IsError, "a result below the maximum size must be returned")
	require.Len(t, got.StructuredContent.(map[string]any)["data"], 100)
}
