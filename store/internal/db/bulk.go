package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
)

// This file implements the fastest way to insert many rows on each engine.

// InsertRows is a function that inserts rows into a table. Each row has one value for each column.
type InsertRows func(table string, columns []string, rows [][]any) error

// UpdateStatistics updates the query planner's statistics of a table if they are outdated. rowCount is the present number of rows of the table. Call
// UpdateStatistics before you insert many rows with foreign keys to this table. On SQLite, it does nothing.
func (d *DB) UpdateStatistics(tx *gorm.DB, table string, rowCount int64) error {
	return d.dialect.updateStatistics(tx, table, rowCount)
}

// BulkTx runs f in one transaction. Like Tx, it retries f after conflicts. The argument insert is a function that inserts rows in the engine's
// fastest way.
func (d *DB) BulkTx(ctx context.Context, f func(tx *gorm.DB, insert InsertRows) error) error {
	return d.dialect.bulkTx(ctx, d, f)
}

// bulkTx runs f in a transaction. The function "insert", which f receives, uses INSERT.
func (sqliteDialect) bulkTx(ctx context.Context, d *DB, f func(tx *gorm.DB, insert InsertRows) error) error {
	return runInsertTx(ctx, d, f, func(tx *gorm.DB, text string, args []any) error {
		_, err := tx.Statement.ConnPool.ExecContext(ctx, text, args...) // GORM is not used, because it would parse the long statement again
		return err
	})
}

// runInsertTx runs f in a transaction. The parameter `insert` of f is a function that inserts rows into a table. The function `insert`
// calls exec to run each INSERT statement.
func runInsertTx(ctx context.Context, d *DB, f func(tx *gorm.DB, insert InsertRows) error, exec func(tx *gorm.DB, text string, args []any) error) error {
	return d.Tx(ctx, func(tx *gorm.DB) error {
		return f(tx, func(table string, columns []string, rows [][]any) error {
			return convertInsertError(tx, table, insertMany(table, columns, rows, func(text string, args []any) error { return exec(tx, text, args) }))
		})
	})
}

// convertInsertError converts an error of the driver to an error of GORM, and adds the name of the
// table. It returns nil if err is nil.
func convertInsertError(tx *gorm.DB, table string, err error) error {
	if err == nil {
		return nil
	}
	if t, ok := tx.Dialector.(gorm.ErrorTranslator); ok {
		err = t.Translate(err)
	}
	return fmt.Errorf("load %s: %w", table, err)
}

// parametersAtOnce is the maximum number of parameters of one INSERT of insertMany. More parameters do not make the INSERT faster.
const parametersAtOnce = 4000

// insertMany inserts rows with INSERT statements of many rows each. The function exec runs these statements. A statement has at most
// parametersAtOnce parameters.
func insertMany(table string, columns []string, rows [][]any, exec func(text string, args []any) error) error {
	if len(rows) == 0 {
		return nil
	}
	size := min(len(rows), parametersAtOnce/len(columns))
	row := "(?" + strings.Repeat(", ?", len(columns)-1) + ")"
	statement := func(rows int) string {
		return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s%s", table, strings.Join(columns, ", "), row, strings.Repeat(", "+row, rows-1))
	}
	args := make([]any, 0, size*len(columns))
	whole := statement(size)
	for len(rows) > 0 {
		n := min(size, len(rows))
		args = args[:0]
		for _, r := range rows[:n] {
			args = append(args, r...)
		}
		text := whole
		if n < size {
			text = statement(n)
		}
		if err := exec(text, args); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// bulkTx runs f in a transaction. The function "insert", which f receives, uses COPY.
func (postgresDialect) bulkTx(ctx context.Context, d *DB, f func(tx *gorm.DB, insert InsertRows) error) error {
	err := runCopyTx(ctx, d, f)
	// On Citus, COPY reports every broken constraint as the same error, XX000. So retry f with INSERT,
	// which names the constraint.
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && d.sharded && e.Code == "XX000" {
		return runInsertTx(ctx, d, f, func(tx *gorm.DB, text string, args []any) error { return tx.Exec(text, args...).Error })
	}
	return err
}

// runCopyTx runs f in a transaction on a single connection. The statements of GORM and the COPY of the insert function share that connection.
func runCopyTx(ctx context.Context, d *DB, f func(tx *gorm.DB, insert InsertRows) error) error {
	conn, err := d.pools[0].Conn(ctx)
	if err != nil {
		return Translate(err)
	}
	defer func() { _ = conn.Close() }()
	own := d.write.Session(&gorm.Session{NewDB: true, Context: ctx})
	own.Statement.ConnPool = conn
	bound := &DB{connections: connections{write: own}, dialect: d.dialect, now: d.now, logger: d.logger}
	return bound.Tx(ctx, func(tx *gorm.DB) error {
		return f(tx, func(table string, columns []string, rows [][]any) error {
			return convertInsertError(tx, table, copyRows(ctx, conn, table, columns, rows))
		})
	})
}

func (sqliteDialect) updateStatistics(*gorm.DB, string, int64) error { return nil }

// updateStatistics runs ANALYZE if the number of rows has at least doubled since the last ANALYZE
// of the table.
func (postgresDialect) updateStatistics(tx *gorm.DB, table string, rows int64) error {
	var planned float64
	if err := tx.Raw("SELECT reltuples FROM pg_class WHERE oid = CAST(? AS regclass)", table).Scan(&planned).Error; err != nil {
		return err
	}
	if float64(rows) < 2*planned {
		return nil
	}
	// With old statistics, each check of a foreign key may read all rows of the organisation.
	return tx.Exec("ANALYZE " + table).Error
}

// copyRows inserts rows into a table with COPY. It replaces each value in rows by the result of toBinary.
func copyRows(ctx context.Context, conn *sql.Conn, table string, columns []string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	return conn.Raw(func(driver any) error {
		i := 0
		_, err := driver.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromFunc(func() ([]any, error) {
			if i == len(rows) {
				return nil, nil
			}
			row := rows[i]
			for c, v := range row {
				row[c] = toBinary(v)
			}
			i++
			return row, nil
		}))
		return err
	})
}
