package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Options say where the data is and what the store may use.
type Options struct {
	// URL is "sqlite:PATH" or a PostgreSQL URL ("postgres://…").
	URL string
	// Now gives the time; the only clock that the store knows.
	Now func() time.Time
	// RealTime says that Now is meant to be the real time: jobs and retention are then refused while it and the clock of
	// PostgreSQL are apart. Tests set their own time.
	RealTime bool
	// Timeout bounds each transaction whose context has no deadline. PostgreSQL itself ends a statement or an idle transaction a little later.
	// If Timeout is set, the wait for a connection to PostgreSQL is bounded too. Zero means no limit.
	Timeout time.Duration
	// Logger receives failed and slow statements, without their values.
	Logger *slog.Logger
	// MaxCollections is how many collections an organisation may have; 0 means DefaultMaxCollections.
	MaxCollections int
	// Inspect, when set, is shown each statement before it runs and may refuse it. Tests hold the rules for SQL with it.
	Inspect func(statement string) error
}

// Store is the database. Its methods may be called concurrently.
type Store struct {
	connections
	dialect    dialect
	now        func() Instant
	realTime   bool
	timeout    time.Duration
	logger     *slog.Logger
	partitions partitionCache

	maxCollections int
}

// Open connects to the database. It neither creates nor changes a table: Migrate does, and CheckSchema says whether
// that has been done.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Now == nil {
		return nil, errors.New("store: Options.Now is required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d, err := dialectOf(o.URL)
	if err != nil {
		return nil, err
	}
	s := &Store{dialect: d, logger: o.Logger, realTime: o.RealTime, timeout: o.Timeout,
		maxCollections: cmp.Or(o.MaxCollections, DefaultMaxCollections), now: func() Instant { return InstantOf(o.Now()) }}
	if s.connections, err = d.open(ctx, o); err != nil {
		_ = s.Close()
		return nil, translate(err)
	}
	for _, p := range s.pools {
		if err := p.PingContext(ctx); err != nil {
			_ = s.Close()
			return nil, fmt.Errorf("database %s does not answer: %w", d.name(), translate(err))
		}
	}
	return s, nil
}

// Close gives the connections back. It may be called twice.
func (s *Store) Close() error {
	var errs []error
	for _, v := range slices.Backward(s.pools) {
		errs = append(errs, v.Close())
	}
	if s.below != nil {
		s.below()
	}
	return errors.Join(errs...)
}

// Ready returns nil if the database can be read. It does not check writes: on SQLite, one long transaction of another process would
// otherwise make the server stop answering reads.
func (s *Store) Ready(ctx context.Context) error {
	var n int
	return translate(s.pools[len(s.pools)-1].QueryRowContext(ctx, s.dialect.readyQuery()).Scan(&n))
}

// SharedByProcesses says whether several processes may collect from this database at once. SQLite allows one
// writer; it stays correct with more, but not faster.
func (s *Store) SharedByProcesses() bool { return s.dialect.skipLocked() }

// Secret returns the installation's secret of that name, 32 random bytes, made at the first call and the same ever
// after, in every process.
func (s *Store) Secret(ctx context.Context, name string) ([]byte, error) {
	type setting struct {
		Name  string
		Value []byte
	}
	fresh := make([]byte, 32)
	if _, err := rand.Read(fresh); err != nil {
		return nil, err
	}
	err := s.tx(ctx, func(tx *gorm.DB) error {
		return tx.Table("settings").Clauses(clause.OnConflict{DoNothing: true}).Create(&setting{name, fresh}).Error
	})
	if err != nil {
		return nil, err
	}
	var kept setting
	if err := s.write.WithContext(ctx).Table("settings").Where("name = ?", name).Take(&kept).Error; err != nil {
		return nil, translate(err)
	}
	return kept.Value, nil
}

const (
	// maxAttempts is how often a transaction is run at most if it meets deadlocks.
	maxAttempts = 5
	// repeatTimeout bounds how long a transaction is repeated, above all while another process has the SQLite file locked.
	repeatTimeout = 30 * time.Second
)

// tx runs f in one writing transaction. If the engine reports a conflict, tx runs f again, so f must have no effects outside of the
// transaction. tx ends with ctx, or after Options.Timeout if ctx has no deadline. It returns translated errors.
func (s *Store) tx(ctx context.Context, f func(tx *gorm.DB) error) error {
	own, cancel := s.bounded(ctx)
	defer cancel()
	repeat, stop := context.WithTimeout(own, repeatTimeout)
	defer stop()
	for attempt := 1; ; attempt++ {
		err := s.write.WithContext(own).Transaction(f)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && !errors.Is(err, ctx.Err()): // the driver only reports that the transaction has ended
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case ctx.Err() == nil && own.Err() != nil:
			return fmt.Errorf("%w: transaction not done within %s: %w", ErrUnavailable, s.timeout, err)
		case repeat.Err() != nil, !s.dialect.worthRepeating(err, attempt):
			return translate(err)
		}
		if pause(repeat, time.Duration(min(attempt, maxAttempts)*min(attempt, maxAttempts))*5*time.Millisecond) != nil {
			return translate(err)
		}
	}
}

// bounded returns ctx with a deadline after Options.Timeout. If ctx has a deadline already, it returns ctx unchanged.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok || s.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, s.timeout)
}

// NewID returns a new identifier, a UUIDv7: identifiers made later sort later.
func NewID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
