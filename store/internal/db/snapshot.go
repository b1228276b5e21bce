package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
)

// Kind is the type of the values of a column, independent of the engine. The engines declare different SQL types for the same kind.
type Kind string

// The kinds of values. Ids and days are texts.
const (
	TextKind    Kind = "text"
	IntegerKind Kind = "integer"
	FloatKind   Kind = "float"
	BoolKind    Kind = "boolean"
	BytesKind   Kind = "bytes"
)

// StoredColumn describes a column of a table.
type StoredColumn struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`

	declared string // the declared type, in lower case
	key      int    // position in the primary key, counted from 1; 0 for other columns
}

// kinds maps each SQL type that the migrations of SQLite or PostgreSQL use to its Kind.
var kinds = map[string]Kind{
	"text": TextKind, "uuid": TextKind, "date": TextKind,
	"integer": IntegerKind, "bigint": IntegerKind, "smallint": IntegerKind,
	"real": FloatKind, "double precision": FloatKind,
	"boolean": BoolKind,
	"blob":    BytesKind, "bytea": BytesKind,
}

// referredTables are the tables to which foreign keys of other tables refer. Each of them comes after the tables to which it refers. A test
// compares this list with the schema.
var referredTables = []string{"organisations", "accounts", "videos", "collections", "events"}

// StoredTable is a table of the database. Its columns are ordered by name.
type StoredTable struct {
	Name    string
	Columns []StoredColumn
}

// PrimaryKey returns the columns of the primary key, in the order of the key.
func (t StoredTable) PrimaryKey() []StoredColumn {
	key := slices.DeleteFunc(slices.Clone(t.Columns), func(c StoredColumn) bool { return c.key == 0 })
	slices.SortFunc(key, func(a, b StoredColumn) int { return cmp.Compare(a.key, b.key) })
	return key
}

// HasColumn returns true if the table has a column with the given name.
func (t StoredTable) HasColumn(name string) bool {
	return slices.ContainsFunc(t.Columns, func(c StoredColumn) bool { return c.Name == name })
}

// StoredTables returns the tables of this program that exist in the database. Each table comes
// after the tables to which its foreign keys refer.
func (d *DB) StoredTables(ctx context.Context) ([]StoredTable, error) {
	var others []string
	for name := range Tables {
		if !slices.Contains(referredTables, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	var tables []StoredTable
	for _, name := range slices.Concat(referredTables, others) {
		columns, err := d.readColumns(ctx, name)
		if err != nil {
			return nil, err
		}
		// If the schema is older than this program, some tables do not exist.
		if len(columns) > 0 {
			tables = append(tables, StoredTable{name, columns})
		}
	}
	return tables, nil
}

// IsReferencedByForeignKeys returns true if foreign keys of other tables refer to the table.
func IsReferencedByForeignKeys(table string) bool { return slices.Contains(referredTables, table) }

// readColumns returns the columns of a table, ordered by name. It returns no columns if the table does not exist.
func (d *DB) readColumns(ctx context.Context, table string) ([]StoredColumn, error) {
	rows, err := d.pools[len(d.pools)-1].QueryContext(ctx, d.dialect.columnsQuery(), table)
	if err != nil {
		return nil, Translate(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err returns the errors of reading, so the error of Close is not needed
	var columns []StoredColumn
	for rows.Next() {
		var c StoredColumn
		if err := rows.Scan(&c.Name, &c.declared, &c.key); err != nil {
			return nil, Translate(err)
		}
		var known bool
		if c.Kind, known = kinds[c.declared]; !known {
			return nil, fmt.Errorf("column %s of table %s has the unknown type %s", c.Name, table, c.declared)
		}
		columns = append(columns, c)
	}
	slices.SortFunc(columns, func(a, b StoredColumn) int { return strings.Compare(a.Name, b.Name) })
	return columns, Translate(rows.Err())
}

// Value returns the value of the column c, which has the index i in the row. For NULL, it returns
// nil. The type of the result depends only on c.Kind.
func (c StoredColumn) Value(row *Values, i int) any {
	var value any
	known := false
	switch c.Kind {
	case TextKind:
		switch c.declared {
		case "uuid":
			var id uuid.UUID
			id, known = row.UUID(i)
			value = id.String()
		case "date":
			var day Date
			day, known = row.Date(i)
			value = day.String()
		default:
			value, known = row.Text(i)
		}
	case IntegerKind:
		value, known = row.Int(i)
	case FloatKind:
		value, known = row.Float(i)
	case BoolKind:
		value, known = row.Bool(i)
	case BytesKind:
		b := row.Bytes(i)
		value, known = b, b != nil
	}
	if !known {
		return nil
	}
	return value
}

// ToInsertable converts a result of Value to a value that InsertRows can insert into the column c. The result can come from a database of the
// other engine.
func (c StoredColumn) ToInsertable(value any) (any, error) {
	text, isText := value.(string)
	switch {
	case isText && c.declared == "uuid":
		return uuid.Parse(text)
	case isText && c.declared == "date":
		return ParseDate(text)
	}
	return value, nil
}

// Snapshot reads tables as they were at one moment. It does not see what other transactions write after this moment.
type Snapshot struct {
	dialect dialect
	each    func(ctx context.Context, query string, f func(*Values) error) error
}

// Snapshot calls f with a Snapshot. All reads of f through it see the database as it was at the first of these reads. The statements have no time
// limit.
func (d *DB) Snapshot(ctx context.Context, f func(*Snapshot) error) error {
	return Translate(d.dialect.readSnapshot(ctx, d.pools[len(d.pools)-1], func(each func(context.Context, string, func(*Values) error) error) error {
		return f(&Snapshot{dialect: d.dialect, each: each})
	}))
}

// EachRow calls f for each row of a table, in the order of the primary key. The values of a row are in the order of table.Columns.
func (s *Snapshot) EachRow(ctx context.Context, table StoredTable, f func(*Values) error) error {
	names := make([]string, len(table.Columns))
	for i, c := range table.Columns {
		names[i] = c.Name
	}
	key := table.PrimaryKey()
	order := make([]string, len(key))
	for i, c := range key {
		order[i] = s.dialect.sortExpression(c)
	}
	return s.each(ctx, fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", strings.Join(names, ", "), table.Name, strings.Join(order, ", ")), f)
}

// CountRows returns the number of rows of a table.
func (s *Snapshot) CountRows(ctx context.Context, table string) (rows int64, err error) {
	err = s.each(ctx, "SELECT COUNT(*) FROM "+table, func(v *Values) error {
		rows = v.Count(0)
		return nil
	})
	return rows, err
}

// FirstAndLastDay returns the first and the last day in the table snapshots_daily, or two nils if the table is empty.
func (s *Snapshot) FirstAndLastDay(ctx context.Context) (first, last *Date, err error) {
	err = s.each(ctx, "SELECT MIN(day), MAX(day) FROM snapshots_daily", func(v *Values) error {
		first, last = v.OptionalDate(0), v.OptionalDate(1)
		return nil
	})
	return first, last, err
}

func (sqliteDialect) columnsQuery() string {
	return `SELECT name, lower(type), pk FROM pragma_table_xinfo(?)`
}

func (postgresDialect) columnsQuery() string {
	return `SELECT a.attname, format_type(a.atttypid, NULL), COALESCE(array_position(k.conkey, a.attnum), 0)
  FROM pg_attribute a LEFT JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'p'
 WHERE a.attrelid = to_regclass(CAST($1 AS text)) AND a.attnum > 0 AND NOT a.attisdropped`
}

func (sqliteDialect) sortExpression(c StoredColumn) string { return c.Name }

// sortExpression adds the collation "C" to a column of texts, so that the texts are ordered by their bytes, as on SQLite.
func (postgresDialect) sortExpression(c StoredColumn) string {
	if c.declared == "text" {
		return c.Name + ` COLLATE "C"`
	}
	return c.Name
}

func (sqliteDialect) readSnapshot(ctx context.Context, pool *sql.DB, f func(runSelect func(context.Context, string, func(*Values) error) error) error) (err error) {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }() // the transaction has not written, so there is nothing to commit
	return f(func(ctx context.Context, query string, row func(*Values) error) error {
		return eachPlainRow(ctx, tx, query, nil, row)
	})
}

func (postgresDialect) readSnapshot(ctx context.Context, pool *sql.DB, f func(runSelect func(context.Context, string, func(*Values) error) error) error) error {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // Close returns the connection to the pool
	return conn.Raw(func(c any) error {
		repeatable := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		return pgx.BeginTxFunc(ctx, c.(*stdlib.Conn).Conn(), repeatable, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
				return err
			}
			return f(func(ctx context.Context, query string, row func(*Values) error) error {
				return eachPostgresRow(ctx, tx, query, nil, row)
			})
		})
	})
}

// DeferForeignKeys makes SQLite check foreign keys only at the end of the transaction tx. On PostgreSQL, which checks them at the end of
// each statement, it does nothing.
func DeferForeignKeys(tx *gorm.DB) error {
	if hasRowLocks(tx) {
		return nil
	}
	return tx.Exec("PRAGMA defer_foreign_keys = ON").Error
}

// AnalyzeAll runs VACUUM (ANALYZE) on PostgreSQL after a load of many rows. It does nothing on
// SQLite.
func (d *DB) AnalyzeAll(ctx context.Context) error {
	if !hasRowLocks(d.write) {
		return nil
	}
	// ANALYZE updates the statistics of the query planner. VACUUM allows reads of histories from
	// their index alone.
	_, err := d.pools[0].ExecContext(ctx, "VACUUM (ANALYZE)")
	return Translate(err)
}
