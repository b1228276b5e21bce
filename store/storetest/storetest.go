// Package storetest gives tests real stores: a fresh SQLite file and a fresh PostgreSQL database each, migrated, with
// every statement held to the rules for SQL.
package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx", to make and drop databases
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

// PostgresURL is the variable that names a PostgreSQL server on which tests may make and drop databases.
const PostgresURL = "REELTALLY_TEST_POSTGRES_URL"

// Engines are the engines that every store case runs on.
var Engines = []string{"sqlite", "postgres"}

// SkipIfShort skips a test in short mode, which `make test` uses. Call it in tests that take long or need other programs
// than Go and PostgreSQL. `make check` runs all tests, and fails if one is skipped.
func SkipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped by -short; make check runs this test") //nolint:forbidigo // make check runs without -short and fails if a test is skipped
	}
}

// DB is a fresh, migrated database of a test.
type DB struct {
	*store.Store
	// URL opens the same database again.
	URL string
	// Engine is one of Engines.
	Engine string
	// Clock is the store's clock.
	Clock *Clock
	// Guard has seen every statement.
	Guard *Guard

	mu  sync.Mutex
	raw *sql.DB // see Raw
}

// Each runs a case on every engine, each with a database of its own. A missing PostgreSQL fails the test.
func Each(t *testing.T, run func(t *testing.T, db *DB)) {
	t.Helper()
	for _, engine := range Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			run(t, New(t, engine))
		})
	}
}

// New returns a fresh database of an engine, closed and removed when the test ends.
func New(t testing.TB, engine string) *DB {
	t.Helper()
	return newDB(t, NewURL(t, engine), engine)
}

// NewEmpty is New without any table.
func NewEmpty(t testing.TB, engine string) *DB {
	t.Helper()
	return newDB(t, Empty(t, engine), engine)
}

func newDB(t testing.TB, databaseURL, engine string) *DB {
	t.Helper()
	db := &DB{URL: databaseURL, Engine: engine, Clock: NewClock(), Guard: &Guard{}}
	db.Store = db.Open(t)
	t.Cleanup(func() { require.NoError(t, db.closeRaw()) })
	return db
}

// Open opens the database once more, as another process would.
func (db *DB) Open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: db.Guard.Inspect})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// NewURL makes a fresh, migrated database of an engine and returns its URL.
func NewURL(t testing.TB, engine string) string {
	t.Helper()
	if engine == "sqlite" {
		path := filepath.Join(t.TempDir(), "reeltally.db")
		content, err := sqliteTemplate()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return "sqlite:" + path
	}
	requirePostgres(t)
	template, err := postgresTemplate()
	require.NoError(t, err)
	// Copying files is many times faster than the default, which writes the whole template into the log.
	return newDatabase(t, " TEMPLATE "+template+" STRATEGY FILE_COPY")
}

// Empty returns the URL of a database without any table.
func Empty(t testing.TB, engine string) string {
	t.Helper()
	if engine == "sqlite" {
		return "sqlite:" + filepath.Join(t.TempDir(), "reeltally.db")
	}
	requirePostgres(t)
	return newDatabase(t, "")
}

func requirePostgres(t testing.TB) {
	t.Helper()
	require.NotEmpty(t, os.Getenv(PostgresURL),
		"%s is not set: run the tests by `make test`, which starts a PostgreSQL, or set it to a server on which tests may make databases", PostgresURL)
}

// newDatabase makes a PostgreSQL database, dropped when the test ends, and returns its URL.
func newDatabase(t testing.TB, options string) string {
	t.Helper()
	name := "t_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	require.NoError(t, onServer(func(admin *sql.DB) error {
		_, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+name+options)
		return err
	}))
	t.Cleanup(func() {
		require.NoError(t, onServer(func(admin *sql.DB) error {
			_, err := admin.ExecContext(context.Background(), fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name))
			return err
		}))
	})
	return database(os.Getenv(PostgresURL), name)
}

// sqliteTemplate is a migrated, empty database, made once in a test process.
var sqliteTemplate = sync.OnceValues(func() (content []byte, err error) {
	dir, err := os.MkdirTemp("", "reeltally-template")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "template.db")
	if err := migrate("sqlite:" + path); err != nil {
		return nil, err
	}
	return os.ReadFile(path) //nolint:gosec // our own path
})

// postgresTemplate is the name of a migrated database that is copied for each test. It is left to the server, which the
// test run throws away.
var postgresTemplate = sync.OnceValues(func() (string, error) {
	name := "template_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	err := onServer(func(admin *sql.DB) error {
		_, err := admin.ExecContext(context.Background(), "CREATE DATABASE "+name)
		return err
	})
	if err != nil {
		return "", err
	}
	return name, migrate(database(os.Getenv(PostgresURL), name))
})

func migrate(databaseURL string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{URL: databaseURL, Now: NewClock().Now})
	if err != nil {
		return err
	}
	if _, err := s.Migrate(ctx); err != nil {
		return err
	}
	return s.Close()
}

func onServer(do func(*sql.DB) error) error {
	admin, err := sql.Open("pgx", os.Getenv(PostgresURL))
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close() }()
	return do(admin)
}

// database returns the URL of another database on the same server.
func database(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic(err) // the server's URL was used a moment ago
	}
	u.Path = "/" + name
	return u.String()
}

// Clock is a clock that stands still until it is moved. It starts at the real time, since quota windows, tokens and
// partitions are about real days.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows today's noon, UTC: tests that count hours do not meet midnight.
func NewClock() *Clock {
	t := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	return &Clock{now: t}
}

// Now returns the time shown.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock ahead.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set moves the clock to a time.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}
