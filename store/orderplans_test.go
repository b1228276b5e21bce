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

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// TestVideos_useAnIndexForEveryOrder checks the query plan of every statement with an ORDER BY, for the first four pages of a
// list. No plan may sort.
//
// Requirements in docs/coverage.md: 11.6-03
func TestVideos_useAnIndexForEveryOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		for first := 0; first < 3000; first += 500 {
			storetest.Track(t, o, storetest.VideoLinksFrom(t, first, 500)...)
		}
		// Every column that can be null gets null in the same third of the videos.
		db.Exec(t, strings.NewReplacer("{n}", "CAST(SUBSTR(external_id, 14) AS integer)", "{day}", map[string]string{"postgres": "date ", "citus": "date "}[db.Engine]).Replace(`UPDATE videos SET created_at = created_at + {n} % 1000,
 latest_views = CASE WHEN {n} % 3 > 0 THEN {n} % 700 END, latest_updated_at = CASE WHEN {n} % 3 > 0 THEN created_at + 5 END,
 outlier_multiplier = CASE WHEN {n} % 3 > 0 THEN {n} % 70 / 7.0 END, increase_1d = CASE WHEN {n} % 3 > 0 THEN {n} % 60 / 7.0 END,
 increase_7d = CASE WHEN {n} % 3 > 0 THEN {n} % 50 / 7.0 END, increase_14d = CASE WHEN {n} % 3 > 0 THEN {n} % 40 / 7.0 END,
 increase_30d = CASE WHEN {n} % 3 > 0 THEN {n} % 30 / 7.0 END, latest_likes = CASE WHEN {n} % 3 > 0 THEN {n} % 600 END,
 latest_comments = CASE WHEN {n} % 3 > 0 THEN {n} % 500 END, latest_bookmarks = CASE WHEN {n} % 3 > 0 THEN {n} % 400 END,
 latest_shares = CASE WHEN {n} % 3 > 0 THEN {n} % 300 END, latest_engagement = CASE WHEN {n} % 3 > 0 THEN {n} % 200 END, views_gained_7d = CASE WHEN {n} % 3 > 0 THEN {n} % 20 - 10 END,
 uploaded_at = CASE {n} % 3 WHEN 1 THEN {day}'2026-01-01' WHEN 2 THEN {day}'2026-01-02' END`))
		db.Exec(t, "ANALYZE")
		for order := range ordersInBothDirections(store.VideoOrders) {
			window := store.Window{Limit: 900}
			for page := range 4 { // the third page begins near the first video whose value in the column is null
				db.Guard.Statements()
				found, err := o.ListVideos(t.Context(), store.VideoQuery{Order: order, Window: window, WithoutTotal: true})
				require.NoError(t, err)
				require.NotEmpty(t, requireNoSort(t, db, "videos", "%+v, page %d", order, page+1))
				window.After = found.Next()
			}
		}
	})
}

// ordersInBothDirections yields two orders for each of the columns: the descending order and the ascending order.
func ordersInBothDirections[V any](columns map[string]V) iter.Seq[store.Order] {
	return func(yield func(store.Order) bool) {
		for _, column := range slices.Sorted(maps.Keys(columns)) {
			if !yield(store.Order{Column: column, Descending: true}) || !yield(store.Order{Column: column}) {
				return
			}
		}
	}
}

// requireNoSort fails the test if the query plan of an ordered list sorts rows or reads the whole
// table. It returns the plans.
func requireNoSort(t *testing.T, db *storetest.DB, table, format string, args ...any) (plans []string) {
	t.Helper()
	// Statements before the last call of db.Guard.Statements are not checked.
	for _, statement := range db.Guard.Statements() {
		if strings.Contains(statement, "ORDER BY "+table+".") {
			p := queryPlan(t, db, statement)
			require.NotRegexp(t, `(?i)\bsort\b|TEMP B-TREE|Seq Scan on `+table+`|SCAN `+table, p, "%s: %s", fmt.Sprintf(format, args...), statement)
			plans = append(plans, p)
		}
	}
	return plans
}

