package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// Options are the settings with which Open opens a database. Callers outside of the packages of the store name this type store.Options.
type Options struct {
	// URL is "sqlite:PATH" or a PostgreSQL URL ("postgres://…").
	URL string
	// ReadURL is the URL of a streaming replica of the PostgreSQL database, or "" if there is no replica. The method DB.OnReplica returns a DB that
	// reads from this replica. Lists and histories are read from it: see store.FromReplica.
	ReadURL string
	// Now returns the time that is stored and compared with stored times. Tests set Now to a clock of their own. Only time limits, waits between
	// attempts, NewID and measurements use the real clock. CheckClock and CompareClocks also read the clock of PostgreSQL.
	Now func() time.Time
	// RealTime is true if Now returns the real time. If it is true, jobs are not run and old rows are not
	// deleted while this time may be wrong: see CheckClock.
	RealTime bool
	// Timeout is the time limit of each transaction whose context has no deadline. Zero means no limit. A transaction in which BulkTx
	// uses COPY has no such limit. On PostgreSQL, Timeout plus serverMargin also limits statements and idle transactions, except in long tasks such as
	// migrations.
	Timeout time.Duration
	// Logger receives failed and slow statements, without their values.
	Logger *slog.Logger
	// MaxCollections is the highest number of collections of an organisation. 0 means store.DefaultMaxCollections. Only package store reads it.
	MaxCollections int
	// Retention says for how many days the points of histories are kept.
	Retention Retention
	// MustExist makes Open fail if the SQLite file does not exist. Otherwise Open creates the file.
	MustExist bool
	// Inspect, if set, is called before each statement of Read, ReadCommitted, EachRowOf and Tx. Tests use it to check these statements. Inspect is
	// not called for migrations, snapshots, tests of the connection, and transactions in which BulkTx uses COPY.
	Inspect Inspector
	// Traced says whether the statements for which Inspect is called are recorded as spans of OpenTelemetry. A statement is recorded only if its
	// context already has a span.
	Traced bool
}

// Inspector is a function that gets a statement and its arguments before the statement runs. If it returns an error, the statement is not
// run.
type Inspector = func(statement string, args []any) error

// DB is an open database. Its methods can be called concurrently.
type DB struct {
	connections
	dialect    dialect
	now        func() time.Time
	realTime   bool
	timeout    time.Duration
	logger     *slog.Logger
	retention  Retention
	inspect    Inspector
	traced     bool
	partitions *partitionCache
	replica    *replica     // the replica for reads; nil if there is none
	required   *requirement // the changes that a read on the replica must see; set only in a DB that OnReplica returned
}

// Open connects to the database. It does not create or change tables: see Migrate and CheckSchema.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Now == nil {
		return nil, errors.New("store: Options.Now is required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	dialect, err := dialectOf(o.URL)
	if err != nil {
		return nil, err
	}
	d := &DB{dialect: dialect, logger: o.Logger, realTime: o.RealTime, timeout: o.Timeout, now: o.Now, retention: o.Retention, inspect: o.Inspect, traced: o.Traced, partitions: &partitionCache{}}
	if d.connections, err = dialect.open(ctx, o); err != nil {
		_ = d.Close()
		return nil, Translate(err)
	}
	for _, p := range d.pools {
		if err := p.PingContext(ctx); err != nil {
			_ = d.Close()
			return nil, fmt.Errorf("database %s does not answer: %w", dialect.name(), Translate(err))
		}
	}
	if o.ReadURL != "" {
		if d.replica, err = openReplica(ctx, o, d.connections); err != nil {
			_ = d.Close()
			return nil, err
		}
	}
	return d, nil
}

// Close closes all connections. It can be called more than once.
func (d *DB) Close() error {
	var errs []error
	if d.replica != nil {
		errs = append(errs, d.replica.close())
	}
	for _, v := range slices.Backward(d.pools) {
		errs = append(errs, v.Close())
	}
	if d.below != nil {
		d.below()
	}
	return errors.Join(errs...)
}

