package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/queue"
)

// Options are the settings of a Store.
type Options = db.Options

// Store is the database with the data of all organisations. Its methods can be called concurrently.
type Store struct {
	// Queue is the fetch queue, which is stored in the same database.
	Queue *queue.Queue

	db              *db.DB
	maxCollections  int
	counts          *sizedCache[listKey, int64]
	pageStarts      *sizedCache[pageStart, db.Position]
	labels          *labelCache
	sequences       *sizedCache[listKey, *db.Sequence]
	totals          *sizedCache[totalsKey, CollectionTotals]
	queries         queries
	maxSequenceRows int // the cache "sequences" keeps the order of a list only if the list has at most this number of rows
}

// Open connects to the database. It does not create or change tables. Migrate changes the tables, and CheckSchema returns an error if
// this program cannot use the schema.
func Open(ctx context.Context, o Options) (*Store, error) {
	d, err := db.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Store{Queue: queue.New(d), db: d,
		counts:     newSizedCache[listKey](maxCounts, maxCounts, func(int64) int64 { return 1 }),
		pageStarts: newSizedCache[pageStart](maxPageStarts, maxPageStarts, func(db.Position) int64 { return 1 }),
		labels:     newLabelCache(), sequences: newSequenceCache(), totals: newTotalsCache(), maxSequenceRows: maxSequenceRows, queries: newQueries(d),
		maxCollections: cmp.Or(o.MaxCollections, DefaultMaxCollections)}, nil
}

// queries are SQL queries of frequent requests. Their texts never change.
type queries struct {
	version          db.StaticQuery // the version of an organisation: see versionQuery
	storedPoints     db.StaticQuery // all points of a video in a range of days, in order
	newestPoints     db.StaticQuery // two points of a video in a range of days: the newest daily point and the newest weekly point
	oldestPoints     db.StaticQuery // two points of a video in a range of days: the oldest daily point and the oldest weekly point
	organisationDays db.StaticQuery // the points of an organisation in a range of days
	accountDays      db.StaticQuery // the points of an account in a range of days
}

// newQueries returns the queries in the SQL dialect of a database.
func newQueries(d *db.DB) queries {
	outermost := func(order string) db.StaticQuery {
		return d.StaticQuery(strings.ReplaceAll(outermostPoints, "{order}", order) + pointsInOrder)
	}
	return queries{version: d.StaticQuery(versionQuery), storedPoints: d.StaticQuery(storedPoints + pointsInOrder),
		newestPoints: outermost("DESC"), oldestPoints: outermost("ASC"), organisationDays: d.StaticQuery(organisationDays), accountDays: d.StaticQuery(accountDays)}
}

// DB returns the database for store/ingest, store/backfill and store/backup. Unlike the methods of Org, these packages are not limited to one
// organisation.
func (s *Store) DB() *db.DB { return s.db }

// Close closes all connections. It can be called more than once.
func (s *Store) Close() error { return s.db.Close() }

// Migrate applies all migrations that the schema lacks and returns their numbers. Several processes can call it at the same time.
func (s *Store) Migrate(ctx context.Context) ([]int64, error) { return s.db.Migrate(ctx) }

// Schema returns the version of the schema in the database, or 0 for an empty database, and the
// version for which this program was built.
func (s *Store) Schema(ctx context.Context) (have, want int64, err error) { return s.db.Schema(ctx) }

// Distribute divides the tables between the nodes of a Citus cluster, and returns the names of the tables that were not distributed before.
func (s *Store) Distribute(ctx context.Context) ([]string, error) { return s.db.Distribute(ctx) }

// CheckSchema returns a *SchemaError if this program cannot use the schema. The schema is then older than the program needs, or a newer version has
// changed the schema so that this program does not work with it.
func (s *Store) CheckSchema(ctx context.Context) error { return s.db.CheckSchema(ctx) }

// Ready returns nil if the database can be read. It does not check writes.
func (s *Store) Ready(ctx context.Context) error { return s.db.Ready(ctx) }

// Retention returns for how many days the points of histories are kept.
func (s *Store) Retention() db.Retention { return s.db.Retention() }

// Engine returns the name, version and current time of the database engine.
func (s *Store) Engine(ctx context.Context) (db.Engine, error) { return s.db.Engine(ctx) }

// CheckClock returns a *ClockError if the store's clock may be wrong. In that case, rows must not be deleted by their age.
func (s *Store) CheckClock(ctx context.Context) error { return s.db.CheckClock(ctx) }

// CompareClocks returns a *ClockError if the store's clock differs from the clock of PostgreSQL by more than a minute. In that case, nothing must be
// fetched.
func (s *Store) CompareClocks(ctx context.Context) error { return s.db.CompareClocks(ctx) }

// PreparePartitions creates the monthly partitions of snapshots_daily for at least last month, this month and next month. It does nothing on SQLite,
// which has no partitions.
func (s *Store) PreparePartitions(ctx context.Context) error { return s.db.PreparePartitions(ctx) }

// SharedByProcesses returns true if several processes can write at the same time without waiting for each other. It is false for SQLite.
func (s *Store) SharedByProcesses() bool { return s.db.SharedByProcesses() }

// Secret returns the 32 random bytes that the database stores under a name. The first call creates them. All processes that use the
// database get the same bytes.
func (s *Store) Secret(ctx context.Context, name string) ([]byte, error) {
	type setting struct {
		Name  string
		Value []byte
	}
	fresh := make([]byte, 32)
	if _, err := rand.Read(fresh); err != nil {
		return nil, err
	}
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		return tx.Table("settings").Clauses(clause.OnConflict{DoNothing: true}).Create(&setting{name, fresh}).Error
	})
	if err != nil {
		return nil, err
	}
	var stored setting
	if err := s.db.ReadCommitted(ctx).Table("settings").Where("name = ?", name).Take(&stored).Error; err != nil {
		return nil, db.Translate(err)
	}
	return stored.Value, nil
}
