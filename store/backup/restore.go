package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
)

// Restore reads a backup into an empty database of either engine. It returns a *DamagedError for a
// damaged backup, and a *store.SchemaError for a backup with a newer schema.
func Restore(ctx context.Context, s *store.Store, from io.Reader, progress func(done, of int64)) (Summary, error) {
	r, err := newReader(from, progress)
	if err != nil {
		return Summary{}, err
	}
	defer r.close()
	if err := prepareDatabase(ctx, s.DB(), r.header); err != nil {
		return Summary{}, err
	}
	tables, err := s.DB().StoredTables(ctx)
	if err != nil {
		return Summary{}, err
	}
	var summary Summary
	started := false
	var failed error // the error of the first attempt; nil if only its commit failed
	// The transaction is committed only if the checksum is right.
	err = s.DB().BulkTx(ctx, func(tx *gorm.DB, insert db.InsertRows) (err error) {
		// BulkTx retries this function after conflicts with other programs, and on Citus after a failed COPY. But the backup can be read only once.
		if started {
			return notRetryableError(failed)
		}
		started = true
		defer func() { failed = err }()
		l := loader{db: s.DB(), tables: tables, tx: tx, insert: insert}
		if err := l.beginRestore(); err != nil {
			return err
		}
		summary, err = r.readTables(l.startTable, l.addRow, l.finishTable)
		return err
	})
	if err != nil {
		return Summary{}, err
	}
	if _, err := s.Migrate(ctx); err != nil {
		return Summary{}, fmt.Errorf("the backup is restored, but the schema cannot be updated: %w", err)
	}
	return summary, s.DB().AnalyzeAll(ctx)
}

// notRetryableError returns the error of a restore whose first attempt failed. The parameter `failed` is the error of this attempt, or nil if only its
// commit failed.
func notRetryableError(failed error) error {
	const advice = "restore again into a new database that no other program uses"
	if failed == nil {
		return errors.New("the database did not commit the restored rows: " + advice)
	}
	// BulkTx would retry the function if the new error wrapped the old one.
	return errors.New("the backup is not restored: " + failed.Error() + "; " + advice)
}

// prepareDatabase brings the schema of an empty database to the version of the backup, and creates the partitions for the days of the backup.
func prepareDatabase(ctx context.Context, d *db.DB, h Header) error {
	have, want, err := d.Schema(ctx)
	switch {
	case err != nil:
		return err
	case h.Schema > want:
		return fmt.Errorf("the backup is newer than this program: %w", &store.SchemaError{Have: h.Schema, Want: want})
	case have > h.Schema:
		return fmt.Errorf("the database has schema version %d, but the backup has version %d: restore into a new database", have, h.Schema)
	}
	// Check this before the migrations, so that they do not change a database that has rows.
	if err := requireEmpty(ctx, d); err != nil {
		return err
	}
	if _, err := d.MigrateTo(ctx, h.Schema); err != nil {
		return err
	}
	// Check again, because another program may have written rows during the migrations.
	if err := requireEmpty(ctx, d); err != nil || h.FirstDay == nil || h.LastDay == nil {
		return err
	}
	first, err := db.ParseDate(*h.FirstDay)
	if err != nil {
		return newDamagedError("first_day: %v", err)
	}
	last, err := db.ParseDate(*h.LastDay)
	if err != nil {
		return newDamagedError("last_day: %v", err)
	}
	return d.CreatePartitions(ctx, first, last)
}

// The table "settings" is the only one that may have rows before Restore, because a migration and the first start of a program write to
// it. Restore replaces these rows.
const settings = "settings"

// requireEmpty returns an error if a table other than "settings" has rows.
func requireEmpty(ctx context.Context, d *db.DB) error {
	tables, err := d.StoredTables(ctx)
	if err != nil {
		return err
	}
	return d.Snapshot(ctx, func(now *db.Snapshot) error {
		for _, table := range tables {
			rows, err := now.CountRows(ctx, table.Name)
			if err != nil {
				return err
			}
			if rows > 0 && table.Name != settings {
				return fmt.Errorf("the database is not empty: the table %q has rows; restore into a new database that no program uses", table.Name)
			}
		}
		return nil
	})
}

