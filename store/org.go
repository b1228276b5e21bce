package store

import (
	"context"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
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
func (o *Org) DB() *db.DB { return o.s.db }

// Organisation returns the organisation's own record, or ErrNotFound.
func (o *Org) Organisation(ctx context.Context) (Organisation, error) {
	return o.s.Organisation(ctx, o.id)
}

// q begins a reading query on a table, with the organisation's condition in place.
func (o *Org) q(ctx context.Context, table string) *gorm.DB {
	return db.Scoped(o.s.db.Read(ctx), table, o.id)
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
	return version, db.Translate(err)
}
