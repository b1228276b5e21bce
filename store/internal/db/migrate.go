package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
	sqlitedriver "modernc.org/sqlite"
	"modernc.org/sqlite/lib"

	"github.com/reeltally/reeltally/store/migrations"
)

// generationSize is the number of schema versions in a generation. A migration that would break
// older programs gets the first number of the next generation.
const generationSize = 1000

// SchemaError reports that this program cannot use the schema of the database.
type SchemaError struct {
	Have int64 // version of the schema in the database
	Want int64 // version of the schema that this program needs
}

func (e *SchemaError) Error() string {
	if e.Have < e.Want {
		return fmt.Sprintf("the database has schema version %d, this program needs %d: run `reeltally migrate`", e.Have, e.Want)
	}
	return fmt.Sprintf("the database has schema version %d, this program was built for version %d: run a newer program", e.Have, e.Want)
}

// gooseProvider returns the goose provider that applies the migrations of the database's engine.
func (d *DB) gooseProvider() (*goose.Provider, error) {
	dialect, dir, opts, err := d.dialect.gooseSettings()
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(migrations.Files, dir)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, d.pools[0], files, append(opts, goose.WithDisableGlobalRegistry(true))...)
}

// Migrate applies all migrations that the schema lacks and returns their numbers. Several processes can call it at the same time.
func (d *DB) Migrate(ctx context.Context) ([]int64, error) { return d.MigrateTo(ctx, math.MaxInt64) }

// MigrateTo applies the migrations that the schema lacks, up to and including the given version. It
// returns the numbers of the applied migrations. It also calls PreparePartitions. If Citus has
// distributed tables before, MigrateTo calls Distribute for the new tables.
func (d *DB) MigrateTo(ctx context.Context, version int64) ([]int64, error) {
	p, err := d.gooseProvider()
	if err != nil {
		return nil, err
	}
	applied := []int64{}
	for failures := 0; ; {
		results, err := p.UpTo(ctx, version)
		if partial, ok := errors.AsType[*goose.PartialError](err); ok {
			results = partial.Applied
		}
		for _, r := range results {
			applied = append(applied, r.Source.Version)
		}
		if err == nil {
			break
		}
		if isLockTimeout(err) {
			d.logger.InfoContext(ctx, "the migration waits for a lock that another session holds, for example a running dump of the database", "error", err)
			if err := waitFor(ctx, lockPause); err != nil {
				return applied, fmt.Errorf("migrate: %w", err)
			}
			continue
		}
		// On SQLite, two processes can begin the same migration. The second one fails, tries again, and then finds that the migration is applied:
		// see appliedMigrations.
		if failures++; failures == MaxAttempts || ctx.Err() != nil {
			return applied, fmt.Errorf("migrate: %w", err)
		}
	}
	if err := d.PreparePartitions(ctx); err != nil {
		return applied, err
	}
	if distributed, err := d.isDistributed(ctx); err != nil || !distributed {
		return applied, err
	}
	_, err = d.Distribute(ctx) // this call distributes the tables that the migrations have created
	return applied, err
}

// Schema returns two versions: the version of the schema in the database, which is 0 for an empty database, and the version that this program needs.
func (d *DB) Schema(ctx context.Context) (have, want int64, err error) {
	p, err := d.gooseProvider()
	if err != nil {
		return 0, 0, err
	}
	have, want, err = p.GetVersions(ctx)
	return have, want, Translate(err)
}

// CheckSchema returns a *SchemaError if the schema is too old, or belongs to a newer generation. It
// also fails if Citus has distributed only some tables.
func (d *DB) CheckSchema(ctx context.Context) error {
	have, want, err := d.Schema(ctx)
	if err != nil {
		return err
	}
	// A newer schema of the same generation works, so two releases can use the database during an
	// upgrade.
	if have < want || have/generationSize > want/generationSize {
		return &SchemaError{Have: have, Want: want}
	}
	return d.checkLayout(ctx)
}

// lockTimeout is how long a statement that changes a table waits for each lock. It is short,
// because all later statements on the table wait too, even reads.
const lockTimeout = "200ms"

// lockPause is the pause between two attempts of a statement to get its lock. Other sessions can use the table during the pause.
const lockPause = time.Second

// changeTables runs f in a transaction that waits at most lockTimeout for each lock. After this
// time, changeTables returns an ErrUnavailable.
func (d *DB) changeTables(ctx context.Context, f func(tx *gorm.DB) error) error {
	return d.Tx(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec("SET LOCAL lock_timeout = '" + lockTimeout + "'").Error; err != nil {
			return err
		}
		if err := tx.Exec("SET LOCAL " + sequentialDDL).Error; err != nil {
			return err
		}
		return f(tx)
	})
}

// isLockTimeout returns true if err means that a statement waited too long for a lock of another
// session.
func isLockTimeout(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "55P03"
	}
	// On SQLite, the lock is the lock of the database file.
	e, ok := errors.AsType[*sqlitedriver.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_BUSY || e.Code()&0xff == sqlite3.SQLITE_LOCKED)
}

// waitFor waits for the duration d. If ctx ends before that, it returns the error of ctx.
func waitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
