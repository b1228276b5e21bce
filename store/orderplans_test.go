package store_test

import (
	"database/sql"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// TestVideos_everyOrderIsReadFromAnIndex checks the query plan of every statement with an ORDER BY, for the first four pages of a
// list. No plan may sort.
//
// Requirements in docs/coverage.md: 11.6-03
func TestVideos_everyOrderIsReadFromAnIndex(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		for first := 0; first < 3000; first += 500 {
			storetest.Track(t, o, storetest.ClipsFrom(t, first, 500)...)
		}
		// A third of the videos get null in each column that can be null.
		db.Exec(t, strings.NewReplacer("{n}", "CAST(SUBSTR(external_id, 14) AS integer)", "{day}", map[string]string{"postgres": "date ", "citus": "date "}[db.Engine]).Replace(`UPDATE videos SET created_at = created_at + {n} % 1000,
 latest_views = CASE WHEN {n} % 3 > 0 THEN {n} % 700 END, latest_updated_at = CASE WHEN {n} % 3 > 0 THEN created_at + 5 END,
 outlier_multiplier = CASE WHEN {n} % 3 > 0 THEN {n} % 70 / 7.0 END, increase_1d = CASE WHEN {n} % 3 > 0 THEN {n} % 60 / 7.0 END,
 increase_7d = CASE WHEN {n} % 3 > 0 THEN {n} % 50 / 7.0 END, increase_14d = CASE WHEN {n} % 3 > 0 THEN {n} % 40 / 7.0 END,
 increase_30d = CASE WHEN {n} % 3 > 0 THEN {n} % 30 / 7.0 END, latest_likes = CASE WHEN {n} % 3 > 0 THEN {n} % 600 END,
 latest_comments = CASE WHEN {n} % 3 > 0 THEN {n} % 500 END, latest_bookmarks = CASE WHEN {n} % 3 > 0 THEN {n} % 400 END,
 latest_shares = CASE WHEN {n} % 3 > 0 THEN {n} % 300 END, latest_engagement = CASE WHEN {n} % 3 > 0 THEN {n} % 200 END, views_gained_7d = CASE WHEN {n} % 3 > 0 THEN {n} % 20 - 10 END,
 uploaded_at = CASE {n} % 3 WHEN 1 THEN {day}'2026-01-01' WHEN 2 THEN {day}'2026-01-02' END`))
		db.Exec(t, "ANALYZE")
		for order := range allVideoOrders() {
			window := store.Window{Limit: 900}
			for page := range 4 { // the third page begins near the first video that has no value in the column
				db.Guard.Statements()
				found, err := o.Videos(t.Context(), store.VideoQuery{Order: order, Window: window, WithoutTotal: true})
				require.NoError(t, err)
				require.NotEmpty(t, requireNoSort(t, db, "%+v, page %d", order, page+1))
				window.After = found.Next
			}
		}
	})
}

// allVideoOrders yields every order of a list of videos, descending and ascending.
func allVideoOrders() iter.Seq[store.Order] {
	return func(yield func(store.Order) bool) {
		for _, column := range slices.Sorted(maps.Keys(store.VideoOrders)) {
			if !yield(store.Order{Column: column, Descending: true}) || !yield(store.Order{Column: column}) {
				return
			}
		}
	}
}

// requireNoSort checks that the database sorts for none of the ordered statements since the last call of Statements, and that it reads no
// whole table. It returns the plans of these statements.
func requireNoSort(t *testing.T, db *storetest.DB, format string, args ...any) (plans []string) {
	t.Helper()
	for _, statement := range db.Guard.Statements() {
		if strings.Contains(statement, "ORDER BY videos.") {
			p := plan(t, db, statement)
			require.NotRegexp(t, `(?i)\bsort\b|TEMP B-TREE|Seq Scan on videos|SCAN videos`, p, "%s: %s", fmt.Sprintf(format, args...), statement)
			plans = append(plans, p)
		}
	}
	return plans
}

