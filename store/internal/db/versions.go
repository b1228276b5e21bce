package db

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// Scoped begins a query on a table with the condition on the organisation. All queries that GORM builds get the condition here.
func Scoped(db *gorm.DB, table string, org uuid.UUID) *gorm.DB {
	return db.Table(table).Where(table+".organisation_id = ?", org)
}

// Change runs f in a transaction that writes an organisation's data, and raises the organisation's version first. Every transaction that
// writes such data must do so; RaiseVersions does it for several organisations. The new version tells readers of the change. It also
// serialises these transactions: they write the same rows in different orders and would otherwise deadlock.
func (d *DB) Change(ctx context.Context, org uuid.UUID, f func(tx *gorm.DB) error) error {
	return d.Tx(ctx, func(tx *gorm.DB) error {
		if err := RaiseVersions(tx, d.Now(), org); err != nil {
			return err
		}
		return f(tx)
	})
}

// ChangeInBulk does the same as Change and gives f the engine's fastest way to insert rows.
func (d *DB) ChangeInBulk(ctx context.Context, org uuid.UUID, f func(tx *gorm.DB, insert InsertRows) error) error {
	return d.BulkTx(ctx, func(tx *gorm.DB, insert InsertRows) error {
		if err := RaiseVersions(tx, d.Now(), org); err != nil {
			return err
		}
		return f(tx, insert)
	})
}

// raised is the SQL that raises a version. A version is the time in microseconds, or the last version plus one if that is greater. So no
// version is used twice, even if a database is restored from a backup.
const raised = "version = CASE WHEN organisation_totals.version < ? THEN ? ELSE organisation_totals.version + 1 END"

// RaiseVersions locks the organisations in the order of their ids and raises their versions.
func RaiseVersions(tx *gorm.DB, now Instant, orgs ...uuid.UUID) error {
	for chunk := range slices.Chunk(Distinct(orgs), InsertChunk) {
		if len(chunk) == 1 { // a single row needs no lock order
			err := tx.Exec("UPDATE organisation_totals SET "+raised+" WHERE organisation_id = ?", now, now, chunk[0]).Error
			if err != nil {
				return err
			}
			continue
		}
		list, args := WithOrgs(tx, chunk)
		err := LockRows(tx, list+`SELECT t.version FROM wanted CROSS JOIN organisation_totals t WHERE t.organisation_id = wanted.organisation_id
 ORDER BY t.organisation_id`, "t", args...)
		if err != nil {
			return err
		}
		err = tx.Exec(list+"UPDATE organisation_totals SET "+raised+" FROM wanted WHERE organisation_totals.organisation_id = wanted.organisation_id",
			append(args, now, now)...).Error
		if err != nil {
			return err
		}
	}
	return nil
}
