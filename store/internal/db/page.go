package db

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// Order is the order of a list. Rows without a value come last in both directions. Rows with equal
// values are ordered by id.
type Order struct {
	Column     string // name of the column by which the list is ordered; must be a key of the list's SortColumns
	Descending bool
}

// sqlDirection returns the SQL keyword of the order: DESC or ASC.
func (o Order) sqlDirection() string {
	if o.Descending {
		return "DESC"
	}
	return "ASC"
}

// Window selects consecutive rows of an ordered list. If After is set, they begin directly after that position. Otherwise they begin with the row
// number Offset, counted from 0.
type Window struct {
	Offset   int       // number of rows to skip
	Limit    int       // maximum number of rows to return
	After    *Position // position after which the window begins; nil if the window begins at Offset
	MaxBytes int64     // maximum number of bytes of texts: when it is exceeded, no further row is returned; 0 if there is no limit
}

// NeedsTotal returns true if Offset is large. The caller should then set ListSpec.Total, the number of rows of the list, because ReadList is faster
// with it.
func (w Window) NeedsTotal() bool { return w.After == nil && w.Offset >= deepOffset }

// Position is a position in an ordered list: directly after the row with this value and id.
type Position struct {
	Null  bool      `json:"n,omitempty"` // the row has no value in the ordering column
	Value string    `json:"v,omitempty"` // the row's value in the ordering column, as text
	ID    uuid.UUID `json:"i"`           // id of the row; it orders rows with equal values
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

// parseValue converts the text in Position.Value to a value with which a statement can compare the column.
func (t ColumnType) parseValue(s string) (any, error) {
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

// SortColumns is the allow-list of the columns by which a list can be ordered. The keys are the
// names that callers use.
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

// sortColumn returns the SortColumn for a column of a table. It panics if the name of the table or column would need quotes in SQL.
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

// SortByCount returns a SortColumn for a number that is not a column of the table. The list must be read with a Sequence of NewCountSequence.
func SortByCount(table string) SortColumn {
	return SortColumn{id: table + ".id", kind: IntegerColumn}
}

// deepOffset is the smallest offset for which seekPosition searches for the position of the window. For
// smaller offsets, skipping the rows before the window is faster.
const deepOffset = 200

// reversed returns the opposite order.
func (o Order) reversed() Order {
	o.Descending = !o.Descending
	return o
}

// seekPosition converts a window with a large offset to a window that begins after a position. The
// database finds this position in an index, which is faster. The function isUnchanged returns true if
// no row was added or removed since total was read. If isUnchanged is nil, total is not used.
func (c SortColumn) seekPosition(ctx context.Context, d *DB, q *gorm.DB, o Order, w Window, total int64, isUnchanged func(context.Context) (bool, error)) (Window, error) {
	if !w.NeedsTotal() {
		return w, nil
	}
	var before *Position
	read := func(q *gorm.DB, o Order, offset int) error {
		before = nil
		return d.EachRow(ctx, c.addWindow(q, o, Window{Offset: offset}).Select([]string{c.expression, c.id}).Limit(1), func(row *Values) error {
			before = c.position(c.readSortKey(row), row.ID(1))
			return nil
		})
	}
	valuesAtWrongEnd := c.nullable && !o.Descending // for an ascending list, the index has the rows with NULL at the beginning, but the list has them at the end
	// In the second half of the list, counting from the end is faster, but needs the present number
	// of rows.
	if fromEnd := int(total) - w.Offset; isUnchanged != nil && fromEnd >= 0 && fromEnd < w.Offset-1 && !valuesAtWrongEnd {
		if err := read(q, o.reversed(), fromEnd); err != nil {
			return w, err
		}
		// If rows were added or removed since `total` was read, the position can be wrong.
		if same, err := isUnchanged(ctx); err != nil {
			return w, err
		} else if same && before != nil {
			return Window{Limit: w.Limit, After: before, MaxBytes: w.MaxBytes}, nil
		}
	}
	if valuesAtWrongEnd {
		q = q.Where(c.expression + " IS NOT NULL")
	}
	if err := read(q, o, w.Offset-1); err != nil {
		return w, err
	}
	if before != nil {
		w.Offset, w.After = 0, before
	}
	return w, nil
}

// addWindow adds the ORDER BY of the list to q, and the condition or OFFSET that skips the rows before the
// window w. It adds no LIMIT.
func (c SortColumn) addWindow(q *gorm.DB, o Order, w Window) *gorm.DB {
	beyond, nulls := "<", " NULLS LAST"
	if !o.Descending {
		beyond, nulls = ">", " NULLS FIRST"
	}
	if !c.nullable {
		nulls = "" // the index of the column was made without a NULLS clause, so it can only serve an ORDER BY without this clause
	}
	switch {
	case w.After != nil && w.After.Null:
		q = q.Where(fmt.Sprintf("%s %s ?", c.id, beyond), w.After.ID)
	case w.After != nil:
		v, err := c.kind.parseValue(w.After.Value)
		if err != nil {
			_ = q.AddError(fmt.Errorf("position: %w", err)) // GORM returns the added error when the caller runs the query
		}
		q = q.Where(fmt.Sprintf("(%s, %s) %s (?, ?)", c.expression, c.id, beyond), v, w.After.ID)
	case w.Offset > 0:
		q = q.Offset(w.Offset)
	}
	return q.Order(fmt.Sprintf("%s %s%s, %s %[2]s", c.expression, o.sqlDirection(), nulls, c.id))
}

// eachPart reads a window of q with one or two statements. For each statement, it calls readPart,
// which returns the number of rows that it has read.
func (c SortColumn) eachPart(q *gorm.DB, o Order, w Window, readPart func(part *gorm.DB, limit int) (int, error)) error {
	if !c.nullable || o.Descending && w.After == nil {
		_, err := readPart(c.addWindow(q, o, w), w.Limit)
		return err
	}
	n := 0
	// The first statement reads only rows without NULL. In ascending order, the index begins with the other
	// rows. In descending order, the condition for w.After excludes them.
	valued, without := q.Where(c.expression+" IS NOT NULL").Session(&gorm.Session{}), w
	if w.After == nil || !w.After.Null {
		var err error
		if n, err = readPart(c.addWindow(valued, o, w), w.Limit); err != nil || n == w.Limit {
			return err
		}
		without.After = nil
	}
	if w.Offset > 0 {
		without.Offset = 0
		if n == 0 { // the window begins after the last row with a value
			var all int64
			if err := valued.Count(&all).Error; err != nil {
				return err
			}
			without.Offset = w.Offset - int(all)
		}
	}
	// The last statement reads the rows with NULL, which come last in every list.
	_, err := readPart(c.addWindow(q.Where(c.expression+" IS NULL"), o, without), w.Limit-n)
	return err
}

// sortKey is the value that a row has in the column by which the list is ordered.
type sortKey struct {
	null   bool
	number int64  // the value as integer: the count, the day, or the bits of the floating-point number
	text   string // the value of a TextColumn
}

// readSortKey reads the value of the column by which the list is ordered. The query selects this column first, so its index in the row is 0.
func (c SortColumn) readSortKey(row *Values) (k sortKey) {
	var known bool
	switch c.kind {
	case IntegerColumn:
		k.number, known = row.Int(0)
	case DateColumn:
		var d Date
		d, known = row.Date(0)
		k.number = int64(d)
	case FloatColumn:
		var f float64
		f, known = row.Float(0)
		k.number = int64(math.Float64bits(f)) //nolint:gosec // the bits of the number
	case TextColumn:
		k.text, known = row.Text(0)
	}
	k.null = !known
	return k
}

// position returns the position directly after the row with this key and id.
func (c SortColumn) position(k sortKey, id uuid.UUID) *Position {
	p := &Position{Null: k.null, ID: id}
	switch {
	case k.null:
	case c.kind == IntegerColumn:
		p.Value = strconv.FormatInt(k.number, 10)
	case c.kind == DateColumn:
		p.Value = Date(k.number).String() //nolint:gosec // readSortKey has made the number from a Date
	case c.kind == FloatColumn:
		p.Value = strconv.FormatUint(uint64(k.number), 16) //nolint:gosec // the bits of the number
	case c.kind == TextColumn:
		p.Value = k.text
	}
	return p
}
