package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store"
)

// Database has the settings of the database. A struct that embeds Database sets the default of DatabaseURL with the tag
// set:"database_url=…".
type Database struct {
	DatabaseURL    Secret `setting:"REELTALLY_DATABASE_URL" default:"${database_url}" placeholder:"URL" help:"The database: sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE."`
	MaxCollections int    `setting:"REELTALLY_MAX_COLLECTIONS" default:"1000" placeholder:"N" help:"Maximum number of collections of an organisation, from 1 to 10000."`

	RetentionDaily  time.Duration `setting:"REELTALLY_RETENTION_DAILY" default:"90d" placeholder:"TIME" help:"How long the numbers of each day are kept, in whole days, at least 31d. Afterwards one day of each week is kept. The same for all programs of one database."`
	RetentionWeekly time.Duration `setting:"REELTALLY_RETENTION_WEEKLY" default:"730d" placeholder:"TIME" help:"How long the numbers of each week are kept, in whole days, at least as long as those of each day."`

	// ReadURL is the URL of the database replica for reads, or "" if there is none. The server
	// takes it from its own settings.
	ReadURL Secret `kong:"-"`
	// StoreTimeout is the timeout of a database transaction; 0 means no limit. It is not a setting: servers and collectors assign a value,
	// and the operator's commands keep 0.
	StoreTimeout time.Duration `kong:"-"`
	// If Traced is true, the store records a span for each statement. Traced is not a setting: programs that can send traces set it to the result of
	// Traces.Enabled.
	Traced bool `kong:"-"`
	// If MustExist is true, a SQLite file that does not exist is an error. It is not a setting: the operator's commands set it.
	MustExist bool `kong:"-"`
}

// Migration tells Database.Open what to do if the schema is missing or old. Only MigrateAny
// migrates a PostgreSQL database, because other programs may be using it.
type Migration int

const (
	// CreateSQLite creates the schema in a new SQLite file. An old schema is an error.
	CreateSQLite Migration = iota
	// MigrateSQLite creates or updates the schema of a SQLite file. A missing or old schema in a PostgreSQL database is an error.
	MigrateSQLite
	// MigrateAny creates or updates the schema of a SQLite file or a PostgreSQL database.
	MigrateAny
	// CheckOnly checks the schema and changes nothing.
	CheckOnly
	// SkipSchemaCheck neither checks nor changes the schema.
	SkipSchemaCheck
)

// Open opens the database, and migrates the schema if the parameter migration allows that. It
// returns a *store.SchemaError if this program cannot use the schema.
func (d Database) Open(ctx context.Context, logger *slog.Logger, migration Migration) (*store.Store, error) {
	if d.MaxCollections < 1 || d.MaxCollections > store.MaxLabels {
		return nil, InvalidSetting("REELTALLY_MAX_COLLECTIONS", d.MaxCollections, fmt.Sprintf("from 1 to %d", store.MaxLabels))
	}
	keep, err := d.retentionDays()
	if err != nil {
		return nil, err
	}
	st, err := store.Open(ctx, store.Options{Retention: keep, URL: d.DatabaseURL.Reveal(), ReadURL: d.ReadURL.Reveal(), Now: time.Now, RealTime: true, Timeout: d.StoreTimeout, Traced: d.Traced, Logger: logger,
		MaxCollections: d.MaxCollections, MustExist: d.MustExist})
	if err != nil {
		return nil, err
	}
	if migration == SkipSchemaCheck {
		return st, nil
	}
	if err := prepareSchema(ctx, st, logger, migration); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return st, nil
}

// minDailyRetention is the smallest allowed value of Database.RetentionDaily. The growth of views
// in the last 30 days is computed from daily points.
const minDailyRetention = 31 * 24 * time.Hour

// maxRetention is the largest allowed value of Database.RetentionDaily and Database.RetentionWeekly.
const maxRetention = 100 * 365 * 24 * time.Hour

// retentionDays checks RetentionDaily and RetentionWeekly, which say how long the points of histories are kept. It returns both in days.
func (d Database) retentionDays() (store.Retention, error) {
	daily, weekly := d.RetentionDaily, d.RetentionWeekly
	switch {
	case daily < minDailyRetention || daily > maxRetention || daily%day != 0:
		return store.Retention{}, InvalidSetting("REELTALLY_RETENTION_DAILY", words.Duration(daily), "a number of whole days, from 31d to 36500d")
	case weekly < daily || weekly > maxRetention || weekly%day != 0:
		return store.Retention{}, InvalidSetting("REELTALLY_RETENTION_WEEKLY", words.Duration(weekly),
			fmt.Sprintf("a number of whole days, from %dd (REELTALLY_RETENTION_DAILY) to 36500d", daily/day))
	}
	return store.Retention{Daily: store.Date(daily / day), Weekly: store.Date(weekly / day)}, nil //nolint:gosec // no overflow: the values are at most maxRetention
}

// prepareSchema migrates the schema if it is missing or old. If m does not allow this migration,
// or the schema is too new, prepareSchema returns a *store.SchemaError.
func prepareSchema(ctx context.Context, st *store.Store, logger *slog.Logger, m Migration) error {
	err := st.CheckSchema(ctx)
	var schema *store.SchemaError
	switch {
	case !errors.As(err, &schema), schema.Have > schema.Want, m == CheckOnly, m == CreateSQLite && schema.Have > 0, m != MigrateAny && st.SharedByProcesses():
		return err
	}
	applied, err := st.Migrate(ctx)
	if err != nil {
		// Another process may have migrated the database at the same time. In that case the schema is current now.
		if st.CheckSchema(ctx) == nil {
			return nil
		}
		return err
	}
	logger.InfoContext(ctx, "schema migrated", "applied", applied)
	return nil
}
