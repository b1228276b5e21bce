package db

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// Write is a SQL statement with its parameters. Most Writes insert, update or delete rows. FindRows and FindColumns also use Write for SELECT
// statements.
type Write struct {
	Statement string
	Args      []any
}

// RunWrites runs the statements in the transaction tx, in order. PostgreSQL can run them as one statement, in which no statement sees what the
// others write. So no statement may read or write rows that an earlier statement writes.
func RunWrites(tx *gorm.DB, writes ...Write) error {
	// A combined statement waits for the database only once.
	if len(writes) > 1 && canCombineWrites(tx) {
		writes = []Write{combineWrites(writes)}
	}
	for _, w := range writes {
		if err := tx.Exec(w.Statement, w.Args...).Error; err != nil {
			return err
		}
	}
	return nil
}

// combineWrites returns one statement of PostgreSQL that runs all the given statements in its WITH clause.
func combineWrites(writes []Write) Write {
	parts, args := make([]string, len(writes)), []any(nil)
	for i, w := range writes {
		parts[i], args = fmt.Sprintf("w%d AS (%s)", i, w.Statement), append(args, w.Args...)
	}
	// A foreign key can refer to a row that another statement in the WITH clause inserts.
	return Write{"WITH " + strings.Join(parts, ",\n") + "\nSELECT 1", args}
}

// canCombineWrites returns true if the engine of tx accepts INSERT, UPDATE and DELETE in a WITH
// clause. On Citus, a single statement cannot write to several servers.
func canCombineWrites(tx *gorm.DB) bool { return tx.Name() != "sqlite" && !IsSharded(tx) }
