package db

import (
	"context"
	"database/sql"
	bits "encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
)

// Values are the values of one row of a query. A method reads the value at an index. For NULL, it returns the zero value and false. It panics
// if the value has another type, because only a mistake in the program can ask for a wrong type. No value stays valid after the function that
// gets the Values has returned, except for texts.
type Values struct {
	binary [][]byte // on PostgreSQL: the values in PostgreSQL's binary format; nil for NULL
	plain  []any    // on SQLite: the values
}

// postgresEpoch is the day 2000-01-01, from which PostgreSQL counts days.
const postgresEpoch = 10957

// Int returns an integer.
func (v *Values) Int(i int) (int64, bool) {
	if v.binary == nil {
		n, ok := v.plain[i].(int64)
		return n, v.known(i, ok)
	}
	switch b := v.binary[i]; len(b) {
	case 8:
		return int64(bits.BigEndian.Uint64(b)), true //nolint:gosec // the bits of a signed integer
	case 4:
		return int64(int32(bits.BigEndian.Uint32(b))), true //nolint:gosec // the bits of a signed integer
	default:
		return 0, v.known(i, false)
	}
}

// Float returns a number.
func (v *Values) Float(i int) (float64, bool) {
	if v.binary == nil {
		if n, ok := v.plain[i].(int64); ok { // SQLite stores numbers without a fraction as integers
			return float64(n), true
		}
		n, ok := v.plain[i].(float64)
		return n, v.known(i, ok)
	}
	b := v.binary[i]
	if len(b) != 8 {
		return 0, v.known(i, false)
	}
	return math.Float64frombits(bits.BigEndian.Uint64(b)), true
}

// Bool returns a truth value.
func (v *Values) Bool(i int) (value, known bool) {
	if v.binary == nil {
		switch b := v.plain[i].(type) {
		case bool:
			return b, true
		case int64:
			return b != 0, true
		}
		return false, v.known(i, false)
	}
	b := v.binary[i]
	if len(b) != 1 {
		return false, v.known(i, false)
	}
	return b[0] != 0, true
}

// Text returns a text.
func (v *Values) Text(i int) (string, bool) {
	if v.binary == nil {
		s, ok := v.plain[i].(string)
		return s, v.known(i, ok)
	}
	return string(v.binary[i]), v.binary[i] != nil
}

// UUID returns an id.
func (v *Values) UUID(i int) (uuid.UUID, bool) {
	if v.binary == nil {
		s, ok := v.plain[i].(string)
		if !v.known(i, ok) {
			return uuid.Nil, false
		}
		return uuid.MustParse(s), true
	}
	b := v.binary[i]
	if len(b) != len(uuid.UUID{}) {
		return uuid.Nil, v.known(i, false)
	}
	return uuid.UUID(b), true
}

// Date returns a day.
func (v *Values) Date(i int) (Date, bool) {
	if v.binary == nil {
		if v.plain[i] == nil {
			return 0, false
		}
		var d Date
		if err := d.Scan(v.plain[i]); err != nil {
			panic(err)
		}
		return d, true
	}
	b := v.binary[i]
	if len(b) != 4 {
		return 0, v.known(i, false)
	}
	return Date(int32(bits.BigEndian.Uint32(b))) + postgresEpoch, true //nolint:gosec // the bits of a signed integer
}

// known returns ok. It panics if ok is false although the value at index i is not NULL.
func (v *Values) known(i int, ok bool) bool {
	switch {
	case ok:
	case v.binary == nil && v.plain[i] != nil:
		panic(fmt.Sprintf("the value at index %d has the type %T", i, v.plain[i]))
	case v.binary != nil && v.binary[i] != nil:
		panic(fmt.Sprintf("the value at index %d has %d bytes", i, len(v.binary[i])))
	}
	return ok
}

// EachRow runs the SELECT q and calls f for each row. It reads the values without conversions by GORM or database/sql, which would take most
// of the time of a long list. It stops at the first error. q must not belong to a transaction.
func (d *DB) EachRow(ctx context.Context, q *gorm.DB, f func(*Values) error) error {
	statement := q.Session(&gorm.Session{DryRun: true}).Find(&struct{}{}).Statement
	if statement.Error != nil && !errors.Is(statement.Error, gorm.ErrDryRunModeUnsupported) {
		return statement.Error
	}
	query, args := statement.SQL.String(), statement.Vars
	if d.inspect != nil {
		if err := d.inspect(query); err != nil {
			return err
		}
	}
	return Translate(d.dialect.eachRow(ctx, d.pools[len(d.pools)-1], query, args, f))
}

func (sqliteDialect) eachRow(ctx context.Context, pool *sql.DB, query string, args []any, f func(*Values) error) error {
	rows, err := pool.QueryContext(ctx, query, args...)
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

func (postgresDialect) eachRow(ctx context.Context, pool *sql.DB, query string, args []any, f func(*Values) error) error {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // returns the connection to the pool
	return conn.Raw(func(c any) error {
		rows, err := c.(*stdlib.Conn).Conn().Query(ctx, query, args...)
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
	})
}

// AnyOf returns the condition that a column has one of the given ids, and the argument of the condition. On PostgreSQL, the ids are one
// parameter, so that the statement stays the same for each number of ids and is planned only once. q is any query of the database.
func AnyOf(q *gorm.DB, column string, ids []uuid.UUID) (condition string, arg any) {
	if !hasRowLocks(q) {
		return column + " IN ?", ids
	}
	var list strings.Builder
	for i, id := range ids {
		if i > 0 {
			list.WriteByte(',')
		}
		list.WriteString(id.String())
	}
	return column + " = ANY(CAST(? AS uuid[]))", "{" + list.String() + "}"
}
