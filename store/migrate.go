package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
)

//go:embed migrations
var migrations embed.FS

// SchemaError says that the database's schema is not the one this program was built for.
type SchemaError struct{ Have, Want int64 }

func (e *SchemaError) Error() string {
	if e.Have < e.Want {
		return fmt.Sprintf("the database has schema version %d, this program needs %d: run `reeltally migrate`", e.Have, e.Want)
	}
	return fmt.Sprintf("the database has schema version %d, this program knows versions up to %d: run a newer program", e.Have, e.Want)
}

func (s *Store) migrations() (*goose.Provider, error) {
	d, dir, opts, err := s.dialect.goose()
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(migrations, dir)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(d, s.pools[0], files, append(opts, goose.WithDisableGlobalRegistry(true))...)
}

// Migrate brings the schema to this program's version, forward only, and returns the numbers of the migrations that
// it applied. Several processes may call it at once.
func (s *Store) Migrate(ctx context.Context) ([]int64, error) {
	p, err := s.migrations()
	if err != nil {
		return nil, err
	}
	applied := []int64{}
	for attempt := 1; ; attempt++ {
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
		// SQLite has no lock that outlasts a transaction: two processes may begin the same migration, and the one that
		// comes later fails, and finds it done when it looks again.
		if attempt == maxAttempts || ctx.Err() != nil {
			return applied, fmt.Errorf("migrate: %w", err)
		}
	}
	today := s.now().Day()
	return applied, s.ensureDays(ctx, today-31, today+62)
}

// CheckSchema returns a *SchemaError when the schema is older or newer than this program.
func (s *Store) CheckSchema(ctx context.Context) error {
	p, err := s.migrations()
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

// partitionCache remembers the months whose partition is known to exist.
type partitionCache struct {
	sync.Mutex
	months map[Date]bool
}

// ensureDays makes sure that snapshots_daily takes rows of the days from..to.
func (s *Store) ensureDays(ctx context.Context, from, to Date) error {
	if !s.dialect.partitioned() {
		return nil
	}
	s.partitions.Lock()
	defer s.partitions.Unlock()
	if s.partitions.months == nil {
		s.partitions.months = map[Date]bool{}
	}
	for month := monthOf(from); month <= to; month = monthOf(month + 31) {
		if s.partitions.months[month] {
			continue
		}
		err := s.tx(ctx, func(tx *gorm.DB) error {
			// IF NOT EXISTS alone can fail when two processes create the same month at once.
			if err := tx.Exec("SELECT pg_advisory_xact_lock(7261350812)").Error; err != nil {
				return err
			}
			return tx.Exec(fmt.Sprintf("CREATE TABLE IF NOT EXISTS "+dailyPartition+"%s PARTITION OF snapshots_daily FOR VALUES FROM ('%s') TO ('%s')",
				month.Time().Format("200601"), month, monthOf(month+31))).Error
		})
		if err != nil {
			return fmt.Errorf("partition for %s: %w", month, err)
		}
		s.partitions.months[month] = true
	}
	return nil
}

func monthOf(d Date) Date {
	t := d.Time()
	return DateOf(t.AddDate(0, 0, 1-t.Day()))
}