// TestVideos_everyFilterIsReadFromAnIndexInEveryOrder checks the query plans of every filter in every order. If an index of the filter has
// the rows in the order of the list, the plan must use this index.
func TestVideos_everyFilterIsReadFromAnIndexInEveryOrder(t *testing.T) {
	t.Parallel()
	day, at := store.Date(20000), store.Instant(1)
	for name, filter := range map[string]struct {
		query store.VideoQuery
		order string // order of the rows in the index of the filter
		index string // index of the filter; "" if the filter is checked for each video in order
	}{
		"username":                {store.VideoQuery{Username: new("someone")}, "created_at", "videos_username"},
		"account":                 {store.VideoQuery{LinkedAccountID: new(store.NewID())}, "created_at", ""},
		"first upload day":        {store.VideoQuery{UploadedFrom: &day}, "uploaded_at", "videos_uploaded"},
		"last upload day":         {store.VideoQuery{UploadedTo: &day}, "uploaded_at", "videos_uploaded"},
		"first time of the fetch": {store.VideoQuery{UpdatedFrom: &at}, "latest_updated_at", "videos_updated"},
		"last time of the fetch":  {store.VideoQuery{UpdatedTo: &at}, "latest_updated_at", "videos_updated"},
		"fetched":                 {store.VideoQuery{HasMetrics: new(true)}, "latest_updated_at", "videos_updated"},
		"never fetched":           {store.VideoQuery{HasMetrics: new(false)}, "latest_updated_at", "videos_updated"},
		"platform":                {store.VideoQuery{Platform: new(link.TikTok)}, "created_at", ""},
		"shop":                    {store.VideoQuery{Shop: new(true)}, "created_at", ""},
		"shop product":            {store.VideoQuery{ShopProduct: true}, "created_at", ""},
		"words":                   {store.VideoQuery{Words: new("some words")}, "created_at", ""},
		"hashtag":                 {store.VideoQuery{Hashtag: new("tag")}, "created_at", "video_hashtags"},
		"collection":              {store.VideoQuery{Collections: []string{"Launch"}}, "created_at", "collection_videos"},
		"status":                  {store.VideoQuery{Status: new(queue.FetchPending)}, "created_at", ""},
		"stopped, too":            {store.VideoQuery{IncludeRemoved: true}, "created_at", "videos_created"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				o := storetest.NewOrg(t, db)
				storetest.Track(t, o, storetest.ClipsFrom(t, 0, 50)...)
				db.Exec(t, "ANALYZE")
				for order := range allVideoOrders() {
					db.Guard.Statements()
					query := filter.query
					query.Order, query.Window, query.WithoutTotal = order, store.Window{Limit: 10}, true
					_, err := o.Videos(t.Context(), query)
					require.NoError(t, err)
					plans := requireNoSort(t, db, "%+v", order)
					require.NotEmpty(t, plans)
					if order.Column == filter.order {
						require.Contains(t, strings.Join(plans, "\n"), filter.index, "%+v", order)
					}
				}
			})
		})
	}
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

func TestVideos_ofALargeCollectionAreReadInTheOrderOfTheList(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		launch := storetest.Collection(t, o, "Launch", nil).ID
		var members []uuid.UUID
		for i, tracked := range storetest.Track(t, o, storetest.ClipsFrom(t, 0, 300)...) {
			if i%2 == 0 {
				members = append(members, tracked.VideoID)
			}
		}
		_, err := o.AddVideos(t.Context(), launch, members)
		require.NoError(t, err)
		db.Exec(t, "ANALYZE")
		query := store.VideoQuery{CollectionID: &launch, Order: store.Order{Column: "created_at", Descending: true}}
		list := func(limit int) (page store.VideoPage, inOrder bool) {
			db.Guard.Statements()
			query.Window = store.Window{Limit: limit}
			page, err := o.Videos(t.Context(), query)
			require.NoError(t, err)
			require.EqualValues(t, 150, page.Total)
			for _, statement := range db.Guard.Statements() {
				if strings.Contains(statement, "ORDER BY videos.") && strings.Contains(statement, "IS TRUE") {
					require.NotRegexp(t, `(?i)\bsort\b|TEMP B-TREE`, plan(t, db, statement))
					inOrder = true
				}
			}
			return page, inOrder
		}
		all, inOrder := list(150)
		require.False(t, inOrder, "a page with all videos of the collection is read from the members of the collection")
		require.Len(t, all.Videos, 150)
		first, inOrder := list(10)
		require.True(t, inOrder)
		require.Equal(t, all.Videos[:10], first.Videos)
	})
}
