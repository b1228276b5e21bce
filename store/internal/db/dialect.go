package db

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	sqlitedriver "modernc.org/sqlite"
	"modernc.org/sqlite/lib"
)

// dialect contains the operations that differ between the two database engines, SQLite and PostgreSQL.
type dialect interface {
	name() string
	// open connects to the database. If it fails, it also returns the connections that it has opened, so that the caller can close them.
	open(ctx context.Context, o Options) (connections, error)
	// gooseSettings returns the settings for the migration tool: its dialect, the folder of the migrations, and options.
	gooseSettings() (goose.Dialect, string, []goose.ProviderOption, error)
	// isRetryable returns true if a transaction that failed with err may succeed when it is run again. The attempt is the number of runs so far.
	isRetryable(err error, attempt int) bool
	// hasPartitions returns true if snapshots_daily has a partition for each month. The partition of a month must be created before the first point
	// of the month is written.
	hasPartitions() bool
	// versionQuery returns a query for the version, the current time and the unsafe settings of the database engine: see Engine. The time is NULL on
	// SQLite, which has no clock of its own.
	versionQuery() string
	// readinessQuery returns a statement that succeeds if the database can be read. It works with every schema, because it reads no table of
	// this program.
	readinessQuery() string
	// eachRow runs SELECT statements on a connection of pool, one after the other. For each row, it calls statement.each. eachRow stops at the first
	// error.
	eachRow(ctx context.Context, pool *sql.DB, statements []statement) error
	// columnsQuery returns a query with a table's name as parameter. Each row has a column's name,
	// lower-case type, and position in the primary key. Columns outside the key have 0.
	columnsQuery() string
	// bulkTx runs f in a transaction. It passes to f the engine's fastest function to insert rows.
	bulkTx(ctx context.Context, d *DB, f func(tx *gorm.DB, insert InsertRows) error) error
	// updateStatistics updates the query planner's statistics of a table if they are outdated. rowCount is the present number of rows of the table.
	updateStatistics(tx *gorm.DB, table string, rowCount int64) error
	// sortExpression returns the expression for an ORDER BY that orders rows by the column c. Texts are ordered by their bytes, so the order is the
	// same on both engines.
	sortExpression(c StoredColumn) string
	// readSnapshot calls f, whose SELECTs all see the same state of the database. The function
	// runSelect runs a SELECT and calls `row` for each row of the result.
	readSnapshot(ctx context.Context, pool *sql.DB, f func(runSelect func(ctx context.Context, query string, row func(*Values) error) error) error) error
}

// connections are the connections that a dialect has opened.
type connections struct {
	read, write *gorm.DB  // the handles for reads and for writes; on PostgreSQL, both fields have the same handle
	pools       []*sql.DB // the pools of the handles: first the pool for writes, then the pool for reads; on PostgreSQL, one pool for both
	sharded     bool      // the database has the extension Citus: see citus.go
	below       func()    // closes the connection pool of pgx; must be called after each pool in `pools` is closed; nil on SQLite
}

// urlScheme matches the scheme at the beginning of a URL, with the colon.
var urlScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// dialectOf returns the dialect of a database URL, or an error that does not contain a password.
func dialectOf(rawURL string) (dialect, error) {
	switch {
	case strings.HasPrefix(rawURL, "sqlite:"):
		path := strings.TrimPrefix(rawURL, "sqlite:")
		if path == "" {
			return nil, errors.New(`database URL "sqlite:" names no file; write sqlite:PATH, for example sqlite:data/reeltally.db`)
		}
		return sqliteDialect{path: path}, nil
	case strings.HasPrefix(rawURL, "postgres://"), strings.HasPrefix(rawURL, "postgresql://"):
		return postgresDialect{url: rawURL}, nil
	}
	begins := "without a scheme"
	if scheme := urlScheme.FindString(rawURL); scheme != "" { // the error names only the scheme, because the rest may contain a password
		begins = fmt.Sprintf("with %q", scheme)
	}
	return nil, fmt.Errorf("database URL begins %s; it must be sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE", begins)
}

type sqliteDialect struct{ path string }

func (sqliteDialect) name() string { return "sqlite" }

func (sqliteDialect) hasPartitions() bool { return false }

func (sqliteDialect) versionQuery() string { return "SELECT sqlite_version(), NULL, ''" }

func (sqliteDialect) readinessQuery() string { return "SELECT COUNT(*) FROM sqlite_master" }

// sqliteBusyTimeout is how long a statement waits while another process has the file locked. It is
// short, because the end of the context does not end this wait.
const sqliteBusyTimeout = 400 * time.Millisecond

// sqliteMaxIdleTime is the time after which an unused connection for reads is closed, because its cache takes up to 4 MB.
const sqliteMaxIdleTime = time.Minute

