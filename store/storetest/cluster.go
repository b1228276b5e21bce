package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// CitusURL is the environment variable with the URL of a database on a Citus coordinator. If it is set, tests
// of the engine "citus" run on this cluster instead of on the stand-in.
const CitusURL = "REELTALLY_TEST_CITUS_URL"

// shards is the number of shards of each distributed table in a test. It is small, because every test creates all tables.
const shards = 4

// createOnCluster creates a database on every node of the cluster and returns the URL of the
// coordinator's database. The databases are dropped when the test ends.
func createOnCluster(t testing.TB, name string) string {
	t.Helper()
	coordinator := os.Getenv(CitusURL)
	workers, err := workerURLs(coordinator)
	require.NoError(t, err)
	t.Cleanup(func() {
		drop := fmt.Sprintf("DROP DATABASE IF EXISTS %s WITH (FORCE)", name)
		for _, node := range append([]string{coordinator}, workers...) {
			require.NoError(t, runStatements(node, drop))
		}
	})
	for _, node := range append([]string{coordinator}, workers...) {
		require.NoError(t, runStatements(node, "CREATE DATABASE "+name, fmt.Sprintf("ALTER DATABASE %s SET citus.shard_count = %d", name, shards)))
		require.NoError(t, runStatements(withDatabaseName(node, name), "CREATE EXTENSION IF NOT EXISTS citus"))
	}
	created := withDatabaseName(coordinator, name)
	host, port, err := hostAndPort(coordinator)
	require.NoError(t, err)
	// Join the databases of the workers to the coordinator's database.
	join := []string{fmt.Sprintf("SELECT citus_set_coordinator_host('%s', %d)", host, port)}
	for _, worker := range workers {
		host, port, err := hostAndPort(worker)
		require.NoError(t, err)
		join = append(join, fmt.Sprintf("SELECT citus_add_node('%s', %d)", host, port))
	}
	require.NoError(t, runStatements(created, join...))
	return created
}

// workerURLs returns a URL for each active worker of the cluster. The URLs differ from the
// coordinator's only in host and port. Without a worker, it returns an error.
func workerURLs(coordinator string) (urls []string, err error) {
	err = withConnection(coordinator, func(db *sql.DB) error {
		rows, err := db.QueryContext(context.Background(), "SELECT node_name, node_port FROM citus_get_active_worker_nodes() ORDER BY node_name, node_port")
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var host string
			var port int
			if err := rows.Scan(&host, &port); err != nil {
				return err
			}
			u, err := url.Parse(coordinator)
			if err != nil {
				return err
			}
			u.Host = net.JoinHostPort(host, strconv.Itoa(port))
			urls = append(urls, u.String())
		}
		return rows.Err()
	})
	if err == nil && len(urls) == 0 {
		err = fmt.Errorf("the coordinator in %s has no active worker: add workers by citus_add_node", CitusURL)
	}
	return urls, err
}

// hostAndPort returns the host and the port of a database URL. Without a port, it returns 5432.
func hostAndPort(databaseURL string) (host string, port int, err error) {
	u, err := url.Parse(databaseURL)
	if err != nil || u.Port() == "" {
		return u.Hostname(), 5432, err
	}
	port, err = strconv.Atoi(u.Port())
	return u.Hostname(), port, err
}

// runStatements runs statements one after the other on the database at the given URL, without a transaction.
func runStatements(databaseURL string, statements ...string) error {
	return withConnection(databaseURL, func(db *sql.DB) error {
		for _, statement := range statements {
			if _, err := db.ExecContext(context.Background(), statement); err != nil { //nolint:gosec // the names of databases and nodes come from the operator of the tests
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}
