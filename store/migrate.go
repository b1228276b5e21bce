package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/reeltally/reeltally/store/migrations"
)

// SchemaError says that the database's schema is not the one this program was built for.
type SchemaError struct{ Have, Want int64 }

func (e *SchemaError) Error() string {
	if e.Have < e.Want {
		return fmt.Sprintf("the database has schema version %d, this program needs %d: run `reeltally migrate`", e.Have, e.Want)
	}
	return fmt.Sprintf("the database has schema version %d, this program knows versions up to %d: run a newer program", e.Have, e.Want)
}

func (d *DB) provider() (*goose.Provider, error) {
	dialect, dir, opts, err := d.dialect.goose()
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(migrations.Files, dir)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, d.pools[0], files, append(opts, goose.WithDisableGlobalRegistry(true))...)
}

// Migrate brings the schema to this program's version, forward only, and returns the numbers of the migrations that
// it applied. Several processes may call it at once.
func (d *DB) Migrate(ctx context.Context) ([]int64, error) {
	p, err := d.provider()
	if err != nil {
		return nil, err
	}
	applied := []int64{}
	for failures := 0; ; {
		results, err := p.Up(ctx)
		if partial, ok := errors.AsType[*goose.PartialError](err); ok {
			results = partial.Applied
		}
		for _, r := range results {
			applied = append(applied, r.Source.Version)
		}
		if err == nil {
			break
		}
		if isLocked(err) {
			d.logger.InfoContext(ctx, "migration waits for a lock that another session holds, such as a dump", "error", err)
			if err := pause(ctx, lockPause); err != nil {
				return applied, fmt.Errorf("migrate: %w", err)
			}
			continue
		}
		// SQLite has no lock that outlasts a transaction: two processes may begin the same migration, and the one that
		// comes later fails, and finds it done when it looks again.
		if failures++; failures == maxAttempts || ctx.Err() != nil {
			return applied, fmt.Errorf("migrate: %w", err)
		}
	}
	return applied, d.PrepareDays(ctx)
}

// CheckSchema returns a *SchemaError when the schema is older or newer than this program.
func (d *DB) CheckSchema(ctx context.Context) error {
	p, err := d.provider()
	if err != nil {
		return err
	}
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return translate(err)
	}
	if have != want {
		return &SchemaError{Have: have, Want: want}
	}
	return nil
}

// lockTimeout is how long a statement that changes a table waits for each lock. All later statements on the table, even reads, queue
// behind that wait. So it is far below a second.
const lockTimeout = "200ms"

// lockPause is the pause before the next attempt, in which other sessions can use the table.
const lockPause = time.Second

// changeTables runs f, which changes tables, in a transaction that waits at most lockTimeout for each lock. If it does not get a lock, the
// error is an ErrUnavailable. It is for PostgreSQL only.
func (d *DB) changeTables(ctx context.Context, f func(tx *gorm.DB) error) error {
	return d.Tx(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec("SET LOCAL lock_timeout = '" + lockTimeout + "'").Error; err != nil {
			return err
		}
		return f(tx)
	})
}

// isLocked returns true if err means that another session held a lock for too long: of a table on PostgreSQL, of the file on SQLite.
func isLocked(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "55P03"
	}
	e, ok := errors.AsType[*sqlitedriver.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_BUSY || e.Code()&0xff == sqlite3.SQLITE_LOCKED)
}

// pause waits for d. It returns the context's error if the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// partitionCache remembers the months whose partition is known to exist.
type partitionCache struct {
	mu     sync.Mutex
	months map[Date]bool
}

func (c *partitionCache) has(month Date) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.months[month]
}

func (c *partitionCache) set(month Date, exists bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.months == nil {
		c.months = map[Date]bool{}
	}
	c.months[month] = exists
}

// PrepareDays creates the partitions of snapshots_daily from last month to the end of next month, at least. It tries again until all exist
// or ctx ends. It does nothing on engines without partitions.
func (d *DB) PrepareDays(ctx context.Context) error {
	today := d.Now().Day()
	return d.MakeDays(ctx, today-31, today+62)
}

// makeDays calls ensureDays until it gets all locks or ctx ends.
func (d *DB) MakeDays(ctx context.Context, from, to Date) error {
	for {
		err := d.EnsureDays(ctx, from, to)
		if !isLocked(err) {
			return err
		}
		if stopped := pause(ctx, lockPause); stopped != nil {
			return errors.Join(stopped, err)
		}
	}
}

// ensureDays makes sure that snapshots_daily has partitions for the days from..to. If it does not get a lock at once, the error is an
// ErrUnavailable.
func (d *DB) EnsureDays(ctx context.Context, from, to Date) error {
	if !d.dialect.partitioned() {
		return nil
	}
	for month := monthOf(from); month <= to; month = monthOf(month + 31) {
		if d.partitions.has(month) {
			continue
		}
		if err := d.makeMonth(ctx, month); err != nil {
			return fmt.Errorf("partition for %s: %w", month, err)
		}
		d.partitions.set(month, true)
	}
	return nil
}

// makeMonth creates the partition of a month if it does not exist. CREATE TABLE … PARTITION OF would lock snapshots_daily against reads and
// wait for all readers. ATTACH PARTITION does not: it conflicts only with transactions that write videos.
func (d *DB) makeMonth(ctx context.Context, month Date) error {
	return d.changeTables(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec("SELECT pg_advisory_xact_lock(7261350812)").Error; err != nil { // only one process at a time
			return err
		}
		name := partitionName(month)
		var partitions int64
		err := tx.Raw(`SELECT COUNT(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = CAST(CAST(? AS text) AS regclass) AND c.relname = ?`, "snapshots_daily", name).Scan(&partitions).Error
		if err != nil || partitions > 0 {
			return err
		}
		if err := tx.Exec("CREATE TABLE " + name + " (LIKE snapshots_daily INCLUDING ALL)").Error; err != nil {
			return err
		}
		return tx.Exec(fmt.Sprintf("ALTER TABLE snapshots_daily ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s')", name, month, monthOf(month+31))).Error
	})
}

const dailyPartition = "snapshots_daily_"

func partitionName(month Date) string { return dailyPartition + month.Time().Format("200601") }

func monthOf(d Date) Date {
	t := d.Time()
	return DateOf(t.AddDate(0, 0, 1-t.Day()))
}
