package db

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// Sequence keeps the order of a list in memory: each row's id and sort key. ReadList then reads
// only the rows of a page.
type Sequence struct {
	column SortColumn
	order  Order
	rows   []sequenceRow
}

// sequenceRow is a row of a Sequence.
type sequenceRow struct {
	key sortKey // the row's value in the column by which the list is ordered
	id  uuid.UUID
}

// ErrTooManyRows reports that a list has too many rows for a Sequence.
var ErrTooManyRows = errors.New("the list has too many rows to keep their order in memory")

// ReadSequence returns the order of all rows that the query q selects. It returns ErrTooManyRows if there are more than limit rows.
func ReadSequence(ctx context.Context, d *DB, q *gorm.DB, sort SortColumns, o Order, limit int) (*Sequence, error) {
	c, ok := sort[o.Column]
	if !ok {
		return nil, fmt.Errorf("the list cannot be ordered by %q", o.Column)
	}
	s := &Sequence{column: c, order: o}
	// The database does not sort the rows, so that it can stop early if there are too many rows. The rows are sorted below.
	err := d.EachRow(ctx, q.Select(c.expression+", "+c.id).Limit(limit+1), func(row *Values) error {
		if len(s.rows) == limit {
			return ErrTooManyRows
		}
		s.rows = append(s.rows, sequenceRow{c.readSortKey(row), row.ID(1)})
		return nil
	})
	if err != nil {
		return nil, Translate(err)
	}
	s.rows = slices.Clip(s.rows)
	slices.SortFunc(s.rows, s.compareRows)
	return s, nil
}

// NewCountSequence returns the rows with the given ids in the order o. They are ordered by their number in counts, which is not a column of the
// database. A row that is not in counts has the number 0. sort[o.Column] must come from SortByCount.
func NewCountSequence(sort SortColumns, o Order, ids []uuid.UUID, counts map[uuid.UUID]int64) *Sequence {
	s := &Sequence{column: sort[o.Column], order: o, rows: make([]sequenceRow, len(ids))}
	for i, id := range ids {
		s.rows[i] = sequenceRow{sortKey{number: counts[id]}, id}
	}
	slices.SortFunc(s.rows, s.compareRows)
	return s
}

// Len returns the number of rows of the list. It returns 0 if s is nil.
func (s *Sequence) Len() int64 {
	if s == nil {
		return 0
	}
	return int64(len(s.rows))
}

// compareRows compares two rows by the order of the list. A list that the database sorts must have
// the same order: see SortColumn.addWindow.
func (s *Sequence) compareRows(a, b sequenceRow) int {
	if a.key.null != b.key.null {
		if a.key.null {
			return 1
		}
		return -1
	}
	var n int
	switch s.column.kind {
	case IntegerColumn, DateColumn:
		n = cmp.Compare(a.key.number, b.key.number)
	case FloatColumn:
		n = cmp.Compare(a.key.floatValue(), b.key.floatValue())
	case TextColumn:
		n = strings.Compare(a.key.text, b.key.text)
	}
	if n = cmp.Or(n, bytes.Compare(a.id[:], b.id[:])); s.order.Descending {
		return -n
	}
	return n
}

// floatValue returns the floating-point number whose bits are in k.number. It must be called only for the key of a FloatColumn.
func (k sortKey) floatValue() float64 {
	return math.Float64frombits(uint64(k.number)) //nolint:gosec // the bits of the number
}

// rowsIn returns the rows in the window w, and whether the list has rows after the window.
func (s *Sequence) rowsIn(w Window) (rows []sequenceRow, more bool, err error) {
	from := min(w.Offset, len(s.rows))
	if w.After != nil {
		key, err := s.column.sortKeyOf(*w.After)
		if err != nil {
			return nil, false, err
		}
		var found bool
		if from, found = slices.BinarySearchFunc(s.rows, sequenceRow{key, w.After.ID}, s.compareRows); found {
			from++
		}
	}
	to := min(from+w.Limit, len(s.rows))
	return s.rows[from:to], to < len(s.rows), nil
}

// readByID reads the rows in the window w into l, by their ids in spec.Sequence. It leaves out rows
// that the query q no longer selects. If no row is left, it reads the rows after the window.
func (l *List[R]) readByID(ctx context.Context, d *DB, q *gorm.DB, spec ListSpec[R], w Window) error {
	l.Total = spec.Sequence.Len()
	page, more, err := spec.Sequence.rowsIn(w)
	for err == nil && len(page) > 0 {
		err = l.readPage(ctx, d, q, spec, page, w.MaxBytes)
		if errors.Is(err, ErrEnough) { // the texts of the rows take more than w.MaxBytes, so read only the first half
			page, more, err = page[:(len(page)+1)/2], true, nil
		} else if err == nil && len(l.Rows) == 0 && more { // an empty page would look like the end of the list
			last := page[len(page)-1]
			page, more, err = spec.Sequence.rowsIn(Window{Limit: w.Limit, After: l.column.position(last.key, last.id)})
		} else {
			break
		}
	}
	l.more = more
	return err
}

// readPage reads the given rows of a page into l. It returns ErrEnough if there are several rows
// and their texts take more than maxBytes.
func (l *List[R]) readPage(ctx context.Context, d *DB, q *gorm.DB, spec ListSpec[R], page []sequenceRow, maxBytes int64) error {
	ids, at := make([]uuid.UUID, len(page)), make(map[uuid.UUID]int, len(page))
	for i := range page {
		ids[i], at[page[i].id] = page[i].id, i
	}
	rows, found := make([]R, len(page)), make([]bool, len(page))
	condition, arg := AnyOf(q, l.column.id, "?", ids)
	// The statement has no ORDER BY, so the database finds the rows by their ids. With an ORDER BY, the
	// database might read a whole index instead.
	err := d.EachRow(ctx, selectColumns(q.Where(condition, arg), ColumnNames(spec.Table, spec.Columns)), func(row *Values) error {
		var r R
		setFields(&r, spec.Columns, row, 0)
		i := at[l.id(&r)]
		rows[i], found[i] = r, true
		if l.TextBytes = row.textBytes; maxBytes > 0 && l.TextBytes > maxBytes && len(page) > 1 {
			return ErrEnough
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range page {
		if found[i] {
			l.keys, l.Rows = append(l.keys, page[i].key), append(l.Rows, rows[i])
		}
	}
	return nil
}

// sortKeyOf returns the sort key of the position p. It returns an error if the column cannot have
// the value in p.
func (c SortColumn) sortKeyOf(p Position) (sortKey, error) {
	if p.Null {
		return sortKey{null: true}, nil
	}
	v, err := c.kind.parseValue(p.Value)
	if err != nil {
		return sortKey{}, fmt.Errorf("position: %w", err)
	}
	switch v := v.(type) {
	case int64:
		return sortKey{number: v}, nil
	case Date:
		return sortKey{number: int64(v)}, nil
	case float64:
		return sortKey{number: int64(math.Float64bits(v))}, nil //nolint:gosec // the bits of the number
	case string:
		return sortKey{text: v}, nil
	}
	return sortKey{}, fmt.Errorf("a list cannot be ordered by a column with values of the type %T", v)
}
