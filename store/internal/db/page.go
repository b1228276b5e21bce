package db

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// Order is the order of a list. Rows without a value in the column come last, in ascending and in descending order. Rows with equal values
// are ordered by id, so that pages neither overlap nor skip rows.
type Order struct {
	Column     string // a key of the list's SortColumns
	Descending bool
}

// direction returns the SQL keyword of the order: DESC or ASC.
func (o Order) direction() string {
	if o.Descending {
		return "DESC"
	}
	return "ASC"
}

// Window selects the rows of a list to return. If After is set, the window begins after that position, otherwise at Offset.
type Window struct {
	Offset int       // number of rows to skip
	Limit  int       // maximum number of rows
	After  *Position // position after which the window begins; nil if the window begins at Offset
}

// Position is a position in an ordered list: directly after the row with this value and id.
type Position struct {
	Null  bool      `json:"n,omitempty"` // the row has no value in the ordering column
	Value string    `json:"v,omitempty"` // the row's value in the ordering column, as text
	ID    uuid.UUID `json:"i"`           // the row's id
}

// ColumnType is the type of a column by which a list can be ordered. Position.Value contains the column's value as text.
type ColumnType int

// The column types.
const (
	IntegerColumn ColumnType = iota
	DateColumn
	TextColumn
	FloatColumn // the text is the number's bits in hexadecimal, because a rounded number would not match the row
)

// parse converts the text of a Position to a value of the column type.
func (t ColumnType) parse(s string) (any, error) {
	switch t {
	case IntegerColumn:
		return strconv.ParseInt(s, 10, 64)
	case DateColumn:
		return ParseDate(s)
	case FloatColumn:
		bits, err := strconv.ParseUint(s, 16, 64)
		return math.Float64frombits(bits), err
	case TextColumn:
	}
	return s, nil
}

// SortColumns is the allow-list of the columns by which a list can be ordered. The keys are the names that callers use. The values come from
// SortBy, SortByNullable or SortByCount, so no text of a caller becomes part of an ORDER BY.
type SortColumns map[string]SortColumn

// SortColumn is a column by which a list can be ordered. Only this package can create one.
type SortColumn struct {
	expression string // SQL, e.g. "videos.created_at"
	id         string // SQL of the id that orders rows with equal values, e.g. "videos.id"
	kind       ColumnType
	nullable   bool // the column can be NULL; rows with NULL come last, in ascending and in descending order
}

// identifier matches the name of a table or column that needs no quotes.
var identifier = regexp.MustCompile(`^[a-z0-9_]+$`)

// sortColumn returns a column of a table. It panics if a name is not valid.
func sortColumn(table, column string, t ColumnType, nullable bool) SortColumn {
	if !identifier.MatchString(table) || !identifier.MatchString(column) {
		panic(fmt.Sprintf("%q.%q is not the name of a column", table, column))
	}
	return SortColumn{expression: table + "." + column, id: table + ".id", kind: t, nullable: nullable}
}

// SortBy returns a SortColumn for a column that is never NULL.
func SortBy(table, column string, t ColumnType) SortColumn {
	return sortColumn(table, column, t, false)
}

// SortByNullable returns a SortColumn for a column that can be NULL. Rows with NULL come last, in ascending and in descending order.
func SortByNullable(table, column string, t ColumnType) SortColumn {
	return sortColumn(table, column, t, true)
}

// SortByCount returns a SortColumn that orders by counted.n, with 0 in place of NULL. The list's query must join a subquery named counted,
// whose column n is a count for each row of the table.
func SortByCount(table string) SortColumn {
	c := sortColumn(table, "id", IntegerColumn, false)
	c.expression = "COALESCE(counted.n, 0)"
	return c
}

// listKey is the position of a row in an ordered list, and the length of the row's texts.
type listKey struct {
	position Position
	text     int64      // number of characters of the row's texts, without its labels
	account  *uuid.UUID // value of ListSpec.Account; nil if it is NULL
}

