package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Column is a column that a list reads. The function Set gets a row of the database, and copies the value at the index i to a field of *r.
type Column[R any] struct {
	Name string // name of the column, such as "title"
	Set  func(r *R, row *Values, i int)
}

// ListSpec describes how the rows of a list are ordered and read.
type ListSpec[R any] struct {
	// Sort says by which columns a caller can order the list.
	Sort SortColumns
	// Table is the table that has the columns.
	Table string
	// Columns are the columns of Table that are read into a row R.
	Columns []Column[R]
	// ID returns the id of a row.
	ID func(*R) uuid.UUID
	// Total is the number of rows of the whole list, or 0 if it is unknown.
	Total int64
	// Sequence, if set, is the order of all rows. ReadList then reads the window's rows by their ids. ReadList ignores Before, Expected, Unchanged
	// and Each.
	Sequence *Sequence
	// Before, if set, is a statement that ReadList sends together with its first statement, and that runs
	// first. It must not be set if Window.NeedsTotal returns true.
	Before *Select
	// Expected, if set, returns the expected number of rows, for which ReadList allocates memory.
	// ReadList calls Expected after the statement in Before. The default is Total.
	Expected func() int64
	// Unchanged returns true if no row was added or removed since Total was read. It can be nil, but then the
	// pages near the end of a long list are read more slowly.
	Unchanged func(ctx context.Context) (bool, error)
	// InIndexOrder is true if, in every order that Sort allows, the database can read the rows from an index. See Select.InIndexOrder.
	InIndexOrder bool
	// Complete, if set, fills the fields that are not columns of Table. If these fields take more than maxBytes,
	// it may leave out the last rows, but never the first row.
	Complete func(ctx context.Context, rows []R, maxBytes int64) (completed int, bytes int64, err error)
	// Each, if set, is called once, before the first row and after the statement in Before. It returns a function that gets every row of the window
	// as soon as the row is read, and fills the fields that are not columns of Table. The row and its texts are valid only until this function
	// returns. If Each returns nil, ReadList collects the rows.
	Each func() func(row *R) error
}

// List is the result of ReadList: a window of an ordered list. The rows of a window are consecutive in the list.
type List[R any] struct {
	Total int64 // number of rows of the whole list
	Rows  []R   // rows of the window, in order; nil if the rows were passed to the function of ListSpec.Each
	// Start is the position directly before the first row of the window. It is nil at the beginning of the list,
	// if OFFSET skipped the rows before the window, or if ListSpec.Sequence is set.
	Start *Position
	// TextBytes is the size of all texts that were read. ExtraBytes is an upper bound of the size, as JSON, of
	// the fields that ListSpec.Complete has filled.
	TextBytes, ExtraBytes int64

	column SortColumn
	keys   []sortKey // value of the ordering column of each row in Rows
	id     func(*R) uuid.UUID
	more   bool // the list has rows after the window

	// The other fields are set if the rows are passed to the function of ListSpec.Each.
	passed  int       // number of rows for which the function returned nil
	present R         // the row for which the function is called at present
	lastKey sortKey   // the row with the id lastID has this value in the column that orders the list
	lastID  uuid.UUID // id of the last row for which the function returned nil
}

// Count returns the number of rows in the window. This includes the rows that were passed to the function of ListSpec.Each.
func (l *List[R]) Count() int { return len(l.Rows) + l.passed }

// ErrEnough ends the window before the row for which the function of ListSpec.Each returns this error. ReadList then returns no
// error.
var ErrEnough = errors.New("enough rows")

// ReadList reads the window w of the rows of q, in the order o. The limit w.MaxBytes can make the
// window shorter, but the first row is always read.
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

// readInOrder reads rows of the query q into l. The window w says which rows. The database orders the rows: the statement has an ORDER BY
// for the order o.
func (l *List[R]) readInOrder(ctx context.Context, d *DB, q *gorm.DB, spec ListSpec[R], o Order, w Window) error {
	start, err := l.column.seekPosition(ctx, d, q, o, w, spec.Total, spec.Unchanged)
	if err != nil {
		return err
	}
	l.Start = start.After
	columns := ColumnNames(spec.Table, spec.Columns)
	begun, each := false, (func(*R) error)(nil)
	start.Limit++ // read one row more than the window has, to find out whether the list has rows after the window
	err = l.column.eachPart(q, o, start, func(part *gorm.DB, limit int) (int, error) {
		earlier, earlierBytes := l.Count(), l.TextBytes
		rows := Select{InIndexOrder: spec.InIndexOrder, Query: selectColumns(part, l.column.expression+", "+columns).Limit(limit), Each: func(row *Values) error {
			if !begun && spec.Each != nil {
				// The statement in spec.Before has already run.
				each = spec.Each()
			}
			begun = true
			if each != nil {
				return l.passRow(row, spec.Columns, each, w.Limit)
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
			l.keys, l.Rows = append(l.keys, l.column.readSortKey(row)), append(l.Rows, *new(R))
			setFields(&l.Rows[len(l.Rows)-1], spec.Columns, row, 1)
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

// passRow passes the row that was read to the function each, which ListSpec.Each has returned. If each already got `limit` rows, passRow only sets
// l.more and returns ErrEnough.
func (l *List[R]) passRow(row *Values, columns []Column[R], each func(*R) error, limit int) error {
	if l.passed == limit {
		l.more = true
		return ErrEnough
	}
	row.reuseMemory()
	l.present = *new(R)
	setFields(&l.present, columns, row, 1)
	if err := each(&l.present); err != nil {
		l.more = errors.Is(err, ErrEnough)
		return err
	}
	l.passed++
	l.lastKey, l.lastID = l.column.readSortKey(row), l.id(&l.present)
	l.lastKey.text = strings.Clone(l.lastKey.text) // the text of the row is valid only until the next row is read
	return nil
}

// ReadRows returns the rows of a table that the query q selects. The given statements run before q, and are sent together with it.
func ReadRows[R any](ctx context.Context, d *DB, q *gorm.DB, table string, columns []Column[R], before ...Select) ([]R, error) {
	var rows []R
	err := d.EachRowOf(ctx, append(before, Select{Query: selectColumns(q, ColumnNames(table, columns)), Each: func(row *Values) error {
		rows = append(rows, *new(R))
		setFields(&rows[len(rows)-1], columns, row, 0)
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

// selectColumns returns the query q with the given SQL text as the list of its columns.
func selectColumns(q *gorm.DB, columns string) *gorm.DB {
	// GORM's method Select is not used, because it searches the text for names of fields, which takes much
	// longer.
	return q.Clauses(clause.Select{Expression: clause.Expr{SQL: columns}})
}

// setFields sets the field of r for each of the given columns. It reads the values from `row`: the first value at firstIndex, and the other values
// directly after it.
func setFields[R any](r *R, columns []Column[R], row *Values, firstIndex int) {
	for i, c := range columns {
		c.Set(r, row, firstIndex+i)
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
