package boot

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/reeltally/reeltally/store"
)

// Logging is how much is logged. Where it is embedded, the tag set:"log_level=…" gives another default than info.
type Logging struct {
	LogLevel string `setting:"REELTALLY_LOG_LEVEL" default:"${log_level}" enum:"debug,info,warn,error" placeholder:"LEVEL" help:"How much is logged on standard error: debug, info, warn or error. Text at a terminal, else JSON."`
}

// Logger returns the logger of a program that writes to w.
func (l Logging) Logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.LogLevel)); err != nil {
		level = slog.LevelInfo // the flag's list of values keeps others out
	}
	options := &slog.HandlerOptions{Level: level}
	if Terminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// Terminal says whether people read what is written to w as it comes.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// Database is where the data is.
type Database struct {
	DatabaseURL    Secret `setting:"REELTALLY_DATABASE_URL" default:"sqlite:data/reeltally.db" placeholder:"URL" help:"The database: sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE."`
	MaxCollections int    `setting:"REELTALLY_MAX_COLLECTIONS" default:"1000" placeholder:"N" help:"How many collections an organisation may have, 1 or more."`
	// StoreTimeout is store.Options.Timeout. Each program sets it. The commands of the operator leave it at 0: no limit.
	StoreTimeout time.Duration `kong:"-"`
}

// Migration says which schemas a program brings up to date by itself when it opens a database. A PostgreSQL, where others
// may be at work, is left to `reeltally migrate` but for MigrateAll.
type Migration int

const (
	// MigrateNew makes the schema in a new SQLite file.
	MigrateNew Migration = iota
	// MigrateOlder also brings an older file up to date.
	MigrateOlder
	// MigrateAll also does so on PostgreSQL.
	MigrateAll
	// MigrateNothing leaves the schema as it is and does not look at it.
	MigrateNothing
)

// Open opens the database. Unless m is MigrateNothing, the schema is then this program's own: another one is refused
// with a *store.SchemaError.
func (d Database) Open(ctx context.Context, logger *slog.Logger, m Migration) (*store.Store, error) {
	if d.MaxCollections < 0 {
		return nil, Bad("max-collections", "REELTALLY_MAX_COLLECTIONS", d.MaxCollections, "1 or more")
	}
	st, err := store.Open(ctx, store.Options{URL: d.DatabaseURL.Reveal(), Now: time.Now, RealTime: true, Timeout: d.StoreTimeout, Logger: logger,
		MaxCollections: d.MaxCollections})
	if err != nil {
		return nil, err
	}
	if m == MigrateNothing {
		return st, nil
	}
	if err := prepare(ctx, st, logger, m); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return st, nil
}

func prepare(ctx context.Context, st *store.Store, logger *slog.Logger, m Migration) error {
	err := st.CheckSchema(ctx)
	var schema *store.SchemaError
	switch {
	case !errors.As(err, &schema), schema.Have > schema.Want, m == MigrateNew && schema.Have > 0, m != MigrateAll && st.SharedByProcesses():
		return err
	}
	applied, err := st.Migrate(ctx)
	if err != nil {
		// Another process may have been at it: what counts is the schema that is there now.
		if st.CheckSchema(ctx) == nil {
			return nil
		}
		return err
	}
	logger.InfoContext(ctx, "schema migrated", "applied", applied)
	return nil
}
