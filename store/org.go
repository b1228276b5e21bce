package store

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// Org is one organisation's view of the store, the only way to a tenant's data. Every method works on that
// organisation alone: another's id, link or name is answered exactly as one that does not exist.
type Org struct {
	s  *Store
	id uuid.UUID
}

// Org returns the view of one organisation. It does not check that the organisation exists: one that does not has no
// data.
func (s *Store) Org(id uuid.UUID) *Org { return &Org{s: s, id: id} }

// ID returns the organisation's id.
func (o *Org) ID() uuid.UUID { return o.id }

// DB returns the database for the packages below store.
func (o *Org) DB() *DB { return o.s.db }

// Organisation returns the organisation's own record, or ErrNotFound.
func (o *Org) Organisation(ctx context.Context) (Organisation, error) {
	return o.s.Organisation(ctx, o.id)
}

// q begins a reading query on a table, with the organisation's condition in place.
func (o *Org) q(ctx context.Context, table string) *gorm.DB {
	return scoped(o.s.db.Read(ctx), table, o.id)
}

// scoped is the one place where the condition on the organisation is written for queries built by GORM.
func scoped(db *gorm.DB, table string, org uuid.UUID) *gorm.DB {
	return db.Table(table).Where(table+".organisation_id = ?", org)
}

// change runs f in a transaction that writes the organisation's data: see DB.Change.
func (o *Org) change(ctx context.Context, f func(tx *gorm.DB) error) error {
	return o.s.db.Change(ctx, o.id, f)
}

// Version returns the organisation's version, which rises with every change of its data. As long as it stays the same, so do all answers
// that are read after it. It is 0 for an unknown organisation.
func (o *Org) Version(ctx context.Context) (int64, error) {
	var version int64
	err := o.q(ctx, "organisation_totals").Select("version").Limit(1).Scan(&version).Error
	return version, translate(err)
}

// Change runs f in a transaction that writes an organisation's data, and raises the organisation's version first. Every transaction that
// writes such data must do so; RaiseVersions does it for several organisations. The new version tells readers of the change. It also
// serialises these transactions: they write the same rows in different orders and would otherwise deadlock.
func (d *DB) Change(ctx context.Context, org uuid.UUID, f func(tx *gorm.DB) error) error {
	return d.Tx(ctx, func(tx *gorm.DB) error {
		if err := raiseVersions(tx, d.Now(), org); err != nil {
			return err
		}
		return f(tx)
	})
}

// ChangeInBulk does the same as Change and gives f the engine's fastest way to insert rows.
func (d *DB) ChangeInBulk(ctx context.Context, org uuid.UUID, f func(tx *gorm.DB, insert insertRows) error) error {
	return d.BulkTx(ctx, func(tx *gorm.DB, insert insertRows) error {
		if err := raiseVersions(tx, d.Now(), org); err != nil {
			return err
		}
		return f(tx, insert)
	})
}

// raised is the SQL that raises a version. A version is the time in microseconds, or the last version plus one if that is greater. So no
// version is used twice, even if a database is restored from a backup.
const raised = "version = CASE WHEN organisation_totals.version < ? THEN ? ELSE organisation_totals.version + 1 END"

// raiseVersions locks the organisations in the order of their ids and raises their versions.
func raiseVersions(tx *gorm.DB, now Instant, orgs ...uuid.UUID) error {
	for chunk := range slices.Chunk(distinct(orgs), insertChunk) {
		if len(chunk) == 1 { // a single row needs no lock order
			err := tx.Exec("UPDATE organisation_totals SET "+raised+" WHERE organisation_id = ?", now, now, chunk[0]).Error
			if err != nil {
				return err
			}
			continue
		}
		list, args := withOrgs(tx, chunk)
		err := lockRows(tx, list+`SELECT t.version FROM wanted CROSS JOIN organisation_totals t WHERE t.organisation_id = wanted.organisation_id
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
