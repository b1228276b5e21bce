package db

import (
	"database/sql/driver"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm"
)

// This file passes lists of rows to statements. The text of such a statement is the same for every number of rows, so the engine parses it
// once, and the number of rows is not limited by the number of parameters.
//
// A statement about rows of several organisations gets the rows' keys as a list and joins the list. Each key contains the organisation. So the
// statement cannot read or change a row of any other organisation.

// WithRows returns the SQL text "WITH name(…) AS (…)" for a list of rows, and the parameters of that text. Each column is a name and a
// type, such as "day date". Read the rows of such a query with Find of GORM and not with Scan, which formats all parameters for the log.
func WithRows(tx *gorm.DB, name string, columns []string, rows [][]any) (statement string, args []any) {
	names, types := splitColumns(columns)
	list := arraysQuery
	if tx.Name() == "sqlite" {
		list = jsonQuery
	}
	query, args := list(types, rows)
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

// InsertList returns a statement that inserts rows into a table in the order of rows, and the parameters of the statement. Each column is a
// name and a type, such as "day date". end is the end of the statement: ON CONFLICT, RETURNING, or both.
func InsertList(tx *gorm.DB, table string, columns []string, rows [][]any, end string) (statement string, args []any) {
	list, args := WithRows(tx, "added", columns, rows)
	names, _ := splitColumns(columns)
	into := strings.Join(names, ", ")
	// Without the WHERE, SQLite would read the ON of the conflict as the condition of a join.
	return list + "INSERT INTO " + table + " (" + into + ") SELECT " + into + " FROM added WHERE true " + end, args
}

// UpdateFrom returns the assignments of an UPDATE that sets columns to the values of a list, such as "a = u.a, b = u.b" for the list u. The
// parameter from is the name of the list. Each column is a name and a type.
func UpdateFrom(from string, columns []string) string {
	names, _ := splitColumns(columns)
	for i, n := range names {
		names[i] = n + " = " + from + "." + n
	}
	return strings.Join(names, ", ")
}

// arraysQuery returns a query of PostgreSQL for the values of rows. It has one parameter for each column: an array of the column's values.
//
// Each array is in a subquery, so that the planner does not know its length and assumes a short list. The planner then joins the list with
// a table by an index of the table, and keeps the order of the list. If the planner knew that a list is long, it would read and hash the
// rows of all organisations in the table.
func arraysQuery(types []string, rows [][]any) (query string, args []any) {
	arrays := make([]string, len(types))
	for i, t := range types {
		arrays[i] = "(SELECT CAST(? AS " + t + "[]))"
		args = append(args, array{rows, i})
	}
	return "(SELECT * FROM unnest(" + strings.Join(arrays, ", ") + "))", args
}

// array is the array of the values of one column of rows. It implements pgtype.ArrayGetter.
type array struct {
	rows   [][]any
	column int
}

// Dimensions implements pgtype.ArrayGetter.
func (a array) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(len(a.rows)), LowerBound: 1}} //nolint:gosec // a list with more rows does not fit into memory
}

// Index implements pgtype.ArrayGetter.
func (a array) Index(i int) any { return binary(a.rows[i][a.column]) }

// IndexType implements pgtype.ArrayGetter. The values have different types, so it returns nil.
func (a array) IndexType() any { return nil }

// jsonQuery returns a query of SQLite for the values of rows. It has one parameter: all rows as JSON. The query is materialized, because
// SQLite would otherwise read the JSON again for each row of a joined table.
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

// jsonRows are rows in the form of a JSON array of arrays.
type jsonRows struct{ rows [][]any }

// Value implements driver.Valuer.
func (j jsonRows) Value() (driver.Value, error) {
	converted := make([][]any, len(j.rows))
	for i, row := range j.rows {
		converted[i] = make([]any, len(row))
		for c, v := range row {
			var err error
			if converted[i][c], err = driver.DefaultParameterConverter.ConvertValue(v); err != nil {
				return nil, err
			}
		}
	}
	text, err := json.Marshal(converted)
	return string(text), err
}

// WithKeys returns the SQL text WITH wanted(organisation_id, id) AS (…) for keys, and the parameters of that text.
func WithKeys(tx *gorm.DB, keys []RowKey) (statement string, args []any) {
	rows := make([][]any, len(keys))
	for i, k := range keys {
		rows[i] = []any{k.Org, k.ID}
	}
	return WithRows(tx, "wanted", []string{"organisation_id uuid", "id uuid"}, rows)
}

// WithOrgs returns the SQL text WITH wanted(organisation_id) AS (…) for organisations, and the parameters of that text.
func WithOrgs(tx *gorm.DB, orgs []uuid.UUID) (statement string, args []any) {
	rows := make([][]any, len(orgs))
	for i, org := range orgs {
		rows[i] = []any{org}
	}
	return WithRows(tx, "wanted", []string{"organisation_id uuid"}, rows)
}

// binary converts a value of the store's own types to a type that pgx sends in binary form. COPY of text values takes several times as long,
// and an array needs values in binary form.
func binary(v any) any {
	switch v := v.(type) {
	case nil, string, int64, float64, bool, uuid.UUID:
		return v
	case Date:
		return v.Time()
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer:
		if r.IsNil() {
			return nil
		}
		return binary(r.Elem().Interface())
	case reflect.String:
		return r.String()
	case reflect.Int, reflect.Int32, reflect.Int64:
		return r.Int()
	default:
		return v
	}
}
