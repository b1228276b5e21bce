package ingest_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// startDump takes the locks that a running pg_dump has: ACCESS SHARE on every table. The returned function releases the locks.
func startDump(t *testing.T, db *storetest.DB) (end func()) {
	t.Helper()
	return lockTables(t, db, "ACCESS SHARE", storetest.Column[string](t, db,
		"SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')")...)
}

// lockTables locks tables in a lock mode such as "ACCESS SHARE". The returned function releases the locks.
func lockTables(t *testing.T, db *storetest.DB, mode string, tables ...string) (release func()) {
	t.Helper()
	require.NotEmpty(t, tables)
	tx, err := db.Raw(t).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	for _, table := range tables {
		_, err = tx.ExecContext(t.Context(), "LOCK TABLE "+table+" IN "+mode+" MODE")
		require.NoError(t, err)
	}
	return func() { require.NoError(t, tx.Rollback()) }
}

// runConcurrently runs a function in a goroutine. It returns when the function has ended, or when the function waits for a database lock. The returned
// channel receives the function's error.
func runConcurrently(t *testing.T, db *storetest.DB, f func() error) (result <-chan error) {
	t.Helper()
	done, ended := make(chan error, 1), make(chan struct{})
	go func() {
		done <- f()
		close(ended)
	}()
	require.Eventually(t, func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		var waiting int
		err := db.Raw(t).QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
 WHERE NOT granted AND d.datname = current_database()`).Scan(&waiting)
		return err == nil && waiting > 0
	}, time.Minute, time.Millisecond)
	return done
}

// readTimeout is longer than any read takes on a busy machine, but shorter than a read that waits until the
// simulated dump of the database ends.
const readTimeout = 10 * time.Second

// historyReader returns a function that reads the history of a video. The returned function fails if the read takes longer than maxDuration.
func historyReader(t *testing.T, db *storetest.DB) (read func(maxDuration time.Duration) error) {
	t.Helper()
	o := storetest.NewOrg(t, db)
	id := storetest.Track(t, o, storetest.VideoLink(t, 1))[0].ID
	return func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := o.History(ctx, store.Ref{ID: id}, storetest.Today(db)-30, storetest.Today(db))
		return err
	}
}

func countPartitions(t *testing.T, db *storetest.DB) int { return len(partitions(t, db)) }

// pg_dump holds ACCESS SHARE on every table while it runs. Creating the partition of a new month neither waits for that lock nor delays
// reads.
func TestPartitions_areCreatedDuringADumpWithoutDelayingReads(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(ctx context.Context, db *storetest.DB) error{
		"daily job": func(ctx context.Context, db *storetest.DB) error {
			_, err := db.ApplyRetention(ctx, storetest.NeverStop)
			return err
		},
		"written point": func(ctx context.Context, db *storetest.DB) error {
			untracked := storetest.Outcome(db, queue.Target{Platform: link.TikTok, Kind: "video", ExternalID: "0"}, storetest.Views(1))
			return db.Acknowledge(ctx, queue.Claim{}, store.InstantOf(db.Clock.Now().AddDate(0, 0, 62)), []ingest.Outcome{untracked})
		},
		"migration": func(ctx context.Context, db *storetest.DB) error {
			_, err := db.Migrate(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t, "postgres")
			read, before := historyReader(t, db), countPartitions(t, db)
			end := startDump(t, db)
			db.Clock.Advance(40 * 24 * time.Hour)
			changed := runConcurrently(t, db, func() error { return change(t.Context(), db) })
			err := read(readTimeout)
			end()
			require.NoError(t, err, "a read must not wait for the dump")
			require.NoError(t, <-changed)
			require.Greater(t, countPartitions(t, db), before)
		})
	}
}

// If a migration does not get its lock within a short time, it stops waiting and tries again later. Otherwise all reads would wait behind
// the migration.
func TestMigrate_doesNotDelayReadsDuringADump(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	_, err := storetest.Migrations(t, db).Down(t.Context())
	require.NoError(t, err)
	end := startDump(t, db)
	migrated := runConcurrently(t, db, func() error {
		_, err := db.Migrate(t.Context())
		return err
	})
	ctx, cancel := context.WithTimeout(t.Context(), readTimeout)
	defer cancel()
	for range 20 { // some of these reads happen while the migration waits for its lock
		if _, err = db.Pauses(ctx); err != nil {
			break
		}
	}
	end()
	require.NoError(t, err, "a read must not wait for the dump")
	require.NoError(t, <-migrated)
	require.NoError(t, db.CheckSchema(t.Context()))
}

// The drop of a partition is postponed while another session uses the table. Otherwise, reads would
// wait for the exclusive lock of the drop.
func TestRetention_doesNotDropAPartitionWhileItIsInUse(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	storetest.CreatePartitions(t, db, 200)
	read := historyReader(t, db)
	end := startDump(t, db)
	var got error
	reading := make(chan struct{})
	db.Guard.BeforeStatement("DROP TABLE", func() {
		go func() {
			defer close(reading)
			got = read(1500 * time.Millisecond)
		}()
	})
	done, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
	require.NoError(t, err)
	require.NotEmpty(t, done.Busy)
	<-reading
	require.NoError(t, got)
	end()
	again, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
	require.NoError(t, err)
	require.Equal(t, done.Busy, again.Months)
}

// If the partition of a month cannot be created yet, Acknowledge returns ErrUnavailable for a point of that month. It still writes points
// of other months.
func TestAcknowledge_refusesAPointIfThePartitionOfItsMonthCannotBeCreated(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	target := trackOneVideo(t, db)
	release := lockTables(t, db, "SHARE UPDATE EXCLUSIVE", "snapshots_daily")
	late := store.InstantOf(db.Clock.Now().AddDate(0, 0, 120))
	write := func(at store.Instant) error {
		ctx, cancel := context.WithTimeout(t.Context(), readTimeout)
		defer cancel()
		return db.Acknowledge(ctx, queue.Claim{}, at, []ingest.Outcome{storetest.Outcome(db, target, storetest.Views(7))})
	}
	refused := write(late)
	written := write(store.InstantOf(db.Clock.Now()))
	release()
	require.ErrorIs(t, refused, store.ErrUnavailable)
	require.NoError(t, written)
	require.NoError(t, write(late))
	require.Equal(t, []int64{7, 7}, storetest.Column[int64](t, db, "SELECT views FROM snapshots_daily ORDER BY day"))
}

// trackOneVideo tracks one video and returns its target.
func trackOneVideo(t *testing.T, db *storetest.DB) queue.Target {
	t.Helper()
	storetest.Track(t, storetest.NewOrg(t, db), storetest.VideoLink(t, 1))
	c := storetest.VideoLink(t, 1)
	return queue.Target{Platform: c.Platform, Kind: "video", ExternalID: c.ID}
}

// A partition can be created as a table and then attached, or it can be created with PARTITION OF. Both ways give the same columns and keys.
func TestAttachedPartitions_haveTheSameColumnsAndKeysAsOtherPartitions(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres")
	describe := func(partition string) (lines []string) {
		for _, query := range []string{
			"SELECT attname || ' ' || format_type(atttypid, atttypmod) || ' ' || CAST(attnotnull AS text) FROM pg_attribute WHERE attrelid = CAST(? AS text)::regclass AND attnum > 0 ORDER BY attnum",
			"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = CAST(? AS text)::regclass ORDER BY 1",
		} {
			lines = append(lines, storetest.Column[string](t, db, query, partition)...)
		}
		return lines
	}
	db.Exec(t, "CREATE TABLE snapshots_daily_190001 PARTITION OF snapshots_daily FOR VALUES FROM ('1900-01-01') TO ('1900-02-01')")
	want := describe("snapshots_daily_190001")
	require.NotEmpty(t, want)
	for _, partition := range partitions(t, db) {
		require.Equal(t, want, describe(partition), partition)
	}
	require.Equal(t, sql.NullString{}, storetest.Column[sql.NullString](t, db, "SELECT MAX(relname) FROM pg_class WHERE relname LIKE 'snapshots_daily_%' AND relkind = 'r' AND NOT relispartition")[0])
}
