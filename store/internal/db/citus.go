package db

import (
	"context"
	"database/sql"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// Citus is an extension of PostgreSQL that divides the rows of tables between several servers, by
// organisation_id. Code that differs for Citus checks IsSharded or connections.sharded.

// sequentialDDL is the setting with which Citus changes the shards of a table one after the other.
// Some changes in transactions need it. PostgreSQL without Citus ignores it.
const sequentialDDL = "citus.multi_shard_modify_mode = 'sequential'"

// hasCitus returns true if the database has the extension Citus.
func hasCitus(ctx context.Context, pool *sql.DB) (bool, error) {
	var has bool
	return has, pool.QueryRowContext(ctx, "SELECT to_regclass('citus_tables') IS NOT NULL").Scan(&has)
}

// citusDialector is the dialector of GORM for a PostgreSQL database with Citus.
type citusDialector struct{ *postgres.Dialector }

// IsSharded returns true if the database has the extension Citus, even if Distribute has not divided the tables yet.
func IsSharded(tx *gorm.DB) bool {
	_, ok := tx.Dialector.(citusDialector)
	return ok
}
