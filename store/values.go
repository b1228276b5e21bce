package store

import (
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// Packages outside of store/ cannot import store/internal/db. The declarations below give them what they need of
// it.

// Instant is a point in time, in microseconds since 1970 UTC.
type Instant = db.Instant

// Date is a UTC day, in days since 1970-01-01.
type Date = db.Date

// Counts are the metrics of a video at one time. A metric is nil if the source did not report it.
type Counts = db.Counts

// MetricCount is the number of metrics.
const MetricCount = db.MetricCount

// InstantOf converts a time to an Instant. It drops fractions of a microsecond.
func InstantOf(t time.Time) Instant { return db.InstantOf(t) }

// DateOf returns the UTC day of a time.
func DateOf(t time.Time) Date { return db.DateOf(t) }

// ParseDate parses a day of the form YYYY-MM-DD.
func ParseDate(s string) (Date, error) { return db.ParseDate(s) }

// NewID returns a new UUIDv7. Ids that are created later sort later.
func NewID() uuid.UUID { return db.NewID() }

// Order is the order of a list: a column and a direction.
type Order = db.Order

// Window says which rows of a list are returned: the rows after a position, or the rows after an offset.
type Window = db.Window

// Position is the position directly after a row in an ordered list.
type Position = db.Position

// List has the rows that a Window selects from an ordered list.
type List[R any] = db.List[R]

// The errors of all packages of the store. Compare them with errors.Is.
var (
	ErrNotFound            = db.ErrNotFound            // the requested object does not exist in the organisation; a *NotFoundError names it
	ErrDuplicate           = db.ErrDuplicate           // a row with the same key exists already
	ErrOrganisationDeleted = db.ErrOrganisationDeleted // the organisation does not exist, or its deletion has begun
	ErrUnavailable         = db.ErrUnavailable         // the database cannot be reached or is too busy; the same call may succeed later
	ErrEnough              = db.ErrEnough              // the function in VideoQuery.Each returns this error to end the list; the current video is then not part of the list
)

// NotFoundError is an ErrNotFound with the kind and the names of the objects that were not found.
type NotFoundError = db.NotFoundError

// SchemaError reports that this program cannot use the schema of the database.
type SchemaError = db.SchemaError

// ClockError reports that the store's clock may be wrong. In that case, rows are not deleted by their age.
type ClockError = db.ClockError

// Retention says for how many days the points of histories are kept.
type Retention = db.Retention
