package store_test

import (
	"database/sql"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// indexedOrders are the columns for which an index returns the videos in order. For other columns, the database sorts all videos of the
// organisation.
var indexedOrders = []string{"created_at", "uploaded_at", "latest_views", "latest_updated_at", "outlier_multiplier", "increase_1d", "increase_7d",
	"increase_14d", "increase_30d", "views_gained_7d"}

// TestVideos_indexedOrdersAreReadFromTheIndex checks the query plan of every statement with an ORDER BY, for the first four pages of a
// list. No plan may sort.
//
// Requirements in docs/coverage.md: 11.6-03
func TestVideos_indexedOrdersAreReadFromTheIndex(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		for first := 0; first < 3000; first += 500 {
			storetest.Track(t, o, storetest.ClipsFrom(t, first, 500)...)
		}
		// A third of the videos get null in each column that can be null.
		db.Exec(t, strings.NewReplacer("{n}", "CAST(SUBSTR(external_id, 14) AS integer)", "{day}", map[string]string{"postgres": "date "}[db.Engine]).Replace(`UPDATE videos SET created_at = created_at + {n} % 1000,
 latest_views = CASE WHEN {n} % 3 > 0 THEN {n} % 700 END, latest_updated_at = CASE WHEN {n} % 3 > 0 THEN created_at + 5 END,
 outlier_multiplier = CASE WHEN {n} % 3 > 0 THEN {n} % 70 / 7.0 END, increase_1d = CASE WHEN {n} % 3 > 0 THEN {n} % 60 / 7.0 END,
 increase_7d = CASE WHEN {n} % 3 > 0 THEN {n} % 50 / 7.0 END, increase_14d = CASE WHEN {n} % 3 > 0 THEN {n} % 40 / 7.0 END,
 increase_30d = CASE WHEN {n} % 3 > 0 THEN {n} % 30 / 7.0 END, views_gained_7d = CASE WHEN {n} % 3 > 0 THEN {n} % 20 - 10 END,
 uploaded_at = CASE {n} % 3 WHEN 1 THEN {day}'2026-01-01' WHEN 2 THEN {day}'2026-01-02' END`))
		db.Exec(t, "ANALYZE")
		for _, column := range indexedOrders {
			for _, descending := range []bool{true, false} {
				window := store.Window{Limit: 900}
				for page := range 4 { // the third page begins near the first video that has no value in the column
					db.Guard.Statements()
					found, err := o.Videos(t.Context(), store.VideoQuery{Order: store.Order{Column: column, Descending: descending}, Window: window, WithoutTotal: true})
					require.NoError(t, err)
					explained := 0
					for _, statement := range db.Guard.Statements() {
						if strings.Contains(statement, "ORDER BY videos.") {
							require.NotRegexp(t, `(?i)\bsort\b|TEMP B-TREE`, plan(t, db, statement), "%s, descending %t, page %d: %s", column, descending, page+1, statement)
							explained++
						}
					}
					require.Positive(t, explained)
					window.After = found.Next
				}
			}
		}
	})
}

var postgresParameter = regexp.MustCompile(`\$\d+`)

// plan returns the engine's query plan of a statement, for parameters with unknown values. Settings make PostgreSQL sort only if no index
// has the order.
func plan(t *testing.T, db *storetest.DB, statement string) string {
	t.Helper()
	conn, err := db.Raw(t).Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	if db.Engine == "sqlite" {
		rows, err := conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, make([]any, strings.Count(statement, "?"))...)
		require.NoError(t, err)
		return lastColumn(t, rows, 4)
	}
	for _, s := range []string{"SET enable_seqscan = off", "SET enable_sort = off", "SET enable_incremental_sort = off", "SET plan_cache_mode = force_generic_plan",
		"PREPARE asked AS " + statement} {
		_, err := conn.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
	execute := "EXPLAIN EXECUTE asked"
	if n := len(postgresParameter.FindAllString(statement, -1)); n > 0 {
		execute += "(NULL" + strings.Repeat(", NULL", n-1) + ")"
	}
	rows, err := conn.QueryContext(t.Context(), execute)
	require.NoError(t, err)
	text := lastColumn(t, rows, 1)
	_, err = conn.ExecContext(t.Context(), "DEALLOCATE asked")
	require.NoError(t, err)
	return text
}

// lastColumn returns the texts in the last column of rows, each on its own line.
func lastColumn(t *testing.T, rows *sql.Rows, columns int) string {
	t.Helper()
	defer func() { require.NoError(t, rows.Close()) }()
	var out strings.Builder
	for rows.Next() {
		fields := make([]any, columns)
		for i := range fields {
			fields[i] = new(any)
		}
		var last string
		fields[columns-1] = &last
		require.NoError(t, rows.Scan(fields...))
		out.WriteString(last + "\n")
	}
	require.NoError(t, rows.Err())
	return out.String()
}
