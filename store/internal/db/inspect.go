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

// statements are the methods that a pool and a transaction have in common.
type statements interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// inspected returns pool. If inspect is not nil, the returned pool calls inspect before each statement.
func inspected(pool *sql.DB, inspect func(string) error) gorm.ConnPool {
	if inspect == nil {
		return pool
	}
	return &inspectedPool{inspectedStatements{pool, inspect}, pool}
}

type inspectedStatements struct {
	statements
	inspect func(string) error
}

func (s inspectedStatements) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := s.inspect(query); err != nil {
		return nil, err
	}
	return s.statements.ExecContext(ctx, query, args...)
}

func (s inspectedStatements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := s.inspect(query); err != nil {
		return nil, err
	}
	return s.statements.QueryContext(ctx, query, args...)
}

func (s inspectedStatements) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := s.inspect(query); err != nil {
		cancelled, cancel := context.WithCancelCause(ctx)
		cancel(err) // *sql.Row cannot carry an error in another way
		return s.statements.QueryRowContext(cancelled, query, args...)
	}
	return s.statements.QueryRowContext(ctx, query, args...)
}

type inspectedPool struct {
	inspectedStatements
	pool *sql.DB
}

// BeginTx opens a transaction for GORM whose statements are inspected too.
func (p *inspectedPool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := p.pool.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &inspectedTx{inspectedStatements{tx, versionGuard(p.inspect)}, tx}, nil
}

// GetDBConn returns the underlying pool to GORM.
func (p *inspectedPool) GetDBConn() (*sql.DB, error) { return p.pool, nil }

// inspectedTx refuses a statement that writes an organisation's data before the transaction has raised the organisation's version.
type inspectedTx struct {
	inspectedStatements
	tx *sql.Tx
}

var writtenTable = regexp.MustCompile(`(?i)\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+"?([a-z_]+)"?`)

// unversioned are the tables of an organisation whose data no answer shows, and the table that holds the version.
var unversioned = map[string]bool{"organisation_totals": true, "idempotency_keys": true, "idempotency_usage": true}

// versionGuard returns an inspect function for the statements of one transaction. It refuses a statement that writes an organisation's
// data before the transaction has raised the organisation's version.
func versionGuard(inspect func(string) error) func(string) error {
	marker, _, _ := strings.Cut(raised, "?")
	var done atomic.Bool
	return func(statement string) error {
		if strings.Contains(statement, marker) {
			done.Store(true)
		}
		for _, written := range writtenTable.FindAllStringSubmatch(statement, -1) {
			table := written[1]
			if Tables[table].Class == Distributed && !unversioned[table] && !done.Load() {
				return fmt.Errorf("a transaction writes %s before it raises the organisation's version: %s", table, statement)
			}
		}
		return inspect(statement)
	}
}

func (t *inspectedTx) Commit() error { return t.tx.Commit() }

func (t *inspectedTx) Rollback() error { return t.tx.Rollback() }

// sqlLog writes GORM's failed and slow statements to slog. It leaves out the values, because they are the organisations' data.
type sqlLog struct{ logger *slog.Logger }

func newSQLLog(l *slog.Logger) logger.Interface { return sqlLog{l} }

const slowStatement = time.Second

func (l sqlLog) LogMode(logger.LogLevel) logger.Interface { return l }

func (l sqlLog) Info(ctx context.Context, msg string, _ ...any) {
	l.logger.DebugContext(ctx, "gorm says", "detail", msg)
}

func (l sqlLog) Warn(ctx context.Context, msg string, _ ...any) {
	l.logger.WarnContext(ctx, "gorm warns", "detail", msg)
}

func (l sqlLog) Error(ctx context.Context, msg string, _ ...any) {
	l.logger.ErrorContext(ctx, "gorm reports an error", "detail", msg)
}

// ParamsFilter removes the values from the logged statement.
func (sqlLog) ParamsFilter(_ context.Context, query string, _ ...any) (string, []any) {
	return query, nil
}

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
