package db

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Order is the order of a list. Rows without a value in the column come last, in ascending and in descending order. Rows with equal values
// are ordered by id, so that each row is on exactly one page.
type Order struct {
	Column     string // name of the column by which the list is ordered; must be a key of the list's SortColumns
	Descending bool
}

// direction returns the SQL keyword of the order: DESC or ASC.
func (o Order) direction() string {
	if o.Descending {
		return "DESC"
	}
	return "ASC"
}

// Window says which rows of an ordered list are returned: a part of the list without gaps. If After is set, the part begins directly after
// that position. Otherwise it begins with the row number Offset, counted from 0.
type Window struct {
	Offset   int       // number of rows to skip
	Limit    int       // maximum number of rows to return
	After    *Position // position after which the window begins; nil if the window begins at Offset
	MaxBytes int64     // maximum number of bytes of texts: when it is exceeded, no further row is returned; 0 if there is no limit
}

// NeedsTotal returns true if Offset is so large that ReadList is faster if the caller sets ListSpec.Total, the number of rows of the list.
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

// parse converts the text in Position.Value to a value with which a statement can compare the column.
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

// SortByCount returns a SortColumn that orders by counted.n, with 0 in place of NULL. The list's query must join a subquery named counted,
// whose column n is a count for each row of the table.
func SortByCount(table string) SortColumn {
	c := sortColumn(table, "id", IntegerColumn, false)
	c.expression = "CAST(COALESCE(counted.n, 0) AS bigint)" // without the cast, PostgreSQL would return the type numeric, because it sums counts to a numeric
	return c
}

// deepOffset is the smallest offset that the function seek replaces by a position. With a smaller offset, it is faster to let the database
// skip the rows than to run a statement that finds the position.
const deepOffset = 200

// reversed returns the opposite order.
func (o Order) reversed() Order {
	o.Descending = !o.Descending
	return o
}

