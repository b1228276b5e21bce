package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// replicaTimeout is how long a read on the replica may take. After this time, the primary is asked instead.
	replicaTimeout = 5 * time.Second
	// replicaProbeInterval is the time between two checks of a replica that cannot be used, and the
	// time limit of each check.
	replicaProbeInterval = time.Second
)

// ErrReplica reports that a read on the replica failed, for example because the replica does not answer or lacks a needed change. The caller
// should repeat the read on the primary.
var ErrReplica = errors.New("the replica cannot answer")

var (
	// errBehind reports that the replica has not yet applied the version of the organisation's data that the read needs.
	errBehind = errors.New("the replica has not yet applied the last change of the organisation")
	// errPromoted reports that the server was promoted from a replica to a primary. The server no longer gets the changes of the old primary.
	errPromoted = errors.New("the server is no longer a replica")
)

// replica is a streaming replica of a PostgreSQL database. It answers reads that may take long, so that the primary has less work.
type replica struct {
	pool   *sql.DB
	below  func() // closes the connection pool of pgx; must be called after `pool` is closed
	logger *slog.Logger

	answered, behind, failed atomic.Int64 // numbers of reads: answered by the replica, failed with errBehind, and failed with another error
	away                     atomic.Bool  // the replica did not answer, and all reads go to the primary
	probes                   sync.WaitGroup
	stop                     context.CancelFunc // stops the goroutines in `probes`, which check whether the replica answers again
	running                  context.Context    //nolint:containedctx // ends when the DB is closed
}

// requirement says how new the data of an organisation must be for a read.
type requirement struct {
	org     uuid.UUID
	version int64 // the version of the organisation's data on the primary
}

// openReplica prepares connections to the replica at o.ReadURL, but does not connect. So the
// program can start while the replica is down.
func openReplica(ctx context.Context, o Options, primary connections) (*replica, error) {
	if primary.sharded || len(primary.pools) != 1 {
		return nil, errors.New("a replica for reads is possible only for a PostgreSQL database without Citus")
	}
	cfg, err := postgresConfig(o.ReadURL, o)
	if err != nil {
		return nil, fmt.Errorf("the URL of the replica: %w", err)
	}
	const cluster = "SELECT CAST(system_identifier AS text) FROM pg_control_system()"
	var want string
	if err := primary.pools[0].QueryRowContext(ctx, cluster).Scan(&want); err != nil {
		return nil, fmt.Errorf("the identifier of the database's cluster cannot be read: %w", Translate(err))
	}
	// Each new connection checks that the server belongs to the same cluster as the primary.
	prepare := cfg.AfterConnect
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		var have string
		if err := conn.QueryRow(ctx, cluster).Scan(&have); err != nil {
			return err
		}
		if have != want {
			return errors.New("the server is not a replica of the database")
		}
		// With the isolation level "repeatable read", all statements that are sent together see the
		// same data as replicaCheck, which runs before them.
		if _, err := conn.Exec(ctx, "SET default_transaction_isolation = 'repeatable read'"); err != nil {
			return err
		}
		return prepare(ctx, conn)
	}
	below, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(boundedConnector{stdlib.GetPoolConnector(below)})
	pool.SetMaxIdleConns(0) // the pgx pool keeps the idle connections
	r := &replica{pool: pool, below: below.Close, logger: o.Logger}
	r.running, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	return r, nil
}

// close closes all connections. It also ends the regular checks of a replica that does not answer.
func (r *replica) close() error {
	r.stop()
	r.probes.Wait()
	err := r.pool.Close()
	r.below()
	return err
}

// HasReplica returns true if there is a replica and it answers.
func (d *DB) HasReplica() bool { return d.replica != nil && !d.replica.away.Load() }

// OnReplica returns a DB whose EachRow and EachRowOf read from the replica, or return an
// ErrReplica. All other methods use the primary. A replica must exist.
func (d *DB) OnReplica(org uuid.UUID, version int64) *DB {
	on := *d
	on.required = &requirement{org, version}
	return &on
}

// replicaCheck is the statement that precedes each read on the replica.
const replicaCheck = "SELECT organisation_totals.version, pg_is_in_recovery() FROM organisation_totals WHERE organisation_totals.organisation_id = $1"

