package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally"
	"github.com/reeltally/reeltally/server/mcp"
)

// listTools returns the tools that the MCP endpoint lists for the contract openapi.yaml, with the names of their arguments.
func listTools(t *testing.T) map[string][]string {
	t.Helper()
	contract, err := openapi3.NewLoader().LoadFromData([]byte(reeltally.OpenAPI))
	require.NoError(t, err)
	tools, err := mcp.ToolsFromOpenAPI(contract)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/mcp", http.NoBody)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	answer := httptest.NewRecorder()
	handler := mcp.New(mcp.Options{Tools: tools, Version: "test", Logger: slog.New(slog.DiscardHandler)})
	require.Nil(t, handler.Serve(answer, r, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
	var list struct {
		Result struct {
			Tools []struct {
				Name        string
				InputSchema struct{ Properties map[string]any }
			}
		}
	}
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list), answer.Body)
	found := map[string][]string{}
	for _, tool := range list.Result.Tools {
		found[tool.Name] = []string{}
		for name := range tool.InputSchema.Properties {
			found[tool.Name] = append(found[tool.Name], name)
		}
	}
	return found
}

// TestCalls_useEachToolWithArgumentsThatItHas fails in CI if a tool or an argument of the calls no longer exists, or if a tool has no call. It is
// needed because `make mcp`, which makes the calls, is not part of CI.
func TestCalls_useEachToolWithArgumentsThatItHas(t *testing.T) {
	t.Parallel()
	tools := listTools(t)
	require.GreaterOrEqual(t, len(tools), minTools)
	called := map[string]bool{}
	for _, c := range calls {
		arguments, found := tools[c.tool]
		require.True(t, found, "%s is not a tool", c.tool)
		called[c.tool] = true
		for _, text := range c.arguments {
			name, _, _ := strings.Cut(text, "=")
			require.True(t, slices.Contains(arguments, name), "%s has no argument %s; it has %v", c.tool, name, arguments)
		}
	}
	for name := range tools {
		require.True(t, called[name], "no call uses the tool %s", name)
	}
}
