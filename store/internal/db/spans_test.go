package db

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestSummarizeSQL_namesTheKindOfStatementAndItsFirstTable(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"BEGIN": "BEGIN",
		`SELECT "videos"."id" FROM "videos" WHERE id = $1`:             "SELECT videos",
		"INSERT INTO collections (id) VALUES (?)":                      "INSERT collections",
		" update organisation_totals SET version = 1":                  "UPDATE organisation_totals",
		"DELETE FROM sessions WHERE id IN (SELECT id FROM other)":      "DELETE sessions",
		"WITH w0 AS (UPDATE videos SET x = 1),\nw1 AS (...)\nSELECT 1": "WITH videos",
		"SELECT COUNT(*) FROM (SELECT id FROM accounts) AS x":          "SELECT accounts",
		"SELECT set_config('a', 'b', true)":                            "SELECT",
	} {
		require.Equal(t, want, summarizeSQL(query), query)
	}
}

func TestShortenSQL_limitsTheLengthOfTheText(t *testing.T) {
	t.Parallel()
	require.Equal(t, "SELECT 1", shortenSQL("SELECT 1"))
	long := shortenSQL("S" + strings.Repeat("é", maxSpanText))
	require.LessOrEqual(t, len(long), maxSpanText+len("…"))
	require.True(t, utf8.ValidString(long))
	require.True(t, strings.HasSuffix(long, "…"))
}
