// Package storetest gives tests real databases: a new SQLite file or a new PostgreSQL database for each test, with the current schema.
//
//   - storetest.go: [Each] runs a test on every engine. [DB] is its database, with the store, the queue and the writer of answers.
//   - fixture.go: organisations, links, claims and outcomes that the tests of several packages use
//   - guard.go, rules.go, binding.go, syntax.go: the [Guard] that sees every statement. It parses the statement and refuses it if it could read or change data of another organisation. See [CheckStatement].
//   - raw.go: access to the database without the store
//   - server.go: a PostgreSQL server that a test can crash and freeze
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
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// PostgresURL is the environment variable with the URL of a PostgreSQL server on which tests may create and drop databases.
const PostgresURL = "REELTALLY_TEST_POSTGRES_URL"

// Engines are the engines on which Each runs a test.
var Engines = []string{"sqlite", "postgres"}

// SkipIfShort skips a test in short mode, which `make test` uses. Call it in tests that take long or need other programs
// than Go and PostgreSQL. `make check` runs all tests, and fails if one is skipped.
func SkipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped by -short; make check runs this test")
	}
}

// DB is a new database with the current schema.
type DB struct {
	*store.Store
	*queue.Queue
	*ingest.Writer
	// URL is the URL with which the database can be opened again.
	URL string
	// Engine is one of Engines.
	Engine string
	// Clock is the store's clock.
	Clock *Clock
	// Guard sees every statement of the store.
	Guard *Guard

	mu  sync.Mutex
	raw *sql.DB // see Raw
}

// Each runs a test on every engine, each time with a new database. It fails if there is no PostgreSQL.
func Each(t *testing.T, run func(t *testing.T, db *DB)) {
	t.Helper()
	for _, engine := range Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			run(t, New(t, engine))
		})
	}
}

// New returns a new database of an engine. It is closed and deleted when the test ends.
func New(t testing.TB, engine string) *DB {
	t.Helper()
	return newDB(t, NewURL(t, engine), engine)
}

// NewEmpty returns a new database without any table.
func NewEmpty(t testing.TB, engine string) *DB {
	t.Helper()
	return newDB(t, Empty(t, engine), engine)
}

func newDB(t testing.TB, databaseURL, engine string) *DB {
	t.Helper()
	db := &DB{URL: databaseURL, Engine: engine, Clock: NewClock(), Guard: &Guard{}}
	db.Store = db.Open(t)
	db.Queue, db.Writer = db.Store.Queue, ingest.New(db.Store)
	t.Cleanup(func() { require.NoError(t, db.closeRaw()) })
	return db
}

// Open opens the database again, as another process would.
func (db *DB) Open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: db.Guard.Inspect})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// NewURL makes a new database of an engine with the current schema, and returns its URL.
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
	// STRATEGY FILE_COPY is many times faster than the default, which writes the whole template to the log.
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

// newDatabase makes a PostgreSQL database, which is dropped when the test ends, and returns its URL.
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

// sqliteTemplate returns an empty database with the current schema. It is made once for each test process.
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
	return os.ReadFile(path) //nolint:gosec // a path that this function has made
})

// postgresTemplate returns the name of a database with the current schema, which is copied for each test. It is not dropped, because the
// server is deleted after the test run.
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
		panic(err) // the server's URL was valid a moment ago
	}
	u.Path = "/" + name
	return u.String()
}

// Clock is a clock that stands still until a test moves it. It starts at the real time, because quota windows, tokens and partitions use
// real days.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock at noon of today, UTC, so that tests that add hours do not pass midnight.
func NewClock() *Clock {
	t := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	return &Clock{now: t}
}

// Now returns the clock's time.
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

// Set sets the clock to a time.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}