// open opens the SQLite file with one pool for writes and one pool for reads. Without o.MustExist,
// it creates a missing file and its folder.
func (d sqliteDialect) open(ctx context.Context, o Options) (c connections, err error) {
	if _, err := os.Stat(d.path); o.MustExist && errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("the SQLite file %s does not exist; correct REELTALLY_DATABASE_URL, or create the file with `reeltally migrate`", d.path)
	}
	if dir := filepath.Dir(d.path); dir != "." {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return c, fmt.Errorf("cannot create the folder of the SQLite file: %w", err)
		}
	}
	// Create the file with mode 0600, because SQLite would make it readable for everyone. The WAL files get the
	// same mode. An error is ignored here, because SQLite reports it when it opens the file.
	if file, err := os.OpenFile(d.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err == nil {
		if err := file.Close(); err != nil {
			return c, err
		}
	}
	if err := registerFoldText(); err != nil {
		return c, err
	}
	// busy_timeout comes first, because the switch to WAL mode may have to wait for another process.
	// synchronous(FULL) makes committed writes survive a power failure.
	pragmas := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", sqliteBusyTimeout.Milliseconds()), "journal_mode(WAL)", "foreign_keys(1)", "synchronous(FULL)"}}
	open := func(txlock string, conns int) (*gorm.DB, error) {
		v := url.Values{"_pragma": pragmas["_pragma"], "_txlock": {txlock}}
		pool, err := sql.Open("sqlite", "file:"+(&url.URL{Path: d.path}).EscapedPath()+"?"+v.Encode())
		if err != nil {
			return nil, err
		}
		pool.SetMaxOpenConns(conns)
		pool.SetMaxIdleConns(conns)
		c.pools = append(c.pools, pool)
		err = awaitUnlocked(ctx, pool)
		if se, ok := errors.AsType[*sqlitedriver.Error](err); ok && se.Code()&0xff == sqlite3.SQLITE_READONLY {
			return nil, fmt.Errorf("cannot open the SQLite file %s: the file and its folder must be writable: %w", d.path, err)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot open the SQLite file %s: %w", d.path, err)
		}
		return gorm.Open(modernc{&sqlite.Dialector{DriverName: "sqlite", Conn: watchPool(pool, o, d.name())}}, gormConfig(o))
	}
	// Transactions of the pool for writes take the write lock when they begin. Otherwise, a write
	// would fail if another process wrote after the transaction's first read.
	if c.write, err = open("immediate", 1); err != nil {
		return c, err
	}
	if c.read, err = open("deferred", max(16, 4*runtime.NumCPU())); err != nil {
		return c, err
	}
	c.pools[1].SetConnMaxIdleTime(sqliteMaxIdleTime)
	return c, nil
}

// awaitUnlocked opens the first connection of the pool. While another process has the file locked,
// it tries again, for at most retryTimeout.
func awaitUnlocked(ctx context.Context, pool *sql.DB) error {
	wait, cancel := context.WithTimeout(ctx, retryTimeout)
	defer cancel()
	for {
		// Another process locks the file to switch it to WAL mode or to recover it after a crash.
		if err := pool.PingContext(ctx); !isLockTimeout(err) || waitFor(wait, 10*time.Millisecond) != nil {
			return err
		}
	}
}

// gooseSettings returns the settings of the migration tool for SQLite.
func (sqliteDialect) gooseSettings() (goose.Dialect, string, []goose.ProviderOption, error) {
	versions, err := database.NewStore(database.DialectSQLite3, goose.DefaultTablename)
	return goose.DialectCustom, "sqlite", []goose.ProviderOption{goose.WithStore(appliedMigrations{versions})}, err
}

// appliedMigrations is the table of applied migrations. It refuses a migration that another process has already
// applied, because no lock of SQLite keeps two processes from beginning the same migration.
type appliedMigrations struct{ database.Store }

// Insert adds a migration in the transaction that has applied it. It returns an error if the table already has the migration.
func (s appliedMigrations) Insert(ctx context.Context, tx database.DBTxConn, req database.InsertRequest) error {
	_, err := s.GetMigration(ctx, tx, req.Version)
	switch {
	case err == nil:
		return fmt.Errorf("another process has applied migration %d", req.Version)
	case !errors.Is(err, database.ErrVersionNotFound):
		return err
	}
	return s.Store.Insert(ctx, tx, req)
}

func (sqliteDialect) isRetryable(err error, _ int) bool { return isLockTimeout(err) }

// modernc is GORM's dialector for SQLite with another Translate, because GORM's Translate does not know the errors of the driver
// modernc.org/sqlite.
type modernc struct{ *sqlite.Dialector }

// Translate converts constraint errors of the driver to errors of GORM. It returns other errors unchanged.
func (modernc) Translate(err error) error {
	if e, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		switch e.Code() {
		case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
			return gorm.ErrDuplicatedKey
		case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
			return gorm.ErrForeignKeyViolated
		}
	}
	return err
}

