package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/reeltally/reeltally/internal/tracing"
)

// statements has the methods of *sql.DB and *sql.Tx with which GORM runs statements.
type statements interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// watchPool returns a pool that calls o.Inspect before each statement. It also records a span for each statement whose context has a span, and
// runs a query with an outdated plan again.
func watchPool(pool *sql.DB, o Options, engine string) gorm.ConnPool {
	if o.Inspect == nil && !o.Traced {
		return replanningPool{pool}
	}
	return &watchedPool{watchedStatements{replanningPool{pool}, newPoolInspector(o.Inspect), engine}, pool, o.Inspect}
}

// watchedStatements runs a statement only if inspect returns no error for it. It records a span for each statement whose context has a span.
type watchedStatements struct {
	statements
	inspect Inspector
	engine  string
}

func (s watchedStatements) ExecContext(ctx context.Context, query string, args ...any) (result sql.Result, err error) {
	if err := s.inspect(query, args); err != nil {
		return nil, err
	}
	ctx, span := startStatementSpan(ctx, s.engine, query)
	defer func() { tracing.End(span, err) }()
	return s.statements.ExecContext(ctx, query, args...)
}

// QueryContext runs a query. Its span ends with the first row, because database/sql does not say when the last row was read.
func (s watchedStatements) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	if err := s.inspect(query, args); err != nil {
		return nil, err
	}
	ctx, span := startStatementSpan(ctx, s.engine, query)
	defer func() { tracing.End(span, err) }()
	return s.statements.QueryContext(ctx, query, args...) //nolint:sqlclosecheck // the caller closes the rows
}

func (s watchedStatements) QueryRowContext(ctx context.Context, query string, args ...any) (row *sql.Row) {
	if err := s.inspect(query, args); err != nil {
		cancelled, cancel := context.WithCancelCause(ctx)
		cancel(err) // with the cancelled context, the query is not run, and Row.Scan returns an error
		return s.statements.QueryRowContext(cancelled, query, args...)
	}
	ctx, span := startStatementSpan(ctx, s.engine, query)
	defer func() { tracing.End(span, row.Err()) }()
	return s.statements.QueryRowContext(ctx, query, args...)
}

// watchedPool is a connection pool for GORM. It watches each statement, including statements in transactions.
type watchedPool struct {
	watchedStatements
	pool      *sql.DB
	inspectTx Inspector // Options.Inspect; can be nil
}

// BeginTx begins a transaction for GORM. The statements of the transaction are watched.
func (p *watchedPool) BeginTx(ctx context.Context, opts *sql.TxOptions) (_ gorm.ConnPool, err error) {
	began, span := startStatementSpan(ctx, p.engine, "BEGIN")
	defer func() { tracing.End(span, err) }()
	tx, err := p.pool.BeginTx(began, opts)
	if err != nil {
		return nil, err
	}
	return &watchedTx{watchedStatements{tx, newTxInspector(p.inspectTx), p.engine}, tx, ctx}, nil
}

// GetDBConn returns the pool without inspection. GORM requires this method.
func (p *watchedPool) GetDBConn() (*sql.DB, error) { return p.pool, nil }

// watchedTx is a transaction that passes each statement to an Inspector before the statement runs. The function newTxInspector makes this Inspector.
type watchedTx struct {
	watchedStatements
	tx  *sql.Tx
	ctx context.Context // the context of BeginTx, for the spans of COMMIT and ROLLBACK
}

func (t *watchedTx) Commit() (err error) {
	_, span := startStatementSpan(t.ctx, t.engine, "COMMIT")
	defer func() { tracing.End(span, err) }()
	return t.tx.Commit()
}

func (t *watchedTx) Rollback() (err error) {
	_, span := startStatementSpan(t.ctx, t.engine, "ROLLBACK")
	defer func() { tracing.End(span, err) }()
	return t.tx.Rollback()
}

// writtenTable matches the name of each table that a statement writes.
var writtenTable = regexp.MustCompile(`(?i)\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+"?([a-z_]+)"?`)

