package store

import (
	"context"

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

// q begins a reading query on a table, with the organisation's condition in place.
func (o *Org) q(ctx context.Context, table string) *gorm.DB {
	return scoped(o.s.read.WithContext(ctx), table, o.id)
}

// scoped is the one place where the condition on the organisation is written for queries built by GORM.
func scoped(db *gorm.DB, table string, org uuid.UUID) *gorm.DB {
	return db.Table(table).Where(table+".organisation_id = ?", org)
}

// lock makes transactions that write the organisation's videos, accounts or sums wait for each other; it comes first in
// each. They touch the same rows in different orders (a batch of videos, all videos of an account), and would otherwise
// wait for each other in circles. A transaction over several organisations locks them in the order of their ids.
func (o *Org) lock(tx *gorm.DB) error { return lockOrganisation(tx, o.s.dialect, o.id) }

func lockOrganisation(tx *gorm.DB, d dialect, org uuid.UUID) error {
	if !d.skipLocked() {
		return nil // writers come one at a time
	}
	var locked []int64
	return scoped(tx, "organisation_totals", org).Clauses(forUpdate).Pluck("videos", &locked).Error
}
