// Package storetest provides databases for tests: a new SQLite file or a new PostgreSQL database for each test, with the current schema.
//
//   - storetest.go: [Each] runs a test on every engine. [DB] is the database of a test, with the store, the queue and the writer of answers.
//   - fixture.go: organisations, links, videos and accounts that the tests of several packages use
//   - claim.go, outcomes.go: claims of targets, and outcomes of fetches
//   - series.go: histories of points, and the results that roll-up and histories must have
//   - guard.go, rules.go, block.go, from.go, restrictions.go, parameters.go, syntax.go: the [Guard], which parses every statement of the store.
//     It refuses a statement that could read or change data of another organisation. See [CheckStatement].
//   - mutants.go, statements.go, routing.go: statements without a condition, and the list of all statements in docs/evidence/statements.md
//   - citus.go: the stand-in for the extension Citus
//   - cluster.go: databases on a real Citus cluster
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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver "pgx", with which this package creates and drops databases
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// PostgresURL is the environment variable with the URL of a PostgreSQL server on which tests may create and drop databases.
const PostgresURL = "REELTALLY_TEST_POSTGRES_URL"

// Engines are the names of the engines on which every test of a database runs.
var Engines = []string{"sqlite", "postgres"}

// EngineVariable is the name of an environment variable. If its value is "citus", the function Each runs tests on the engine "citus"
// instead of "sqlite" and "postgres".
const EngineVariable = "REELTALLY_TEST_ENGINE"

// StoreEngines returns the engines on which the function "Each" runs a test. They are the names in
// Engines, unless EngineVariable is set to "citus".
func StoreEngines() []string {
	if os.Getenv(EngineVariable) == "citus" {
		return []string{"citus"}
	}
	return slices.Clone(Engines)
}

// SkipIfShort skips a test in short mode, which `make test` uses. It is for tests that take long or
// need programs other than Go and PostgreSQL.
func SkipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped by -short; make check runs this test") //nolint:forbidigo // make check runs without -short and fails if a test is skipped
	}
}

// DB is a new database for one test.
type DB struct {
	*store.Store
	*queue.Queue
	*ingest.Writer
	// URL is the database URL, with which a test can open the database again.
	URL string
	// Engine is the name of the engine: "sqlite", "postgres" or "citus".
	Engine string
	// Clock is the clock that the store reads.
	Clock *Clock
	// Guard inspects every statement of the store.
	Guard *Guard

	mu  sync.Mutex
	raw *sql.DB // the pool that Raw returns; nil before the first call
}

// Each is a function that runs one subtest for every engine that StoreEngines returns. Every subtest
// gets a new database.
func Each(t *testing.T, run func(t *testing.T, db *DB)) {
	t.Helper()
	for _, engine := range StoreEngines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			run(t, New(t, engine))
		})
	}
}

// New returns a new database of an engine with the current schema. The database is closed and deleted when the test ends.
func New(t testing.TB, engine string) *DB {
	t.Helper()
	return newDB(t, CreateDatabase(t, engine), engine)
}

// NewEmpty returns a new database of an engine. The database has no tables. The database is closed and deleted when the test ends.
func NewEmpty(t testing.TB, engine string) *DB {
	t.Helper()
	return newDB(t, CreateEmptyDatabase(t, engine), engine)
}

// newDB opens the database with the given URL, with a new Clock and a new Guard.
func newDB(t testing.TB, databaseURL, engine string) *DB {
	t.Helper()
	db := &DB{URL: databaseURL, Engine: engine, Clock: NewClock(), Guard: &Guard{Engine: engine}}
	db.Store = db.Open(t)
	db.Queue, db.Writer = db.Store.Queue, ingest.New(db.Store)
	t.Cleanup(func() { require.NoError(t, db.closeRawPool()) })
	return db
}

// Open opens the test's database again, with connections of its own, as a second process would do. The Store is closed when the test ends.
func (db *DB) Open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: db.Guard.Inspect})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// CreateDatabase creates a database of an engine with the current schema, and returns its URL.
func CreateDatabase(t testing.TB, engine string) string {
	t.Helper()
	if engine == "sqlite" {
		path := filepath.Join(t.TempDir(), "reeltally.db")
		content, err := sqliteTemplate()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return "sqlite:" + path
	}
	if usesCluster(engine) { // PostgreSQL cannot copy a database to which Citus has connections, so there is no template
		url := CreateEmptyDatabase(t, engine)
		require.NoError(t, applyMigrations(url))
		require.NoError(t, distributeTables(url))
		return url
	}
	requirePostgres(t)
	template, err := templates[engine]()
	require.NoError(t, err)
	// STRATEGY FILE_COPY is many times faster than the default, which writes the whole template to the log.
	return newDatabase(t, " TEMPLATE "+template+" STRATEGY FILE_COPY")
}

