package store

import (
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// The names of store/internal/db that callers of the store need.

// Instant is a point in time, in microseconds since 1970 UTC.
type Instant = db.Instant

// Date is a UTC day, in days since 1970-01-01.
type Date = db.Date

// InstantOf returns t as an Instant. It drops everything below a microsecond.
func InstantOf(t time.Time) Instant { return db.InstantOf(t) }

// DateOf returns the UTC day of t.
func DateOf(t time.Time) Date { return db.DateOf(t) }

// ParseDate reads a day of the form YYYY-MM-DD.
func ParseDate(s string) (Date, error) { return db.ParseDate(s) }

// NewID returns a new identifier, a UUIDv7. Identifiers that are made later sort later.
func NewID() uuid.UUID { return db.NewID() }

// Order is the order of a list: a column and a direction.
type Order = db.Order

// Window is the part of a list that is wanted: after a position, or from an offset.
type Window = db.Window

// Position is a place in an ordered list: just after one row.
type Position = db.Position

// List is a window of an ordered list whose rows are read on demand.
type List[R any] = db.List[R]

// The errors of all packages of the store. Compare with errors.Is.
var (
	ErrNotFound    = db.ErrNotFound    // no such thing in this organisation; a *NotFoundError says what was not found
	ErrDuplicate   = db.ErrDuplicate   // a row with that key exists already
	ErrUnavailable = db.ErrUnavailable // the database cannot be reached or is too busy; the same call may succeed later
)

// NotFoundError is an ErrNotFound with the names of what was not found.
type NotFoundError = db.NotFoundError

// SchemaError reports that the schema of the database is not the one that this program was built for.
type SchemaError = db.SchemaError

// ClockError reports that the clock may be wrong, so that nothing is deleted.
type ClockError = db.ClockError

// Engine describes the database engine.
type Engine = db.Engine

const (
	// DailyDays is for how many days the point of each day is kept. Older history has one point a week.
	DailyDays = db.DailyDays
	// WeeklyDays is for how many days the point of each week is kept.
	WeeklyDays = db.WeeklyDays
)

// Table describes a table: its class and what bounds its size.
type Table = db.Table

// TableClass says how a table would be laid out on a sharded PostgreSQL.
type TableClass = db.TableClass

// TableBound says what keeps a table from growing without limit.
type TableBound = db.TableBound

// The classes and bounds of tables.
const (
	Reference      = db.Reference
	Distributed    = db.Distributed
	Coordinator    = db.Coordinator
	ByInstallation = db.ByInstallation
	ByTenantData   = db.ByTenantData
	ByTime         = db.ByTime
)

// Tables describes every table of the schema, by name.
var Tables = db.Tables
