package db

import (
	bits "encoding/binary"
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/google/uuid"
)

// Values has the values of one row of a query. Each method returns the value of column i. A method
// can panic if the column has another type.
type Values struct {
	binary [][]byte // the values in PostgreSQL's binary format, nil for NULL; set on PostgreSQL, except in transactions of Tx
	plain  []any    // the values as database/sql returns them; set on SQLite, and in transactions of Tx on PostgreSQL

	textBytes    int64 // total length in bytes of all texts that were read so far, in all rows
	reusesMemory bool  // true after a call of reuseMemory

	// The fields below store the values to which methods such as OptionalInt return pointers. After a call of
	// reuseMemory, the values are valid only until the next row is read.
	integers arena[int64]
	instants arena[Instant]
	floats   arena[float64]
	ids      arena[uuid.UUID]
	dates    arena[Date]
	strings  arena[string]
	texts    *strings.Builder
}

// arena stores values of the type T. It allocates memory for many values in one block, because single
// allocations take longer than reading the values.
type arena[T any] struct{ block []T }

// storeValue stores a value and returns a pointer to it.
func (b *arena[T]) storeValue(value T) *T {
	if len(b.block) == cap(b.block) {
		b.block = make([]T, 0, min(512, max(8, 2*cap(b.block))))
	}
	b.block = append(b.block, value)
	return &b.block[len(b.block)-1]
}

// storeIfKnown stores value in b and returns a pointer to it. If known is false, it stores nothing and returns nil.
func storeIfKnown[T any](b *arena[T], value T, known bool) *T {
	if !known {
		return nil
	}
	return b.storeValue(value)
}

// reuseMemory allows the next row to overwrite the present row in memory. Texts and pointers from
// Values are then valid only until the next row is read.
func (v *Values) reuseMemory() {
	v.reusesMemory = true
	v.integers.block, v.instants.block, v.floats.block = v.integers.block[:0], v.instants.block[:0], v.floats.block[:0]
	v.ids.block, v.dates.block, v.strings.block = v.ids.block[:0], v.dates.block[:0], v.strings.block[:0]
}

// OptionalInt returns a pointer to the integer in column i, or nil for NULL.
func (v *Values) OptionalInt(i int) *int64 {
	n, ok := v.Int(i)
	return storeIfKnown(&v.integers, n, ok)
}

// OptionalInstant returns a pointer to the time in column i, or nil for NULL.
func (v *Values) OptionalInstant(i int) *Instant {
	n, ok := v.Int(i)
	return storeIfKnown(&v.instants, Instant(n), ok)
}

// OptionalFloat returns a pointer to the floating-point number in column i, or nil for NULL.
func (v *Values) OptionalFloat(i int) *float64 {
	n, ok := v.Float(i)
	return storeIfKnown(&v.floats, n, ok)
}

// OptionalUUID returns a pointer to the id in column i, or nil for NULL.
func (v *Values) OptionalUUID(i int) *uuid.UUID {
	id, ok := v.UUID(i)
	return storeIfKnown(&v.ids, id, ok)
}

// OptionalDate returns a pointer to the day in column i, or nil for NULL.
func (v *Values) OptionalDate(i int) *Date {
	d, ok := v.Date(i)
	return storeIfKnown(&v.dates, d, ok)
}

// OptionalText returns a pointer to the text in column i, or nil for NULL.
func (v *Values) OptionalText(i int) *string {
	s, ok := v.Text(i)
	return storeIfKnown(&v.strings, s, ok)
}

// postgresEpoch is the day 2000-01-01, from which PostgreSQL counts days.
const postgresEpoch = 10957

// Int returns the integer in column i. The second result is false for NULL.
func (v *Values) Int(i int) (int64, bool) {
	if v.binary == nil {
		n, ok := v.plain[i].(int64)
		return n, v.requireType(i, ok)
	}
	switch b := v.binary[i]; len(b) {
	case 8:
		return int64(bits.BigEndian.Uint64(b)), true //nolint:gosec // the bits of a signed integer
	case 4:
		return int64(int32(bits.BigEndian.Uint32(b))), true //nolint:gosec // the bits of a signed integer
	case 2:
		return int64(int16(bits.BigEndian.Uint16(b))), true //nolint:gosec // the bits of a signed integer
	default:
		return 0, v.requireType(i, false)
	}
}