const (
	// maxRowsPerInsert is the maximum number of rows that one call of InsertRows inserts.
	maxRowsPerInsert = 5000
	// maxBytesPerInsert is the approximate size limit for the texts of one InsertRows call, in
	// bytes. A call can exceed this limit if it has a single row, or the collections of one organisation.
	maxBytesPerInsert = 8 << 20
)

type loader struct {
	db     *db.DB
	tables []db.StoredTable // the tables of the database
	tx     *gorm.DB
	insert db.InsertRows

	table   string
	names   []string          // names of the columns, as the backup lists them
	columns []db.StoredColumn // columns of the database: columns[i] has the name names[i]
	org     int               // index of the column organisation_id; -1 if there is none
	rows    [][]any           // rows that are not yet inserted
	bytes   int               // number of bytes of the texts and binary values in rows
}

// beginRestore prepares the transaction of a restore: it delays the checks of foreign keys, and deletes the rows of the table "settings".
func (l *loader) beginRestore() error {
	if err := db.DeferForeignKeys(l.tx); err != nil {
		return err
	}
	return l.tx.Exec("DELETE FROM " + settings).Error
}

// startTable prepares the loader for the rows of a table. It returns a *DamagedError if the database lacks the table, or has no column with the name and
// kind of a column of t.
func (l *loader) startTable(t tableStart) error {
	at := slices.IndexFunc(l.tables, func(s db.StoredTable) bool { return s.Name == t.Table })
	if at < 0 {
		return newDamagedError("the table %q is unknown", t.Table)
	}
	stored := l.tables[at].Columns
	l.table, l.names, l.columns, l.org = t.Table, nil, nil, -1
	for i, c := range t.Columns {
		at := slices.IndexFunc(stored, func(s db.StoredColumn) bool { return s.Name == c.Name && s.Kind == c.Kind })
		if at < 0 {
			return newDamagedError("table %s has no column %s of the kind %s", t.Table, c.Name, c.Kind)
		}
		if c.Name == "organisation_id" {
			l.org = i
		}
		l.names, l.columns = append(l.names, c.Name), append(l.columns, stored[at])
	}
	return nil
}

// addRow adds a row of the current table to the collected rows. If isFull returns true, it first inserts the rows that were collected before.
func (l *loader) addRow(values []any) error {
	size := 0 // number of bytes of the texts and binary values in the row
	for i, c := range l.columns {
		value, err := c.ToInsertable(values[i])
		if err != nil {
			return newDamagedError("column %s of table %s: %v", c.Name, l.table, err)
		}
		switch content := value.(type) {
		case string:
			size += len(content)
		case []byte:
			size += len(content)
		}
		values[i] = value
	}
	if l.isFull(values, size) {
		if err := l.insertRows(); err != nil {
			return err
		}
	}
	l.rows, l.bytes = append(l.rows, values), l.bytes+size
	return nil
}

// isFull returns true if the collected rows must be inserted before the next row is added, because they are too many or would be too large. The texts
// and binary values of the next row have nextSize bytes.
func (l *loader) isFull(next []any, nextSize int) bool {
	if len(l.rows) == 0 {
		return false
	}
	// Collections of the same organisation refer to each other, so one call inserts all of them.
	if l.table == "collections" && l.rows[0][l.org] == next[l.org] {
		return false
	}
	return len(l.rows) >= maxRowsPerInsert || l.bytes+nextSize > maxBytesPerInsert
}

// insertRows inserts the collected rows and empties the list, also after an error.
func (l *loader) insertRows() error {
	err := l.insert(l.table, l.names, l.rows)
	l.rows, l.bytes = l.rows[:0], 0
	return err
}

// finishTable inserts the last rows of a table.
func (l *loader) finishTable(table string, rows int64) error {
	if err := l.insertRows(); err != nil {
		return err
	}
	if !db.IsReferencedByForeignKeys(table) {
		return nil
	}
	return l.db.UpdateStatistics(l.tx, table, rows)
}
