package db

import (
	"context"
	"database/sql"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// Citus is an extension of PostgreSQL that divides the rows of distributed tables between several PostgreSQL servers, by organisation_id. A
// database of Citus is opened like every other database of PostgreSQL. The code differs for Citus in these places:
//
//   - A statement about rows of several organisations runs once for each organisation: see OrgRows and Insert.
//   - The versions of several organisations are raised one after the other: see raise.
//   - RunWrites sends each statement alone.
//   - A COPY that breaks a constraint is repeated as INSERT: see bulkTx.
//   - The tiers of organisations are read before a statement about the queue needs them: see UpdateLanes of the package queue.
//   - Statements that change tables run on one shard after the other: see sequentialDDL.

// sequentialDDL is a setting of Citus. With this setting, a statement that changes a table runs on the shards one after the other. Without it, Citus
// refuses some of these statements in a transaction. PostgreSQL without Citus accepts and ignores the setting.
const sequentialDDL = "citus.multi_shard_modify_mode = 'sequential'"

// hasCitus returns true if the database has the extension Citus.
func hasCitus(ctx context.Context, pool *sql.DB) (bool, error) {
	var has bool
	return has, pool.QueryRowContext(ctx, "SELECT to_regclass('citus_tables') IS NOT NULL").Scan(&has)
}

// citusDialector is the dialector of GORM for a PostgreSQL database with Citus.
type citusDialector struct{ *postgres.Dialector }

// IsSharded returns true if Citus divides the tables of organisations between several servers.
func IsSharded(tx *gorm.DB) bool {
	_, ok := tx.Dialector.(citusDialector)
	return ok
}
