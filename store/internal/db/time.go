package db

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// Instant is a point in time, in microseconds since 1970 UTC. Both engines keep this precision.
type Instant int64

// InstantOf returns t as an Instant. It drops everything below a microsecond.
func InstantOf(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Time returns the instant in UTC.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d.Microseconds()) }

// Sub returns the time from o to i.
func (i Instant) Sub(o Instant) time.Duration { return time.Duration(i-o) * time.Microsecond }

// Day returns the UTC day that the instant falls into.
func (i Instant) Day() Date { return DateOf(i.Time()) }

// Date is a UTC day, counted in days since 1970-01-01. It is written YYYY-MM-DD in the database and to callers.
type Date int32

// SecondsPerDay is the number of seconds of a UTC day.
const SecondsPerDay = 86400

// DateOf returns the UTC day of t.
func DateOf(t time.Time) Date {
	s := t.Unix()
	d := s / SecondsPerDay
	if s%SecondsPerDay < 0 {
		d--
	}
	return Date(d) //nolint:gosec // the day of every time.Time fits
}

// ParseDate reads a day of the form YYYY-MM-DD. A day that does not exist is an error.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a date of the form YYYY-MM-DD", s)
	}
	return DateOf(t), nil
}

// Time returns the day's first instant.
func (d Date) Time() time.Time { return time.Unix(int64(d)*SecondsPerDay, 0).UTC() }

func (d Date) String() string { return d.Time().Format(time.DateOnly) }

// Week returns the Monday of the day's week.
func (d Date) Week() Date {
	sinceMonday := (int32(d) + 3) % 7 // 1970-01-01 was a Thursday
	if sinceMonday < 0 {
		sinceMonday += 7
	}
	return d - Date(sinceMonday)
}

// Value writes the day as text. Both engines compare this text in the order of the days.
func (d Date) Value() (driver.Value, error) { return d.String(), nil }

// Scan reads a day from a date column (PostgreSQL gives a time) or a text column (SQLite).
func (d *Date) Scan(src any) error {
	switch v := src.(type) {
	case time.Time:
		*d = DateOf(time.Date(v.Year(), v.Month(), v.Day(), 0, 0, 0, 0, time.UTC))
		return nil
	case string:
		return d.scanText(v)
	case []byte:
		return d.scanText(string(v))
	}
	return fmt.Errorf("cannot read a date from %T", src)
}

func (d *Date) scanText(s string) error {
	if len(s) > len(time.DateOnly) {
		s = s[:len(time.DateOnly)]
	}
	parsed, err := ParseDate(s)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// GormDataType tells GORM that a Date is not a number.
func (Date) GormDataType() string { return "date" }
