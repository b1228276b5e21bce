package db

import (
	"context"
	"time"
)

// Engine describes the database engine.
type Engine struct {
	Name    string // "sqlite" or "postgres"
	Version string
	Now     *time.Time // time of the engine's clock; nil for SQLite, which uses the clock of the process
	// UnsafeSettings names the settings of PostgreSQL that are off although a crash then loses acknowledged writes: synchronous_commit and fsync.
	// It is "" if both are on, and for SQLite.
	UnsafeSettings string
}

// Engine returns the name, version and current time of the database engine. Its query bypasses Options.Inspect, because tests refuse
// statements that read the database's clock.
func (d *DB) Engine(ctx context.Context) (Engine, error) {
	e := Engine{Name: d.dialect.name()}
	err := d.pools[0].QueryRowContext(ctx, d.dialect.versionQuery()).Scan(&e.Version, &e.Now, &e.UnsafeSettings)
	return e, Translate(err)
}