// IsForeignKeyViolation returns true if a statement failed because a row that it refers to does not exist. GORM does not convert the errors of all
// statements, so this function also knows the errors of the drivers.
func IsForeignKeyViolation(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "23503"
	}
	if e, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		return e.Code() == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
	}
	return errors.Is(err, gorm.ErrForeignKeyViolated)
}

type postgresDialect struct{ url string }

func (postgresDialect) name() string { return "postgres" }

func (postgresDialect) hasPartitions() bool { return true }

// versionQuery returns a query for the version and the current time of PostgreSQL, and for the names of the settings in Engine.UnsafeSettings.
func (postgresDialect) versionQuery() string {
	return `SELECT current_setting('server_version'), clock_timestamp(), concat_ws(' and ',
 CASE WHEN current_setting('synchronous_commit') = 'off' THEN 'synchronous_commit' END, CASE WHEN current_setting('fsync') = 'off' THEN 'fsync' END)`
}

func (postgresDialect) readinessQuery() string { return "SELECT 1" }

// acquireTimeout is how long a statement waits for a free connection of the PostgreSQL pool, and how long the pool waits for a new
// connection.
const acquireTimeout = 5 * time.Second

// serverMargin is added to this program's time limits to get those of the PostgreSQL server. So
// this program times out first and can report the cause.
const serverMargin = 5 * time.Second

// readBufferBytes is the size of the buffer into which the answers of PostgreSQL are read. With the usual buffer of pgx, which has 8 KB, a long
// list would need hundreds of system calls.
const readBufferBytes = 64 << 10

// postgresConfig returns the settings of a pool of connections to the PostgreSQL server with the given URL.
func postgresConfig(rawURL string, o Options) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(rawURL)
	if err != nil {
		return nil, errors.New("the PostgreSQL URL cannot be read; write postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	if !strings.Contains(rawURL, "pool_max_conns") {
		cfg.MaxConns = int32(max(8, 4*runtime.NumCPU())) //nolint:gosec // the number of processors fits into an int32
	}
	if o.Timeout > 0 && !strings.Contains(rawURL, "connect_timeout") {
		cfg.ConnConfig.ConnectTimeout = acquireTimeout
		// TCP keep-alive detects within half a minute that the server has disappeared without closing its connections.
		dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
		cfg.ConnConfig.DialFunc = dialer.DialContext
	}
	cfg.ConnConfig.RuntimeParams["application_name"] = "reeltally"
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	cfg.ConnConfig.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(bufio.NewReaderSize(r, readBufferBytes), w)
	}
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		pgxuuid.Register(conn.TypeMap()) // without this, pgx would convert each id to a text and back
		if o.Timeout == 0 {
			return nil
		}
		return limitSession(ctx, conn, o.Timeout+serverMargin)
	}
	return cfg, nil
}

// open creates one connection pool for reads and writes.
func (d postgresDialect) open(ctx context.Context, o Options) (c connections, err error) {
	cfg, err := postgresConfig(d.url, o)
	if err != nil {
		return c, err
	}
	below, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return c, err
	}
	connector := stdlib.GetPoolConnector(below)
	if o.Timeout > 0 {
		connector = boundedConnector{connector}
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxIdleConns(0) // the pgx pool keeps the idle connections
	c.pools, c.below = []*sql.DB{pool}, below.Close
	if c.sharded, err = hasCitus(ctx, pool); err != nil {
		return c, fmt.Errorf("database %s does not answer: %w", d.name(), Translate(err))
	}
	dialector := postgres.New(postgres.Config{Conn: watchPool(pool, o, d.name())})
	if c.sharded {
		dialector = citusDialector{dialector.(*postgres.Dialector)}
	}
	c.write, err = gorm.Open(dialector, gormConfig(o))
	c.read = c.write
	return c, err
}

// limitSession makes the server end each statement and each idle transaction of the connection
// after the time `d`.
func limitSession(ctx context.Context, conn *pgx.Conn, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	// SET is needed, because poolers such as PgBouncer refuse these settings in the message that opens a
	// connection.
	_, err := conn.Exec(ctx, fmt.Sprintf("SET statement_timeout = %[1]d; SET idle_in_transaction_session_timeout = %[1]d; SET jit = off", d.Milliseconds()))
	return err
}

// boundedConnector is a connector whose Connect returns an ErrUnavailable if no connection is available within acquireTimeout.
type boundedConnector struct{ driver.Connector }

func (c boundedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	bounded, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	conn, err := c.Connector.Connect(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: no free connection within %s", ErrUnavailable, acquireTimeout)
	}
	return conn, err
}