// Float returns the floating-point number in column i. The second result is false for NULL.
func (v *Values) Float(i int) (float64, bool) {
	if v.binary == nil {
		if n, ok := v.plain[i].(int64); ok { // SQLite stores numbers without a fraction as integers
			return float64(n), true
		}
		n, ok := v.plain[i].(float64)
		return n, v.requireType(i, ok)
	}
	b := v.binary[i]
	if len(b) != 8 {
		return 0, v.requireType(i, false)
	}
	return math.Float64frombits(bits.BigEndian.Uint64(b)), true
}

// Bool returns the boolean value in column i. The second result is false for NULL.
func (v *Values) Bool(i int) (value, known bool) {
	if v.binary == nil {
		switch b := v.plain[i].(type) {
		case bool:
			return b, true
		case int64:
			return b != 0, true
		}
		return false, v.requireType(i, false)
	}
	b := v.binary[i]
	if len(b) != 1 {
		return false, v.requireType(i, false)
	}
	return b[0] != 0, true
}

// Text returns the text in column i. The second result is false for NULL.
func (v *Values) Text(i int) (string, bool) {
	if v.binary == nil {
		s, ok := v.plain[i].(string)
		v.textBytes += int64(len(s))
		return s, v.requireType(i, ok)
	}
	b := v.binary[i]
	v.textBytes += int64(len(b))
	if v.reusesMemory {
		return unsafe.String(unsafe.SliceData(b), len(b)), b != nil //nolint:gosec // the text is valid as long as the row, as reuseMemory says
	}
	if v.texts == nil || v.texts.Cap()-v.texts.Len() < len(b) {
		size := 1 << 10
		if v.texts != nil {
			size = 16 << 10
		}
		v.texts = &strings.Builder{}
		v.texts.Grow(max(size, len(b)))
	}
	v.texts.Write(b)
	all := v.texts.String()
	return all[len(all)-len(b):], b != nil
}

// String returns the text in column i, or "" for NULL.
func (v *Values) String(i int) string {
	s, _ := v.Text(i)
	return s
}

// Instant returns the time in column i, or the zero time for NULL.
func (v *Values) Instant(i int) Instant {
	n, _ := v.Int(i)
	return Instant(n)
}

// Count returns the integer in column i, or 0 for NULL.
func (v *Values) Count(i int) int64 {
	n, _ := v.Int(i)
	return n
}

// Day returns the day in column i, or the zero day for NULL.
func (v *Values) Day(i int) Date {
	d, _ := v.Date(i)
	return d
}

// IsTrue returns the boolean value in column i, or false for NULL.
func (v *Values) IsTrue(i int) bool {
	value, _ := v.Bool(i)
	return value
}

// ID returns the id in column i, or the zero id for NULL.
func (v *Values) ID(i int) uuid.UUID {
	id, _ := v.UUID(i)
	return id
}

// UUID returns the id in column i. The second result is false for NULL.
func (v *Values) UUID(i int) (uuid.UUID, bool) {
	if v.binary == nil {
		s, ok := v.plain[i].(string)
		if !v.requireType(i, ok) {
			return uuid.Nil, false
		}
		return uuid.MustParse(s), true
	}
	b := v.binary[i]
	if len(b) != len(uuid.UUID{}) {
		return uuid.Nil, v.requireType(i, false)
	}
	return uuid.UUID(b), true
}

// Bytes returns the bytes in column i, or nil for NULL. They are valid until the next row is read.
func (v *Values) Bytes(i int) []byte {
	if v.binary == nil {
		b, ok := v.plain[i].([]byte)
		v.requireType(i, ok)
		return b
	}
	return v.binary[i]
}

// Date returns the day in column i. The second result is false for NULL.
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
		return 0, v.requireType(i, false)
	}
	return Date(int32(bits.BigEndian.Uint32(b))) + postgresEpoch, true //nolint:gosec // the bits of a signed integer
}

// requireType panics if the value in column i has another type than the caller reads. It accepts NULL. It
// returns hasType.
func (v *Values) requireType(i int, hasType bool) bool {
	switch {
	case hasType:
	case v.binary == nil && v.plain[i] != nil:
		panic(fmt.Sprintf("the value at index %d has the type %T, but the called method returns another type", i, v.plain[i]))
	case v.binary != nil && v.binary[i] != nil:
		panic(fmt.Sprintf("the value at index %d has %d bytes, but the called method returns a type of another length", i, len(v.binary[i])))
	}
	return hasType
}
