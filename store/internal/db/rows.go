package db

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"go.opentelemetry.io/otel/trace"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/reeltally/reeltally/internal/tracing"
)

// Select has two parts: a SELECT statement, and a function that is called for each row of the result.
type Select struct {
	Query *gorm.DB // a GORM query outside of any transaction; nil if StaticQuery.Select has made the Select, which then has its SQL in the field "text"
	Each  func(*Values) error
	// InIndexOrder is true if an index has the selected rows in the order of the SELECT, and has
	// few other rows. PostgreSQL without Citus then reads this index and avoids sorting: see keepOrderedPlan.
	InIndexOrder bool

	text string // the SQL text and its arguments, if Query is nil
	args []any
}

// toStatement returns the SQL text and the arguments of the SELECT.
func (s Select) toStatement() (text string, args []any, err error) {
	if s.Query == nil {
		return s.text, s.args, nil
	}
	return Statement(s.Query)
}

// StaticQuery is a SELECT with the same SQL text for every call. Building the text with GORM takes
// longer than the database needs for a short statement.
type StaticQuery struct {
	text  string   // SQL text for the engine of the database
	names []string // for each argument, the name of its parameter
}

// parameterName matches a named parameter of a StaticQuery, such as "@org".
var parameterName = regexp.MustCompile(`@[a-z]+`)

// StaticQuery returns a StaticQuery for a SQL text with named parameters, such as "@org".
func (d *DB) StaticQuery(query string) StaticQuery {
	var q StaticQuery
	_, isSQLite := d.dialect.(sqliteDialect)
	q.text = parameterName.ReplaceAllStringFunc(query, func(name string) string {
		at := slices.Index(q.names, name[1:])
		if at < 0 || isSQLite {
			at, q.names = len(q.names), append(q.names, name[1:])
		}
		if isSQLite {
			return "?"
		}
		return "$" + strconv.Itoa(at+1) // if a parameter occurs several times, PostgreSQL gets its value only once
	})
	return q
}

// Select returns the SELECT with its arguments. The map has the value of each parameter under the parameter's name.
func (q StaticQuery) Select(parameters map[string]any, each func(*Values) error) Select {
	args := make([]any, len(q.names))
	for i, name := range q.names {
		args[i] = parameters[name]
	}
	return Select{Each: each, text: q.text, args: args}
}

// EachRow runs the SELECT q and calls f for each row, until the first error. The query q must not
// belong to a transaction.
func (d *DB) EachRow(ctx context.Context, q *gorm.DB, f func(*Values) error) error {
	// EachRow is much faster than GORM: for a long list, GORM would spend most of the time on the conversion of
	// values.
	return d.EachRowOf(ctx, Select{Query: q, Each: f})
}

// EachRowOf runs SELECT statements in order, and calls the function of each statement for its rows.
// On the primary, other transactions can change the data between two statements.
func (d *DB) EachRowOf(ctx context.Context, selects ...Select) (err error) {
	statements := make([]statement, len(selects))
	for i, s := range selects {
		query, args, err := s.toStatement()
		if err != nil {
			return err
		}
		if d.inspect != nil {
			if err := d.inspect(query, args); err != nil {
				return Translate(err)
			}
		}
		statements[i] = statement{query, args, s.Each, s.InIndexOrder && !d.sharded} // Citus must plan each call, because the values say on which server the rows are
	}
	if d.traced {
		var span trace.Span
		ctx, span = startReadSpan(ctx, d.dialect.name(), d.required != nil, statements)
		defer func() { tracing.End(span, err) }()
	}
	if d.required != nil {
		return Translate(d.replica.eachRow(ctx, d.dialect, *d.required, statements))
	}
	return Translate(d.dialect.eachRow(ctx, d.pools[len(d.pools)-1], statements))
}

// statement is the SQL of a SELECT with its arguments, and the function that is called for each of its rows.
type statement struct {
	query string
	args  []any
	each  func(*Values) error
	// inIndexOrder is true if the query needs the settings of keepOrderedPlan.
	inIndexOrder bool
}

