package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Raw returns a connection pool that bypasses the store and its Guard. The pool is closed with the
// database.
func (db *DB) Raw(t testing.TB) *sql.DB {
	t.Helper()
	pool, err := db.rawPool()
	require.NoError(t, err)
	return pool
}

// rawPool returns the pool of Raw. The first call opens the pool.
func (db *DB) rawPool() (*sql.DB, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.raw == nil {
		driver, source := "pgx", db.URL
		if path, ok := strings.CutPrefix(db.URL, "sqlite:"); ok {
			driver, source = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_txlock=immediate"
		}
		pool, err := sql.Open(driver, source)
		if err != nil {
			return nil, err
		}
		db.raw = pool
	}
	return db.raw, nil
}

// closeRawPool closes the pool that Raw returned, if any.
func (db *DB) closeRawPool() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.raw == nil {
		return nil
	}
	return db.raw.Close()
}

// Exec runs a statement on the connection pool that Raw returns. The placeholder for a parameter is ? on every engine.
func (db *DB) Exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	_, err := db.Raw(t).ExecContext(t.Context(), db.Bind(statement), args...)
	require.NoError(t, err)
}

// Bind replaces each ? in a statement by the placeholder of the engine: $1, $2 and so on for PostgreSQL.
func (db *DB) Bind(statement string) string {
	if db.Engine == "sqlite" {
		return statement
	}
	parts := strings.Split(statement, "?")
	var out strings.Builder
	for i, p := range parts {
		if i > 0 {
			fmt.Fprintf(&out, "$%d", i)
		}
		out.WriteString(p)
	}
	return out.String()
}

// Column returns the values that a query with one column selects. The placeholder for a parameter is
// ? on every engine.
func Column[T any](t testing.TB, db *DB, query string, args ...any) []T {
	t.Helper()
	rows, err := db.Raw(t).QueryContext(t.Context(), db.Bind(query), args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	var out []T
	for rows.Next() {
		var v T
		require.NoError(t, rows.Scan(&v))
		out = append(out, v)
	}
	require.NoError(t, rows.Err())
	return out
}

// QueryRow reads one row into the variables that the pointers name. Unlike Column, it returns errors instead of failing the test, so that any
// goroutine may call it.
func (db *DB) QueryRow(ctx context.Context, query string, pointers ...any) error {
	pool, err := db.rawPool()
	if err != nil {
		return err
	}
	return pool.QueryRowContext(ctx, query).Scan(pointers...)
}

// QueryText runs a query of one column of texts on the database with the given URL, and returns the values.
func QueryText(t testing.TB, url, query string) []string {
	t.Helper()
	db := &DB{URL: url}
	defer func() { require.NoError(t, db.closeRawPool()) }()
	return Column[string](t, db, query)
}