// TestVideos_useAnIndexForEveryFilterInEveryOrder checks the query plans of every filter in every order. If a database index fits both the
// filter and the order, the plan must use this index.
func TestVideos_useAnIndexForEveryFilterInEveryOrder(t *testing.T) {
	t.Parallel()
	day, at := store.Date(20000), store.Instant(1)
	for name, filter := range map[string]struct {
		query store.VideoQuery
		order string // the order for which the index is checked
		index string // name of the index that the query plan must contain; "" if the filter needs no index of its own
	}{
		"username":                         {store.VideoQuery{Username: new("someone")}, "created_at", "videos_username"},
		"account":                          {store.VideoQuery{LinkedAccountID: new(store.NewID())}, "created_at", ""},
		"uploaded on or after a day":       {store.VideoQuery{UploadedFrom: &day}, "uploaded_at", "videos_uploaded"},
		"uploaded on or before a day":      {store.VideoQuery{UploadedTo: &day}, "uploaded_at", "videos_uploaded"},
		"last fetched at or after a time":  {store.VideoQuery{UpdatedFrom: &at}, "latest_updated_at", "videos_updated"},
		"last fetched at or before a time": {store.VideoQuery{UpdatedTo: &at}, "latest_updated_at", "videos_updated"},
		"fetched":                          {store.VideoQuery{HasMetrics: new(true)}, "latest_updated_at", "videos_updated"},
		"never fetched":                    {store.VideoQuery{HasMetrics: new(false)}, "latest_updated_at", "videos_updated"},
		"platform":                         {store.VideoQuery{Platform: new(link.TikTok)}, "created_at", ""},
		"shop":                             {store.VideoQuery{Shop: new(true)}, "created_at", ""},
		"shop product":                     {store.VideoQuery{ShopProduct: true}, "created_at", ""},
		"words":                            {store.VideoQuery{Words: new("some words")}, "created_at", ""},
		"hashtag":                          {store.VideoQuery{Hashtag: new("tag")}, "created_at", "video_hashtags"},
		"status":                           {store.VideoQuery{Status: new(queue.FetchPending)}, "created_at", ""},
		"stopped, too":                     {store.VideoQuery{IncludeRemoved: true}, "created_at", "videos_created"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				o := storetest.NewOrg(t, db)
				storetest.Track(t, o, storetest.VideoLinksFrom(t, 0, 50)...)
				db.Exec(t, "ANALYZE")
				for order := range ordersInBothDirections(store.VideoOrders) {
					db.Guard.Statements()
					query := filter.query
					query.Order, query.Window, query.WithoutTotal = order, store.Window{Limit: 10}, true
					_, err := o.ListVideos(t.Context(), query)
					require.NoError(t, err)
					plans := requireNoSort(t, db, "videos", "%+v", order)
					require.NotEmpty(t, plans)
					if order.Column == filter.order {
						require.Contains(t, strings.Join(plans, "\n"), filter.index, "%+v", order)
					}
				}
			})
		})
	}
}

// insertManyRows inserts 10,000 rows for the given organisation and 190,000 for other
// organisations. In the argument values, {n} is the row's number within its organisation.
func insertManyRows(t *testing.T, db *storetest.DB, o *store.Org, table, columns, values string) {
	t.Helper()
	id, numbers := "gen_random_uuid()", "generate_series(1, 10000) AS numbers(n)"
	if db.Engine == "sqlite" {
		id, numbers = "printf('%s-%s-4%s-8%s-%s', substr(h, 1, 8), substr(h, 9, 4), substr(h, 13, 3), substr(h, 16, 3), substr(h, 19, 12))",
			"(WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000) SELECT n, lower(hex(randomblob(16))) AS h FROM numbers)"
	}
	statement := strings.ReplaceAll("INSERT INTO "+table+" (organisation_id, id, "+columns+") SELECT ?, "+id+", "+values+" FROM "+numbers, "{n}", "n")
	for org := range 20 {
		owner := o
		if org > 0 {
			owner = storetest.NewOrg(t, db)
		}
		db.Exec(t, statement, owner.ID())
	}
	db.Exec(t, "ANALYZE")
}

