package storetest_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// The cluster of this test is a coordinator and one worker. Both have the stand-in for Citus, and a
// row in pg_extension which says that Citus exists.
func TestNewURL_createsDatabasesOnEveryNodeOfACluster(t *testing.T) {
	storetest.SkipIfShort(t)
	coordinator, worker := storetest.NewServer(t).URL(), storetest.NewServer(t).URL()
	at, err := url.Parse(worker)
	require.NoError(t, err)
	password, _ := at.User.Password()
	for _, node := range []string{coordinator, worker} {
		u, err := url.Parse(node)
		require.NoError(t, err)
		template := *u
		// Each new database of a server is a copy of template1.
		template.Path = "/template1"
		// This citus_add_node only records its arguments. In Citus, it would add a worker to the
		// cluster.
		runStatements(t, template.String(), storetest.StandIn, fmt.Sprintf(`INSERT INTO pg_extension VALUES (99999, 'citus', 10, 11, false, '13.2-1', NULL, NULL);
CREATE FUNCTION pg_catalog.citus_set_coordinator_host(host text, port int) RETURNS void LANGUAGE sql AS $$ SELECT $$;
CREATE TABLE pg_catalog.joined (host text, port int);
CREATE FUNCTION pg_catalog.citus_add_node(host text, port int) RETURNS void LANGUAGE sql AS $$ INSERT INTO joined VALUES (host, port) $$;
CREATE FUNCTION pg_catalog.citus_get_active_worker_nodes(OUT node_name text, OUT node_port bigint) RETURNS SETOF record LANGUAGE sql
 AS $$ SELECT '%s', %s $$;`, at.Hostname(), at.Port()), fmt.Sprintf("ALTER USER %s PASSWORD '%s'", u.User.Username(), password))
	}
	u, err := url.Parse(coordinator)
	require.NoError(t, err)
	u.User = at.User
	u.Path = "/template1"
	t.Setenv(storetest.CitusURL, u.String())

	var names []string
	t.Run("the databases must exist while the test runs", func(t *testing.T) {
		db := storetest.New(t, "citus")
		storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLinks(t, 2)...)
		created, err := url.Parse(db.URL)
		require.NoError(t, err)
		require.Equal(t, u.Host, created.Host)
		names = append(names, created.Path)
		require.Equal(t, []string{at.Host}, firstColumn(t, db.URL, "SELECT host || ':' || port FROM joined"))
		require.Equal(t, []string{"distributed"}, firstColumn(t, db.URL, "SELECT citus_table_type FROM citus_tables WHERE table_name = 'videos'::regclass"))
		onWorker := *at
		onWorker.Path = created.Path
		require.Equal(t, []string{"4"}, firstColumn(t, onWorker.String(), "SELECT current_setting('citus.shard_count')"))
	})
	for _, node := range []string{u.String(), worker} {
		require.Equal(t, []string{"0"}, firstColumn(t, node, "SELECT COUNT(*)::text FROM pg_database WHERE '/' || datname = '"+names[0]+"'"), "the databases must be dropped after the test")
	}
}

// runStatements runs statements on the database at the given URL.
func runStatements(t *testing.T, databaseURL string, statements ...string) {
	t.Helper()
	db, err := sql.Open("pgx", databaseURL)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for _, statement := range statements {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
}

// firstColumn returns the texts in the first column of a query's result.
func firstColumn(t *testing.T, databaseURL, query string) (texts []string) {
	t.Helper()
	db, err := sql.Open("pgx", databaseURL)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		texts = append(texts, text)
	}
	require.NoError(t, rows.Err())
	return texts
}
