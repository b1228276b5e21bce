package db

import (
	"database/sql"
	"io"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/stretchr/testify/require"
)

func TestAppliedMigrations_refusesToInsertAMigrationTwice(t *testing.T) {
	t.Parallel()
	conn, err := sql.Open("sqlite", "file:"+t.TempDir()+"/versions.db")
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	versions, err := database.NewStore(database.DialectSQLite3, goose.DefaultTablename)
	require.NoError(t, err)
	require.NoError(t, versions.CreateVersionTable(t.Context(), conn))
	table := appliedMigrations{versions}
	require.NoError(t, table.Insert(t.Context(), conn, database.InsertRequest{Version: 17}))
	require.NoError(t, table.Insert(t.Context(), conn, database.InsertRequest{Version: 18}))
	require.EqualError(t, table.Insert(t.Context(), conn, database.InsertRequest{Version: 18}), "another process has applied migration 18")
	applied, err := versions.ListMigrations(t.Context(), conn)
	require.NoError(t, err)
	require.Len(t, applied, 2)
}

func TestTranslate_addsErrUnavailableOnlyOnce(t *testing.T) {
	t.Parallel()
	err := Translate(Translate(io.ErrUnexpectedEOF))
	require.ErrorIs(t, err, ErrUnavailable)
	require.EqualError(t, err, "database unavailable: unexpected EOF")
}