// Ready returns nil if the database can be read. It does not test a write, because on SQLite a write can fail
// during a long transaction of another process.
func (d *DB) Ready(ctx context.Context) error {
	var n int
	return Translate(d.pools[len(d.pools)-1].QueryRowContext(ctx, d.dialect.readinessQuery()).Scan(&n))
}

// SharedByProcesses returns true if several processes can write at the same time. It returns false
// for SQLite, where only one process at a time can write.
func (d *DB) SharedByProcesses() bool { return hasRowLocks(d.write) }

// Now returns the time of Options.Now.
func (d *DB) Now() Instant { return InstantOf(d.now()) }

// Read returns a handle for queries outside of a transaction. The queries must not write.
func (d *DB) Read(ctx context.Context) *gorm.DB { return d.read.WithContext(ctx) }

// ReadCommitted returns a handle for queries outside of a transaction, on a connection that can also write. The queries see all committed
// data.
func (d *DB) ReadCommitted(ctx context.Context) *gorm.DB { return d.write.WithContext(ctx) }

const (
	// MaxAttempts is the maximum number of times that a transaction is run if it fails because of deadlocks, serialization failures or duplicates. While
	// a SQLite file is locked, only retryTimeout limits the attempts.
	MaxAttempts = 5
	// retryTimeout is the time after which a failed transaction is not run again. A transaction fails, for example, if another process has
	// the SQLite file locked.
	retryTimeout = 30 * time.Second
)

// Tx runs f in one transaction that can write. It retries f after conflicts, so f must have no
// effects outside of the transaction.
func (d *DB) Tx(ctx context.Context, f func(tx *gorm.DB) error) error {
	own, cancel := d.withTimeout(ctx)
	defer cancel()
	retry, stop := context.WithTimeout(own, retryTimeout)
	defer stop()
	for attempt := 1; ; attempt++ {
		err := d.write.WithContext(own).Transaction(f)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && !errors.Is(err, ctx.Err()): // add the context's error, because the driver's error only says that the transaction has ended
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case ctx.Err() == nil && own.Err() != nil:
			return fmt.Errorf("%w: the transaction did not end within %s: %w", ErrUnavailable, d.timeout, err)
		case retry.Err() != nil, !d.dialect.isRetryable(err, attempt):
			return Translate(err)
		}
		if waitFor(retry, time.Duration(min(attempt, MaxAttempts)*min(attempt, MaxAttempts))*5*time.Millisecond) != nil {
			return Translate(err)
		}
	}
}

// withTimeout returns ctx with a deadline after Options.Timeout. If ctx already has a deadline or Options.Timeout is 0, it adds no deadline.
func (d *DB) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok || d.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d.timeout)
}

// RetryOnDuplicate runs runTx until it does not fail with ErrDuplicate, at most MaxAttempts times.
func RetryOnDuplicate(runTx func() error) error {
	for attempt := 1; ; attempt++ {
		// ErrDuplicate means that another transaction has inserted the same row meanwhile. The next attempt
		// finds this row.
		if err := runTx(); !errors.Is(err, ErrDuplicate) || attempt == MaxAttempts {
			return err
		}
	}
}

// NewID returns a new UUIDv7. Ids sort by the time of their creation: a later id is greater.
func NewID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// DeleteBatch is the maximum number of rows that one transaction of a clean-up deletes.
const DeleteBatch = 500

// DeleteInBatches runs f in one transaction after another, until f deletes fewer than batchSize
// rows. It adds the numbers of deleted rows to deleted[table]. It calls keepAlive after each
// transaction, and stops if keepAlive fails.
func (d *DB) DeleteInBatches(ctx context.Context, table string, deleted map[string]int64, keepAlive func() error, batchSize int64, f func(tx *gorm.DB) (int64, error)) error {
	for {
		var n int64
		err := d.Tx(ctx, func(tx *gorm.DB) (err error) {
			// The function f returns the number of rows that it has deleted.
			n, err = f(tx)
			return err
		})
		if err != nil {
			return err
		}
		deleted[table] += n
		if err := keepAlive(); err != nil {
			return err
		}
		if n < batchSize {
			return nil
		}
	}
}
