package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// runWithStatements writes a record of the given SQL statements. It returns the page that writePage makes of
// this record, and the error of writePage.
func runWithStatements(t *testing.T, texts ...string) (string, error) {
	t.Helper()
	var lines bytes.Buffer
	for _, text := range texts {
		require.NoError(t, json.NewEncoder(&lines).Encode(storetest.RecordedStatement{Engine: "citus", File: "store/videos.go", Function: "Org.Video", Text: text, Form: text}))
	}
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "1.jsonl"), lines.Bytes(), 0o600))
	var out bytes.Buffer
	err := writePage(folder, &out)
	return out.String(), err
}

func TestStatements_pageShowsCountsAndNodesOfStatements(t *testing.T) {
	t.Parallel()
	video := `SELECT title FROM videos WHERE organisation_id = $1 AND id = $2`
	got, err := runWithStatements(t, video, video,
		`INSERT INTO videos (organisation_id, id) VALUES ($1, $2) ON CONFLICT (organisation_id, id) DO NOTHING`,
		`SELECT name FROM organisations WHERE id = $1`, `DELETE FROM fetch_targets WHERE id = $1`, `SAVEPOINT sp`,
		`DELETE FROM fetch_subscriptions WHERE organisation_id = $1`, `ALTER TABLE snapshots_daily ATTACH PARTITION snapshots_daily_202611 DEFAULT`)
	require.NoError(t, err)
	require.Contains(t, got, "| citus | 7 | 2 | 1 | 1 | 1 | 0 | 1 |\n", "two equal statements must count as one")
	require.Contains(t, got, "| `store/videos.go` | `Org.Video` | one shard | 2 | videos |\n")
	require.Contains(t, got, "| `store/videos.go` | `Org.Video` | any node | 1 | organisations |\n")
	require.Contains(t, got, "| all nodes (table definition) | 1 | snapshots_daily |\n")
	require.Contains(t, got, "| `store/videos.go` | `Org.Video` | coordinator | 2 | fetch_subscriptions, fetch_targets |\n")
}

func TestStatements_failsIfAStatementReadsSeveralShards(t *testing.T) {
	t.Parallel()
	got, err := runWithStatements(t, `SELECT title FROM videos`)
	require.ErrorContains(t, err, "several shards")
	require.Empty(t, got)
}

func TestStatements_reportsMutantsThatTheCheckAccepts(t *testing.T) {
	t.Parallel()
	// The statement has two conditions on organisation_id. If either condition is removed, the other condition still
	// restricts the statement to one organisation, so CheckStatement accepts it.
	_, err := runWithStatements(t, `SELECT v.title FROM videos v WHERE v.organisation_id = $1 AND v.organisation_id = $2`)
	require.ErrorContains(t, err, "the check accepts a statement without the condition")
}

func TestStatements_failsWithoutRecordedStatements(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, writePage(t.TempDir(), &bytes.Buffer{}), "has no recorded statements")
}