// knownWrites has the result of writtenTables for each statement that an Inspector has seen.
var knownWrites sync.Map

// writtenTables returns the names of the tables that a statement writes. It searches each statement only once, because the search takes long.
func writtenTables(statement string) []string {
	known, found := knownWrites.Load(statement)
	if !found {
		var tables []string
		for _, written := range writtenTable.FindAllStringSubmatch(statement, -1) {
			tables = append(tables, written[1])
		}
		known, _ = knownWrites.LoadOrStore(statement, tables)
	}
	return known.([]string)
}

// unversionedTables has the tables that a transaction may write without raising the version of the
// organisation's data. They contain the version itself, or no data that the API shows.
var unversionedTables = map[string]bool{"organisation_totals": true, "idempotency_keys": true, "idempotency_usage": true}

// labelTables has the tables of collections and their members. The labels of videos and accounts
// are collections, so a write to these tables can change labels.
var labelTables = map[string]bool{"collections": true, "collection_videos": true, "collection_accounts": true, "collection_hashtags": true}

// changedTable matches a statement that creates, changes or drops a table.
var changedTable = regexp.MustCompile(`(?i)^\s*(?:CREATE|ALTER|DROP)\s+TABLE\b`)

// acceptStatement is an Inspector that accepts every statement.
func acceptStatement(string, []any) error { return nil }

// newPoolInspector returns an Inspector for statements outside of transactions. It refuses
// statements that create, change or drop a table. If inspect is nil, it accepts every statement.
func newPoolInspector(inspect Inspector) Inspector {
	if inspect == nil {
		return acceptStatement
	}
	return func(statement string, args []any) error {
		if changedTable.MatchString(statement) {
			return fmt.Errorf("a statement outside of a transaction changes a table; it needs a transaction that has set %s: %s", sequentialDDL, statement)
		}
		return inspect(statement, args)
	}
}

// newTxInspector returns an Inspector for one transaction. It refuses a write to an organisation's data or
// to labelTables if the transaction has neither raised the version of this data nor called CloseOrganisation yet. It also refuses to create,
// change or drop a table before the transaction sets sequentialDDL. If inspect is nil, it accepts every statement.
func newTxInspector(inspect Inspector) Inspector {
	if inspect == nil {
		return acceptStatement
	}
	marker, _, _ := strings.Cut(raised, "?")
	closed, _, _ := strings.Cut(closeOrganisation, "?")
	labelMarker, _, _ := strings.Cut(raisedLabels, "?")
	var done, labelsDone, sequential atomic.Bool
	return func(statement string, args []any) error {
		if strings.Contains(statement, sequentialDDL) {
			sequential.Store(true)
		}
		if changedTable.MatchString(statement) && !sequential.Load() {
			return fmt.Errorf("a transaction runs CREATE, ALTER or DROP TABLE before it sets %s: %s", sequentialDDL, statement)
		}
		if strings.Contains(statement, " SET "+marker) {
			done.Store(true)
			labelsDone.Store(strings.Contains(statement, labelMarker) || labelsDone.Load())
		}
		if strings.HasPrefix(statement, closed) { // no version is left to raise
			done.Store(true)
			labelsDone.Store(true)
		}
		for _, table := range writtenTables(statement) {
			if Tables[table].Class == Distributed && !unversionedTables[table] && !done.Load() {
				return fmt.Errorf("a transaction writes %s before it raises the organisation's version: %s", table, statement)
			}
			if labelTables[table] && !labelsDone.Load() {
				return fmt.Errorf("a transaction writes %s before it raises the version of the organisation's labels: %s", table, statement)
			}
		}
		return inspect(statement, args)
	}
}

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

// Trace logs statements that failed or were slow. A missing record or a cancelled context does not
// count as a failure.
func (l sqlLog) Trace(ctx context.Context, begin time.Time, fc func() (string, int64), err error) {
	elapsed := time.Since(begin)
	expected := err == nil || errors.Is(err, gorm.ErrRecordNotFound) || errors.Is(err, context.Canceled) || errors.Is(ctx.Err(), context.Canceled)
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