// keys returns the positions of the rows in the window w of q, at most w.Limit. also are the SQL expressions for listKey.text and
// listKey.account.
//
// The database reads the rows in order from an index on (organisation_id, column DESC NULLS LAST, id DESC), forwards or backwards. Read
// backwards, the index begins with the rows without a value, but a list ends with them. So two statements are used for an ascending order: one
// for the rows with a value, and one for the rows without a value.
func (c SortColumn) keys(q *gorm.DB, also string, o Order, w Window) ([]listKey, error) {
	if !c.nullable {
		return c.read(q, also, o, w, true)
	}
	if o.Descending && w.After == nil {
		return c.read(q, also, o, w, false)
	}
	var found []listKey
	valued, without := q.Where(c.expression+" IS NOT NULL").Session(&gorm.Session{}), w
	if w.After == nil || !w.After.Null {
		var err error
		if found, err = c.read(valued, also, o, w, false); err != nil || len(found) == w.Limit {
			return found, err
		}
		without.After = nil
	}
	if w.After == nil && w.Offset > 0 {
		without.Offset = 0
		if len(found) == 0 { // the window begins after the last row with a value
			var n int64
			if err := valued.Count(&n).Error; err != nil {
				return nil, err
			}
			without.Offset = w.Offset - int(n)
		}
	}
	without.Limit = w.Limit - len(found)
	rest, err := c.read(q.Where(c.expression+" IS NULL"), also, o, without, false)
	return append(found, rest...), err
}

// read runs one statement and returns the positions of its rows. If always is true, the column is never NULL, and the ORDER BY does not
// need NULLS FIRST or NULLS LAST.
func (c SortColumn) read(q *gorm.DB, also string, o Order, w Window, always bool) ([]listKey, error) {
	beyond, nulls := "<", " NULLS LAST"
	if !o.Descending {
		beyond, nulls = ">", " NULLS FIRST"
	}
	if always {
		nulls = ""
	}
	switch {
	case w.After != nil && w.After.Null:
		q = q.Where(fmt.Sprintf("%s %s ?", c.id, beyond), w.After.ID)
	case w.After != nil:
		v, err := c.kind.parse(w.After.Value)
		if err != nil {
			return nil, fmt.Errorf("position: %w", err)
		}
		q = q.Where(fmt.Sprintf("(%s, %s) %s (?, ?)", c.expression, c.id, beyond), v, w.After.ID)
	case w.Offset > 0:
		q = q.Offset(w.Offset)
	}
	rows, err := q.Select(fmt.Sprintf("%s, %s, %s", c.id, c.expression, also)).
		Order(fmt.Sprintf("%s %s%s, %s %[2]s", c.expression, o.direction(), nulls, c.id)).Limit(w.Limit).Rows()
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // ignore the error of Close, because rows.Err reports the errors of the query
	var found []listKey
	for rows.Next() {
		var k listKey
		if err := rows.Scan(&k.position.ID, &k.position, &k.text, &k.account); err != nil {
			return nil, err
		}
		found = append(found, k)
	}
	return found, rows.Err()
}

// Scan implements sql.Scanner: it sets Null and Value from the value of the ordering column.
func (p *Position) Scan(value any) error {
	p.Null, p.Value = false, ""
	switch v := value.(type) {
	case nil:
		p.Null = true
	case int64:
		p.Value = strconv.FormatInt(v, 10)
	case float64:
		p.Value = strconv.FormatUint(math.Float64bits(v), 16) // the exact bits, because a rounded number would not match the row
	case string:
		p.Value = v
	case []byte:
		p.Value = string(v)
	case time.Time:
		p.Value = DateOf(v).String()
	default:
		return fmt.Errorf("a list cannot be ordered by a value of type %T", value)
	}
	return nil
}

// listChunk is the maximum number of rows of a list that one statement reads.
const listChunk = 500

// ListSpec describes how the rows of a list are ordered and read.
type ListSpec[R any] struct {
	// Columns are the columns by which the list can be ordered.
	Columns SortColumns
	// TextLength is a SQL expression for the number of characters of a row's texts, without its labels.
	TextLength string
	// LabelBytes is the number of bytes that the labels of one row take in JSON if the row has all labels of the organisation.
	LabelBytes int64
	// Account is a SQL expression for the id of the account whose collections a row is also in, or NULL.
	Account string
	// MeasureLabels returns the number of bytes that the labels of the given rows take in JSON.
	MeasureLabels func(ctx context.Context, rows []LabelledRow) (int64, error)
	// Total is the number of rows of the whole list.
	Total int64
	// ID returns the id of a row.
	ID func(*R) uuid.UUID
	// Read returns the rows with the given ids in any order. It leaves out rows that do not exist.
	Read func(ctx context.Context, ids []uuid.UUID) ([]R, error)
}