// Statement returns the SQL text and the arguments of the SELECT that GORM would run for q.
func Statement(q *gorm.DB) (query string, args []any, err error) {
	// With DryRun, GORM builds the statement but does not run it. Without a logger, GORM does not format the statement as text for a log.
	q = q.Session(&gorm.Session{DryRun: true, Logger: logger.Discard}).Find(&struct{}{})
	if q.Error != nil && !errors.Is(q.Error, gorm.ErrDryRunModeUnsupported) {
		return "", nil, q.Error
	}
	return q.Statement.SQL.String(), q.Statement.Vars, nil
}

func (sqliteDialect) eachRow(ctx context.Context, pool *sql.DB, statements []statement) error {
	for _, s := range statements {
		if err := eachPlainRow(ctx, pool, s.query, s.args, s.each); err != nil {
			return err
		}
	}
	return nil
}

// eachPlainRow runs a SELECT with database/sql and calls f for each row. On PostgreSQL, it is for transactions,
// because a transaction of database/sql gives no access to binary values.
func eachPlainRow(ctx context.Context, on interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, query string, args []any, f func(*Values) error) error {
	rows, err := on.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err returns the errors of reading, so the error of Close is not needed
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	v := &Values{plain: make([]any, len(columns))}
	targets := make([]any, len(columns))
	for i := range targets {
		targets[i] = &v.plain[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		if err := f(v); err != nil {
			return err
		}
	}
	return rows.Err()
}

// keepOrderedPlan makes PostgreSQL use a plan without sorting for the statements of a batch, and keep this plan
// for all parameters. A new plan would take as long as reading 100 rows.
const keepOrderedPlan = "SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_sort', 'off', true)"

func (postgresDialect) eachRow(ctx context.Context, pool *sql.DB, statements []statement) error {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // gives the connection back to the pool
	return conn.Raw(func(c any) error {
		direct := c.(*stdlib.Conn).Conn()
		inIndexOrder := slices.ContainsFunc(statements, func(s statement) bool { return s.inIndexOrder })
		if len(statements) == 1 && !inIndexOrder {
			return eachPostgresRow(ctx, direct, statements[0].query, statements[0].args, statements[0].each)
		}
		// The batch sends all statements together, so eachRow waits for the database only once.
		batch := &pgx.Batch{}
		if inIndexOrder {
			// The settings end with the batch, because PostgreSQL runs a batch as one transaction.
			batch.Queue(keepOrderedPlan)
		}
		for _, s := range statements {
			batch.Queue(s.query, s.args...)
		}
		results := sentBatch{direct.SendBatch(ctx, batch)}
		if inIndexOrder {
			if _, err := results.Exec(); err != nil {
				_ = results.Close() // ignore the error of Close, because the first error says what failed
				return err
			}
		}
		for _, s := range statements {
			if err := eachPostgresRow(ctx, results, s.query, s.args, s.each); err != nil {
				_ = results.Close() // ignore the error of Close, because the first error says what failed
				return err
			}
		}
		return results.Close()
	})
}

// sentBatch contains the results of statements that were sent to PostgreSQL together, in the order of the statements.
type sentBatch struct{ pgx.BatchResults }

// Query returns the rows of the batch's next statement. It ignores its arguments, because the statements are already sent.
func (b sentBatch) Query(context.Context, string, ...any) (pgx.Rows, error) {
	return b.BatchResults.Query()
}

// eachPostgresRow runs a SELECT on a connection or in a transaction, and calls f for each row, until f returns an error.
func eachPostgresRow(ctx context.Context, on interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}, query string, args []any, f func(*Values) error) error {
	rows, err := on.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	v := &Values{}
	for rows.Next() {
		v.binary = rows.RawValues()
		if err := f(v); err != nil {
			return err
		}
	}
	return rows.Err()
}
