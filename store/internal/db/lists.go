package db

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm"
)

// The functions of this file pass lists of rows to SQL statements. The text of such a statement is the same for every number of rows, so the engine
// parses it once. The limit on the number of parameters does not limit the number of rows.
//
// A statement about rows of several organisations gets the keys of these rows as a list. The statement uses the list like a table, in a
// join. Each key contains the organisation, so the statement cannot read or change a row of any other organisation.
//
// On Citus, the same statement runs once for each organisation. The reason is a rule of Citus: it sends a statement to a single shard only
// if the statement compares organisation_id of every table with a parameter.

// OrgRows is a list of rows, each of which belongs to an organisation. A statement about distributed tables can read the list. In the text
// of such a statement, {org} stands for the organisation to which a row of the list belongs, as in "WHERE videos.organisation_id = {org}".
// Every query and subquery must compare organisation_id of each of its distributed tables with {org}.
type OrgRows struct {
	Name    string   // name of the list in the statement
	Columns []string // name and type of each column; the first column is "organisation_id uuid"
	Rows    [][]any
}

// orgMark is a placeholder in the text of a statement: see OrgRows. Before the statement runs, orgMark is replaced by listPart.org.
const orgMark = "{org}"

// Keys returns a list for a SQL statement. In the statement, the list has the name "wanted". The list has a row for each key, with the
// columns organisation_id and id.
func Keys(keys []RowKey) OrgRows {
	rows := make([][]any, len(keys))
	for i, k := range keys {
		rows[i] = []any{k.Org, k.ID}
	}
	return OrgRows{"wanted", []string{"organisation_id uuid", "id uuid"}, rows}
}

// Orgs returns a list that is named "wanted" in statements. Its only column is organisation_id, and it has a row for each organisation.
func Orgs(orgs []uuid.UUID) OrgRows {
	rows := make([][]any, len(orgs))
	for i, org := range orgs {
		rows[i] = []any{org}
	}
	return OrgRows{"wanted", []string{"organisation_id uuid"}, rows}
}

// WithClause returns the clause "WITH name(…) AS (…)" for the list, and the parameters of the clause. On Citus, a statement with this clause must not
// join the list with a distributed table.
func (l OrgRows) WithClause(tx *gorm.DB) (statement string, args []any) {
	return WithRows(tx, l.Name, l.Columns, l.Rows)
}

// Exec runs a statement that can read the list l as a table with the name l.Name. The args are for the placeholders in the statement.
func (l OrgRows) Exec(tx *gorm.DB, statement string, args ...any) error {
	return RunWrites(tx, l.StatementsForExec(tx, statement, args...)...)
}

// StatementsForExec returns the statements that Exec runs. On Citus, this is one statement for each organisation in the list. On other engines, it is
// a single statement.
func (l OrgRows) StatementsForExec(tx *gorm.DB, statement string, args ...any) (writes []Write) {
	for _, part := range l.splitForEngine(tx) {
		writes = append(writes, part.completeStatement(tx, statement, args))
	}
	return writes
}

// FindRows runs the query in `statement` and returns the rows of the result. In the query, l.Name is the name of a table with the rows of l. The
// args are for the placeholders in the query. An ORDER BY must begin with organisation_id, because on Citus the query runs once for each
// organisation.
func FindRows[T any](tx *gorm.DB, l OrgRows, statement string, args ...any) (found []T, err error) {
	for _, w := range l.StatementsForExec(tx, statement, args...) {
		var rows []T
		if err := tx.Raw(w.Statement, w.Args...).Find(&rows).Error; err != nil { // Scan would format all parameters for the log, which takes long
			return nil, err
		}
		found = append(found, rows...)
	}
	return found, nil
}

