package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// statements has the methods of *sql.DB and *sql.Tx with which GORM runs statements.
type statements interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// inspected returns a pool that calls the function inspect with each statement before the statement runs. If inspect returns an error, the
// pool does not run the statement. If inspect is nil, inspected returns pool unchanged.
func inspected(pool *sql.DB, inspect Inspector) gorm.ConnPool {
	if inspect == nil {
		return pool
	}
	return &inspectedPool{inspectedStatements{pool, outsideTx(inspect)}, pool, inspect}
}

// inspectedStatements runs a statement only if inspect returns no error for it.
type inspectedStatements struct {
	statements
	inspect Inspector
}

func (s inspectedStatements) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := s.inspect(query, args); err != nil {
		return nil, err
	}
	return s.statements.ExecContext(ctx, query, args...)
}

func (s inspectedStatements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := s.inspect(query, args); err != nil {
		return nil, err
	}
	return s.statements.QueryContext(ctx, query, args...)
}

func (s inspectedStatements) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := s.inspect(query, args); err != nil {
		cancelled, cancel := context.WithCancelCause(ctx)
		cancel(err) // the only way to return err in a *sql.Row is a query whose context was cancelled with err as the cause
		return s.statements.QueryRowContext(cancelled, query, args...)
	}
	return s.statements.QueryRowContext(ctx, query, args...)
}

// inspectedPool is a connection pool for GORM. It calls inspect before each statement, also in transactions.
type inspectedPool struct {
	inspectedStatements
	pool    *sql.DB
	inspect Inspector
}

// BeginTx begins a transaction for GORM. The statements of the transaction are inspected.
func (p *inspectedPool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := p.pool.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &inspectedTx{inspectedStatements{tx, txGuard(p.inspect)}, tx}, nil
}

// GetDBConn returns the pool without inspection. GORM requires this method.
func (p *inspectedPool) GetDBConn() (*sql.DB, error) { return p.pool, nil }

// inspectedTx is a transaction whose statements are inspected by txGuard and by Options.Inspect.
type inspectedTx struct {
	inspectedStatements
	tx *sql.Tx
}

// writtenTable matches the name of each table that a statement writes.
var writtenTable = regexp.MustCompile(`(?i)\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+"?([a-z_]+)"?`)

// unversioned has the distributed tables that a transaction may write without raising the version of the organisation's data.
// organisation_totals contains the version itself. The data of the two other tables is not shown in any answer of the API.
var unversioned = map[string]bool{"organisation_totals": true, "idempotency_keys": true, "idempotency_usage": true}

// labelTables has the tables of collections and their members. The labels of a video or account are the collections that are shown with it.
// They can change if rows of these tables change.
var labelTables = map[string]bool{"collections": true, "collection_videos": true, "collection_accounts": true, "collection_hashtags": true}

// changedTable matches a statement that creates, changes or drops a table.
var changedTable = regexp.MustCompile(`(?i)^\s*(?:CREATE|ALTER|DROP)\s+TABLE\b`)

// outsideTx returns a function that is called before each statement outside of a transaction. It returns an error if the statement creates,
// changes or drops a table, because sequentialDDL is set only in transactions. Otherwise it returns the result of inspect.
func outsideTx(inspect Inspector) Inspector {
	return func(statement string, args []any) error {
		if changedTable.MatchString(statement) {
			return fmt.Errorf("a statement changes a table, but not in a transaction that has set %s: %s", sequentialDDL, statement)
		}
		return inspect(statement, args)
	}
}

// txGuard returns a function that is called before each statement of one transaction. It returns an error in three cases: a statement
// writes an organisation's data before the transaction has raised the version of the data; a statement writes one of labelTables before the
// transaction has raised the version of the labels; a statement creates, changes or drops a table before the transaction has set
// sequentialDDL. Otherwise it returns the result of inspect.
func txGuard(inspect Inspector) Inspector {
	marker, _, _ := strings.Cut(raised, "?")
	labelMarker, _, _ := strings.Cut(raisedLabels, "?")
	var done, labelsDone, sequential atomic.Bool
	return func(statement string, args []any) error {
		if strings.Contains(statement, sequentialDDL) {
			sequential.Store(true)
		}
		if changedTable.MatchString(statement) && !sequential.Load() {
			return fmt.Errorf("a transaction changes a table before it sets %s: %s", sequentialDDL, statement)
		}
		if strings.Contains(statement, " SET "+marker) {
			done.Store(true)
			labelsDone.Store(strings.Contains(statement, labelMarker) || labelsDone.Load())
		}
		for _, written := range writtenTable.FindAllStringSubmatch(statement, -1) {
			table := written[1]
			if Tables[table].Class == Distributed && !unversioned[table] && !done.Load() {
				return fmt.Errorf("a transaction writes %s before it raises the organisation's version: %s", table, statement)
			}
			if labelTables[table] && !labelsDone.Load() {
				return fmt.Errorf("a transaction writes %s before it raises the version of the organisation's labels: %s", table, statement)
			}
		}
		return inspect(statement, args)
	}
}

func (t *inspectedTx) Commit() error { return t.tx.Commit() }

func (t *inspectedTx) Rollback() error { return t.tx.Rollback() }

// sqlLog logs failed and slow statements of GORM with slog. It leaves out the parameters, because they are the organisations' data.
type sqlLog struct{ logger *slog.Logger }

func newSQLLog(l *slog.Logger) logger.Interface { return sqlLog{l} }

// slowStatement is the minimum duration of a statement that is logged as slow.
const slowStatement = time.Second

func (l sqlLog) LogMode(logger.LogLevel) logger.Interface { return l }

func (l sqlLog) Info(ctx context.Context, msg string, _ ...any) {
	l.logger.DebugContext(ctx, "GORM information", "detail", msg)
}

func (l sqlLog) Warn(ctx context.Context, msg string, _ ...any) {
	l.logger.WarnContext(ctx, "GORM warning", "detail", msg)
}

func (l sqlLog) Error(ctx context.Context, msg string, _ ...any) {
	l.logger.ErrorContext(ctx, "GORM error", "detail", msg)
}

// ParamsFilter removes the parameters from a logged statement.
func (sqlLog) ParamsFilter(_ context.Context, query string, _ ...any) (string, []any) {
	return query, nil
}

// Trace logs a statement if it failed or was slow. The function fc returns the text of the statement and the number of rows that it read or
// changed.
func (l sqlLog) Trace(ctx context.Context, begin time.Time, fc func() (string, int64), err error) {
	elapsed := time.Since(begin)
	expected := err == nil || errors.Is(err, gorm.ErrRecordNotFound) || errors.Is(err, context.Canceled)
	if expected && elapsed < slowStatement {
		return
	}
	statement, rows := fc()
	if len(statement) > 500 {
		statement = statement[:500] + "…"
	}
	if !expected {
		l.logger.WarnContext(ctx, "statement failed", "statement", statement, "error", err)
		return
	}
	l.logger.WarnContext(ctx, "statement was slow", "statement", statement, "rows", rows, "elapsed", elapsed)
}
