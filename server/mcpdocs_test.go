package server_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

// TestMCP_documentationListsAllTools requires that the table in docs/mcp.md contains exactly the MCP tools of the server.
func TestMCP_documentationListsAllTools(t *testing.T) {
	t.Parallel()
	tools := newApp(t, newSQLite(t)).newCaller(t, store.TierLimited).openAssistant().tools()
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		a := tools[name].Annotations
		kind := "adds"
		switch {
		case a.ReadOnlyHint:
			kind = "reads"
		case *a.DestructiveHint:
			kind = "changes"
		}
		if !a.ReadOnlyHint && a.IdempotentHint {
			kind += ", again"
		}
		if *a.OpenWorldHint {
			kind += ", outside"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", name, tools[name].Title, kind)
	}
	page, err := os.ReadFile("../docs/mcp.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "|---|---|---|\n"+table.String()+"\n", "docs/mcp.md must contain this table of tools:\n%s", table.String())
}