// CreateEmptyDatabase creates a database of an engine without any table, and returns its URL.
func CreateEmptyDatabase(t testing.TB, engine string) string {
	t.Helper()
	if engine == "sqlite" {
		return "sqlite:" + filepath.Join(t.TempDir(), "reeltally.db")
	}
	if usesCluster(engine) {
		return createOnCluster(t, newDatabaseName())
	}
	requirePostgres(t)
	url := newDatabase(t, "")
	if engine == "citus" {
		require.NoError(t, withConnection(url, func(db *sql.DB) error {
			_, err := db.ExecContext(t.Context(), standIn)
			return err
		}))
	}
	return url
}

// requirePostgres fails the test if PostgresURL is not set.
func requirePostgres(t testing.TB) {
	t.Helper()
	require.NotEmpty(t, os.Getenv(PostgresURL),
		"%s is not set: run the tests by `make test`, which starts a PostgreSQL, or set it to a server on which tests may create databases", PostgresURL)
}

// newDatabase creates a PostgreSQL database and returns its URL. The database is dropped when the test ends. The options are the text after the name
// in the statement CREATE DATABASE.
func newDatabase(t testing.TB, options string) string {
	t.Helper()
	name := newDatabaseName()
	require.NoError(t, withServerConnection(func(admin *sql.DB) error {
		_, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+name+options)
		return err
	}))
	t.Cleanup(func() {
		require.NoError(t, withServerConnection(func(admin *sql.DB) error {
			_, err := admin.ExecContext(context.Background(), fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name))
			return err
		}))
	})
	return withDatabaseName(os.Getenv(PostgresURL), name)
}

// usesCluster returns true if the databases of an engine are on the real Citus cluster of CitusURL.
func usesCluster(engine string) bool { return engine == "citus" && os.Getenv(CitusURL) != "" }

// newDatabaseName returns a new name for the PostgreSQL database of a test.
func newDatabaseName() string { return "t_" + strings.ReplaceAll(uuid.NewString(), "-", "") }

// sqliteTemplate returns the content of a SQLite file with the current schema and no rows. Each test process creates the file once.
var sqliteTemplate = sync.OnceValues(func() (content []byte, err error) {
	dir, err := os.MkdirTemp("", "reeltally-template")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "template.db")
	if err := applyMigrations("sqlite:" + path); err != nil {
		return nil, err
	}
	return os.ReadFile(path) //nolint:gosec // the path is a temporary file that this function has created
})

// templates has a function for each engine that uses PostgreSQL. The function returns the name of a database
// with the current schema. Each test gets a copy of this database.
var templates = map[string]func() (string, error){
	"postgres": sync.OnceValues(func() (string, error) { return newTemplate("") }),
	"citus":    sync.OnceValues(func() (string, error) { return newTemplate(standIn) }),
}

// newTemplate runs extensionSQL in a new PostgreSQL database, creates the current schema, and returns
// the database's name. If extensionSQL is not "", it also distributes the tables.
func newTemplate(extensionSQL string) (string, error) {
	name := "template_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	url := withDatabaseName(os.Getenv(PostgresURL), name)
	// This database is not dropped, because the whole server is deleted after the test run.
	err := withServerConnection(func(admin *sql.DB) error {
		_, err := admin.ExecContext(context.Background(), "CREATE DATABASE "+name)
		return err
	})
	if err != nil {
		return "", err
	}
	if err := withConnection(url, func(db *sql.DB) error {
		_, err := db.ExecContext(context.Background(), extensionSQL)
		return err
	}); err != nil {
		return "", err
	}
	if err := applyMigrations(url); err != nil || extensionSQL == "" {
		return name, err
	}
	return name, distributeTables(url)
}

// distributeTables divides the tables of the database at the given URL between the nodes of Citus.
func distributeTables(databaseURL string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{URL: databaseURL, Now: NewClock().Now})
	if err != nil {
		return err
	}
	if _, err := s.Distribute(ctx); err != nil {
		return err
	}
	return s.Close()
}

// applyMigrations applies all migrations to the database at the given URL.
func applyMigrations(databaseURL string) error {
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

// withServerConnection calls f with a connection to the server of PostgresURL.
func withServerConnection(f func(*sql.DB) error) error {
	return withConnection(os.Getenv(PostgresURL), f)
}

// withConnection calls f with a connection to the PostgreSQL database at the given URL.
func withConnection(databaseURL string, f func(*sql.DB) error) error {
	admin, err := sql.Open("pgx", databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close() }()
	return f(admin)
}

// withDatabaseName returns a copy of the given database URL, with the given name of the database.
func withDatabaseName(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic(err) // url.Parse cannot fail, because the caller has already connected to the server with this URL
	}
	u.Path = "/" + name
	return u.String()
}

// Clock is a clock whose time changes only if a test changes it. It begins on the present day, because quota windows, tokens and partitions
// use real days.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows noon UTC of the present day, so that tests that add a few hours stay on the same day.
func NewClock() *Clock {
	t := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	return &Clock{now: t}
}

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock ahead by the duration d.
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
