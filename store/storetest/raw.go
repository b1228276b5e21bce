package storetest

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Raw returns a pool that bypasses the store and its rules. Tests use it to read what is stored, and to write what the store never would.
// It is closed with the database.
func (db *DB) Raw(t testing.TB) *sql.DB {
	t.Helper()
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.raw == nil {
		driver, source := "pgx", db.URL
		if path, ok := strings.CutPrefix(db.URL, "sqlite:"); ok {
			driver, source = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_txlock=immediate"
		}
		pool, err := sql.Open(driver, source)
		require.NoError(t, err)
		db.raw = pool
	}
	return db.raw
}

func (db *DB) closeRaw() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.raw == nil {
		return nil
	}
	return db.raw.Close()
}

// Exec runs a statement directly, without the store. ? stands for a parameter on every engine.
func (db *DB) Exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	_, err := db.Raw(t).ExecContext(t.Context(), db.Bind(statement), args...)
	require.NoError(t, err)
}

// Bind replaces each ? by the placeholder of the engine.
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

// Column runs a query directly, without the store, and returns its first column. ? stands for a parameter.
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