// LabelledRow is a row of a list that can have labels.
type LabelledRow struct {
	ID      uuid.UUID
	Account *uuid.UUID // value of ListSpec.Account; nil if it is NULL
}

// List is a window of an ordered list. It holds only the positions of the rows, and Rows reads the rows in batches. So the window and its
// order are fixed when the List is created, and no database connection is in use while the caller processes a row.
type List[R any] struct {
	Total int64 // number of rows of the whole list

	spec ListSpec[R]
	keys []listKey // positions of the rows of the window
	more bool      // the list has rows after the window
}

// NewList reads the positions of the rows of a window of q in the order o. It returns an error if o.Column is not one of spec.Columns.
func NewList[R any](q *gorm.DB, spec ListSpec[R], o Order, w Window) (*List[R], error) {
	c, ok := spec.Columns[o.Column]
	if !ok {
		return nil, fmt.Errorf("the list cannot be ordered by %q", o.Column)
	}
	limit := w.Limit
	w.Limit++ // one more row shows whether the list has rows after the window
	keys, err := c.keys(q, cmp.Or(spec.TextLength, "0")+", "+cmp.Or(spec.Account, "NULL"), o, w)
	if err != nil {
		return nil, Translate(err)
	}
	l := &List[R]{Total: spec.Total, spec: spec, keys: keys}
	l.Cut(limit)
	return l, nil
}

// Len returns the number of rows of the window.
func (l *List[R]) Len() int { return len(l.keys) }

// Cut shortens the window to its first n rows. It does nothing if the window has n rows or fewer.
func (l *List[R]) Cut(n int) {
	if n < len(l.keys) {
		l.keys, l.more = l.keys[:n], true
	}
}

// Next returns the position of the window's last row, at which the next page begins. It returns nil if the list has no more rows.
func (l *List[R]) Next() *Position {
	if !l.more || len(l.keys) == 0 {
		return nil
	}
	return &l.keys[len(l.keys)-1].position
}

// WorstEscape is the maximum number of bytes that one escaped character takes in JSON: \u and four digits.
const WorstEscape = 6

// MaxTextBytes returns an upper bound of the number of bytes that the texts and labels of all rows of the window take in JSON. If the bound
// with all labels of the organisation is above enough, MaxTextBytes reads which labels the rows have, and returns a lower bound.
func (l *List[R]) MaxTextBytes(ctx context.Context, enough int64) (int64, error) {
	var texts, labels int64
	for _, k := range l.keys {
		texts += WorstEscape * k.text
	}
	if labels = l.spec.LabelBytes * int64(len(l.keys)); texts+labels <= enough || texts > enough || l.spec.MeasureLabels == nil {
		return texts + labels, nil
	}
	labels = 0
	for keys := range slices.Chunk(l.keys, listChunk) {
		rows := make([]LabelledRow, len(keys))
		for i, k := range keys {
			rows[i] = LabelledRow{ID: k.position.ID, Account: k.account}
		}
		n, err := l.spec.MeasureLabels(ctx, rows)
		if err != nil {
			return 0, Translate(err)
		}
		labels += n
	}
	return texts + labels, nil
}

// Rows iterates over the rows of the window in order. It skips rows that were deleted after the List was created. It stops after an error.
func (l *List[R]) Rows(ctx context.Context) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var none R
		for keys := range slices.Chunk(l.keys, listChunk) {
			ids, at := make([]uuid.UUID, len(keys)), make(map[uuid.UUID]int, len(keys))
			for i, k := range keys {
				ids[i], at[k.position.ID] = k.position.ID, i
			}
			rows, err := l.spec.Read(ctx, ids)
			if err != nil {
				yield(none, Translate(err))
				return
			}
			slices.SortFunc(rows, func(a, b R) int { return cmp.Compare(at[l.spec.ID(&a)], at[l.spec.ID(&b)]) })
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// All reads and returns all rows of the window.
func (l *List[R]) All(ctx context.Context) ([]R, error) {
	all := make([]R, 0, len(l.keys))
	for r, err := range l.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// LikePattern returns a pattern for LIKE … ESCAPE '\' that matches the texts that contain s.
func LikePattern(s string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) + "%"
}