// gooseSettings returns the settings of the migration tool for PostgreSQL.
func (postgresDialect) gooseSettings() (goose.Dialect, string, []goose.ProviderOption, error) {
	// Several processes can migrate at the same time. The first process applies the migrations. The
	// other processes wait for the lock and then find nothing to apply.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // try to get the lock once a second, for five minutes
	return goose.DialectPostgres, "postgres", []goose.ProviderOption{goose.WithSessionLocker(migrationSession{locker})}, err
}

// migrationSession configures the connection on which migrations run. Statements on the connection wait at most lockTimeout for each lock,
// and have no other time limit.
type migrationSession struct{ lock.SessionLocker }

// SessionLock takes the lock of the migrations and configures the connection.
func (m migrationSession) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if err := m.SessionLocker.SessionLock(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "SET lock_timeout = '"+lockTimeout+"'; SET statement_timeout = 0; SET "+sequentialDDL); err != nil {
		return errors.Join(err, m.SessionUnlock(context.WithoutCancel(ctx), conn))
	}
	return nil
}

// SessionUnlock releases the lock of the migrations and closes the connection, because the settings of the connection are for migrations
// only.
func (m migrationSession) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	unlocked := m.SessionLocker.SessionUnlock(ctx, conn)
	return errors.Join(unlocked, conn.Raw(func(c any) error { return c.(*stdlib.Conn).Conn().Close(ctx) }))
}

// isRetryable returns true for serialization failures, deadlocks and outdated plans, unless MaxAttempts or maxOutdatedPlans is reached.
func (postgresDialect) isRetryable(err error, attempt int) bool {
	var e *pgconn.PgError
	return attempt < MaxAttempts && errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01") || attempt < maxOutdatedPlans && isPlanOutdated(err)
}

// maxOutdatedPlans is the maximum number of times that a statement or transaction is run if a plan is outdated: each connection has its own plans.
const maxOutdatedPlans = 20

// isPlanOutdated returns true if PostgreSQL refuses a prepared statement, because the next version's migration has added a column to a table of which
// the statement selects all columns. pgx then prepares the statement again for its next run on the same connection.
func isPlanOutdated(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "0A000" && strings.HasPrefix(e.Message, "cached plan")
}

// replanningPool is a pool for statements outside of transactions. If the plan of a query is outdated, the pool runs the query again. Only PostgreSQL
// reports outdated plans.
type replanningPool struct{ *sql.DB }

func (p replanningPool) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	for range maxOutdatedPlans {
		if rows, err = p.DB.QueryContext(ctx, query, args...); !isPlanOutdated(err) {
			break
		}
	}
	return rows, err
}

func (p replanningPool) QueryRowContext(ctx context.Context, query string, args ...any) (row *sql.Row) {
	for range maxOutdatedPlans {
		if row = p.DB.QueryRowContext(ctx, query, args...); !isPlanOutdated(row.Err()) {
			break
		}
	}
	return row
}

// GetDBConn returns the pool without repetitions. GORM requires this method.
func (p replanningPool) GetDBConn() (*sql.DB, error) { return p.DB, nil }

// gormConfig returns the settings of GORM, which are the same for both engines.
func gormConfig(o Options) *gorm.Config {
	return &gorm.Config{
		Logger:                 newSQLLog(o.Logger),
		TranslateError:         true,
		SkipDefaultTransaction: true,
		NowFunc:                func() time.Time { return o.Now().UTC().Truncate(time.Microsecond) },
	}
}

// isUnavailable returns true if err means that the database cannot do the work now: it cannot be reached, is overloaded or read-only, has no space, has
// an I/O error, or has stopped the statement or rolled back the transaction.
func isUnavailable(err error) bool {
	// If PostgreSQL is killed during a transaction, pgconn returns io.ErrUnexpectedEOF or pgconn.ErrConnClosed.
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, pgconn.ErrConnClosed) {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		// Classes of SQLSTATE: 08 is a connection error, 53 is a lack of resources, 57P0x is a
		// shutdown, 40 is a rolled back transaction.
		switch e.Code {
		case "25006", "25P03", "55P03", "57014": // the codes, in this order: read-only server, idle transaction timed out, lock timed out, statement timed out
			return true
		}
		return strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "53") || strings.HasPrefix(e.Code, "57P0") || strings.HasPrefix(e.Code, "40")
	}
	if se, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_INTERRUPT:
			return true
		}
	}
	return false
}

// UUIDType returns the SQL type of ids, for use in CAST(? AS …): text on SQLite and uuid on PostgreSQL.
func UUIDType(db *gorm.DB) string {
	if db.Name() == "sqlite" {
		return "text"
	}
	return "uuid"
}

// DateType returns the SQL type of days, for use in CAST(? AS …): text on SQLite and date on PostgreSQL.
func DateType(db *gorm.DB) string {
	if db.Name() == "sqlite" {
		return "text"
	}
	return "date"
}