// seek replaces a large offset of a window by the position of the last row before the window. It reads this position from the index alone,
// which is fast. A statement with the offset would read all rows before the window completely.
//
// If the window begins in the second half of the list, seek counts rows from the end of the list. This is correct only if no row was added
// to the list or removed from it since total, the number of rows of q, was read. The function unchanged returns true if that is so. If it
// returns false, or if unchanged is nil, seek counts from the beginning.
func (c SortColumn) seek(ctx context.Context, d *DB, q *gorm.DB, o Order, w Window, total int64, unchanged func(context.Context) (bool, error)) (Window, error) {
	if !w.NeedsTotal() {
		return w, nil
	}
	var before *Position
	read := func(q *gorm.DB, o Order, offset int) error {
		before = nil
		return d.EachRow(ctx, c.window(q, o, Window{Offset: offset}).Select([]string{c.expression, c.id}).Limit(1), func(row *Values) error {
			before = c.position(c.sortKey(row), row.ID(1))
			return nil
		})
	}
	valuesAtWrongEnd := c.nullable && !o.Descending // the index, read in ascending order, begins with the rows whose column is NULL, but the list ends with these rows
	if fromEnd := int(total) - w.Offset; unchanged != nil && fromEnd >= 0 && fromEnd < w.Offset-1 && !valuesAtWrongEnd {
		if err := read(q, o.reversed(), fromEnd); err != nil {
			return w, err
		}
		if same, err := unchanged(ctx); err != nil {
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

// window adds two things to the query q: the ORDER BY, and the condition or OFFSET that leaves out the rows before the window w. It does
// not add a LIMIT.
func (c SortColumn) window(q *gorm.DB, o Order, w Window) *gorm.DB {
	beyond, nulls := "<", " NULLS LAST"
	if !o.Descending {
		beyond, nulls = ">", " NULLS FIRST"
	}
	if !c.nullable {
		nulls = "" // a column that is never NULL needs no NULLS LAST, and with it PostgreSQL would not use the column's index, which was created without NULLS LAST
	}
	switch {
	case w.After != nil && w.After.Null:
		q = q.Where(fmt.Sprintf("%s %s ?", c.id, beyond), w.After.ID)
	case w.After != nil:
		v, err := c.kind.parse(w.After.Value)
		if err != nil {
			_ = q.AddError(fmt.Errorf("position: %w", err)) // GORM returns the added error when the caller runs the query
		}
		q = q.Where(fmt.Sprintf("(%s, %s) %s (?, ?)", c.expression, c.id, beyond), v, w.After.ID)
	case w.Offset > 0:
		q = q.Offset(w.Offset)
	}
	return q.Order(fmt.Sprintf("%s %s%s, %s %[2]s", c.expression, o.direction(), nulls, c.id))
}

// eachPart splits the reading of a window of q into one or two statements and calls the function read for each of them. The parameter limit
// of read is the number of rows that are still missing in the window. The function read returns the number of rows that it has read.
//
// The database reads the rows in order from an index on (organisation_id, column DESC NULLS LAST, id DESC). For an ascending list, it reads
// the index backwards, and so gets the rows without a value first, although the list must end with them. So an ascending list needs two
// statements: one for the rows with a value, and one for the rows without a value. A descending list that begins after a position also
// needs two.
func (c SortColumn) eachPart(q *gorm.DB, o Order, w Window, read func(part *gorm.DB, limit int) (int, error)) error {
	if !c.nullable || o.Descending && w.After == nil {
		_, err := read(c.window(q, o, w), w.Limit)
		return err
	}
	n := 0
	valued, without := q.Where(c.expression+" IS NOT NULL").Session(&gorm.Session{}), w
	if w.After == nil || !w.After.Null {
		var err error
		if n, err = read(c.window(valued, o, w), w.Limit); err != nil || n == w.Limit {
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
	_, err := read(c.window(q.Where(c.expression+" IS NULL"), o, without), w.Limit-n)
	return err
}

// sortKey is the value that a row has in the column by which the list is ordered.
type sortKey struct {
	null   bool
	number int64  // the value as integer: the count, the day, or the bits of the floating-point number
	text   string // the value of a TextColumn
}

// sortKey reads the value of the column by which the list is ordered. The query selects this column first, so its index in the row is 0.
func (c SortColumn) sortKey(row *Values) (k sortKey) {
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
		p.Value = Date(k.number).String() //nolint:gosec // sortKey has made the number from a Date
	case c.kind == FloatColumn:
		p.Value = strconv.FormatUint(uint64(k.number), 16) //nolint:gosec // the bits of the number
	case c.kind == TextColumn:
		p.Value = k.text
	}
	return p
}

// Column is a column that a list reads. Set copies the column's value, which has the index i in row, into the field of r for this column.
type Column[R any] struct {
	Name string // name of the column, such as "title"
	Set  func(r *R, row *Values, i int)
}

// ListSpec describes how the rows of a list are ordered and read.
type ListSpec[R any] struct {
	// Sort are the columns by which the list can be ordered.
	Sort SortColumns
	// Table is the table that has the columns.
	Table string
	// Columns are the columns of Table that are read into a row R.
	Columns []Column[R]
	// ID returns the id of a row.
	ID func(*R) uuid.UUID
	// Total is the number of rows of the whole list, or 0 if it is unknown.
	Total int64
	// Sequence, if set, is the order of all rows of the list. ReadList then takes the ids of the window's rows from Sequence and reads only
	// these rows. It ignores the fields Total, Before and Unchanged.
	Sequence *Sequence
	// Before, if set, is a statement that runs before the first statement of the list and is sent together with it. It must not be set if
	// Window.NeedsTotal returns true.
	Before *Select
	// Expected, if set, returns for how many rows ReadList allocates memory. ReadList calls it after the statement Before has run. If
	// Expected is nil, ReadList uses Total.
	Expected func() int64
	// Unchanged returns true if no row was added to the list or removed from it since Total was read. If Unchanged is nil, pages near the
	// end of a long list take longer to read.
	Unchanged func(ctx context.Context) (bool, error)
	// Complete sets the fields of the rows that are not columns of the table, such as labels. It returns an upper bound of the number of
	// bytes that these fields take in JSON. If all rows together would take more than maxBytes, Complete may stop early, and ReadList drops
	// the rows that are not completed. Complete also returns the number of completed rows, which is at least one. Complete can be nil.
	Complete func(ctx context.Context, rows []R, maxBytes int64) (completed int, bytes int64, err error)
	// Each, if set, is called for each row of the window as soon as the row is read, if Completer returns a function. The rows are then not
	// in List.Rows. A row and its texts are valid only until Each returns. If Each returns ErrEnough, the window ends before this row.
	Each func(row *R) error
	// Completer returns a function that does the same as Complete for a single row, or nil if that is not possible. ReadList calls it after
	// the statement Before has run. It must be set if Each is set.
	Completer func() func(row *R)
}

// List is the result of ReadList: a window of an ordered list. A window is a part of the list without gaps.
type List[R any] struct {
	Total int64 // number of rows of the whole list
	Rows  []R   // rows of the window, in order; nil if the rows were passed to ListSpec.Each
	// TextBytes is the number of bytes of the texts that were read. ExtraBytes is an upper bound of the number of bytes in JSON of the
	// fields that ListSpec.Complete has set.
	TextBytes, ExtraBytes int64

	column SortColumn
	keys   []sortKey // value of the ordering column of each row in Rows
	id     func(*R) uuid.UUID
	more   bool // the list has rows after the window

	// If rows are passed to ListSpec.Each: their number, the row that is passed, and the ordering column and id of the last passed row.
	passed  int
	present R
	lastKey sortKey
	lastID  uuid.UUID
}

// Count returns the number of rows of the window, in Rows or passed to ListSpec.Each.
func (l *List[R]) Count() int { return len(l.Rows) + l.passed }

// ErrEnough is the error that the function for each row returns if no further rows are needed. It is not returned to callers of ReadList.
var ErrEnough = errors.New("enough rows")

// ReadList reads the window w of the rows of the query q, in the order o. It returns an error if o.Column is not a key of spec.Sort. The
// result has fewer than w.Limit rows if the texts of the rows, or the fields that spec.Complete sets, take more than w.MaxBytes. It has at
// least one row, unless the list has no row after the beginning of the window.
func ReadList[R any](ctx context.Context, d *DB, q *gorm.DB, spec ListSpec[R], o Order, w Window) (*List[R], error) {
	c, ok := spec.Sort[o.Column]
	if !ok {
		return nil, fmt.Errorf("the list cannot be ordered by %q", o.Column)
	}
	l := &List[R]{Total: spec.Total, column: c, id: spec.ID}
	if spec.Total > 0 && int64(w.Offset) >= spec.Total {
		return l, nil
	}
	q = q.Session(&gorm.Session{})
	var err error
	if spec.Sequence != nil {
		err = l.readByID(ctx, d, q, spec, w)
	} else {
		err = l.readInOrder(ctx, d, q, spec, o, w)
	}
	if err != nil {
		return nil, Translate(err)
	}
	l.Cut(w.Limit)
	if spec.Complete == nil || len(l.Rows) == 0 {
		return l, nil
	}
	completed, bytes, err := spec.Complete(ctx, l.Rows, w.MaxBytes)
	l.ExtraBytes = bytes
	l.Cut(completed)
	return l, Translate(err)
}

// readInOrder reads the window w of the rows of the query q into l. The database orders the rows: the statement has an ORDER BY for the
// order o.
func (l *List[R]) readInOrder(ctx context.Context, d *DB, q *gorm.DB, spec ListSpec[R], o Order, w Window) error {
	start, err := l.column.seek(ctx, d, q, o, w, spec.Total, spec.Unchanged)
	if err != nil {
		return err
	}
	columns := ColumnNames(spec.Table, spec.Columns)
	begun, complete := false, (func(*R))(nil)
	start.Limit++ // one more row shows whether the list has rows after the window
	err = l.column.eachPart(q, o, start, func(part *gorm.DB, limit int) (int, error) {
		earlier, earlierBytes := l.Count(), l.TextBytes
		rows := Select{Query: selecting(part, l.column.expression+", "+columns).Limit(limit), Each: func(row *Values) error {
			if !begun && spec.Each != nil {
				complete = spec.Completer()
			}
			begun = true
			if complete != nil {
				return l.pass(row, spec, complete, w.Limit)
			}
			if w.MaxBytes > 0 && l.TextBytes > w.MaxBytes {
				l.more = true
				return ErrEnough
			}
			if l.Rows == nil {
				expected := spec.Total
				if spec.Expected != nil {
					expected = spec.Expected()
				}
				expected = min(int64(w.Limit+1), expected)
				l.keys, l.Rows = make([]sortKey, 0, expected), make([]R, 0, expected)
			}
			l.keys, l.Rows = append(l.keys, l.column.sortKey(row)), append(l.Rows, *new(R))
			setColumns(&l.Rows[len(l.Rows)-1], spec.Columns, row, 1)
			l.TextBytes = earlierBytes + row.textBytes
			return nil
		}}
		selects := []Select{rows}
		if spec.Before != nil {
			selects = []Select{*spec.Before, rows}
			spec.Before = nil
		}
		err := d.EachRowOf(ctx, selects...)
		return l.Count() - earlier, err
	})
	if errors.Is(err, ErrEnough) {
		return nil
	}
	return err
}

// pass completes the row that was read and passes it to spec.Each. If the window already has limit rows, it only notes that the list has
// more rows.
func (l *List[R]) pass(row *Values, spec ListSpec[R], complete func(*R), limit int) error {
	if l.passed == limit {
		l.more = true
		return ErrEnough
	}
	row.borrow()
	l.present = *new(R)
	setColumns(&l.present, spec.Columns, row, 1)
	complete(&l.present)
	if err := spec.Each(&l.present); err != nil {
		l.more = errors.Is(err, ErrEnough)
		return err
	}
	l.passed++
	l.lastKey, l.lastID = l.column.sortKey(row), l.id(&l.present)
	l.lastKey.text = strings.Clone(l.lastKey.text) // the text of the row is valid only until the next row is read
	return nil
}

// ReadRows returns the rows of a table that the query q selects. The statements in before run first, and are sent together with q.
func ReadRows[R any](ctx context.Context, d *DB, q *gorm.DB, table string, columns []Column[R], before ...Select) ([]R, error) {
	var rows []R
	err := d.EachRowOf(ctx, append(before, Select{Query: selecting(q, ColumnNames(table, columns)), Each: func(row *Values) error {
		rows = append(rows, *new(R))
		setColumns(&rows[len(rows)-1], columns, row, 0)
		return nil
	}})...)
	return rows, Translate(err)
}

// ColumnNames returns the columns with the name of their table, as one text such as "videos.id, videos.title".
func ColumnNames[R any](table string, columns []Column[R]) string {
	var names strings.Builder
	names.Grow(len(columns) * (len(table) + 24))
	for i, c := range columns {
		if i > 0 {
			names.WriteString(", ")
		}
		names.WriteString(table)
		names.WriteByte('.')
		names.WriteString(c.Name)
	}
	return names.String()
}

// selecting returns the query q with the given SQL text as the list of its columns. The method Select of GORM would take much longer,
// because it searches the text for names of fields.
func selecting(q *gorm.DB, columns string) *gorm.DB {
	return q.Clauses(clause.Select{Expression: clause.Expr{SQL: columns}})
}

// setColumns sets the fields of r to the values of columns in row. The values are consecutive in row, and the parameter first is the index
// of the first of them.
func setColumns[R any](r *R, columns []Column[R], row *Values, first int) {
	for i, c := range columns {
		c.Set(r, row, first+i)
	}
}

// Cut shortens the window to its first n rows. It does nothing if the window has n rows or fewer.
func (l *List[R]) Cut(n int) {
	if n < len(l.Rows) {
		l.Rows, l.more = l.Rows[:n], true
	}
}

// Next returns the position directly after the window's last row, at which the next page begins. It returns nil if the list has no more
// rows.
func (l *List[R]) Next() *Position {
	if l.more && l.passed > 0 {
		return l.column.position(l.lastKey, l.lastID)
	}
	if !l.more || len(l.Rows) == 0 {
		return nil
	}
	last := len(l.Rows) - 1
	return l.column.position(l.keys[last], l.id(&l.Rows[last]))
}

// LikePattern returns a pattern for LIKE … ESCAPE '\' that matches the texts that contain s.
func LikePattern(s string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) + "%"
}