// TestAccounts_useAnIndexForEveryFilterInEveryOrder checks the query plans of the first two pages of every filter in every order, with
// 200,000 accounts.
func TestAccounts_useAnIndexForEveryFilterInEveryOrder(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		day := "DATE '2026-01-01' + n % 100"
		if db.Engine == "sqlite" {
			day = "date('2026-01-01', (n % 100) || ' days')"
		}
		insertManyRows(t, db, o, "accounts", "platform, username, handle_current, link, created_at, tracked, fetch_status, latest_followers_count, total_views, median_views, last_uploaded_at, views_gained_7d",
			"'tiktok', 'user' || {n}, true, 'https://www.tiktok.com/@user' || {n}, {n} % 3000, {n} % 5 > 0, 'ok', CASE WHEN {n} % 3 > 0 THEN {n} % 700 END, CASE WHEN {n} % 3 > 0 THEN {n} % 600 END, CASE WHEN {n} % 3 > 0 THEN {n} % 500 / 7.0 END, CASE WHEN {n} % 3 > 0 THEN "+day+" END, CASE WHEN {n} % 3 > 0 THEN {n} % 400 - 200 END")
		for name, query := range map[string]store.AccountQuery{
			"tracked accounts":                           {},
			"tracked and linked accounts":                {IncludeLinked: true},
			"tracked and stopped accounts":               {IncludeRemoved: true},
			"all accounts":                               {IncludeLinked: true, IncludeRemoved: true},
			"accounts of a platform":                     {Platform: new(link.TikTok)},
			"accounts with a username":                   {Username: new("user77")},
			"accounts whose username begins with a text": {UsernamePrefix: "user77"},
			"accounts with a link":                       {Link: new(storetest.ParseLink(t, "https://www.tiktok.com/@user77"))},
			"accounts with a status":                     {Status: new(queue.FetchOK)},
			"stopped accounts":                           {Status: new(queue.FetchStopped)},
		} {
			for order := range ordersInBothDirections(store.AccountOrders) {
				query.Order, query.Window = order, store.Window{Limit: 100}
				for page := range 2 {
					db.Guard.Statements()
					found, err := o.ListAccounts(t.Context(), query)
					require.NoError(t, err)
					require.NotEmpty(t, requireNoSort(t, db, "accounts", "%s, %+v, page %d", name, order, page+1))
					if query.Window.After = found.Next(); query.Window.After == nil {
						break
					}
				}
			}
		}
	})
}

// TestCollections_useAnIndexForEveryFilterInEveryOrder checks that the database does not sort the
// first two pages of a list of 200,000 collections.
func TestCollections_useAnIndexForEveryFilterInEveryOrder(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		parent := storetest.Collection(t, o, "Parent", nil).ID
		insertManyRows(t, db, o, "collections", "name, access, created_by, created_at, updated_at", "'Launch ' || {n} % 4000, 'private', '"+store.NewID().String()+"', {n} % 3000, {n} % 2000")
		for name, query := range map[string]store.CollectionQuery{"all": {}, "roots": {Roots: true}, "children": {ParentID: &parent}, "descendants": {ParentID: &parent, Subtree: true}} {
			for order := range ordersInBothDirections(store.CollectionOrders) {
				query.Order, query.Window = order, store.Window{Limit: 100}
				for page := range 2 {
					db.Guard.Statements()
					found, err := o.ListCollections(t.Context(), query)
					require.NoError(t, err)
					// Skip the orders by the number of members, which is counted for each list.
					if !strings.HasSuffix(order.Column, "_count") {
						require.NotEmpty(t, requireNoSort(t, db, "collections", "%s, %+v, page %d", name, order, page+1))
					}
					if query.Window.After = found.Next(); query.Window.After == nil {
						break
					}
				}
			}
		}
	})
}

var postgresParameter = regexp.MustCompile(`\$\d+`)

// queryPlan returns the database's query plan of a statement. The plan is valid for all values of
// the parameters.
func queryPlan(t *testing.T, db *storetest.DB, statement string) string {
	t.Helper()
	conn, err := db.Raw(t).Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	if db.Engine == "sqlite" {
		rows, err := conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, make([]any, strings.Count(statement, "?"))...)
		require.NoError(t, err)
		return lastColumn(t, rows, 4)
	}
	// With these settings, the plan contains a sort only if no index has the right order.
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
