package store

import (
	"context"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// Org gives access to the data of one organisation. Other packages reach this data only through Org. Org treats an id, link or name from another
// organisation's data like an unknown one.
type Org struct {
	s  *Store
	id uuid.UUID // id of the organisation

	// The next two fields are explained at the type Version.
	at        *Version      // version that all reads use; nil if each read must find out the version itself
	onVersion func(Version) // gets the first version that is read, which then becomes "at"; nil if the Org does not remember what it reads
}

// Org returns an Org for the organisation with the given id. It does not check that the organisation exists: an unknown organisation has no
// data.
func (s *Store) Org(id uuid.UUID) *Org { return &Org{s: s, id: id} }

// ID returns the organisation's id.
func (o *Org) ID() uuid.UUID { return o.id }

// DatabaseOf returns the database with all organisations' data. Only store/backfill calls it. Org
// has no such method, because its methods reach only one organisation.
func DatabaseOf(o *Org) *db.DB { return o.s.db }

// scopedQuery returns a query for the organisation's rows of a table, outside of a transaction.
func (o *Org) scopedQuery(ctx context.Context, table string) *gorm.DB {
	return db.Scoped(o.s.db.Read(ctx), table, o.id)
}

// OrgTx is an organisation in a transaction that writes its data. Do not call methods of Org that open a transaction: they would wait for this one.
type OrgTx struct {
	*Org
	Tx            *gorm.DB
	Now           db.Instant // the time that the transaction stores
	WithoutEvents bool       // eventRecorder records no events, because an import changes the data
}

// changeData runs a function in a transaction that writes the organisation's data. The transaction first raises the organisation's version.
func (o *Org) changeData(ctx context.Context, write func(t OrgTx) error) error {
	return o.s.db.Change(ctx, o.id, func(tx *gorm.DB) error { return write(OrgTx{Org: o, Tx: tx, Now: o.s.db.Now()}) })
}