// FindColumns runs the query in `statement` and returns the rows of the result. In the query, l.Name is the name of a table with the rows of l.
// The SELECT must name the given columns in the same order. FindColumns is faster than FindRows for long results, because it uses no reflection.
func FindColumns[R any](tx *gorm.DB, l OrgRows, columns []Column[R], statement string, args ...any) (found []R, err error) {
	for _, w := range l.StatementsForExec(tx, statement, args...) {
		if found, err = AppendRows(tx, found, columns, w.Statement, w.Args...); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// AppendRows runs a query in a transaction, appends the rows of its result to the slice rows, and returns the extended slice. The SELECT of the
// query must name the given columns in the same order.
func AppendRows[R any](tx *gorm.DB, rows []R, columns []Column[R], statement string, args ...any) ([]R, error) {
	query, values, err := Statement(tx.Raw(statement, args...))
	if err != nil {
		return rows, err
	}
	err = eachPlainRow(tx.Statement.Context, tx.Statement.ConnPool, query, values, func(row *Values) error {
		var r R
		setFields(&r, columns, row, 0)
		rows = append(rows, r)
		return nil
	})
	return rows, err
}

// listPart is a list of rows for which a statement runs once. The field org is the SQL text that replaces {org} in the statement. On Citus, a
// listPart has the rows of one organisation, and org is a placeholder for orgArg. On other engines, it has all rows, and org is the name of a column.
type listPart struct {
	OrgRows
	org    string
	orgArg []any
}

// splitForEngine divides the list into parts. A statement runs once for each part. On Citus, there is one part for each organisation, in the order of
// the organisations' ids. On other engines, the whole list is the only part.
func (l OrgRows) splitForEngine(tx *gorm.DB) (parts []listPart) {
	if !IsSharded(tx) {
		return []listPart{{OrgRows: l, org: l.Name + ".organisation_id"}}
	}
	for _, rows := range l.splitByOrg() {
		parts = append(parts, listPart{rows, "?", rows.Rows[0][:1]})
	}
	return parts
}

// splitByOrg divides the list into one list for each organisation. The result is ordered by the ids of the organisations.
func (l OrgRows) splitByOrg() []OrgRows {
	rows := map[uuid.UUID][][]any{}
	for _, row := range l.Rows {
		org := row[0].(uuid.UUID)
		rows[org] = append(rows[org], row)
	}
	parts := make([]OrgRows, 0, len(rows))
	for _, org := range Distinct(slices.Collect(maps.Keys(rows))) {
		parts = append(parts, OrgRows{l.Name, l.Columns, rows[org]})
	}
	return parts
}

// completeStatement returns the given statement, preceded by a WITH clause with the rows of the part. It replaces each {org} in the statement by
// p.org.
func (p listPart) completeStatement(tx *gorm.DB, text string, args []any) Write {
	list, all := p.WithClause(tx)
	w := Write{list, all}
	for i, piece := range strings.Split(text, orgMark) {
		if i > 0 {
			w.Statement += p.org
			w.Args = append(w.Args, p.orgArg...)
		}
		n := strings.Count(piece, "?")
		w.Statement += piece
		w.Args = append(w.Args, args[:n]...)
		args = args[n:]
	}
	return w
}

// WithRows returns the SQL text "WITH name(…) AS (…)" for a list of rows, and the parameters of that text. Each column is a name and a type,
// such as "day date". Read the result with Find of GORM: Scan would format all parameters for the log, which is slow.
func WithRows(tx *gorm.DB, name string, columns []string, rows [][]any) (statement string, args []any) {
	names, types := splitColumns(columns)
	var query string
	switch {
	case tx.Name() == "sqlite":
		query, args = jsonQuery(types, rows)
	case IsSharded(tx):
		query, args = arraysQuery("CAST(? AS %s[])", types, rows) // in some statements, Citus refuses a subquery as the argument of unnest
	default:
		query, args = arraysQuery("(SELECT CAST(? AS %s[]))", types, rows)
	}
	return "WITH " + name + "(" + strings.Join(names, ", ") + ") AS " + query + "\n", args
}

// splitColumns splits columns such as "day date" into names and types.
func splitColumns(columns []string) (names, types []string) {
	names, types = make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], types[i], _ = strings.Cut(c, " ")
	}
	return names, types
}

