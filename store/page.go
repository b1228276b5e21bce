package store

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// Order is the order of a list. Rows without a value come last in both directions; ties break by id, so that pages
// neither overlap nor skip.
type Order struct {
	Column     string // one of the allow-list of the query
	Descending bool
}

func (o Order) direction() string {
	if o.Descending {
		return "DESC"
	}
	return "ASC"
}

// Window is which part of a list is wanted: after a position when there is one, else from an offset.
type Window struct {
	Offset int
	Limit  int
	After  *Position
}

// Position is a place in an ordered list: just behind the row with this value and id.
type Position struct {
	Null  bool      `json:"n,omitempty"` // the row has no value in the ordering column
	Value string    `json:"v,omitempty"`
	ID    uuid.UUID `json:"i"`
}

// columnKind is the type of an ordering column: a position's value travels as text and must come back as it was.
type columnKind int

const (
	integerColumn columnKind = iota
	dateColumn
	textColumn
	floatColumn // a position holds the bits
)

func (k columnKind) parse(s string) (any, error) {
	switch k {
	case integerColumn:
		return strconv.ParseInt(s, 10, 64)
	case dateColumn:
		return ParseDate(s)
	case floatColumn:
		bits, err := strconv.ParseUint(s, 16, 64)
		return math.Float64frombits(bits), err
	case textColumn:
	}
	return s, nil
}

// ordered adds order and window to a query over table, whose column is of that kind.
func ordered(q *gorm.DB, table string, kind columnKind, o Order, w Window) (*gorm.DB, error) {
	return orderedBy(q, table+"."+o.Column, table+".id", kind, o, w)
}

// orderedBy is ordered for an expression.
func orderedBy(q *gorm.DB, col, id string, kind columnKind, o Order, w Window) (*gorm.DB, error) {
	if w.After != nil {
		beyond := "<"
		if !o.Descending {
			beyond = ">"
		}
		if w.After.Null {
			q = q.Where(fmt.Sprintf("%s IS NULL AND %s %s ?", col, id, beyond), w.After.ID)
		} else {
			v, err := kind.parse(w.After.Value)
			if err != nil {
				return nil, fmt.Errorf("position: %w", err)
			}
			q = q.Where(fmt.Sprintf("(%[1]s %[3]s ? OR (%[1]s = ? AND %[2]s %[3]s ?) OR %[1]s IS NULL)", col, id, beyond),
				v, v, w.After.ID)
		}
	} else if w.Offset > 0 {
		q = q.Offset(w.Offset)
	}
	return q.Order(fmt.Sprintf("%s %s NULLS LAST, %s %[2]s", col, o.direction(), id)).Limit(w.Limit), nil
}

// likePattern returns a LIKE pattern (with ESCAPE '\') that finds s anywhere.
func likePattern(s string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) + "%"
}
