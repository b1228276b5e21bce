package db

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// Scoped returns a query for the organisation's rows of a table. Queries that GORM builds for the rows of an
// organisation start with Scoped. Exceptions: the queries for api_tokens add the condition themselves, and share pages, sessions and login
// links are found by their hash.
func Scoped(db *gorm.DB, table string, org uuid.UUID) *gorm.DB {
	return db.Table(table).Where(table+".organisation_id = ?", org)
}

// Change raises an organisation's version and then runs f in the same transaction. All transactions
// that write the organisation's data must first raise the version, so that readers notice.
func (d *DB) Change(ctx context.Context, org uuid.UUID, f func(tx *gorm.DB) error) error {
	return d.Tx(ctx, func(tx *gorm.DB) error {
		// Transactions of one organisation wait here for each other, so they cannot deadlock.
		if err := RaiseVersions(tx, d.Now(), org); err != nil {
			return err
		}
		return f(tx)
	})
}

// ChangeInBulk raises an organisation's version and then runs f in the same transaction, like Change. It also passes to f a function that
// inserts rows in the engine's fastest way.
func (d *DB) ChangeInBulk(ctx context.Context, org uuid.UUID, f func(tx *gorm.DB, insert InsertRows) error) error {
	return d.BulkTx(ctx, func(tx *gorm.DB, insert InsertRows) error {
		if err := RaiseVersions(tx, d.Now(), org); err != nil {
			return err
		}
		return f(tx, insert)
	})
}

// nextVersion is the SQL for an organisation's next version: the present time in microseconds, or the
// last version plus one if this is higher. So even a restored database uses no version twice.
const nextVersion = "CASE WHEN organisation_totals.version < ? THEN ? ELSE organisation_totals.version + 1 END"

const (
	raised       = "version = " + nextVersion
	raisedLabels = "labels_version = " + nextVersion
)

// RaiseVersions raises the data version and the labels version of each organisation. It locks the
// organisations in the order of their ids, so that concurrent calls cannot deadlock.
func RaiseVersions(tx *gorm.DB, now Instant, orgs ...uuid.UUID) error {
	return raiseVersionColumns(tx, raised+", "+raisedLabels, []any{now, now, now, now}, orgs)
}

// RaiseDataVersions does the same as RaiseVersions, but does not raise the version of the labels. It is for frequent transactions that change
// neither collections nor their members, and that stop no video.
func RaiseDataVersions(tx *gorm.DB, now Instant, orgs ...uuid.UUID) error {
	return raiseVersionColumns(tx, raised, []any{now, now}, orgs)
}

// raiseVersionColumns updates the given organisations in organisation_totals. The assignment is the
// SQL text after the word SET, and args has its parameters.
func raiseVersionColumns(tx *gorm.DB, assignment string, args []any, orgs []uuid.UUID) error {
	orgs = Distinct(orgs)
	if len(orgs) <= 1 || IsSharded(tx) { // orgs is sorted, so these statements lock the rows in the order of their ids
		for _, org := range orgs {
			err := tx.Exec("UPDATE organisation_totals SET "+assignment+" WHERE organisation_id = ?", append(slices.Clip(args), org)...).Error
			if err != nil {
				return err
			}
		}
		return nil
	}
	list, wanted := Orgs(orgs).WithClause(tx)
	err := LockRows(tx, list+`SELECT t.version FROM wanted CROSS JOIN organisation_totals t WHERE t.organisation_id = wanted.organisation_id
 ORDER BY t.organisation_id`, "t", wanted...)
	if err != nil {
		return err
	}
	return tx.Exec(list+"UPDATE organisation_totals SET "+assignment+" FROM wanted WHERE organisation_totals.organisation_id = wanted.organisation_id",
		append(wanted, args...)...).Error
}
