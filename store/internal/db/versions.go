package db

import (
	"context"
	"errors"
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

// RaiseVersions raises the data version and the labels version of an organisation, and locks the organisation until the end of the
// transaction. It returns ErrOrganisationDeleted for an unknown organisation, and for an organisation whose deletion has begun.
func RaiseVersions(tx *gorm.DB, now Instant, org uuid.UUID) error {
	return raiseVersion(tx, raised+", "+raisedLabels, []any{now, now, now, now}, org)
}

// RaiseDataVersions does the same as RaiseVersions, but does not raise the version of the labels. It is for frequent transactions that change
// neither collections nor their members, and that stop no video.
func RaiseDataVersions(tx *gorm.DB, now Instant, org uuid.UUID) error {
	return raiseVersion(tx, raised, []any{now, now}, org)
}

// RaiseVersionsOfAll does the same as RaiseVersions for several organisations. It locks them in the order of their ids, so that concurrent calls
// cannot deadlock. It leaves out organisations that are being deleted, and returns the others. The caller must write no data of organisations
// that were left out.
func RaiseVersionsOfAll(tx *gorm.DB, now Instant, orgs []uuid.UUID) (present []uuid.UUID, err error) {
	return raiseVersionsOfAll(tx, raised+", "+raisedLabels, []any{now, now, now, now}, orgs)
}

// RaiseDataVersionsOfAll does the same as RaiseVersionsOfAll, but does not raise the version of the labels.
func RaiseDataVersionsOfAll(tx *gorm.DB, now Instant, orgs []uuid.UUID) (present []uuid.UUID, err error) {
	return raiseVersionsOfAll(tx, raised, []any{now, now}, orgs)
}

// raiseVersion updates the row of an organisation in organisation_totals. The assignment is the SQL text after the word SET, and args has its
// parameters. Without such a row, it returns ErrOrganisationDeleted.
func raiseVersion(tx *gorm.DB, assignment string, args []any, org uuid.UUID) error {
	done := tx.Exec("UPDATE organisation_totals SET "+assignment+" WHERE organisation_id = ?", append(slices.Clip(args), org)...)
	if done.Error == nil && done.RowsAffected == 0 {
		return ErrOrganisationDeleted
	}
	return done.Error
}

// raiseVersionsOfAll does the same as raiseVersion for several organisations, and returns the organisations that have a row.
func raiseVersionsOfAll(tx *gorm.DB, assignment string, args []any, orgs []uuid.UUID) (present []uuid.UUID, err error) {
	orgs = Distinct(orgs)
	if len(orgs) <= 1 || IsSharded(tx) { // orgs is sorted, so these statements lock the rows in the order of their ids
		for _, org := range orgs {
			switch err := raiseVersion(tx, assignment, args, org); {
			case err == nil:
				present = append(present, org)
			case !errors.Is(err, ErrOrganisationDeleted):
				return nil, err
			}
		}
		return present, nil
	}
	list, wanted := Orgs(orgs).WithClause(tx)
	err = LockRows(tx, list+`SELECT t.version FROM wanted CROSS JOIN organisation_totals t WHERE t.organisation_id = wanted.organisation_id
 ORDER BY t.organisation_id`, "t", wanted...)
	if err != nil {
		return nil, err
	}
	return present, tx.Raw(list+"UPDATE organisation_totals SET "+assignment+` FROM wanted WHERE organisation_totals.organisation_id = wanted.organisation_id
 RETURNING organisation_totals.organisation_id`, append(wanted, args...)...).Scan(&present).Error
}

// closeOrganisation is the statement of CloseOrganisation. The parameter is the organisation's id.
const closeOrganisation = "DELETE FROM organisation_totals WHERE organisation_id = ?"

// CloseOrganisation deletes the organisation's row in organisation_totals. It waits for all transactions that have raised the organisation's
// version. Every later transaction that wants to raise the version gets ErrOrganisationDeleted or leaves the organisation out. So after the commit,
// no transaction writes data of the organisation, except transactions that have called CloseOrganisation themselves: they delete the data.
func CloseOrganisation(tx *gorm.DB, org uuid.UUID) error {
	return tx.Exec(closeOrganisation, org).Error
}