// eachRow sends replicaCheck and the statements to the replica together. If eachRow returns an
// ErrReplica, callbacks of the statements may already have been called for some rows.
func (r *replica) eachRow(ctx context.Context, d dialect, required requirement, statements []statement) error {
	check := errBehind // the variable "check" stays errBehind if replicaCheck returns no row: the replica then does not have the organisation yet
	var stopped error  // the error that a callback returned for a row; each statement has a callback
	all := []statement{{query: replicaCheck, args: []any{required.org}, each: func(row *Values) error {
		switch {
		case !row.IsTrue(1):
			check = errPromoted
		case row.Count(0) >= required.version:
			check = nil
		}
		return check
	}}}
	for _, s := range statements {
		each := s.each
		s.each = func(row *Values) error {
			stopped = each(row)
			return stopped
		}
		all = append(all, s)
	}
	bounded, cancel := context.WithTimeout(ctx, replicaTimeout)
	defer cancel()
	err := d.eachRow(bounded, r.pool, all)
	switch {
	case check == nil && (err == nil || stopped != nil):
		r.answered.Add(1)
		return stopped
	case ctx.Err() != nil: // the caller has cancelled the read
		return err
	case err == nil || errors.Is(err, errBehind):
		r.behind.Add(1)
		return fmt.Errorf("%w: %w", ErrReplica, errBehind)
	}
	r.failed.Add(1)
	if isLastingFailure(err) {
		r.usePrimary(err)
	} else {
		r.logger.InfoContext(ctx, "the replica could not answer a read", "error", err)
	}
	return fmt.Errorf("%w: %w", ErrReplica, err)
}

// isLastingFailure returns true if err means that the next reads will fail too. It returns false
// for errors of single statements.
func isLastingFailure(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		// An error with any other code concerns only one statement, for example because of a conflict with a
		// change from the primary.
		return strings.HasPrefix(e.Code, "57P") // the server shuts down or starts
	}
	return true
}

// usePrimary sends all reads to the primary until the replica answers again.
func (r *replica) usePrimary(cause error) {
	if !r.away.CompareAndSwap(false, true) {
		return
	}
	r.logger.Warn("the replica cannot be used", "error", cause)
	r.probes.Go(func() {
		for waitFor(r.running, replicaProbeInterval) == nil {
			probe, cancel := context.WithTimeout(r.running, replicaProbeInterval)
			var isReplica bool
			err := r.pool.QueryRowContext(probe, "SELECT pg_is_in_recovery()").Scan(&isReplica)
			cancel()
			if err == nil && isReplica {
				r.away.Store(false)
				r.logger.Warn("the replica answers again")
				return
			}
		}
	})
}

// ReplicaState is the state of the replica for reads.
type ReplicaState struct {
	Up       bool          // the replica answers, and applies the log of the primary
	Lag      time.Duration // age of the last change that the replica has applied; 0 if the replica has all changes
	Answered int64         // number of reads that the replica has answered since the start of the program
	Behind   int64         // number of reads that the primary answered because the replica lacked a change of the organisation
	Failed   int64         // number of reads that the primary answered because the replica failed
}

// Replica returns the state of the replica. It returns false if there is no replica.
func (d *DB) Replica(ctx context.Context) (s ReplicaState, ok bool) {
	r := d.replica
	if r == nil {
		return s, false
	}
	s.Answered, s.Behind, s.Failed = r.answered.Load(), r.behind.Load(), r.failed.Load()
	var written string
	if d.pools[0].QueryRowContext(ctx, "SELECT CAST(pg_current_wal_lsn() AS text)").Scan(&written) != nil {
		return s, true
	}
	var seconds float64
	const lag = `SELECT pg_is_in_recovery(), CASE WHEN pg_last_wal_replay_lsn() >= CAST($1 AS pg_lsn) THEN 0
 ELSE COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0) END`
	s.Up = r.pool.QueryRowContext(ctx, lag, written).Scan(&s.Up, &seconds) == nil && s.Up
	s.Lag = max(0, time.Duration(seconds*float64(time.Second)))
	return s, true
}
