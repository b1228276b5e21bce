package db

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// Write is a statement that inserts or updates rows, with its parameters.
type Write struct {
	Statement string
	Args      []any
}

// RunWrites runs statements in a transaction, in the order of writes. On PostgreSQL, it combines several statements into one, so that it
// waits for the database only once. So no statement may read rows that a different statement of writes changes, and two statements must not
// write the same row. But a statement can insert a row with a foreign key to a row that a different statement inserts. PostgreSQL checks
// foreign keys at the end.
func RunWrites(tx *gorm.DB, writes ...Write) error {
	if len(writes) > 1 && hasWritesInWith(tx) {
		writes = []Write{together(writes)}
	}
	for _, w := range writes {
		if err := tx.Exec(w.Statement, w.Args...).Error; err != nil {
			return err
		}
	}
	return nil
}

// together combines the statements of writes into one statement of PostgreSQL, in whose WITH clause they run.
func together(writes []Write) Write {
	parts, args := make([]string, len(writes)), []any(nil)
	for i, w := range writes {
		parts[i], args = fmt.Sprintf("w%d AS (%s)", i, w.Statement), append(args, w.Args...)
	}
	return Write{"WITH " + strings.Join(parts, ",\n") + "\nSELECT 1", args}
}

// hasWritesInWith returns true if the engine of tx allows statements that write in a WITH clause. Citus does not allow a statement that writes
// the tables of several servers.
func hasWritesInWith(tx *gorm.DB) bool { return tx.Name() != "sqlite" && !isSharded(tx) }