// Insert inserts the given rows into a table, in the given order. Each column is a name and a type, such as "day date". The argument onConflict is
// the clause ON CONFLICT of the statement, or "". On Citus, the rows of a distributed table are first sorted by organisation id.
func Insert(tx *gorm.DB, table string, columns []string, rows [][]any, onConflict string) error {
	return RunWrites(tx, StatementsForInsert(tx, table, columns, rows, onConflict)...)
}

// InsertReturning inserts rows like Insert. The argument onConflict ends with a RETURNING clause. InsertReturning returns the rows that
// this clause selects.
func InsertReturning[T any](tx *gorm.DB, table string, columns []string, rows [][]any, onConflict string) (returned []T, err error) {
	for _, w := range StatementsForInsert(tx, table, columns, rows, onConflict) {
		var some []T
		if err := tx.Raw(w.Statement, w.Args...).Find(&some).Error; err != nil {
			return nil, err
		}
		returned = append(returned, some...)
	}
	return returned, nil
}

// StatementsForInsert returns the statements that Insert runs. Usually, this is one INSERT statement, which selects the rows from a list. For a
// distributed table on Citus, each organisation gets its own INSERT statements with VALUES, because Citus would first store a list as a
// temporary result.
func StatementsForInsert(tx *gorm.DB, table string, columns []string, rows [][]any, onConflict string) (writes []Write) {
	names, _ := splitColumns(columns)
	into := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") "
	if !IsSharded(tx) || Tables[table].Class != Distributed {
		list, args := WithRows(tx, "added", columns, rows)
		// Without the WHERE, SQLite would read the ON of ON CONFLICT as the condition of a join.
		return []Write{{list + into + "SELECT " + strings.Join(names, ", ") + " FROM added WHERE true " + onConflict, args}}
	}
	row := "(?" + strings.Repeat(", ?", len(columns)-1) + ")"
	for _, part := range (OrgRows{"added", columns, rows}).splitByOrg() {
		for some := range slices.Chunk(part.Rows, InsertChunk) {
			args := make([]any, 0, len(some)*len(columns))
			for _, values := range some {
				args = append(args, values...)
			}
			writes = append(writes, Write{into + "VALUES " + row + strings.Repeat(", "+row, len(some)-1) + " " + onConflict, args})
		}
	}
	return writes
}

// ColumnAssignments returns the SQL text after SET in an UPDATE statement. The statement reads a list of rows like a table, and copies the
// given columns from this list. For a list named "u", the text is for example "a = u.a, b = u.b". Each column is a name and a type, such as
// "day date".
func ColumnAssignments(listName string, columns []string) string {
	names, _ := splitColumns(columns)
	for i, n := range names {
		names[i] = n + " = " + listName + "." + n
	}
	return strings.Join(names, ", ")
}

// arraysQuery returns a PostgreSQL query whose result is the given rows. The query has one parameter for each column: an array of the column's
// values. The argument arraySQL is the SQL text of an array, with %s in place of the element type.
//
// If arraySQL is a subquery, PostgreSQL does not know how long the arrays are, and assumes that they are short. It then looks up each row in an
// index of the joined table, and keeps the order of the rows. Without the subquery, PostgreSQL would read the whole joined table if the arrays
// are long.
func arraysQuery(arraySQL string, types []string, rows [][]any) (query string, args []any) {
	arrays := make([]string, len(types))
	for i, t := range types {
		arrays[i] = fmt.Sprintf(arraySQL, t)
		args = append(args, array{len(rows), func(row int) any { return toBinary(rows[row][i]) }})
	}
	return "(SELECT * FROM unnest(" + strings.Join(arrays, ", ") + "))", args
}

// array is an array parameter of PostgreSQL. It implements pgtype.ArrayGetter.
type array struct {
	length int
	at     func(i int) any // function that returns the value with the index i, in a type that pgx sends in binary form
}

// Dimensions implements pgtype.ArrayGetter.
func (a array) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(a.length), LowerBound: 1}} //nolint:gosec // a list with more rows does not fit into memory
}

