package db

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// Instant is a point in time: the number of microseconds since 1970-01-01 00:00 UTC. Both engines store times with this precision.
type Instant int64

// InstantOf converts the time t to an Instant. It drops fractions of a microsecond.
func InstantOf(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Time returns the instant as a time.Time in UTC.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// Add returns the instant i + d. The result is later than i if d is positive.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d.Microseconds()) }

// Sub returns the duration i - o, which is positive if i is later than o.
func (i Instant) Sub(o Instant) time.Duration { return time.Duration(i-o) * time.Microsecond }

// Day returns the UTC day of the instant.
func (i Instant) Day() Date { return DateOf(i.Time()) }

// Date is a UTC day, counted in days since 1970-01-01. Its text form is YYYY-MM-DD, both in the database and in responses of the API.
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
	return Date(d) //nolint:gosec // the days of all years that the store accepts fit into an int32
}

// ParseDate parses a day of the form YYYY-MM-DD. It returns an error for a day that does not exist.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, fmt.Errorf("%q is not an existing day in the form YYYY-MM-DD", s)
	}
	return DateOf(t), nil
}

// Time returns 00:00 UTC of the day.
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

// Value implements driver.Valuer. It returns the day as text of the form YYYY-MM-DD.
func (d Date) Value() (driver.Value, error) { return d.String(), nil }

// Scan implements sql.Scanner. It accepts a time.Time, which PostgreSQL returns for a date, and a text, which SQLite returns.
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

// scanText parses the day in the first ten characters of s. It ignores the rest, because SQLite can append a time of day.
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

// GormDataType makes GORM treat a Date as a column of the SQL type date and not as a number.
func (Date) GormDataType() string { return "date" }
