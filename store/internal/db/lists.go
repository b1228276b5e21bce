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

// These functions pass lists of rows to SQL statements. A statement has the same text for any list
// length, so the engine parses the text only once.

// OrgRows is a list of rows that is passed to a statement about distributed tables. Each row belongs to an
// organisation, for which {org} stands in the text of the statement.
type OrgRows struct {
	Name    string   // name of the list in the statement
	Columns []string // name and type of each column; the first column is "organisation_id uuid"
	Rows    [][]any
}

// orgMark is a placeholder in the statements of an OrgRows. It stands for the organisation of a row. Every
// query and subquery must compare organisation_id of each distributed table with it.
const orgMark = "{org}"

// Keys returns a list that is named "wanted" in statements. Its columns are organisation_id and id,
// and it has a row for each key.
func Keys(keys []RowKey) OrgRows {
	rows := make([][]any, len(keys))
	for i, k := range keys {
		rows[i] = []any{k.Org, k.ID}
	}
	// A statement that joins both columns cannot read or change rows of any other organisation.
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

// WithClause returns a WITH clause and its parameters. On Citus, a statement with this clause must not join a list
// of several organisations with a distributed table: use Exec, FindRows or FindColumns instead.
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

// FindRows returns the result of a query that can read the list l as a table. An ORDER BY must
// begin with organisation_id.
func FindRows[T any](tx *gorm.DB, l OrgRows, statement string, args ...any) (found []T, err error) {
	// On Citus, the loop runs the query once for each organisation.
	for _, w := range l.StatementsForExec(tx, statement, args...) {
		var rows []T
		if err := tx.Raw(w.Statement, w.Args...).Find(&rows).Error; err != nil { // Scan would format all parameters for the log, which takes long
			return nil, err
		}
		found = append(found, rows...)
	}
	return found, nil
}

// FindColumns works like FindRows, but without reflection, which is faster for long results. The
// SELECT must name the given columns in the same order.
func FindColumns[R any](tx *gorm.DB, l OrgRows, columns []Column[R], statement string, args ...any) (found []R, err error) {
	for _, w := range l.StatementsForExec(tx, statement, args...) {
		if found, err = AppendRows(tx, found, columns, w.Statement, w.Args...); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// AppendRows runs a query in a transaction and appends the result to `rows`. The SELECT must name
// the given columns in the same order.
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

// listPart is a part of a list. A statement runs once for each part.
type listPart struct {
	OrgRows
	org    string // SQL text that replaces {org}: a placeholder on Citus, the name of a column on other engines
	orgArg []any  // argument for the placeholder `org`; empty on other engines than Citus
}

// splitForEngine divides the list into parts. On Citus, each organisation has its own part. On
// other engines, the whole list is the only part.
func (l OrgRows) splitForEngine(tx *gorm.DB) (parts []listPart) {
	if !IsSharded(tx) {
		return []listPart{{OrgRows: l, org: l.Name + ".organisation_id"}}
	}
	// Citus sends a statement to a single shard only if each table's organisation_id is compared
	// with a parameter.
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

// completeStatement returns the given statement, preceded by a WITH clause with the rows of p. It replaces each
// {org} in the statement by p.org.
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

// WithRows returns a WITH clause for a list of rows, and the clause's parameters. Each column is a
// name and a type, such as "day date". Read the result with Find, not with Scan.
func WithRows(tx *gorm.DB, name string, columns []string, rows [][]any) (statement string, args []any) {
	names, types := splitColumns(columns)
	var query string
	switch {
	case tx.Name() == "sqlite":
		query, args = jsonQuery(types, rows)
	case IsSharded(tx):
		query, args = arraysQuery("CAST(? AS %s[])", types, rows) // in some statements, Citus refuses a subquery as the argument of unnest
	default:
		// The subquery hides the length of the arrays from PostgreSQL. For long arrays, PostgreSQL
		// would otherwise read the whole joined table instead of its index.
		query, args = arraysQuery("(SELECT CAST(? AS %s[]))", types, rows)
	}
	// Read the statement's result with Find of GORM: Scan would format all parameters for the log.
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

// Insert inserts rows in the given order. On Citus, it first sorts rows of distributed tables by
// organisation id. The argument onConflict can be empty.
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

// StatementsForInsert returns the statements that Insert runs. Usually, this is one INSERT. For a
// distributed table on Citus, each organisation gets its own INSERT statements.
func StatementsForInsert(tx *gorm.DB, table string, columns []string, rows [][]any, onConflict string) (writes []Write) {
	// Each column is a name and a type, as in WithRows.
	names, _ := splitColumns(columns)
	into := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") "
	if !IsSharded(tx) || Tables[table].Class != Distributed {
		list, args := WithRows(tx, "added", columns, rows)
		// Without the WHERE, SQLite would read the ON of ON CONFLICT as the condition of a join.
		return []Write{{list + into + "SELECT " + strings.Join(names, ", ") + " FROM added WHERE true " + onConflict, args}}
	}
	// The statements use VALUES, because Citus would first store a list as a temporary result.
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

// ColumnAssignments returns the text after SET in an UPDATE statement. The text copies columns from
// a list, as in "a = u.a, b = u.b".
func ColumnAssignments(listName string, columns []string) string {
	names, _ := splitColumns(columns)
	for i, n := range names {
		names[i] = n + " = " + listName + "." + n
	}
	return strings.Join(names, ", ")
}

// arraysQuery returns a PostgreSQL query whose result is the given rows. Each column has one array
// parameter. In arraySQL, %s stands for the element type.
func arraysQuery(arraySQL string, types []string, rows [][]any) (query string, args []any) {
	arrays := make([]string, len(types))
	for i, t := range types {
		arrays[i] = fmt.Sprintf(arraySQL, t)
		args = append(args, array{len(rows), func(row int) any { return toBinary(rows[row][i]) }})
	}
	// PostgreSQL keeps the order of the rows if it looks up each row in a joined table's index.
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

// IndexType implements pgtype.ArrayGetter. It returns nil, which means that the type of the values is not
// fixed.
func (a array) IndexType() any { return nil }

// jsonQuery returns a SQLite query whose result is the given rows. Its only parameter is a JSON
// text with all rows.
func jsonQuery(types []string, rows [][]any) (query string, args []any) {
	values := make([]string, len(types))
	for i, t := range types {
		if t == "uuid" || t == "date" {
			t = "text"
		}
		values[i] = "CAST(value ->> " + strconv.Itoa(i) + " AS " + t + ")"
	}
	// Without MATERIALIZED, SQLite would parse the JSON again for each row of a joined table.
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

// AnyOf returns a SQL condition that is true if the column has one of the ids. The placeholder,
// such as "@ids", stands for the argument.
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

// toBinary converts a value to a type that pgx sends to PostgreSQL in binary form. Arrays need this
// form, and COPY is several times faster with it.
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