// Index implements pgtype.ArrayGetter.
func (a array) Index(i int) any { return a.at(i) }

// MarshalJSON implements json.Marshaler. Arrays with equal values have the same JSON, so callers can compare the arguments of two
// statements by their JSON.
func (a array) MarshalJSON() ([]byte, error) {
	values := make([]any, a.length)
	for i := range values {
		values[i] = a.at(i)
	}
	return json.Marshal(values)
}

// IndexType implements pgtype.ArrayGetter. It returns nil, because arrays for different columns have values of different types.
func (a array) IndexType() any { return nil }

// jsonQuery returns a SQLite query whose result is the given rows. Its only parameter is a JSON text with all rows. The query is marked as
// MATERIALIZED, because SQLite would otherwise parse the JSON again for each row of a joined table.
func jsonQuery(types []string, rows [][]any) (query string, args []any) {
	values := make([]string, len(types))
	for i, t := range types {
		if t == "uuid" || t == "date" {
			t = "text"
		}
		values[i] = "CAST(value ->> " + strconv.Itoa(i) + " AS " + t + ")"
	}
	return "MATERIALIZED (SELECT " + strings.Join(values, ", ") + " FROM json_each(?))", []any{jsonRows{rows}}
}

// jsonRows is a parameter of a statement. Its value is a JSON array that has one inner array for each row.
type jsonRows struct{ rows [][]any }

// Value implements driver.Valuer. It returns the JSON text.
func (j jsonRows) Value() (driver.Value, error) {
	converted := make([][]any, len(j.rows))
	for i, row := range j.rows {
		converted[i] = make([]any, len(row))
		for c, v := range row {
			switch v := v.(type) {
			case nil, string, int64, bool:
				converted[i][c] = v
				continue
			case *int64:
				if v != nil { // a nil pointer becomes null in the JSON text
					converted[i][c] = *v
				}
				continue
			}
			var err error
			if converted[i][c], err = driver.DefaultParameterConverter.ConvertValue(v); err != nil {
				return nil, err
			}
		}
	}
	text, err := json.Marshal(converted)
	return string(text), err
}

// AnyOf returns a SQL condition and its argument. The condition is true if the column has one of the given ids. The placeholder, such as "?" or
// "@ids", stands for the argument. The handle q says which engine the statement is for.
func AnyOf(q *gorm.DB, column, placeholder string, ids []uuid.UUID) (condition string, arg any) {
	if q.Name() == "sqlite" {
		return column + " IN " + placeholder, ids
	}
	values := make([]pgtype.UUID, len(ids)) // use pgtype.UUID, because pgx would convert each uuid.UUID to a text and back
	for i, id := range ids {
		values[i] = pgtype.UUID{Bytes: id, Valid: true}
	}
	return column + " = ANY(CAST(" + placeholder + " AS uuid[]))", array{len(ids), func(i int) any { return &values[i] }}
}

// toBinary converts a value to a type that pgx sends to PostgreSQL in binary form. Arrays need values in this form, and a COPY with values in
// text form takes several times as long.
func toBinary(v any) any {
	switch v := v.(type) {
	case nil, string, int64, float64, bool, uuid.UUID:
		return v
	case Date:
		return v.Time()
	case Instant:
		return int64(v)
	case *string:
		return toOptionalBinary(v)
	case *int64:
		return toOptionalBinary(v)
	case *float64:
		return toOptionalBinary(v)
	case *uuid.UUID:
		return toOptionalBinary(v)
	case *Date:
		return toOptionalBinary(v)
	case *Instant:
		return toOptionalBinary(v)
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer:
		if r.IsNil() {
			return nil
		}
		return toBinary(r.Elem().Interface())
	case reflect.String:
		return r.String()
	case reflect.Int, reflect.Int32, reflect.Int64:
		return r.Int()
	default:
		return v
	}
}

// toOptionalBinary converts *p with toBinary. It returns nil if p is nil.
func toOptionalBinary[T any](p *T) any {
	if p == nil {
		return nil
	}
	return toBinary(*p)
}
